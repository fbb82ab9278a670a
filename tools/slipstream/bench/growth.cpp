#include "tools/slipstream/bench/growth.hpp"
#include <algorithm>
#include <cmath>
#include <limits>

namespace slipstream::bench {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

} // namespace

double worst_doubling(const growth_sweep& points)
{
    double worst = points.size() < 2 ? no_number : 0;
    for (std::size_t i = 1; i < points.size(); ++i) {
        if (!(points[i - 1].cost > 0 && points[i].cost > 0)) return no_number; // a slope of noise is no cost
        const double doublings = std::log2(points[i].size / points[i - 1].size);
        worst = std::max(worst, std::pow(points[i].cost / points[i - 1].cost, 1 / doublings));
    }
    return worst;
}

double long_run_factor(const growth_sweep& runs)
{
    for (const growth_point& p : runs)
        if (p.size * 100 == runs.back().size) return runs.back().cost / (100 * p.cost);
    return no_number;
}

std::vector<u64> run_lengths(u64 most)
{
    std::vector<u64> out;
    for (u64 decade = most < 100'000 ? 1 : 1000; decade <= most; decade *= 10)
        for (const u64 n : {decade, 2 * decade, 5 * decade})
            if (n <= most) out.push_back(n);
    return out;
}

} // namespace slipstream::bench
