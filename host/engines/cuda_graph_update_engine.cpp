// graph-update: each run finds the hazards and builds a graph, with which it updates the executable graph of the run before; where
// CUDA finds the two too different, and in the first run, it instantiates. Both kinds of runs are counted.
//
// Runs of one program have graphs of one shape, so all updates but the first succeed: the engine at its best. What it is worth on
// inputs whose graph changes lies between this and graph-rebuild.
#include "host/engines/cuda_task_graph.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/run_clock.hpp"

namespace slipstream::engines {
namespace {

class cuda_graph_update_engine final : public engine {
public:
    explicit cuda_graph_update_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1) {}

    std::string name() const override { return "graph-update"; }
    /// Paced: nodes are added as tasks arrive, the graph is launched behind the last one.
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::preloaded; }

    /// Keeps the executable graph: the first run of a program tries to make it out of the last program's.
    void prepare(const program& p) override { builder_ = std::make_unique<cuda_graph_builder>(ordinal_, p.image()); }

    run_result run(const program& p) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        graph_.reset();
        run_clock clock;
        pacer arriving(when(), clock.watch());
        graph_.reset(builder_->build(p, arriving));
        const double build_us = clock.lap_us();
        const bool updated = !exec_.empty() && exec_.update(graph_.get());
        const double update_us = clock.lap_us();
        if (!updated) exec_.instantiate(graph_.get());
        const double instantiate_us = clock.lap_us();
        exec_.launch(streams_[0]);
        const double submit_us = clock.total_us();
        const double launch_us = clock.lap_us();
        check_cuda(cudaStreamSynchronize(streams_[0]), "end of the run");
        run_result result = clock.stop(submit_us);
        result.phases = {
            {"build_us", build_us}, {"update_us", update_us}, {"instantiate_us", instantiate_us}, {"launch_us", launch_us}};
        result.counts = {{"updated", updated ? 1u : 0u}, {"rebuilt", updated ? 0u : 1u}};
        return result;
    }

private:
    u32 ordinal_;
    stream_pool streams_;
    std::unique_ptr<cuda_graph_builder> builder_;
    cuda_graph graph_;
    cuda_graph_exec exec_;
};

} // namespace

std::unique_ptr<engine> make_cuda_graph_update_engine(u32 ordinal)
{
    return std::make_unique<cuda_graph_update_engine>(ordinal);
}

} // namespace slipstream::engines
