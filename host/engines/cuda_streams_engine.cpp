// streams: hazards found on the host as tasks come in, an event DAG over a pool of streams.
//
// An event is recorded behind those tasks only that some stream will wait for. A runtime that learns its tasks one by one would
// have to record one behind every task; prepare() finds them by a pass over the program, which favours this engine.
// The hazards themselves are found again in every run, inside the measured time, as the slipstream engine's are.
#include "host/engines/cuda_gate.hpp"
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/hazard_search.hpp"
#include "host/engines/run_clock.hpp"
#include "host/engines/stream_assigner.hpp"

namespace slipstream::engines {
namespace {

class cuda_streams_engine final : public engine {
public:
    explicit cuda_streams_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, streams_in_pool), assigner_(streams_in_pool) {}

    std::string name() const override { return "streams"; }
    bool takes(arrival_mode) const override { return true; }

    void prepare(const program& p) override
    {
        launcher_ = std::make_unique<cuda_launcher>(ordinal_, p.image());
        const u32 tasks = static_cast<u32>(p.tasks().size());
        assigner_.reserve(tasks);
        event_of_.assign(tasks, no_event);
        u32 events = 0;
        start_again();
        for (const program_task& t : p.tasks())
            for (const u32 awaited : assigner_.place(hazards_.next(p, t)).waits)
                if (event_of_[awaited] == no_event) event_of_[awaited] = events++;
        events_.grow_to(events);
    }

    run_result run(const program& p) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        start_again();
        return timed_launches(when(), gate_, streams_, [&](pacer& arriving) { launch_all(p, arriving); }, [&] {
            for (const u32 s : assigner_.open_streams()) check_cuda(cudaStreamSynchronize(streams_[s]), "end of the run");
        });
    }

private:
    static constexpr u32 streams_in_pool = 32; ///< as many as there are hardware queues
    static constexpr u32 no_event = ~0u;

    void launch_all(const program& p, pacer& arriving)
    {
        u32 next = 0;
        for (const program_task& t : p.tasks()) {
            const u32 number = next++;
            arriving.await_next();
            const auto placed = assigner_.place(hazards_.next(p, t));
            const cudaStream_t stream = streams_[placed.stream];
            for (const u32 awaited : placed.waits)
                check_cuda(cudaStreamWaitEvent(stream, events_[event_of_[awaited]], 0), "cudaStreamWaitEvent");
            launcher_->launch(p, t, stream);
            if (event_of_[number] != no_event) check_cuda(cudaEventRecord(events_[event_of_[number]], stream), "cudaEventRecord");
        }
    }

    void start_again()
    {
        hazards_.start_again();
        assigner_.reset();
    }

    u32 ordinal_;
    stream_pool streams_;
    cuda_gate gate_{ordinal_};
    event_pool events_;
    std::unique_ptr<cuda_launcher> launcher_;
    hazard_search hazards_;
    stream_assigner assigner_;
    std::vector<u32> event_of_; ///< per task: its event, or none
};

} // namespace

std::unique_ptr<engine> make_cuda_streams_engine(u32 ordinal) { return std::make_unique<cuda_streams_engine>(ordinal); }

} // namespace slipstream::engines
