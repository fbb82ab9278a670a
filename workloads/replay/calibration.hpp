// Finds the work that makes a synthetic body take the recorded time and move the recorded bytes when it is launched alone.
#pragma once
#include "workloads/replay/calibrated_work.hpp"
#include "workloads/replay/launch_timer.hpp"
#include <functional>

namespace slipstream::workloads {

/// Scratch memory of all bodies together, and of one body at most: more than an H200's L2 (50 MiB), so that large bodies stream
/// from HBM as they did when they were recorded.
inline constexpr u64 scratch_bytes_total = u64{256} << 20;
inline constexpr u64 scratch_bytes_of_task = u64{128} << 20;

/// Work that moves at least `bytes` (rounded up to 32 B a block) and does no arithmetic. `scratch` is left for the caller.
calibrated_work work_that_moves(u64 bytes, u32 blocks);

struct calibration_target {
    u32 type = 0;
    u32 blocks = 1;
    double us = 0;
    u64 bytes = 0;
    /// The task struct with this work in it; stays valid until the next call. Points at scratch memory large enough.
    std::function<const void*(const calibrated_work&)> task_with;
};

struct calibrated {
    calibrated_work work;
    double launched_us = 0;
    bool too_short = false;  ///< even with no work beside the digest the kernel takes longer than recorded
    bool fewer_bytes = false; ///< the recorded bytes cannot be moved in the recorded time: time has priority
};

/// A handful of launches. The time is met within about 2 %, the launch floor permitting.
calibrated calibrate(launch_timer& timer, const calibration_target& target);

} // namespace slipstream::workloads
