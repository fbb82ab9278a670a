// shards: independent tasks on several runtimes side by side, each with its share of the SMs and memory of its own: what a control block for each part of
// the memory would reach at best. Hazards between the parts are nobody's here: the caller has divided the memory.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"
#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>

namespace slipstream::bench {
namespace {

constexpr u64 tasks_max = 10'000'000; ///< of a run, all engines together

/// How an engine's GPU is divided.
struct division {
    u32 engines;
    u32 sms; ///< of the device; 0: a host device
    u32 sms_each() const { return sms / engines; }
};

/// Each runtime has a thread that makes it, submits to it, and ends it. Not for several threads.
class engines_side_by_side {
public:
    engines_side_by_side(const config& each, u32 engines, bool lose_a_task, declared what, u64 tasks_each)
        : meet_(engines + 1), seconds_(engines), failures_(engines), verified_(engines, 1)
    {
        for (u32 i = 0; i < engines; ++i)
            threads_.emplace_back([=, this] {
                try {
                    serve(i, each, lose_a_task && i == 0, what, tasks_each);
                } catch (...) {
                    failures_[i] = std::current_exception();
                    meet_.arrive_and_drop();
                }
            });
        meet_.arrive_and_wait(); // all are made: none allocates while another one's kernel runs
    }

    ~engines_side_by_side()
    {
        tasks_each_ = 0;
        meet_.arrive_and_wait();
    }

    engines_side_by_side(const engines_side_by_side&) = delete;
    engines_side_by_side& operator=(const engines_side_by_side&) = delete;

    /// So many tasks on each. Returns the seconds that the slowest one took; all have begun at once, with their kernels on the device.
    double run(u64 tasks_each)
    {
        look_for_failures();
        tasks_each_ = tasks_each;
        meet_.arrive_and_wait(); // told
        meet_.arrive_and_wait(); // awake
        meet_.arrive_and_wait(); // done and checked
        look_for_failures();
        return *std::max_element(seconds_.begin(), seconds_.end());
    }

    u32 workers() const { return workers_; } ///< of one of them
    bool verified() const
    {
        return std::all_of(verified_.begin(), verified_.end(), [](char good) { return good != 0; });
    }

private:
    void serve(u32 i, const config& each, bool lose_a_task, declared what, u64 tasks_most)
    {
        bench_runtime runtime(each);
        const auto stream = make_independent_tasks(runtime, lose_a_task, what, tasks_most);
        if (i == 0) workers_ = runtime.workers();
        for (meet_.arrive_and_wait();;) {
            meet_.arrive_and_wait();
            if (tasks_each_ == 0) return;
            wake(runtime);
            meet_.arrive_and_wait();
            seconds_[i] = stream->run(tasks_each_);
            verified_[i] = stream->verified();
            meet_.arrive_and_wait();
        }
    }

    void look_for_failures() const
    {
        for (const std::exception_ptr& failure : failures_)
            if (failure) std::rethrow_exception(failure);
    }

    std::barrier<> meet_; ///< with the caller's thread; what is written before it is read behind it
    u64 tasks_each_ = 0;  ///< 0: end
    u32 workers_ = 0;
    std::vector<double> seconds_;
    std::vector<std::exception_ptr> failures_;
    std::vector<char> verified_;
    std::vector<std::jthread> threads_; ///< last: they end before what they use
};

u32 sms_of(const bench_setup& s)
{
    if (!s.on_cuda) return 0;
    const bench_runtime whole(s.configuration);
    return (whole.workers() + whole.control_blocks()) / whole.configuration().workers_per_sm;
}

figure shards_figure(const bench_setup& s, declared what, const division& d)
{
    const std::vector<std::string> alternatives{floor_names::graph_parallel(4)};
    s.floors.prepare(alternatives);
    const u64 most = (s.how_long.tasks != 0 ? std::min<u64>(2 * s.how_long.tasks, tasks_max) : tasks_max) / d.engines + 1;
    config c = s.configuration;
    c.sms_left_free = d.sms - d.sms_each();
    c.memory_bytes += independent_tasks_bytes(most);
    engines_side_by_side engines(c, d.engines, s.lose_a_task, what, most);
    const timed_run run = [&](u64 count) { return engines.run((count + d.engines - 1) / d.engines); };
    const slope_plan plan = plan_slopes(run, s.how_long, most * d.engines - d.engines);
    figure f = rate_figure("shards, " + std::string(what == declared::handles ? "handles, 2 in 1 out" : "4 raw ranges") + ", " + std::to_string(d.engines) +
                               (d.engines == 1 ? " engine" : " engines"),
                           slopes(run, plan.tasks, plan.repeats), plan.tasks);
    f.further = {{"control_blocks", d.engines}, {"workers_of_each", engines.workers()}, {"ring_slots", s.configuration.ring_slots}};
    f.verified = engines.verified();
    f.note = f.verified ? "control blocks: " + std::to_string(d.engines) + "; workers of each: " + std::to_string(engines.workers())
                        : "the memory differs from a sequential run's";
    f.alternatives = s.floors.references(alternatives, f.unit);
    return f;
}

} // namespace

std::vector<figure> bench_shards(const bench_setup& s)
{
    const u32 sms = sms_of(s);
    std::vector<figure> out;
    for (const declared what : {declared::handles, declared::four_ranges})
        for (const u32 engines : {1u, 2u, 4u, 5u, 6u}) out.push_back(shards_figure(s, what, {engines, sms}));
    return out;
}

} // namespace slipstream::bench
