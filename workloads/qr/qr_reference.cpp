// Householder's algorithm, one column after the other; the inner loops run along rows, so that the compiler vectorizes them.
#include "workloads/qr/qr_reference.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::workloads {

void factor_qr(std::vector<double>& a, u32 side)
{
    const std::size_t n = side;
    std::vector<double> v(n), w(n);
    for (std::size_t j = 0; j < n; ++j) {
        long double squares = 0;
        for (std::size_t i = j; i < n; ++i) squares += static_cast<long double>(a[i * n + j]) * a[i * n + j];
        const double length = static_cast<double>(std::sqrt(squares));
        for (std::size_t i = j; i < n; ++i) v[i] = a[i * n + j];
        v[j] += v[j] < 0 ? -length : length;
        long double v_squares = 0;
        for (std::size_t i = j; i < n; ++i) v_squares += static_cast<long double>(v[i]) * v[i];
        if (v_squares == 0) continue;
        // A -= 2 v (v^T A) / v^T v
        std::fill(w.begin(), w.end(), 0.0);
        for (std::size_t i = j; i < n; ++i) {
            const double* const row = &a[i * n];
            for (std::size_t c = j; c < n; ++c) w[c] += v[i] * row[c];
        }
        for (std::size_t i = j; i < n; ++i) {
            const double factor = 2 * v[i] / static_cast<double>(v_squares);
            double* const row = &a[i * n];
            for (std::size_t c = j; c < n; ++c) row[c] -= factor * w[c];
        }
    }
}

} // namespace slipstream::workloads
