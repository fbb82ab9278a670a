// Where one curve of times crosses another, and from where on a share is kept; both between measured points.
#pragma once
#include <optional>
#include <span>
#include <vector>

namespace slipstream::cli {

struct crossover {
    double at = 0;           ///< in the unit of the swept parameter
    bool wins_above = false; ///< from here on `ours` is the smaller one; false: up to here it was
};

/// Points where `ours` and `other` change places. `x` ascends; values are times, so the smaller one wins. Between two points the
/// ratio is taken as straight on logarithmic scales; where x begins with 0, on a linear one. Points without two positive times are
/// left out.
std::vector<crossover> crossovers(std::span<const double> x, std::span<const double> ours, std::span<const double> other);

/// The smallest x from which on `share` never falls below `level`; nothing when the last point does. The first x when all keep it.
std::optional<double> keeps_from(std::span<const double> x, std::span<const double> share, double level);

} // namespace slipstream::cli
