#include "tools/slipstream/compare/figures.hpp"
#include <algorithm>
#include <limits>

namespace slipstream::cli {
namespace {

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

double ratio(double above, double below)
{
    return above > 0 && below > 0 ? above / below : unknown;
}

double each(const std::vector<double>& values, u64 tasks)
{
    return values.empty() || tasks == 0 ? unknown : spread_of(values).median / static_cast<double>(tasks);
}

double each(const engine_runs& r, const char* count, u64 tasks)
{
    const auto it = r.counts.find(count);
    if (it == r.counts.end() || r.makespan_us.empty() || tasks == 0) return unknown;
    return static_cast<double>(it->second) / static_cast<double>(r.makespan_us.size()) / static_cast<double>(tasks);
}

} // namespace

comparison_figures figures_of(const std::vector<engine_runs>& runs, u64 tasks, const bounds* limits)
{
    comparison_figures out;
    double serial = 0, best = 0;
    for (const engine_runs& r : runs) {
        const double us = spread_of(r.makespan_us).median;
        if (kind_of(r.engine) == engine_kind::baseline && r.verified) serial = us;
        if (kind_of(r.engine) != engine_kind::alternative || !r.verified || us <= 0 || (best > 0 && us >= best)) continue;
        best = us;
        out.best_alternative = r.engine;
    }
    const auto add = [&](engine_figures f, const std::vector<double>& makespans) {
        f.makespan_us = spread_of(makespans);
        f.over_serial = ratio(serial, f.makespan_us.median);
        f.over_alternative = ratio(best, f.makespan_us.median);
        f.bound_share = limits ? ratio(limits->lowest_us(), f.makespan_us.median) : unknown;
        out.engines.push_back(std::move(f));
    };
    for (const engine_runs& r : runs) {
        engine_figures f;
        f.engine = r.engine;
        f.kind = kind_of(r.engine);
        f.verified = r.verified;
        f.submit_us = each(r.submit_us, tasks);
        f.cpu_us = each(r.cpu_us, tasks);
        f.submitter_cpu_us = each(r.submitter_cpu_us, tasks);
        f.bytes_to_gpu = each(r, "bus_bytes_to_gpu", tasks);
        f.bytes_to_host = each(r, "bus_bytes_to_host", tasks);
        f.scheduling_sms = r.scheduling_sms;
        add(f, r.makespan_us);
        const auto built = r.phases.find("build_and_replay_us");
        if (built == r.phases.end()) continue;
        f.engine = replay_with_build;
        f.submit_us = f.cpu_us = f.submitter_cpu_us = unknown; // building was not under these clocks
        add(f, built->second);
    }
    return out;
}

std::vector<const engine_figures*> faster_than(const comparison_figures& all, const std::string& engine)
{
    const auto own =
        std::find_if(all.engines.begin(), all.engines.end(), [&](const engine_figures& f) { return f.engine == engine; });
    std::vector<const engine_figures*> out;
    if (own == all.engines.end()) return out;
    for (const engine_figures& f : all.engines)
        if (f.verified && f.makespan_us.median > 0 && f.makespan_us.median < own->makespan_us.median) out.push_back(&f);
    std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->makespan_us.median < b->makespan_us.median; });
    return out;
}

} // namespace slipstream::cli
