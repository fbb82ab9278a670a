// A CUDA graph of a program: one kernel node a task, one edge for each hazard that no path of others implies.
#pragma once
#include "host/engines/arrivals.hpp"
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/edge_reduction.hpp"
#include "host/engines/hazard_search.hpp"
#include <utility>

namespace slipstream::engines {

/// Finds the hazards of a program and makes graphs of it, as often as asked; keeps its memory in between.
class cuda_graph_builder {
public:
    cuda_graph_builder(u32 ordinal, const kernel_image& image) : launcher_(ordinal, image) {}

    /// A new graph; the caller owns it.
    cudaGraph_t build(const program& p, pacer& arriving);
    /// Edges of the last graph, and how many the hazard search had found.
    u64 edges() const { return edges_; }
    u64 hazards() const { return hazards_; }

private:
    cuda_launcher launcher_;
    hazard_search hazards_of_;
    edge_reduction reduction_;
    std::vector<cudaGraphNode_t> nodes_;
    std::vector<cudaGraphNode_t> predecessors_;
    u64 edges_ = 0, hazards_ = 0;
};

/// Owns a graph.
class cuda_graph {
public:
    cuda_graph() = default;
    explicit cuda_graph(cudaGraph_t graph) : graph_(graph) {}
    ~cuda_graph() { reset(); }
    cuda_graph(const cuda_graph&) = delete;
    cuda_graph& operator=(const cuda_graph&) = delete;
    void reset(cudaGraph_t graph = nullptr)
    {
        if (graph_ != nullptr) cudaGraphDestroy(graph_);
        graph_ = graph;
    }
    cudaGraph_t release() { return std::exchange(graph_, nullptr); }
    cudaGraph_t get() const { return graph_; }

private:
    cudaGraph_t graph_ = nullptr;
};

/// Owns an executable graph, or none yet.
class cuda_graph_exec {
public:
    cuda_graph_exec() = default;
    ~cuda_graph_exec() { reset(); }
    cuda_graph_exec(const cuda_graph_exec&) = delete;
    cuda_graph_exec& operator=(const cuda_graph_exec&) = delete;
    void reset();
    bool empty() const { return exec_ == nullptr; }

    /// Replaces what it held. The graph may be destroyed afterwards.
    void instantiate(cudaGraph_t graph);
    /// Puts the nodes of `graph` in place of its own. False: the graphs differ too much, instantiate again.
    [[nodiscard]] bool update(cudaGraph_t graph);
    /// Brings it onto the device and waits for that; otherwise the first launch does it.
    void upload(cudaStream_t stream);
    void launch(cudaStream_t stream) { check_cuda(cudaGraphLaunch(exec_, stream), "cudaGraphLaunch"); }

private:
    cudaGraphExec_t exec_ = nullptr;
};

} // namespace slipstream::engines
