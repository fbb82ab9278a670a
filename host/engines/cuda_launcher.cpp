// CUDA calls with their errors told, pools, and the preparation of plain kernels.
#include "host/engines/cuda_launcher.hpp"

namespace slipstream::engines {

void check_cuda(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    std::string text = std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + "); ";
    switch (status) {
    case cudaErrorMemoryAllocation: text += "use a smaller workload, or free memory on the GPU"; break;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction: text += "this build has no code for the GPU: configure and build on this machine"; break;
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidValue: text += "a task has more blocks or scratch memory than the GPU allows"; break;
    default: text += "the GPU's context is lost: run again, under compute-sanitizer if it repeats"; break;
    }
    throw device_error(text);
}

stream_pool::stream_pool(u32 ordinal, u32 count)
{
    check_cuda(cudaSetDevice(static_cast<int>(ordinal)), "cudaSetDevice");
    streams_.reserve(count);
    for (u32 i = 0; i < count; ++i) {
        cudaStream_t stream = nullptr;
        check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        streams_.push_back(stream);
    }
}

stream_pool::~stream_pool()
{
    for (cudaStream_t s : streams_) cudaStreamDestroy(s);
}

event_pool::~event_pool()
{
    for (cudaEvent_t e : events_) cudaEventDestroy(e);
}

void event_pool::grow_to(u32 count)
{
    events_.reserve(count);
    while (events_.size() < count) {
        cudaEvent_t event = nullptr;
        check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
        events_.push_back(event);
    }
}

cuda_launcher::cuda_launcher(u32 ordinal, const kernel_image& image) : image_(image)
{
    check_cuda(cudaSetDevice(static_cast<int>(ordinal)), "cudaSetDevice");
    bool waits_itself = true;
    for (u32 t = 0; t < image.types; ++t) {
        // Asking for the attributes loads the kernel (loading is lazy by default, and holds the context's lock).
        cudaFuncAttributes attributes{};
        check_cuda(cudaFuncGetAttributes(&attributes, image.cuda->plain_kernels[t]), "loading of a kernel");
        waits_itself = waits_itself && attributes.ptxVersion >= 90;
        if (image.shared_bytes[t] > 48 * 1024)
            check_cuda(cudaFuncSetAttribute(image.cuda->plain_kernels[t], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(image.shared_bytes[t])),
                       "scratch memory of a kernel");
    }
    // From Hopper on, plain kernels wait for their predecessors themselves, each on every path (device::plain_kernel): then edges
    // of graphs may be programmatic, and a path of them still orders its two ends. Code compiled for less does not wait.
    if (waits_itself) {
        edge_.from_port = cudaGraphKernelNodePortProgrammatic;
        edge_.type = cudaGraphDependencyTypeProgrammatic;
    }
}

} // namespace slipstream::engines
