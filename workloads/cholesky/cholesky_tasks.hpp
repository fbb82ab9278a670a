// The bodies of tile Cholesky: A = L L^T, lower triangle, tiles of one matrix by rows.
//
// Within a tile, panels of 16 columns: a diagonal 16 x 16 is factored in scratch memory, the rows below it are solved by a thread
// each, the rest is products (block_product.hpp). Tiles have 16 to 256 rows, a multiple of 16. Of diagonal tiles only the lower
// triangle counts, the other one stays as it is. A matrix that is not positive definite gives NaN, which the check sees.
#pragma once
#include "workloads/tiles/block_product.hpp"
#include <cmath>

namespace slipstream::workloads {

namespace cholesky {

inline constexpr u32 panel = 16;
inline constexpr u32 part = product_side_max; ///< a block's share of a tile is part x part

SLIPSTREAM_BOTH constexpr u32 parts_of(u32 side)
{
    return (side + part - 1) / part;
}
SLIPSTREAM_BOTH u32 smaller(u32 a, u32 b)
{
    return a < b ? a : b;
}

/// Scratch memory of a body: the slices of a product, a diagonal block, the reciprocals of its diagonal.
template <class T>
struct scratch {
    static constexpr u32 pitch = panel + 1;
    static constexpr u32 bytes = (product_scratch<T>::values + panel * pitch + panel) * sizeof(T);

    T* slices;
    matrix_view<T> diagonal;
    T* reciprocal;

    template <class Block>
    SLIPSTREAM_BODY explicit scratch(const Block& block)
        : slices(block.template shared<T>(bytes / sizeof(T))), diagonal{slices + product_scratch<T>::values, pitch},
          reciprocal(diagonal.data + panel * pitch)
    {
    }
};

template <class T, class Block>
SLIPSTREAM_BODY void load_diagonal(const Block& block, const scratch<T>& s, matrix_view<const T> from)
{
    for (u32 e = block.rank(); e < panel * panel; e += block.size()) s.diagonal(e / panel, e % panel) = from(e / panel, e % panel);
    block.sync();
}

/// L of the diagonal block, in place. Columns stay unscaled until the end, so one barrier a column is enough.
template <class T, class Block>
SLIPSTREAM_BODY void factor_diagonal(const Block& block, const scratch<T>& s)
{
    const matrix_view<T>& d = s.diagonal;
    for (u32 j = 0; j + 1 < panel; ++j) {
        for (u32 e = block.rank(); e < panel * panel; e += block.size())
            if (const u32 i = e / panel, k = e % panel; k > j && i >= k) d(i, k) -= d(i, j) * d(k, j) / d(j, j);
        block.sync();
    }
    for (u32 j = block.rank(); j < panel; j += block.size()) s.reciprocal[j] = 1 / std::sqrt(d(j, j));
    block.sync();
    for (u32 e = block.rank(); e < panel * panel; e += block.size())
        if (const u32 i = e / panel, j = e % panel; i >= j) d(i, j) *= s.reciprocal[j];
    block.sync();
}

/// X D^T = A for rows of 16 in place, D the lower triangle of the diagonal block: a thread takes a row.
template <class T, class Block>
SLIPSTREAM_BODY void solve_rows(const Block& block, const scratch<T>& s, matrix_view<T> a, u32 rows)
{
    for (u32 row = block.rank(); row < rows; row += block.size()) {
        asm volatile("" ::: "memory"); // D is read again for each row: kept in registers over the loop, its 136 values would spill
        T x[panel];
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < panel; ++k) x[k] = a(row, k);
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < panel; ++k) {
            SLIPSTREAM_UNROLL
            for (u32 m = 0; m < k; ++m) x[k] -= x[m] * s.diagonal(k, m);
            x[k] *= s.reciprocal[k];
        }
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < panel; ++k) a(row, k) = x[k];
    }
}

/// c -= a b^T for a part of at most 64 x 64; `lower`: only on and below the diagonal of c.
template <class T, class Block>
SLIPSTREAM_BODY void subtract_product(const Block& block, const scratch<T>& s, matrix_view<const T> a, matrix_view<const T> b,
                                      matrix_view<T> c, u32 rows, u32 columns, u32 depth, bool lower)
{
    block_product(block, s.slices, plain(a), plain(b), rows, columns, depth, [&](u32 i, u32 j, T sum) {
        if (!lower || i >= j) c(i, j) -= sum;
    });
}

} // namespace cholesky

/// A(k, k) becomes its own L. One block.
template <class T>
struct potrf_task {
    static constexpr const char* name = "potrf";
    static constexpr u32 shared_bytes = cholesky::scratch<T>::bytes;

    inout2d<T> a;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace cholesky;
        const scratch<T> s(block);
        const matrix_view<T> tile = view_of(a);
        const u32 side = static_cast<u32>(a.rows());
        for (u32 p = 0; p < side; p += panel) {
            load_diagonal(block, s, constant(tile.at(p, p)));
            factor_diagonal(block, s);
            for (u32 e = block.rank(); e < panel * panel; e += block.size())
                if (const u32 i = e / panel, j = e % panel; i >= j) tile(p + i, p + j) = s.diagonal(i, j);
            const u32 next = p + panel, rest = side - next;
            solve_rows(block, s, tile.at(next, p), rest);
            block.sync();
            for (u32 i = 0; i < rest; i += part)
                for (u32 j = 0; j <= i; j += part)
                    subtract_product(block, s, constant(tile.at(next + i, p)), constant(tile.at(next + j, p)),
                                     tile.at(next + i, next + j), smaller(part, rest - i), smaller(part, rest - j), panel, i == j);
            block.sync();
        }
    }
};

/// A(i, k) becomes L(i, k): X L(k, k)^T = A(i, k). A block takes 64 rows.
template <class T>
struct trsm_task {
    static constexpr const char* name = "trsm";
    static constexpr u32 shared_bytes = cholesky::scratch<T>::bytes;

    in2d<T> l;
    inout2d<T> a;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace cholesky;
        const scratch<T> s(block);
        const u32 side = static_cast<u32>(a.rows()), first = block.block_index() * part, rows = smaller(part, side - first);
        const matrix_view<const T> triangle = view_of(l);
        const matrix_view<T> mine = view_of(a).at(first, 0);
        for (u32 p = 0; p < side; p += panel) {
            if (p > 0) subtract_product(block, s, constant(mine), triangle.at(p, 0), mine.at(0, p), rows, panel, p, false);
            load_diagonal(block, s, triangle.at(p, p));
            for (u32 j = block.rank(); j < panel; j += block.size()) s.reciprocal[j] = 1 / s.diagonal(j, j);
            block.sync();
            solve_rows(block, s, mine.at(0, p), rows);
            block.sync();
        }
    }
};

/// A(i, i) -= L(i, k) L(i, k)^T, lower triangle. A block takes a part of 64 x 64 on or below the diagonal.
template <class T>
struct syrk_task {
    static constexpr const char* name = "syrk";
    static constexpr u32 shared_bytes = cholesky::scratch<T>::bytes;

    in2d<T> l;
    inout2d<T> a;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace cholesky;
        const scratch<T> s(block);
        const u32 side = static_cast<u32>(a.rows());
        u32 i = 0, j = block.block_index(); // parts are numbered row by row of the triangle
        while (j > i) j -= ++i;
        i *= part;
        j *= part;
        subtract_product(block, s, view_of(l).at(i, 0), view_of(l).at(j, 0), view_of(a).at(i, j), smaller(part, side - i),
                         smaller(part, side - j), side, i == j);
    }
};

/// A(i, j) -= L(i, k) L(j, k)^T. A block takes a part of 64 x 64.
template <class T>
struct gemm_task {
    static constexpr const char* name = "gemm";
    static constexpr u32 shared_bytes = cholesky::scratch<T>::bytes;

    in2d<T> left;
    in2d<T> right;
    inout2d<T> a;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace cholesky;
        const scratch<T> s(block);
        const u32 side = static_cast<u32>(a.rows()), parts = parts_of(side);
        const u32 i = block.block_index() / parts * part, j = block.block_index() % parts * part;
        subtract_product(block, s, view_of(left).at(i, 0), view_of(right).at(j, 0), view_of(a).at(i, j), smaller(part, side - i),
                         smaller(part, side - j), side, false);
    }
};

} // namespace slipstream::workloads
