// graph-replay: a graph built, instantiated and uploaded once in prepare(); a run is its launch. A program whose tasks and
// edges are known beforehand and never change: the static upper bound that dynamic engines are compared with.
#include "host/engines/cuda_task_graph.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/run_clock.hpp"

namespace slipstream::engines {
namespace {

class cuda_graph_replay_engine final : public engine {
public:
    explicit cuda_graph_replay_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1) {}

    std::string name() const override { return "graph-replay"; }
    /// It knows all tasks before the clock starts: no difference between the two, and nothing to pace.
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::paced; }

    void prepare(const program& p) override
    {
        cuda_graph_builder builder(ordinal_, p.image());
        // Twice: the first pass warms up, as the first run of the other graph engines does.
        for (u32 pass = 0; pass < 2; ++pass) {
            exec_.reset();
            stopwatch watch;
            pacer at_once(when(), watch);
            const cuda_graph graph(builder.build(p, at_once));
            build_us_ = watch.lap_us();
            exec_.instantiate(graph.get());
            instantiate_us_ = watch.lap_us();
            exec_.upload(streams_[0]);
            upload_us_ = watch.lap_us();
        }
    }

    run_result run(const program&) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        const run_clock clock;
        exec_.launch(streams_[0]);
        const double submit_us = clock.total_us();
        check_cuda(cudaStreamSynchronize(streams_[0]), "end of the run");
        run_result result = clock.stop(submit_us);
        result.phases = {{"build_us", build_us_},
                         {"instantiate_us", instantiate_us_},
                         {"upload_us", upload_us_},
                         {"build_and_replay_us", build_us_ + instantiate_us_ + upload_us_ + result.makespan_us}};
        return result;
    }

private:
    u32 ordinal_;
    stream_pool streams_;
    cuda_graph_exec exec_;
    double build_us_ = 0, instantiate_us_ = 0, upload_us_ = 0;
};

} // namespace

std::unique_ptr<engine> make_cuda_graph_replay_engine(u32 ordinal)
{
    return std::make_unique<cuda_graph_replay_engine>(ordinal);
}

} // namespace slipstream::engines
