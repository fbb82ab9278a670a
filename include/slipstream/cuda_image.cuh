// Instantiates the megakernel and the plain kernels of a task list; needs nvcc.
#pragma once
#include "device/megakernel.cuh"
#include <algorithm>
#include <slipstream/kernel_image.hpp>

namespace slipstream::detail {

inline constexpr u32 cuda_threads = 256;

template <class List, u32 Workers, u32 WorkersMost>
const void* megakernel_for()
{
    if constexpr (Workers <= WorkersMost)
        return reinterpret_cast<const void*>(&device::megakernel<List, cuda_threads, Workers>);
    else
        return nullptr;
}

template <u32 WorkersMost, class... Tasks>
const cuda_image* make_cuda_image()
{
    static const void* const plain[]
        = {reinterpret_cast<const void*>(&device::plain_kernel<Tasks, cuda_threads>)...};
    static const cuda_image image{{megakernel_for<task_list<Tasks...>, 1, WorkersMost>(), megakernel_for<task_list<Tasks...>, 2, WorkersMost>()},
                                  plain,
                                  cuda_threads, std::max({shared_bytes_of<Tasks>()..., 0u})};
    return &image;
}

} // namespace slipstream::detail
