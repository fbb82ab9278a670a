// graph-rebuild: each run finds the hazards, builds the graph, instantiates and launches it: a CUDA graph made for every input.
// The upload is left to the launch. What the previous run left is destroyed before the clock starts, which favours this engine.
#include "host/engines/cuda_task_graph.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/run_clock.hpp"

namespace slipstream::engines {
namespace {

class cuda_graph_rebuild_engine final : public engine {
public:
    explicit cuda_graph_rebuild_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1) {}

    std::string name() const override { return "graph-rebuild"; }
    /// Paced: nodes are added as tasks arrive, the graph is launched behind the last one.
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::preloaded; }

    void prepare(const program& p) override { builder_ = std::make_unique<cuda_graph_builder>(ordinal_, p.image()); }

    run_result run(const program& p) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        exec_.reset();
        graph_.reset();
        run_clock clock;
        pacer arriving(when(), clock.watch());
        graph_.reset(builder_->build(p, arriving));
        const double build_us = clock.lap_us();
        exec_.instantiate(graph_.get());
        const double instantiate_us = clock.lap_us();
        exec_.launch(streams_[0]);
        const double submit_us = clock.total_us();
        const double launch_us = clock.lap_us();
        check_cuda(cudaStreamSynchronize(streams_[0]), "end of the run");
        run_result result = clock.stop(submit_us);
        result.phases = {{"build_us", build_us}, {"instantiate_us", instantiate_us}, {"launch_us", launch_us}};
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

std::unique_ptr<engine> make_cuda_graph_rebuild_engine(u32 ordinal)
{
    return std::make_unique<cuda_graph_rebuild_engine>(ordinal);
}

} // namespace slipstream::engines
