// What may be said of a task when it is submitted, beside its struct.
#pragma once
#include <initializer_list>
#include <slipstream/access.hpp>
#include <slipstream/status.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// One declared access that is no member of the task struct. Ranges are exact, half open, in bytes.
struct declared_access {
    access_mode mode = access_mode::none;
    u64 address = 0;
    u64 bytes = 0;  ///< of the range, or of one row
    u64 rows = 1;   ///< 1: a range
    u64 pitch = 0;  ///< bytes between rows
    u32 handle_plus_one = 0;
};

namespace detail {

[[noreturn, gnu::noinline, gnu::cold]] inline void refuse_access(u64 bytes, u64 rows, u64 pitch)
{
    const std::string each =
        rows == 1 ? "" : " in each of " + std::to_string(rows) + " rows, " + std::to_string(pitch) + " B apart,";
    throw config_error("an access of " + std::to_string(bytes) + " B" + each + " ends behind all addresses: a size that was the "
                       "difference of two has perhaps gone below zero; for all memory say ordering::whole_memory");
}
/// What goes past the last address would seem to end at a small one, and nothing would be found to meet it.
inline u64 checked_begin(const void* data, u64 bytes, u64 rows = 1, u64 pitch = 0)
{
    const u64 begin = reinterpret_cast<u64>(data);
    u64 end = 0;
    if (rows != 0 && bytes != 0
        && (__builtin_mul_overflow(rows - 1, pitch, &end) || __builtin_add_overflow(end, bytes, &end)
            || __builtin_add_overflow(end, begin, &end)))
        refuse_access(bytes, rows, pitch);
    return begin;
}

} // namespace detail

/// Throws config_error when it reaches 2^64, as all of these.
inline declared_access raw_access(access_mode mode, const void* data, u64 bytes)
{
    return {mode, detail::checked_begin(data, bytes), bytes};
}
inline declared_access reads(const void* data, u64 bytes) { return raw_access(access_mode::read, data, bytes); }
inline declared_access writes(const void* data, u64 bytes) { return raw_access(access_mode::write, data, bytes); }
inline declared_access reads_and_writes(const void* data, u64 bytes) { return raw_access(access_mode::read_write, data, bytes); }
inline declared_access tile(access_mode mode, const void* data, u64 row_bytes, u64 rows, u64 pitch)
{
    return {mode, detail::checked_begin(data, row_bytes, rows, pitch), rows != 0 ? row_bytes : 0, rows, pitch}; // none: nothing
}
inline declared_access on(access_mode mode, const data_handle& handle)
{
    return {mode, handle.address, handle.bytes, handle.rows ? handle.rows : 1, handle.pitch, handle.index + 1};
}

/// A view of a list that a braced list, a vector or a single value converts to; lives for one call.
template <class T>
class list_view : public std::span<const T> {
public:
    list_view() = default;
    list_view(std::initializer_list<T> list) : std::span<const T>(list.begin(), list.size()) {}
    list_view(const std::vector<T>& list) : std::span<const T>(list) {}
    list_view(std::span<const T> list) : std::span<const T>(list) {}
    list_view(const T& value) : std::span<const T>(&value, 1) {}
};

/// What an access list means.
enum class ordering {
    by_access,    ///< as declared; a task that declares nothing is a whole-memory task
    whole_memory, ///< ordered against everything before and after
    no_access,    ///< accesses (typed members too) order nothing: only `after` and whole-memory tasks do
};

/// Options of submit; all have sensible defaults.
struct submit_options {
    u32 blocks = 1; ///< thread blocks of the task, 1 to 2^31 - 1
    /// Tasks that this one starts behind; it is cancelled if one of them failed or was cancelled, and, while everything is poisoned
    /// (runtime::clear_failure() says when), whatever became of them. A task of another thread may be named before it is
    /// submitted, if its ring and position are known, however far ahead: until it is taken in, this thread's later tasks wait,
    /// too, for ever if it never is. One that this thread has yet to submit would wait behind this one for ever: config_error.
    /// With config::parts that goes for all tasks, since one thread submits to all rings. No more than config::accesses_max that
    /// have not succeeded yet, streams of after_stream included (config_error).
    list_view<task_handle> after{};
    list_view<declared_access> accesses{};
    ordering order = ordering::by_access;
    std::string_view name{}; ///< for reports; must outlive the runtime (a string literal). A task that has one takes longer to
                             ///< submit; those behind it do not

    /// Nothing, or a number of blocks that there can be.
    bool says_little() const
    {
        return after.empty() && accesses.empty() && name.empty() && order == ordering::by_access && blocks - 1 < 0x7fffffffu;
    }
};

} // namespace slipstream
