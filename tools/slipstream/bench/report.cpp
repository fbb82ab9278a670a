#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/text_table.hpp"
#include <cmath>

namespace slipstream::bench {
namespace {

void print_references(std::FILE* to, const figure& f, const char* kind, const std::vector<reference>& references)
{
    for (const reference& r : references)
        std::fprintf(to, "  %s: %s: %s %s, %s %s is %s x that\n", f.name.c_str(), kind, r.name.c_str(),
                     (number_text(r.value) + " " + f.unit).c_str(), number_text(f.value.median).c_str(), f.unit.c_str(),
                     number_text(f.value.median / r.value).c_str());
}

void write_references(cli::json_writer& w, const char* key, const std::vector<reference>& references)
{
    w.Key(key);
    w.StartArray();
    for (const reference& r : references) {
        w.StartObject();
        cli::field(w, "name", r.name);
        cli::field(w, "value", r.value);
        w.EndObject();
    }
    w.EndArray();
}

} // namespace

std::string number_text(double value)
{
    if (!std::isfinite(value)) return "-";
    char text[64];
    const double size = std::fabs(value);
    std::snprintf(text, sizeof text, size >= 100 ? "%.0f" : size >= 10 ? "%.1f" : size >= 1 ? "%.2f" : "%.3f", value);
    return text;
}

void print_figures(std::FILE* to, const std::vector<figure>& figures)
{
    cli::text_table table({"figure", "unit", "median", "p10", "p90", "min", "p99", "tasks", "repeats", "verified"});
    for (const figure& f : figures) {
        const auto further = [&](const char* name) {
            for (const auto& [key, value] : f.further)
                if (key == name) return number_text(value);
            return std::string();
        };
        table.add({f.name, f.unit, number_text(f.value.median), number_text(f.value.p10), number_text(f.value.p90), further("min"),
                   further("p99"), f.tasks == 0 ? "" : std::to_string(f.tasks), std::to_string(f.repeats),
                   f.verified ? "yes" : "NO"});
    }
    table.print(to);
    for (const figure& f : figures) {
        print_references(to, f, "floor", f.floors);
        print_references(to, f, "alternative", f.alternatives);
        if (!f.note.empty()) std::fprintf(to, "  %s: %s\n", f.name.c_str(), f.note.c_str());
    }
}

void write_figures(cli::json_writer& w, const std::vector<figure>& figures)
{
    w.Key("figures");
    w.StartArray();
    for (const figure& f : figures) {
        w.StartObject();
        write_figure(w, f);
        w.EndObject();
    }
    w.EndArray();
}

void write_figure(cli::json_writer& w, const figure& f)
{
    cli::field(w, "name", f.name);
    cli::field(w, "unit", f.unit);
    if (!f.kind.empty()) cli::field(w, "kind", f.kind);
    cli::field(w, "value", f.value);
    for (const auto& [key, value] : f.further) cli::field(w, key.c_str(), value);
    cli::field(w, "tasks", f.tasks);
    cli::field(w, "repeats", f.repeats);
    cli::field(w, "verified", f.verified);
    if (!f.note.empty()) cli::field(w, "note", f.note);
    write_references(w, "floors", f.floors);
    write_references(w, "alternatives", f.alternatives);
}

} // namespace slipstream::bench
