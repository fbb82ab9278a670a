#include "workloads/replay/resident_times.hpp"
#include <algorithm>
#include <map>

namespace slipstream::workloads {
namespace {

constexpr u32 runs = 3;
constexpr u32 log_entries = 4096; // of each worker: 128 KiB of pinned memory

// What one run leaves in the log of a worker at most: a worker draws its blocks of a large task in about 16 chunks, and up to
// twice as many when others are late.
u32 entries_of(u32 blocks, u32 workers) { return std::min(40u, blocks / std::max(workers, 1u) + 1); }

struct span_of_blocks {
    u64 start_ns = ~u64{0};
    u64 end_ns = 0;
    u64 blocks = 0;
};

} // namespace

std::vector<double> resident_times(const config& configuration, const kernel_image& image, std::span<const solo_request> requests)
{
    config c = configuration;
    c.flight_log = log_entries;
    std::vector<double> out(requests.size(), 0.0);
    // A log is never emptied: each runtime takes as many tasks as its log surely holds.
    for (std::size_t first = 0; first < requests.size();) {
        runtime_base runtime(c, image);
        std::map<std::pair<u32, u64>, std::pair<std::size_t, span_of_blocks>> spans; // by handle
        std::size_t next = first;
        for (u32 entries = 0; next < requests.size(); ++next) {
            const solo_request& r = requests[next];
            entries += runs * entries_of(r.blocks, runtime.workers());
            if (entries > log_entries && next != first) break;
            for (u32 k = 0; k < runs; ++k) {
                submit_options how;
                how.blocks = r.blocks;
                how.order = ordering::no_access;
                const task_handle handle = runtime.submit_bytes(r.type, r.task, how);
                if (!runtime.wait(handle).ok()) throw device_error("calibration: a body failed when it ran alone");
                spans[{handle.ring, handle.position}] = {next, {}};
            }
        }
        first = next;
        runtime.pause();
        for (const flight_entry& entry : runtime.flight_log()) {
            const auto it = spans.find({entry.task.ring, entry.task.position});
            if (it == spans.end()) continue;
            span_of_blocks& s = it->second.second;
            s.start_ns = std::min(s.start_ns, entry.start_ns);
            s.end_ns = std::max(s.end_ns, entry.end_ns);
            s.blocks += entry.blocks;
        }
        runtime.resume();
        for (const auto& [handle, found] : spans) {
            const auto& [request, s] = found;
            if (s.blocks < requests[request].blocks || s.end_ns < s.start_ns) continue;
            const double us = static_cast<double>(s.end_ns - s.start_ns) / 1e3;
            if (out[request] == 0 || us < out[request]) out[request] = us;
        }
    }
    return out;
}

} // namespace slipstream::workloads
