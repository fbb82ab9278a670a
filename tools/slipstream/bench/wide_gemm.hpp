// One tile of a product of bfloat16 matrices, sums in fp32: plain, and on tensor cores.
#pragma once
#include "tools/slipstream/bench/wide_shape.hpp"
#include <bit>
#if defined(__CUDACC__)
#include <cuda_pipeline.h>
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

// Slices of both factors pass through scratch memory, three in flight. Pitches keep the eight rows that ldmatrix takes at once in
// different banks, and each on the 16 bytes that it wants.
inline constexpr u32 gemm_stages = 3;
inline constexpr u32 slice_pitch_a = gemm_slice + 8, slice_pitch_b = gemm_side + 8;
inline constexpr u32 stage_values = gemm_side * slice_pitch_a + gemm_slice * slice_pitch_b;
inline constexpr u32 gemm_shared_bytes = 2 * gemm_stages * stage_values;
static_assert(2 * slice_pitch_a % 16 == 0 && 2 * slice_pitch_b % 16 == 0 && 2 * gemm_side * slice_pitch_a % 16 == 0
              && 2 * stage_values % 16 == 0);

#if defined(__CUDACC__)

template <class Block> inline constexpr bool has_tensor_cores = false;
template <u32 Threads> inline constexpr bool has_tensor_cores<cuda_block<Threads>> = true;
template <u32 Threads> inline constexpr bool has_tensor_cores<cuda_group<Threads>> = true;

/// A lane's share of a 16 x 16 piece of a bfloat16 matrix in shared memory, as the tensor cores want it of the left factor: rows
/// of `pitch` bytes, this lane's 16 bytes at `at` (row lane % 16, half lane / 16).
__device__ __forceinline__ void load_piece(u32 (&piece)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(piece[0]), "=r"(piece[1]), "=r"(piece[2]), "=r"(piece[3])
                 : "r"(at)
                 : "memory");
}
/// The same of the right factor: two pieces of 16 x 8, words 0 and 1, and 2 and 3.
__device__ __forceinline__ void load_piece_turned(u32 (&piece)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(piece[0]), "=r"(piece[1]), "=r"(piece[2]), "=r"(piece[3])
                 : "r"(at)
                 : "memory");
}
/// 16 x 8 sums more.
__device__ __forceinline__ void add_product(float (&sums)[4], const u32 (&left)[4], u32 right_0, u32 right_1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right_0), "r"(right_1));
}

/// Four warps, two by two, with 64 x 64 sums each.
template <class Block>
__device__ __forceinline__ void tensor_tile(const Block& block, bf16_factor a, bf16_factor b, u32 depth, float start, float* tile)
{
    static_assert(Block::size() == gemm_threads);
    constexpr u32 side = 16, down = 4, across = 4; // pieces of a warp
    constexpr u32 copied = 8;                      // elements of one asynchronous copy: 16 bytes
    u16* const scratch = block.template shared<u16>(gemm_shared_bytes / 2);
    const u32 lane = block.rank() % 32, warp = block.rank() / 32,
              first_row = warp / 2 * down * side, first_column = warp % 2 * across * side;

    // What is copied of a slice: this thread's 16 bytes of rows so far apart.
    constexpr u32 apart_a = Block::size() / (gemm_slice / copied), apart_b = Block::size() / (gemm_side / copied);
    const u32 row_a = block.rank() / (gemm_slice / copied), column_a = block.rank() % (gemm_slice / copied) * copied;
    const u32 row_b = block.rank() / (gemm_side / copied), column_b = block.rank() % (gemm_side / copied) * copied;
    const u16* from_a = a.data + static_cast<u64>(row_a) * a.pitch + column_a;
    const u16* from_b = b.data + static_cast<u64>(row_b) * b.pitch + column_b;
    const u16* const end_a = from_a + depth;
    u16* const to_a = scratch + row_a * slice_pitch_a + column_a;
    u16* const to_b = scratch + gemm_side * slice_pitch_a + row_b * slice_pitch_b + column_b;
    const auto fetch = [&](u32 stage) {
        if (from_a != end_a) {
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < gemm_side / apart_a; ++i)
                __pipeline_memcpy_async(to_a + stage + i * apart_a * slice_pitch_a, from_a + i * apart_a * a.pitch, 2 * copied);
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < gemm_slice / apart_b; ++i)
                __pipeline_memcpy_async(to_b + stage + i * apart_b * slice_pitch_b, from_b + i * apart_b * b.pitch, 2 * copied);
            from_a += gemm_slice;
            from_b += gemm_slice * b.pitch;
        }
        __pipeline_commit(); // an empty one at the end, so that the waits below count alike
    };

    float sums[down][2 * across][4];
    SLIPSTREAM_UNROLL
    for (u32 m = 0; m < down; ++m) {
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < 2 * across; ++n) {
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < 4; ++i) sums[m][n][i] = start;
        }
    }
    // This lane's 16 bytes of the first piece of either factor in the first stage.
    const auto base = static_cast<u32>(__cvta_generic_to_shared(scratch));
    const u32 at_a = base + 2 * ((first_row + lane % side) * slice_pitch_a + lane / side * 8);
    const u32 at_b = base + 2 * (gemm_side * slice_pitch_a + lane % side * slice_pitch_b + first_column + lane / side * 8);
    struct pieces {
        u32 left[down][4], right[across][4];
    };
    static_assert(gemm_slice == 2 * side);
    const auto load_half = [&](pieces& to, u32 stage, u32 k) { // from column k of the left slice, row k of the right one
        u32 from_a = at_a + 2 * stage, from_b = at_b + 2 * stage;
        asm("" : "+r"(from_a), "+r"(from_b)); // the pieces lie at constants from these: nvcc would keep an address for each
        SLIPSTREAM_UNROLL
        for (u32 m = 0; m < down; ++m) load_piece(to.left[m], from_a + 2 * (m * side * slice_pitch_a + k));
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < across; ++n) load_piece_turned(to.right[n], from_b + 2 * (k * slice_pitch_b + n * side));
    };
    const auto multiply = [&](const pieces& by) {
        SLIPSTREAM_UNROLL
        for (u32 m = 0; m < down; ++m) {
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < across; ++n) {
                add_product(sums[m][2 * n], by.left[m], by.right[n][0], by.right[n][1]);
                add_product(sums[m][2 * n + 1], by.left[m], by.right[n][2], by.right[n][3]);
            }
        }
    };

    // A slice's first half is in registers before its turn comes, its second one before the barrier in its midst: ptxas moves no
    // load across a barrier, or from turn to turn, where it else lets each wait until it is needed. And from that barrier on the
    // slice's place is free.
    for (u32 stage = 0; stage < gemm_stages; ++stage) fetch(stage * stage_values);
    __pipeline_wait_prior(gemm_stages - 1);
    block.sync();
    pieces first, second;
    load_half(first, 0, 0);
    u32 stage = 0;
    SLIPSTREAM_ONE_COPY
    for (u32 left_over = depth; left_over != 0; left_over -= gemm_slice) {
        load_half(second, stage, side);
        __pipeline_wait_prior(gemm_stages - 2);
        block.sync(); // the next slice is there, and everybody has all of this one
        fetch(stage);
        stage = stage == (gemm_stages - 1) * stage_values ? 0 : stage + stage_values;
        multiply(first);
        load_half(first, stage, 0); // in vain behind the last one
        multiply(second);
    }
    // A lane has two neighbours in rows lane / 4 and that + 8 of each 16 x 8 sums.
    SLIPSTREAM_UNROLL
    for (u32 m = 0; m < down; ++m) {
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < 2 * across; ++n) {
            float* const to = tile + (first_row + m * side + lane / 4) * gemm_side + first_column + n * 8 + lane % 4 * 2;
            *reinterpret_cast<float2*>(to) = {sums[m][n][0], sums[m][n][1]};
            *reinterpret_cast<float2*>(to + 8 * gemm_side) = {sums[m][n][2], sums[m][n][3]};
        }
    }
}

#endif

} // namespace slipstream::bench
