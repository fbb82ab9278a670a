// Right-looking, in panels of columns; the inner loops run along rows, so that the compiler vectorizes them.
#include "workloads/cholesky/cholesky_reference.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::workloads {
namespace {

constexpr std::size_t panel = 64;

/// Columns first..last of all rows below, as if there were no others.
void factor_panel(std::vector<double>& a, std::size_t n, std::size_t first, std::size_t last)
{
    double pivots[panel];
    for (std::size_t j = first; j < last; ++j) {
        a[j * n + j] = std::sqrt(a[j * n + j]);
        for (std::size_t i = j + 1; i < n; ++i) a[i * n + j] /= a[j * n + j];
        for (std::size_t m = j + 1; m < last; ++m) pivots[m - first] = a[m * n + j];
        for (std::size_t i = j + 1; i < n; ++i)
            for (std::size_t m = j + 1; m < std::min(last, i + 1); ++m) a[i * n + m] -= a[i * n + j] * pivots[m - first];
    }
}

} // namespace

void factor_cholesky(std::vector<double>& a, u32 side)
{
    const std::size_t n = side;
    std::vector<double> across(panel * n); // the panel, transposed
    for (std::size_t first = 0; first < n; first += panel) {
        const std::size_t last = std::min(first + panel, n);
        factor_panel(a, n, first, last);
        for (std::size_t i = last; i < n; ++i)
            for (std::size_t k = first; k < last; ++k) across[(k - first) * n + i] = a[i * n + k];
        for (std::size_t i = last; i < n; ++i)
            for (std::size_t k = first; k < last; ++k) {
                const double factor = a[i * n + k];
                const double* const column = &across[(k - first) * n];
                double* const row = &a[i * n];
                for (std::size_t j = last; j <= i; ++j) row[j] -= factor * column[j];
            }
    }
}

} // namespace slipstream::workloads
