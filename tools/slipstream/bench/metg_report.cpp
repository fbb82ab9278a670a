// Curves and METG as tables and as JSON.
#include "tools/slipstream/bench/metg.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/text_table.hpp"
#include <algorithm>

namespace slipstream::bench {
namespace {

const char* name_of(const metg_graph& g)
{
    return workloads::pattern_names[static_cast<u32>(g.plan.graph.kind)];
}

std::string text_of(const metg_value& v)
{
    switch (v.what) {
    case metg_value::kind::reached:
        return number_text(v.us);
    case metg_value::kind::at_most:
        return "<= " + number_text(v.us);
    case metg_value::kind::not_reached:
        break;
    }
    return "not reached";
}

std::string percent(double share)
{
    return number_text(100 * share) + " %";
}

double efficiency_of(const metg_result& r, const metg_graph& g, const metg_point& p)
{
    return r.efficiency(g, p.iterations, p.wall_us.median);
}

double best_efficiency(const metg_result& r, const metg_graph& g, const metg_curve& c)
{
    double best = 0;
    for (const metg_point& p : c.points) best = std::max(best, efficiency_of(r, g, p));
    return best;
}

/// A row for each length, with granularity and efficiency of each engine.
void print_curves(std::FILE* to, const metg_result& r, const metg_graph& g)
{
    std::vector<std::string> head{"task alone, us"};
    std::vector<u32> lengths;
    for (const metg_curve& c : g.curves) {
        head.push_back(c.engine + ", us a task");
        head.push_back("of the peak");
        for (const metg_point& p : c.points) lengths.push_back(p.iterations);
    }
    std::sort(lengths.begin(), lengths.end());
    lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
    cli::text_table table(head);
    for (const u32 iterations : lengths) {
        std::vector<std::string> row{number_text(r.length_us(iterations))};
        for (const metg_curve& c : g.curves) {
            const auto p =
                std::find_if(c.points.begin(), c.points.end(), [&](const metg_point& q) { return q.iterations == iterations; });
            row.push_back(p == c.points.end() ? "" : number_text(r.granularity_us(g, p->wall_us.median)));
            row.push_back(p == c.points.end() ? "" : percent(efficiency_of(r, g, *p)));
        }
        table.add(row);
    }
    table.print(to);
}

void write_value(cli::json_writer& w, const char* key, const metg_value& v)
{
    w.Key(key);
    w.StartObject();
    cli::field(w, "outcome",
               v.what == metg_value::kind::reached   ? "reached"
               : v.what == metg_value::kind::at_most ? "at most"
                                                     : "not reached");
    if (v.what != metg_value::kind::not_reached) cli::field(w, "us", v.us);
    w.EndObject();
}

void write_curve(cli::json_writer& w, const metg_result& r, const metg_graph& g, const metg_curve& c)
{
    w.StartObject();
    cli::field(w, "engine", c.engine);
    cli::field(w, "verified", c.verified);
    if (!c.trouble.empty()) cli::field(w, "trouble", c.trouble);
    write_value(w, "metg_50", r.metg(g, c, 0.5));
    write_value(w, "metg_95", r.metg(g, c, 0.95));
    w.Key("points");
    w.StartArray();
    for (const metg_point& p : c.points) {
        w.StartObject();
        cli::field(w, "iterations", p.iterations);
        cli::field(w, "length_us", r.length_us(p.iterations));
        cli::field(w, "wall_us", p.wall_us);
        cli::field(w, "repeats", p.repeats);
        cli::field(w, "granularity_us", r.granularity_us(g, p.wall_us.median));
        cli::field(w, "efficiency", efficiency_of(r, g, p));
        cli::field(w, "verified", p.verified);
        w.EndObject();
    }
    w.EndArray();
    w.EndObject();
}

} // namespace

void print_metg(std::FILE* to, const metg_result& r)
{
    std::fprintf(to, "  %u workers on %u places; peak %s iterations/us (%s), %s TFLOP/s; solo %s iterations/us, one block %s%s\n",
                 r.workers, r.places, number_text(r.peak.rate).c_str(), r.peak.from.c_str(),
                 number_text(r.peak_tera_flops()).c_str(), number_text(r.peak.solo_rate).c_str(),
                 number_text(r.peak.block_rate).c_str(), r.peak.verified ? "" : "; the solo run did NOT verify");
    for (const metg_graph& g : r.graphs) {
        std::fprintf(to, "\n%s: %u points x %u steps, %u buffers a point, %llu tasks, %llu inputs\n", name_of(g),
                     g.plan.graph.width, g.plan.graph.steps, g.plan.buffers, static_cast<unsigned long long>(g.tasks),
                     static_cast<unsigned long long>(g.inputs));
        print_curves(to, r, g);
        cli::text_table table({"engine", "METG(50 %) us", "METG(95 %) us", "best efficiency", "verified"});
        for (const metg_curve& c : g.curves)
            table.add({c.engine, text_of(r.metg(g, c, 0.5)), text_of(r.metg(g, c, 0.95)), percent(best_efficiency(r, g, c)),
                       c.verified ? "yes" : "NO"});
        table.print(to);
        for (const metg_curve& c : g.curves)
            if (!c.trouble.empty()) std::fprintf(to, "  %s: %s\n", c.engine.c_str(), c.trouble.c_str());
    }
}

void write_metg(cli::json_writer& w, const metg_result& r)
{
    w.Key("metg");
    w.StartObject();
    cli::field(w, "workers", r.workers);
    cli::field(w, "places", r.places);
    cli::field(w, "longest_us", r.longest_us);
    w.Key("peak");
    w.StartObject();
    cli::field(w, "iterations_per_us", r.peak.rate);
    cli::field(w, "from", r.peak.from);
    cli::field(w, "tera_flops", r.peak_tera_flops());
    cli::field(w, "solo_iterations_per_us", r.peak.solo_rate);
    cli::field(w, "block_iterations_per_us", r.peak.block_rate);
    cli::field(w, "verified", r.peak.verified);
    w.EndObject();
    w.Key("graphs");
    w.StartArray();
    for (const metg_graph& g : r.graphs) {
        w.StartObject();
        cli::field(w, "pattern", name_of(g));
        cli::field(w, "width", g.plan.graph.width);
        cli::field(w, "steps", g.plan.graph.steps);
        cli::field(w, "buffers", g.plan.buffers);
        cli::field(w, "tasks", g.tasks);
        cli::field(w, "inputs", g.inputs);
        w.Key("curves");
        w.StartArray();
        for (const metg_curve& c : g.curves) write_curve(w, r, g, c);
        w.EndArray();
        w.EndObject();
    }
    w.EndArray();
    w.EndObject();
}

} // namespace slipstream::bench
