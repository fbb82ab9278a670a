// What curves say: METG and the figure of it.
#include "tools/slipstream/bench/metg.hpp"
#include "tools/slipstream/compare/crossover.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::bench {

bool metg_result::verified() const
{
    const auto good = [](const metg_curve& c) { return c.verified && !c.points.empty(); };
    return peak.verified && std::all_of(graphs.begin(), graphs.end(), [&](const metg_graph& g) {
               return std::all_of(g.curves.begin(), g.curves.end(), good);
           });
}

double metg_result::peak_tera_flops() const
{
    return peak.rate * 2 * workloads::multiply_adds * threads / 1e6;
}

metg_value metg_result::metg(const metg_graph& g, const metg_curve& c, double level, double spread::*percentile) const
{
    std::vector<double> us, share;
    for (const metg_point& p : c.points) {
        us.push_back(granularity_us(g, p.wall_us.*percentile));
        share.push_back(efficiency(g, p.iterations, p.wall_us.*percentile));
    }
    const std::optional<double> from = cli::keeps_from(us, share, level);
    if (!from || !c.verified) return {};
    const bool all = std::all_of(share.begin(), share.end(), [&](double e) { return e >= level; });
    return {all ? metg_value::kind::at_most : metg_value::kind::reached, *from};
}

figure metg_figure(const metg_result& r, const std::string& engine)
{
    const metg_graph& g = r.graphs.front();
    figure f{std::string("METG(50 %), ") + workloads::pattern_names[static_cast<u32>(g.plan.graph.kind)] + ", " + engine, "us", {}};
    f.tasks = g.tasks;
    const auto found = std::find_if(g.curves.begin(), g.curves.end(), [&](const metg_curve& c) { return c.engine == engine; });
    if (found == g.curves.end() || found->points.empty()) {
        f.note = "not measured";
        return f;
    }
    const metg_value value = r.metg(g, *found, 0.5);
    // By the slow runs 50 % may not be reached, by the fast ones the shortest tasks may keep them: no number either.
    const auto reached_by = [&](double spread::*percentile) {
        const metg_value v = r.metg(g, *found, 0.5, percentile);
        return v.what == metg_value::kind::reached ? v.us : std::nan("");
    };
    f.repeats = found->points.back().repeats;
    f.verified = r.peak.verified && found->verified;
    if (value.what == metg_value::kind::reached)
        f.value = {value.us, reached_by(&spread::p10), reached_by(&spread::p90)};
    else
        f.value.median = f.value.p10 = f.value.p90 = std::nan("");
    if (!f.verified)
        f.note = r.peak.verified ? found->trouble : "the solo run did not verify";
    else if (value.what != metg_value::kind::reached)
        f.note = value.what == metg_value::kind::at_most ? "the shortest tasks keep 50 %" : "50 % of the peak was not reached";
    return f;
}

} // namespace slipstream::bench
