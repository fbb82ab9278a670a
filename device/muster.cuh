// device/muster.hpp in a kernel.
#pragma once
#include "device/cuda_platform.cuh"
#include "device/kernel_arguments.hpp"

namespace slipstream::device {

__device__ __forceinline__ u32 this_sm()
{
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

__device__ __forceinline__ muster<cuda_platform> muster_of(const kernel_arguments<cuda_platform>& args)
{
    return {args.muster_words, *args.memory.page, args.launch, args.patience_ns, args.memory.n.workers};
}

} // namespace slipstream::device
