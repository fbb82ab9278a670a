#include "host/engines/cuda_gate.hpp"
#include <chrono>
#include <cudaTypedefs.h>

namespace slipstream::engines {
namespace {

constexpr std::chrono::seconds closed_at_most{5};

// The stream memory operations are the driver's; the runtime library knows where they are.
PFN_cuStreamWaitValue32_v11070 stream_wait()
{
    void* found = nullptr;
    cudaDriverEntryPointQueryResult what{};
    check_cuda(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &found, 11070, cudaEnableDefault, &what),
               "cudaGetDriverEntryPointByVersion(cuStreamWaitValue32)");
    if (what != cudaDriverEntryPointSuccess || found == nullptr)
        throw device_error("preloaded runs of streams need cuStreamWaitValue32, which this driver does not have; use another mode");
    return reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(found);
}

} // namespace

cuda_gate::cuda_gate(u32 ordinal)
{
    check_cuda(cudaSetDevice(static_cast<int>(ordinal)), "cudaSetDevice");
    check_cuda(cudaHostAlloc(reinterpret_cast<void**>(&open_), sizeof(u32), cudaHostAllocMapped), "cudaHostAlloc");
    store(1);
}

cuda_gate::~cuda_gate()
{
    store(1);
    if (guard_.joinable()) {
        {
            const std::lock_guard lock(mutex_);
            closed_ = false;
        }
        changed_.notify_all();
        guard_.join();
    }
    cudaFreeHost(open_);
}

void cuda_gate::close(const stream_pool& streams)
{
    static const auto wait = stream_wait();
    store(0);
    closed_ = true;
    by_itself_ = false;
    for (u32 s = 0; s < streams.size(); ++s)
        if (wait(streams[s], reinterpret_cast<CUdeviceptr>(open_), 1, CU_STREAM_WAIT_VALUE_EQ) != CUDA_SUCCESS)
            throw device_error("cuStreamWaitValue32 was refused: this GPU has no stream memory operations; use another mode");
    guard_ = std::thread([this] {
        std::unique_lock lock(mutex_);
        by_itself_ = !changed_.wait_for(lock, closed_at_most, [&] { return !closed_; });
        if (by_itself_) store(1);
    });
}

void cuda_gate::open()
{
    {
        const std::lock_guard lock(mutex_);
        closed_ = false;
        store(1);
    }
    changed_.notify_all();
}

void cuda_gate::settle()
{
    guard_.join();
    if (by_itself_)
        throw config_error("preloaded: CUDA's launch queue does not hold the whole program on this engine; "
                           "use fewer tasks or another mode");
}

} // namespace slipstream::engines
