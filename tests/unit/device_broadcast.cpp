// Broadcasts on an engine made by hand: blocks round about, books, late workers, parks, failures, numbers that wrap; and beside
// them what ingest mails to worker 0.
#include "staging_test.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::awaited;
using device::done_word;
using device::edge;
using device::tag_of;

namespace {

/// With broadcasts. Workers 0 to 3.
struct broadcast_test : staging_test {
    explicit broadcast_test(u32 workers = 4, u32 sent = 0, u32 broadcasts = 0) : staging_test(workers, 32, true, 2)
    {
        for (u32 w = 0; w < workers; ++w) {
            mails_so_far(engine, w, sent);
            P::set(engine.m.mailboxes[w].heard, broadcasts);
        }
        engine.s.broadcast->number = broadcasts;
        launch();
    }
    u32 sent_to_all() const { return engine.s.broadcast->number; }
    u32 out() const { return engine.s.broadcast->unbooked; }
    /// Takes the broadcast that comes next on a worker: its block there, or none.
    mail take_broadcast(u32 worker, u32 slot, u32 waits = 0)
    {
        const mail letter = take(worker, slot, waits);
        REQUIRE(letter.broadcast());
        return letter;
    }
    /// block < 0: the worker has none, and sees nothing of it.
    void run_broadcast(u32 worker, u32 slot, u32 waits, int block)
    {
        if (block < 0) return;
        const mail letter = take_broadcast(worker, slot, waits);
        INFO("worker " << worker << ", slot " << slot);
        REQUIRE_FALSE(letter.idle());
        REQUIRE(letter.block() == static_cast<u32>(block));
        if (waits != 0) REQUIRE(ports[worker].await(engine.team, letter) == verdict::run);
        answer(worker, letter);
    }
    /// As ingest does: to worker 0, counted on from the last number it may know.
    u32 bypass(u32 slot)
    {
        const u32 number = P::get(*engine.s.first_sent) + 1;
        engine.fill_slot(slot, next_position++, {}, 0, 1);
        P::set(engine.s.outstanding[slot], 2u);
        const mail letter{slot, mail::bypass_bit, 77, tag_of(number)};
        P::store(edge::R21_bypass_mail, engine.m.mailboxes[0].mail[number % P::mailbox_depth], letter.encode(), order::relaxed,
                 scope::device);
        P::set(engine.s.bypass_slots[number % P::mailbox_depth], slot);
        P::store(edge::R23_bypassed, *engine.s.bypass_number, number, order::release, scope::block);
        return number;
    }
    /// It comes to its turn.
    void come(u32 slot)
    {
        put(slot);
        device::task_head head = P::get(engine.s.heads[slot]);
        head.entries_and_flags |= device::task_head::bypass_bit;
        P::set(engine.s.heads[slot], head);
        P::set(engine.s.outstanding[slot], 2u);
    }
    /// Answers whatever comes, until nothing does; but for workers before `first`. Returns the number of mails.
    u32 run_all(u32 first = 0)
    {
        u32 all = 0;
        for (bool more = true; more;) {
            settle();
            more = false;
            for (u32 w = first; w < ports.size(); ++w) {
                const mail letter = ports[w].wait();
                if (letter.leaves()) continue;
                more = true;
                const verdict found = letter.staged() ? ports[w].await(engine.team, letter) : verdict::run;
                if (found == verdict::leave) continue; // another one first
                if (found == verdict::skip) ports[w].skip();
                answer(w, letter);
                ++all;
            }
        }
        return all;
    }
};

} // namespace

TEST_CASE("a task of several brief blocks is mailed to all workers at once, its blocks counted on round about",
          "[device][broadcast]")
{
    for (const u32 begin : {0u, 0x07fffffdu, 0xfffffffdu}) {
        INFO("mails and broadcasts sent before " << begin);
        broadcast_test t(4, begin, begin);
        t.put(0, 3);
        t.put_behind(1, {0}, 4);
        t.put_behind(2, {1}, 2);
        t.settle();
        CHECK((t.out() == 3 && t.sent_to_all() == begin + 3));
        const int blocks[3][4] = {{0, 1, 2, -1}, {1, 2, 3, 0}, {1, -1, -1, 0}};
        for (u32 slot = 0; slot < 3; ++slot) {
            for (u32 w = 0; w < 4; ++w) t.run_broadcast(w, slot, slot == 0 ? 0 : 1, blocks[slot][w]);
            t.settle();
            CHECK(t.take_retired() == 1);
        }
        t.check_empty();
        CHECK(P::get(*t.engine.s.first_sent) == begin + 3);
        // What one worker gets next is numbered behind them, once all have gone by them.
        t.put(3);
        t.settle();
        CHECK(t.out() == 3);
        for (u32 w = 0; w < 4; ++w) CHECK_FALSE(t.has_mail(w));
        t.settle();
        CHECK(t.out() == 0);
        t.run(0, 3);
        CHECK(t.take_retired() == 1);
        CHECK((t.engine.s.sent[0] == begin + 4 && t.engine.s.sent[3] == begin + 3));
        t.check_empty();
    }
}

TEST_CASE("a worker without a block may be late by more broadcasts than a mailbox has places", "[device][broadcast]")
{
    broadcast_test t;
    // On workers 0 to 2, every second one behind the last: their first worker is set back.
    for (u32 i = 0; i < 42; ++i) {
        t.engine.s.broadcast->first = 0;
        if (i % 2 != 0) t.put_behind(i % 32, {(i - 1) % 32}, 3);
        else t.put(i % 32, 3);
        t.settle();
        for (u32 w = 0; w < 3; ++w) t.run_broadcast(w, i % 32, 0, static_cast<int>(w));
        t.settle();
        CHECK(t.take_retired() == 1);
    }
    // A mail to one of the others waits until it has gone by them all.
    t.put(0);
    t.settle();
    CHECK(t.out() == 42);
    for (u32 w = 0; w < 3; ++w) CHECK_FALSE(t.has_mail(w));
    t.settle();
    CHECK(t.out() == 42);
    CHECK_FALSE(t.has_mail(3));
    CHECK(done_word{t.engine.m.done[3].raw}.count() == 42);
    t.settle();
    CHECK(t.out() == 0);
    t.run(0, 0);
    CHECK(t.take_retired() == 1);
    t.check_empty();
}

TEST_CASE("what comes next is awaited while the mail before it is answered, if what it waits for is known and the worker is alone",
          "[device][broadcast]")
{
    for (const bool lone : {false, true}) {
        broadcast_test t(2);
        t.engine.m.n.lone_workers = lone;
        t.put(0, 2);
        for (u32 slot = 1; slot < 4; ++slot) t.put_behind(slot, {slot - 1}, 2);
        t.stop(device::stop_level::none);
        CHECK(t.ports[0].has_come() == awaited::not_yet);
        t.settle();
        CHECK(t.ports[0].has_come() == awaited::more);
        REQUIRE(t.ports[0].read_more(t.engine.team, [](u32, u32) {}));
        CHECK(t.ports[0].has_come() == awaited::not_yet);
        let_waits_end(t.engine);
        for (u32 slot = 0; slot < 3; ++slot) {
            const mail first = t.take_broadcast(0, slot, slot != 0), second = t.take_broadcast(1, slot, slot != 0);
            CHECK(t.ports[0].awaits_early(first.tag + 1) == lone);
            CHECK_FALSE(t.ports[0].awaits_early(first.tag + (4 - slot))); // not read
            const mail next = t.ports[0].after(first);
            const auto became = [&t, &next] { return t.ports[0].await_aside(t.engine.team, next, 2, true); };
            if (lone) CHECK(became() == awaited::not_yet);
            t.answer(0, first);
            if (lone) CHECK(became() == awaited::not_yet); // the other one has not
            if (slot == 2) t.ports[1].fail(t.ports[1].record(second), 9);
            t.answer(1, second);
            if (lone) CHECK(became() == (slot != 2 ? awaited::runs : awaited::look));
            if (slot == 2) CHECK(t.ports[0].await(t.engine.team, t.take_broadcast(0, 3, 1)) == verdict::skip);
        }
    }
}

TEST_CASE("before completion words could not tell how far behind a worker is, broadcasts are booked", "[device][broadcast]")
{
    broadcast_test t(2);
    u32 most = 0;
    for (u32 i = 0; i < 5000; ++i) {
        t.put(i % 32, 2);
        t.settle();
        most = std::max(most, t.out());
        for (u32 w = 0; w < 2; ++w) t.answer(w, t.take_broadcast(w, i % 32));
        t.settle();
    }
    CHECK(t.take_retired() == 5000);
    CHECK(most == 2048);
    t.check_empty();
}

TEST_CASE("broadcasts that are out become mails like others before a worker gets one of its own", "[device][broadcast]")
{
    broadcast_test t;
    t.put(0, 4);
    t.put_behind(1, {0}, 2);
    t.settle();
    CHECK(t.out() == 2);
    t.put_behind(2, {1});
    t.settle();
    CHECK((t.sent_to_all() == 2 && t.out() == 0));
    for (u32 w = 0; w < 4; ++w) CHECK(t.engine.s.sent[w] - t.engine.s.seen[w] == 2);
    for (u32 w = 0; w < 4; ++w) t.run_broadcast(w, 0, 0, static_cast<int>(w));
    t.settle();
    CHECK(t.take_retired() == 1);
    for (u32 w = 0; w < 2; ++w) t.run_broadcast(w, 1, 1, static_cast<int>(w));
    t.settle(); // workers 2 and 3 have not gone by it
    CHECK(t.take_retired() == 1);
    CHECK(P::get(*t.engine.s.first_sent) == t.engine.s.sent[0]);
    CHECK(t.run_all() == 1);
    CHECK(t.take_retired() == 1);
    t.check_empty();
}

TEST_CASE("while other mails are out tasks of several blocks are mailed to their workers, but of a row of them the fourth waits",
          "[device][broadcast]")
{
    broadcast_test t;
    t.put(0);
    for (u32 i = 1; i <= 5; ++i) t.put_behind(i, {i - 1}, 2);
    t.settle();
    CHECK(t.sent_to_all() == 0);
    CHECK(t.engine.s.sent[0] + t.engine.s.sent[1] + t.engine.s.sent[2] + t.engine.s.sent[3] == 7);
    t.run(0, 0);
    CHECK(t.sent_to_all() == 0);
    CHECK(t.run_all() == 3 * 2 + 2 * 2);
    CHECK(t.sent_to_all() == 2);
    CHECK(t.take_retired() == 6);
    // Not where they come singly.
    for (u32 i = 0; i < 12; i += 2) {
        t.put(6 + i);
        t.settle();
        t.put_behind(7 + i, {6 + i}, 2);
        t.settle();
        CHECK(t.run_all() == 3);
    }
    CHECK(t.take_retired() == 12);
    CHECK(t.sent_to_all() == 2);
    t.check_empty();
}

TEST_CASE("tasks that are not brief, of more blocks than there are workers, or behind a failure do not go to all",
          "[device][broadcast]")
{
    {
        broadcast_test t;
        t.type = 1;
        t.put(0, 2);
        t.settle();
        t.type = 0;
        t.put(1, 5);
        t.settle();
        CHECK(t.sent_to_all() == 0);
    }
    {
        broadcast_test t;
        t.engine.m.n.broadcast_copies = 0;
        t.put(0, 2);
        t.settle();
        CHECK(t.sent_to_all() == 0);
    }
    broadcast_test t;
    t.put(0, 2);
    t.put_behind(1, {0}, 2);
    t.settle();
    CHECK(t.out() == 2);
    const mail fails = t.take_broadcast(0, 0);
    t.answer(0, fails, 7);
    t.settle();
    t.settle();
    CHECK(t.out() == 0); // its answers are looked for
    t.answer(1, t.take_broadcast(1, 0));
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK(t.tainted(0));
    for (u32 w = 2; w < 4; ++w) t.skip(w, t.take_broadcast(w, 1, 1));
    CHECK(t.run_all() == 2);
    CHECK(t.take_retired() == 1);
    t.put(2, 2);
    CHECK(t.run_all() == 2);
    CHECK(t.take_retired() == 1);
    CHECK(t.sent_to_all() == 2);
}

TEST_CASE("a park leaves broadcasts with their workers, who take them up again", "[device][broadcast]")
{
    for (const u32 sent : {0u, 0xfffffffeu}) {
        INFO("mails and broadcasts sent before " << sent);
        broadcast_test t(3, sent, sent);
        t.put(0, 3);
        t.put_behind(1, {0}, 2);
        t.put_behind(2, {1}, 3);
        t.settle();
        for (u32 w = 0; w < 2; ++w) t.run_broadcast(w, 0, 0, static_cast<int>(w));
        const mail running = t.take_broadcast(2, 0);
        std::vector<mail> waiting;
        for (u32 w = 0; w < 2; ++w) waiting.push_back(t.take_broadcast(w, 1, 1));
        t.stop(device::stop_level::park);
        t.scheduler->stop_dispatch();
        CHECK_FALSE(t.scheduler->workers_idle(t.engine.team));
        t.settle();
        CHECK(t.out() == 0);
        for (u32 w = 0; w < 2; ++w) CHECK(t.ports[w].await(t.engine.team, waiting[w]) == verdict::leave);
        CHECK_FALSE(t.scheduler->workers_idle(t.engine.team));
        t.answer(2, running);
        t.settle();
        CHECK(t.take_retired() == 1);
        CHECK_FALSE(t.scheduler->workers_idle(t.engine.team));
        CHECK(t.ports[2].await(t.engine.team, t.take_broadcast(2, 2, 1)) == verdict::leave); // it has gone by the one before
        for (u32 w = 0; w < 3; ++w) t.ports[w].save();
        t.settle();
        CHECK(t.scheduler->workers_idle(t.engine.team));
        t.scheduler->dismiss_workers(t.engine.team);
        t.linker->save(t.engine.team);
        t.stop(device::stop_level::none);
        t.launch();
        for (u32 w = 0; w < 2; ++w) t.run_broadcast(w, 1, 1, static_cast<int>(w));
        t.settle();
        CHECK(t.take_retired() == 1);
        const int last[3] = {1, 2, 0};
        for (u32 w = 0; w < 3; ++w) t.run_broadcast(w, 2, 1, last[w]);
        t.settle();
        CHECK(t.take_retired() == 1);
        t.put(3, 2);
        t.settle();
        CHECK(t.out() == 1);
        CHECK(t.run_all() == 2);
        CHECK(t.take_retired() == 1);
        t.check_empty();
    }
}

TEST_CASE("a park waits until what ingest has mailed is adopted, which waits until broadcasts are booked",
          "[device][broadcast][bypass]")
{
    broadcast_test t;
    P::team team;
    device::scheduler_role<P> role(t.engine.m, t.engine.s);
    const auto ends = [&] { // or nothing happens any more
        for (u32 idle = 0; idle < 8; ++idle) {
            const bool linked = t.linker->step(team);
            const device::round_result r = role.round(team);
            if (r == device::round_result::finished) return true;
            if (linked || r == device::round_result::busy) idle = 0;
        }
        return false;
    };
    t.put(0, 3);
    CHECK_FALSE(ends());
    for (u32 w = 0; w < 3; ++w) t.run_broadcast(w, 0, 0, static_cast<int>(w));
    CHECK_FALSE(t.has_mail(3)); // it passes the mail over
    CHECK_FALSE(ends());
    CHECK(t.take_retired() == 1);
    CHECK(t.out() == 1);
    const u32 number = t.bypass(5);
    P::store(edge::P5_self, *t.engine.s.ingest_phase, static_cast<u32>(device::feed_phase::stopped), order::relaxed, scope::block);
    P::store(edge::P5_self, *t.engine.s.request, static_cast<u32>(device::command::park), order::relaxed, scope::block);
    CHECK_FALSE(ends());
    CHECK(*t.engine.s.bypass_adopted == number);
    const mail letter = t.take(0, 5, 0);
    CHECK(letter.bypassed());
    t.answer(0, letter);
    CHECK(ends());
    const mail leave = t.ports[0].wait();
    CHECK((leave.leaves() && leave.tag == tag_of(number + 1)));
}

TEST_CASE("answers owed of broadcasts that are complete do not hide what ingest has mailed", "[device][broadcast][bypass]")
{
    // More of them than a mailbox has places: of more mails not all that are out could be ingest's.
    const u32 workers = P::mailbox_depth + 8;
    broadcast_test t(workers);
    t.put(0, 2);
    t.put_behind(1, {0}); // booked for it
    t.settle();
    CHECK(t.out() == 0);
    for (u32 w = 0; w < 2; ++w) t.run_broadcast(w, 0, 0, static_cast<int>(w));
    t.settle();
    u32 by = 0;
    while (!t.has_mail(by)) ++by;
    const bool first = by == 0;
    t.answer(by, t.take(by, 1, t.ports[by].wait().waits()));
    t.settle();
    CHECK(t.take_retired() == 2);
    const u32 number = t.bypass(5);
    CHECK(number == 2u + first);
    t.come(5);
    t.put(6);
    t.settle();
    // The next one gets another number, and another place.
    CHECK(*t.engine.s.bypass_adopted == number);
    CHECK(t.take(0, 5, 0).bypassed());
    CHECK(t.run_all() == 2);
    t.settle();
    CHECK(t.take_retired() == 2);
    t.check_empty();
}

TEST_CASE("answers owed of broadcasts that a park left are counted by the next launch, too", "[device][broadcast][bypass]")
{
    broadcast_test t;
    t.put(0, 2);
    t.put_behind(1, {0}, 2);
    t.put_behind(2, {0}, 2);
    t.settle(); // workers 0 and 1, 2 and 3, 0 and 1
    CHECK(t.out() == 3);
    const mail first = t.take_broadcast(0, 0), second = t.take_broadcast(1, 0);
    t.stop(device::stop_level::park);
    for (u32 w = 2; w < 4; ++w) CHECK(t.ports[w].await(t.engine.team, t.take_broadcast(w, 1, 1)) == verdict::leave);
    t.scheduler->stop_dispatch();
    t.answer(0, first);
    CHECK(t.ports[0].await(t.engine.team, t.take_broadcast(0, 2, 1)) == verdict::leave);
    t.answer(1, second);
    t.answer(1, t.take_broadcast(1, 2, 1));
    for (u32 i = 0; i < 4; ++i) {
        t.settle();
        (void)t.scheduler->workers_idle(t.engine.team);
    }
    CHECK(t.scheduler->workers_idle(t.engine.team));
    t.scheduler->dismiss_workers(t.engine.team);
    t.linker->save(t.engine.team);
    t.ports[1].leave(t.ports[1].wait());
    for (const u32 w : {0u, 2u, 3u}) t.ports[w].save();
    t.stop(device::stop_level::none);
    t.launch();
    t.put(3);
    t.settle();
    t.run(1, 3);
    t.run_broadcast(0, 2, 1, 0);
    t.put(4);
    t.settle();
    t.run(0, 4);
    t.run_broadcast(3, 1, 1, 1); // after which it passes over the last one, and is not seen to
    t.settle();
    t.run_broadcast(2, 1, 1, 0);
    t.settle();
    CHECK(t.take_retired() == 5);
    // Ingest counts on from here: whatever worker 0 was sent.
    CHECK(P::get(*t.engine.s.first_sent) == t.engine.s.sent[0]);
}

TEST_CASE("an old mail is not taken for a new one, however far broadcasts carry its worker's numbers", "[device][broadcast]")
{
    const u32 far = (1u << 31) - 1; // broadcasts after the mail: its tag comes again
    const u32 last_renewal = far / device::broadcasts<P>::renew_at * device::broadcasts<P>::renew_at;
    broadcast_test t;
    t.put(0);
    t.settle();
    t.run(0, 0);
    CHECK(t.engine.s.sent[0] == 1);
    const auto go_to = [&t](u32 sent, u32 broadcasts) {
        for (u32 w = 0; w < 4; ++w) {
            mails_so_far(t.engine, w, sent);
            P::set(t.engine.m.mailboxes[w].heard, broadcasts);
        }
        t.engine.s.broadcast->number = broadcasts;
        t.launch();
    };
    go_to(far, last_renewal - 1);
    t.put(1, 4);
    t.settle();
    for (u32 w = 0; w < 4; ++w) t.run_broadcast(w, 1, 0, static_cast<int>((w + 4 - t.engine.s.broadcast_entries[0].first) % 4));
    t.settle();
    CHECK(t.take_retired() == 2);
    go_to(far + 1, last_renewal);
    CHECK_FALSE(t.has_mail(0));
}

TEST_CASE("a row of tasks of several brief blocks waits for nobody who may last", "[device][broadcast]")
{
    broadcast_test t(8);
    t.type = 1;
    t.put(0);
    t.settle();
    t.type = 0;
    t.put(1, 2);
    for (u32 i = 2; i <= 5; ++i) t.put_behind(i, {i - 1}, 2);
    t.settle();
    const mail lasting = t.take(0, 0, 0);
    CHECK(t.run_all(1) == 5 * 2);
    CHECK(t.take_retired() == 5);
    CHECK(t.sent_to_all() == 0);
    t.answer(0, lasting);
    t.settle();
    CHECK(t.take_retired() == 1);
    t.check_empty();
}

TEST_CASE("of a row of broadcasts as many are staged as mailboxes have places, or sixteen behind the first one; twelve are out",
          "[device][broadcast]")
{
    for (const u32 blocks : {4u, 2u}) {
        INFO(blocks << " blocks a task");
        broadcast_test t;
        for (u32 slot = 0; slot < 20; ++slot) slot == 0 ? t.put(0, blocks) : t.put_behind(slot, {slot - 1}, blocks);
        t.settle();
        for (u32 slot = 1; slot < 20; ++slot) CHECK(t.staged(slot) == (slot < (blocks == 4 ? 16 : 17)));
        CHECK(t.out() == 12);
        CHECK(t.run_all() == 20 * blocks);
        CHECK(t.take_retired() == 20);
        t.check_empty();
    }
}
