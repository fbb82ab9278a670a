// A CUDA graph of kernel nodes: build, instantiate, upload, replay.
#pragma once
#include "tools/slipstream/bench/floors/early_kernels.cuh"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"

namespace slipstream::bench {

class kernel_graph {
public:
    /// Behind programmatic edges kernels start early and wait by themselves: `kernels` are those for its edges.
    explicit kernel_graph(floor_names::edge_kind edges)
        : kernels(kernels_behind(edges)), early_(edges == floor_names::edge_kind::early)
    {
        check_cuda(cudaGraphCreate(&graph_, 0), "cudaGraphCreate");
    }
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
        check_cuda(cudaGraphAddKernelNode(&node, graph_, nullptr, 0, &p), "cudaGraphAddKernelNode");
        cudaGraphEdgeData edge{};
        if (early_) {
            edge.from_port = cudaGraphKernelNodePortProgrammatic;
            edge.type = cudaGraphDependencyTypeProgrammatic;
        }
        for (const cudaGraphNode_t& from : after)
            check_cuda(cudaGraphAddDependencies(graph_, &from, &node, &edge, 1), "cudaGraphAddDependencies");
        ++nodes_;
        return node;
    }

    const body_kernels kernels;

    u32 nodes() const { return nodes_; }
    void finish(cudaStream_t stream)
    {
        check_cuda(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate");
        check_cuda(cudaGraphUpload(exec_, stream), "cudaGraphUpload");
        check_cuda(cudaStreamSynchronize(stream), "cudaGraphUpload");
    }
    void replay(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

private:
    bool early_;
    cudaGraph_t graph_ = nullptr;
    cudaGraphExec_t exec_ = nullptr;
    u32 nodes_ = 0;
};

} // namespace slipstream::bench
