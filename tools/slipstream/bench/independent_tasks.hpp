// Tasks of one block that write four bytes each and depend on nothing that is in flight with them.
#pragma once
#include "tools/slipstream/bench/task_stream.hpp"

namespace slipstream::bench {

/// What such a task declares.
enum class declared {
    handles,     ///< two inputs, one output, all registered
    one_range,   ///< its own four bytes
    four_ranges, ///< three inputs, one in-out: disjoint, aligned to nothing, interleaved in one buffer of 1 MB
    nothing,     ///< ordering::no_access
};

std::unique_ptr<task_stream> make_independent_tasks(bench_runtime& runtime, bool lose_a_task, declared what, u64 tasks_max);

/// Tasks that declare `ranges` of 8 bytes each, at most ranges_most, disjoint from those of all tasks in flight; one is written.
std::unique_ptr<task_stream> make_tasks_of_ranges(bench_runtime& runtime, bool lose_a_task, u32 ranges);
inline constexpr u32 ranges_most = 64;

/// Device memory that they need for runs of at most `tasks_max` tasks.
u64 independent_tasks_bytes(u64 tasks_max);

} // namespace slipstream::bench
