// slipstream-hostdep: ACS-HW as published, on our device: the host checks hazards and ships the ids of upstream tasks, the device
// only drops those that are done and waits for the others. No range crosses the bus as an access; whole-memory tasks are ids too.
//
// The host's scheduled list is what it does not know to be retired: tasks [oldest, next). It is stale on purpose: only every 32nd
// submission asks for completions. It holds M tasks; when it is full, submission waits for the oldest one, as in the paper, whose M
// is unpublished: four windows here, and few enough that all of them could be named by one task. The paper compares all pairs and
// ships all ids; the region table and the reduction give the same order with fewer ids in less time, which favours this engine.
#include "host/engines/edge_reduction.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/hazard_search.hpp"
#include "host/engines/runtime_engine.hpp"
#include <algorithm>

namespace slipstream::engines {
namespace {

class slipstream_hostdep_engine final : public runtime_engine {
public:
    slipstream_hostdep_engine(const config& configuration, const kernel_image& image)
        : runtime_engine("slipstream-hostdep", undivided(configuration), image),
          list_max_(std::max(1u, std::min(4 * configuration.window, configuration.accesses_max / 2)))
    {
    }

    /// Its host must see completions in order to go on.
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::preloaded; }

private:
    static constexpr u32 refresh_every = 32;

    /// Nothing but memory says which part a task belongs to, and here no memory crosses the bus.
    static config undivided(config c)
    {
        c.parts = 1;
        return c;
    }

    void submit_all(const program& p, pacer& arriving) override
    {
        hazards_.start_again();
        reduction_.start_again();
        oldest_ = 0;
        upstream_ids_ = stalls_ = 0;
        const std::span<const program_task> tasks = p.tasks();
        for (u32 i = 0; i < tasks.size(); ++i) {
            const program_task& t = tasks[i];
            arriving.await_next();
            if (i % refresh_every == 0) refresh(i);
            while (i - oldest_ >= list_max_) {
                ++stalls_;
                (void)runtime_->wait(handles_[oldest_]);
                refresh(i);
            }
            upstream_.clear();
            for (const u32 id : reduction_.next(hazards_.next(p, t))) {
                if (id < oldest_) break; // the latest first: all others are done too
                upstream_.push_back(handles_[id]);
            }
            upstream_ids_ += upstream_.size();
            submit_options options;
            options.blocks = t.blocks;
            options.after = upstream_;
            options.order = ordering::no_access;
            handles_[i] = runtime_->submit_bytes(t.type, arguments(p, t), options);
        }
    }

    /// Moves the oldest end of the list of tasks [oldest_, next) past what is retired.
    void refresh(u32 next)
    {
        while (oldest_ < next && runtime_->query(handles_[oldest_]).state != task_state::pending) ++oldest_;
    }

    void tell(run_result& r) override
    {
        r.counts.emplace_back("upstream_ids", upstream_ids_);
        r.counts.emplace_back("list_full", stalls_);
    }

    u32 list_max_;
    hazard_search hazards_;
    edge_reduction reduction_;
    std::vector<task_handle> upstream_;
    u32 oldest_ = 0;
    u64 upstream_ids_ = 0;
    u64 stalls_ = 0;
};

} // namespace

std::unique_ptr<engine> make_slipstream_hostdep_engine(const config& configuration, const kernel_image& image)
{
    return std::make_unique<slipstream_hostdep_engine>(configuration, image);
}

} // namespace slipstream::engines
