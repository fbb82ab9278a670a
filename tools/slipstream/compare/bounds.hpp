// What no schedule can beat: a program's critical path and its work, with every task's own duration and without any overhead.
#pragma once
#include "host/engines/program.hpp"
#include <algorithm>
#include <span>

namespace slipstream::cli {

/// A task alone on the device.
struct task_time {
    double span_us = 0; ///< from its first block's start to its last block's end
    double work_us = 0; ///< sum over its blocks
};

struct bounds {
    double critical_path_us = 0; ///< longest path over the program's own edges
    u32 critical_path_tasks = 0; ///< tasks on it
    double area_us = 0;          ///< the work of all tasks, shared evenly by all workers

    double lowest_us() const { return std::max(critical_path_us, area_us); }
};

/// `times` holds one entry for each task of the program. Edges are the engines' own: hazards between accesses, and `after`.
bounds bounds_of(const engines::program& program, std::span<const task_time> times, u32 workers);

} // namespace slipstream::cli
