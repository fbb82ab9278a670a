// Explicit order edges: what streams and recorded synchronisation imposed, where byte ranges are not known.
#pragma once

#include <cstdint>
#include <vector>

#include "kineto_log.hpp"
#include "recorded_trace.hpp"

namespace slipstream::trace {

// One recorded synchronisation, resolved to submission times.
struct sync_point {
    kineto_log::sync_kind kind = kineto_log::sync_kind::host_waits_device;
    double submit_us = 0;      // tasks submitted later are held back
    double recorded_us = 0;    // tasks submitted earlier on the awaited stream are waited for
    std::uint32_t device = 0;
    std::uint64_t stream = no_id, wait_on_stream = no_id;
};

// Fills `after` of every task: its predecessor in the same stream, and what `syncs` (sorted by submit_us) add. Waits of
// the host hold back what is submitted later, on every stream. More edges than the bound: std::length_error.
void chain_streams(std::vector<recorded_task>& tasks, const std::vector<sync_point>& syncs, std::uint64_t edges_max);

// For traces with ranges: a task without known accesses keeps its place in its stream (after everything before it,
// before everything behind it); tasks with ranges are left to their hazards. Adds at most two edges per task.
void fence_unknown_tasks(std::vector<recorded_task>& tasks);

}  // namespace slipstream::trace
