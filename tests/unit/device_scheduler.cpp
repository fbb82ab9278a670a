// The scheduler beside the linker on an engine made by hand: counters across their 32-bit wrap, queues at their limits, tickets,
// fences, what a park leaves in the queues.
#include "scheduler_test.hpp"
#include "trace_catch.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;
using device::order;
using device::scope;

namespace {

struct waited_too_long {};

} // namespace

TEST_CASE("mails go on arriving when a worker's mail counter passes 2^27, 2^31 and 2^32", "[device][scheduler]")
{
    for (const u32 start : {0x07fffff0u, 0x7ffffff0u, 0xfffffff0u}) {
        INFO("first tag after " << start);
        scheduler_test t({.window = 32, .workers = 1});
        mails_so_far(t.engine, 0, start);
        t.take_retired();
        t.start();
        let_waits_end(t.engine);
        test_port port(t.engine.m, 0, 0);
        for (u32 i = 0; i < 40; ++i) {
            INFO("mail " << i);
            t.put(i % 32);
            t.settle();
            const auto letter = port.wait();
            REQUIRE(letter.slot() == i % 32);
            port.answer(letter);
            t.settle();
            REQUIRE(t.take_retired() == 1);
        }
    }
}

TEST_CASE("a worker is told to leave and comes back across the wrap of its mail counter", "[device][scheduler]")
{
    for (const u32 sent : {0x07ffffffu, 0xffffffffu}) {
        INFO("mails sent before " << sent);
        scheduler_test t({.window = 32, .workers = 1});
        mails_so_far(t.engine, 0, sent);
        t.take_retired();
        t.start();
        {
            test_port port(t.engine.m, 0, 0);
            t.scheduler->dismiss_workers(t.engine.team);
            let_waits_end(t.engine);
            const auto letter = port.wait();
            REQUIRE((letter.leaves() && letter.tag != 0));
            port.leave(letter);
            // Else the next launch would see an answer that is none.
            REQUIRE(device::done_word{t.engine.m.done[0].raw}.answered_since(t.engine.s.sent[0]) == 0);
        }
        t.start();
        test_port port(t.engine.m, 0, 0);
        t.put(3);
        t.settle();
        const auto letter = port.wait();
        REQUIRE(letter.slot() == 3);
        port.answer(letter);
        t.settle();
        CHECK(t.take_retired() == 1);
    }
}

TEST_CASE("the queues between linker and scheduler keep their order and their entries when their counters pass 2^32",
          "[device][scheduler]")
{
    for (const u32 window : {32u, 64u, 96u, 160u, 1024u}) {
        INFO("window " << window);
        scheduler_test t({.window = window, .workers = 1});
        t.take_retired();
        const u32 from = 0xffffffffu - window / 2;
        for (auto* word :
             {t.engine.s.ready_head, t.engine.s.ready_tail, t.engine.s.report_head, t.engine.s.report_tail, t.engine.s.linked})
            word->raw = from;
        t.start();
        let_waits_end(t.engine);
        test_port port(t.engine.m, 0, 0);
        for (u32 slot = 0; slot < window; ++slot) t.put(slot);
        t.settle();
        for (u32 i = 0; i < window; ++i) {
            const auto letter = port.wait();
            REQUIRE(letter.slot() == i);
            port.answer(letter);
            t.settle();
        }
        CHECK(t.take_retired() == window);
        CHECK(t.linker->empty());
    }
}

TEST_CASE("a step never waits for the notifier, which on the host has its turn after the step", "[device][scheduler]")
{
    // Many workers answer at once, again and again; the notifier empties its queue after each step.
    constexpr u32 window = 64;
    scheduler_test t({.window = window, .workers = 64});
    t.take_retired();
    t.start();
    device::notifier<P> notifier(t.engine.m, t.engine.s, ~u64{0} >> 2);
    std::vector<test_port> ports;
    for (u32 w = 0; w < 64; ++w) ports.emplace_back(t.engine.m, w, w);
    let_waits_end(t.engine);
    static u32 looks;
    looks = 0;
    device::host_delay_hook = [](edge e) {
        (void)e;
        if (++looks > 1'000'000) throw waited_too_long{};
    };
    for (u32 slot = 0; slot < window; ++slot) t.put(slot);
    bool waited = false;
    try {
        for (u32 round = 0; round < 40; ++round) {
            t.linker->step(t.engine.team);
            t.linker->step(t.engine.team); // a step links 32
            t.scheduler->step(t.engine.team);
            for (auto& port : ports) {
                const auto letter = port.wait();
                if (!letter.leaves()) port.answer(letter);
            }
            t.scheduler->step(t.engine.team);
            while (notifier.step(t.engine.team)) {}
            while (t.finished.available(t.engine.team)) t.put(t.finished.pop());
            t.finished.release(t.engine.team);
            looks = 0;
        }
    } catch (const waited_too_long&) {
        waited = true;
    }
    device::host_delay_hook = nullptr;
    CHECK_FALSE(waited);
}

TEST_CASE("a task of few blocks is mailed block by block, each once, and retires with the last answer", "[device][scheduler]")
{
    for (const u32 blocks : {1u, 2u, 3u, 5u}) {
        scheduler_test t({.window = 32, .workers = 5});
        t.take_retired();
        t.start();
        t.put(7, blocks);
        t.settle();
        let_waits_end(t.engine);
        std::multiset<u32> seen;
        u32 mails = 0;
        for (u32 w = 0; w < 5; ++w) {
            test_port port(t.engine.m, w, w);
            const auto letter = port.wait();
            if (letter.leaves()) continue;
            REQUIRE((letter.slot() == 7 && !letter.tickets()));
            seen.insert(letter.block());
            t.settle();
            CHECK(t.take_retired() == 0);
            port.answer(letter);
            ++mails;
        }
        CHECK(mails == blocks);
        for (u32 b = 0; b < blocks; ++b) CHECK(seen.count(b) == 1);
        t.settle();
        CHECK(t.take_retired() == 1);
    }
}

TEST_CASE("of many ready tasks a worker is mailed two, of brief ones six, but none as a third behind one that may last",
          "[device][scheduler]")
{
    constexpr u32 brief = 0, lasting = 1;
    struct row {
        std::vector<u32> types; // of the tasks, which wait for nobody
        u32 mails;              // of each of two workers
    };
    std::vector<u32> two_lasting(20, brief), brief_then_lasting(20, lasting);
    two_lasting[0] = two_lasting[1] = lasting;
    std::fill_n(brief_then_lasting.begin(), 4, brief);
    for (const row& r : {row{std::vector<u32>(20, brief), 6}, row{std::vector<u32>(20, lasting), 2}, row{two_lasting, 2},
                         row{brief_then_lasting, 2}}) {
        scheduler_test t({.window = 32, .workers = 2});
        t.start();
        for (u32 slot = 0; slot < r.types.size(); ++slot) {
            t.type = r.types[slot];
            t.put(slot);
        }
        t.settle();
        for (u32 w = 0; w < 2; ++w) CHECK(t.engine.s.sent[w] - t.engine.s.seen[w] == r.mails);
        // All run, each once, in the order of the queue on each worker.
        let_waits_end(t.engine);
        std::vector<test_port> ports;
        for (u32 w = 0; w < 2; ++w) ports.emplace_back(t.engine.m, w, w);
        std::vector<u32> runs(r.types.size(), 0), last(2, 0);
        for (u32 left = static_cast<u32>(r.types.size()); left != 0; t.settle())
            for (u32 w = 0; w < 2; ++w) {
                const auto letter = ports[w].wait();
                if (letter.leaves()) continue;
                ++runs[letter.slot()];
                CHECK(letter.slot() >= last[w]);
                last[w] = letter.slot();
                ports[w].answer(letter);
                --left;
            }
        CHECK(runs == std::vector<u32>(r.types.size(), 1));
        CHECK(t.take_retired() == r.types.size());
    }
}

TEST_CASE("with several parts a task that waits for nobody comes behind none that waits, and one worker is kept for such tasks",
          "[device][scheduler][parts]")
{
    // One runs; more wait for it than are staged; then come some that wait for nobody.
    for (const u32 workers : {1u, 2u, 3u, 8u}) {
        scheduler_test t({.window = 64, .workers = workers, .staging = true, .parts = 2});
        t.start();
        t.put(0);
        t.settle();
        constexpr u32 waiting = 40;
        for (u32 slot = 1; slot <= waiting; ++slot) t.put_behind(slot, {0});
        t.settle();
        const auto due = [&](u32 w) { return t.engine.s.sent[w] - t.engine.s.seen[w]; };
        u32 staged = 0;
        for (u32 w = 0; w < workers; ++w) staged += due(w);
        --staged; // the one that runs
        // So far nobody knows whether they are fast.
        CHECK(staged == std::min(device::staged_places<P>(false) * (workers - 1), workers - workers / 4) - (workers > 1));
        for (u32 slot = waiting + 1; slot <= waiting + 2; ++slot) t.put(slot);
        t.settle();
        for (u32 w = 0; w < workers; ++w) {
            bool waits = false;
            for (u32 i = 0; i < due(w); ++i) {
                const device::mail letter = device::mail::decode(
                    P::load(device::edge::A4_mail, t.engine.m.mailboxes[w].mail[(i + 1) % P::mailbox_depth],
                            device::order::relaxed, device::scope::device));
                CHECK_FALSE((waits && letter.waits() == 0));
                waits |= letter.waits() != 0;
            }
            CHECK_FALSE((waits && w + 1 == workers));
        }
        // At least one of the two is out: nothing that waits is in its way.
        const bool out = P::get(t.engine.s.outstanding[waiting + 1]) == 1 && t.engine.s.runs_on[waiting + 1] != 0;
        CHECK((out || workers == 1));
    }
}

TEST_CASE("with several parts what waits goes round the workers, and who has stood still gets no more than he has missed of late",
          "[device][scheduler][parts]")
{
    // The scheduler alone: what waits is put into its queue. Worker 0 does not come on, and worker 3 gets nothing that waits.
    scheduler_test t({.window = 64, .workers = 4, .staging = true, .parts = 2});
    t.start();
    std::vector<std::unique_ptr<test_port>> ports;
    for (u32 w = 0; w < 3; ++w) ports.push_back(std::make_unique<test_port>(t.engine.m, w, w));
    device::queue_producer<P, device::ready_entry, edge::R14_ready, edge::A14_taken> ready(t.engine.s.ready_queue());
    using all = std::array<u32, 4>;
    u32 next = 0;
    const auto due = [&](u32 w) { return t.engine.s.sent[w] - t.engine.s.seen[w]; };
    const auto settle = [&] {
        while (t.scheduler->step(t.engine.team)) {}
        t.take_retired();
    };
    /// How many of `count` more each worker gets.
    const auto put = [&](u32 count) {
        all given;
        for (u32 w = 0; w < 4; ++w) given[w] = 0 - t.engine.s.sent[w];
        for (u32 i = 0; i < count; ++i, ++next) {
            const u32 slot = next % 64;
            t.engine.fill_slot(slot, next, {});
            P::set(t.engine.s.waits_near[slot * device::waits_near_max], device::awaited_task{63, 1, 0});
            ready.put(t.engine.team, device::ready_entry::make(slot, 0, 1));
        }
        ready.publish(t.engine.team);
        settle();
        for (u32 w = 0; w < 4; ++w) given[w] += t.engine.s.sent[w];
        return given;
    };
    const auto answer = [&](u32 w) {
        ports[w]->answer(ports[w]->wait());
        settle();
    };
    CHECK(put(9) == all{3, 3, 3, 0});
    for (u32 w = 0; w < 3; ++w) CHECK(t.engine.s.waits_sent[w] == t.engine.s.sent[w]); // also of three in one go
    // By dues alone the two who are done with some would get the next ones.
    for (u32 i = 0; i < 2; ++i) {
        answer(1);
        answer(2);
    }
    CHECK(put(1) == all{1, 0, 0, 0});
    CHECK(put(2) == all{0, 1, 1, 0});
    constexpr u32 most = P::mailbox_depth;
    for (u32 i = 5; i < most; ++i) CHECK(put(3) == all{1, 1, 1, 0});
    CHECK(put(5) == all{1, 2, 2, 0}); // worker 0 has room for one more
    CHECK(due(0) == most); // no room
    for (u32 i = 0; i < 10; ++i) {
        answer(1);
        answer(2);
        CHECK(put(2) == all{0, 1, 1, 0});
    }
    // When it is done with all that it had it gets what an idle one gets, and has missed three turns, not ten.
    for (u32 i = 0; i < most; ++i) answer(0);
    for (u32 i = 0; i < 3; ++i) CHECK(put(1) == all{1, 0, 0, 0});
    for (u32 i = 0; i < 2; ++i) {
        CHECK(put(3) == all{1, 1, 1, 0});
        answer(1);
        answer(2);
    }
}

TEST_CASE("tickets: every block is drawn once, a park stops the drawing and the rest is drawn after it", "[device][scheduler]")
{
    constexpr u32 blocks = 700;
    scheduler_test t({.window = 32, .workers = 3});
    t.take_retired();
    t.start();
    t.put(2, blocks);
    t.put(9, 1); // behind it
    t.settle();
    std::multiset<u32> drawn;
    const auto draw_some = [&](u32 w, u32 times) {
        test_port port(t.engine.m, w, w);
        const auto letter = port.wait();
        REQUIRE((letter.slot() == 2 && letter.tickets()));
        auto& record = port.record(letter);
        constexpr u32 chunk = 3;
        for (u32 i = 0;; ++i) {
            if (i == times)
                P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::park), order::relaxed,
                         scope::device);
            const u32 first = port.draw(record, blocks, chunk);
            if (first >= blocks) break;
            for (u32 b = first; b < std::min(first + chunk, blocks); ++b) drawn.insert(b);
        }
        port.answer(letter);
        port.save();
    };
    draw_some(0, 10);
    draw_some(1, 0);
    draw_some(2, 0);
    t.scheduler->stop_dispatch();
    t.settle();
    CHECK(t.scheduler->workers_idle(t.engine.team));
    CHECK(t.take_retired() == 0);
    CHECK(drawn.size() < blocks);
    // Park and relaunch.
    t.linker->save(t.engine.team);
    t.scheduler->dismiss_workers(t.engine.team);
    for (u32 w = 0; w < 3; ++w) {
        test_port port(t.engine.m, w, w);
        const auto letter = port.wait();
        REQUIRE(letter.leaves());
        port.leave(letter);
    }
    P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::none), order::relaxed, scope::device);
    t.start();
    t.settle();
    draw_some(1, 1000);
    draw_some(0, 1000);
    draw_some(2, 1000);
    t.settle();
    for (u32 b = 0; b < blocks; ++b) REQUIRE(drawn.count(b) == 1);
    CHECK(drawn.size() == blocks);
    CHECK(t.take_retired() == 1);
    let_waits_end(t.engine);
    u32 small = 0;
    for (u32 w = 0; w < 3; ++w) {
        test_port port(t.engine.m, w, w);
        const auto letter = port.wait();
        if (letter.slot() != 9) continue;
        port.answer(letter);
        ++small;
    }
    CHECK(small == 1);
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK(t.linker->empty());
}

TEST_CASE("a worker that sees the tickets used up says so, and then nobody else is invited", "[device][scheduler]")
{
    constexpr u32 blocks = 5;
    scheduler_test t({.window = 32, .workers = 2});
    t.start();
    t.put(4, 1);
    t.settle();
    t.put(2, blocks); // one worker is busy: one is invited
    t.put(9, 1);      // waits behind the tickets
    t.settle();
    let_waits_end(t.engine);
    const auto done = [&](u32 w) { return device::done_word{t.engine.m.done[w].raw}; };
    test_port first(t.engine.m, 0, 0), second(t.engine.m, 1, 1);
    const auto small = first.wait();
    REQUIRE((small.slot() == 4 && !small.tickets()));
    const auto invited = second.wait();
    REQUIRE((invited.slot() == 2 && invited.tickets()));
    P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::none), order::relaxed, scope::device);
    for (u32 b = 0; b < blocks; ++b) REQUIRE(second.draw(second.record(invited), blocks, 1) == b);
    REQUIRE(second.draw(second.record(invited), blocks, 1) >= blocks);
    second.answer(invited);
    CHECK((done(1).raw & device::done_word::drawn_bit) != 0);
    t.settle();
    CHECK(t.take_retired() == 1); // complete with its last answer, though one worker was never asked
    CHECK(t.positions.count(1) == 1);
    let_waits_end(t.engine);
    const auto next = second.wait();
    CHECK((next.slot() == 9 && !next.tickets()));
    first.answer(small);
    second.answer(next);
    CHECK((done(0).raw & device::done_word::drawn_bit) == 0);
    CHECK((done(1).raw & device::done_word::drawn_bit) == 0); // it spoke of the mail before
    t.settle();
    CHECK(t.take_retired() == 2);
    CHECK(first.wait().leaves());
    CHECK(t.linker->empty());
}

TEST_CASE("whoever is invited to a task that draws tickets is invited to the next one, too, and nobody else behind another mail",
          "[device][scheduler]")
{
    scheduler_test t({.window = 32, .workers = 3});
    t.start();
    t.put(4, 1);
    t.settle(); // worker 0 is busy
    t.put(2, 5);
    t.put(9, 7);
    t.put(6, 4);
    t.settle();
    const auto sent = [&](u32 w) { return t.engine.s.sent[w]; };
    CHECK((sent(0) == 1 && sent(1) == 2 && sent(2) == 2)); // not to the third one, either
    std::vector<std::unique_ptr<test_port>> ports;
    const auto launch = [&] {
        ports.clear();
        for (u32 w = 0; w < 3; ++w) ports.push_back(std::make_unique<test_port>(t.engine.m, w, w));
    };
    launch();
    const u32 blocks[] = {5, 7, 4};
    std::multiset<u32> ran[3];
    u32 retired = 0;
    const auto take = [&](u32 w, u32 slot, bool tickets) {
        const device::mail letter = ports[w]->wait();
        REQUIRE((letter.slot() == slot && letter.tickets() == tickets));
        return letter;
    };
    // Draws so many blocks, or all.
    const auto draw = [&](u32 w, const device::mail& letter, u32 blocks, u32 most, std::multiset<u32>& into) {
        for (u32 i = 0; i < most; ++i) {
            const u32 b = ports[w]->draw(ports[w]->record(letter), blocks, 1);
            if (b >= blocks) return true;
            into.insert(b);
        }
        return false;
    };
    SECTION("each goes on with it at once; the first one's last answer is its end, and the third one's turn comes then")
    {
        const auto first1 = take(1, 2, true), first2 = take(2, 2, true);
        CHECK_FALSE(draw(2, first2, 5, 1, ran[0])); // a long block
        CHECK(draw(1, first1, 5, 9, ran[0]));
        ports[1]->answer(first1);
        const auto second1 = take(1, 9, true);
        t.settle();
        CHECK(t.take_retired() == 0);
        CHECK((sent(0) == 1 && sent(1) == 3 && sent(2) == 2)); // the third one's, by who has answered
        CHECK(draw(1, second1, 7, 9, ran[1]));
        ports[1]->answer(second1);
        t.settle();
        CHECK(t.take_retired() == 0); // worker 2 has not answered
        ports[0]->answer(take(0, 4, false));
        CHECK(draw(2, first2, 5, 9, ran[0]));
        ports[2]->answer(first2);
        const auto second2 = take(2, 9, true);
        CHECK(draw(2, second2, 7, 9, ran[1]));
        ports[2]->answer(second2);
        t.settle();
        retired = t.take_retired();
        CHECK(retired == 3);
    }
    SECTION("both ends are seen in one step: who is idle then is invited once more, and says so")
    {
        for (u32 w = 1; w < 3; ++w) {
            const auto first = take(w, 2, true);
            CHECK(draw(w, first, 5, 9, ran[0]));
            ports[w]->answer(first);
            const auto second = take(w, 9, true);
            CHECK(draw(w, second, 7, 9, ran[1]));
            ports[w]->answer(second);
        }
        t.settle();
        CHECK(t.take_retired() == 1);
        const auto again = take(1, 9, true);
        CHECK(draw(1, again, 7, 1, ran[1]));
        ports[1]->answer(again);
        t.settle();
        CHECK(t.take_retired() == 0); // worker 2 was invited, too
        const auto last = take(2, 9, true);
        CHECK(draw(2, last, 7, 1, ran[1]));
        ports[2]->answer(last);
        t.settle();
        CHECK(t.take_retired() == 1);
        retired = 2;
    }
    SECTION("a park stops both, and the rest of both is drawn after it")
    {
        const auto stop = [&](device::stop_level level) {
            P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(level), order::relaxed, scope::device);
        };
        ports[0]->answer(take(0, 4, false));
        for (u32 w = 1; w < 3; ++w) {
            const auto first = take(w, 2, true);
            if (w == 1) CHECK_FALSE(draw(w, first, 5, 2, ran[0]));
            stop(device::stop_level::park);
            CHECK(draw(w, first, 5, 1, ran[0])); // none is given
            ports[w]->answer(first);
            stop(device::stop_level::none); // else it would leave
            const auto second = take(w, 9, true);
            stop(device::stop_level::park);
            CHECK(draw(w, second, 7, 1, ran[1]));
            ports[w]->answer(second);
            stop(device::stop_level::none);
        }
        t.scheduler->stop_dispatch();
        t.settle();
        CHECK(t.scheduler->workers_idle(t.engine.team));
        CHECK(t.take_retired() == 1);
        t.linker->save(t.engine.team);
        t.scheduler->dismiss_workers(t.engine.team);
        for (auto& port : ports) {
            const device::mail letter = port->wait();
            REQUIRE(letter.leaves());
            port->leave(letter);
        }
        launch();
        t.start();
        t.settle();
        CHECK((sent(0) == 4 && sent(1) == 5 && sent(2) == 5)); // all to both
        retired = 1;
    }
    // Whatever is left, by whoever holds a mail of it.
    for (bool some = true; some;) {
        some = false;
        for (u32 w = 0; w < 3; ++w) {
            let_waits_end(t.engine);
            const device::mail letter = ports[w]->wait();
            P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::none), order::relaxed, scope::device);
            if (letter.leaves()) continue;
            some = true;
            const u32 task = letter.slot() == 2 ? 0 : letter.slot() == 9 ? 1 : 2;
            if (letter.tickets()) CHECK(draw(w, letter, blocks[task], 9, ran[task]));
            ports[w]->answer(letter);
            t.settle();
        }
    }
    CHECK(retired + t.take_retired() == 4);
    CHECK(t.linker->empty());
    for (u32 task = 0; task < 3; ++task) {
        CHECK(ran[task].size() == blocks[task]);
        for (u32 b = 0; b < blocks[task]; ++b) CHECK(ran[task].count(b) == 1);
    }
}

TEST_CASE("the first of two tasks that draw tickets is cancelled uninvited: the second ends once", "[device][scheduler]")
{
    const auto writes = access_entry::range(abi::access_mode::write, 4096, 64),
               reads = access_entry::range(abi::access_mode::read, 4096, 64);
    scheduler_test t({.window = 32, .workers = 2});
    t.start();
    t.put(4, 1, {writes});
    t.put(5, 1);
    t.settle(); // both workers are busy
    t.put(2, 5, {reads}); // without an edge to what it reads
    t.put(9, 7);
    t.settle();
    CHECK((t.engine.s.sent[0] == 1 && t.engine.s.sent[1] == 1));
    test_port ports[] = {{t.engine.m, 0, 0}, {t.engine.m, 1, 1}};
    const device::mail failing = ports[0].wait(), other = ports[1].wait();
    REQUIRE((failing.slot() == 4 && other.slot() == 5));
    ports[0].fail(ports[0].record(failing), 9);
    ports[0].answer(failing);
    ports[1].answer(other);
    t.settle();
    CHECK(t.take_retired() == 3); // and the one that reads what was not written
    u32 blocks = 0;
    const device::mail invitations[] = {ports[0].wait(), ports[1].wait()};
    for (u32 w = 0; w < 2; ++w) {
        REQUIRE((invitations[w].slot() == 9 && invitations[w].tickets()));
        while (ports[w].draw(ports[w].record(invitations[w]), 7, 1) < 7) ++blocks;
        ports[w].answer(invitations[w]);
        t.settle();
        CHECK(t.take_retired() == w);
    }
    CHECK(blocks == 7);
    CHECK(t.linker->empty());
}

TEST_CASE("a worker that a park stopped does not say that the tickets are used up", "[device][scheduler]")
{
    scheduler_test t({.window = 32, .workers = 2});
    t.start();
    t.put(2, 5);
    t.settle();
    for (u32 w = 0; w < 2; ++w) {
        test_port port(t.engine.m, w, w);
        const auto letter = port.wait();
        REQUIRE(port.draw(port.record(letter), 5, 1) < 5);
        P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::park), order::relaxed, scope::device);
        REQUIRE(port.draw(port.record(letter), 5, 1) >= 5);
        port.answer(letter);
        CHECK((t.engine.m.done[w].raw & device::done_word::drawn_bit) == 0);
        P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::none), order::relaxed, scope::device);
    }
    t.scheduler->stop_dispatch();
    t.settle();
    CHECK(t.scheduler->workers_idle(t.engine.team));
    CHECK(t.take_retired() == 0);
}

TEST_CASE("a drawer of tickets takes more the shorter they are and the more are left, and what it drew ahead whatever comes",
          "[device][scheduler]")
{
    constexpr u32 blocks = 3000;
    scheduler_test t({.window = 32, .workers = 2});
    t.start();
    t.put(2, blocks);
    t.settle();
    test_port ports[] = {{t.engine.m, 0, 0}, {t.engine.m, 1, 1}};
    const device::mail letters[] = {ports[0].wait(), ports[1].wait()};
    using device::ticket_run;
    device::ticket_drawer<P> drawers[] = {{ports[0], ports[0].record(letters[0]), blocks, 1},
                                          {ports[1], ports[1].record(letters[1]), blocks, 1}};
    std::multiset<u32> ran;
    const auto run = [&](const ticket_run& r) {
        for (u32 b = r.first; b < r.first + r.count; ++b) ran.insert(b);
        return r.count;
    };
    const auto stop = [&](device::stop_level level) {
        P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(level), order::relaxed, scope::device);
    };
    // Short blocks: ever more at a time, up to 64. Long ones: ever fewer.
    u32 most = 0;
    for (u32 i = 0; i < 12; ++i) {
        const u32 count = run(drawers[0].draw());
        CHECK(count >= most);
        most = count;
        drawers[0].took(100);
    }
    CHECK(most == 64);
    for (u32 i = 0; i < 12; ++i) {
        run(drawers[0].draw());
        drawers[0].took(1'000'000);
    }
    CHECK(run(drawers[0].draw()) == 1);
    CHECK(drawers[0].ask_ahead().count == 0); // not of blocks that last so long
    drawers[0].took(50'000);
    // A park: what was drawn ahead is to be run, further ones are not drawn, and the other one draws them later.
    CHECK(run(drawers[0].next(drawers[0].ask_ahead())) == 1);
    stop(device::stop_level::park);
    CHECK(run(drawers[0].next(drawers[0].ask_ahead())) == 1); // the look for a park counts the next time
    CHECK(drawers[0].ask_ahead().count == 0);
    CHECK(drawers[0].draw().count == 0);
    CHECK_FALSE(ports[0].all_drawn());
    stop(device::stop_level::none);
    // Towards the end nobody draws ahead, but where blocks are short, and all end together: no run is longer than half of what is
    // left for each.
    u32 left = blocks - static_cast<u32>(ran.size());
    bool ahead_at_the_end = false;
    const bool hasty = GENERATE(false, true);
    for (;;) {
        drawers[1].took(hasty ? 100 : 10'000);
        const u32 count = run(drawers[1].draw());
        if (count == 0) break;
        CHECK(count <= std::max(1u, (left + 64) / 4)); // it knows what was left when it drew last
        left -= count;
        const device::ticket_request asked = drawers[1].ask_ahead();
        ahead_at_the_end |= asked.count != 0 && left < 4 * 2;
        if (asked.count != 0) left -= run(drawers[1].next(asked));
    }
    CHECK(ahead_at_the_end == hasty);
    CHECK(ports[1].all_drawn());
    CHECK(ran.size() == blocks);
    for (u32 b = 0; b < blocks; ++b) REQUIRE(ran.count(b) == 1);
}

TEST_CASE("completion words hold the low bits of the count, which of the last mails were skipped, "
          "and what they say of the last one",
          "[device][scheduler]")
{
    using device::done_word;
    for (const u32 count : {0u, 1u, 0xffeu, 0xfffu, 0x1000u, 0x7fffffffu, 0xffffffffu})
        for (u32 bits = 0; bits < 8; ++bits) {
            done_word word{done_word::make(count, 0, bits)};
            CHECK((word.raw & 7) == bits);
            for (u32 behind = 0; behind < P::mailbox_depth; ++behind) CHECK(word.answered_since(count - behind) == behind);
            CHECK(device::tag_of(count) != 0);
            CHECK(device::tag_of(count) != device::tag_of(count + P::mailbox_depth)); // of one mail place
            CHECK(done_word::make(device::tag_of(count), 0, bits) == word.raw);       // the worker makes it from the tag
            // Every third mail is skipped: the last `history` of them are known.
            u32 number = count;
            for (u32 i = 0; i < 40; ++i) {
                ++number;
                word.raw = done_word::make(number, word.skipped_before(1) | (i % 3 == 0 ? 1u : 0u), bits);
                for (u32 behind = 0; behind < done_word::history && behind <= i; ++behind)
                    REQUIRE(word.skipped(number - behind) == ((i - behind) % 3 == 0));
                REQUIRE((word.raw & 7) == bits);
            }
        }
}

TEST_CASE("a failure is told with its task on either side of the count's wrap, and the word keeps saying it", "[device][scheduler]")
{
    scheduler_test t({.window = 32, .workers = 1});
    const u32 start = 0x07fffffe;
    mails_so_far(t.engine, 0, start);
    t.start();
    let_waits_end(t.engine);
    test_port port(t.engine.m, 0, 0);
    for (u32 i = 0; i < 4; ++i) {
        t.put(i);
        t.settle();
        const auto letter = port.wait();
        REQUIRE(letter.slot() == i);
        if (i == 1) port.fail(port.record(letter), 55);
        port.answer(letter);
        CHECK((t.engine.m.done[0].raw & device::done_word::failed_bit) == (i >= 1 ? 1u : 0u));
        t.settle();
        REQUIRE(t.retired.available(t.engine.team) == 1);
        const u32 entry = t.retired.pop();
        CHECK(entry == (i | (i >= 1 ? device::retired_look : 0u)));
        CHECK(t.engine.m.records[i].status.raw == (i == 1 ? 55u : 0u));
        t.retired.release(t.engine.team);
    }
}

namespace {

/// What the scheduler did since the last reset: fences and mails, in order.
struct fence_log {
    static inline std::vector<edge> seen;
    fence_log()
    {
        seen.clear();
        device::host_delay_hook = [](edge e) {
            if (e == edge::R4A5_step_fence || e == edge::R4_mail) seen.push_back(e);
        };
    }
    ~fence_log() { device::host_delay_hook = nullptr; }
};

const std::vector<edge> fence_then_mail = {edge::R4A5_step_fence, edge::R4A5_step_fence, edge::R4_mail}; // acquire, release, mail

} // namespace

TEST_CASE("a task linked since the last fence is mailed behind a fence, wherever the count of linked tasks stands",
          "[device][scheduler]")
{
    for (const u32 linked : {0u, 1u, 0x7ffdu, 0x7fffu, 0x8000u, 0xc000u, 0xfffeu, 0xffffu, 0x18000u, 0xfffffff0u, 0xffffffffu})
        for (const bool idle_first : {false, true}) {
            INFO("linked before the launch " << linked << (idle_first ? ", idle first" : ""));
            scheduler_test t({.window = 32, .workers = 2});
            t.engine.s.linked->raw = linked; // by launches before
            t.start();
            if (idle_first) t.settle();
            for (u32 slot = 0; slot < 2; ++slot) {
                t.put(slot);
                t.linker->step(t.engine.team);
                fence_log log;
                t.scheduler->step(t.engine.team);
                REQUIRE(log.seen == fence_then_mail);
            }
        }
}

TEST_CASE("a hop costs one fence: what waited is mailed behind the fence of the step that saw the completion",
          "[device][scheduler]")
{
    for (const u32 linked : {0u, 0x7fffu, 0xffffu, 0xfffffffeu}) {
        INFO("linked before the launch " << linked);
        scheduler_test t({.window = 32, .workers = 1});
        t.engine.s.linked->raw = linked;
        t.start();
        let_waits_end(t.engine);
        test_port port(t.engine.m, 0, 0);
        t.put(0);
        for (u32 slot = 1; slot < 8; ++slot) t.put_behind(slot, {slot - 1});
        t.settle();
        for (u32 slot = 0; slot < 7; ++slot) {
            const auto letter = port.wait();
            REQUIRE(letter.slot() == slot);
            port.answer(letter);
            fence_log log;
            t.settle();
            REQUIRE(log.seen == fence_then_mail);
        }
    }
}

TEST_CASE("a ready entry tells whether it was linked after a count of tasks, up to half the span of its number",
          "[device][scheduler]")
{
    for (const u32 count : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu, 0x10000u, 0xffffffffu}) {
        for (const u32 after : {1u, 2u, 32u, device::window_slots_max, 0x7fffu}) {
            const auto entry = device::ready_entry::make(device::window_slots_max - 1, count + after);
            CHECK(entry.linked_after(count));
            CHECK(entry.slot() == device::window_slots_max - 1);
        }
        for (const u32 before : {0u, 1u, 32u, device::window_slots_max, 0x7fffu})
            CHECK_FALSE(device::ready_entry::make(7, count - before).linked_after(count));
    }
}

TEST_CASE("a task that waits while more than 2^15 others are linked is woken and mailed once, at worst behind a fence too many",
          "[device][scheduler]")
{
    scheduler_test t({.window = 32, .workers = 2});
    t.start();
    let_waits_end(t.engine);
    test_port first(t.engine.m, 0, 0), second(t.engine.m, 1, 1);
    t.put(30);
    t.put_behind(31, {30});
    t.settle();
    const auto blocker = first.wait();
    REQUIRE(blocker.slot() == 30);
    for (u32 i = 0; i < 0x9000; ++i) {
        t.put(i % 8);
        t.settle();
        const auto letter = second.wait();
        REQUIRE(letter.slot() == i % 8);
        second.answer(letter);
        t.settle();
        REQUIRE(t.take_retired() == 1);
    }
    first.answer(blocker);
    fence_log log;
    t.settle();
    REQUIRE(log.seen.size() >= 2);
    CHECK((log.seen.front() == edge::R4A5_step_fence && log.seen.back() == edge::R4_mail));
    CHECK(first.wait().slot() == 31);
}

TEST_CASE("what a park leaves in the report and the ready queue is taken up by the next launch", "[device][scheduler]")
{
    for (const bool look_between : {false, true}) { // does the linker see the completion before it stops?
        INFO(look_between);
        scheduler_test t({.window = 32, .workers = 1});
        t.start();
        test_port port(t.engine.m, 0, 0);
        t.put(0);
        t.put_behind(1, {0});
        t.put_behind(2, {0});
        t.put_behind(3, {1, 2});
        t.settle();
        let_waits_end(t.engine);
        const auto letter = port.wait();
        REQUIRE(letter.slot() == 0);
        // Park: the linker stops first, in the second case after it filled the ready queue.
        t.scheduler->stop_dispatch();
        port.answer(letter);
        if (!look_between) t.linker->save(t.engine.team);
        t.scheduler->step(t.engine.team);
        if (look_between) {
            REQUIRE(t.linker->step(t.engine.team));
            t.linker->save(t.engine.team);
        }
        t.scheduler->step(t.engine.team);
        REQUIRE(t.scheduler->workers_idle(t.engine.team));
        t.scheduler->dismiss_workers(t.engine.team);
        const auto leaving = port.wait();
        REQUIRE((leaving.leaves() && leaving.tag != 0));
        port.leave(leaving);
        CHECK(t.take_retired() == 1);
        // Relaunch.
        t.start();
        CHECK_FALSE(t.linker->empty());
        test_port again(t.engine.m, 0, 0);
        for (u32 slot = 1; slot < 4; ++slot) {
            t.settle();
            const auto next = again.wait();
            REQUIRE(next.slot() == slot);
            again.answer(next);
        }
        t.settle();
        CHECK(t.linker->empty());
        CHECK(t.take_retired() == 3);
        CHECK(t.positions.size() == 4);
        CHECK(again.wait().leaves());
    }
}

TEST_CASE("completions that are taken together wake whoever waits for them, few or many, each once", "[device][linker]")
{
    scheduler_test t({.window = 128, .workers = 1});
    t.start();
    for (u32 slot = 0; slot < 4; ++slot) t.put(slot);
    std::set<u32> expected;
    const auto behind = [&](u32 slot, const std::vector<u32>& before) {
        t.put_behind(slot, before);
        expected.insert(slot);
    };
    for (u32 k = 0; k < 20; ++k) behind(20 + 5 * k, {0}); // more than a lane wakes by itself, in four words
    for (u32 slot = 4; slot < 7; ++slot) behind(slot, {1});
    for (u32 slot = 7; slot < 19; slot += 3) behind(slot, {2, 0, 1});
    t.put_behind(19, {2, 3, 20}); // 20 is not complete
    t.put_behind(21, {3, 7});
    while (t.linker->step(t.engine.team)) {}
    device::queue_consumer<P, device::ready_entry, edge::A14_ready, edge::R14_taken> ready(t.engine.s.ready_queue());
    REQUIRE(ready.available(t.engine.team) == 4);
    for (u32 slot = 0; slot < 4; ++slot) REQUIRE(ready.pop().slot() == slot);
    device::queue_producer<P, device::report, edge::R13_report, edge::A13_taken> reports(t.engine.s.report_queue());
    for (const u32 slot : {1u, 0u, 3u, 2u}) reports.put(t.engine.team, device::report::make(device::report_kind::completed, slot));
    reports.publish(t.engine.team);
    REQUIRE(t.linker->step(t.engine.team));
    std::multiset<u32> woken;
    while (ready.available(t.engine.team) != 0) woken.insert(ready.pop().slot());
    CHECK(woken == std::multiset<u32>(expected.begin(), expected.end()));
    CHECK((t.engine.s.pending[19] & 0xffff) == 1);
    CHECK((t.engine.s.pending[21] & 0xffff) == 1);
    CHECK((t.engine.s.in_flight[0] & 15) == 0);
    CHECK(t.engine.s.counters[device::handed_tasks] == expected.size());
}

TEST_CASE("with several parts tasks are linked beside one that is complete early, but not into its slot nor behind it",
          "[device][linker][parts]")
{
    for (const u32 parts : {1u, 2u}) {
        INFO(parts);
        scheduler_test t({.window = 32, .workers = 4, .staging = true, .parts = parts});
        t.start();
        device::queue_consumer<P, device::ready_entry, edge::A14_ready, edge::R14_taken> ready(t.engine.s.ready_queue());
        device::queue_producer<P, device::report, edge::R13_report, edge::A13_taken> reports(t.engine.s.report_queue());
        const auto step = [&] {
            while (t.linker->step(t.engine.team)) {}
            std::set<u32> slots;
            while (ready.available(t.engine.team) != 0) slots.insert(ready.pop().slot());
            ready.release(t.engine.team);
            return slots;
        };
        const auto complete = [&](u32 slot) {
            reports.put(t.engine.team, device::report::make(device::report_kind::completed, slot));
            reports.publish(t.engine.team);
        };
        t.put(0);
        t.put_behind(1, {0});
        REQUIRE(step() == std::set<u32>{0, 1});
        complete(1); // before the one that it waits for
        REQUIRE(step().empty());
        REQUIRE(t.engine.s.early[0] == 2);
        t.put(2);
        t.put_behind(3, {1}); // which is complete
        t.put(4);
        t.put(1); // the early one's slot comes again
        t.put(5);
        if (parts == 1) CHECK(step().empty());
        else CHECK(step() == std::set<u32>{2, 3, 4});
        CHECK(t.engine.s.early[0] == 2);
        complete(0);
        const std::set<u32> rest = step();
        if (parts == 1) CHECK(rest == std::set<u32>{1, 2, 3, 4, 5});
        else CHECK(rest == std::set<u32>{1, 5});
        CHECK(t.engine.s.early[0] == 0);
        for (const u32 slot : {1u, 2u, 3u, 4u, 5u}) complete(slot);
        CHECK(step().empty());
        CHECK(t.linker->empty());
    }
}

TEST_CASE("a slot that comes again while the linker looks is linked behind its own completion", "[device][linker]")
{
    static scheduler_test* test;
    static device::queue_producer<P, device::report, edge::R13_report, edge::A13_taken>* completions;
    scheduler_test t({.window = 32, .workers = 1});
    t.start();
    t.put(0);
    t.put_behind(1, {0});
    while (t.linker->step(t.engine.team)) {}
    device::queue_producer<P, device::report, edge::R13_report, edge::A13_taken> reports(t.engine.s.report_queue());
    test = &t;
    completions = &reports;
    // At the linker's look at the admitted queue, which comes before the one at the report queue, slot 0 has gone
    // all the way round.
    device::host_delay_hook = [](edge e) {
        if (e != edge::A10_admitted) return;
        device::host_delay_hook = nullptr;
        completions->push(test->engine.team, device::report::make(device::report_kind::completed, 0));
        test->put(0);
    };
    REQUIRE(t.linker->step(t.engine.team)); // the report
    REQUIRE(device::host_delay_hook.load() == nullptr);
    REQUIRE(t.linker->step(t.engine.team)); // the new task
    CHECK((t.engine.s.in_flight[0] & 3) == 3); // the new task of slot 0, and the one that waited
    CHECK(t.engine.s.ready_tail->raw == 3);    // the old task of slot 0; the one that waited for it; the new one
    CHECK(P::get(t.engine.s.ready_entries[1]).word == device::ready_entry::make(1, 2).word);
    CHECK(P::get(t.engine.s.ready_entries[2]).word == device::ready_entry::make(0, 3).word);
    // Who comes now waits for the new task.
    t.put_behind(2, {0});
    t.linker->step(t.engine.team);
    CHECK((t.engine.s.pending[2] & 0xffff) == 1);
}
