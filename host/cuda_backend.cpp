// The GPU device: pinned and device memory, the launch of the megakernel's two halves, and how their end is seen.
//
// The control block and the workers are two kernels, in a stream each. The control block comes first, with an SM to itself; the
// workers are launched cooperatively: all of them are resident, or none. Each waits for what the other writes, so nothing
// between the two launches may wait for a kernel to end: whatever the driver does at the first launch of a kernel is done
// before (settle()).
#include "host/backend.hpp"
#include "device/control_kernel.hpp"
#include "host/cuda_stream_port.hpp"
#include "host/gpu_requirements.hpp"
#include <cstdlib>
#include <cstring>
#include <cuda_runtime_api.h>
#include <mutex>
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

/// Held over both launches of an engine: with another engine's between them two control blocks could hold an SM each, and neither's
/// workers find as many as they need, until one launch is void (device/muster.hpp), as between processes that share a GPU by MPS.
/// And over what is read and written back of a kernel's attributes, which engines share.
std::mutex two_launches;

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
        // Workers two by two may come to lie on all SMs that they find, one each, before another part's control block has come.
        if (configuration.workers_per_sm > 1 && configuration.parts > 1)
            throw config_error("workers_per_sm = " + std::to_string(configuration.workers_per_sm) + " and parts = "
                               + std::to_string(configuration.parts)
                               + ": each part's control block needs an SM to itself, and other parts' workers might leave it none; "
                                 "use one of the two");
        workers_kernel_ = image_.workers[configuration.workers_per_sm - 1];
        if (workers_kernel_ == nullptr)
            throw config_error("workers_per_sm = " + std::to_string(configuration.workers_per_sm)
                               + ": these task types were compiled for fewer, since their bodies need the registers; use 1");
        const auto sms = static_cast<u32>(properties_.multiProcessorCount);
        if (configuration.sms_left_free + 2 > sms)
            throw config_error("sms_left_free = " + std::to_string(configuration.sms_left_free) + ": this GPU has "
                               + std::to_string(sms) + " SMs and the engine needs two");
        per_sm_ = configuration.workers_per_sm;
        workers_ = std::min((sms - configuration.sms_left_free - 1) * per_sm_, device::control_workers_max(configuration.parts));
        control_kernel_ = device::control_kernel_for(workers_, configuration.parts);
        for (cudaStream_t* const stream : {&control_stream_, &worker_stream_})
            check(cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking, -5), "cudaStreamCreateWithPriority");
    }

    ~cuda_backend() override
    {
        const current_gpu here(device_, std::nothrow);
        if (launched_) // the kernels were told to leave, or the device is lost
            for (const cudaStream_t stream : {control_stream_, worker_stream_}) cudaStreamSynchronize(stream);
        for (void* p : pinned_) cudaFreeHost(p);
        for (void* p : device_memory_) cudaFree(p);
        for (const cudaStream_t stream : {control_stream_, worker_stream_}) cudaStreamDestroy(stream);
    }

    std::string name() const override { return "cuda:" + std::to_string(device_) + " (" + properties_.name + ")"; }
    bool is_cuda() const override { return true; }
    u32 workers() const override { return workers_; }
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
        check(cudaMemsetAsync(p, 0, std::max<std::size_t>(bytes, 16), control_stream_), "cudaMemset");
        check(cudaStreamSynchronize(control_stream_), "cudaMemset");
        return p;
    }

    void write(void* to, const void* from, std::size_t bytes) override
    {
        const current_gpu here(device_);
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, control_stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(control_stream_), "cudaMemcpy");
    }

    void read(void* to, const void* from, std::size_t bytes) override
    {
        const current_gpu here(device_);
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, control_stream_), "cudaMemcpy");
        check(cudaStreamSynchronize(control_stream_), "cudaMemcpy");
    }

    std::size_t near_bytes_max() const override
    {
        // 1 KiB a block is the system's.
        const current_gpu here(device_);
        return properties_.sharedMemPerMultiprocessor - 1024 - attributes_of(control_kernel_).sharedSizeBytes;
    }

    void prepare(std::size_t near_bytes) override
    {
        const current_gpu here(device_);
        near_bytes_ = static_cast<u32>(near_bytes);
        allow_shared(control_kernel_, near_bytes_);
        const std::size_t bodies_most
            = properties_.sharedMemPerMultiprocessor / per_sm_ - 1024 - attributes_of(workers_kernel_).sharedSizeBytes;
        if (image_.shared_bytes > bodies_most)
            throw config_error("a task type's blocks need " + std::to_string(image_.shared_bytes)
                               + " B of shared memory on an SM (shared_bytes, times 256 / threads where a type says `threads`), "
                               + std::to_string(bodies_most)
                               + " B are there; lower shared_bytes, raise threads, or lower workers_per_sm");
        // What is left of an SM's shared memory is L1. But workers of few registers need some to keep more of them off their SM.
        shared_ = image_.shared_bytes;
        allow_shared(workers_kernel_, shared_);
        u32 fit = blocks_that_fit(shared_);
        if (fit > per_sm_) {
            shared_ = std::max(shared_, static_cast<u32>(properties_.sharedMemPerMultiprocessor / (per_sm_ + 1)));
            allow_shared(workers_kernel_, shared_);
            fit = blocks_that_fit(shared_);
        }
        if (const std::string problem = launch_problem({properties_.name, static_cast<u32>(properties_.multiProcessorCount),
                                                        workers_, per_sm_, fit, image_.threads, shared_});
            !problem.empty())
            throw config_error(problem);
    }

    void launch(const host_arguments& arguments) override
    {
        check(cudaSetDevice(device_), "cudaSetDevice"); // of the service thread, which is ours
        settle();
        void* parameters[] = {const_cast<host_arguments*>(&arguments)}; // CUDA reads them
        const std::lock_guard lock(two_launches);
        check(cudaLaunchKernel(control_kernel_, dim3(1), dim3(device::control_threads), parameters, near_bytes_, control_stream_),
              "launch of the control block");
        launched_ = true;
        check(cudaLaunchCooperativeKernel(workers_kernel_, dim3(workers_), dim3(image_.threads), parameters, shared_,
                                          worker_stream_),
              "launch of the workers");
    }

    stream_port* streams() override { return port_.get(); }

    bool running() override
    {
        if (!launched_) return false;
        bool both_left = true;
        for (const cudaStream_t stream : {control_stream_, worker_stream_}) {
            const cudaError_t status = cudaStreamQuery(stream);
            if (status == cudaErrorNotReady) both_left = false;
            else check(status, "the megakernel ended with an error");
        }
        launched_ = !both_left;
        return launched_;
    }

private:
    static cudaFuncAttributes attributes_of(const void* kernel)
    {
        cudaFuncAttributes out{};
        check(cudaFuncGetAttributes(&out, kernel), "cudaFuncGetAttributes");
        return out;
    }

    /// Never less than before: other runtimes, and the other parts of an engine, may launch the same kernel with more.
    static void allow_shared(const void* kernel, u32 bytes)
    {
        const std::lock_guard lock(two_launches);
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   std::max(static_cast<int>(bytes), attributes_of(kernel).maxDynamicSharedSizeBytes)),
              "cudaFuncSetAttribute (shared memory of the megakernel)");
    }

    /// Workers on an SM.
    u32 blocks_that_fit(u32 shared) const
    {
        int fit = 0;
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, workers_kernel_, static_cast<int>(image_.threads), shared),
              "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
        return static_cast<u32>(fit);
    }

    /// Once: a grid of workers that has nothing to do. The driver loads a kernel when it is first launched, and may have to
    /// find local memory for its threads, more than any kernel before it needed: either waits until nothing runs on the GPU.
    void settle()
    {
        if (settled_) return;
        host_arguments nothing{};
        void* parameters[] = {&nothing};
        check(cudaLaunchKernel(workers_kernel_, dim3(1), dim3(image_.threads), parameters, shared_, worker_stream_),
              "launch of the workers");
        settled_ = true;
    }

    cuda_image image_;
    const void* control_kernel_ = nullptr;
    const void* workers_kernel_ = nullptr;
    int device_;
    cudaDeviceProp properties_{};
    cudaStream_t control_stream_ = nullptr; ///< and of copies, while nothing is resident
    cudaStream_t worker_stream_ = nullptr;
    u32 per_sm_ = 1;
    u32 workers_ = 0;
    u32 near_bytes_ = 0; ///< shared memory of the control block
    u32 shared_ = 0;     ///< of a worker, for bodies
    bool settled_ = false;
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
    if (const std::string problem = launch_blocking_problem(std::getenv("CUDA_LAUNCH_BLOCKING")); !problem.empty())
        throw config_error(problem);
    return std::make_unique<cuda_backend>(configuration, image, ordinal);
}

} // namespace slipstream::host
