// echo and submit: the host's side of one task.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/core_rate.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/bench/task_stream.hpp"
#include <algorithm>
#include <bit>
#include <cassert>

namespace slipstream::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

// Words that tasks of one block step, one each, in turn; at most `places` of them are in flight. A power of two: a division for
// each task would be timed as a part of its submission.
class stepped_words {
public:
    stepped_words(bench_runtime& runtime, u32 places) : runtime_(runtime), words_(runtime, places), expected_(places, 0)
    {
        assert(std::has_single_bit(places));
        words_.upload(expected_);
    }
    task_handle submit(u64 i)
    {
        return runtime_.submit(step_task{{words_.data() + place_of(i), 1}, 1, static_cast<u32>(i)});
    }
    /// Compares with a sequential run of tasks [0, count).
    bool check(u64 count)
    {
        for (u64 i = 0; i < count; ++i)
            expected_[place_of(i)] = stepped(expected_[place_of(i)], static_cast<u32>(i));
        std::vector<u32> words(expected_.size());
        words_.download(words);
        return words == expected_;
    }

private:
    u64 place_of(u64 i) const { return i & (expected_.size() - 1); }

    bench_runtime& runtime_;
    buffer<u32> words_;
    std::vector<u32> expected_;
};

double percentile(std::vector<double> values, double share)
{
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

} // namespace

std::vector<figure> bench_echo(const bench_setup& s)
{
    const std::vector<std::string> floors{floor_names::flag_echo}, alternatives{floor_names::launch_and_sync};
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    stepped_words words(runtime, 64);
    const u64 count = s.how_long.tasks != 0 ? s.how_long.tasks : runtime.on_cuda() ? 20000 : 2000;
    const u64 lost = s.lose_a_task ? count / 2 : count;
    wake(runtime);
    std::vector<double> us;
    for (u64 i = 0; i < count; ++i) {
        if (i == lost) continue;
        const auto start = clock::now();
        const task_handle handle = words.submit(i);
        if (!runtime.wait(handle, start + std::chrono::minutes(1)).ok())
            throw device_error("a task of the echo did not complete within a minute");
        us.push_back(seconds_since(start) * 1e6);
    }
    figure f{"submit to seen complete", "us", spread_of(us)};
    f.further = {{"min", percentile(us, 0)}, {"p50", percentile(us, 0.5)}, {"p99", percentile(us, 0.99)}};
    f.tasks = count;
    f.repeats = 1;
    f.verified = words.check(count);
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    f.floors = s.floors.references(floors, f.unit);
    f.alternatives = s.floors.references(alternatives, f.unit);
    return {f};
}

namespace {

/// What batches of submissions took, nanoseconds a submission, and how fast the core was before each.
struct submissions {
    std::vector<double> ns;
    std::vector<double> core;

    figure as_figure(const char* name, u64 batch, bool verified) const
    {
        const spread rate = spread_of(core);
        figure f{name, "ns", spread_of(ns)};
        f.further = {{"min", percentile(ns, 0)}, {"p99", percentile(ns, 0.99)}, {"core_additions_a_ns", rate.median},
                     {"core_additions_a_ns_p10", rate.p10}, {"core_additions_a_ns_p90", rate.p90}};
        f.tasks = batch;
        f.repeats = static_cast<u32>(ns.size());
        f.verified = verified;
        f.note = verified ? "its core did " + number_text(rate.median) + " additions a ns (" + number_text(rate.p10) + " to "
                                + number_text(rate.p90) + ")"
                          : "the memory differs from a sequential run's";
        return f;
    }
};

} // namespace

std::vector<figure> bench_submit(const bench_setup& s)
{
    const std::vector<std::string> floors{floor_names::slot_store}, alternatives{floor_names::launch};
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    // Half a ring of one-slot tasks into an empty ring: the submitter never waits. Like the ring's slots a power of two.
    const u64 batch = std::max<u64>(1, runtime.configuration().ring_slots / 2);
    const u64 wanted = s.how_long.tasks != 0 ? s.how_long.tasks : runtime.on_cuda() ? 200000 : 20000;
    const u64 batches = std::max<u64>(std::max<u64>(s.how_long.repeats, 1), wanted / batch);
    const u64 lost = s.lose_a_task ? batch / 2 : ~u64{0};
    stepped_words words(runtime, static_cast<u32>(std::min<u64>(batch, 4096)));
    submissions taken;
    u64 i = 0;
    for (u64 b = 0; b < batches; ++b) {
        wake(runtime);
        taken.core.push_back(additions_a_ns());
        const u64 end = i + batch;
        const auto start = clock::now();
        for (; i < end; ++i)
            if (i != lost) words.submit(i);
        taken.ns.push_back(seconds_since(start) * 1e9 / static_cast<double>(batch));
        wait_all(runtime);
    }
    std::vector<figure> out{taken.as_figure("submit, one slot, ring not full", batch, words.check(i))};
    out[0].floors = s.floors.references(floors, out[0].unit);
    if (runtime.parts() > 1) {
        // Each takes a slot in two rings, which still are half full at most; and no more of one home may be under way than there
        // are meetings for.
        const u64 crossing = std::min<u64>(batch, abi::meetings_max);
        const auto tasks = make_independent_tasks(runtime, s.lose_a_task, declared::handles, crossing, 100);
        taken = {};
        for (u64 b = 0; b < std::max<u64>(1, batches * batch / crossing); ++b) {
            taken.core.push_back(additions_a_ns());
            taken.ns.push_back(tasks->run_submissions(crossing) * 1e9 / static_cast<double>(crossing));
        }
        out.push_back(taken.as_figure("submit, a task that reads from another part, rings not full", crossing, tasks->verified()));
        for (const reference& slot : out[0].floors) out[1].floors.push_back({slot.name + ", twice", 2 * slot.value});
    }
    for (figure& f : out) f.alternatives = s.floors.references(alternatives, f.unit);
    return out;
}

} // namespace slipstream::bench
