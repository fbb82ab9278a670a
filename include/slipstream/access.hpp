// The typed members of a task: what a task reads and writes, and where its body finds the data.
//
// A member is made from a pointer and a count, from a buffer, or from a registered handle. The pointer crosses the bus once;
// the runtime derives the access from the member, the body gets the pointer from it.
#pragma once
#include <slipstream/abi/message.hpp>
#include <slipstream/status.hpp>
#include <span>
#include <string>
#include <type_traits>

namespace slipstream {

using abi::access_mode;

/// A registered buffer or tile: two handles are either the same memory or disjoint (checked at registration).
/// Made by runtime::register_range, register_tile and buffer::handle. Plain value; valid as long as its runtime,
/// one of pooled memory until that is released.
struct data_handle {
    u32 index = ~0u;
    u64 address = 0;
    u64 bytes = 0; ///< range: length; tile: bytes in one row
    u32 rows = 0;  ///< 0: a range
    u32 pitch = 0; ///< bytes between rows
};

namespace detail {

struct access_tag {};

/// The requirements on what an access member points at, each with its own message.
template <class T, access_mode Mode>
constexpr bool check_elements()
{
    static_assert(std::is_object_v<T>, "in, out and inout take the type of an element, as in in<float>: no void, no reference");
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes to the device: they must be trivially copyable");
    static_assert(Mode == access_mode::read || !std::is_const_v<T>,
                  "what is written is not const: use in<T> for what a body only reads");
    return true;
}

/// Does what `Range` refers to live on when the expression that made it ends? A task runs later. Buffers say so in runtime.hpp.
template <class Range>
inline constexpr bool outlives_expression = std::is_lvalue_reference_v<Range>
                                            || std::ranges::enable_borrowed_range<std::remove_cvref_t<Range>>
                                            || std::is_base_of_v<access_tag, std::remove_cvref_t<Range>>;

// Word a: address (57 bits). Word b: bytes (40 bits), handle index + 1 (24 bits), 0 = raw range.
struct packed_range {
    u64 address = 0;
    u64 bytes_and_handle = 0;
};

inline constexpr u32 member_handle_shift = 40;
inline constexpr u64 member_bytes_max = (u64{1} << member_handle_shift) - 1;
inline constexpr u32 member_handles_max = (1u << 24) - 2;

SLIPSTREAM_BOTH packed_range pack(u64 address, u64 bytes, u32 handle_plus_one = 0)
{
    return {address, bytes | static_cast<u64>(handle_plus_one) << member_handle_shift};
}

/// Not in line: whoever makes a member pays for a compare.
[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_member(const char* what, u64 number, u64 most)
{
    throw config_error(std::string("an in, out or inout of ") + std::to_string(number) + " " + what + ": at most "
                       + std::to_string(most) + "; a count that was the difference of two has perhaps gone below zero");
}
[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_handle(const data_handle& handle)
{
    throw config_error("an in, out or inout of handle " + std::to_string(handle.index) + ", " + std::to_string(handle.bytes)
                       + " B: no runtime has such a handle, it ends at " + std::to_string(member_handles_max - 1) + " and at "
                       + std::to_string(member_bytes_max) + " B; make it by register_range, register_tile or buffer::handle");
}

/// What a member has no room for would become the number of a handle, or be cut off: on the host it is refused. On the GPU bodies
/// get their members from the runtime.
template <u64 Most>
SLIPSTREAM_BOTH u64 checked(u64 number, const char* what)
{
#if !defined(__CUDA_ARCH__)
    if (number > Most) refuse_member(what, number, Most);
#endif
    return number;
}
SLIPSTREAM_BOTH packed_range pack_handle(const data_handle& handle)
{
#if !defined(__CUDA_ARCH__)
    if ((handle.bytes >> member_handle_shift | u64{handle.index + 1} >> (64 - member_handle_shift)) != 0) refuse_handle(handle);
#endif
    return pack(handle.address, handle.bytes, handle.index + 1);
}

} // namespace detail

/// A contiguous array of T a task uses with the given mode; config_error for 1 TiB and more.
/// LAYOUT: 16 bytes, see detail::packed_range.
template <class T, access_mode Mode>
class array_access : detail::access_tag {
    static_assert(detail::check_elements<T, Mode>());

public:
    static constexpr access_mode mode = Mode;
    static constexpr bool is_rect = false;
    using value_type = T;
    using pointer = std::conditional_t<Mode == access_mode::read, const T*, T*>;

    array_access() = default;
    /// `count` elements from `data` on, in memory that the task's device can reach: on a GPU device memory or pinned host memory.
    /// It must live until the task is retired.
    SLIPSTREAM_BOTH array_access(pointer data, u64 count)
        : packed_(detail::pack(reinterpret_cast<u64>(data),
                               detail::checked<detail::member_bytes_max / sizeof(T)>(count, "elements") * sizeof(T)))
    {
    }
    /// All of a registered buffer.
    SLIPSTREAM_BOTH array_access(const data_handle& handle) : packed_(detail::pack_handle(handle)) {}
    /// Anything with data() and size(): a buffer<T>, a std::span.
    template <class Range, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<Range&>().data()), pointer>>>
    array_access(Range&& range) : array_access(range.data(), range.size())
    {
        static_assert(detail::outlives_expression<Range>,
                      "a temporary container is gone when the task runs: give it a name that lives until the task is retired");
    }

    SLIPSTREAM_BOTH pointer data() const { return reinterpret_cast<pointer>(packed_.address); }
    SLIPSTREAM_BOTH u64 bytes() const { return packed_.bytes_and_handle & detail::member_bytes_max; }
    SLIPSTREAM_BOTH u64 size() const { return bytes() / sizeof(T); }
    SLIPSTREAM_BOTH auto& operator[](u64 index) const { return data()[index]; }
    /// Index into the handle table plus one; 0 for a raw range.
    SLIPSTREAM_BOTH u32 handle_plus_one() const
    {
        return static_cast<u32>(packed_.bytes_and_handle >> detail::member_handle_shift);
    }

private:
    detail::packed_range packed_;
};

/// A 2-D array of T: `rows` rows of `columns` elements, `pitch` bytes apart; config_error for rows of 1 TiB and more, for more
/// rows or pitch than 2^32 - 1, and for more than 2^56 B in all; submit refuses several rows of 4 GiB and more. One without rows
/// holds nothing: it has no columns either, and its rows() are 1 where a task of the device gets it. One of a single row has no
/// pitch there.
/// LAYOUT: 24 bytes: address, bytes of a row and handle, rows and pitch.
template <class T, access_mode Mode>
class tile_access : detail::access_tag {
    static_assert(detail::check_elements<T, Mode>());

public:
    static constexpr access_mode mode = Mode;
    static constexpr bool is_rect = true;
    using value_type = T;
    using pointer = std::conditional_t<Mode == access_mode::read, const T*, T*>;

    tile_access() = default;
    SLIPSTREAM_BOTH tile_access(pointer data, u64 rows, u64 columns, u64 pitch_bytes)
        : packed_(detail::pack(reinterpret_cast<u64>(data),
                               detail::checked<detail::member_bytes_max / sizeof(T)>(columns, "columns")
                                   * (rows != 0 ? sizeof(T) : 0))), // one row is sent as a range, and so is none
          rows_(static_cast<u32>(detail::checked<~u32{0}>(rows, "rows"))),
          pitch_(static_cast<u32>(detail::checked<~u32{0}>(pitch_bytes, "bytes of pitch")))
    {
        // Both below 2^32. More would end behind all addresses, where nothing is found to meet it.
        (void)detail::checked<u64{1} << 56>(u64{rows_} * pitch_, "bytes in all its rows");
    }
    SLIPSTREAM_BOTH tile_access(const data_handle& handle)
        : packed_(detail::pack_handle(handle)), rows_(handle.rows ? handle.rows : 1), pitch_(handle.pitch)
    {
    }

    SLIPSTREAM_BOTH pointer data() const { return reinterpret_cast<pointer>(packed_.address); }
    SLIPSTREAM_BOTH u64 rows() const { return rows_; }
    SLIPSTREAM_BOTH u64 row_bytes() const { return packed_.bytes_and_handle & detail::member_bytes_max; }
    SLIPSTREAM_BOTH u64 columns() const { return row_bytes() / sizeof(T); }
    SLIPSTREAM_BOTH u64 pitch() const { return pitch_; }
    SLIPSTREAM_BOTH pointer row(u64 index) const
    {
        return reinterpret_cast<pointer>(packed_.address + index * pitch_);
    }
    SLIPSTREAM_BOTH auto& operator()(u64 row_index, u64 column) const { return row(row_index)[column]; }
    SLIPSTREAM_BOTH u32 handle_plus_one() const
    {
        return static_cast<u32>(packed_.bytes_and_handle >> detail::member_handle_shift);
    }

private:
    detail::packed_range packed_;
    u32 rows_ = 0;
    u32 pitch_ = 0;
};

template <class T> using in = array_access<T, access_mode::read>;
template <class T> using out = array_access<T, access_mode::write>;
template <class T> using inout = array_access<T, access_mode::read_write>;
template <class T> using in2d = tile_access<T, access_mode::read>;
template <class T> using out2d = tile_access<T, access_mode::write>;
template <class T> using inout2d = tile_access<T, access_mode::read_write>;

static_assert(sizeof(in<float>) == 16 && sizeof(inout2d<double>) == 24);
static_assert(std::is_trivially_copyable_v<in<float>> && std::is_trivially_copyable_v<in2d<float>>);

template <class M> inline constexpr bool is_access_v = std::is_base_of_v<detail::access_tag, M>;

} // namespace slipstream
