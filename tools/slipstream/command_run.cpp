// slipstream run: one of the built-in workloads on every engine.
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/text_table.hpp"
#include "tools/slipstream/timeline.hpp"
#include "tools/slipstream/program_analysis.hpp"
#include "tools/slipstream/trace_report.hpp"
#include "tools/slipstream/workload_choice.hpp"

namespace slipstream::cli {
namespace {

int list_workloads(const options& o)
{
    const report_target target(o);
    std::FILE* const to = target.tables();
    rapidjson::StringBuffer text;
    json_writer w(text);
    w.StartObject();
    field(w, "command", "run --list");
    w.Key("workloads");
    w.StartArray();
    for (const auto& type : workloads::all_workloads()) {
        std::fprintf(to, "%s\n  %s\n", type.name.c_str(), type.description.c_str());
        w.StartObject();
        field(w, "name", type.name);
        field(w, "description", type.description);
        w.Key("parameters");
        w.StartObject();
        for (const auto& [name, value] : type.defaults) {
            if (name == hidden_parameter) continue;
            std::fprintf(to, "    %s=%s\n", name.c_str(), value.c_str());
            field(w, name.c_str(), value);
        }
        w.EndObject();
        w.EndObject();
    }
    w.EndArray();
    w.EndObject();
    if (target.wants_json()) target.write(text);
    return exit_good;
}

const workloads::workload_type& chosen_workload(const std::string& name)
{
    if (const workloads::workload_type* const type = find_workload(name)) return *type;
    throw usage_error("run " + name + ": unknown workload; use one of: " + workload_names() + " (see 'slipstream run --list')");
}

workloads::parameters values_of(const workloads::workload_type& type, const options& o)
{
    workloads::parameters out = workload_values("run " + type.name, type, o.parameters);
    if (!o.break_kind.empty()) {
        const auto it = out.find(std::string(hidden_parameter));
        if (it == out.end())
            throw usage_error("run " + type.name + ": --break works on workloads with a parameter of that name; this one has none");
        it->second = o.break_kind;
    }
    return out;
}

} // namespace

int run_workload(const options& o)
{
    if (o.list) {
        if (!o.workload.empty()) throw usage_error("run --list " + o.workload + ": lists all workloads; leave the name out");
        return list_workloads(o);
    }
    if (o.workload.empty()) throw usage_error("run: no workload given; 'slipstream run --list' names them");
    refuse_to_overwrite("--timeline", o.timeline, {o.json});
    const report_target target(o);
    std::FILE* const to = target.tables();
    const workloads::workload_type& type = chosen_workload(o.workload);
    workloads::parameters values = values_of(type, o);
    const auto device = open_named_device(o.device);
    const std::vector<std::string> names = chosen_engines(o.engine, device->is_cuda());
    const timeline_request timeline(o, names);
    const environment e = describe_environment(o, device->name(), device->is_cuda());

    const auto work = type.make(*device, values, o.seed);
    std::fprintf(to, "Workload %s, seed %llu, %zu tasks\n", type.name.c_str(), static_cast<unsigned long long>(o.seed),
                 work->program().tasks().size());
    for (const auto& [name, value] : values)
        if (!value.empty()) std::fprintf(to, "  %s=%s\n", name.c_str(), value.c_str());
    const std::string check = work->check();
    if (!check.empty()) std::fprintf(to, "  checked by %s\n", check.c_str());
    const std::optional<workloads::path_length> path = work->known_critical_path();
    if (path)
        std::fprintf(to, "  critical path %llu tasks, %s us of work\n", static_cast<unsigned long long>(path->tasks),
                     microseconds(path->work_us).c_str());

    rapidjson::StringBuffer text;
    json_writer w(text);
    w.StartObject();
    field(w, "command", "run");
    w.Key("workload");
    w.StartObject();
    field(w, "name", type.name);
    field(w, "tasks", static_cast<u64>(work->program().tasks().size()));
    w.Key("parameters");
    w.StartObject();
    for (const auto& [name, value] : values) field(w, name.c_str(), value);
    w.EndObject();
    if (!check.empty()) field(w, "check", check);
    if (path) {
        w.Key("critical_path");
        w.StartObject();
        field(w, "tasks", path->tasks);
        field(w, "work_us", path->work_us);
        w.EndObject();
    }
    int code = exit_good;
    if (o.analyze) {
        const trace::hazard_analysis analysis = analyze(work->program());
        print_edges(to, analysis);
        write_edges(w, analysis);
        w.EndObject();
        write_runs(w, {}, e);
    } else {
        w.EndObject();
        const std::vector<engine_runs> runs = compare(*work, names, o, *device);
        std::fprintf(to, "\nBack-to-back on %s, %s, %u runs each, commit %s:\n", e.device.c_str(), sizes_text(o).c_str(), o.repeat,
                     e.commit.c_str());
        print_rows(to, rows_of(runs));
        print_phases(to, runs);
        print_troubles(to, runs);
        if (!e.is_cuda) std::fprintf(to, "\nThis was a correctness run on the host device: its times are NOT GPU times.\n");
        if (!all_verified(runs)) code = exit_run_failed;
        if (!timeline.carry_out(*work, engine_configuration(o, *device), *device, e, to)) code = exit_run_failed;
        write_runs(w, runs, e);
    }
    write_environment(w, e, o);
    w.EndObject();
    if (target.wants_json()) target.write(text);
    return code;
}

} // namespace slipstream::cli
