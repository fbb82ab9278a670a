#include "tools/slipstream/compare/sweep_run.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::cli {
namespace {

const engine_figures* find(const std::vector<engine_figures>& all, const std::string& engine)
{
    const auto it = std::find_if(all.begin(), all.end(), [&](const engine_figures& f) { return f.engine == engine; });
    return it == all.end() ? nullptr : &*it;
}

} // namespace

std::vector<sweep_curve> curves_of(const sweep_run& s)
{
    std::vector<sweep_curve> out;
    if (s.points.empty()) return out;
    for (const measurement& m : s.points) {
        const comparison_figures all = figures_of(m.runs, m.tasks, m.limits ? &*m.limits : nullptr);
        if (out.empty())
            for (const engine_figures& f : all.engines) out.push_back({f.engine, {}, {}, {}, {}, {}, {}});
        for (sweep_curve& c : out) {
            const engine_figures* const f = find(all.engines, c.engine);
            const bool good = f != nullptr && f->verified;
            c.us_per_task.push_back(good ? f->makespan_us.median / static_cast<double>(m.tasks) : std::nan(""));
            c.bound_share.push_back(good ? f->bound_share : std::nan(""));
        }
    }
    const auto ours = std::find_if(out.begin(), out.end(), [](const sweep_curve& c) { return c.engine == "slipstream"; });
    for (sweep_curve& c : out) {
        c.half_from = keeps_from(s.axis.values, c.bound_share, 0.5);
        c.most_from = keeps_from(s.axis.values, c.bound_share, 0.9);
        if (ours == out.end() || c.engine == "slipstream") continue;
        c.against = crossovers(s.axis.values, ours->us_per_task, c.us_per_task);
        for (std::size_t i = 0; i < c.us_per_task.size() && !c.slipstream_wins_first; ++i)
            if (!std::isnan(ours->us_per_task[i]) && !std::isnan(c.us_per_task[i]))
                c.slipstream_wins_first = ours->us_per_task[i] < c.us_per_task[i];
    }
    return out;
}

bool all_verified(const sweep_run& s)
{
    return std::all_of(s.points.begin(), s.points.end(), [](const measurement& m) { return all_verified(m); });
}

} // namespace slipstream::cli
