// What may be said of a task when it is submitted, beside its struct.
#pragma once
#include <initializer_list>
#include <slipstream/access.hpp>
#include <slipstream/status.hpp>
#include <span>
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

inline declared_access raw_access(access_mode mode, const void* data, u64 bytes)
{
    return {mode, reinterpret_cast<u64>(data), bytes};
}
inline declared_access reads(const void* data, u64 bytes) { return raw_access(access_mode::read, data, bytes); }
inline declared_access writes(const void* data, u64 bytes) { return raw_access(access_mode::write, data, bytes); }
inline declared_access reads_and_writes(const void* data, u64 bytes) { return raw_access(access_mode::read_write, data, bytes); }
inline declared_access tile(access_mode mode, const void* data, u64 row_bytes, u64 rows, u64 pitch)
{
    return {mode, reinterpret_cast<u64>(data), row_bytes, rows, pitch};
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
    list_view<task_handle> after{};
    list_view<declared_access> accesses{};
    ordering order = ordering::by_access;
    std::string_view name{}; ///< for reports; must outlive the runtime (a string literal)

    /// Nothing, or a number of blocks that there can be.
    bool says_little() const
    {
        return after.empty() && accesses.empty() && name.empty() && order == ordering::by_access && blocks - 1 < 0x7fffffffu;
    }
};

} // namespace slipstream
