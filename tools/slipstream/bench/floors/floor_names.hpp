// Names of the floors that benchmarks stand beside: one spelling for the list and for those who look it up.
#pragma once
#include "tools/slipstream/bench/wide_shape.hpp"
#include <string>

namespace slipstream::bench::floor_names {

/// Of a replayed graph, or of launches in a stream. early: programmatic dependent launch; the next kernel takes its place while
/// the one before it runs, and waits there.
enum class edge_kind { full, early };

inline std::string with_edges(std::string name, edge_kind edges)
{
    return edges == edge_kind::full ? name : name + ", programmatic edges";
}

/// "4 B", "4 KB".
inline std::string size_text(u32 bytes)
{
    return bytes >= 1024 && bytes % 1024 == 0 ? std::to_string(bytes / 1024) + " KB" : std::to_string(bytes) + " B";
}

inline std::string same_cta_hop(u32 bytes)
{
    return "same-CTA hop, " + size_text(bytes);
}
inline std::string release_hop(u32 bytes)
{
    return "release hop between SMs, " + size_text(bytes);
}
inline std::string grid_barrier(u32 bytes)
{
    return "grid barrier, " + size_text(bytes) + " a CTA";
}
inline const std::string flag_echo = "host-GPU-host flag echo";
inline const std::string slot_store = "host store of a 64 B slot";
inline const std::string launch = "kernel launch";
inline const std::string launch_and_sync = "kernel launch and sync";
inline std::string stream_chain(u32 bytes, edge_kind edges = edge_kind::full)
{
    return with_edges("stream chain, " + size_text(bytes), edges);
}
inline std::string graph_chain(u32 bytes, edge_kind edges = edge_kind::full)
{
    return with_edges("graph replay, chain, " + size_text(bytes), edges);
}
inline std::string graph_wide_chain(u32 blocks, edge_kind edges = edge_kind::full)
{
    return with_edges("graph replay, chain of " + std::to_string(blocks) + " blocks, 4 KB each", edges);
}
inline std::string graph_parallel(u32 bytes, edge_kind edges = edge_kind::full)
{
    return with_edges("graph replay, 128 parallel chains, " + size_text(bytes), edges);
}
inline std::string graph_fan(u32 width, edge_kind edges = edge_kind::full)
{
    return with_edges("graph replay, fan of " + std::to_string(width) + ", 4 KB", edges);
}
inline std::string streams_fan(u32 width)
{
    return "streams and events, fan of " + std::to_string(width) + ", 4 KB";
}

inline const char* wide_name(wide_kind kind)
{
    switch (kind) {
    case wide_kind::copy:
        return "streaming copy";
    case wide_kind::reduction:
        return "block reduction";
    case wide_kind::gemm:
        return "tensor-core GEMM tile";
    case wide_kind::fp64:
        return "register-heavy fp64";
    case wide_kind::even:
        return "4 B a block, even";
    case wide_kind::skewed:
        break;
    }
    return "4 B a block, skewed";
}
inline std::string launched(wide_kind kind)
{
    return std::string("launched: ") + wide_name(kind);
}
/// Of a large task: as many thread blocks as fit at a time, each of which runs many of its blocks.
inline std::string launched_resident(wide_kind kind)
{
    return launched(kind) + ", a resident grid";
}
inline const std::string launched_total = "launched, one after the other";

} // namespace slipstream::bench::floor_names
