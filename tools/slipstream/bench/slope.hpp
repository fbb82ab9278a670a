// Costs of one more task: the slope between runs of N and 2 N tasks, so that whatever happens once a run drops out.
#pragma once
#include "tools/slipstream/bench/figure.hpp"
#include <functional>

namespace slipstream::bench {

/// Runs that many tasks and returns the seconds from the first submission to the last completion.
using timed_run = std::function<double(u64 tasks)>;

/// How long to measure.
struct effort {
    u32 repeats = 11;
    u64 tasks = 0;      ///< N; 0: as many as `seconds` allow
    double seconds = 2; ///< of all repetitions together
    u64 tasks_wanted = 0; ///< N that is worth giving up repetitions for
};

struct slope_plan {
    u64 tasks;
    u32 repeats;
};

/// N for this effort, with 2 N <= tasks_max: finds out by runs of growing size what a task costs.
u64 slope_tasks(const timed_run& run, const effort& e, u64 tasks_max);

/// N and how often for this effort: fewer repetitions, one at least, where that affords the N wanted.
slope_plan plan_slopes(const timed_run& run, const effort& e, u64 tasks_max);

/// Seconds per task, one slope a repetition. A figure of noise alone may be negative.
std::vector<double> slopes(const timed_run& run, u64 tasks, u32 repeats);

/// The figure of a list of seconds: in microseconds a task ...
figure cost_figure(std::string name, const std::vector<double>& seconds, u64 tasks);
/// ... or in millions of tasks a second.
figure rate_figure(std::string name, const std::vector<double>& seconds, u64 tasks);

} // namespace slipstream::bench
