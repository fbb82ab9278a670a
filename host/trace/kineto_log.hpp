// What one Kineto (torch.profiler, Chrome JSON) file says, reduced to the events that an import needs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "import_limits.hpp"
#include "recorded_trace.hpp"
#include "string_table.hpp"

namespace slipstream::trace {

inline constexpr std::uint64_t no_id = ~std::uint64_t{0};

struct kineto_log {
    struct gpu_event {
        task_kind kind = task_kind::kernel;
        std::uint32_t name = 0;  // in `names`
        double start_us = 0, duration_us = 0;
        std::uint64_t correlation = no_id;
        std::uint64_t external = no_id;  // the launching operator; in 2023 files just the correlation again
        std::uint32_t device = 0, stream = 0, shared_bytes = 0;
        std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
        bool has_grid = false;
        bool has_bytes = false;
        std::uint64_t bytes = 0;
        std::uint64_t event = 0;  // position in the file
    };
    struct runtime_call {
        double start_us = 0;
        std::uint64_t correlation = no_id;
        std::uint32_t thread = 0;  // in `threads`
    };
    struct cpu_op {
        std::uint32_t name = 0;
        std::uint32_t thread = 0;
        double start_us = 0, duration_us = 0;
        std::uint64_t external = no_id;
        std::uint64_t record_function = no_id;  // newer files; 0 means that no observer was active
        std::uint64_t event = 0;
    };
    enum class sync_kind : std::uint8_t { stream_waits_event, host_waits_event, host_waits_stream, host_waits_device };
    struct sync_event {
        sync_kind kind = sync_kind::host_waits_device;
        double start_us = 0;
        std::uint64_t correlation = no_id;
        std::uint32_t device = 0;
        std::uint64_t stream = no_id;             // that waits
        std::uint64_t wait_on_stream = no_id;     // that is waited for
        std::uint64_t record_correlation = no_id; // of the cudaEventRecord call that is waited for
    };

    std::vector<gpu_event> gpu_events;
    std::vector<runtime_call> runtime_calls;  // calls with a correlation id
    std::vector<cpu_op> cpu_ops;              // operators and user annotations, file order; only when asked for
    std::vector<sync_event> sync_events;
    string_table names;
    string_table threads;
    std::uint64_t events = 0;   // all that the file holds
    std::uint64_t process = no_id;  // of the operators
    std::uint64_t sync_events_without_ids = 0;
};

// `keep_ops` is false for an import without an execution trace: operators are most of a file. Throws import_error.
kineto_log read_kineto_log(const std::string& path, const import_limits& limits, bool keep_ops);

}  // namespace slipstream::trace
