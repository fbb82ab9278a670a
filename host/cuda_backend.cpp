// The GPU device: pinned and device memory, the cooperative launch of the megakernel, and how its end is seen.
#include "host/backend.hpp"
#include "device/layout.hpp"
#include "host/cuda_stream_port.hpp"
#include <cstring>
#include <cuda_runtime_api.h>
#include <vector>

namespace slipstream::host {
namespace {

void check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    throw device_error(std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")");
}

class cuda_backend final : public backend {
public:
    cuda_backend(const config& configuration, const kernel_image& image, int ordinal) : image_(*image.cuda), device_(ordinal)
    {
        check(cudaSetDevice(ordinal), "cudaSetDevice");
        check(cudaGetDeviceProperties(&properties_, ordinal), "cudaGetDeviceProperties");
        if (!properties_.cooperativeLaunch)
            throw device_error(std::string(properties_.name) + " has no cooperative launch; use --device host");
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
        blocks_ = std::min((sms - configuration.sms_left_free) * per_sm_, per_sm_ * device::cuda_workers_per_sm_step + 1);
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, -5), "cudaStreamCreateWithPriority");
    }

    ~cuda_backend() override
    {
        cudaSetDevice(device_);
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
        void* p = nullptr;
        check(cudaHostAlloc(&p, std::max<std::size_t>(bytes, 16), cudaHostAllocMapped | cudaHostAllocPortable), "cudaHostAlloc");
        pinned_.push_back(p);
        std::memset(p, 0, bytes);
        return p;
    }

    void* take_device(std::size_t bytes) override
    {
        void* p = nullptr;
        check(cudaMalloc(&p, std::max<std::size_t>(bytes, 16)), "cudaMalloc");
        device_memory_.push_back(p);
        check(cudaMemsetAsync(p, 0, std::max<std::size_t>(bytes, 16), stream_), "cudaMemset");
        check(cudaStreamSynchronize(stream_), "cudaMemset");
        return p;
    }

    void write(void* to, const void* from, std::size_t bytes) override
    {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(stream_), "cudaMemcpy");
    }

    void read(void* to, const void* from, std::size_t bytes) override
    {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(stream_), "cudaMemcpy");
    }

    std::size_t near_bytes_max() const override
    {
        // 1 KiB a block is the system's; the megakernel's static shared memory is a few hundred bytes.
        return properties_.sharedMemPerMultiprocessor / per_sm_ - 1024 - 2048;
    }

    void prepare(std::size_t near_bytes) override
    {
        shared_ = static_cast<u32>(std::max<std::size_t>(near_bytes, image_.shared_bytes));
        check(cudaFuncSetAttribute(megakernel_, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_)),
              "cudaFuncSetAttribute (shared memory of the megakernel)");
        int fit = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, megakernel_, static_cast<int>(image_.threads), shared_),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        if (static_cast<u32>(fit) < per_sm_)
            throw config_error("workers_per_sm = " + std::to_string(per_sm_) + ", but only " + std::to_string(fit)
                               + " blocks of the megakernel fit on an SM (" + std::to_string(image_.threads) + " threads, "
                               + std::to_string(shared_) + " B shared memory); lower workers_per_sm or the window");
    }

    void launch(const host_arguments& arguments) override
    {
        host_arguments copy = arguments;
        void* parameters[] = {&copy};
        check(cudaSetDevice(device_), "cudaSetDevice");
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

std::string cuda_problem(int ordinal)
{
    int count = 0;
    if (const cudaError_t status = cudaGetDeviceCount(&count); status != cudaSuccess) {
        cudaGetLastError();
        if (status == cudaErrorInsufficientDriver)
            return "the NVIDIA driver is older than CUDA 13.0 needs (580 or newer); update the driver";
        return std::string("no usable NVIDIA GPU (") + cudaGetErrorString(status) + ")";
    }
    if (count == 0) return "no NVIDIA GPU found";
    if (ordinal >= count)
        return "there is no cuda:" + std::to_string(ordinal) + "; this machine has " + std::to_string(count) + " GPU(s), from cuda:0";
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, ordinal) != cudaSuccess) return "cuda:" + std::to_string(ordinal) + " does not answer";
    if (p.major < 8)
        return std::string(p.name) + " has compute capability " + std::to_string(p.major) + "." + std::to_string(p.minor)
            + "; 8.0 or newer is needed";
    return {};
}

std::unique_ptr<backend> make_cuda_backend(const config& configuration, const kernel_image& image, int ordinal)
{
    if (image.cuda == nullptr)
        throw config_error("this task list was compiled for the host only: compile the file that makes the runtime with nvcc");
    if (const std::string problem = cuda_problem(ordinal); !problem.empty()) throw device_error(problem);
    return std::make_unique<cuda_backend>(configuration, image, ordinal);
}

} // namespace slipstream::host
