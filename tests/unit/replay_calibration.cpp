// Calibration against a made-up GPU: the solver must meet time and bytes, and say so where it cannot.
#include "trace_catch.hpp"

#include "workloads/replay/calibration.hpp"

#include <algorithm>

using namespace slipstream;
using namespace slipstream::workloads;

namespace {

// A GPU with a launch floor, a bandwidth, and arithmetic that partly hides behind streaming.
class made_up_gpu final : public launch_timer {
public:
    double floor_us = 2;
    double us_per_mb = 0.5;
    double us_per_iteration = 0.0035;
    double overlap = 0; // share of the streaming that hides the arithmetic
    int launches = 0;

    double run(u32, const void* task, u32 blocks, double) override
    {
        ++launches;
        const auto& w = *static_cast<const calibrated_work*>(task);
        const double streaming = static_cast<double>(w.bytes_moved(blocks)) / 1e6 * us_per_mb;
        const double arithmetic = w.iterations * us_per_iteration;
        return floor_us + std::max(streaming, (1 - overlap) * streaming + arithmetic);
    }
};

calibrated solve(made_up_gpu& gpu, double us, u64 bytes, u32 blocks = 64)
{
    calibrated_work given;
    return calibrate(gpu, {0, blocks, us, bytes, [&](const calibrated_work& w) {
                               given = w;
                               return static_cast<const void*>(&given);
                           }});
}

} // namespace

TEST_CASE("work moves at least the bytes asked for, within 32 bytes a block and pass", "[replay]")
{
    for (const u32 blocks : {1u, 7u, 132u, 65536u})
        for (const u64 bytes : {u64{1}, u64{32}, u64{1000}, u64{1} << 20, u64{3} << 30}) {
            const calibrated_work w = work_that_moves(bytes, blocks);
            CHECK(w.bytes_moved(blocks) >= bytes);
            CHECK(w.bytes_moved(blocks) <= bytes + u64{32} * blocks * (w.passes + 1));
            CHECK(w.bytes_of_scratch(blocks) <= scratch_bytes_of_task);
        }
    CHECK(work_that_moves(0, 5).bytes_moved(5) == 0);
}

TEST_CASE("a body takes the recorded time and moves the recorded bytes", "[replay]")
{
    for (const double overlap : {0.0, 0.5, 1.0})
        for (const double us : {5.0, 17.0, 400.0, 20000.0})
            for (const u64 bytes : {u64{0}, u64{4096}, u64{2'000'000}}) {
                made_up_gpu gpu;
                gpu.overlap = overlap;
                const calibrated found = solve(gpu, us, bytes);
                CAPTURE(overlap, us, bytes, found.work.iterations);
                CHECK(found.launched_us == Approx(us).epsilon(0.02));
                CHECK(found.work.bytes_moved(64) >= bytes);
                CHECK_FALSE(found.too_short);
                CHECK_FALSE(found.fewer_bytes);
                CHECK(gpu.launches <= 12);
            }
}

TEST_CASE("a task below the launch floor gets no work and says so", "[replay]")
{
    made_up_gpu gpu;
    const calibrated found = solve(gpu, 1.2, 1 << 20);
    CHECK(found.too_short);
    CHECK(found.fewer_bytes);
    CHECK(found.work.iterations == 0);
    CHECK(found.work.bytes_moved(64) == 0);
    CHECK(found.launched_us == Approx(2));
}

TEST_CASE("time has priority over bytes that cannot be moved in it", "[replay]")
{
    made_up_gpu gpu;
    const calibrated found = solve(gpu, 12, u64{2'500'000'000}); // a gather from a table of 2.5 GB
    CHECK(found.fewer_bytes);
    CHECK_FALSE(found.too_short);
    CHECK(found.launched_us == Approx(12).epsilon(0.03));
    CHECK(found.work.bytes_moved(64) > 10'000'000);
}
