// Tasks of one block that write four bytes each and depend on nothing that is in flight with them.
#pragma once
#include "tools/slipstream/bench/task_stream.hpp"

namespace slipstream::bench {

/// What such a task declares.
enum class declared {
    handles,     ///< two inputs, one output, all registered
    one_range,   ///< its own four bytes
    four_ranges, ///< three inputs, one in-out: disjoint, aligned to nothing, interleaved in one buffer of 1 MB of each part
    nothing,     ///< ordering::no_access
};

/// Of an engine of several parts, each has memory of its own and the tasks go to them in turn; those that declare nothing excepted.
/// `crossing_percent`, with handles and several parts, 1 to 50, or 100: so many of a hundred read one input of the next part.
std::unique_ptr<task_stream> make_independent_tasks(bench_runtime& runtime, bool lose_a_task, declared what, u64 tasks_max,
                                                    u32 crossing_percent = 0);

/// Tasks that declare `ranges` of 8 bytes each, at most ranges_most, disjoint from those of all tasks in flight; one is written.
std::unique_ptr<task_stream> make_tasks_of_ranges(bench_runtime& runtime, bool lose_a_task, u32 ranges);
inline constexpr u32 ranges_most = 64;

/// Memory that they need of each part for runs of at most `tasks_max` tasks.
u64 independent_tasks_bytes(u64 tasks_max);

} // namespace slipstream::bench
