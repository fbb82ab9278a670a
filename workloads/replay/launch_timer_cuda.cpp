// The launch timer of a build with CUDA.
#include "workloads/replay/launch_timer.hpp"
#include <algorithm>
#include <cuda_runtime_api.h>
#include <slipstream/status.hpp>
#include <string>
#include <vector>

namespace slipstream::workloads {
namespace {

void check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    throw device_error(std::string("calibration, ") + what + ": " + cudaGetErrorString(status)
                       + " (" + cudaGetErrorName(status) + ")");
}

// A chain of equal kernel nodes whose kernel is exchanged between launches without instantiating again.
class kernel_chain {
public:
    kernel_chain(const cudaKernelNodeParams& first, u32 length)
    {
        check(cudaGraphCreate(&graph_, 0), "cudaGraphCreate");
        for (u32 i = 0; i < length; ++i) {
            cudaGraphNode_t node = nullptr;
            check(cudaGraphAddKernelNode(&node, graph_, nodes_.empty() ? nullptr : &nodes_.back(), nodes_.empty() ? 0 : 1, &first),
                  "cudaGraphAddKernelNode");
            nodes_.push_back(node);
        }
        check(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate");
    }
    ~kernel_chain()
    {
        if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
        if (graph_ != nullptr) cudaGraphDestroy(graph_);
    }
    kernel_chain(const kernel_chain&) = delete;
    kernel_chain& operator=(const kernel_chain&) = delete;

    void set(const cudaKernelNodeParams& parameters)
    {
        for (cudaGraphNode_t node : nodes_)
            check(cudaGraphExecKernelNodeSetParams(exec_, node, &parameters), "cudaGraphExecKernelNodeSetParams");
    }
    void launch(cudaStream_t stream) { check(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }
    u32 length() const { return static_cast<u32>(nodes_.size()); }

private:
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
    std::vector<cudaGraphNode_t> nodes_;
};

class cuda_launch_timer final : public launch_timer {
public:
    cuda_launch_timer(const kernel_image& image, int ordinal) : image_(image)
    {
        check(cudaSetDevice(ordinal), "cudaSetDevice");
        check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        check(cudaEventCreate(&start_), "cudaEventCreate");
        check(cudaEventCreate(&end_), "cudaEventCreate");
        for (u32 type = 0; type < image_.types; ++type)
            if (image_.shared_bytes[type] > 48 * 1024)
                check(cudaFuncSetAttribute(image_.cuda->plain_kernels[type], cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(image_.shared_bytes[type])),
                      "cudaFuncSetAttribute");
        // The marker, last of every list, does nothing: two lengths of its chain give what a launch of a graph costs by itself.
        const u32 marker = image_.types - 1;
        unsigned char no_members[8] = {};
        void* arguments[] = {no_members};
        const cudaKernelNodeParams empty = parameters(marker, arguments, 1);
        for (const u32 length : {1u, 4u, 16u}) chains_.push_back(std::make_unique<kernel_chain>(empty, length));
        best_of(*chains_.back(), 20); // clocks up, kernels loaded
        const double one = best_of(*chains_.front(), 20);
        const double sixteen = best_of(*chains_.back(), 20);
        overhead_us_ = std::max(0.0, one - (sixteen - one) / 15);
    }

    ~cuda_launch_timer() override
    {
        chains_.clear();
        if (start_ != nullptr) cudaEventDestroy(start_);
        if (end_ != nullptr) cudaEventDestroy(end_);
        if (stream_ != nullptr) cudaStreamDestroy(stream_);
    }

    double run(u32 type, const void* task, u32 blocks, double expected_us) override
    {
        kernel_chain& chain = *chains_[expected_us > 2000 ? 0 : expected_us > 200 ? 1 : 2];
        void* arguments[] = {const_cast<void*>(task)};
        chain.set(parameters(type, arguments, blocks));
        return std::max(0.0, (best_of(chain, expected_us > 200 ? 2 : 5) - overhead_us_) / chain.length());
    }

private:
    cudaKernelNodeParams parameters(u32 type, void** arguments, u32 blocks) const
    {
        cudaKernelNodeParams p{};
        p.func = const_cast<void*>(image_.cuda->plain_kernels[type]);
        p.gridDim = dim3(blocks);
        p.blockDim = dim3(image_.cuda->plain_threads[type]);
        p.sharedMemBytes = image_.shared_bytes[type];
        p.kernelParams = arguments;
        return p;
    }

    // The shortest of `times`: noise only ever adds. One more launch first warms up caches and instruction memory.
    double best_of(kernel_chain& chain, u32 times)
    {
        chain.launch(stream_);
        double best = 0;
        for (u32 i = 0; i < times; ++i) {
            check(cudaEventRecord(start_, stream_), "cudaEventRecord");
            chain.launch(stream_);
            check(cudaEventRecord(end_, stream_), "cudaEventRecord");
            check(cudaEventSynchronize(end_), "a calibration kernel");
            float ms = 0;
            check(cudaEventElapsedTime(&ms, start_, end_), "cudaEventElapsedTime");
            if (i == 0 || ms * 1e3 < best) best = ms * 1e3;
        }
        return best;
    }

    kernel_image image_;
    cudaStream_t stream_ = nullptr;
    cudaEvent_t start_ = nullptr, end_ = nullptr;
    std::vector<std::unique_ptr<kernel_chain>> chains_;
    double overhead_us_ = 0;
};

} // namespace

std::unique_ptr<launch_timer> make_launch_timer(const kernel_image& image, int ordinal)
{
    if (image.cuda == nullptr) return nullptr;
    return std::make_unique<cuda_launch_timer>(image, ordinal);
}

} // namespace slipstream::workloads
