#include "tools/slipstream/bench/slope.hpp"
#include <algorithm>
#include <limits>

namespace slipstream::bench {

u64 slope_tasks(const timed_run& run, const effort& e, u64 tasks_max)
{
    if (e.tasks != 0) return std::clamp<u64>(e.tasks, 1, tasks_max / 2);
    // The pilot grows until a run is long against a launch and a look at the clock.
    constexpr double long_enough = 0.02;
    u64 tasks = std::min<u64>(64, tasks_max / 2);
    double seconds = run(tasks);
    while (seconds < long_enough && tasks < tasks_max / 2) {
        tasks = std::min(tasks * 4, tasks_max / 2);
        seconds = run(tasks);
    }
    const double each = std::max(seconds, 1e-9) / static_cast<double>(tasks);
    const double affordable = e.seconds / (3.0 * e.repeats) / each; // a repetition runs N and 2 N
    return std::clamp<u64>(static_cast<u64>(affordable), std::min<u64>(64, tasks_max / 2), tasks_max / 2);
}

slope_plan plan_slopes(const timed_run& run, const effort& e, u64 tasks_max)
{
    const u64 tasks = slope_tasks(run, e, tasks_max);
    const u64 wanted = std::min(e.tasks_wanted, tasks_max / 2);
    if (e.tasks != 0 || tasks >= wanted) return {tasks, e.repeats};
    const u64 in_one = tasks * e.repeats;
    if (in_one < wanted) return {in_one, 1};
    return {wanted, static_cast<u32>(in_one / wanted)};
}

std::vector<double> slopes(const timed_run& run, u64 tasks, u32 repeats)
{
    std::vector<double> out;
    for (u32 i = 0; i < repeats; ++i) {
        const double once = run(tasks);
        const double twice = run(2 * tasks);
        out.push_back((twice - once) / static_cast<double>(tasks));
    }
    return out;
}

figure cost_figure(std::string name, const std::vector<double>& seconds, u64 tasks)
{
    const spread s = spread_of(seconds);
    figure f{std::move(name), "us", {s.median * 1e6, s.p10 * 1e6, s.p90 * 1e6}};
    f.tasks = tasks;
    f.repeats = static_cast<u32>(seconds.size());
    return f;
}

figure rate_figure(std::string name, const std::vector<double>& seconds, u64 tasks)
{
    const auto rate = [](double each) { return each > 0 ? 1e-6 / each : std::numeric_limits<double>::quiet_NaN(); };
    const spread s = spread_of(seconds);
    figure f{std::move(name), "M/s", {rate(s.median), rate(s.p90), rate(s.p10)}}; // the slowest tenth is p10 of the rate
    f.tasks = tasks;
    f.repeats = static_cast<u32>(seconds.size());
    return f;
}

} // namespace slipstream::bench
