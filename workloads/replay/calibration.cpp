#include "workloads/replay/calibration.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::workloads {
namespace {

constexpr double tolerance = 0.02;
constexpr double us_per_iteration_guess = 0.0021; // 4 cycles at 1.9 GHz
constexpr double iterations_max = 4e9;
constexpr int corrections = 3;

} // namespace

calibrated_work work_that_moves(u64 bytes, u32 blocks)
{
    calibrated_work w;
    if (bytes == 0) return w;
    const u64 chunks = (bytes / 32 + (bytes % 32 != 0) + blocks - 1) / blocks;
    const u64 chunks_max = std::max<u64>(1, scratch_bytes_of_task / 16 / blocks);
    const u64 passes = (chunks + chunks_max - 1) / chunks_max;
    w.chunks = static_cast<u32>((chunks + passes - 1) / passes);
    w.passes = static_cast<u32>(std::min<u64>(passes, ~u32{0}));
    return w;
}

calibrated calibrate(launch_timer& timer, const calibration_target& target)
{
    const auto time_of = [&](const calibrated_work& w) {
        return timer.run(target.type, target.task_with(w), target.blocks, target.us);
    };
    calibrated out;
    const double digest_us = time_of(out.work);
    out.launched_us = digest_us;
    if (digest_us >= target.us) {
        out.too_short = digest_us > target.us * (1 + tolerance);
        out.fewer_bytes = target.bytes != 0;
        return out;
    }

    // Bytes first: what time remains is for the arithmetic.
    u64 bytes = target.bytes;
    out.work = work_that_moves(bytes, target.blocks);
    if (bytes != 0) out.launched_us = time_of(out.work);
    for (int i = 0; i < corrections && out.launched_us > target.us * (1 + tolerance); ++i) {
        const double share = (target.us - digest_us) / (out.launched_us - digest_us);
        bytes = static_cast<u64>(static_cast<double>(bytes) * share * 0.99);
        out.work = work_that_moves(bytes, target.blocks);
        out.launched_us = time_of(out.work);
        out.fewer_bytes = true;
    }
    if (out.launched_us >= target.us) return out;

    const double streaming_us = out.launched_us;
    double iterations = (target.us - streaming_us) / us_per_iteration_guess;
    double best_error = target.us - streaming_us;
    calibrated_work w = out.work;
    for (int i = 0; i <= corrections; ++i) {
        w.iterations = static_cast<u32>(std::clamp(std::round(iterations), 0.0, iterations_max));
        const double us = time_of(w);
        if (std::abs(us - target.us) < best_error) {
            best_error = std::abs(us - target.us);
            out.work = w;
            out.launched_us = us;
        }
        if (best_error <= tolerance / 2 * target.us) break;
        // Streaming and arithmetic add up for one block an SM and overlap for several: the line through here and the start of
        // the arithmetic converges either way.
        iterations *= us > streaming_us * 1.001 ? (target.us - streaming_us) / (us - streaming_us) : 2;
    }
    return out;
}

} // namespace slipstream::workloads
