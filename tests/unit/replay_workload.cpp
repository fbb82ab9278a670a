// A made-up recording replayed on the host device: every engine verifies, missing edges are seen.
#include "trace_catch.hpp"

#include "workloads/replay/replay.hpp"

#include <random>
#include <slipstream/status.hpp>

using namespace slipstream;
using namespace slipstream::workloads;

namespace {

trace::recorded_task task_of(const std::string& name, u32 blocks, std::vector<trace::byte_access> accesses)
{
    trace::recorded_task t;
    t.name = name;
    t.duration_us = 3;
    t.duration_known = true;
    t.accesses_known = !accesses.empty();
    t.bytes_known = true;
    t.grid = {blocks, 1, 1};
    t.block = {128, 1, 1};
    for (const auto& a : accesses) t.moved_bytes += a.hi - a.lo;
    t.accesses = std::move(accesses);
    return t;
}

trace::byte_access read(u32 space, u64 lo, u64 hi) { return {space, lo, hi, true, false}; }
trace::byte_access write(u32 space, u64 lo, u64 hi) { return {space, lo, hi, false, true}; }

// Layers of tasks over three storages with partly overlapping ranges; a few tasks know only what they come after.
trace::recorded_trace made_up(u64 seed, u32 tasks)
{
    std::mt19937_64 random(seed);
    trace::recorded_trace out;
    out.dependencies = trace::dependency_source::data;
    out.durations_known = true;
    out.spaces.resize(3);
    for (u32 i = 0; i < tasks; ++i) {
        if (i > 0 && random() % 16 == 0) {
            trace::recorded_task t = task_of("fence", 1, {});
            t.after = {static_cast<u32>(random() % i)};
            out.tasks.push_back(std::move(t));
            continue;
        }
        const auto range = [&](bool writes) {
            const u64 lo = random() % 1000, hi = lo + 1 + random() % 200;
            const auto space = static_cast<u32>(random() % 3);
            return writes ? write(space, lo, hi) : read(space, lo, hi);
        };
        out.tasks.push_back(task_of("kernel", 1 + static_cast<u32>(random() % 5), {range(false), range(false), range(true)}));
    }
    return out;
}

// X -> Y, Y is read, X is written: edges of every kind that can be broken so that it shows.
trace::recorded_trace breakable()
{
    trace::recorded_trace out = made_up(1, 0);
    const auto add = [&](std::vector<trace::byte_access> accesses) { out.tasks.push_back(task_of("t", 1, std::move(accesses))); };
    add({write(0, 0, 64)});
    add({read(0, 0, 64), write(1, 0, 64)});                    // waits for 0
    add({read(1, 0, 64), write(2, 0, 64)});                    // RAW on 1
    add({read(0, 512, 576), write(1, 128, 192)});
    add({write(0, 1024, 1088)});
    add({read(0, 1024, 1088), read(1, 1024, 1088)});           // waits for 4
    add({write(1, 1024, 1088)});                               // WAR on 5
    add({write(2, 1024, 1088)});
    add({read(2, 1024, 1088), write(0, 2048, 2112)});          // waits for 7
    add({write(0, 2048, 2112)});                               // WAW on 8
    return out;
}

verdict run(const trace::recorded_trace& recorded, const std::string& engine_name, u32 window = 64, u32 ring = 64,
            const std::string& break_kind = {})
{
    const auto device = engines::open_device("host");
    replay_options how;
    how.break_kind = break_kind;
    replay load(*device, recorded, how);
    config c;
    c.window = window;
    c.ring_slots = ring;
    c.memory_bytes = 1 << 20;
    c.staging_bytes = 1 << 20;
    c.rings = 1;
    const auto engine = engines::make_engine(engine_name, c, *device, load.program().image());
    engine->prepare(load.program());
    verdict v;
    for (int i = 0; i < 2; ++i) {
        load.reset();
        CHECK_FALSE(load.verify().verified); // nothing has run
        engine->run(load.program());
        v = load.verify();
        if (!v.verified) break;
    }
    return v;
}

bool noted(const replay& load, const std::string& part)
{
    for (const std::string& note : load.notes())
        if (note.find(part) != std::string::npos) return true;
    return false;
}

} // namespace

TEST_CASE("a replayed trace verifies on every engine of the host", "[replay]")
{
    for (const u64 seed : {1u, 2u, 3u})
        for (const std::string& engine : engines::engine_names(false)) {
            const verdict v = run(made_up(seed, 200), engine);
            CAPTURE(seed, engine, v.detail);
            CHECK(v.verified);
        }
}

TEST_CASE("a replayed trace verifies with the smallest window and ring", "[replay]")
{
    const verdict v = run(made_up(4, 200), "slipstream", 16, 4);
    CAPTURE(v.detail);
    CHECK(v.verified);
}

TEST_CASE("a trace of stream order is verified too", "[replay]")
{
    trace::recorded_trace recorded;
    for (u32 i = 0; i < 50; ++i) {
        recorded.tasks.push_back(task_of("kernel", 2, {}));
        if (i >= 2) recorded.tasks.back().after = {i - 2};
    }
    for (const std::string& engine : engines::engine_names(false)) CHECK(run(recorded, engine).verified);
}

TEST_CASE("a replay without one RAW, WAR or WAW edge does not verify", "[replay][broken]")
{
    for (const std::string kind : {"RAW", "WAR", "WAW"}) {
        CAPTURE(kind);
        CHECK_FALSE(run(breakable(), "slipstream", 64, 64, kind).verified);
        CHECK_FALSE(run(breakable(), "slipstream-hostdep", 64, 64, kind).verified);
        CHECK(run(breakable(), "serial", 64, 64, kind).verified); // program order needs no edges
    }
    CHECK_THROWS_AS(run(breakable(), "slipstream", 64, 64, "SIDEWAYS"), config_error);
}

TEST_CASE("a replay says what it assumes", "[replay]")
{
    trace::recorded_trace recorded = made_up(1, 4);
    recorded.tasks[0].grid = {1000, 1000, 4};
    recorded.tasks[1].duration_known = false;
    recorded.tasks[2].bytes_known = false;
    recorded.tasks[2].moved_bytes = 1000;
    recorded.tasks[3].kind = trace::task_kind::memcpy;
    const auto device = engines::open_device("host");
    const replay load(*device, recorded, {});
    CHECK(load.program().tasks()[0].blocks == 256);
    CHECK(noted(load, "4000000"));
    CHECK(noted(load, "5 us each are assumed"));
    CHECK(noted(load, "assumed, the ranges of their operators"));
    CHECK(noted(load, "without a recorded grid"));
    CHECK(noted(load, "recorded block sizes: 128 (3 tasks)"));
    CHECK_FALSE(load.solo().measured);
}

TEST_CASE("a trace without tasks is refused, and a paced one without times", "[replay]")
{
    const auto device = engines::open_device("host");
    CHECK_THROWS_AS(replay(*device, trace::recorded_trace{}, {}), config_error);
    trace::recorded_trace timeless = made_up(1, 4);
    timeless.durations_known = false;
    CHECK_THROWS_AS(arrivals_of(timeless, engines::arrival_mode::paced), config_error);
    CHECK(arrivals_of(timeless, engines::arrival_mode::preloaded).at_us.empty());
}

TEST_CASE("a paced replay that would wait for years is refused", "[replay]")
{
    trace::recorded_trace recorded = made_up(1, 4);
    recorded.durations_known = true;
    for (trace::recorded_task& t : recorded.tasks) t.submit_us = 0;
    recorded.tasks.back().submit_us = 1e17;
    std::string said;
    try {
        arrivals_of(recorded, engines::arrival_mode::paced);
    } catch (const config_error& e) {
        said = e.what();
    }
    INFO(said);
    CHECK(said.find("over 100000000000 s") != std::string::npos);
    CHECK(said.find("replay back-to-back") != std::string::npos);
    CHECK(arrivals_of(recorded, engines::arrival_mode::back_to_back).at_us.empty());
    recorded.tasks.back().submit_us = 599e6;
    CHECK(arrivals_of(recorded, engines::arrival_mode::paced).at_us.back() == 599e6);
}
