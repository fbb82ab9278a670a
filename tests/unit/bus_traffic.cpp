// What the engine says it moved across the bus, against what its protocol must have moved.
#include "api_tasks.hpp"
#include "device_engine.hpp"
#include "host/ring_writer.hpp"
#include "trace_catch.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;

namespace {

/// One ring, so that each look of ingest is at that one.
config one_ring()
{
    config c = host_config();
    c.rings = 1;
    c.ring_slots = 64;
    return c;
}

/// A task of one ring slot: header and one chunk of scalars.
void submit_counts(engine& rt, std::vector<std::atomic<u32>>& runs, u32 tasks)
{
    for (u32 i = 0; i < tasks; ++i) rt.submit(count_task{reinterpret_cast<u64>(&runs[i])}, {.order = ordering::no_access});
    REQUIRE(rt.wait_all());
}

bus_traffic paused_traffic(engine& rt)
{
    rt.pause();
    const bus_traffic t = rt.bus_traffic();
    rt.resume();
    return t;
}

u64 count(const hand_made_engine& e, device::bus_count what) { return P::get(e.m.bus[what]); }

} // namespace

TEST_CASE("one-slot tasks move 64 bytes there and 16 of the recorder back, each; twice as many move twice that", "[api][bus]")
{
    in_time(30, [] {
        engine rt(one_ring());
        std::vector<std::atomic<u32>> runs(1000);
        submit_counts(rt, runs, 500);
        const bus_traffic once = paused_traffic(rt);
        CHECK(once.ring_payload == 64 * 500);
        CHECK(once.recorder == 16 * 500);
        CHECK(once.to_gpu() >= 64 * 500);
        submit_counts(rt, runs, 1000);
        const bus_traffic thrice = paused_traffic(rt);
        CHECK(thrice.ring_payload == 3 * once.ring_payload);
        CHECK(thrice.recorder == 3 * once.recorder);
        CHECK(rt.launches() >= 2); // the counts outlast a park
        CHECK(thrice.handles == 0);
        CHECK(thrice.failures == 0);
        CHECK(thrice.flight_log == 0);
    });
}

TEST_CASE("completions cost between a word for 32 tasks and a word and a mark for each", "[api][bus]")
{
    in_time(30, [] {
        engine rt(one_ring());
        std::vector<std::atomic<u32>> runs(640);
        submit_counts(rt, runs, 640);
        const bus_traffic t = paused_traffic(rt);
        CHECK(t.completions >= 640 / 32 * 4 + 8);
        CHECK(t.completions <= 640 * (4 + 8));
        // The submitter is told every quarter ring, and when the ring runs dry.
        CHECK(t.ring_progress >= 640 / 64 * 8);
        CHECK(t.ring_progress <= 640 * 8);
        CHECK(t.commands >= t.heartbeats); // a heartbeat goes with each look at the command word
        CHECK(t.heartbeats > 0);
        CHECK(t.heartbeats % 4 == 0);
    });
}

TEST_CASE("a run of blocks is one record, whether it is mailed or drawn", "[api][bus]")
{
    in_time(30, [] {
        config c = one_ring();
        c.host_workers = 2;
        c.flight_log = 4096;
        engine rt(c);
        std::vector<std::atomic<u32>> runs(1000);
        rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.blocks = 1000, .order = ordering::no_access});
        REQUIRE(rt.wait_all());
        rt.pause();
        const u64 records = rt.flight_log().size();
        CHECK(rt.bus_traffic().recorder == 16 * records);
        CHECK(rt.bus_traffic().flight_log
              == sizeof(device::flight_log_entry) * records + sizeof(device::control_sample) * rt.flight_samples().window.size());
        CHECK(records >= 1000 / 64);
    });
}

TEST_CASE("a handle crosses the bus once, however many tasks name it", "[api][bus]")
{
    in_time(30, [] {
        engine rt(one_ring());
        std::vector<u64> x(64);
        std::vector<data_handle> handles;
        for (u64& word : x) handles.push_back(rt.register_range(&word, sizeof word));
        for (u32 round = 0; round < 3; ++round)
            for (const data_handle& h : handles) rt.submit(step_task{inout<u64>(h)});
        REQUIRE(rt.wait_all());
        CHECK(paused_traffic(rt).handles == 64 * sizeof(abi::handle_entry));
    });
}

TEST_CASE("each failed task costs one record of 16 bytes", "[api][bus]")
{
    in_time(30, [] {
        engine rt(one_ring());
        for (u32 i = 0; i < 7; ++i) rt.submit(fail_task{1 + i, 0}, {.order = ordering::no_access});
        REQUIRE(rt.wait_all());
        CHECK(paused_traffic(rt).failures == 7 * 16);
    });
}

TEST_CASE("the traffic may be read only while the kernel is away", "[api][bus]")
{
    in_time(10, [] {
        engine rt(one_ring());
        gate g;
        rt.submit(g.task());
        while (rt.launches() == 0) std::this_thread::yield();
        CHECK_THROWS_AS(rt.bus_traffic(), config_error);
        g.open();
    });
}

TEST_CASE("ingest counts each chunk that it looks at, whether it has come or not", "[device][bus]")
{
    for (const u32 rings : {1u, 3u, 6u}) {
        INFO(rings << " rings");
        hand_made_engine e({.rings = rings}, {describe_task<marker_task>()});
        device::ingest<P> ingest(e.m, e.s);
        for (u32 i = 0; i < 5; ++i) REQUIRE_FALSE(ingest.step(e.team));
        host::ring_writer<P> writer(e.m.rings, e.m.n.ring_slots, e.m.ring_pages);
        const auto never = [] { return false; };
        for (u32 i = 0; i < 3; ++i) {
            REQUIRE(writer.put(abi::message_header{1, 0, abi::flag_no_access, 0, 0, 1}.encode(), never));
            REQUIRE(writer.finish(never));
        }
        REQUIRE(ingest.step(e.team)); // a glance at all rings brings two messages: that ring is read ahead from now on
        ingest.save(e.team);
        CHECK(count(e, device::ring_chunks_looked) == 6 * rings * device::glance_slots * abi::slot_chunks);
        CHECK(count(e, device::ring_slots_taken) == 2);
        REQUIRE(ingest.step(e.team)); // a look twice as long brings the third
        ingest.save(e.team);
        CHECK(count(e, device::ring_chunks_looked)
              == (6 * rings * device::glance_slots + 2 * device::glance_slots) * abi::slot_chunks);
        CHECK(count(e, device::ring_slots_taken) == 3);
        CHECK(count(e, device::handles_read) == 0);
    }
}

TEST_CASE("the notifier counts a word for neighbours, a mark for each move, and its looks at the command", "[device][bus]")
{
    hand_made_engine e({.window = 64});
    device::queue_producer<P, u32, edge::R6_retired, edge::A6_notified> retired(e.s.retired_queue());
    device::notifier<P> notifier(e.m, e.s, ~u64{0} >> 2);
    const auto retire = [&](u64 position) {
        const u32 slot = static_cast<u32>(position);
        P::set(e.s.task_id[slot], position);
        retired.push(e.team, slot);
    };
    for (u64 p = 1; p < 32; ++p) retire(p);
    REQUIRE(notifier.step(e.team)); // one word; the mark stays, since 0 is missing
    retire(40);
    retire(0);
    REQUIRE(notifier.step(e.team)); // two words, one mark
    for (u32 i = 2; i < 33; ++i) REQUIRE_FALSE(notifier.step(e.team));
    notifier.save(e.team);
    CHECK(count(e, device::completion_words_told) == 3);
    CHECK(count(e, device::low_water_told) == 1);
    CHECK(count(e, device::command_looks) == 33 / P::look_around + 1);
    CHECK(count(e, device::failures_told) == 0);
    CHECK(count(e, device::failure_looks) == 0);
}
