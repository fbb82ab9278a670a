// growth: whether a task's cost stays what it is as runs, windows and access lists grow.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/chain.hpp"
#include "tools/slipstream/bench/growth.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"
#include "tools/slipstream/bench/report.hpp"

namespace slipstream::bench {
namespace {

constexpr u64 tasks_most = 10'000'000;

figure point_figure(std::string name, const std::vector<double>& seconds, u64 tasks, bool verified)
{
    figure f = cost_figure(std::move(name), seconds, tasks);
    f.verified = verified;
    if (!verified) f.note = "the memory differs from a sequential run's";
    return f;
}

// Whole runs, in microseconds; a run that would take longer than ten times --seconds is left out.
growth_sweep sweep_tasks(const bench_setup& s, std::vector<figure>& out)
{
    const u64 most = s.how_long.tasks != 0 ? std::min(s.how_long.tasks, tasks_most) : tasks_most;
    config c = s.configuration;
    c.memory_bytes += independent_tasks_bytes(most);
    bench_runtime runtime(c);
    const auto stream = make_independent_tasks(runtime, s.lose_a_task, declared::handles, most);
    (void)stream->run(std::min<u64>(most, 1000)); // warms up
    growth_sweep points;
    double each = 0; // seconds a task, of the run before
    for (const u64 n : run_lengths(most)) {
        if (each * static_cast<double>(n) > 10 * s.how_long.seconds) break;
        std::vector<double> seconds;
        double all = 0;
        do {
            seconds.push_back(stream->run(n));
            all += seconds.back();
        } while (seconds.size() < s.how_long.repeats && all < s.how_long.seconds / 4);
        out.push_back(point_figure("growth, a run of " + std::to_string(n) + " tasks", seconds, n, stream->verified()));
        points.push_back({static_cast<double>(n), out.back().value.median});
        each = points.back().cost * 1e-6 / static_cast<double>(n);
    }
    return points;
}

// Microseconds a task.
figure slope_figure(const bench_setup& s, std::string name, task_stream& stream)
{
    const timed_run run = [&](u64 count) { return stream.run(count); };
    effort e = s.how_long;
    e.seconds /= 4;
    const u64 tasks = slope_tasks(run, e, 1'000'000);
    const std::vector<double> seconds = slopes(run, tasks, e.repeats);
    return point_figure(std::move(name), seconds, tasks, stream.verified());
}

template <class Measure> growth_sweep sweep_windows(const bench_setup& s, Measure measure)
{
    growth_sweep points;
    for (u32 window = 16; window <= 1024; window *= 2) {
        config c = s.configuration;
        c.window = window;
        points.push_back({static_cast<double>(window), measure(c, ", window " + std::to_string(window)).value.median});
    }
    return points;
}

growth_sweep sweep_windows_of_ranges(const bench_setup& s, std::vector<figure>& out)
{
    return sweep_windows(s, [&](config& c, const std::string& window) -> figure& {
        c.memory_bytes += independent_tasks_bytes(1'000'000);
        bench_runtime runtime(c);
        const auto stream = make_independent_tasks(runtime, s.lose_a_task, declared::four_ranges, 1'000'000);
        return out.emplace_back(slope_figure(s, "growth, a task of 4 ranges" + window, *stream));
    });
}

// Independent tasks have no successors, whose books grow with the square of the window.
growth_sweep sweep_windows_of_a_chain(const bench_setup& s, std::vector<figure>& out)
{
    return sweep_windows(s, [&](config& c, const std::string& window) -> figure& {
        bench_runtime runtime(c);
        chain stream(runtime, s.lose_a_task, 4096, 1, named::by_handle);
        return out.emplace_back(slope_figure(s, "growth, a task of a chain" + window, stream));
    });
}

growth_sweep sweep_accesses(const bench_setup& s, std::vector<figure>& out)
{
    growth_sweep points;
    for (u32 ranges = 1; ranges <= ranges_most; ranges *= 2) {
        bench_runtime runtime(s.configuration);
        const auto stream = make_tasks_of_ranges(runtime, s.lose_a_task, ranges);
        out.push_back(slope_figure(s, "growth, a task of " + std::to_string(ranges) + " accesses", *stream));
        points.push_back({static_cast<double>(ranges), out.back().value.median});
    }
    return points;
}

} // namespace

std::vector<figure> bench_growth(const bench_setup& s)
{
    std::vector<figure> out;
    const growth_sweep tasks = sweep_tasks(s, out), windows = sweep_windows_of_ranges(s, out),
                       chains = sweep_windows_of_a_chain(s, out), accesses = sweep_accesses(s, out);
    const double factor = long_run_factor(tasks);
    figure f{"growth, a task of the longest run against one of a hundredth of it", "x", {factor, factor, factor}};
    f.further = {{"longest_run_tasks", tasks.back().size},
                 {"worst_doubling_of_tasks", worst_doubling(tasks)},
                 {"worst_doubling_of_windows", worst_doubling(windows)},
                 {"worst_doubling_of_chains", worst_doubling(chains)},
                 {"worst_doubling_of_accesses", worst_doubling(accesses)}};
    f.tasks = static_cast<u64>(tasks.back().size);
    f.repeats = 1;
    f.verified = true;
    for (const figure& point : out) f.verified &= point.verified;
    f.note = f.verified ? "worst doubling of" : "the memory differs from a sequential run's";
    for (std::size_t i = 1; f.verified && i < f.further.size(); ++i)
        f.note += std::string(i > 1 ? "," : "") + " " + f.further[i].first.substr(sizeof "worst_doubling_of_" - 1) + " "
                  + number_text(f.further[i].second) + " x";
    out.push_back(std::move(f));
    return out;
}

} // namespace slipstream::bench
