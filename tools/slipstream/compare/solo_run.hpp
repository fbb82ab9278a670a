// How long each task of a program takes when it has the device to itself: for bounds.
#pragma once
#include "tools/slipstream/compare/bounds.hpp"
#include "workloads/workload.hpp"
#include <slipstream/config.hpp>
#include <slipstream/status.hpp>

namespace slipstream::cli {

/// A task failed, or the results are wrong: a defect, not a bound that could not be measured.
class wrong_solo_run : public error {
    using error::error;
};

struct solo_times {
    std::vector<task_time> tasks; ///< in program order
    u32 workers = 0;              ///< of the engine that ran them
};

/// Runs a copy of the program whose tasks are all whole-memory, one after another therefore, on the slipstream engine, and reads
/// the spans from the workers' flight log. Any program will do; its results are verified. Throws wrong_solo_run when they are wrong
/// or a task fails, device_error when the device is lost, error when a task's span could not be measured.
solo_times time_tasks_alone(workloads::workload& work, const config& configuration, const engines::device_memory& device);

} // namespace slipstream::cli
