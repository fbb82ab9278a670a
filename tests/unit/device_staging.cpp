// Staging on an engine made by hand: who is staged and who is not, finished counts across their wrap, answers in an order that
// hardware may choose, failures, what a park leaves with a worker.
#include "staging_test.hpp"
#include "trace_catch.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::awaited;
using device::done_word;
using device::low_bits;
using device::mail;
using device::order;
using device::report_kind;
using device::scope;
using device::tag_of;
using device::verdict;

namespace {

/// A bit for each of the last mails that was skipped, the last one lowest.
u32 skips_in(u32 done) { return done >> done_word::history_at & low_bits(done_word::history); }

access_entry byte(u64 address, access_mode mode) { return access_entry::range(mode, address, 1); }

} // namespace

TEST_CASE("a chain is staged ahead: each task is mailed while the first one runs, and starts when its predecessor is done",
          "[device][staging]")
{
    staging_test t(8);
    t.put(0);
    for (u32 slot = 1; slot < 5; ++slot) t.put_behind(slot, {slot - 1});
    t.settle();
    std::vector<mail> letters;
    for (u32 slot = 0; slot < 5; ++slot) letters.push_back(t.take(slot, slot, slot == 0 ? 0 : 1));
    CHECK_FALSE(t.has_mail(5));
    for (u32 slot = 1; slot < 5; ++slot) {
        for (u32 behind = slot; behind < 5; ++behind)
            CHECK(t.ports[behind].await(t.engine.team, letters[behind]) == verdict::leave); // it waits
        t.answer(slot - 1, letters[slot - 1]);
        REQUIRE(t.ports[slot].await(t.engine.team, letters[slot]) == verdict::run); // no word of the scheduler's
    }
    t.answer(4, letters[4]);
    t.settle();
    CHECK(t.take_retired() == 5);
    t.check_empty();
}

TEST_CASE("a task linked with others does not wait for those that the last of its predecessors waits for", "[device][staging]")
{
    scheduler_test t({.window = 32, .workers = 8});
    t.start();
    const auto waits = [&](u32 slot) { return t.engine.s.pending[slot] & 0xffff; };
    t.put(0);
    t.put_behind(1, {0});
    t.put_behind(2, {0, 1});
    t.put_behind(3, {1, 2});
    t.put_behind(4, {0, 1, 2, 3}); // the list of 3 does not tell of 0
    t.linker->step(t.engine.team);
    CHECK(waits(1) == 1);
    CHECK(waits(2) == 1);
    CHECK(waits(3) == 1);
    CHECK(waits(4) == 2);
    CHECK(t.engine.s.loads[0].successors() == 2);
    CHECK(t.engine.s.loads[1].successors() == 1);
    CHECK(t.engine.s.waits_for[2].slots[0] == 1);
}

TEST_CASE("with several parts no edge from or to a stand-in is implied, and a stand-in behind two is not foreseen",
          "[device][staging][parts]")
{
    constexpr u32 home = 1;
    for (const u32 more : {0u, 5u}) { // predecessors besides: others' lanes enter them
        CAPTURE(more);
        scheduler_test t({.window = 32, .workers = 8, .staging = true, .parts = 2});
        t.start();
        const auto waits = [&](u32 slot) { return t.engine.s.pending[slot] & 0xffff; };
        const auto stand_in = [&](u32 slot, const std::vector<u32>& slots) {
            t.engine.s.crossings[slot] = abi::crossing_word::make(slot, home).word;
            t.put_behind(slot, slots, 0, {}, abi::flag_crossing | abi::flag_counted);
        };
        const auto link = [&] { while (t.linker->step(t.engine.team)) {} };
        const auto foreseen = [&] { return t.engine.s.staging_sent[home]; };
        std::vector<u32> others;
        for (u32 slot = 20; slot < 20 + more; ++slot) t.put(slot), others.push_back(slot);
        const auto and_others = [&](std::vector<u32> slots) {
            slots.insert(slots.end(), others.begin(), others.end());
            return slots;
        };
        t.put(0);
        stand_in(1, {0});
        t.put_behind(2, and_others({0, 1})); // 0 may fail, and 1 be ready
        link();
        CHECK(waits(2) == 2 + more);
        CHECK(foreseen() == 1);
        t.put_behind(3, {0});
        stand_in(4, and_others({0, 3})); // 3 may run, and 4 be cancelled for 0
        link();
        CHECK(waits(4) == 2 + more);
        CHECK(foreseen() == 1);
        t.put_behind(5, and_others({0, 3})); // as before
        link();
        CHECK(waits(5) == 1 + more);
    }
}

TEST_CASE("a meeting comes again only when the last one that waited there is through with it, however many stand-ins came",
          "[device][staging][parts]")
{
    constexpr u32 other = 1, last = 32, again = 40; // slots; each task's meeting is its slot, but for `again`
    scheduler_test t({.window = 128, .workers = 8, .staging = true, .parts = 2});
    t.start();
    const auto crossing = [&](u32 slot, u32 meeting) {
        t.engine.s.crossings[slot] = abi::crossing_word::make(meeting, 1).word; // one stand-in
        t.put(slot, 1, {}, abi::flag_crossing);
    };
    for (u32 slot = 0; slot <= last; ++slot) crossing(slot, slot);
    while (t.linker->step(t.engine.team)) {}
    CHECK((t.engine.s.pending[last] & 0xffff) == 1);
    // The last one was foreseen, so that it has run: it is complete, and retired when its stand-in is said to be ready. Then its
    // meeting comes again at once; 32 other stand-ins came before that one.
    t.engine.s.staged[last / 32] |= 1u << last % 32;
    device::queue_producer<P, device::report, device::edge::R13_report, device::edge::A13_taken> reports(t.engine.s.report_queue());
    device::queue_producer<P, u32, device::edge::R20_arrived, device::edge::A20_room> arrived(t.engine.s.arrived_queue());
    reports.push(t.engine.team, device::report::make(device::report_kind::completed, last));
    for (u32 slot = 0; slot <= last; ++slot) arrived.put(t.engine.team, device::arrival::make(slot, other, slot).word);
    arrived.publish(t.engine.team);
    crossing(again, last);
    for (u32 slot = again + 1; slot < again + 32; ++slot) t.put(slot); // a full turn of the linker
    while (t.linker->step(t.engine.team)) {}
    CHECK((t.engine.s.pending[again] & 0xffff) == 1);
    CHECK((t.engine.s.early[last / 32] >> last % 32 & 1) == 0);
    arrived.push(t.engine.team, device::arrival::make(last, other, 99).word);
    while (t.linker->step(t.engine.team)) {}
    CHECK((t.engine.s.pending[again] & 0xffff) == 0);
    CHECK(t.engine.s.meetings[last] == 0);
}

TEST_CASE("a list of predecessors that was too short for them tells nothing of whom its task waits for", "[device][staging]")
{
    constexpr u32 x = 20, wide = 21, many = device::waits_max + 1;
    staging_test t(16);
    t.put(x);
    t.put_behind(wide, {x}); // leaves x in the slot's list
    t.settle();
    t.answer(0, t.take(0, x, 0));
    t.answer(1, t.take(1, wide, 1));
    t.settle();
    REQUIRE(t.take_retired() == 2);

    std::vector<u32> all;
    t.put(x); // another task
    for (u32 slot = 0; slot < many; ++slot) {
        t.put(slot);
        all.push_back(slot);
    }
    t.put_behind(wide, all);
    t.linker->step(t.engine.team);
    t.put_behind(22, {x, wide}); // with three more, so that all are linked together
    for (u32 slot = 23; slot < 26; ++slot) t.put_behind(slot, {x});
    while (t.linker->step(t.engine.team)) {}
    CHECK((t.engine.s.pending[22] & 0xffff) == 2);
}

TEST_CASE("what was linked 2^15 tasks ago tells nothing of whom its task waits for, and is mailed when its turn comes",
          "[device][staging]")
{
    staging_test t(3);
    t.put(1);
    t.settle();
    t.put_behind(0, {1}); // its list names slot 1
    t.settle();
    t.run(0, 1);
    const mail lasting = t.take(1, 0, 1); // it runs, and runs
    const auto next = [&] { // an independent task, to its end
        t.put(5);
        t.settle();
        for (const u32 worker : {0u, 2u}) {
            const mail letter = t.ports[worker].wait();
            if (letter.leaves()) continue;
            t.answer(worker, letter);
            t.settle();
            return;
        }
        FAIL("nobody has it");
    };
    for (u32 i = 0; i < (1u << 15) + 100; ++i) {
        next();
        t.take_retired();
    }
    t.put(1); // the slot comes again
    t.settle();
    t.put_behind(2, {0, 1});
    t.settle();
    CHECK(t.pending(2) == 2);
    t.put_behind(3, {0});
    t.settle();
    for (const u32 worker : {0u, 2u}) {
        const mail letter = t.ports[worker].wait();
        if (!letter.leaves() && letter.slot() == 1) t.answer(worker, letter);
    }
    t.settle();
    t.answer(1, lasting);
    t.settle();
    u32 ran = 0;
    for (u32 turn = 0; turn < 8; ++turn)
        for (u32 worker = 0; worker < 3; ++worker) {
            const mail letter = t.ports[worker].wait();
            if (letter.leaves()) continue;
            ++ran;
            t.answer(worker, letter);
            t.settle();
        }
    CHECK(ran == 2);
    t.check_empty();
}

TEST_CASE("nothing is staged when staging is off", "[device][staging]")
{
    scheduler_test t({.window = 32, .workers = 8});
    t.start();
    t.put(0);
    t.put_behind(1, {0});
    t.settle();
    CHECK(t.engine.s.ready_tail->raw == 1);
}

TEST_CASE("a task that waits for more than waits_max others is not staged until it waits for fewer, nor are those linked after it",
          "[device][staging]")
{
    constexpr u32 most = device::waits_max, last = most + 1;
    staging_test t(32); // as many blocks as may be there beside staged ones, and more
    std::vector<u32> all;
    for (u32 slot = 0; slot <= most; ++slot) {
        t.put(slot);
        all.push_back(slot);
    }
    t.put_behind(last, all);
    t.put_behind(last + 1, {1});
    t.settle();
    CHECK_FALSE(t.staged(last));
    CHECK_FALSE(t.staged(last + 1));
    t.run(0, 0);
    CHECK(t.staged(last));
    CHECK(t.staged(last + 1));
    const mail letter = t.take(0, last, most);
    for (u32 slot = 1; slot < most; ++slot) t.run(slot, slot);
    CHECK(t.ports[0].await(t.engine.team, letter) == verdict::leave); // all but one
    t.run(most, most);
    REQUIRE(t.ports[0].await(t.engine.team, letter) == verdict::run);
    t.answer(0, letter);
    t.settle();
    t.run(last, last + 1, 1);
    CHECK(t.take_retired() == last + 2);
    t.check_empty();
}

TEST_CASE("a predecessor that is complete when its successor is looked at is not waited for", "[device][staging]")
{
    staging_test t(4);
    t.type = 1;
    for (u32 slot = 0; slot < 3; ++slot) t.put(slot); // as many blocks as may be there beside staged ones
    t.put_behind(3, {0, 1});
    t.settle();
    CHECK_FALSE(t.staged(3));
    t.run(0, 0);
    CHECK(t.staged(3));
    const mail letter = t.take(0, 3, 1); // for slot 1 only
    CHECK(t.ports[0].await(t.engine.team, letter) == verdict::leave);
    t.run(1, 1);
    CHECK(t.ports[0].await(t.engine.team, letter) == verdict::run);
    t.answer(0, letter);
    t.settle();
    t.run(2, 2);
    CHECK(t.take_retired() == 4);
    t.check_empty();
}

namespace {
/// Worker 0 has the tasks of slot 0 and, staged, of slot 2, which waits for that one and for slot 1's, with worker 1.
struct behind_two {
    explicit behind_two(bool lone)
    {
        t.engine.m.n.lone_workers = lone;
        t.put(0);
        t.put(1);
        t.put_behind(2, {0, 1});
        t.settle();
        first = t.take(0, 0, 0);
        second = t.take(1, 1, 0);
        next = t.ports[0].after(first);
        REQUIRE((next.slot() == 2 && next.waits() == 2));
    }
    staging_test t{2};
    mail first, second, next;
};
} // namespace

TEST_CASE("several tasks are awaited together while the mail before is answered, by a worker that is alone on its SM",
          "[device][staging]")
{
    for (const bool lone : {false, true})
        for (const u32 failure : {0u, 9u}) {
            behind_two of(lone);
            auto& [t, first, second, next] = of;
            CHECK(t.ports[0].awaits_early(first.tag + 1) == lone);
            const auto became = [&t = of.t, &next = of.next] { return t.ports[0].await_aside(t.engine.team, next, 2, true); };
            if (lone) CHECK(became() == awaited::not_yet);
            t.answer(0, first);
            if (lone) CHECK(became() == awaited::not_yet); // the other one has not
            t.answer(1, second, failure);
            if (lone) CHECK(became() == (failure == 0 ? awaited::runs : awaited::look));
            t.take(0, 2, 2);
            CHECK(t.ports[0].await(t.engine.team, next) == (failure == 0 ? verdict::run : verdict::skip));
        }
}

TEST_CASE("who awaits with so many polls gives up after them, and looks for a park first", "[device][staging]")
{
    for (const bool lone : {false, true})
        for (const u32 polls : {0u, 1u, 100u}) {
            behind_two of(lone);
            auto& [t, first, second, next] = of;
            CHECK_FALSE(t.ports[0].awaits_aside(first)); // waits for nobody
            CHECK(t.ports[0].awaits_aside(next) == lone);
            t.stop(device::stop_level::none);
            t.answer(0, first);
            CHECK(t.ports[0].await(t.engine.team, next, polls) == verdict::wait);
            t.stop(device::stop_level::park);
            CHECK(t.ports[0].await(t.engine.team, next, polls) == verdict::leave);
            t.stop(device::stop_level::none);
            t.answer(1, second);
            CHECK(t.ports[0].await(t.engine.team, next, polls) == verdict::run);
        }
}

TEST_CASE("who awaits a mail aside comes away for more mail, and for a park, but not to look in vain", "[device][staging]")
{
    const bool fails = GENERATE(false, true);
    for (const bool one : {false, true}) {
        staging_test t{2};
        t.engine.m.n.lone_workers = true;
        t.put(0);
        t.put(1);
        t.put_behind(2, one ? std::vector<u32>{1} : std::vector<u32>{0, 1});
        t.settle();
        const mail first = t.take(0, 0, 0), second = t.take(1, 1, 0);
        auto& port = t.ports[0];
        const mail next = port.after(first);
        REQUIRE((next.slot() == 2 && next.waits() == (one ? 1 : 2)));
        REQUIRE(port.awaits_one(next.tag) == one);
        const auto became = [&] { return port.await_aside(t.engine.team, next, 3, false); };
        t.stop(device::stop_level::none);
        CHECK(port.has_come() == awaited::not_yet);
        CHECK(port.await_aside(t.engine.team, next, 3, true) == awaited::not_yet);
        for (const auto level : {device::stop_level::park, device::stop_level::abort}) {
            t.stop(level);
            CHECK(became() == awaited::look);
        }
        t.stop(device::stop_level::none);
        for (u32 slot = 3; port.has_come() == awaited::not_yet; ++slot) {
            REQUIRE(slot < 8);
            t.put(slot);
            t.settle();
        }
        CHECK(became() == awaited::more);
        t.stop(device::stop_level::park);
        CHECK(became() == awaited::look);
        t.stop(device::stop_level::none);
        CHECK(port.read_more(t.engine.team, [](u32, u32) {}));
        CHECK(port.has_come() == awaited::not_yet);
        t.answer(0, first);
        t.answer(1, second, fails ? 9 : 0);
        CHECK(became() == (fails ? awaited::look : awaited::runs));
        CHECK(port.await(t.engine.team, next) == (fails ? verdict::skip : verdict::run));
    }
}

TEST_CASE("of brief tasks two blocks a worker are staged, where another is among them three quarters of one", "[device][staging]")
{
    constexpr u32 count = 20;
    for (const bool brief : {false, true}) {
        staging_test t(8, 64);
        t.type = brief ? 0 : 1;
        t.put(0);
        t.type = 0;
        for (u32 slot = 1; slot < count; ++slot) t.put_behind(slot, {0});
        t.settle();
        for (u32 slot = 1; slot < count; ++slot) {
            INFO("slot " << slot << (brief ? ", all brief" : ""));
            CHECK(t.staged(slot) == (slot < (brief ? 16 : 6)));
        }
        u32 retired = 0;
        for (u32 round = 0; retired < count; ++round) {
            REQUIRE(round < count);
            for (u32 w = 0; w < 8; ++w) {
                const mail letter = t.ports[w].wait();
                if (letter.leaves() || t.ports[w].await(t.engine.team, letter) != verdict::run) continue;
                t.answer(w, letter);
            }
            t.settle();
            retired += t.take_retired();
        }
        t.check_empty();
    }
}

TEST_CASE("a task of tickets is neither staged nor waited for", "[device][staging]")
{
    staging_test t(2);
    t.put(0);
    t.put_behind(1, {0}, 3); // more blocks than workers
    t.put_behind(2, {1});
    t.settle();
    CHECK_FALSE((t.staged(1) || t.staged(2)));
    t.run(0, 0);
    t.stop(device::stop_level::none);
    for (u32 w = 0; w < 2; ++w) {
        const mail letter = t.take(w, 1, 0);
        REQUIRE(letter.tickets());
        while (t.ports[w].draw(t.ports[w].record(letter), 3, 1) < 3) {}
        t.answer(w, letter);
    }
    t.settle();
    CHECK(t.finished_of(1).blocks() == 0);
    let_waits_end(t.engine);
    t.run(0, 2);
    CHECK(t.take_retired() == 3);
    t.check_empty();
}

TEST_CASE("how much is staged: mailboxes of a serial program may be full, beside other work some workers stay free",
          "[device][staging]")
{
    {
        staging_test t(4); // mailboxes full, while no more than two tasks are handed over; else 4 - 4 / 4 blocks
        t.type = 1;
        t.put(0, 4);
        for (u32 slot = 1; slot < 4; ++slot) t.put_behind(slot, {slot - 1}, 4);
        t.settle();
        CHECK((t.staged(1) && t.staged(2)));
        CHECK_FALSE(t.staged(3));
        for (u32 w = 0; w < 4; ++w) t.answer(w, t.take(w, 0, 0));
        t.settle();
        CHECK(t.staged(3)); // there is room again
        for (u32 slot = 1; slot < 4; ++slot)
            for (u32 w = 0; w < 4; ++w) t.run(w, slot, 1);
        t.check_empty();
    }
    for (const u32 workers : {4u, 400u}) { // of brief tasks five
        staging_test t(workers);
        for (u32 slot = 0; slot < 8; ++slot) slot == 0 ? t.put(0, workers) : t.put_behind(slot, {slot - 1}, workers);
        t.settle();
        for (u32 slot = 1; slot < 8; ++slot) CHECK(t.staged(slot) == (slot < 6));
        for (u32 w = 0; w < workers; ++w) REQUIRE(t.engine.s.sent[w] == 6); // and all are mailed
        for (u32 slot = 0; slot < 8; ++slot)
            for (u32 w = 0; w < workers; ++w) t.run(w, slot, slot != 0);
        t.check_empty();
    }
    for (const u32 lasting : {0u, 1u}) { // not where a task may last: workers would wait for it, and others for them
        staging_test t(8);
        t.type = lasting;
        for (u32 slot = 0; slot < 3; ++slot) t.put(slot);
        t.type = 0;
        t.put_behind(3, {0}, 8);
        t.settle();
        CHECK(t.staged(3) == (lasting == 0));
        CHECK(t.engine.s.counters[device::handed_lasting] == 3 * lasting);
        t.run(0, 0);
        t.run(1, 1);
        CHECK(t.engine.s.counters[device::handed_lasting] == lasting);
        t.run(2, 2);
        u32 blocks = 0;
        for (u32 w = 0; w < 8; ++w)
            for (; t.has_mail(w); ++blocks) {
                const mail letter = t.ports[w].wait();
                REQUIRE(letter.slot() == 3);
                if (letter.staged()) REQUIRE(t.ports[w].await(t.engine.team, letter) == verdict::run);
                t.answer(w, letter);
            }
        CHECK(blocks == 8);
        t.settle();
        CHECK(t.engine.s.counters[device::handed_lasting] == 0);
        t.check_empty();
    }
    {
        staging_test t(8); // three tasks: 8 - 8 / 4 blocks
        t.type = 1;
        for (u32 slot = 0; slot < 3; ++slot) t.put(slot);
        t.put_behind(3, {0}, 3);
        t.put_behind(4, {0});
        t.settle();
        CHECK(t.staged(3));
        CHECK_FALSE(t.staged(4));
        t.run(1, 1);
        CHECK(t.staged(4));
    }
}

TEST_CASE("finished counts and targets pass 2^31 and 2^32 together", "[device][staging]")
{
    for (const u32 blocks : {1u, 2u})
        for (const u32 before : {0x7ffffffdu, 0x7ffffffeu, 0x7fffffffu, 0xfffffffcu, 0xfffffffeu, 0xffffffffu}) {
            INFO("counted before " << before << ", blocks " << blocks);
            staging_test t(4);
            for (u32 slot = 0; slot < 32; ++slot) {
                t.engine.m.records[slot].finished.raw = before;
                P::set(t.engine.s.targets[slot], before);
            }
            for (u32 round = 0; round < 3; ++round) {
                t.put(0, blocks);
                t.put_behind(1, {0}, blocks);
                t.settle();
                std::vector<mail> first, second;
                for (u32 b = 0; b < blocks; ++b) first.push_back(t.take(b, 0, 0));
                for (u32 b = 0; b < blocks; ++b) second.push_back(t.take(blocks + b, 1, 1));
                for (u32 b = 0; b < blocks; ++b) {
                    for (u32 k = 0; k < blocks; ++k) REQUIRE(t.ports[blocks + k].await(t.engine.team, second[k]) == verdict::leave);
                    t.answer(b, first[b]);
                }
                for (u32 b = 0; b < blocks; ++b) {
                    REQUIRE(t.ports[blocks + b].await(t.engine.team, second[b]) == verdict::run);
                    t.answer(blocks + b, second[b]);
                }
                t.settle();
                REQUIRE(t.take_retired() == 2);
                CHECK(t.finished_of(0).blocks() == before + (round + 1) * blocks);
                CHECK_FALSE(t.finished_of(0).has_failures());
            }
            t.check_empty();
        }
}

TEST_CASE("a task reported complete before its predecessor: its slot may come again, and nothing is linked meanwhile",
          "[device][staging]")
{
    staging_test t(3);
    t.put(0);
    t.put_behind(1, {0});
    t.settle();
    const mail first = t.take(0, 0, 0), second = t.take(1, 1, 1);
    const u32 unseen = t.engine.m.done[0].raw; // the scheduler reads the completion words in no order
    t.answer(0, first);
    const u32 answered = t.engine.m.done[0].raw;
    t.engine.m.done[0].raw = unseen;
    REQUIRE(t.ports[1].await(t.engine.team, second) == verdict::run);
    t.answer(1, second);
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK(t.is(t.engine.s.early, 1));
    t.put(1); // the slot comes again
    t.put_behind(2, {1, 0});
    t.settle();
    CHECK(t.engine.s.linked->raw == 2);
    CHECK_FALSE(t.has_mail(1));
    t.engine.m.done[0].raw = answered;
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK(t.engine.s.linked->raw == 4);
    CHECK_FALSE(t.is(t.engine.s.early, 1));
    CHECK(t.pending(2) == 1); // the new task of slot 1, not the old one, nor slot 0
    t.run(0, 1);
    t.run(1, 2, 1);
    CHECK(t.take_retired() == 2);
    CHECK(t.positions.size() == 4);
    t.check_empty();
}

TEST_CASE("a chain reported complete from its end is completed from its beginning", "[device][staging]")
{
    staging_test t(4);
    t.type = 1;
    t.put(0);
    for (u32 slot = 1; slot < 4; ++slot) t.put_behind(slot, {slot - 1});
    t.settle();
    u32 answered[4];
    for (u32 w = 0; w < 3; ++w) {
        const u32 unseen = t.engine.m.done[w].raw;
        t.answer(w, t.take(w, w, w != 0));
        answered[w] = t.engine.m.done[w].raw;
        t.engine.m.done[w].raw = unseen;
    }
    CHECK_FALSE(t.staged(3)); // as many blocks as workers
    for (u32 w = 3; w-- > 0;) {
        t.engine.m.done[w].raw = answered[w];
        t.settle();
        CHECK(t.take_retired() == 1);
        for (u32 slot = 1; slot < 3; ++slot)
            CHECK(t.is(t.engine.s.early, slot) == (slot == w)); // what it waits for is known when the one before it is
        CHECK(t.linker->empty() == false);
    }
    t.run(2, 3); // it was mailed as soon as the one before it was known to be complete
    CHECK(t.take_retired() == 1);
    t.check_empty();
}

TEST_CASE("a skipped task goes back, is mailed again when its predecessor is complete, and runs, or is cancelled",
          "[device][staging]")
{
    for (const bool reads : {false, true})
        for (const bool seen_first : {false, true}) { // does the scheduler see the skipping before the failure?
            INFO("reads " << reads << ", seen first " << seen_first);
            staging_test t(2);
            t.put(0, 1, {byte(0x1000, access_mode::write)});
            t.put_behind(1, {0}, 1, {byte(0x1000, reads ? access_mode::read : access_mode::write)});
            t.settle();
            const mail first = t.take(0, 0, 0), second = t.take(1, 1, 1);
            const u32 unseen = t.engine.m.done[0].raw;
            t.answer(0, first, 55);
            const u32 answered = t.engine.m.done[0].raw;
            if (seen_first) t.engine.m.done[0].raw = unseen;
            t.skip(1, second);
            CHECK(skips_in(t.engine.m.done[1].raw) == 1);
            CHECK(t.finished_of(1).has_failures());
            t.settle();
            CHECK_FALSE(t.staged(1));
            CHECK(t.tainted(1) == (seen_first || !reads)); // else it is complete, too
            if (seen_first) {
                CHECK(t.take_retired() == 0);
                CHECK(t.pending(1) == 1);
                CHECK_FALSE(t.has_mail(1));
                t.engine.m.done[0].raw = answered;
                t.settle();
            }
            if (reads) {
                CHECK(t.take_retired() == 2);
                CHECK_FALSE((t.has_mail(0) || t.has_mail(1)));
                CHECK(t.engine.s.poison_outcomes[1].failure == (2 | device::outcome_cancelled));
            } else {
                CHECK(t.take_retired() == 1);
                t.run(0, 1); // not staged this time
                CHECK(t.take_retired() == 1);
            }
            t.check_empty();
            for (u32 slot = 0; slot < 2; ++slot) { // nothing is in flight: the counts were set back
                CHECK_FALSE(t.tainted(slot));
                CHECK(t.finished_of(slot).raw == 0);
            }
        }
}

TEST_CASE("a task that succeeded before the one that failed heals nothing, though it is seen to be complete with it or after it",
          "[device][staging]")
{
    for (const bool together : {true, false}) {
        INFO("together " << together);
        staging_test t(3);
        t.put(2); // keeps worker 0 busy: the task that will fail comes to a worker before that of its predecessor
        t.settle();
        t.put(0, 1, {byte(0x1000, access_mode::write)});
        t.settle();
        t.run(0, 2);
        t.put_behind(1, {0}, 1, {byte(0x1000, access_mode::read_write)});
        t.settle();
        t.put_behind(3, {1}, 1, {byte(0x1000, access_mode::read)});
        const mail first = t.take(1, 0, 0), second = t.take(0, 1, 1);
        const u32 unseen = t.engine.m.done[1].raw;
        t.answer(1, first);
        const u32 answered = t.engine.m.done[1].raw;
        REQUIRE(t.ports[0].await(t.engine.team, second) == verdict::run);
        t.answer(0, second, 55);
        if (!together) {
            t.engine.m.done[1].raw = unseen;
            t.settle();
            t.engine.m.done[1].raw = answered;
        }
        t.settle();
        CHECK(t.engine.s.poison_outcomes[3].failure != 0); // cancelled
        CHECK(t.engine.s.poison_state[device::poison_entry_count] == 1);
        t.put(4, 1, {byte(0x1000, access_mode::write)}); // behind the failure
        t.settle();
        t.run(0, 4);
        CHECK(t.engine.s.poison_state[device::poison_entry_count] == 0);
        CHECK(t.take_retired() == 5);
        t.check_empty();
    }
}

TEST_CASE("all blocks of a task behind a failing block are skipped, whenever they look", "[device][staging]")
{
    for (const u32 failing : {0u, 1u}) {
        staging_test t(4);
        t.put(0, 2);
        t.put_behind(1, {0}, 2);
        t.settle();
        const mail first[] = {t.take(0, 0, 0), t.take(1, 0, 0)}, second[] = {t.take(2, 1, 1), t.take(3, 1, 1)};
        t.answer(failing, first[failing], 7);
        t.settle();
        CHECK(t.ports[2].await(t.engine.team, second[0]) == verdict::leave);
        t.answer(1 - failing, first[1 - failing]);
        t.skip(2, second[0]);
        t.settle(); // one of two blocks: it has not gone back
        CHECK(t.staged(1));
        CHECK(t.take_retired() == 1);
        t.skip(3, second[1]);
        t.settle();
        t.run(0, 1, 0);
        t.run(1, 1, 0);
        CHECK(t.take_retired() == 1);
        t.check_empty();
    }
}

TEST_CASE("while there is poison nothing is mailed staged; what the linker staged comes back", "[device][staging]")
{
    staging_test t(2);
    t.put(5, 1, {byte(0x9000, access_mode::write)});
    t.settle();
    t.answer(0, t.take(0, 5, 0), 3);
    t.settle();
    REQUIRE(t.engine.s.counters[device::poison_active] != 0);
    t.put(0);
    t.put_behind(1, {0});
    t.put_behind(2, {1});
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK_FALSE((t.staged(1) || t.staged(2)));
    CHECK_FALSE(t.has_mail(1));
    CHECK(P::get(t.engine.s.targets[1]) == 0); // it is not to be waited for
    t.run(0, 0);
    t.run(0, 1);
    t.run(0, 2);
    CHECK(t.take_retired() == 3);
    t.check_empty();
    // Cleared: they are staged again.
    t.put(3, 1, {}, abi::flag_clear_failure);
    t.settle();
    t.put_behind(4, {3});
    t.settle();
    CHECK(t.engine.s.counters[device::poison_active] == 0);
    const mail letter = t.take(0, 3, 0);
    t.take(1, 4, 1);
    t.answer(0, letter);
    t.run(1, 4, 1);
    t.check_empty();
}

TEST_CASE("what was staged behind a clear_failure is mailed with it, and so is whoever was staged behind that meanwhile",
          "[device][staging]")
{
    static staging_test* test;
    for (const u32 blocks : {1u, 2u}) {
        CAPTURE(blocks);
        staging_test t(blocks); // each task has as many as there are workers
        test = &t;
        const auto take = [&](u32 slot, u32 waits) { // a block of it from each worker
            std::vector<mail> letters;
            for (u32 w = 0; w < blocks; ++w) letters.push_back(t.take(w, slot, waits));
            return letters;
        };
        const auto run = [&](u32 slot, u32 waits) {
            const std::vector<mail> letters = take(slot, waits);
            for (u32 w = 0; w < blocks; ++w) {
                if (waits != 0) REQUIRE(t.ports[w].await(t.engine.team, letters[w]) == verdict::run);
                t.answer(w, letters[w]);
            }
            t.settle();
        };
        t.put(5, blocks, {byte(0x9000, access_mode::write)});
        t.settle();
        for (const mail& letter : take(5, 0)) t.answer(letter.block(), letter, 3);
        t.settle();
        REQUIRE(t.engine.s.counters[device::poison_active] != 0);
        t.put(3, blocks, {}, abi::flag_clear_failure);
        while (t.linker->step(t.engine.team)) {}
        t.put_behind(4, {3}, blocks);
        while (t.linker->step(t.engine.team)) {}
        REQUIRE(t.staged(4));
        // Before the scheduler's next report is out a task is staged behind that one.
        device::host_delay_hook = [](device::edge e) {
            if (e != device::edge::R13_report) return;
            device::host_delay_hook = nullptr;
            test->put_behind(6, {4}, test->engine.m.n.workers);
            while (test->linker->step(test->engine.team)) {}
        };
        t.scheduler->step(t.engine.team);
        const bool reported = device::host_delay_hook.load() == nullptr;
        device::host_delay_hook = nullptr;
        CHECK_FALSE(reported); // nothing was declined
        if (!reported) t.put_behind(6, {4}, blocks);
        t.settle();
        CHECK(t.engine.s.counters[device::poison_active] == 0);
        run(3, 0);
        run(4, 1);
        run(6, 1);
        CHECK(t.take_retired() == 4);
        t.check_empty();
    }
}

TEST_CASE("a clear_failure is not staged, nor anybody behind it before its turn: nobody overtakes what was declined",
          "[device][staging]")
{
    static staging_test* test;
    static u32 next, reports;
    staging_test t(1); // who waits there for one that comes later does so for ever
    test = &t;
    next = 3;
    reports = 0;
    t.put(0, 1, {byte(0x9000, access_mode::write)});
    t.settle();
    const mail failing = t.take(0, 0, 0);
    t.put_behind(1, {0}, 1, {}, abi::flag_clear_failure);
    t.put_behind(2, {1});
    while (t.linker->step(t.engine.team)) {}
    CHECK_FALSE((t.staged(1) || t.staged(2)));
    t.answer(0, failing, 7);
    // Twice one is staged, if it can be, behind what was declined just now, before the linker hears of that.
    for (const u32 slot : {3u, 4u}) {
        device::host_delay_hook = [](device::edge e) {
            if (e != device::edge::R13_report || reports++ == 0) return; // the first one is the failure itself
            device::host_delay_hook = nullptr;
            test->put_behind(next, {next - 1});
            ++next;
            while (test->linker->step(test->engine.team)) {}
        };
        t.scheduler->step(t.engine.team);
        device::host_delay_hook = nullptr;
        while (t.linker->step(t.engine.team)) {}
        if (next == slot) t.put_behind(next++, {slot - 1});
    }
    t.settle();
    std::vector<u32> order;
    for (u32 turn = 0; turn < 4 && t.has_mail(0); ++turn) {
        const mail letter = t.ports[0].wait();
        order.push_back(letter.slot());
        if (letter.waits() != 0) REQUIRE(t.ports[0].await(t.engine.team, letter) == verdict::run);
        t.answer(0, letter);
        t.settle();
    }
    CHECK(order == std::vector<u32>{1, 2, 3, 4});
    CHECK(t.take_retired() == 5);
    t.check_empty();
}

TEST_CASE("once a task has failed, one that waits for two comes behind neither: its worker may have forgotten the farther one",
          "[device][staging]")
{
    for (const bool failed : {false, true}) {
        INFO(failed);
        staging_test t(1, 32, true);
        if (failed) {
            t.put(9);
            t.settle();
            t.answer(0, t.take(0, 9, 0), 3);
            t.put(8, 1, {}, abi::flag_clear_failure);
            t.settle();
            t.run(0, 8);
        }
        for (u32 i = 0; i < P::mailbox_depth; ++i) { // so that the worker does not know of that any more
            t.put(7);
            t.settle();
            t.run(0, 7);
        }
        t.put(0);
        for (u32 slot = 1; slot < 3; ++slot) t.put_behind(slot, {slot - 1});
        t.put_behind(3, {0, 2}); // what 2 waits for does not tell of 0
        t.settle();
        for (u32 slot = 0; slot < 4; ++slot) {
            const bool behind = slot != 0 && !(failed && slot == 3);
            const mail letter = t.take(0, slot, slot == 0 || behind ? 0 : 2);
            CHECK(letter.follows() == behind);
            if (slot != 0) CHECK(t.ports[0].await(t.engine.team, letter) == verdict::run);
            t.answer(0, letter);
            t.settle();
        }
        CHECK(t.take_retired() == P::mailbox_depth + (failed ? 6 : 4));
        t.check_empty();
    }
}

TEST_CASE("a staged task of which a block was mailed is mailed to its end though there is poison; skipped, it begins anew",
          "[device][staging]")
{
    staging_test t(2);
    t.type = 1;
    const mail tickets = t.draw_all(9, 5);
    t.put(0);
    t.put(7);
    t.put_behind(1, {0}, 2);
    t.settle(); // worker 0: 9 and 7; worker 1: 0, and one block of 1
    CHECK(t.staged(1));
    CHECK(t.engine.s.dealt[1].raw == 1);
    t.answer(1, t.take(1, 0, 0), 8);
    t.settle();
    CHECK(t.engine.s.counters[device::poison_active] != 0);
    CHECK(t.staged(1));
    for (u32 block = 0; block < 2; ++block) {
        const mail letter = t.take(1, 1, 1);
        CHECK(letter.block() == block);
        t.skip(1, letter);
    }
    t.settle();
    CHECK(t.take_retired() == 1); // the one that failed
    for (u32 block = 0; block < 2; ++block) {
        const mail letter = t.take(1, 1, 0);
        CHECK(letter.block() == block);
        t.answer(1, letter);
    }
    t.settle();
    CHECK(t.take_retired() == 1);
    t.stop(device::stop_level::none);
    REQUIRE(t.ports[0].draw(t.ports[0].record(tickets), 5, 1) >= 5);
    t.answer(0, tickets);
    t.settle();
    t.run(0, 7);
    CHECK(t.take_retired() == 2);
    t.check_empty();
}

TEST_CASE("so is one of brief blocks, six mails ahead; all that were staged are skipped, and run one after another",
          "[device][staging]")
{
    constexpr u32 last = 5;
    staging_test t(2);
    const mail tickets = t.draw_all(9, 5);
    t.put(0, 2);
    for (u32 slot = 1; slot <= last; ++slot) t.put_behind(slot, {slot - 1}, 2);
    t.settle(); // a block of each to each worker, but for the last one: worker 0 has six mails with that of 9
    CHECK(t.staged(last));
    CHECK(t.engine.s.dealt[last].raw == 1);
    t.stop(device::stop_level::none);
    REQUIRE(t.ports[0].draw(t.ports[0].record(tickets), 5, 1) >= 5);
    let_waits_end(t.engine);
    t.answer(0, tickets);
    t.answer(0, t.take(0, 0, 0));
    t.answer(1, t.take(1, 0, 0), 8);
    t.settle();
    CHECK(t.engine.s.counters[device::poison_active] != 0);
    for (u32 slot = 1; slot <= last; ++slot)
        for (u32 w = 0; w < 2; ++w) t.skip(w, t.take(w, slot, 1));
    CHECK_FALSE((t.has_mail(0) || t.has_mail(1)));
    t.settle();
    CHECK(t.take_retired() == 2); // 9, and the one that failed
    for (u32 slot = 1; slot <= last; ++slot) {
        CHECK_FALSE(t.staged(slot));
        for (u32 w = 0; w < 2; ++w) {
            const mail letter = t.take(w, slot, 0);
            CHECK(letter.block() == w);
            t.answer(w, letter);
        }
        t.settle();
    }
    CHECK(t.take_retired() == last);
    t.check_empty();
}

TEST_CASE("nobody is staged behind a task in a slot with failures, until nothing is in flight and it was set back",
          "[device][staging]")
{
    for (const bool late : {false, true}) { // is the failing worker's addition late?
        INFO(late);
        staging_test t(4);
        t.put(9); // in flight all the while
        t.put(5);
        t.settle();
        const mail running = t.take(0, 9, 0);
        t.answer(1, t.take(1, 5, 0), 3);
        t.settle();
        CHECK(t.tainted(5));
        t.put(8, 1, {}, abi::flag_clear_failure);
        t.settle();
        t.run(1, 8);
        t.put(5);
        t.put_behind(6, {5});
        t.settle();
        CHECK_FALSE(t.staged(6));
        t.run(1, 5);
        t.run(1, 6);
        CHECK(t.finished_of(5).has_failures());
        CHECK(t.finished_of(5).blocks() == 2);
        if (late) --t.engine.m.records[5].finished.raw;
        t.answer(0, running);
        t.settle();
        CHECK(t.tainted(5) == late);
        if (late) {
            ++t.engine.m.records[5].finished.raw;
            t.put(7);
            t.settle();
            t.run(0, 7);
        }
        CHECK_FALSE(t.tainted(5));
        CHECK(t.finished_of(5).raw == 0);
        t.put(5);
        t.put_behind(6, {5});
        t.settle();
        CHECK(t.staged(6));
        t.run(0, 5);
        t.run(1, 6, 1);
        t.check_empty();
    }
}

TEST_CASE("a later failure in a slot is not taken for the one that was waited for", "[device][staging]")
{
    staging_test t(3);
    t.put(0);
    t.put_behind(1, {0});
    t.settle();
    const mail waiting = t.take(1, 1, 1);
    t.run(0, 0);
    CHECK(t.take_retired() == 1);
    t.put(0); // the slot comes again, and fails, while the worker has not looked
    t.settle();
    t.answer(0, t.take(0, 0, 0), 9);
    t.settle();
    CHECK(t.finished_of(0).has_failures());
    CHECK(t.ports[1].await(t.engine.team, waiting) == verdict::run);
    t.answer(1, waiting);
    t.settle();
    t.check_empty();
}

TEST_CASE("a later failure in a slot does not hide the one that is waited for", "[device][staging]")
{
    staging_test t(3);
    t.put(0);
    t.put_behind(1, {0});
    t.settle();
    const mail waiting = t.take(1, 1, 1);
    t.answer(0, t.take(0, 0, 0), 9);
    t.settle();
    t.put(0);
    t.settle();
    t.answer(0, t.take(0, 0, 0), 9);
    t.settle();
    t.skip(1, waiting);
    t.settle();
    t.run(0, 1);
    t.check_empty();
}

TEST_CASE("a worker with two skipped mails says so of both; with one, of which", "[device][staging]")
{
    const auto said = [](const staging_test& t) { return skips_in(t.engine.m.done[0].raw); };
    {
        staging_test t(2);
        t.put(0, 2);
        t.put_behind(1, {0});
        t.settle();
        const mail other = t.take(1, 0, 0);
        t.run(0, 0); // the first block
        t.put_behind(2, {0});
        t.settle();
        t.answer(1, other, 4);
        t.skip(0, t.take(0, 1, 1));
        CHECK(said(t) == 0b1);
        t.skip(0, t.take(0, 2, 1));
        CHECK(said(t) == 0b11);
        t.settle();
        CHECK(t.take_retired() == 1);
        t.run(0, 1);
        CHECK(said(t) == 0b110);
        t.run(1, 2);
        CHECK(t.take_retired() == 2);
        t.check_empty();
    }
    for (const bool plain_first : {false, true}) {
        INFO("plain first " << plain_first);
        staging_test t(2);
        t.put(0, 2);
        if (!plain_first) t.put_behind(1, {0});
        t.settle();
        const mail other = t.take(1, 0, 0);
        if (plain_first) {
            t.put(5); // to worker 0, behind its block
            t.settle();
        }
        t.run(0, 0);
        if (plain_first) t.put_behind(1, {0});
        else t.put(5);
        t.settle();
        t.answer(1, other, 4);
        if (plain_first) t.answer(0, t.take(0, 5, 0));
        t.skip(0, t.take(0, 1, 1));
        if (!plain_first) t.answer(0, t.take(0, 5, 0));
        CHECK(said(t) == (plain_first ? 0b1u : 0b10u));
        t.settle();
        CHECK(t.take_retired() == 2);
        t.run(0, 1);
        CHECK(t.take_retired() == 1);
        t.check_empty();
    }
}

TEST_CASE("mails, waits and reports keep their fields apart", "[device][staging]")
{
    {
        const device::broadcast_mail to_all{1023, 1024};
        const mail letter{7 | 3u << 16, to_all.encode() | mail::brief_bit | device::waits_max << 28, 1u << 30, tag_of(9)};
        CHECK((device::broadcast_mail::in(letter).first == 1023 && device::broadcast_mail::in(letter).blocks == 1024));
        CHECK((letter.broadcast() && letter.brief() && !letter.idle() && letter.waits() == device::waits_max));
        const mail last = device::broadcast_mail::of(letter, tag_of(9), 1022, 1024, 77);
        CHECK((last.block() == 1023 && last.broadcast() && !last.idle() && last.tag == tag_of(77)));
        CHECK((last.waits() == device::waits_max && last.slot() == 7 && last.type() == 3 && last.task() == 1u << 30));
        const mail late = device::broadcast_mail::of(letter, tag_of(5), 3, 1024, 77);
        CHECK((late.idle() && late.broadcast() && !late.staged() && late.tag == tag_of(77)));
        CHECK_FALSE(device::broadcast_mail::reached(tag_of(5), 0));
        CHECK(device::broadcast_mail::reached(tag_of(5), tag_of(5)));
        CHECK_FALSE(device::broadcast_mail::reached(tag_of(21), tag_of(5)));
        CHECK(device::broadcast_mail::reached(tag_of(0x7ffffffb), tag_of(11)));
        for (const u32 tag : {9u, 0xfffu, 0x1003u, 0x7fffffffu})
            for (const u32 later : {0u, 15u, 4095u}) {
                const mail mine = device::broadcast_mail::of({7, to_all.encode(), 5, tag_of(tag)}, tag_of(tag), 1023, 1024, 3);
                CHECK((mine.block() == 0 && device::broadcast_mail::tag_in(mine, tag + later) == tag_of(tag)));
            }
    }
    const mail letter{7 | 3u << 16, device::mail::block_mask | device::waits_max << 28, 1u << 30 | mail::tickets_bit, 5};
    CHECK((!letter.broadcast() && !letter.idle() && !letter.brief()));
    CHECK((letter.block() == mail::block_mask && letter.waits() == device::waits_max && letter.task() == 1u << 30
           && letter.tickets()));
    CHECK((letter.slot() == 7 && letter.type() == 3 && !letter.follows() && !letter.joins()));
    CHECK((letter.of_type(3) && !letter.of_type(2) && !letter.of_type(0x8003)));
    const mail behind{(device::window_slots_max - 1) | mail::follows_bit | 0xffffu << 16, mail::joins_bit, 5, 5};
    CHECK((behind.of_type(0xffff) && !behind.of_type(0)));
    CHECK((behind.slot() == device::window_slots_max - 1 && behind.type() == 0xffff && behind.follows() && behind.joins()
           && behind.staged()));
    CHECK((behind.block() == 0 && behind.waits() == 0 && !behind.brief()));
    const mail brief{7, mail::brief_bit, 5, 5};
    CHECK((brief.brief() && brief.block() == 0 && !brief.joins() && brief.waits() == 0 && !brief.bypassed()));
    const mail bypassed{7, mail::bypass_bit, 5, 5};
    CHECK((bypassed.bypassed() && bypassed.block() == 0 && !bypassed.brief() && !bypassed.joins() && !bypassed.staged()));
    const auto entry = device::ready_entry::make(device::window_slots_max - 1, 0xffff, device::waits_max);
    CHECK((entry.slot() == device::window_slots_max - 1 && entry.waits() == device::waits_max && entry.number() == 0xffff));
    for (const report_kind kind :
         {report_kind::completed, report_kind::failed, report_kind::cancelled, report_kind::skipped, report_kind::declined}) {
        const auto r = device::report::make(kind, device::window_slots_max - 1);
        CHECK((r.slot() == device::window_slots_max - 1 && r.kind() == kind));
    }
    device::finished_count count{0xffffffff};
    CHECK(count.reached(0xffffffff));
    CHECK_FALSE(count.reached(0));
    count.raw += device::finished_count::failed_block;
    CHECK((count.blocks() == 0 && count.has_failures() && count.reached(0xffffffff) && count.reached(0)));
}

TEST_CASE("a park does not wait for staged mails: their workers leave, and take them up again", "[device][staging]")
{
    for (const u32 sent : {0u, 0x07fffffeu, 0xfffffffeu}) {
        INFO("mails sent before " << sent);
        staging_test t(2);
        for (u32 w = 0; w < 2; ++w) mails_so_far(t.engine, w, sent);
        t.launch();
        t.put(0);
        t.put_behind(1, {0});
        t.put_behind(2, {1});
        t.settle();
        t.put(3);
        t.settle(); // worker 0: 0 and 2; worker 1: 1 and 3
        const mail first = t.take(0, 0, 0), second = t.take(1, 1, 1);
        t.stop(device::stop_level::park);
        t.scheduler->stop_dispatch();
        CHECK(t.ports[1].await(t.engine.team, second) == verdict::leave);
        CHECK((t.engine.m.done[1].raw & done_word::paused_bit) != 0);
        t.settle();
        CHECK_FALSE(t.scheduler->workers_idle(t.engine.team)); // a body runs
        t.answer(0, first);
        const mail third = t.take(0, 2, 1);
        CHECK_FALSE(t.scheduler->workers_idle(t.engine.team)); // its answer was not taken
        CHECK(t.ports[0].await(t.engine.team, third) == verdict::leave);
        t.settle();
        CHECK(t.scheduler->workers_idle(t.engine.team));
        CHECK(t.take_retired() == 1);
        t.linker->save(t.engine.team);
        t.scheduler->dismiss_workers(t.engine.team);
        const auto mailed = [&](u32 w, u32 number) { return t.engine.s.mailed[w * P::mailbox_depth + number % P::mailbox_depth]; };
        CHECK((t.engine.s.sent[0] == sent + 2 && t.engine.s.seen[0] == sent + 1 && mailed(0, sent + 2) == 2));
        CHECK((t.engine.s.sent[1] == sent + 2 && t.engine.s.seen[1] == sent && mailed(1, sent + 1) == 1
               && mailed(1, sent + 2) == 3));
        for (u32 w = 0; w < 2; ++w) CHECK(t.engine.m.done[w].raw == done_word::make(t.engine.s.seen[w], 0, 0));
        for (u32 w = 0; w < 2; ++w) t.ports[w].save();
        // The next launch. The linker may have had nothing to do in between.
        t.stop(device::stop_level::none);
        t.launch();
        t.settle();
        const mail again = t.take(1, 1, 1);
        CHECK(again.tag == second.tag);
        CHECK(t.ports[0].await(t.engine.team, t.take(0, 2, 1)) == verdict::leave);
        REQUIRE(t.ports[1].await(t.engine.team, again) == verdict::run);
        t.answer(1, again);
        t.settle();
        t.run(0, 2, 1);
        t.run(1, 3);
        CHECK(t.take_retired() == 3);
        CHECK(t.positions.size() == 4);
        t.put(4);
        t.settle();
        t.run(0, 4);
        CHECK(t.take_retired() == 1);
        t.check_empty();
    }
}

TEST_CASE("a park with one worker that waits and one that is idle: one leaves by itself, the other is told", "[device][staging]")
{
    staging_test t(3);
    t.put(0);
    t.put_behind(1, {0});
    t.settle();
    const mail first = t.take(0, 0, 0), second = t.take(1, 1, 1);
    t.stop(device::stop_level::park);
    t.scheduler->stop_dispatch();
    CHECK(t.ports[1].await(t.engine.team, second) == verdict::leave);
    t.answer(0, first);
    t.settle();
    REQUIRE(t.scheduler->workers_idle(t.engine.team));
    t.linker->save(t.engine.team);
    t.scheduler->dismiss_workers(t.engine.team);
    for (const u32 w : {0u, 2u}) {
        const mail leaving = t.ports[w].wait();
        REQUIRE((leaving.leaves() && leaving.tag != 0));
        t.ports[w].leave(leaving);
    }
    t.stop(device::stop_level::none);
    t.launch();
    t.settle();
    CHECK_FALSE(t.scheduler->workers_idle(t.engine.team));
    t.run(1, 1, 1);
    CHECK(t.scheduler->workers_idle(t.engine.team));
    CHECK(t.take_retired() == 2);
    t.check_empty();
}

namespace {

/// Takes, runs and answers a mail that must follow the one before on its worker, and wait for `others` elsewhere.
void run_behind(staging_test& t, u32 worker, u32 slot, u32 others = 0)
{
    const mail letter = t.take(worker, slot, others);
    CHECK(letter.follows());
    REQUIRE(t.ports[worker].await(t.engine.team, letter) == verdict::run);
    t.answer(worker, letter);
}

} // namespace

TEST_CASE("a chain goes to one worker as far as its mailbox has room, and on to the next one", "[device][staging][chaining]")
{
    constexpr u32 depth = P::mailbox_depth;
    staging_test t(64, 64, true);
    t.put(0);
    for (u32 slot = 1; slot < 2 * depth + 1; ++slot) t.put_behind(slot, {slot - 1});
    t.settle();
    const mail first = t.take(0, 0, 0);
    CHECK_FALSE(first.follows());
    t.answer(0, first);
    for (u32 slot = 1; slot < depth; ++slot) run_behind(t, 0, slot);
    const mail next = t.take(1, depth, 1); // waits for the last one on worker 0
    CHECK_FALSE(next.follows());
    REQUIRE(t.ports[1].await(t.engine.team, next) == verdict::run);
    t.answer(1, next);
    for (u32 slot = depth + 1; slot < 2 * depth; ++slot) run_behind(t, 1, slot);
    t.settle(); // takes all answers of a worker at once
    CHECK(t.take_retired() == 2 * depth);
    t.run(2, 2 * depth, 1);
    CHECK(t.take_retired() == 1);
    t.check_empty();
}

TEST_CASE("a chain fills mailboxes that are not empty, and never more than there is room", "[device][staging][chaining]")
{
    constexpr u32 depth = P::mailbox_depth, workers = 40;
    staging_test t(workers, 128, true);
    for (u32 slot = 0; slot < workers; ++slot) t.put(slot);
    t.settle();
    // As many as may be staged beside these: behind the first, behind the second, and two thirds of a mailbox behind the third.
    for (u32 slot = workers; slot < 2 * workers; ++slot) t.put_behind(slot, {slot == workers ? 0 : slot - 1});
    t.settle();
    const auto due = [&](u32 w) { return t.engine.s.sent[w] - t.engine.s.seen[w]; };
    CHECK((due(0) == depth && due(1) == depth && due(2) == 1 + workers - 2 * (depth - 1) && due(3) == 1));
    for (u32 w = 0; w < workers; ++w) t.answer(w, t.take(w, w, 0));
    for (u32 i = 0; i < workers; ++i) {
        const u32 w = i / (depth - 1), slot = workers + i;
        if (i % (depth - 1) != 0 || i == 0) {
            run_behind(t, w, slot);
            continue;
        }
        const mail letter = t.take(w, slot, 1); // waits for the one before it, on another worker
        CHECK_FALSE(letter.follows());
        REQUIRE(t.ports[w].await(t.engine.team, letter) == verdict::run);
        t.answer(w, letter);
    }
    t.settle();
    CHECK(t.take_retired() == 2 * workers);
    t.check_empty();
}

TEST_CASE("tasks that wait for one each, and not for the one before them, are no chain", "[device][staging][chaining]")
{
    constexpr u32 row = 6;
    staging_test t(16, 64, true);
    for (u32 slot = 0; slot < row; ++slot) t.put(slot);
    t.settle();
    for (u32 slot = row; slot < 2 * row; ++slot) t.put_behind(slot, {slot - row});
    t.settle();
    for (u32 w = 0; w < row; ++w) t.answer(w, t.take(w, w, 0));
    for (u32 w = 0; w < row; ++w) run_behind(t, w, row + w);
    t.settle();
    CHECK(t.take_retired() == 2 * row);
    t.check_empty();
}

TEST_CASE("a parcel is cut where a mailbox ends, but not within a diamond: each task waits for all that it must",
          "[device][staging][chaining]")
{
    const u32 offset = GENERATE(1u, 2u, 3u, 4u); // tasks of a plain chain before the first diamond: where the cuts fall
    INFO("offset " << offset);
    constexpr u32 count = 60; // more than three mailboxes
    staging_test t(64, 64, true);
    std::vector<std::vector<u32>> before(count);
    const auto place_of = [&](u32 slot) { return slot < offset ? 0 : (slot - offset) % 4; }; // producer, two readers, joiner
    for (u32 slot = 1; slot < count; ++slot) {
        const u32 place = place_of(slot);
        before[slot] = place == 2 ? std::vector{slot - 2} : place == 3 ? std::vector{slot - 2, slot - 1} : std::vector{slot - 1};
    }
    t.put(0);
    for (u32 slot = 1; slot < count; ++slot) t.put_behind(slot, before[slot]);
    t.settle();
    std::set<u32> ran, followed;
    std::vector<mail> letters;
    for (auto& port : t.ports) letters.push_back(port.wait());
    for (u32 done = 0, turn = 0; done < count; ++turn) {
        REQUIRE(turn < count * t.ports.size());
        const u32 w = turn % t.ports.size();
        if (w == 0) t.settle();
        mail& letter = letters[w];
        if (letter.leaves()) letter = t.ports[w].wait();
        if (letter.leaves() || t.ports[w].await(t.engine.team, letter) != verdict::run) continue;
        INFO("slot " << letter.slot() << " on worker " << w);
        for (const u32 b : before[letter.slot()]) REQUIRE(ran.count(b) == 1);
        REQUIRE(ran.insert(letter.slot()).second);
        if (letter.follows()) followed.insert(letter.slot());
        t.answer(w, letter);
        letter = t.ports[w].wait();
        ++done;
    }
    CHECK(followed.size() >= count - count / P::mailbox_depth - 3); // all but who begins on a worker
    for (u32 slot = 0; slot < count; ++slot) {
        INFO("slot " << slot);
        CHECK((followed.count(slot) == 1 || place_of(slot) == 0));
    }
    t.settle();
    CHECK(t.take_retired() == count);
    t.check_empty();
}

TEST_CASE("of several that wait for a task one comes behind it, and none that waits for another worker's, too",
          "[device][staging][chaining]")
{
    staging_test t(8, 32, true);
    t.type = 1; // no promise to be brief
    t.put(0);
    t.put(1);
    t.settle(); // workers 0 and 1
    for (u32 slot = 2; slot < 5; ++slot) t.put_behind(slot, {0});
    t.put_behind(5, {0, 1});
    t.settle();
    t.answer(0, t.take(0, 0, 0));
    run_behind(t, 0, 2);
    t.run(2, 3, 1);
    t.run(3, 4, 1);
    const mail both = t.take(4, 5, 2);
    CHECK_FALSE(both.follows());
    t.answer(1, t.take(1, 1, 0));
    REQUIRE(t.ports[4].await(t.engine.team, both) == verdict::run);
    t.answer(4, both);
    t.settle();
    CHECK(t.take_retired() == 6);
    t.check_empty();
}

TEST_CASE("a task is mailed to an idle worker though one that is ready after it would come behind that one's last mail",
          "[device][staging][chaining]")
{
    staging_test t(1, 32, true);
    t.put(0);
    t.settle();
    t.put(1); // the worker's second mail
    t.settle();
    t.put(2); // waits for an idle worker
    t.settle();
    t.put_behind(3, {1}); // staged, behind the last mail
    t.settle();
    CHECK(t.staged(3));
    t.run(0, 0);
    t.run(0, 1);
    t.run(0, 2); // nobody else will ever answer
    const mail last = t.ports[0].wait();
    REQUIRE((!last.leaves() && last.slot() == 3));
    t.answer(0, last);
    t.settle();
    t.check_empty();
}

TEST_CASE("two brief tasks that wait for one come behind it, one behind the other, and whoever waits for both behind them",
          "[device][staging][chaining]")
{
    const bool one_by_one = GENERATE(false, true); // or of one parcel
    const u32 rounds = 4;
    INFO("one by one: " << one_by_one);
    staging_test t(32, 32, true);
    const auto look = [&] { if (one_by_one) t.settle(); };
    t.put(0);
    t.settle();
    u32 slot = 0;
    for (u32 round = 0; round < rounds; ++round) {
        if (round != 0) {
            t.put_behind(slot, {slot - 1});
            look();
        }
        t.put_behind(slot + 1, {slot});
        look();
        t.put_behind(slot + 2, {slot});
        look();
        t.put_behind(slot + 3, {slot + 1, slot + 2});
        look();
        slot += 4;
    }
    t.settle();
    t.answer(0, t.take(0, 0, 0));
    for (u32 s = 1; s < 4 * rounds; ++s) run_behind(t, 0, s);
    for (u32 w = 1; w < 32; ++w) CHECK_FALSE(t.has_mail(w));
    t.settle();
    CHECK(t.take_retired() == 4 * rounds);
    t.check_empty();
}

TEST_CASE("no third one, none whose types do not promise it, and none behind the first of the two comes behind "
          "a task that two come behind",
          "[device][staging][chaining]")
{
    const bool one_by_one = GENERATE(false, true);
    INFO("one by one: " << one_by_one);
    staging_test t(8, 32, true);
    const auto look = [&] { if (one_by_one) t.settle(); };
    SECTION("a third")
    {
        t.put(0);
        t.settle();
        for (u32 slot = 1; slot < 5; ++slot) {
            t.put_behind(slot, {0});
            look();
        }
        t.settle();
        t.answer(0, t.take(0, 0, 0));
        for (u32 slot = 1; slot < 3; ++slot) run_behind(t, 0, slot);
        t.run(1, 3, 1);
        t.run(2, 4, 1);
        t.settle();
        CHECK(t.take_retired() == 5);
    }
    SECTION("the first, or the second, of two promises nothing")
    {
        const u32 lasting = GENERATE(1u, 2u);
        INFO("slot " << lasting);
        t.put(0);
        t.settle();
        for (u32 slot = 1; slot < 3; ++slot) {
            t.type = slot == lasting ? 1 : 0;
            t.put_behind(slot, {0});
            look();
        }
        t.settle();
        t.answer(0, t.take(0, 0, 0));
        run_behind(t, 0, 1);
        t.run(1, 2, 1);
        t.settle();
        CHECK(t.take_retired() == 3);
    }
    SECTION("behind the first of the two")
    {
        t.put(0);
        t.settle();
        t.put_behind(1, {0});
        look();
        t.put_behind(2, {0});
        look();
        t.put_behind(3, {1}); // whose mail is not the last one
        look();
        t.put_behind(4, {2});
        t.settle();
        t.answer(0, t.take(0, 0, 0));
        run_behind(t, 0, 1);
        run_behind(t, 0, 2);
        run_behind(t, 0, 4);
        t.run(1, 3, 1);
        t.settle();
        CHECK(t.take_retired() == 5);
    }
    t.check_empty();
}

TEST_CASE("the second of two behind a task is skipped with the first, which it does not wait for, and comes again",
          "[device][staging][chaining][failure]")
{
    staging_test t(4, 32, true);
    t.put(0, 1, {byte(0x1000, access_mode::write)});
    t.settle();
    t.put_behind(1, {0}, 1, {byte(0x2000, access_mode::write)});
    t.put_behind(2, {0}, 1, {byte(0x3000, access_mode::write)});
    t.put_behind(3, {1, 2}, 1, {byte(0x2000, access_mode::read), byte(0x3000, access_mode::read)});
    t.settle();
    t.answer(0, t.take(0, 0, 0));
    const mail first = t.take(0, 1, 0);
    REQUIRE(t.ports[0].await(t.engine.team, first) == verdict::run);
    t.answer(0, first, 5);
    for (u32 slot = 2; slot < 4; ++slot) t.skip(0, t.take(0, slot, 0));
    t.settle();
    CHECK(t.take_retired() == 2);
    u32 at = 0;
    while (at < 4 && !t.has_mail(at)) ++at;
    REQUIRE(at < 4);
    const mail again = t.take(at, 2, 0);
    CHECK_FALSE(again.staged());
    t.answer(at, again);
    t.settle();
    CHECK(t.take_retired() == 2); // it, and the one that is cancelled: it reads what the failed one wrote
    t.check_empty();
}

TEST_CASE("what a worker was mailed before it needs no word of: two buffers in turns stay with it", "[device][staging][chaining]")
{
    staging_test t(8, 32, true);
    t.put(0);
    t.put_behind(1, {0});
    for (u32 slot = 2; slot < 6; ++slot) t.put_behind(slot, {slot - 2, slot - 1});
    t.settle();
    t.answer(0, t.take(0, 0, 0));
    for (u32 slot = 1; slot < 6; ++slot) run_behind(t, 0, slot);
    t.settle();
    CHECK(t.take_retired() == 6);
    t.check_empty();
}

TEST_CASE("a task follows the one that was linked last, whatever slots they have", "[device][staging][chaining]")
{
    staging_test t(4, 32, true);
    t.put(9);
    t.put_behind(3, {9});
    t.put_behind(20, {3, 9});
    t.settle();
    t.answer(0, t.take(0, 9, 0));
    run_behind(t, 0, 3);
    run_behind(t, 0, 20);
    t.settle();
    t.check_empty();
}

TEST_CASE("a slot that came again is not taken for the task that was waited for", "[device][staging][chaining]")
{
    // A ticket task at the head: what is behind it stays in the ready queue while its predecessor completes.
    staging_test t(2, 32, true);
    t.put(0);
    t.settle();
    t.put(9, 5); // tickets: worker 1, and 0 when it is idle
    t.put_behind(1, {0});
    t.settle();
    CHECK(t.staged(1));
    t.answer(0, t.take(0, 0, 0));
    t.settle();
    CHECK(t.take_retired() == 1);
    t.put(0, 1); // the slot comes again, behind slot 1 in the ready queue; with a third all are one parcel
    t.put(20);
    t.stop(device::stop_level::none);
    for (const u32 w : {0u, 1u}) {
        const mail tickets = t.take(w, 9, 0);
        while (t.ports[w].draw(t.ports[w].record(tickets), 5, 1) < 5) {}
        t.answer(w, tickets);
    }
    let_waits_end(t.engine);
    t.settle();
    std::set<u32> slots;
    for (u32 w = 0; w < 2; ++w) {
        const mail letter = t.ports[w].wait();
        REQUIRE_FALSE(letter.leaves());
        CHECK_FALSE(letter.follows());
        if (letter.staged()) REQUIRE(t.ports[w].await(t.engine.team, letter) == verdict::run); // its predecessor's count has come
        slots.insert(letter.slot());
        t.answer(w, letter);
    }
    CHECK(slots == std::set<u32>{0, 1});
    t.settle();
    t.run(0, 20);
    CHECK(t.take_retired() == 4);
    t.check_empty();
}

TEST_CASE("behind a failure a whole chain is skipped, comes again and is settled; the worker goes on",
          "[device][staging][chaining][failure]")
{
    staging_test t(8, 32, true);
    t.put(0, 1, {byte(0x1000, access_mode::write)});
    for (u32 slot = 1; slot < 5; ++slot)
        t.put_behind(slot, {slot - 1}, 1, {byte(0x2000 + slot, access_mode::write)}); // reads nothing of it
    t.settle();
    t.answer(0, t.take(0, 0, 0), 7);
    for (u32 slot = 1; slot < 5; ++slot) t.skip(0, t.take(0, slot, 0));
    CHECK(skips_in(t.engine.m.done[0].raw) == 0b1111);
    t.settle();
    CHECK(t.take_retired() == 1);
    for (u32 slot = 1; slot < 5; ++slot) { // one after the other: nothing is staged while there is poison
        const mail letter = t.take(0, slot, 0);
        CHECK_FALSE(letter.staged());
        t.answer(0, letter);
        t.settle();
    }
    CHECK(t.take_retired() == 4);
    t.check_empty();
}

TEST_CASE("an answer may come with the next one, when nobody else was known to wait", "[device][staging][chaining]")
{
    staging_test t(4, 32, true);
    t.put(0);
    t.put_behind(1, {0});
    t.put_behind(2, {1});
    t.settle();
    const mail first = t.take(0, 0, 0);
    REQUIRE(t.ports[0].plan().answers_later(first.tag));
    const mail second = t.ports[0].after(first);
    CHECK((second.slot() == 1 && second.waits() == 0 && second.follows() && second.joins()));
    REQUIRE(t.ports[0].await(t.engine.team, second) == verdict::run);
    REQUIRE(t.ports[0].plan().answers_later(second.tag));
    t.settle();
    for (u32 slot = 0; slot < 2; ++slot) CHECK(t.finished_of(slot).blocks() == 0);
    CHECK(t.take_retired() == 0);
    const mail third = t.ports[0].after(second);
    CHECK((third.slot() == 2 && third.waits() == 0));
    REQUIRE(t.ports[0].await(t.engine.team, third) == verdict::run);
    CHECK_FALSE(t.ports[0].plan().answers_later(third.tag)); // there is no next one
    t.answer(0, third);
    for (u32 slot = 0; slot < 3; ++slot) CHECK(t.finished_of(slot).blocks() == 1);
    t.settle();
    CHECK(t.take_retired() == 3);
    t.check_empty();
}

TEST_CASE("an answer that two wait for may come with theirs where both come behind it, and of three not",
          "[device][staging][chaining]")
{
    const u32 waiting = GENERATE(2u, 3u);
    INFO(waiting << " wait");
    staging_test t(4, 32, true);
    t.put(0);
    for (u32 slot = 1; slot <= waiting; ++slot) t.put_behind(slot, {0});
    t.settle();
    const u32 at = t.has_mail(0) ? 0 : 1;
    mail letter = t.take(at, 0, 0);
    CHECK(t.ports[at].plan().goes_on(letter.tag));
    CHECK(t.ports[at].plan().answers_later(letter.tag) == (waiting == 2));
    for (u32 slot = 1; slot < 3; ++slot) { // whoever waits for the first one waits no longer for it than for the second
        if (!t.ports[at].plan().answers_later(letter.tag)) t.answer(at, letter);
        letter = t.ports[at].after(letter);
        REQUIRE((letter.slot() == slot && letter.only_follows()));
        CHECK(letter.joins() == (waiting == 2 || slot == 2));
        REQUIRE(t.ports[at].await(t.engine.team, letter) == verdict::run);
    }
    t.answer(at, letter);
    for (u32 slot = 0; slot < 3; ++slot) CHECK(t.finished_of(slot).blocks() == 1);
    if (waiting == 3) t.run(1 - at, 3, 1);
    t.settle();
    CHECK(t.take_retired() == 1 + waiting);
    t.check_empty();
}

TEST_CASE("whoever copies what mails name is told of each mail once, when it is in the inbox and not yet planned",
          "[device][staging][chaining]")
{
    const u32 before = GENERATE(0u, P::mailbox_depth - 2, 0xfffffffdu);
    staging_test t(8, 32, true);
    mails_so_far(t.engine, 0, before);
    t.launch();
    t.put(0);
    t.settle();
    device::worker_port<P>& port = t.ports[0];
    std::vector<u32> told;
    const auto came = [&](u32 first, u32 count) {
        CHECK_FALSE(port.plan().goes_on(first - 1));
        for (u32 i = 0; i < count; ++i) told.push_back(device::tag_of(first + i));
    };
    const mail letter = port.wait(t.engine.team, came);
    REQUIRE(letter.slot() == 0);
    CHECK(told == std::vector<u32>{letter.tag});
    CHECK(port.wait(t.engine.team, came).tag == letter.tag); // it is still there
    CHECK_FALSE(port.read_more(t.engine.team, came));
    CHECK(told.size() == 1);
    t.put_behind(1, {0});
    t.put_behind(2, {1});
    t.settle();
    CHECK(port.read_more(t.engine.team, came));
    CHECK(told == std::vector<u32>{letter.tag, device::tag_of(letter.tag + 1), device::tag_of(letter.tag + 2)});
    CHECK(port.plan().goes_on(letter.tag));
    t.answer(0, letter);
    for (u32 slot = 1; slot < 3; ++slot) run_behind(t, 0, slot);
    t.settle();
    CHECK(t.take_retired() == 3);
    t.check_empty();
}

TEST_CASE("the answers of a whole mailbox wait for its last mail", "[device][staging][chaining]")
{
    constexpr u32 depth = P::mailbox_depth;
    const u32 before = GENERATE(0u, 5u, depth - 2, depth - 1, 0x1ffeu, 0xfffffff8u); // mails: where the first one lies
    INFO("mails before: " << before);
    staging_test t(64, 64, true);
    mails_so_far(t.engine, 0, before);
    t.launch();
    t.put(0);
    for (u32 slot = 1; slot < depth; ++slot) t.put_behind(slot, {slot - 1});
    t.settle();
    mail letter = t.take(0, 0, 0);
    for (u32 waiting = 0; waiting + 1 < depth; ++waiting) {
        REQUIRE(t.ports[0].plan().answers_later(letter.tag));
        CHECK(device::lowest_bit(~t.ports[0].plan().at_once_from(letter.tag)) == depth - 1 - waiting); // so many are left
        letter = t.ports[0].after(letter);
    }
    CHECK_FALSE(t.ports[0].plan().answers_later(letter.tag));
    for (u32 slot = 0; slot < depth; ++slot) CHECK(t.finished_of(slot).blocks() == 0);
    t.answer(0, letter);
    for (u32 slot = 0; slot < depth; ++slot) CHECK(t.finished_of(slot).blocks() == 1);
    t.settle();
    CHECK(t.take_retired() == depth);
    t.check_empty();
}

TEST_CASE("an answer does not come with the next one unless both types promise to be brief", "[device][staging][chaining]")
{
    // Types 0 and 2 do, 1 does not; whether it is the same type makes no difference. What is logged is logged one by one.
    const bool logs = GENERATE(false, true);
    for (const auto& [before, behind] : {std::pair{0u, 0u}, {0u, 2u}, {2u, 0u}, {0u, 1u}, {1u, 0u}, {1u, 1u}}) {
        const bool brief = before != 1 && behind != 1;
        INFO(before << " before " << behind << (logs ? ", logged" : ""));
        staging_test t(1, 32, true);
        if (logs) t.engine.m.n.log_capacity = 4;
        t.type = before;
        t.put(0);
        t.type = behind;
        t.put_behind(1, {0});
        t.settle();
        const mail first = t.take(0, 0, 0);
        CHECK(t.ports[0].plan().looks(first.tag));
        CHECK(t.ports[0].plan().goes_on(first.tag));
        CHECK(t.ports[0].plan().at_once_from(first.tag) % 2 == (brief && !logs));
        CHECK(t.ports[0].plan().answers_later(first.tag) == brief);
        t.answer(0, first);
        t.answer(0, t.take(0, 1, 0));
        t.settle();
        CHECK(t.take_retired() == 2);
        t.check_empty();
    }
}

TEST_CASE("a park comes between two of a chain, and the next launch goes on with it", "[device][staging][chaining]")
{
    staging_test t(2, 32, true);
    t.put(0);
    for (u32 slot = 1; slot < 4; ++slot) t.put_behind(slot, {slot - 1});
    t.settle();
    const mail first = t.take(0, 0, 0);
    t.stop(device::stop_level::park);
    t.scheduler->stop_dispatch();
    t.answer(0, first);
    CHECK(t.ports[0].await(t.engine.team, t.take(0, 1, 0)) == verdict::leave);
    CHECK((t.engine.m.done[0].raw & done_word::paused_bit) != 0);
    t.settle();
    CHECK(t.scheduler->workers_idle(t.engine.team));
    t.linker->save(t.engine.team);
    t.scheduler->dismiss_workers(t.engine.team);
    t.ports[0].save();
    CHECK(t.ports[1].wait().leaves());
    t.ports[1].leave(t.ports[1].wait());
    t.stop(device::stop_level::none);
    t.launch();
    t.settle();
    for (u32 slot = 1; slot < 4; ++slot) run_behind(t, 0, slot);
    t.settle();
    CHECK(t.take_retired() == 4);
    t.check_empty();
}

TEST_CASE("a task is handed over once, though its slot and number stand twice in the list of those that wait", "[device][staging]")
{
    // The linker alone, so that each task is complete when the test says so.
    std::vector<abi::task_type> types(1);
    types[0].brief = 1;
    hand_made_engine e({.window = 64, .workers = 4, .staging = true}, types);
    device::linker<P> linker(e.m, e.s);
    device::queue_producer<P, u32, device::edge::R10_admitted, device::edge::A10_linked> admitted(e.s.admitted_queue());
    device::queue_producer<P, device::report, device::edge::R13_report, device::edge::A13_report> reports(e.s.report_queue());
    device::queue_consumer<P, device::ready_entry, device::edge::A14_ready, device::edge::R14_taken> ready(e.s.ready_queue());
    const auto step = [&] { while (linker.step(e.team)) {} };
    u64 position = 0;
    const auto link = [&](u32 slot, int behind, u32 blocks = 1) {
        e.fill_slot(slot, position++, {}, 0, blocks);
        e.set_predecessors(admitted.position(), behind >= 0 ? std::vector{static_cast<u32>(behind)} : std::vector<u32>{});
        admitted.push(e.team, slot | (behind < 0 ? device::admitted_free : 0));
        step();
    };
    std::vector<u32> handed; // slots
    const auto take = [&] {
        handed.clear();
        while (ready.available(e.team)) handed.push_back(ready.pop().slot());
        ready.release(e.team);
    };
    const auto complete = [&](u32 slot) {
        take();
        reports.push(e.team, device::report::make(device::report_kind::completed, slot));
        step();
    };
    link(0, -1, 100); // draws tickets, for long: number 1
    link(1, 0);       // cannot be staged, and nothing behind it is looked for: 2
    link(2, -1);      // 3
    link(3, 2);       // 4
    complete(2);
    complete(3);
    for (u32 k = 5; k < (1u << 16) + 3; ++k) {
        link(4 + k % 8, -1);
        complete(4 + k % 8);
    }
    link(5, -1); // 2^16 + 3
    link(3, 5);  // 2^16 + 4: the same number
    complete(0);
    take();
    CHECK(std::count(handed.begin(), handed.end(), 3u) == 1);
    CHECK(P::get(e.s.targets[3]) == 2);
}
