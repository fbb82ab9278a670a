// Other people's work on CUDA streams, before and behind tasks.
#pragma once
#include "gpu_tasks.cuh"
#include <memory>

namespace slipstream::tests {
namespace { // each source file has kernels of its own, and loads those

__device__ u64 clock_ns_of_device()
{
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/// Burns about `ns` nanoseconds, then sets every element to `value`.
__global__ void slow_set(u64* x, u64 count, u64 value, u64 ns)
{
    const u64 start = clock_ns_of_device();
    while (clock_ns_of_device() - start < ns) {}
    for (u64 i = threadIdx.x; i < count; i += blockDim.x) x[i] = value;
}

/// Copies x to y, element by element.
__global__ void copy_now(const u64* x, u64* y, u64 count)
{
    for (u64 i = threadIdx.x; i < count; i += blockDim.x) y[i] = x[i];
}

/// Loading a kernel lazily waits for every stream, also for one that waits for a task: each is launched once before.
void load_kernels()
{
    static const bool loaded = [] {
        slow_set<<<1, 1>>>(nullptr, 0, 0, 0);
        copy_now<<<1, 1>>>(nullptr, nullptr, 0);
        return cudaDeviceSynchronize() == cudaSuccess;
    }();
    REQUIRE(loaded);
}

struct stream {
    stream()
    {
        load_kernels();
        REQUIRE(cudaStreamCreateWithFlags(&raw, cudaStreamNonBlocking) == cudaSuccess);
    }
    ~stream()
    {
        cudaStreamSynchronize(raw);
        cudaStreamDestroy(raw);
    }
    cudaStream_t raw = nullptr;
};

constexpr u64 slow_ns = 3'000'000;
constexpr u64 count = 512;

/// Synchronises with the stream as a host thread that waits at most `limit`.
bool ends_in(cudaStream_t s, std::chrono::milliseconds limit)
{
    const auto until = std::chrono::steady_clock::now() + limit;
    while (cudaStreamQuery(s) == cudaErrorNotReady) {
        if (std::chrono::steady_clock::now() > until) return false;
        std::this_thread::sleep_for(100us);
    }
    return cudaStreamQuery(s) == cudaSuccess;
}

} // namespace
} // namespace slipstream::tests
