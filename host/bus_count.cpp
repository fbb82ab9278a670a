#include "host/bus_count.hpp"
#include <algorithm>

namespace slipstream::host {

using P = device::host_platform;

bus_traffic bus_traffic_of(const host_memory& m)
{
    const auto count = [&](device::bus_count what) { return P::get(m.bus[what]); };
    constexpr u64 word = sizeof(u32);
    constexpr u64 chunk = sizeof(abi::chunk);
    bus_traffic t;
    t.ring_payload = count(device::ring_slots_taken) * sizeof(device::ring_slot<P>);
    t.ring_polls = (count(device::ring_chunks_looked) + count(device::ring_chunks_watched)) * chunk - t.ring_payload;
    t.handles = count(device::handles_read) * sizeof(abi::handle_entry);
    t.commands = (count(device::command_looks) + count(device::failure_looks) + count(device::stream_words_read)) * word;
    t.ring_progress = count(device::consumed_told) * sizeof(u64);
    t.completions = count(device::completion_words_told) * word
        + (count(device::low_water_told) + count(device::tasks_bypassed)) * sizeof(u64);
    t.failures = count(device::failures_told) * chunk;
    t.heartbeats = count(device::command_looks) * word;
    for (u32 w = 0; w < m.n.workers; ++w) {
        const u64 picks = P::get(m.picks[w]);
        t.recorder += picks * chunk;
        t.flight_log += std::min<u64>(picks, m.n.log_capacity) * sizeof(device::flight_log_entry);
    }
    t.flight_log += std::min<u64>(count(device::samples_told), m.n.sample_capacity) * sizeof(device::control_sample);
    return t;
}

} // namespace slipstream::host
