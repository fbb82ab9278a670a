// A square matrix by rows in device memory, cut into square tiles, each a registered handle or a raw rectangle.
#pragma once
#include "host/engines/engine.hpp"
#include "workloads/tiles/matrix_view.hpp"

namespace slipstream::workloads {

/// What both tile algorithms are asked for.
struct tiling {
    u32 tiles; ///< a side
    u32 tile;  ///< rows and columns of one
    bool handles;

    u32 side() const { return tiles * tile; }
};

template <class T>
class tiled_matrix {
public:
    tiled_matrix(engines::device_memory& device, engines::program& program, const tiling& t)
        : device_(&device), tiling_(t), data_(static_cast<T*>(device.take(bytes())))
    {
        if (!t.handles) return;
        for (u32 i = 0; i < t.tiles; ++i)
            for (u32 j = 0; j < t.tiles; ++j)
                handles_.push_back(program.register_tile(address(i, j), t.tile * sizeof(T), t.tile, pitch()));
    }

    /// Tile (i, j) as a member of a task: in2d, out2d, inout2d of T.
    template <class Access> Access tile(u32 i, u32 j) const
    {
        if (tiling_.handles) return Access(handles_[i * tiling_.tiles + j]);
        return Access(address(i, j), tiling_.tile, tiling_.tile, pitch());
    }

    void write(const std::vector<T>& values) { device_->write(data_, values.data(), bytes()); }
    std::vector<T> read() const
    {
        std::vector<T> values(bytes() / sizeof(T));
        device_->read(values.data(), data_, bytes());
        return values;
    }

private:
    u64 pitch() const { return tiling_.side() * sizeof(T); }
    u64 bytes() const { return pitch() * tiling_.side(); }
    T* address(u32 i, u32 j) const { return data_ + u64{i} * tiling_.tile * tiling_.side() + j * tiling_.tile; }

    engines::device_memory* device_;
    tiling tiling_;
    T* data_;
    std::vector<data_handle> handles_;
};

} // namespace slipstream::workloads
