// bodies and large: tasks of very many blocks, against the same bodies launched.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/bench/wide_stream.hpp"

namespace slipstream::bench {
namespace {

// 2 N: each task takes milliseconds.
constexpr u64 tasks_max = 16;

const std::vector<wide_kind> all_bodies(std::begin(body_kinds), std::end(body_kinds));

std::vector<std::string> launches_of(const std::vector<wide_kind>& kinds)
{
    std::vector<std::string> out;
    for (const wide_kind kind : kinds) {
        out.push_back(floor_names::launched(kind));
        if (is_large(kind)) out.push_back(floor_names::launched_resident(kind));
    }
    return out;
}

figure measured(const bench_setup& s, std::string name, const std::vector<wide_kind>& kinds)
{
    const std::vector<std::string> alternatives = launches_of(kinds);
    s.floors.prepare(alternatives);
    config c = s.configuration;
    const bool on_cuda = s.on_cuda;
    c.workers_per_sm = 1; // their image has no other kernel, and targets go on with two
    c.memory_bytes += wide_stream::bytes(kinds, on_cuda);
    wide_runtime runtime(c);
    wide_stream stream(runtime, s.lose_a_task, kinds);
    const timed_run run = [&](u64 count) { return stream.run(count); };
    const u64 tasks = slope_tasks(run, s.how_long, tasks_max);
    figure f = cost_figure(std::move(name), slopes(run, tasks, s.how_long.repeats), tasks);
    f.verified = stream.verified();
    f.alternatives = s.floors.references(alternatives, f.unit);
    f.note = f.verified ? std::to_string(shape_of(kinds.front(), on_cuda).blocks) + " blocks a task, "
                              + std::to_string(runtime.workers()) + (on_cuda ? " workers, one an SM" : " workers")
                        : "the memory differs from a sequential run's";
    return f;
}

} // namespace

std::string bodies_trouble(const bench_setup& s)
{
    constexpr double gb = 1e9, others = 1e9; // the engine's own and the driver's
    const double needed = static_cast<double>(wide_stream::bytes(all_bodies, true)) + others;
    if (!s.on_cuda || needed <= static_cast<double>(s.memory_bytes)) return {};
    return "100 waves of all bodies need " + number_text(needed / gb) + " GB of GPU memory, and there are "
           + number_text(static_cast<double>(s.memory_bytes) / gb);
}

figure body_figure(const bench_setup& s, wide_kind kind)
{
    figure f = measured(s, std::string(floor_names::wide_name(kind)) + ", alone", {kind});
    for (const auto& [key, value] : s.floors.further(floor_names::launched(kind))) f.further.emplace_back("launched_" + key, value);
    return f;
}

figure mixed_bodies_figure(const bench_setup& s)
{
    figure f = measured(s, "all four at once, a round", all_bodies);
    // The alternative is to launch one after the other, each in its best configuration.
    if (f.alternatives.size() == all_bodies.size()) {
        double total = 0;
        for (const reference& r : f.alternatives) total += r.value;
        f.alternatives.push_back({floor_names::launched_total, total});
    }
    return f;
}

std::vector<figure> bench_bodies(const bench_setup& s)
{
    if (const std::string trouble = bodies_trouble(s); !trouble.empty()) throw config_error("bench bodies: " + trouble);
    std::vector<figure> out;
    for (const wide_kind kind : all_bodies) out.push_back(body_figure(s, kind));
    out.push_back(mixed_bodies_figure(s));
    return out;
}

figure large_figure(const bench_setup& s, wide_kind kind)
{
    return measured(s, std::string("one large task, ") + floor_names::wide_name(kind), {kind});
}

std::vector<figure> bench_large(const bench_setup& s)
{
    return {large_figure(s, wide_kind::even), large_figure(s, wide_kind::skewed)};
}

} // namespace slipstream::bench
