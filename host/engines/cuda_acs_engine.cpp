// acs-sw: ACS-SW as published. A window of 32 tasks on the host, scheduler threads with one stream each and at most one kernel in
// it: take a ready task, launch it, cudaStreamSynchronize, complete it in the window. No events, no callbacks.
//
// The paper does not publish its number of scheduler threads. Here: one less than there are cores, at most 16;
// SLIPSTREAM_ACS_THREADS=N in the environment overrides (1 to 32).
#include "host/engines/acs_scheduler.hpp"
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"
#include <algorithm>
#include <cstdlib>

namespace slipstream::engines {
namespace {

u32 scheduler_threads()
{
    if (const char* const given = std::getenv("SLIPSTREAM_ACS_THREADS")) {
        char* end = nullptr;
        const long threads = std::strtol(given, &end, 10);
        if (end == given || *end != '\0' || threads < 1 || threads > static_cast<long>(acs_window::slots))
            throw config_error("SLIPSTREAM_ACS_THREADS=" + std::string(given) + ": use a whole number from 1 to 32, or unset it");
        return static_cast<u32>(threads);
    }
    return std::clamp(std::thread::hardware_concurrency(), 2u, 17u) - 1;
}

class cuda_acs_engine final : public engine, acs_scheduler::executor {
public:
    explicit cuda_acs_engine(u32 ordinal)
        : ordinal_(ordinal), streams_(ordinal, scheduler_threads()), scheduler_(streams_.size(), *this)
    {
    }

    std::string name() const override { return "acs-sw"; }
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::preloaded; }

    void prepare(const program& p) override { launcher_ = std::make_unique<cuda_launcher>(ordinal_, p.image()); }

    run_result run(const program& p) override { return scheduler_.run(p, when()); }

private:
    void enter(u32) override { check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice"); }

    void execute(u32 thread, const program& p, const program_task& t) override
    {
        launcher_->launch(p, t, streams_[thread]);
        check_cuda(cudaStreamSynchronize(streams_[thread]), "a task of acs-sw");
    }

    u32 ordinal_;
    stream_pool streams_;
    std::unique_ptr<cuda_launcher> launcher_;
    acs_scheduler scheduler_; ///< last: its threads use the rest
};

} // namespace

std::unique_ptr<engine> make_cuda_acs_engine(u32 ordinal)
{
    return std::make_unique<cuda_acs_engine>(ordinal);
}

} // namespace slipstream::engines
