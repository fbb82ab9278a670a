// How large an error may be: rounding errors of sums of n terms, in units of the precision's epsilon.
//
// The classical bounds grow like n eps, but rounding errors are of either sign and add up like sqrt(n) eps with a probability that
// leaves no room for doubt (Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis, 2019). The matrices here have
// condition numbers near 5, so errors of the factors are of the same order as those of the residual. The sharper measure matters:
// one forgotten update of a 16 x 16 tile stays below n eps in fp32 once n is large.
#pragma once
#include "workloads/workload.hpp"
#include <cmath>
#include <limits>
#include <span>

namespace slipstream::workloads {

/// What a check found: an error in units of sqrt(n) eps. Right results stay below 2 (README.md of this folder);
/// a wrong dependency gives tens to millions, or NaN.
struct error_measure {
    std::string what;
    double size;

    static constexpr double allowed = 8;
    bool good() const { return size <= allowed; } // NaN is not
};

/// Verified when all are good; the detail names the first that is not, else all of them.
verdict judge(const std::vector<error_measure>& errors);

template <class T> double in_units(double relative_error, u32 n)
{
    return relative_error / (std::sqrt(static_cast<double>(n)) * static_cast<double>(std::numeric_limits<T>::epsilon()));
}

inline double norm(std::span<const double> x)
{
    double sum = 0;
    for (const double v : x) sum += v * v;
    return std::sqrt(sum);
}

/// The norm of a - b; NaN where either has one.
inline double distance(std::span<const double> a, std::span<const double> b)
{
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(sum);
}

/// A vector of +1 and -1, by the seed.
std::vector<double> probe(u32 n, u64 seed, u32 number);

/// A number in [-1, 1) for place (i, j), the same everywhere.
double random_element(u64 seed, u32 i, u32 j);

} // namespace slipstream::workloads
