#include "tools/slipstream/compare/sweep_run.hpp"
#include "tools/slipstream/compare/measurement_report.hpp"
#include "tools/slipstream/text_table.hpp"
#include <algorithm>
#include <cmath>

namespace slipstream::cli {
namespace {

std::string value_text(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, value < 1000 ? "%.3g" : "%.0f", value);
    return text;
}

std::string sentence_of(const sweep_curve& c, const sweep_axis& axis)
{
    if (!c.slipstream_wins_first) return std::string("no point was measured of both");
    const std::string first = std::string("slipstream is ") + (*c.slipstream_wins_first ? "faster" : "slower");
    if (c.against.empty()) return first + " everywhere";
    std::string out = first + " at first";
    for (const crossover& x : c.against)
        out += std::string(x.wins_above ? ", faster" : ", slower") + " from " + value_text(x.at) + " on";
    return out + " (" + axis.label + ")";
}

/// The subject with those parameters only that are the same at all points.
subject common_part(const sweep_run& s)
{
    subject out = s.what;
    for (const measurement& m : s.points)
        std::erase_if(out.values,
                      [&](const auto& p) { return m.what.values.at(p.first) != s.points.front().what.values.at(p.first); });
    for (auto& [name, value] : out.values) value = s.points.front().what.values.at(name);
    return out;
}

void write_optional(json_writer& w, const char* key, const std::optional<double>& value)
{
    w.Key(key);
    if (value)
        put(w, *value);
    else
        w.Null();
}

} // namespace

sweep_run run_sweep(const subject& what, const sweep_axis& axis, u64 seed, const std::vector<std::string>& engines,
                    const options& o, const std::string& title)
{
    sweep_run out{what, axis, {}, {}};
    std::vector<std::string> changing;
    for (const std::string& name : engines)
        (axis.parameter == nullptr && kind_of(name) != engine_kind::own ? out.measured_once : changing).push_back(name);
    for (const double value : axis.values) {
        const sweep_point point = point_of(what, axis, value, o.window, o.tasks);
        subject at = what;
        at.values = point.values;
        options here = o;
        here.window = point.window;
        const bool first = out.points.empty();
        const std::string progress = title + ", " + axis.name + " " + value_text(value) + " ("
                                     + std::to_string(out.points.size() + 1) + " of " + std::to_string(axis.values.size()) + ")";
        measurement m;
        try {
            m = measure(at, seed, first ? engines : changing, here, progress);
        } catch (const error&) { // the points before it stand
            if (first) throw;
            out.ended_by = std::current_exception();
            break;
        }
        if (!first && !out.measured_once.empty()) {
            // In the order of the first point's engines.
            std::vector<engine_runs> all = out.points.front().runs;
            for (engine_runs& r : all)
                for (engine_runs& fresh : m.runs)
                    if (r.engine == fresh.engine) r = std::move(fresh);
            m.runs = std::move(all);
        }
        out.ended_by = m.ended_by;
        out.points.push_back(std::move(m));
        if (out.ended_by) break;
    }
    out.axis.values.resize(out.points.size());
    return out;
}

void print_sweep(std::FILE* to, const sweep_run& s, const environment& e)
{
    const std::vector<sweep_curve> curves = curves_of(s);
    std::fprintf(to, "\nSweep of %s: %s, microseconds of makespan a task\n  %s\n", s.what.title.c_str(), s.axis.label,
                 description_of(common_part(s)).c_str());
    std::vector<std::string> head{s.axis.name, "tasks"};
    for (const sweep_curve& c : curves) head.push_back(c.engine);
    head.push_back("bound");
    text_table table(head);
    for (std::size_t i = 0; i < s.points.size(); ++i) {
        const measurement& m = s.points[i];
        std::vector<std::string> row{value_text(s.axis.values[i]), std::to_string(m.tasks)};
        for (const sweep_curve& c : curves) row.push_back(microseconds(c.us_per_task[i]));
        row.push_back(m.limits ? microseconds(m.limits->lowest_us() / static_cast<double>(m.tasks)) : "-");
        table.add(std::move(row));
    }
    table.print(to);
    for (const measurement& m : s.points) print_troubles(to, m.runs);
    for (std::size_t i = 0; i < s.points.size(); ++i)
        for (const std::string& note : s.points[i].notes)
            std::fprintf(to, "  note at %s %s: %s\n", s.axis.name, value_text(s.axis.values[i]).c_str(), note.c_str());
    const bool with_slipstream =
        std::any_of(curves.begin(), curves.end(), [](const sweep_curve& c) { return c.engine == "slipstream"; });
    for (const sweep_curve& c : curves)
        if (with_slipstream && c.engine != "slipstream")
            std::fprintf(to, "  against %s: %s\n", c.engine.c_str(), sentence_of(c, s.axis).c_str());
    for (const sweep_curve& c : curves)
        if (std::string_view(s.axis.name) == "length")
            std::fprintf(to, "  %s keeps 50 %% of the bound from %s on, 90 %% from %s on\n", c.engine.c_str(),
                         c.half_from ? value_text(*c.half_from).c_str() : "nowhere",
                         c.most_from ? value_text(*c.most_from).c_str() : "nowhere");
    if (!e.is_cuda) std::fprintf(to, "  This was a correctness run on the host device: its times are NOT GPU times.\n");
}

void write_sweep(json_writer& w, const sweep_run& s, const environment& e)
{
    field(w, "title", s.what.title);
    field(w, "axis", s.axis.name);
    field(w, "label", s.axis.label);
    w.Key("measured_once");
    w.StartArray();
    for (const std::string& name : s.measured_once) put(w, name);
    w.EndArray();
    w.Key("points");
    w.StartArray();
    for (std::size_t i = 0; i < s.points.size(); ++i) {
        w.StartObject();
        field(w, "value", s.axis.values[i]);
        write_measurement(w, s.points[i], e);
        w.EndObject();
    }
    w.EndArray();
    w.Key("curves");
    w.StartArray();
    for (const sweep_curve& c : curves_of(s)) {
        w.StartObject();
        field(w, "engine", c.engine);
        w.Key("us_per_task");
        w.StartArray();
        for (const double us : c.us_per_task) put(w, us);
        w.EndArray();
        w.Key("of_the_bound");
        w.StartArray();
        for (const double share : c.bound_share) put(w, share);
        w.EndArray();
        if (c.slipstream_wins_first) field(w, "slipstream_wins_first", *c.slipstream_wins_first);
        w.Key("crossovers");
        w.StartArray();
        for (const crossover& x : c.against) {
            w.StartObject();
            field(w, "at", x.at);
            field(w, "slipstream_wins_above", x.wins_above);
            w.EndObject();
        }
        w.EndArray();
        write_optional(w, "half_of_bound_from", c.half_from);
        write_optional(w, "nine_tenths_of_bound_from", c.most_from);
        w.EndObject();
    }
    w.EndArray();
}

} // namespace slipstream::cli
