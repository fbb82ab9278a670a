#include "host/timeline/clock_alignment.hpp"
#include <algorithm>
#include <cstdlib>
#include <limits>

namespace slipstream::timeline {

clock_alignment align_clocks(std::span<const clock_bracket> brackets)
{
    if (brackets.empty()) return {};
    std::int64_t low = std::numeric_limits<std::int64_t>::min();
    std::int64_t high = std::numeric_limits<std::int64_t>::max();
    for (const clock_bracket& b : brackets) {
        low = std::max(low, static_cast<std::int64_t>(b.end_ns - b.seen_ns));
        high = std::min(high, static_cast<std::int64_t>(b.start_ns - b.submitted_ns));
    }
    // A coarse device clock may cross the bounds; the middle and half their distance hold all the same.
    return {low + (high - low) / 2, static_cast<u64>((std::abs(high - low) + 1) / 2)};
}

} // namespace slipstream::timeline
