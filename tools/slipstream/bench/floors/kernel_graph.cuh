// A CUDA graph of kernel nodes: build, instantiate, upload, replay.
#pragma once
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"

namespace slipstream::bench {

class kernel_graph {
public:
    kernel_graph() { check_cuda(cudaGraphCreate(&graph_, 0), "cudaGraphCreate"); }
    ~kernel_graph()
    {
        if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
        cudaGraphDestroy(graph_);
    }
    kernel_graph(const kernel_graph&) = delete;
    kernel_graph& operator=(const kernel_graph&) = delete;

    /// A node of `blocks` blocks that runs behind `after`.
    template <class... Args>
    cudaGraphNode_t add(const std::vector<cudaGraphNode_t>& after, u32 blocks, void (*kernel)(Args...),
                        std::type_identity_t<Args>... args)
    {
        void* list[] = {&args...};
        cudaKernelNodeParams p{};
        p.func = reinterpret_cast<void*>(kernel);
        p.gridDim = dim3(blocks);
        p.blockDim = dim3(floor_threads);
        p.kernelParams = list;
        cudaGraphNode_t node = nullptr;
        check_cuda(cudaGraphAddKernelNode(&node, graph_, after.data(), after.size(), &p), "cudaGraphAddKernelNode");
        ++nodes_;
        return node;
    }
    /// `to` may start early and waits for `from` by itself (programmatic dependent launch).
    void add_early_edge(cudaGraphNode_t from, cudaGraphNode_t to)
    {
        cudaGraphEdgeData edge{};
        edge.from_port = cudaGraphKernelNodePortProgrammatic;
        edge.type = cudaGraphDependencyTypeProgrammatic;
        check_cuda(cudaGraphAddDependencies(graph_, &from, &to, &edge, 1), "cudaGraphAddDependencies, programmatic");
    }

    u32 nodes() const { return nodes_; }
    void finish(cudaStream_t stream)
    {
        check_cuda(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate");
        check_cuda(cudaGraphUpload(exec_, stream), "cudaGraphUpload");
        check_cuda(cudaStreamSynchronize(stream), "cudaGraphUpload");
    }
    void replay(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

private:
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
    u32 nodes_ = 0;
};

} // namespace slipstream::bench
