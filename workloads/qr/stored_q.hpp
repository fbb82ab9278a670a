// Q as tile QR leaves it behind, applied to vectors on the host: O(n^2) each, in double.
#pragma once
#include "workloads/tiles/tiled_matrix.hpp"
#include <vector>

namespace slipstream::workloads {

/// Place of the T of geqrt (i = k) or of tsqrt (i, k), i > k, among all of them.
inline u32 t_index(u32 i, u32 k)
{
    return i * (i + 1) / 2 + k;
}

template <class T>
class stored_q {
public:
    /// `v`: the matrix, reflectors below the diagonal; `t`: side x 16 for each t_index. Both outlive this object.
    stored_q(const tiling& t, const std::vector<T>& v, const std::vector<T>& ts) : t_(t), v_(v), ts_(ts) {}

    /// x := Q x
    void multiply(std::vector<double>& x) const
    {
        for (u32 k = t_.tiles; k-- > 0;)
            for (u32 i = t_.tiles; i-- > k;)
                for (u32 p = t_.tile; p > 0; p -= panel) apply(i, k, p - panel, false, x);
    }

    /// x := Q^T x
    void multiply_transposed(std::vector<double>& x) const
    {
        for (u32 k = 0; k < t_.tiles; ++k)
            for (u32 i = k; i < t_.tiles; ++i)
                for (u32 p = 0; p < t_.tile; p += panel) apply(i, k, p, true, x);
    }

private:
    static constexpr u32 panel = 16;

    /// x := (I - V T V^T) x or its transpose, for the panel at column p of tile (i, k).
    void apply(u32 i, u32 k, u32 p, bool transposed, std::vector<double>& x) const
    {
        const std::size_t n = t_.side(), head = u64{k} * t_.tile + p; // columns of V, and rows of its identity or unit triangle
        const bool stacked = i > k;
        const std::size_t first = stacked ? u64{i} * t_.tile : head, last = u64{i + 1} * t_.tile; // other rows of V
        const T* const t = &ts_[(u64{t_index(i, k)} * t_.tile + p) * panel];
        const auto reflector = [&](std::size_t row, u32 c) -> double {
            return stacked || row > head + c ? v_[row * n + head + c] : 0;
        };
        double w[panel], tw[panel];
        for (u32 c = 0; c < panel; ++c) w[c] = x[head + c];
        for (std::size_t row = first; row < last; ++row)
            for (u32 c = 0; c < panel; ++c) w[c] += reflector(row, c) * x[row];
        for (u32 c = 0; c < panel; ++c) {
            tw[c] = 0;
            for (u32 m = 0; m < panel; ++m) tw[c] += w[m] * (transposed ? t[m * panel + c] : t[c * panel + m]);
        }
        for (std::size_t row = first; row < last; ++row)
            for (u32 c = 0; c < panel; ++c) x[row] -= reflector(row, c) * tw[c];
        for (u32 c = 0; c < panel; ++c) x[head + c] -= tw[c];
    }

    tiling t_;
    const std::vector<T>& v_;
    const std::vector<T>& ts_;
};

} // namespace slipstream::workloads
