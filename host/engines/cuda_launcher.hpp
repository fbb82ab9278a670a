// What all stream- and graph-based engines share: error checks, streams and events that free themselves, the launch of one task.
#pragma once
#include "host/engines/program.hpp"
#include <algorithm>
#include <cuda_runtime_api.h>
#include <vector>

namespace slipstream::engines {

/// Throws device_error with what was being done, what CUDA says, and what to do.
void check_cuda(cudaError_t status, const char* what);

/// Non-blocking streams, destroyed with this object.
class stream_pool {
public:
    stream_pool(u32 ordinal, u32 count);
    ~stream_pool();
    stream_pool(const stream_pool&) = delete;
    stream_pool& operator=(const stream_pool&) = delete;
    cudaStream_t operator[](u32 index) const { return streams_[index]; }
    u32 size() const { return static_cast<u32>(streams_.size()); }

private:
    std::vector<cudaStream_t> streams_;
};

/// Events without timing, destroyed with this object.
class event_pool {
public:
    event_pool() = default;
    ~event_pool();
    event_pool(const event_pool&) = delete;
    event_pool& operator=(const event_pool&) = delete;
    void grow_to(u32 count);
    cudaEvent_t operator[](u32 index) const { return events_[index]; }

private:
    std::vector<cudaEvent_t> events_;
};

/// Launches tasks of one image as plain kernels.
class cuda_launcher {
public:
    /// Loads the kernels of all types, so that no run pays for it, and allows them their scratch memory.
    cuda_launcher(u32 ordinal, const kernel_image& image);

    void launch(const program& p, const program_task& t, cudaStream_t stream) const
    {
        // An empty struct has no bytes in the program, but its kernel has a parameter of one byte.
        u64 nothing = 0;
        void* parameters[] = {image_.table[t.type].words ? const_cast<void*>(p.arguments(t)) : &nothing};
        check_cuda(cudaLaunchKernel(image_.cuda->plain_kernels[t.type], dim3(t.blocks), dim3(image_.cuda->plain_threads[t.type]),
                                    parameters, image_.shared_bytes[t.type], stream),
                   "kernel launch");
    }

    /// The same launch as a node of `graph`, behind `predecessors`. CUDA copies the arguments.
    cudaGraphNode_t add_node(const program& p, const program_task& t, cudaGraph_t graph,
                             std::span<const cudaGraphNode_t> predecessors)
    {
        u64 nothing = 0;
        void* parameters[] = {image_.table[t.type].words ? const_cast<void*>(p.arguments(t)) : &nothing};
        cudaGraphNodeParams node_parameters{};
        node_parameters.type = cudaGraphNodeTypeKernel;
        node_parameters.kernel.func = const_cast<void*>(image_.cuda->plain_kernels[t.type]);
        node_parameters.kernel.gridDim = dim3(t.blocks);
        node_parameters.kernel.blockDim = dim3(image_.cuda->plain_threads[t.type]);
        node_parameters.kernel.sharedMemBytes = image_.shared_bytes[t.type];
        node_parameters.kernel.kernelParams = parameters;
        edges_.resize(std::max(edges_.size(), predecessors.size()), edge_);
        cudaGraphNode_t node = nullptr;
        check_cuda(cudaGraphAddNode(&node, graph, predecessors.data(), edges_.data(), predecessors.size(), &node_parameters),
                   "cudaGraphAddNode");
        return node;
    }

private:
    kernel_image image_;
    cudaGraphEdgeData edge_{}; ///< what an edge of a graph is; see the constructor
    std::vector<cudaGraphEdgeData> edges_;
};

} // namespace slipstream::engines
