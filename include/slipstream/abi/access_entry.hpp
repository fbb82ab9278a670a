// One access as the window keeps it: 16 bytes, with the exact tests for overlap and coverage.
//
// LAYOUT  head  bits 56..0 address (after: ring), 59..57 mode, 62..60 kind
//         tail  range, loose: bytes · rect: width (24 bits), pitch (24 bits) << 24, rows (16 bits) << 48 · after: position
// Rectangles that do not fit these fields are kept as `loose` bounding ranges: overlap may err towards yes, coverage never.
#pragma once
#include <slipstream/abi/message.hpp>

namespace slipstream::abi {

struct access_entry {
    u64 head;
    u64 tail;

    static constexpr u64 address_mask = (u64{1} << address_bits) - 1;
    static constexpr u64 rect_field_max = (u64{1} << 24) - 1;
    static constexpr u64 rect_rows_max = (u64{1} << 16) - 1;

    SLIPSTREAM_BOTH static access_entry make(entry_kind kind, access_mode mode, u64 address, u64 tail)
    {
        return {(address & address_mask) | static_cast<u64>(mode) << 57 | static_cast<u64>(kind) << 60, tail};
    }

    /// A range; an empty one conflicts with nothing.
    SLIPSTREAM_BOTH static access_entry range(access_mode mode, u64 address, u64 bytes)
    {
        return bytes == 0 ? access_entry{0, 0} : make(entry_kind::range, mode, address, bytes);
    }

    /// A rectangle of `rows` rows of `width` bytes, `pitch` bytes apart. One that is contiguous becomes a range.
    SLIPSTREAM_BOTH static access_entry rect(access_mode mode, u64 address, u64 width, u64 rows, u64 pitch)
    {
        if (width == 0 || rows == 0) return {0, 0};
        if (rows == 1) return range(mode, address, width);
        if (pitch == width) return range(mode, address, width * rows);
        const u64 bounding = (rows - 1) * pitch + width;
        // pitch < width: rows overlap each other; the bounding range is then exact in what matters (no gaps).
        if (pitch < width) return range(mode, address, bounding);
        if (width > rect_field_max || pitch > rect_field_max || rows > rect_rows_max)
            return make(entry_kind::loose, mode, address, bounding);
        return make(entry_kind::rect, mode, address, rect_tail(width, rows, pitch));
    }
    SLIPSTREAM_BOTH static u64 rect_tail(u64 width, u64 rows, u64 pitch) { return width | pitch << 24 | rows << 48; }

    SLIPSTREAM_BOTH static access_entry after(u32 ring, u64 position)
    {
        return make(entry_kind::after, access_mode::none, ring, position);
    }

    SLIPSTREAM_BOTH entry_kind kind() const { return static_cast<entry_kind>(head >> 60 & 7); }
    SLIPSTREAM_BOTH access_mode mode() const { return static_cast<access_mode>(head >> 57 & 7); }
    SLIPSTREAM_BOTH bool is_memory() const { return kind() != entry_kind::none && kind() != entry_kind::after; }
    SLIPSTREAM_BOTH bool reads() const { return (static_cast<u32>(mode()) & 1) != 0; }
    SLIPSTREAM_BOTH bool writes() const { return (static_cast<u32>(mode()) & 2) != 0; }
    SLIPSTREAM_BOTH u64 begin() const { return head & address_mask; }
    SLIPSTREAM_BOTH u64 width() const { return tail & rect_field_max; }
    SLIPSTREAM_BOTH u64 pitch() const { return tail >> 24 & rect_field_max; }
    SLIPSTREAM_BOTH u64 rows() const { return tail >> 48; }
    SLIPSTREAM_BOTH u64 end() const
    {
        return begin() + (kind() == entry_kind::rect ? (rows() - 1) * pitch() + width() : tail);
    }
    SLIPSTREAM_BOTH u32 after_ring() const { return static_cast<u32>(head & 0xff); }
    SLIPSTREAM_BOTH u64 after_position() const { return tail; }
};
static_assert(sizeof(access_entry) == 16 && std::is_trivially_copyable_v<access_entry>);

namespace detail {

/// a / b; a 64-bit division costs the GPU five times a 32-bit one, and few matrices have 4 GiB.
SLIPSTREAM_BOTH u64 quotient(u64 a, u64 b)
{
    return ((a | b) >> 32) == 0 ? static_cast<u32>(a) / static_cast<u32>(b) : a / b;
}

/// Does the range [lo, hi) meet a row of rectangle r? Exact.
template <class Rect>
SLIPSTREAM_BOTH bool range_meets_rect(u64 lo, u64 hi, const Rect& r)
{
    const u64 from = (lo > r.begin() ? lo : r.begin()) - r.begin();
    const u64 row = quotient(from, r.pitch());
    if (row >= r.rows()) return false;
    if (from - row * r.pitch() < r.width()) return true;             // begins inside a row
    return row + 1 < r.rows() && r.begin() + (row + 1) * r.pitch() < hi; // or reaches the next one
}

/// Rectangles of equal pitch, a.begin() <= b.begin(). Exact: b is placed in a's (row, column) frame; where it wraps past
/// the pitch it is split into a right part and a left part one row lower.
template <class Rect>
SLIPSTREAM_BOTH bool rects_meet(const Rect& a, const Rect& b)
{
    const u64 delta = b.begin() - a.begin();
    const u64 row = quotient(delta, a.pitch());
    const u64 column = delta - row * a.pitch();
    if (column < a.width() && row < a.rows()) return true;
    return column + b.width() > a.pitch() && row + 1 < a.rows();
}

} // namespace detail

namespace detail {

/// The part of overlaps() that divides: at least one of the two is a rectangle, and their bounding ranges meet.
SLIPSTREAM_BOTH_RARE bool rects_overlap(const access_entry a, const access_entry b)
{
    const bool a_rect = a.kind() == entry_kind::rect;
    const bool b_rect = b.kind() == entry_kind::rect;
    if (a_rect && b_rect) {
        if (a.pitch() != b.pitch()) return true;
        return a.begin() <= b.begin() ? rects_meet(a, b) : rects_meet(b, a);
    }
    return a_rect ? range_meets_rect(b.begin(), b.end(), a) : range_meets_rect(a.begin(), a.end(), b);
}

/// The part of covers() where `outer` is a rectangle whose bounding range holds inner's.
SLIPSTREAM_BOTH_RARE bool rect_covers(const access_entry outer, const access_entry inner)
{
    const u64 delta = inner.begin() - outer.begin();
    const u64 row = quotient(delta, outer.pitch());
    const u64 column = delta - row * outer.pitch();
    if (inner.kind() == entry_kind::rect)
        return inner.pitch() == outer.pitch() && column + inner.width() <= outer.width() && row + inner.rows() <= outer.rows();
    return column + (inner.end() - inner.begin()) <= outer.width();
}

} // namespace detail

/// Do two accesses share a byte? Errs towards yes only for rectangles of unequal pitch and for loose ranges.
SLIPSTREAM_BOTH bool overlaps(const access_entry& a, const access_entry& b)
{
    if (!(a.begin() < b.end() && b.begin() < a.end())) return false;
    if (a.kind() != entry_kind::rect && b.kind() != entry_kind::rect) return true;
    return detail::rects_overlap(a, b);
}

/// Does `outer` contain every byte of `inner`? Errs towards no.
SLIPSTREAM_BOTH bool covers(const access_entry& outer, const access_entry& inner)
{
    if (outer.kind() == entry_kind::loose) return false;
    if (!(outer.begin() <= inner.begin() && inner.end() <= outer.end())) return false;
    return outer.kind() == entry_kind::range || detail::rect_covers(outer, inner);
}

/// Must a task with access `next` wait for an earlier one with access `earlier`? RAW, WAR or WAW on shared bytes.
SLIPSTREAM_BOTH bool conflicts(const access_entry& next, const access_entry& earlier)
{
    return (next.writes() || earlier.writes()) && overlaps(next, earlier);
}

} // namespace slipstream::abi
