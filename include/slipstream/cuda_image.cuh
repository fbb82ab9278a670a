// Instantiates the megakernel and the plain kernels of a task list; needs nvcc.
#pragma once
#include "device/megakernel.cuh"
#include <algorithm>
#include <slipstream/kernel_image.hpp>

namespace slipstream::detail {

inline constexpr u32 cuda_threads = 256;

template <class... Tasks>
const cuda_image* make_cuda_image()
{
    static const void* const plain[]
        = {reinterpret_cast<const void*>(&device::plain_kernel<Tasks, cuda_threads>)...};
    static const cuda_image image{{reinterpret_cast<const void*>(&device::megakernel<task_list<Tasks...>, cuda_threads, 1>),
                                   reinterpret_cast<const void*>(&device::megakernel<task_list<Tasks...>, cuda_threads, 2>)},
                                  plain,
                                  cuda_threads, std::max({shared_bytes_of<Tasks>()..., 0u})};
    return &image;
}

} // namespace slipstream::detail
