// What tasks of very many blocks work on: kinds, sizes, memory. The same for the engine and for launches.
#pragma once
#include <slipstream/abi/portable.hpp>

namespace slipstream::bench {

enum class wide_kind : u32 {
    copy,      ///< a streaming copy
    reduction, ///< a block reduction
    gemm,      ///< a tile of a matrix product, on tensor cores
    fp64,      ///< fused multiply-adds on many registers
    even,      ///< a word, all blocks alike
    skewed,    ///< a word, a few blocks fifty times as long as the others
};
inline constexpr wide_kind body_kinds[] = {wide_kind::copy, wide_kind::reduction, wide_kind::gemm, wide_kind::fp64};

struct wide_shape {
    u32 blocks;
    u32 depth;  ///< gemm: products of each sum, a multiple of gemm_slice
    u32 rounds; ///< fp64: steps of each value
};

/// Where the bodies find their data. A task reads what its kind needs, writes its target, and steps its ledger.
struct wide_places {
    u32* source = nullptr;  ///< copy, reduction: share_words a block, see source_word()
    u16* rows = nullptr;    ///< gemm: gemm_tiles tiles below each other, `depth` wide, by rows; see factor_value()
    u16* columns = nullptr; ///< gemm: gemm_tiles tiles beside each other, `depth` high, by rows; likewise
    void* target = nullptr; ///< wide_target_bytes(kind) a block
    u32* ledger = nullptr;  ///< a word a block
};

inline constexpr u32 share_words = 16384;       ///< 64 KB a block of copy and reduction
inline constexpr u32 gemm_side = 128;           ///< rows and columns of a tile
inline constexpr u32 gemm_threads = 128;        ///< of its blocks
inline constexpr u32 gemm_tiles = 64;           ///< tiles of either factor; blocks take pairs of them in turn
inline constexpr u32 gemm_slice = 32;           ///< of the depth, staged at a time
inline constexpr u32 fp64_values = 256;         ///< a block
inline constexpr u32 fp64_registers = 64;       ///< doubles that each value keeps alive, a power of two
inline constexpr u32 short_steps = 64, long_steps = 50 * short_steps; ///< skewed

/// On the GPU at least 100 waves of blocks of 256 threads, were there four to an SM; on the host a few, since it computes for long.
inline constexpr u32 wide_blocks_cuda = 53248, wide_blocks_host = 2;
inline constexpr u32 large_blocks_cuda = 1u << 20, large_blocks_host = 2048;
SLIPSTREAM_BOTH constexpr bool is_large(wide_kind kind)
{
    return kind == wide_kind::even || kind == wide_kind::skewed;
}
SLIPSTREAM_BOTH constexpr wide_shape shape_of(wide_kind kind, bool on_cuda)
{
    if (is_large(kind)) return {on_cuda ? large_blocks_cuda : large_blocks_host, 0, 0};
    return on_cuda ? wide_shape{wide_blocks_cuda, 1024, 32} : wide_shape{wide_blocks_host, 64, 4};
}

/// Bytes that a block writes beside its word of the ledger.
SLIPSTREAM_BOTH constexpr u32 wide_target_bytes(wide_kind kind)
{
    return kind == wide_kind::copy        ? 4 * share_words
           : kind == wide_kind::reduction ? 4
           : kind == wide_kind::gemm      ? 4 * gemm_side * gemm_side
           : kind == wide_kind::fp64      ? 8 * fp64_values
                                          : 0;
}

/// Skewed: four neighbours of every thousand are long; a worker that draws one may draw all of them.
SLIPSTREAM_BOTH constexpr bool is_long(u32 block)
{
    return block % 1000 < 4;
}
/// Steps that a block takes in its word of the ledger.
SLIPSTREAM_BOTH constexpr u32 ledger_steps(wide_kind kind, bool is_long_one)
{
    return kind != wide_kind::skewed ? 1 : is_long_one ? long_steps : short_steps;
}

/// Contents of the source: its sum over any range is known without adding.
SLIPSTREAM_BOTH constexpr u32 source_word(u64 index)
{
    return static_cast<u32>(index) * 2654435761u;
}

/// Contents of a factor, -4 to 3: sums of 1024 products stay exact in fp32, so that tensor cores and any order give the same bits.
SLIPSTREAM_BOTH constexpr int factor_value(u32 index)
{
    return static_cast<int>((index * 2654435761u) >> 29) - 4;
}

} // namespace slipstream::bench
