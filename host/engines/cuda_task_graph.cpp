// Nodes in program order, so that two graphs of the same shape are alike node by node, as an update wants them.
#include "host/engines/cuda_task_graph.hpp"

namespace slipstream::engines {

cudaGraph_t cuda_graph_builder::build(const program& p, pacer& arriving)
{
    hazards_of_.start_again();
    reduction_.start_again();
    edges_ = hazards_ = 0;
    nodes_.clear();
    nodes_.reserve(p.tasks().size());
    cudaGraph_t raw = nullptr;
    check_cuda(cudaGraphCreate(&raw, 0), "cudaGraphCreate");
    cuda_graph graph(raw); // goes when a node is refused
    for (const program_task& t : p.tasks()) {
        arriving.await_next();
        const auto found = hazards_of_.next(p, t);
        const auto needed = reduction_.next(found);
        hazards_ += found.size();
        edges_ += needed.size();
        predecessors_.clear();
        for (const u32 n : needed) predecessors_.push_back(nodes_[n]);
        nodes_.push_back(launcher_.add_node(p, t, raw, predecessors_));
    }
    return graph.release();
}

void cuda_graph_exec::reset()
{
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    exec_ = nullptr;
}

void cuda_graph_exec::instantiate(cudaGraph_t graph)
{
    reset();
    check_cuda(cudaGraphInstantiate(&exec_, graph, 0), "cudaGraphInstantiate");
}

bool cuda_graph_exec::update(cudaGraph_t graph)
{
    cudaGraphExecUpdateResultInfo info{};
    const cudaError_t status = cudaGraphExecUpdate(exec_, graph, &info);
    if (status == cudaErrorGraphExecUpdateFailure) {
        (void)cudaGetLastError(); // an answer, not a trouble of the next call
        return false;
    }
    check_cuda(status, "cudaGraphExecUpdate");
    return true;
}

void cuda_graph_exec::upload(cudaStream_t stream)
{
    check_cuda(cudaGraphUpload(exec_, stream), "cudaGraphUpload");
    check_cuda(cudaStreamSynchronize(stream), "cudaGraphUpload");
}

} // namespace slipstream::engines
