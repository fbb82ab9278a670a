// The scheduler and the linker beside workers' ports: what tests of staged and of broadcast tasks are made of.
#pragma once
#include "scheduler_test.hpp"
#include "trace_catch.hpp"

namespace slipstream::tests {

using device::mail;
using device::order;
using device::scope;
using device::verdict;

struct staging_test : scheduler_test {
    explicit staging_test(u32 workers, u32 window = 32, bool chaining = false, u32 broadcasts = 0)
        : scheduler_test({.window = window,
                          .workers = workers,
                          .staging = true,
                          .chaining = chaining,
                          .bypass = broadcasts != 0,
                          .broadcast_copies = broadcasts})
    {
        launch();
    }
    void launch()
    {
        start();
        ports.clear();
        for (u32 w = 0; w < engine.m.n.workers; ++w) ports.emplace_back(engine.m, w, w);
        let_waits_end(engine); // await(), too: it then says leave
    }
    void stop(device::stop_level level)
    {
        P::store(device::edge::P1_stop, *engine.m.stop, static_cast<u32>(level), order::relaxed, scope::device);
    }
    mail take(u32 worker, u32 slot, u32 waits)
    {
        const mail letter = ports[worker].wait();
        INFO("worker " << worker << ", slot " << slot);
        REQUIRE_FALSE(letter.leaves());
        REQUIRE(letter.slot() == slot);
        REQUIRE(letter.waits() == waits);
        return letter;
    }
    bool has_mail(u32 worker) { return !ports[worker].wait().leaves(); }
    void answer(u32 worker, const mail& letter, u32 failure = 0)
    {
        if (failure != 0) ports[worker].fail(ports[worker].record(letter), failure);
        // let_waits_end() is not meant for the look that comes with an answer.
        const u32 level = engine.m.stop->raw;
        if (level == static_cast<u32>(device::stop_level::abort)) stop(device::stop_level::none);
        ports[worker].answer(letter);
        stop(static_cast<device::stop_level>(level));
    }
    /// It must be skipped.
    void skip(u32 worker, const mail& letter)
    {
        REQUIRE(ports[worker].await(engine.team, letter) == verdict::skip);
        ports[worker].skip();
        ports[worker].answer(letter);
    }
    /// Takes a mail, runs it, answers; the scheduler looks.
    void run(u32 worker, u32 slot, u32 waits = 0)
    {
        const mail letter = take(worker, slot, waits);
        if (waits != 0) REQUIRE(ports[worker].await(engine.team, letter) == verdict::run);
        answer(worker, letter);
        settle();
    }
    /// A task of tickets on two workers: 1 draws them all and answers, 0 has not finished its last block. Returns the mail of 0.
    mail draw_all(u32 slot, u32 blocks)
    {
        put(slot, blocks);
        settle();
        stop(device::stop_level::none);
        const mail tickets = take(0, slot, 0), drawn = take(1, slot, 0);
        while (ports[1].draw(ports[1].record(drawn), blocks, 1) < blocks) {}
        answer(1, drawn);
        settle();
        let_waits_end(engine);
        return tickets;
    }
    bool is(const u32* bits, u32 slot) const { return (bits[slot / 32] >> slot % 32 & 1) != 0; }
    bool staged(u32 slot) const { return is(engine.s.staged, slot); }
    bool tainted(u32 slot) const { return is(engine.s.tainted, slot); }
    u32 pending(u32 slot) const { return engine.s.pending[slot] & 0xffff; }
    device::finished_count finished_of(u32 slot) const { return {engine.m.records[slot].finished.raw}; }
    /// Nothing is left behind, and the linker's counts agree with the workers'.
    void check_empty()
    {
        CHECK(linker->empty());
        CHECK(engine.s.counters[device::handed_tasks] == 0);
        CHECK(engine.s.counters[device::handed_blocks] == 0);
        for (u32 slot = 0; slot < engine.m.n.window; ++slot) {
            CHECK(finished_of(slot).blocks() == P::get(engine.s.targets[slot]));
            CHECK_FALSE((staged(slot) || is(engine.s.handed, slot) || is(engine.s.early, slot) || is(engine.s.in_flight, slot)));
        }
    }

    std::vector<test_port> ports;
};

} // namespace slipstream::tests
