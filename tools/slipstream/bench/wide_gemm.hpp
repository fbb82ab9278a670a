// One tile of a product of bfloat16 matrices, sums in fp32: plain, and on tensor cores.
#pragma once
#include "tools/slipstream/bench/wide_shape.hpp"
#include <bit>
#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include <slipstream/cuda_block.cuh>
#endif

namespace slipstream::bench {

/// bfloat16 is the upper half of a float.
SLIPSTREAM_BOTH float value_of_bf16(u16 bits)
{
    return std::bit_cast<float>(static_cast<u32>(bits) << 16);
}
/// Exact for integers of up to eight bits.
SLIPSTREAM_BOTH u16 bf16_of(float value)
{
    return static_cast<u16>(std::bit_cast<u32>(value) >> 16);
}

/// One factor: its tile's first element, and elements from row to row.
struct bf16_factor {
    const u16* data;
    u32 pitch;
};

template <class Block>
SLIPSTREAM_BODY void plain_tile(const Block& block, bf16_factor a, bf16_factor b, u32 depth, float start, float* tile)
{
    for (u32 at = block.rank(); at < gemm_side * gemm_side; at += block.size()) {
        const u32 i = at / gemm_side, j = at % gemm_side;
        float sum = start;
        for (u32 k = 0; k < depth; ++k)
            sum +=
                value_of_bf16(a.data[static_cast<u64>(i) * a.pitch + k]) * value_of_bf16(b.data[static_cast<u64>(k) * b.pitch + j]);
        tile[at] = sum;
    }
}

// Slices of both factors pass through scratch memory, three in flight. Pitches keep rows of a fragment in different banks, and
// fragments on 32 bytes as load_matrix_sync wants them.
inline constexpr u32 gemm_stages = 3;
inline constexpr u32 slice_pitch_a = gemm_slice + 8, slice_pitch_b = gemm_side + 8;
inline constexpr u32 stage_values = gemm_side * slice_pitch_a + gemm_slice * slice_pitch_b;
inline constexpr u32 gemm_alignment = 32;
inline constexpr u32 gemm_shared_bytes = 2 * gemm_stages * stage_values + gemm_alignment;
static_assert(2 * stage_values % gemm_alignment == 0 && 2 * gemm_side * slice_pitch_a % gemm_alignment == 0);

#if defined(__CUDACC__)

template <class Block> inline constexpr bool has_tensor_cores = false;
template <u32 Threads> inline constexpr bool has_tensor_cores<cuda_block<Threads>> = true;
template <u32 Threads> inline constexpr bool has_tensor_cores<cuda_group<Threads>> = true;

/// Four warps, two by two, with 64 x 64 sums each.
template <class Block>
__device__ __forceinline__ void tensor_tile(const Block& block, bf16_factor a, bf16_factor b, u32 depth, float start, float* tile)
{
    using namespace nvcuda;
    using element = __nv_bfloat16;
    static_assert(Block::size() == gemm_threads);
    constexpr u32 side = 16, down = 4, across = 4; // fragments of a warp
    constexpr u32 piece = 8;                       // elements of one asynchronous copy: 16 bytes
    // Aligned by its place in shared memory. nvcc 13.0 loads fragments by generic loads, a word each, all the same.
    const auto place = __cvta_generic_to_shared(block.template shared<unsigned char>(gemm_shared_bytes));
    auto* const scratch = static_cast<element*>(__cvta_shared_to_generic((place + gemm_alignment - 1) & ~std::size_t{gemm_alignment - 1}));
    const u32 warp = block.rank() / 32, first_row = warp / 2 * down * side, first_column = warp % 2 * across * side;

    const auto fetch = [&](u32 slice) {
        if (slice * gemm_slice < depth) {
            element* const to_a = scratch + slice % gemm_stages * stage_values;
            element* const to_b = to_a + gemm_side * slice_pitch_a;
            for (u32 i = block.rank(); i < gemm_side * gemm_slice / piece; i += Block::size()) {
                const u32 row_a = i / (gemm_slice / piece), column_a = i % (gemm_slice / piece) * piece;
                __pipeline_memcpy_async(to_a + row_a * slice_pitch_a + column_a,
                                        a.data + static_cast<u64>(row_a) * a.pitch + slice * gemm_slice + column_a, 2 * piece);
                const u32 row_b = i / (gemm_side / piece), column_b = i % (gemm_side / piece) * piece;
                __pipeline_memcpy_async(to_b + row_b * slice_pitch_b + column_b,
                                        b.data + static_cast<u64>(slice * gemm_slice + row_b) * b.pitch + column_b, 2 * piece);
            }
        }
        __pipeline_commit(); // an empty one at the end, so that the waits below count alike
    };

    wmma::fragment<wmma::accumulator, side, side, side, float> sums[down][across];
    SLIPSTREAM_UNROLL
    for (u32 m = 0; m < down; ++m) {
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < across; ++n) wmma::fill_fragment(sums[m][n], start);
    }
    for (u32 slice = 0; slice + 1 < gemm_stages; ++slice) fetch(slice);
    for (u32 slice = 0; slice * gemm_slice < depth; ++slice) {
        __pipeline_wait_prior(gemm_stages - 2);
        block.sync(); // this slice is there, and everybody is done with the one before, whose place is filled next
        fetch(slice + gemm_stages - 1);
        const element* const from_a = scratch + slice % gemm_stages * stage_values;
        const element* const from_b = from_a + gemm_side * slice_pitch_a;
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < gemm_slice; k += side) {
            wmma::fragment<wmma::matrix_a, side, side, side, element, wmma::row_major> left[down];
            wmma::fragment<wmma::matrix_b, side, side, side, element, wmma::row_major> right[across];
            SLIPSTREAM_UNROLL
            for (u32 m = 0; m < down; ++m)
                wmma::load_matrix_sync(left[m], from_a + (first_row + m * side) * slice_pitch_a + k, slice_pitch_a);
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < across; ++n)
                wmma::load_matrix_sync(right[n], from_b + k * slice_pitch_b + first_column + n * side, slice_pitch_b);
            SLIPSTREAM_UNROLL
            for (u32 m = 0; m < down; ++m) {
                SLIPSTREAM_UNROLL
                for (u32 n = 0; n < across; ++n) wmma::mma_sync(sums[m][n], left[m], right[n], sums[m][n]);
            }
        }
    }
    SLIPSTREAM_UNROLL
    for (u32 m = 0; m < down; ++m) {
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < across; ++n)
            wmma::store_matrix_sync(tile + (first_row + m * side) * gemm_side + first_column + n * side, sums[m][n], gemm_side,
                                    wmma::mem_row_major);
    }
}

#endif

} // namespace slipstream::bench
