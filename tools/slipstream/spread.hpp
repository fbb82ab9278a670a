// Median and percentiles of repeated measurements.
#pragma once
#include <limits>
#include <vector>

namespace slipstream::cli {

struct spread {
    double median = 0, p10 = 0, p90 = 0;
    double p99 = std::numeric_limits<double>::quiet_NaN(); ///< not a number where it is not taken
};

/// Percentiles by linear interpolation; zeros and no p99 for an empty list.
spread spread_of(std::vector<double> values);

} // namespace slipstream::cli
