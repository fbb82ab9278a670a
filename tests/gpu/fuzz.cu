// Random streams against the sequential run on the GPU, and proof that the comparison can fail.
//   SLIPSTREAM_SEED=n replays one seed.
#include "gpu_tasks.cuh"
#include "host/runtime_core.hpp"

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Returns how many tasks were mailed to all workers at once.
u32 fuzz(u64 seed, u32 window, u32 per_sm, u32 threads)
{
    std::mt19937_64 random(seed);
    auto c = gpu_config();
    c.window = window;
    c.workers_per_sm = per_sm;
    c.ring_slots = std::vector<u32>{4, 8, 64, 1024}[random() % 4];
    c.rings = std::max(threads, 1 + static_cast<u32>(random() % 4));
    if (random() % 3 == 0) c.residency = 3ms;
    stream_shape shape;
    shape.threads = threads;
    shape.tasks = 12000;
    shape.spin_max = 40;
    shape.blocks_max = random() % 3 ? 8 : 400;
    shape.row_blocks_max = random() % 2 ? 8 : 140; // 131 or 262 workers, or thereabouts
    shape.matrix_rows = 24 + static_cast<u32>(random() % 100);
    std::printf("seed %llu: window %u ring %u threads %u workers per SM %u blocks %u residency %lld ms\n",
                static_cast<unsigned long long>(seed), window, c.ring_slots, threads, per_sm, shape.blocks_max,
                static_cast<long long>(c.residency.count()));
    std::fflush(stdout);
    gpu_engine rt(c);
    const std::string verdict = run_stream(rt, digest_stream(seed, shape), [](u32) {});
    INFO(verdict);
    REQUIRE(verdict.empty());
    rt.pause();
    return rt.core().broadcasts();
}

void fuzz_all(u64 first_seed, u32 per_sm, std::vector<u32> windows)
{
    const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
    u64 seed = first_seed, broadcasts = 0;
    for (const u32 window : windows)
        for (const u32 threads : {1u, 3u, 1u, 4u}) {
            broadcasts += fuzz(given ? given : seed, window, per_sm, threads);
            ++seed;
        }
    CHECK(broadcasts > 0); // or the streams are not what they are meant to be
}

} // namespace

TEST_CASE("random streams equal the sequential run at every window, ring and thread count", "[gpu][fuzz]")
{
    in_time(30, [] { fuzz_all(5000, 1, {16, 64, 512, 1024}); });
}

// Windows above 256 fit, too, since the control block has an SM to itself.
TEST_CASE("random streams equal the sequential run with two workers on an SM", "[gpu][fuzz][two_per_sm]")
{
    in_time(30, [] { fuzz_all(6000, 2, {16, 64, 256, 512, 1024}); });
}

// The whole life of a kernel in one launch: what the sanitizers see of the engine (tests/gpu/sanitize).
TEST_CASE("batch mode: a random stream of every kind of access equals the sequential run", "[gpu][fuzz]")
{
    in_time(60, [] {
        for (const u32 window : {16u, 64u}) {
            auto c = gpu_config();
            c.batch = true;
            c.window = window;
            c.ring_slots = 16384;
            gpu_engine rt(c);
            stream_shape shape;
            shape.tasks = 300;
            const digest_stream stream(7000 + window, shape);
            std::vector<u64> memory = stream.initial();
            buffer<u64> cells(rt, memory.size());
            buffer<cell_op> ops(rt, stream.ops().size());
            const auto copy = [](void* to, const void* from, u64 bytes) {
                REQUIRE(cudaMemcpy(to, from, bytes, cudaMemcpyDefault) == cudaSuccess);
            };
            copy(ops.data(), stream.ops().data(), stream.ops().size() * sizeof(cell_op));
            copy(cells.data(), memory.data(), memory.size() * sizeof(u64));
            const auto handles = stream.register_handles(rt, cells.data());
            const task_handle first = rt.submit(marker_task{});
            for (u32 t = 0; t < shape.tasks; ++t)
                stream.submit(rt, t, cells.data(), ops.data(), handles, {first.ring}, {first.position + 1});
            rt.run_batch();
            copy(memory.data(), cells.data(), memory.size() * sizeof(u64));
            const std::string verdict = stream.compare(memory);
            INFO("window " << window << ": " << verdict);
            CHECK(verdict.empty());
        }
    });
}

TEST_CASE("batch mode: who reads what a failed task was to write is cancelled, others run", "[gpu]")
{
    in_time(20, [] {
        auto c = gpu_config();
        c.batch = true;
        gpu_engine rt(c);
        buffer<u64> spoilt(rt, 64), sound(rt, 64);
        std::vector<u64> ones(64, 1), x(64);
        spoilt.upload(ones);
        sound.upload(ones);
        const task_handle failed = rt.submit(fail_task{17, 1}, {.blocks = 2, .accesses = writes(spoilt.data(), 512)});
        const task_handle cancelled = rt.submit(step_task{spoilt});
        const task_handle ran = rt.submit(step_task{sound});
        rt.run_batch();
        CHECK(rt.query(failed).state == task_state::failed);
        CHECK(rt.query(failed).code == 17);
        CHECK(rt.query(cancelled).state == task_state::cancelled);
        CHECK(rt.query(ran).ok());
        REQUIRE(cudaMemcpy(x.data(), sound.data(), 512, cudaMemcpyDeviceToHost) == cudaSuccess);
        CHECK(x == std::vector<u64>(64, stepped(1, 1)));
    });
}

TEST_CASE("a removed RAW, WAR or WAW access is noticed by the digest on the GPU", "[gpu][fuzz]")
{
    struct edge_case {
        const char* name;
        u16 first, second;
    };
    for (const auto& e : {edge_case{"RAW", 2, 1}, edge_case{"WAR", 1, 2}, edge_case{"WAW", 2, 2}})
        in_time(10, [e] {
            for (const bool hidden : {false, true}) {
                digest_stream stream(7, {.tasks = 2, .whole_per_mille = 0});
                for (u32 t = 0; t < 2; ++t) {
                    planned_task p;
                    p.ops = {{40, 1, 8, 0, t == 0 ? e.first : e.second}};
                    p.handles = {0};
                    p.declared = 1;
                    p.at_ring = t;
                    stream.plan()[t] = p;
                }
                stream.plan()[0].spin = 500'000; // tens of milliseconds before its read and before its write
                if (hidden) {
                    stream.plan()[1].declared = 0;
                    stream.plan()[1].order = ordering::no_access;
                }
                stream.rebuild();
                gpu_engine rt(gpu_config());
                const std::string verdict = run_stream(rt, stream, [](u32) {});
                INFO(e.name << (hidden ? " hidden: " : " declared: ") << verdict);
                CHECK(verdict.empty() != hidden);
            }
        });
}
