// Where the host's clock stands in the device's, from tasks that the host saw from outside.
//
// A task starts on the device after the host began to submit it, and ends before the host has seen it complete. Each such
// task so bounds the difference of the clocks from both sides; of many, the tightest bounds hold. On an H200 the submission
// takes some microseconds to arrive and the completion to come back, so the error bound is of that size; no bound assumes
// that both take equally long.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <span>

namespace slipstream::timeline {

/// One task that ran alone.
struct clock_bracket {
    u64 submitted_ns; ///< host, before the call of submit
    u64 start_ns;     ///< device
    u64 end_ns;       ///< device
    u64 seen_ns;      ///< host, after the wait for it
};

struct clock_alignment {
    std::int64_t offset_ns = 0; ///< device clock minus host clock
    u64 error_ns = 0;           ///< at most so far off; drift during the run, a few parts in a million, is not in it

    std::int64_t host_ns(u64 device_ns) const { return static_cast<std::int64_t>(device_ns) - offset_ns; }
};

/// The middle between the tightest bounds; of no bracket, no offset.
clock_alignment align_clocks(std::span<const clock_bracket> brackets);

} // namespace slipstream::timeline
