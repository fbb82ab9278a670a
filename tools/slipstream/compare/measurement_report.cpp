#include "tools/slipstream/compare/measurement_report.hpp"
#include "tools/slipstream/text_table.hpp"
#include <cmath>

namespace slipstream::cli {
namespace {

std::string number(double value, const char* format)
{
    if (!std::isfinite(value)) return "-";
    char text[48];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string percent(double share)
{
    return number(100 * share, "%.1f %%");
}

void print_bounds(std::FILE* to, const measurement& m)
{
    if (!m.limits) return;
    std::fprintf(to, "  bounds: critical path %s us (%u tasks), work %s us on %u workers: not below %s us\n",
                 microseconds(m.limits->critical_path_us).c_str(), m.limits->critical_path_tasks,
                 microseconds(m.limits->area_us).c_str(), m.workers, microseconds(m.limits->lowest_us()).c_str());
}

void print_times(std::FILE* to, const comparison_figures& all)
{
    text_table table(
        {"engine", "makespan us", "p10", "p90", "p99", "over serial", "over best alternative", "of the bound", "verified"});
    for (const engine_figures& f : all.engines)
        table.add({f.engine, microseconds(f.makespan_us.median), microseconds(f.makespan_us.p10), microseconds(f.makespan_us.p90),
                   microseconds(f.makespan_us.p99), ratio_text(f.over_serial), ratio_text(f.over_alternative),
                   percent(f.bound_share), f.verified ? "yes" : "NO"});
    table.print(to);
}

void print_costs(std::FILE* to, const comparison_figures& all)
{
    std::fprintf(to, "\n  what one task costs the host and the bus, and what scheduling costs the GPU:\n");
    text_table table(
        {"engine", "submit us", "CPU us, all threads", "CPU us, submitter", "bus bytes to GPU", "to host", "SMs that schedule"});
    for (const engine_figures& f : all.engines) {
        if (f.engine == replay_with_build) continue;
        table.add({f.engine, number(f.submit_us, "%.3f"), number(f.cpu_us, "%.3f"), number(f.submitter_cpu_us, "%.3f"),
                   number(f.bytes_to_gpu, "%.0f"), number(f.bytes_to_host, "%.0f"), number(f.scheduling_sms, "%g")});
    }
    table.print(to);
}

void print_losses(std::FILE* to, const comparison_figures& all)
{
    const auto faster = faster_than(all, "slipstream");
    if (faster.empty()) return;
    std::string list;
    for (const engine_figures* f : faster)
        list += (list.empty() ? "" : ", ") + f->engine + " (" + microseconds(f->makespan_us.median) + " us)";
    std::fprintf(to, "  slipstream loses to: %s\n", list.c_str());
}

void write_bounds(json_writer& w, const measurement& m)
{
    w.Key("bounds");
    if (!m.limits) {
        w.Null();
        return;
    }
    w.StartObject();
    field(w, "workers", m.workers);
    field(w, "critical_path_us", m.limits->critical_path_us);
    field(w, "critical_path_tasks", m.limits->critical_path_tasks);
    field(w, "work_us", m.limits->area_us);
    field(w, "lowest_us", m.limits->lowest_us());
    w.EndObject();
}

} // namespace

void write_figures(json_writer& w, const measurement& m)
{
    const comparison_figures all = figures_of(m);
    w.Key("figures");
    w.StartArray();
    for (const engine_figures& f : all.engines) {
        w.StartObject();
        field(w, "engine", f.engine);
        field(w, "kind", name_of(f.kind));
        field(w, "makespan_us", f.makespan_us);
        field(w, "over_serial", f.over_serial);
        field(w, "over_best_alternative", f.over_alternative);
        field(w, "of_the_bound", f.bound_share);
        field(w, "submit_us_per_task", f.submit_us);
        field(w, "cpu_us_per_task", f.cpu_us);
        field(w, "submitter_cpu_us_per_task", f.submitter_cpu_us);
        field(w, "bus_bytes_to_gpu_per_task", f.bytes_to_gpu);
        field(w, "bus_bytes_to_host_per_task", f.bytes_to_host);
        field(w, "scheduling_sms", f.scheduling_sms);
        field(w, "verified", f.verified);
        w.EndObject();
    }
    w.EndArray();
    field(w, "best_alternative", all.best_alternative);
}

std::string ratio_text(double value)
{
    return number(value, value < 0.1 ? "%.1g" : "%.2f");
}

std::string description_of(const subject& s)
{
    if (s.workload == nullptr) return s.kineto + " with " + s.et;
    std::string out;
    for (const auto& [name, value] : s.values)
        if (!value.empty()) out += (out.empty() ? s.workload->name + ": " : ", ") + name + "=" + value;
    return out.empty() ? s.workload->name : out;
}

void print_measurement(std::FILE* to, const measurement& m, const environment& e)
{
    const comparison_figures all = figures_of(m);
    const std::string seed = m.what.workload ? ", seed " + std::to_string(m.seed) : "";
    std::fprintf(to, "\n%s, %llu tasks\n  %s%s\n", m.what.title.c_str(), static_cast<unsigned long long>(m.tasks),
                 description_of(m.what).c_str(), seed.c_str());
    for (const auto& note : m.notes) std::fprintf(to, "  note: %s\n", note.c_str());
    print_bounds(to, m);
    print_times(to, all);
    print_losses(to, all);
    print_phases(to, m.runs);
    print_troubles(to, m.runs);
    print_costs(to, all);
    if (!e.is_cuda) std::fprintf(to, "  This was a correctness run on the host device: its times are NOT GPU times.\n");
}

void write_measurement(json_writer& w, const measurement& m, const environment& e)
{
    field(w, "title", m.what.title);
    if (m.what.workload == nullptr) {
        w.Key("trace");
        w.StartObject();
        field(w, "kineto", m.what.kineto);
        field(w, "et", m.what.et);
        w.EndObject();
    } else {
        w.Key("workload");
        w.StartObject();
        field(w, "name", m.what.workload->name);
        w.Key("parameters");
        w.StartObject();
        for (const auto& [name, value] : m.what.values) field(w, name.c_str(), value);
        w.EndObject();
        w.EndObject();
    }
    field(w, "seed", m.seed);
    field(w, "window", m.window);
    field(w, "tasks", m.tasks);
    w.Key("notes");
    w.StartArray();
    for (const auto& note : m.notes) put(w, note);
    w.EndArray();
    write_bounds(w, m);
    write_runs(w, m.runs, e);
}

} // namespace slipstream::cli
