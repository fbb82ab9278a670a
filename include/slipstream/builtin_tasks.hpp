// The tasks every runtime brings along: copy, fill, and a task that does nothing but be ordered.
#pragma once
#include <slipstream/access.hpp>

namespace slipstream {

/// Copies min(from.size(), to.size()) bytes. 16 bytes a step where both sides are aligned alike.
struct copy_task {
    static constexpr const char* name = "copy";
    in<unsigned char> from;
    out<unsigned char> to;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        struct alignas(16) wide {
            u32 w[4];
        };
        const u64 bytes = from.size() < to.size() ? from.size() : to.size();
        const u64 a = reinterpret_cast<u64>(from.data());
        const u64 b = reinterpret_cast<u64>(to.data());
        u64 done = 0;
        if (a % 16 == 0 && b % 16 == 0) {
            const u64 count = bytes / 16;
            const auto* const source = reinterpret_cast<const wide*>(a);
            auto* const target = reinterpret_cast<wide*>(b);
            for (u64 i = block.global_rank(); i < count; i += block.global_size()) target[i] = source[i];
            done = count * 16;
        }
        for (u64 i = done + block.global_rank(); i < bytes; i += block.global_size()) to[i] = from[i];
    }
};

/// Sets every byte of `to` to `value`.
struct fill_task {
    static constexpr const char* name = "fill";
    out<unsigned char> to;
    u32 value;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        for (u64 i = block.global_rank(); i < to.size(); i += block.global_size()) to[i] = static_cast<unsigned char>(value);
    }
};

/// Does nothing: a point in the order.
struct marker_task {
    static constexpr const char* name = "marker";
    static constexpr bool brief = true;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const noexcept {}
};

} // namespace slipstream
