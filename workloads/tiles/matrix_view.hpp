// A matrix by rows in somebody else's memory, as bodies and checks use it.
#pragma once
#include <slipstream/access.hpp>

namespace slipstream::workloads {

/// Element (i, j) lies at data[i * pitch + j]; `pitch` in elements. Offsets within a view stay below 2^32.
template <class T>
struct matrix_view {
    T* data;
    u32 pitch;

    SLIPSTREAM_BOTH T& operator()(u32 i, u32 j) const { return data[i * pitch + j]; }
    /// The view whose element (0, 0) is (i, j) of this one.
    SLIPSTREAM_BOTH matrix_view at(u32 i, u32 j) const { return {data + i * pitch + j, pitch}; }
};

template <class T>
SLIPSTREAM_BOTH matrix_view<const T> constant(matrix_view<T> m)
{
    return {m.data, m.pitch};
}

/// The memory behind a 2-D member of a task.
template <class T, access_mode Mode>
SLIPSTREAM_BOTH auto view_of(const tile_access<T, Mode>& tile)
{
    using element = std::remove_pointer_t<typename tile_access<T, Mode>::pointer>;
    return matrix_view<element>{tile.data(), static_cast<u32>(tile.pitch() / sizeof(T))};
}

} // namespace slipstream::workloads
