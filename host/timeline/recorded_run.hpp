// One run of a program on an engine over a runtime, with its history: what each worker did when, how full window and ring were.
#pragma once
#include "host/engines/engine.hpp"
#include "host/timeline/clock_alignment.hpp"
#include <slipstream/flight_log.hpp>

namespace slipstream::timeline {

/// A run of blocks of one of the program's tasks. Times are nanoseconds of the host's clock since the run began, which is when
/// its makespan begins; they may lie before it or after its end by the error of the alignment.
struct task_run {
    u32 task; ///< its number in the program
    task_handle handle;
    u32 worker;
    u32 sm;
    u32 first_block;
    u32 blocks;
    bool waited; ///< it was mailed before the tasks it waits for were done; wait_ns: since when its worker waited
    std::int64_t wait_ns;
    std::int64_t start_ns;
    std::int64_t end_ns;
};

/// A value from a moment on.
struct level {
    std::int64_t time_ns;
    u64 value;
};

struct recorded_run {
    std::string engine;
    u32 workers = 0;
    u32 window = 0; ///< slots
    u32 ring = 0;   ///< slots
    engines::run_result result;
    /// When submission began. It lasted result.submit_us: the first part of the run, or, of preloaded tasks, what ended where
    /// the run begins.
    std::int64_t submit_begin_ns = 0;
    clock_alignment clock;
    std::vector<task_run> runs;    ///< by worker, then in order of time
    std::vector<level> occupied;   ///< window slots
    std::vector<level> ring_fill;  ///< ring slots written and not yet taken; both sides' clocks meet here,
                                   ///< so it errs by the alignment
    u64 lost_runs = 0;             ///< runs of blocks that found no room in their worker's history
    u64 lost_samples = 0;          ///< levels, likewise
};

inline constexpr u32 history_entries_min = 64; ///< the runs that align the clocks take some of them

/// Prepares the engine `name` (runs_on_runtime) with a history of `entries` for each worker, and runs the program once,
/// its tasks arriving as `when` says.
recorded_run record_run(const std::string& name, const config& configuration, const engines::device_memory& device,
                        const engines::program& program, u32 entries, const engines::arrivals& when = {});

} // namespace slipstream::timeline
