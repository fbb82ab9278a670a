// Host side of the floors: checked CUDA calls, memory, times of work on a stream, slopes between two sizes.
#pragma once
#include "tools/slipstream/bench/bodies.hpp"
#include "tools/slipstream/bench/floors/floor_list.hpp"
#include <algorithm>
#include <chrono>
#include <cuda_runtime.h>
#include <slipstream/status.hpp>
#include <type_traits>

namespace slipstream::bench {

inline void check_cuda(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    throw device_error(std::string("floors, ") + what + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

/// Zeroed memory of the current device, or pinned memory of the host.
template <class T> class floor_memory {
public:
    explicit floor_memory(u64 count, bool pinned = false) : count_(count), pinned_(pinned)
    {
        if (pinned) {
            check_cuda(cudaHostAlloc(reinterpret_cast<void**>(&data_), count * sizeof(T), cudaHostAllocMapped), "cudaHostAlloc");
            std::fill_n(reinterpret_cast<unsigned char*>(data_), count * sizeof(T), static_cast<unsigned char>(0));
        } else {
            check_cuda(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)), "cudaMalloc");
            check_cuda(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
            // Floors run on non-blocking streams, which do not wait for the default one.
            check_cuda(cudaDeviceSynchronize(), "cudaMemset");
        }
    }
    ~floor_memory()
    {
        if (pinned_)
            cudaFreeHost(data_);
        else
            cudaFree(data_);
    }
    floor_memory(const floor_memory&) = delete;
    floor_memory& operator=(const floor_memory&) = delete;

    T* get() const { return data_; }
    u64 size() const { return count_; }
    void clear(cudaStream_t stream) const { check_cuda(cudaMemsetAsync(data_, 0, count_ * sizeof(T), stream), "cudaMemset"); }
    /// Both for device memory, while nothing else uses it.
    void write(const std::vector<T>& from) const
    {
        check_cuda(cudaMemcpy(data_, from.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
        check_cuda(cudaDeviceSynchronize(), "cudaMemcpy");
    }
    std::vector<T> read() const
    {
        std::vector<T> out(count_);
        check_cuda(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
        return out;
    }

private:
    T* data_ = nullptr;
    u64 count_;
    bool pinned_;
};

/// A stream with a pair of events.
class gpu_timer {
public:
    gpu_timer()
    {
        check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        check_cuda(cudaEventCreate(&start_), "cudaEventCreate");
        check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
    }
    ~gpu_timer()
    {
        cudaEventDestroy(start_);
        cudaEventDestroy(end_);
        cudaStreamDestroy(stream_);
    }
    gpu_timer(const gpu_timer&) = delete;
    gpu_timer& operator=(const gpu_timer&) = delete;

    cudaStream_t stream() const { return stream_; }
    /// Microseconds the GPU takes for what `work` puts on the stream.
    template <class Work> double us(Work work)
    {
        check_cuda(cudaEventRecord(start_, stream_), "cudaEventRecord");
        work();
        check_cuda(cudaEventRecord(end_, stream_), "cudaEventRecord");
        check_cuda(cudaEventSynchronize(end_), "a floor's kernel");
        float ms = 0;
        check_cuda(cudaEventElapsedTime(&ms, start_, end_), "cudaEventElapsedTime");
        return ms * 1e3;
    }

private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t start_ = nullptr, end_ = nullptr;
};

inline double us_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

/// run(count, repetition) returns microseconds; a slope a repetition, after a run of each size that warms up.
template <class Run> std::vector<double> floor_slopes(Run run, u32 count, u32 repeats)
{
    run(count, 0u);
    run(2 * count, 0u);
    std::vector<double> out;
    for (u32 i = 0; i < repeats; ++i) {
        const double once = run(count, i);
        const double twice = run(2 * count, i);
        out.push_back((twice - once) / count);
    }
    return out;
}

/// SMs of the current device, and shared memory that keeps a second thread block of a grid away from an SM. Just over half: the
/// rest stays L1.
struct gpu_shape {
    u32 sms = 0;
    u32 whole_sm_bytes = 0;
};
inline gpu_shape current_gpu()
{
    int device = 0, sms = 0, bytes = 0;
    check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    check_cuda(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device), "cudaDeviceGetAttribute");
    return {static_cast<u32>(sms), static_cast<u32>(bytes / 2 + 1024)};
}

/// One thread block on each SM, all resident at once: only then may they wait for each other.
template <class... Args>
void launch_resident(void (*kernel)(Args...), const gpu_shape& gpu, u32 threads, cudaStream_t stream,
                     std::type_identity_t<Args>... args)
{
    const auto* const function = reinterpret_cast<const void*>(kernel);
    check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(gpu.whole_sm_bytes)),
               "cudaFuncSetAttribute");
    void* list[] = {&args...};
    check_cuda(cudaLaunchCooperativeKernel(function, dim3(gpu.sms), dim3(threads), list, gpu.whole_sm_bytes, stream),
               "cudaLaunchCooperativeKernel");
}

/// What a word is after steps numbered 1 to `steps`, from 0.
inline u32 steps_from_zero(u32 steps)
{
    u32 x = 0;
    for (u32 i = 1; i <= steps; ++i) x = stepped(x, i);
    return x;
}

/// Of a floor whose bodies have so many words.
inline std::string unchecked_note(u64 words)
{
    return words != 0 ? "" : "bodies write nothing, so no data are checked";
}

inline bool all_equal(const std::vector<u32>& words, u32 value)
{
    return std::all_of(words.begin(), words.end(), [&](u32 w) { return w == value; });
}

} // namespace slipstream::bench
