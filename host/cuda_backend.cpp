// The GPU device: pinned and device memory, the cooperative launch of the megakernel, and how its end is seen.
#include "host/backend.hpp"
#include "device/layout.hpp"
#include "host/cuda_stream_port.hpp"
#include "host/gpu_requirements.hpp"
#include <cstring>
#include <cuda_runtime_api.h>
#include <new>
#include <vector>

namespace slipstream::host {
namespace {

void check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    throw device_error(std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")"
                       + cuda_remedy(status));
}

/// For memory: where there is too little, that is what is said.
void check_memory(cudaError_t status, const char* call, std::size_t bytes)
{
    if (status != cudaErrorMemoryAllocation) {
        check(status, call);
        return;
    }
    cudaGetLastError();
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) free = total = 0;
    throw device_error(memory_problem(call, bytes, free, total));
}

/// Makes a GPU the calling thread's current one for as long as it lives: a caller with several of them keeps its own.
class current_gpu {
public:
    explicit current_gpu(int ordinal) : current_gpu(ordinal, std::nothrow) { check(status_, "cudaSetDevice"); }
    current_gpu(int ordinal, std::nothrow_t) noexcept : ordinal_(ordinal), before_(ordinal)
    {
        if (cudaGetDevice(&before_) != cudaSuccess) before_ = ordinal;
        status_ = cudaSetDevice(ordinal);
    }
    ~current_gpu()
    {
        if (before_ != ordinal_) cudaSetDevice(before_);
    }
    current_gpu(const current_gpu&) = delete;
    current_gpu& operator=(const current_gpu&) = delete;

private:
    int ordinal_;
    int before_;
    cudaError_t status_;
};

class cuda_backend final : public backend {
public:
    cuda_backend(const config& configuration, const kernel_image& image, int ordinal) : image_(*image.cuda), device_(ordinal)
    {
        const current_gpu here(ordinal);
        check(cudaGetDeviceProperties(&properties_, ordinal), "cudaGetDeviceProperties");
        if (configuration.workers_per_sm < 1 || configuration.workers_per_sm > workers_per_sm_max)
            throw config_error("workers_per_sm = " + std::to_string(configuration.workers_per_sm) + ": must be 1 or 2");
        megakernel_ = image_.megakernel[configuration.workers_per_sm - 1];
        if (megakernel_ == nullptr)
            throw config_error("workers_per_sm = " + std::to_string(configuration.workers_per_sm)
                               + ": these task types were compiled for fewer, since their bodies need the registers; use 1");
        const auto sms = static_cast<u32>(properties_.multiProcessorCount);
        if (configuration.sms_left_free + 2 > sms)
            throw config_error("sms_left_free = " + std::to_string(configuration.sms_left_free) + ": this GPU has "
                               + std::to_string(sms) + " SMs and the engine needs two");
        per_sm_ = configuration.workers_per_sm;
        blocks_ = std::min((sms - configuration.sms_left_free) * per_sm_,
                           32 * device::cuda_worker_groups(per_sm_, configuration.parts > 1) + 1);
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, -5), "cudaStreamCreateWithPriority");
    }

    ~cuda_backend() override
    {
        const current_gpu here(device_, std::nothrow);
        if (launched_) cudaStreamSynchronize(stream_); // the kernel was told to leave, or the device is lost
        for (void* p : pinned_) cudaFreeHost(p);
        for (void* p : device_memory_) cudaFree(p);
        cudaStreamDestroy(stream_);
    }

    std::string name() const override { return "cuda:" + std::to_string(device_) + " (" + properties_.name + ")"; }
    bool is_cuda() const override { return true; }
    u32 workers() const override { return blocks_ - control_blocks(); }
    u32 control_blocks() const override { return 1; }

    void* take_pinned(std::size_t bytes) override
    {
        const current_gpu here(device_);
        void* p = nullptr;
        check_memory(cudaHostAlloc(&p, std::max<std::size_t>(bytes, 16), cudaHostAllocMapped | cudaHostAllocPortable),
                     "cudaHostAlloc", bytes);
        pinned_.push_back(p);
        std::memset(p, 0, bytes);
        return p;
    }

    void* take_device(std::size_t bytes) override
    {
        const current_gpu here(device_);
        void* p = nullptr;
        check_memory(cudaMalloc(&p, std::max<std::size_t>(bytes, 16)), "cudaMalloc", bytes);
        device_memory_.push_back(p);
        check(cudaMemsetAsync(p, 0, std::max<std::size_t>(bytes, 16), stream_), "cudaMemset");
        check(cudaStreamSynchronize(stream_), "cudaMemset");
        return p;
    }

    void write(void* to, const void* from, std::size_t bytes) override
    {
        const current_gpu here(device_);
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(stream_), "cudaMemcpy");
    }

    void read(void* to, const void* from, std::size_t bytes) override
    {
        const current_gpu here(device_);
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(stream_), "cudaMemcpy");
    }

    std::size_t near_bytes_max() const override
    {
        // 1 KiB a block is the system's. Of static shared memory the megakernel has 5.0 KiB (the structs and flight records of a
        // mailbox), and what the bodies' collectives take.
        const current_gpu here(device_);
        cudaFuncAttributes kernel{};
        check(cudaFuncGetAttributes(&kernel, megakernel_), "cudaFuncGetAttributes");
        return properties_.sharedMemPerMultiprocessor / per_sm_ - 1024
            - std::max<std::size_t>(2048, (kernel.sharedSizeBytes + 1023) / 1024 * 1024);
    }

    void prepare(std::size_t near_bytes) override
    {
        const current_gpu here(device_);
        if (image_.shared_bytes > near_bytes_max())
            throw config_error("a task type's blocks need " + std::to_string(image_.shared_bytes)
                               + " B of shared memory on an SM (shared_bytes, times 256 / threads where a type says `threads`), "
                               + std::to_string(near_bytes_max())
                               + " B are there; lower shared_bytes, raise threads, or lower workers_per_sm");
        shared_ = static_cast<u32>(std::max<std::size_t>(near_bytes, image_.shared_bytes));
        // Never less than before: other runtimes, and the other parts of an engine, may launch the same kernel with more.
        cudaFuncAttributes kernel{};
        check(cudaFuncGetAttributes(&kernel, megakernel_), "cudaFuncGetAttributes");
        check(cudaFuncSetAttribute(megakernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   std::max(static_cast<int>(shared_), kernel.maxDynamicSharedSizeBytes)),
              "cudaFuncSetAttribute (shared memory of the megakernel)");
        int fit = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, megakernel_, static_cast<int>(image_.threads), shared_),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        if (const std::string problem = launch_problem({properties_.name, static_cast<u32>(properties_.multiProcessorCount),
                                                        blocks_, per_sm_, static_cast<u32>(fit), image_.threads, shared_});
            !problem.empty())
            throw config_error(problem);
    }

    void launch(const host_arguments& arguments) override
    {
        host_arguments copy = arguments;
        void* parameters[] = {&copy};
        check(cudaSetDevice(device_), "cudaSetDevice"); // of the service thread, which is ours
        check(cudaLaunchCooperativeKernel(megakernel_, dim3(blocks_), dim3(image_.threads), parameters, shared_, stream_),
              "launch of the megakernel");
        launched_ = true;
    }

    stream_port* streams() override { return port_.get(); }

    bool running() override
    {
        if (!launched_) return false;
        const cudaError_t status = cudaStreamQuery(stream_);
        if (status == cudaErrorNotReady) return true;
        launched_ = false;
        check(status, "the megakernel ended with an error");
        return false;
    }

private:
    cuda_image image_;
    const void* megakernel_ = nullptr;
    int device_;
    cudaDeviceProp properties_{};
    cudaStream_t stream_ = nullptr;
    u32 per_sm_ = 1;
    u32 blocks_ = 0;
    u32 shared_ = 0;
    bool launched_ = false;
    std::unique_ptr<stream_port> port_ = make_cuda_stream_port();
    std::vector<void*> pinned_;
    std::vector<void*> device_memory_;
};

} // namespace

int cuda_device_count()
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

u32 cuda_multiprocessors(int ordinal)
{
    int count = 0;
    if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, ordinal) == cudaSuccess) return static_cast<u32>(count);
    cudaGetLastError();
    return 0;
}

std::string cuda_problem(int ordinal)
{
    gpu_facts f;
    f.build_cuda = CUDART_VERSION;
    if (cudaDriverGetVersion(&f.driver_cuda) != cudaSuccess) f.driver_cuda = 0;
    const cudaError_t status = cudaGetDeviceCount(&f.count);
    if (status != cudaSuccess) {
        cudaGetLastError();
        f.answer = status == cudaErrorNoDevice                                       ? gpu_answer::no_device
            : f.driver_cuda == 0                                                     ? gpu_answer::no_driver
            : status == cudaErrorInsufficientDriver || f.driver_cuda < CUDART_VERSION ? gpu_answer::old_driver
                                                                                     : gpu_answer::other;
        f.said = std::string(cudaGetErrorString(status)) + cuda_remedy(status);
    } else if (ordinal < f.count) {
        cudaDeviceProp p{};
        f.answers = cudaGetDeviceProperties(&p, ordinal) == cudaSuccess;
        f.name = p.name;
        f.major = p.major;
        f.minor = p.minor;
        f.cooperative_launch = p.cooperativeLaunch != 0;
        f.sms = static_cast<u32>(p.multiProcessorCount);
    }
    return gpu_problem(f, ordinal);
}

std::unique_ptr<backend> make_cuda_backend(const config& configuration, const kernel_image& image, int ordinal)
{
    if (image.cuda == nullptr)
        throw config_error("this task list was compiled for the host only: compile the file that makes the runtime with nvcc");
    if (const std::string problem = cuda_problem(ordinal); !problem.empty()) throw device_error(problem);
    return std::make_unique<cuda_backend>(configuration, image, ordinal);
}

} // namespace slipstream::host
