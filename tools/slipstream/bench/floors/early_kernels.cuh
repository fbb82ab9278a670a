// The bodies behind programmatic edges (programmatic dependent launch), and the choice between them and the plain kernels.
#pragma once
#include "tools/slipstream/bench/floors/body_kernels.cuh"
#include "tools/slipstream/bench/floors/floor_names.hpp"

namespace slipstream::bench {
namespace {

/// By every thread of a kernel that may start early, before it touches what its predecessors do.
__device__ void take_place_and_wait()
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion(); // the next ones may take their places at once ...
    cudaGridDependencySynchronize();           // ... and wait here until all before them is done, and its writes are visible
#endif
}

__global__ void __launch_bounds__(floor_threads) early_step_kernel(u32* data, u32 words_each, u32 number)
{
    take_place_and_wait();
    floor_block block;
    step_words(block, data + static_cast<u64>(blockIdx.x) * words_each, words_each, number);
}

__global__ void __launch_bounds__(floor_threads) early_relay_kernel(const u32* from, u32* to, u32 number)
{
    take_place_and_wait();
    floor_block block;
    relay_words(block, from, to, body_words, number);
}

__global__ void __launch_bounds__(floor_threads) early_join_kernel(const u32* from, u32 parts, u32* to, u32 number)
{
    take_place_and_wait();
    floor_block block;
    join_words(block, from, parts, to, body_words, number);
}

struct body_kernels {
    decltype(&step_kernel) step;
    decltype(&relay_kernel) relay;
    decltype(&join_kernel) join;
};

/// What to launch behind edges of that kind.
inline body_kernels kernels_behind(floor_names::edge_kind edges)
{
    if (edges == floor_names::edge_kind::full) return {step_kernel, relay_kernel, join_kernel};
    return {early_step_kernel, early_relay_kernel, early_join_kernel};
}

} // namespace
} // namespace slipstream::bench
