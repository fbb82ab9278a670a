// A body behind a programmatic edge (programmatic dependent launch).
#pragma once
#include "tools/slipstream/bench/floors/body_kernels.cuh"

namespace slipstream::bench {
namespace {

/// step_kernel that takes its place as soon as its predecessor has begun, and waits there for its end.
__global__ void __launch_bounds__(floor_threads) early_step_kernel(u32* data, u32 words, u32 number)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion(); // the next one may take its place at once ...
    cudaGridDependencySynchronize();           // ... and waits here until this one's writes are visible
#endif
    floor_block block;
    step_words(block, data, words, number);
}

} // namespace
} // namespace slipstream::bench
