// Bytes that crossed the bus between host memory and the GPU, counted by the engine's own protocol.
#pragma once
#include <array>
#include <slipstream/abi/portable.hpp>

namespace slipstream {

/// Payload of all accesses that the resident kernel made to pinned memory since the runtime was made. The host device counts the
/// same accesses, which there cross no bus.
/// Not in it: packet headers; what a launch and a park move (arguments, a few counters); what bodies read and write themselves,
/// copies between host and device included.
struct bus_traffic {
    // to the GPU
    u64 ring_payload = 0; ///< submissions: ring slots taken in, 64 bytes each
    u64 ring_polls = 0;   ///< loads of ring slots that brought nothing new: not yet written,
                          ///< or read ahead and not taken before a park
    u64 handles = 0;      ///< the table of registered handles, each once
    u64 commands = 0;     ///< command word, CUDA streams' join words, the host's progress with failure records
    // to the host
    u64 ring_progress = 0; ///< ring slots that may be overwritten
    u64 completions = 0;   ///< completion bits, low-water marks and early marks
    u64 failures = 0;      ///< failure records
    u64 heartbeats = 0;
    u64 recorder = 0;      ///< flight recorder, 16 bytes for each run of blocks picked up
    u64 flight_log = 0;    ///< history, when config::flight_log asks for it

    u64 to_gpu() const { return ring_payload + ring_polls + handles + commands; }
    u64 to_host() const { return ring_progress + completions + failures + heartbeats + recorder + flight_log; }

    using count = u64 bus_traffic::*;
    static constexpr auto all()
    {
        return std::array<count, 10>{&bus_traffic::ring_payload, &bus_traffic::ring_polls, &bus_traffic::handles,
                                     &bus_traffic::commands, &bus_traffic::ring_progress, &bus_traffic::completions,
                                     &bus_traffic::failures, &bus_traffic::heartbeats, &bus_traffic::recorder,
                                     &bus_traffic::flight_log};
    }
    /// Between two readings of one runtime, the earlier one on the right.
    friend bus_traffic operator-(bus_traffic later, const bus_traffic& earlier)
    {
        for (const count part : all()) later.*part -= earlier.*part;
        return later;
    }
    friend bus_traffic operator+(bus_traffic a, const bus_traffic& b)
    {
        for (const count part : all()) a.*part += b.*part;
        return a;
    }
};

} // namespace slipstream
