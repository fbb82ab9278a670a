#include "tools/slipstream/compare/crossover.hpp"
#include <cassert>
#include <cmath>
#include <cstddef>

namespace slipstream::cli {
namespace {

/// The x at which a value that goes from y0 (at x0) to y1 (at x1) is 0.
double zero_between(double x0, double y0, double x1, double y1)
{
    const double share = y0 / (y0 - y1);
    if (x0 <= 0) return x0 + share * (x1 - x0);
    return std::exp(std::log(x0) + share * (std::log(x1) - std::log(x0)));
}

} // namespace

std::vector<crossover> crossovers(std::span<const double> x, std::span<const double> ours, std::span<const double> other)
{
    assert(x.size() == ours.size() && x.size() == other.size());
    std::vector<crossover> out;
    double before_x = 0, before = 0; // the last point where the two differ; before == 0: none yet
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!(ours[i] > 0 && other[i] > 0)) continue;
        const double lead = std::log(other[i] / ours[i]); // above 0: ours wins
        if (lead == 0) continue;
        if (before != 0 && (before > 0) != (lead > 0)) out.push_back({zero_between(before_x, before, x[i], lead), lead > 0});
        before_x = x[i];
        before = lead;
    }
    return out;
}

std::optional<double> keeps_from(std::span<const double> x, std::span<const double> share, double level)
{
    assert(x.size() == share.size());
    std::size_t first = x.size(); // of the points at the end that keep the level
    while (first > 0 && share[first - 1] >= level) --first;
    if (first == x.size()) return {};
    if (first == 0) return x[0];
    if (std::isnan(share[first - 1])) return x[first]; // that one was not measured: from the first that is known
    return zero_between(x[first - 1], share[first - 1] - level, x[first], share[first] - level);
}

} // namespace slipstream::cli
