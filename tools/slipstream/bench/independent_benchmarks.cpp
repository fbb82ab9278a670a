// throughput, window and parts: how many independent tasks a second, fed live by one thread.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"

namespace slipstream::bench {
namespace {

// 2 N; each task has memory of its own, so that each is verified.
constexpr u64 tasks_max = 10'000'000;

const char* name_of(declared what)
{
    switch (what) {
    case declared::handles:
        return "handles, 2 in 1 out";
    case declared::one_range:
        return "1 raw range";
    case declared::four_ranges:
        return "4 raw ranges";
    case declared::nothing:
        break;
    }
    return "no accesses";
}

std::string name_of(const bench_setup& s, declared what, u32 window, u32 crossing_percent)
{
    std::string out = std::string("throughput, ") + name_of(what) + ", window " + std::to_string(window);
    if (s.configuration.parts > 1) out += ", " + std::to_string(s.configuration.parts) + " parts";
    if (crossing_percent != 0) out += ", " + std::to_string(crossing_percent) + " % of the tasks cross";
    return out;
}

} // namespace

figure throughput_figure(const bench_setup& s, declared what, u32 window, u32 crossing_percent)
{
    const std::vector<std::string> alternatives{floor_names::graph_parallel(4),
                                                floor_names::graph_parallel(4, floor_names::edge_kind::early)};
    s.floors.prepare(alternatives);
    const u64 most = s.how_long.tasks != 0 ? std::min<u64>(2 * s.how_long.tasks, tasks_max) : tasks_max;
    config c = s.configuration;
    c.window = window;
    c.memory_bytes += independent_tasks_bytes(most);
    bench_runtime runtime(c);
    const auto stream = make_independent_tasks(runtime, s.lose_a_task, what, most, crossing_percent);
    const timed_run run = [&](u64 count) { return stream->run(count); };
    const slope_plan plan = plan_slopes(run, s.how_long, most);
    figure f = rate_figure(name_of(s, what, window, crossing_percent), slopes(run, plan.tasks, plan.repeats), plan.tasks);
    f.further = {{"control_blocks", runtime.control_blocks()},
                 {"workers", runtime.workers()},
                 {"ring_slots", runtime.configuration().ring_slots}};
    f.verified = stream->verified();
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    f.alternatives = s.floors.references(alternatives, f.unit);
    return f;
}

std::vector<figure> bench_throughput(const bench_setup& s)
{
    std::vector<figure> out;
    for (const declared what : {declared::handles, declared::one_range, declared::four_ranges, declared::nothing})
        out.push_back(throughput_figure(s, what, s.configuration.window));
    return out;
}

std::vector<figure> bench_window(const bench_setup& s)
{
    std::vector<figure> out;
    for (const declared what : {declared::handles, declared::four_ranges})
        for (const u32 window : {64u, 256u, 1024u}) out.push_back(throughput_figure(s, what, window));
    return out;
}

std::vector<figure> bench_parts(const bench_setup& s)
{
    bench_setup divided = s;
    std::vector<figure> out;
    for (const declared what : {declared::handles, declared::four_ranges})
        for (const u32 parts : {1u, 2u, 4u, 5u, 6u, 7u}) {
            divided.configuration.parts = parts;
            out.push_back(throughput_figure(divided, what, s.configuration.window));
        }
    divided.configuration.parts = parts_usual;
    for (const u32 crossing_percent : {1u, 10u})
        out.push_back(throughput_figure(divided, declared::handles, s.configuration.window, crossing_percent));
    return out;
}

} // namespace slipstream::bench
