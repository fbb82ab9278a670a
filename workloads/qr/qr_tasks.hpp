// The bodies of tile QR, flat tree: A = Q R, tiles of one matrix by rows, Q left behind as reflectors.
//
//   geqrt  A(k, k) = Q [R]                     R above, reflectors V below the diagonal, T beside
//   unmqr  A(k, j) := Q^T A(k, j)              by the V and T of geqrt(k)
//   tsqrt  [R of A(k, k); A(i, k)] = Q [R; 0]  R is replaced; V fills A(i, k); T of its own
//   tsmqr  [A(k, j); A(i, j)] := Q^T [...]     by the V and T of tsqrt(i, k)
//
// Within a tile, panels of 16 columns. A panel's reflectors are applied together, Q = I - V T V^T with T upper triangular
// (Schreiber and Van Loan 1989), to a head of 16 rows and a tail: V is a head V1, the identity in ts* and unit lower triangular
// else, over a tail V2. So all four bodies are made of the same two parts: factor_panel and apply_panel. Tiles have 16 to 256 rows,
// a multiple of 16.
#pragma once
#include "workloads/tiles/block_product.hpp"
#include <cmath>

namespace slipstream::workloads {

namespace qr {

inline constexpr u32 panel = 16;
inline constexpr u32 tile_max = 256;
inline constexpr u32 part = product_side_max; ///< columns that a block updates

SLIPSTREAM_BOTH constexpr u32 parts_of(u32 side)
{
    return (side + part - 1) / part;
}
SLIPSTREAM_BOTH u32 smaller(u32 a, u32 b)
{
    return a < b ? a : b;
}

/// Scratch memory while a panel is factored: 16 columns of head and tail, and what its reflectors are made of.
template <class T>
struct factor_scratch {
    static constexpr u32 pitch = panel + 1;
    static constexpr u32 values = (panel + tile_max) * pitch + panel * pitch + 5 * panel;

    matrix_view<T> columns; ///< head on top of tail
    matrix_view<T> gram;    ///< V^T V, above the diagonal
    T* dots;                ///< of a column with those right of it
    T* tops;                ///< their elements in the column's row
    T* beta;                ///< the diagonal of R
    T* tau;
    T* inverse; ///< what the raw column is multiplied by to become the reflector

    SLIPSTREAM_BOTH explicit factor_scratch(T* at)
        : columns{at, pitch}, gram{at + (panel + tile_max) * pitch, pitch}, dots(gram.data + panel * pitch), tops(dots + panel),
          beta(tops + panel), tau(beta + panel), inverse(tau + panel)
    {
    }
};

/// Scratch memory while a panel is applied.
template <class T>
struct apply_scratch {
    static constexpr u32 values = product_scratch<T>::values + 2 * panel * panel + 2 * panel * part;

    T* slices;
    matrix_view<T> head; ///< V1
    matrix_view<T> t;
    matrix_view<T> w;  ///< V^T C
    matrix_view<T> tw; ///< T^T V^T C

    SLIPSTREAM_BOTH explicit apply_scratch(T* at)
        : slices(at), head{at + product_scratch<T>::values, panel}, t{head.data + panel * panel, panel},
          w{t.data + panel * panel, part}, tw{w.data + panel * part, part}
    {
    }
};

/// Either of them: a body uses one after the other.
template <class T>
inline constexpr u32 scratch_values =
    factor_scratch<T>::values > apply_scratch<T>::values ? factor_scratch<T>::values : apply_scratch<T>::values;

/// Householder reflectors of the columns in scratch, whose head and tail have `rows` rows together. Leaves R on and above the
/// diagonal (of the head), V below it.
template <class T, class Block>
SLIPSTREAM_BODY void reflect_columns(Block& block, const factor_scratch<T>& s, u32 rows)
{
    const u32 lanes = block.size() < 32 ? block.size() : 32, lane = block.rank() % lanes;
    const u32 warp = block.rank() / lanes, warps = block.size() / lanes;
    const matrix_view<T>& a = s.columns;
    for (u32 j = 0; j < panel; ++j) {
        for (u32 c = j + warp; c < panel; c += warps) {
            T sum = 0;
            for (u32 r = j + 1 + lane; r < rows; r += lanes) sum += a(r, j) * a(r, c);
            sum = block.warp_reduce_add(sum);
            if (lane == 0) {
                s.dots[c] = sum;
                s.tops[c] = a(j, c);
            }
        }
        block.sync();
        // H = I - tau v v^T with v = (1, column below the diagonal * inverse) takes the column to (beta, 0, ...).
        const T alpha = s.tops[j], below = s.dots[j];
        const T length = std::sqrt(alpha * alpha + below);
        const bool nothing = below == 0; // the column ends at the diagonal: H = I
        const T beta = nothing ? alpha : alpha < 0 ? length : -length;
        const T tau = nothing ? 0 : (beta - alpha) / beta;
        const T inverse = nothing ? 0 : 1 / (alpha - beta);
        if (block.rank() == 0) {
            s.beta[j] = beta;
            s.tau[j] = tau;
            s.inverse[j] = inverse;
        }
        for (u32 c = j + 1 + warp; c < panel; c += warps) {
            const T weight = tau * (s.tops[c] + s.dots[c] * inverse);
            for (u32 r = j + lane; r < rows; r += lanes) a(r, c) -= r == j ? weight : weight * inverse * a(r, j);
        }
        block.sync();
    }
    for (u32 e = block.rank(); e < rows * panel; e += block.size()) {
        const u32 r = e / panel, c = e % panel;
        if (r == c) a(r, c) = s.beta[c];
        if (r > c) a(r, c) *= s.inverse[c];
    }
    block.sync();
}

/// T of the reflectors in scratch, 16 x 16 by rows: T(i, j) = -tau_j (T(i, :) V^T v_j). A row depends on no other one.
template <class T, class Block>
SLIPSTREAM_BODY void make_t(Block& block, const factor_scratch<T>& s, u32 rows, T* t)
{
    for (u32 e = block.rank(); e < panel * panel; e += block.size()) {
        const u32 i = e / panel, j = e % panel;
        if (i >= j) continue;
        T sum = s.columns(j, i); // v_j has a 1 there
        for (u32 r = j + 1; r < rows; ++r) sum += s.columns(r, i) * s.columns(r, j);
        s.gram(i, j) = sum;
    }
    block.sync();
    for (u32 i = block.rank(); i < panel; i += block.size()) {
        asm volatile("" ::: "memory"); // V^T V is read again for each row: its 120 values in registers over the loop would spill
        T row[panel];
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < panel; ++j) {
            T sum = 0;
            SLIPSTREAM_UNROLL
            for (u32 m = 0; m < j; ++m) sum += row[m] * s.gram(m, j);
            row[j] = j < i ? 0 : j == i ? s.tau[j] : -s.tau[j] * sum;
            t[i * panel + j] = row[j];
        }
    }
}

/// Factors 16 columns: `head` is their diagonal block, `tail` the rows to eliminate below it. `stacked`: the head is upper
/// triangular, and what lies below its diagonal belongs to others. T goes to `t`.
template <class T, class Block>
SLIPSTREAM_BODY void factor_panel(Block& block, T* scratch, matrix_view<T> head, matrix_view<T> tail, u32 tail_rows, bool stacked,
                                  T* t)
{
    const factor_scratch<T> s(scratch);
    const u32 rows = panel + tail_rows;
    const auto place = [&](u32 r, u32 c) -> T& { return r < panel ? head(r, c) : tail(r - panel, c); };
    for (u32 e = block.rank(); e < rows * panel; e += block.size()) {
        const u32 r = e / panel, c = e % panel;
        s.columns(r, c) = stacked && r < panel && r > c ? 0 : place(r, c);
    }
    block.sync();
    reflect_columns(block, s, rows);
    make_t(block, s, rows, t);
    for (u32 e = block.rank(); e < rows * panel; e += block.size()) {
        const u32 r = e / panel, c = e % panel;
        if (!(stacked && r < panel && r > c)) place(r, c) = s.columns(r, c);
    }
    block.sync();
}

/// What apply_panel applies: V1 is the part of `head` below the diagonal, or with `stacked` the identity.
template <class T>
struct reflectors {
    matrix_view<const T> head;
    matrix_view<const T> tail;
    u32 tail_rows;
    bool stacked;
    const T* t;
};

/// C := (I - V T V^T)^T C for `columns` columns of C, at most 64: 16 rows at `head`, the others at `tail`.
template <class T, class Block>
SLIPSTREAM_BODY void apply_panel(const Block& block, T* scratch, const reflectors<T>& v, matrix_view<T> head, matrix_view<T> tail,
                                 u32 columns)
{
    const apply_scratch<T> s(scratch);
    for (u32 e = block.rank(); e < panel * panel; e += block.size()) {
        const u32 i = e / panel, j = e % panel;
        s.head(i, j) = i == j ? 1 : i > j && !v.stacked ? v.head(i, j) : 0;
        s.t(i, j) = v.t[e];
    }
    block.sync();
    const auto add_head = [&](u32 i, u32 j, T sum) {
        sum += head(i, j);
        if (!v.stacked)
            for (u32 r = i + 1; r < panel; ++r) sum += s.head(r, i) * head(r, j);
        s.w(i, j) = sum;
    };
    narrow_block_product(block, s.slices, transposed(v.tail), transposed(constant(tail)), columns, v.tail_rows, add_head);
    block.sync();
    for (u32 e = block.rank(); e < panel * columns; e += block.size()) {
        const u32 i = e / columns, j = e % columns;
        T sum = 0;
        for (u32 r = 0; r <= i; ++r) sum += s.t(r, i) * s.w(r, j);
        s.tw(i, j) = sum;
    }
    block.sync();
    for (u32 e = block.rank(); e < panel * columns; e += block.size()) {
        const u32 i = e / columns, j = e % columns;
        T sum = s.tw(i, j);
        if (!v.stacked)
            for (u32 r = 0; r < i; ++r) sum += s.head(i, r) * s.tw(r, j);
        head(i, j) -= sum;
    }
    for (u32 first = 0; first < v.tail_rows; first += part) {
        const matrix_view<T> rows = tail.at(first, 0);
        block_product(block, s.slices, plain(v.tail.at(first, 0)), transposed(constant(s.tw)), smaller(part, v.tail_rows - first),
                      columns, panel, [&](u32 i, u32 j, T sum) { rows(i, j) -= sum; });
    }
    block.sync();
}

} // namespace qr

/// One block. T: a panel's 16 x 16 after the other, as in tsqrt_task.
template <class T>
struct geqrt_task {
    static constexpr const char* name = "geqrt";
    static constexpr u32 shared_bytes = qr::scratch_values<T> * sizeof(T);

    inout2d<T> a;
    out<T> t;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace qr;
        T* const scratch = block.template shared<T>(scratch_values<T>);
        const u32 side = static_cast<u32>(a.rows());
        const matrix_view<T> tile = view_of(a);
        for (u32 p = 0; p < side; p += panel) {
            const u32 next = p + panel, rest = side - next;
            T* const panel_t = t.data() + p * panel;
            factor_panel(block, scratch, tile.at(p, p), tile.at(next, p), rest, false, panel_t);
            const reflectors<T> v{constant(tile.at(p, p)), constant(tile.at(next, p)), rest, false, panel_t};
            for (u32 c = next; c < side; c += part)
                apply_panel(block, scratch, v, tile.at(p, c), tile.at(next, c), smaller(part, side - c));
        }
    }
};

/// A block takes 64 columns.
template <class T>
struct unmqr_task {
    static constexpr const char* name = "unmqr";
    static constexpr u32 shared_bytes = qr::scratch_values<T> * sizeof(T);

    in2d<T> v;
    in<T> t;
    inout2d<T> c;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace qr;
        T* const scratch = block.template shared<T>(scratch_values<T>);
        const u32 side = static_cast<u32>(c.rows()), first = block.block_index() * part;
        const matrix_view<const T> tile = view_of(v);
        const matrix_view<T> mine = view_of(c).at(0, first);
        for (u32 p = 0; p < side; p += panel) {
            const u32 next = p + panel;
            apply_panel(block, scratch, {tile.at(p, p), tile.at(next, p), side - next, false, t.data() + p * panel}, mine.at(p, 0),
                        mine.at(next, 0), smaller(part, side - first));
        }
    }
};

/// One block.
template <class T>
struct tsqrt_task {
    static constexpr const char* name = "tsqrt";
    static constexpr u32 shared_bytes = qr::scratch_values<T> * sizeof(T);

    inout2d<T> r;
    inout2d<T> a;
    out<T> t;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace qr;
        T* const scratch = block.template shared<T>(scratch_values<T>);
        const u32 side = static_cast<u32>(a.rows());
        const matrix_view<T> above = view_of(r), tile = view_of(a);
        for (u32 p = 0; p < side; p += panel) {
            const u32 next = p + panel;
            T* const panel_t = t.data() + p * panel;
            factor_panel(block, scratch, above.at(p, p), tile.at(0, p), side, true, panel_t);
            const reflectors<T> v{constant(above), constant(tile.at(0, p)), side, true, panel_t};
            for (u32 c = next; c < side; c += part)
                apply_panel(block, scratch, v, above.at(p, c), tile.at(0, c), smaller(part, side - c));
        }
    }
};

/// A block takes 64 columns.
template <class T>
struct tsmqr_task {
    static constexpr const char* name = "tsmqr";
    static constexpr u32 shared_bytes = qr::scratch_values<T> * sizeof(T);

    in2d<T> v;
    in<T> t;
    inout2d<T> upper;
    inout2d<T> lower;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        using namespace qr;
        T* const scratch = block.template shared<T>(scratch_values<T>);
        const u32 side = static_cast<u32>(lower.rows()), first = block.block_index() * part;
        const matrix_view<const T> tile = view_of(v);
        const matrix_view<T> above = view_of(upper).at(0, first), below = view_of(lower).at(0, first);
        for (u32 p = 0; p < side; p += panel)
            apply_panel(block, scratch, {tile, tile.at(0, p), side, true, t.data() + p * panel}, above.at(p, 0), below,
                        smaller(part, side - first));
    }
};

} // namespace slipstream::workloads
