#include "tools/slipstream/spread.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::cli {

spread spread_of(std::vector<double> values)
{
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(values.size() - 1);
        const auto low = static_cast<std::size_t>(std::floor(place));
        const std::size_t high = std::min(low + 1, values.size() - 1);
        return values[low] + (values[high] - values[low]) * (place - std::floor(place));
    };
    return {at(0.5), at(0.1), at(0.9), at(0.99)};
}

} // namespace slipstream::cli
