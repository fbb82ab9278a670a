// Sums of products over a depth, sum(i, j) = a(i, 0) b(j, 0) + a(i, 1) b(j, 1) + ..., by one block: the inner part of every tile
// body.
//
// On the GPU slices of both factors are staged in scratch memory, and a thread keeps a small tile of sums in registers: its rows
// lie rows / Micro apart, so that neighbouring threads read neighbouring words. A block of one thread reads the factors where they
// are. All extents are multiples of 16.
#pragma once
#include "workloads/tiles/matrix_view.hpp"

namespace slipstream::workloads {

/// One factor: element (i, k) of a matrix by rows, or of its transpose.
template <class T, bool Transposed>
struct factor {
    const T* data;
    u32 pitch;

    SLIPSTREAM_BOTH T operator()(u32 i, u32 k) const { return Transposed ? data[k * pitch + i] : data[i * pitch + k]; }
};

template <class T>
SLIPSTREAM_BOTH factor<std::remove_const_t<T>, false> plain(matrix_view<T> m)
{
    return {m.data, m.pitch};
}
template <class T>
SLIPSTREAM_BOTH factor<std::remove_const_t<T>, true> transposed(matrix_view<T> m)
{
    return {m.data, m.pitch};
}

inline constexpr u32 product_side_max = 64; ///< rows and columns of one product

/// Scratch memory of a product: a slice of each factor, 16 KiB together whatever T is.
template <class T>
struct product_scratch {
    static constexpr u32 slice = 128 / sizeof(T);
    static constexpr u32 pitch = product_side_max + 1; // odd: a column of a slice falls into different banks
    static constexpr u32 values = 2 * slice * pitch;
};

namespace product {

/// Copies elements (0..extent, k0..k0 + length) of a factor; sixteen threads take what lies side by side in memory.
template <class T, bool Transposed, class Block>
SLIPSTREAM_BODY void stage(const Block& block, T* to, const factor<T, Transposed>& from, u32 extent, u32 k0, u32 length)
{
    constexpr u32 run = 16, in_flight = 4;
    static_assert(Block::size() % run == 0);
    const u32 across = Transposed ? length : extent, along = Transposed ? extent : length;
    constexpr u32 groups = Block::size() / run;
    for (u32 x = block.rank() % run; x < along; x += run)
        for (u32 first = block.rank() / run; first < across; first += in_flight * groups) {
            T held[in_flight] = {};
            SLIPSTREAM_UNROLL
            for (u32 u = 0; u < in_flight; ++u)
                if (const u32 y = first + u * groups; y < across) held[u] = Transposed ? from(x, k0 + y) : from(y, k0 + x);
            SLIPSTREAM_UNROLL
            for (u32 u = 0; u < in_flight; ++u)
                if (const u32 y = first + u * groups; y < across)
                    to[(Transposed ? y : x) * product_scratch<T>::pitch + (Transposed ? x : y)] = held[u];
        }
}

template <u32 Micro, class T, class A, class B>
SLIPSTREAM_BOTH void accumulate(T (&sum)[Micro][Micro], const A& a, const B& b, u32 row, u32 row_step, u32 column, u32 column_step,
                                u32 depth)
{
    for (u32 k = 0; k < depth; ++k) {
        T x[Micro], y[Micro];
        SLIPSTREAM_UNROLL
        for (u32 m = 0; m < Micro; ++m) {
            x[m] = a(row + m * row_step, k);
            y[m] = b(column + m * column_step, k);
        }
        SLIPSTREAM_UNROLL
        for (u32 m = 0; m < Micro; ++m) {
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < Micro; ++n) sum[m][n] += x[m] * y[n];
        }
    }
}

template <u32 Micro, class T, bool TransposedA, bool TransposedB, class Block, class Store>
SLIPSTREAM_BODY void product_by(const Block& block, T* scratch, const factor<T, TransposedA>& a, const factor<T, TransposedB>& b,
                                u32 rows, u32 columns, u32 depth, const Store& store)
{
    using space = product_scratch<T>;
    const u32 row_step = rows / Micro, column_step = columns / Micro;
    for (u32 first = 0; first < row_step * column_step; first += Block::size()) {
        const u32 mine = first + block.rank();
        const bool busy = mine < row_step * column_step;
        const u32 row = mine / column_step, column = mine % column_step;
        T sum[Micro][Micro] = {};
        if constexpr (Block::size() == 1) {
            accumulate(sum, a, b, row, row_step, column, column_step, depth);
        } else {
            T* const slice_a = scratch;
            T* const slice_b = scratch + space::slice * space::pitch;
            for (u32 k = 0; k < depth; k += space::slice) {
                const u32 length = depth - k < space::slice ? depth - k : space::slice;
                stage(block, slice_a, a, rows, k, length);
                stage(block, slice_b, b, columns, k, length);
                block.sync();
                if (busy)
                    accumulate(sum, factor<T, true>{slice_a, space::pitch}, factor<T, true>{slice_b, space::pitch}, row, row_step,
                               column, column_step, length);
                block.sync();
            }
        }
        if (!busy) continue;
        SLIPSTREAM_UNROLL
        for (u32 m = 0; m < Micro; ++m) {
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < Micro; ++n) store(row + m * row_step, column + n * column_step, sum[m][n]);
        }
    }
}

} // namespace product

/// Calls store(i, j, sum) once for each of rows x columns elements, at most product_side_max each way; a store must not change the
/// factors. Ends without a barrier, and `scratch` may be used again at once.
template <class T, bool TransposedA, bool TransposedB, class Block, class Store>
SLIPSTREAM_BODY void block_product(const Block& block, T* scratch, const factor<T, TransposedA>& a, const factor<T, TransposedB>& b,
                                   u32 rows, u32 columns, u32 depth, const Store& store)
{
    // As few sums a thread as give all of them in one pass.
    if (rows * columns > 4 * Block::size())
        product::product_by<4>(block, scratch, a, b, rows, columns, depth, store);
    else
        product::product_by<2>(block, scratch, a, b, rows, columns, depth, store);
}

/// The same for products of 16 rows, which are never many: less code.
template <class T, bool TransposedA, bool TransposedB, class Block, class Store>
SLIPSTREAM_BODY void narrow_block_product(const Block& block, T* scratch, const factor<T, TransposedA>& a,
                                          const factor<T, TransposedB>& b, u32 columns, u32 depth, const Store& store)
{
    product::product_by<2>(block, scratch, a, b, 16, columns, depth, store);
}

} // namespace slipstream::workloads
