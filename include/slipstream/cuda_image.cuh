// Instantiates the workers' kernels and the plain kernels of a task list; needs nvcc.
#pragma once
#include "device/worker_kernel.cuh"
#include <algorithm>
#include <slipstream/kernel_image.hpp>

namespace slipstream::detail {

template <class List, u32 Workers, u32 WorkersMost>
const void* workers_for()
{
    if constexpr (Workers <= WorkersMost)
        return reinterpret_cast<const void*>(&device::worker_kernel<List, Workers>);
    else
        return nullptr;
}

template <u32 WorkersMost, class... Tasks>
const cuda_image* make_cuda_image()
{
    static const void* const plain[]
        = {reinterpret_cast<const void*>(&device::plain_kernel<Tasks, threads_of<Tasks>()>)...};
    static constexpr u32 plain_threads[] = {threads_of<Tasks>()...};
    static const cuda_image image{{workers_for<task_list<Tasks...>, 1, WorkersMost>(),
                                   workers_for<task_list<Tasks...>, 2, WorkersMost>()},
                                  plain, plain_threads, worker_threads,
                                  std::max({worker_threads / threads_of<Tasks>() * device::shared_share<Tasks>()..., 0u})};
    return &image;
}

} // namespace slipstream::detail
