// The scheduler role on an engine made by hand: counters across their 32-bit wrap, queues at their limits, tickets.
#include "device_engine.hpp"
#include "trace_catch.hpp"
#include <set>

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;
using device::order;
using device::scope;

namespace {

struct scheduler_test {
    explicit scheduler_test(const engine_shape& shape) : engine(shape), decoded(engine.s.decoded_queue()), freed(engine.s.free_queue()), retired(engine.s.retired_queue()) {}

    void start() { scheduler = std::make_unique<device::scheduler<P>>(engine.m, engine.s); }
    void put(u32 slot, u32 blocks = 1)
    {
        engine.fill_slot(slot, next_position++, {}, 0, blocks);
        decoded.push(engine.team, slot);
    }
    u32 take_retired()
    {
        u32 count = 0;
        while (retired.available(engine.team)) {
            positions.insert(retired.pop().position);
            ++count;
        }
        retired.release(engine.team);
        while (freed.available(engine.team)) free_slots.push_back(freed.pop());
        freed.release(engine.team);
        return count;
    }
    /// Steps until nothing happens.
    void settle()
    {
        while (scheduler->step(engine.team)) {}
    }

    hand_made_engine engine;
    device::queue_producer<P, u32, edge::R3_decoded, edge::A3_admitted> decoded;
    device::queue_consumer<P, u32, edge::A2_slot_freed, edge::R2_slot_taken> freed;
    device::queue_consumer<P, device::retired_entry, edge::A6_retired, edge::R6_notified> retired;
    std::unique_ptr<device::scheduler<P>> scheduler;
    std::multiset<u64> positions;
    std::vector<u32> free_slots;
    u64 next_position = 0;
};

/// Lets worker_port::wait() end when there is no mail: it then returns a leaving mail without a tag.
void let_waits_end(hand_made_engine& e)
{
    P::store(edge::P1_stop, *e.m.stop, static_cast<u32>(device::stop_level::abort), order::relaxed, scope::device);
}

struct waited_too_long {};

} // namespace

TEST_CASE("mails go on arriving when a worker's mail counter passes 2^31 and 2^32", "[device][scheduler]")
{
    for (const u32 start : {0x7ffffff0u, 0xfffffff0u}) {
        INFO("first tag after " << start);
        scheduler_test t({.window = 32, .workers = 1});
        t.engine.s.sent[0] = t.engine.s.seen[0] = start;
        t.engine.m.done[0].raw = start << 1;
        t.take_retired();
        t.start();
        let_waits_end(t.engine);
        device::worker_port<P> port(t.engine.m, 0, 0);
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
    scheduler_test t({.window = 32, .workers = 1});
    t.engine.s.sent[0] = t.engine.s.seen[0] = 0xffffffff;
    t.engine.m.done[0].raw = 0xffffffffu << 1;
    t.take_retired();
    t.start();
    {
        device::worker_port<P> port(t.engine.m, 0, 0);
        t.scheduler->dismiss_workers(t.engine.team);
        let_waits_end(t.engine);
        const auto letter = port.wait();
        REQUIRE(letter.leaves());
        port.leave(letter);
        REQUIRE(t.engine.m.done[0].raw >> 1 == (t.engine.s.seen[0] & 0x7fffffff)); // else the scheduler counts 2^31 answers
    }
    t.start();
    device::worker_port<P> port(t.engine.m, 0, 0);
    t.put(3);
    t.settle();
    const auto letter = port.wait();
    CHECK(letter.slot() == 3);
}

TEST_CASE("the ready queue keeps its order and its entries when its counters pass 2^32", "[device][scheduler]")
{
    for (const u32 window : {32u, 64u, 96u, 160u, 1024u}) {
        INFO("window " << window);
        scheduler_test t({.window = window, .workers = 1});
        t.take_retired();
        t.engine.s.counters[device::saved_ready_head] = t.engine.s.counters[device::saved_ready_tail] = 0xffffffffu - window / 2;
        t.start();
        let_waits_end(t.engine);
        device::worker_port<P> port(t.engine.m, 0, 0);
        for (u32 slot = 0; slot < window; ++slot) t.put(slot);
        t.settle();
        for (u32 i = 0; i < window; ++i) {
            const auto letter = port.wait();
            REQUIRE(letter.slot() == i);
            port.answer(letter);
            t.settle();
        }
        CHECK(t.take_retired() == window);
        CHECK(t.scheduler->window_empty());
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
    std::vector<device::worker_port<P>> ports;
    for (u32 w = 0; w < 64; ++w) ports.emplace_back(t.engine.m, w, w);
    let_waits_end(t.engine);
    static u32 looks;
    looks = 0;
    device::host_delay_hook = [](edge e) {
        if (e == edge::A6_notified && ++looks > 100000) throw waited_too_long{};
    };
    for (u32 slot = 0; slot < window; ++slot) t.put(slot);
    bool waited = false;
    try {
        for (u32 round = 0; round < 40; ++round) {
            t.scheduler->step(t.engine.team);
            t.scheduler->step(t.engine.team); // admission takes 32 a step
            for (auto& port : ports) {
                const auto letter = port.wait();
                if (!letter.leaves()) port.answer(letter);
            }
            t.scheduler->step(t.engine.team);
            while (notifier.step(t.engine.team)) {}
            while (t.freed.available(t.engine.team)) t.put(t.freed.pop());
            t.freed.release(t.engine.team);
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
            device::worker_port<P> port(t.engine.m, w, w);
            const auto letter = port.wait();
            if (letter.leaves()) continue;
            REQUIRE((letter.slot() == 7 && !letter.tickets()));
            seen.insert(letter.block);
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
        device::worker_port<P> port(t.engine.m, w, w);
        const auto letter = port.wait();
        REQUIRE((letter.slot() == 2 && letter.tickets()));
        auto& record = port.record(letter);
        const u32 chunk = port.ticket_chunk(blocks);
        for (u32 i = 0;; ++i) {
            if (i == times)
                P::store(edge::P1_stop, *t.engine.m.stop, static_cast<u32>(device::stop_level::park), order::relaxed, scope::device);
            const u32 first = port.draw(record, blocks, chunk);
            if (first >= blocks) break;
            for (u32 b = first; b < std::min(first + chunk, blocks); ++b) drawn.insert(b);
        }
        port.answer(letter);
    };
    draw_some(0, 10);
    draw_some(1, 0);
    draw_some(2, 0);
    t.scheduler->stop_dispatch();
    t.settle();
    CHECK(t.scheduler->workers_idle());
    CHECK(t.take_retired() == 0);
    CHECK(drawn.size() < blocks);
    // Park and relaunch.
    t.scheduler->dismiss_workers(t.engine.team);
    for (u32 w = 0; w < 3; ++w) {
        device::worker_port<P> port(t.engine.m, w, w);
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
        device::worker_port<P> port(t.engine.m, w, w);
        const auto letter = port.wait();
        if (letter.slot() != 9) continue;
        port.answer(letter);
        ++small;
    }
    CHECK(small == 1);
    t.settle();
    CHECK(t.take_retired() == 1);
    CHECK(t.scheduler->window_empty());
}
