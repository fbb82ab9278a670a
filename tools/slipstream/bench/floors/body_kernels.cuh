// The bodies of bodies.hpp as kernels of their own: what streams and graphs launch.
#pragma once
#include "tools/slipstream/bench/bodies.hpp"
#include "tools/slipstream/bench/floors/shared_words.cuh"

namespace slipstream::bench {
namespace {

/// Block b steps words [b * words_each, (b + 1) * words_each). words_each = 0: an empty kernel.
__global__ void __launch_bounds__(floor_threads) step_kernel(u32* data, u32 words_each, u32 number)
{
    floor_block block;
    step_words(block, data + static_cast<u64>(blockIdx.x) * words_each, words_each, number);
}

__global__ void __launch_bounds__(floor_threads) relay_kernel(const u32* from, u32* to, u32 number)
{
    floor_block block;
    relay_words(block, from, to, body_words, number);
}

__global__ void __launch_bounds__(floor_threads) join_kernel(const u32* from, u32 parts, u32* to, u32 number)
{
    floor_block block;
    join_words(block, from, parts, to, body_words, number);
}

/// What every word of a fan's source is after so many rounds, from 0; numbers count up from 1 as tasks do.
inline u32 fan_result(u32 width, u32 rounds)
{
    u32 x = 0, number = 1;
    for (u32 round = 0; round < rounds; ++round) {
        const u32 produced = stepped(x, number++);
        u32 sum = produced;
        for (u32 k = 0; k < width; ++k) sum += produced + number++;
        x = stepped(sum, number++);
    }
    return x;
}

} // namespace
} // namespace slipstream::bench
