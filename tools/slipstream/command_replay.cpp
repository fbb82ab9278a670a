// slipstream replay: imports a recorded run, says what it holds, replays it on every engine and compares.
#include "host/nvtx_range.hpp"
#include "host/trace/trace_import.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/committed_result.hpp"
#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include "tools/slipstream/text_table.hpp"
#include "tools/slipstream/timeline.hpp"
#include "tools/slipstream/trace_report.hpp"
#include "workloads/replay/replay.hpp"
#include "workloads/replay/replay_task.hpp"
#include <algorithm>
#include <iterator>
#include <optional>

namespace slipstream::cli {
namespace {

engines::arrival_mode mode_of(const std::string& name)
{
    using enum engines::arrival_mode;
    for (const auto mode : {back_to_back, preloaded, paced})
        if (name == engines::name_of(mode)) return mode;
    throw usage_error("--mode " + name + ": unknown; use back-to-back, preloaded or paced");
}

// Engines that can run tasks which arrive like that. Of `--engine all` the others are left out; one that was named is refused.
std::vector<std::string> engines_taking(engines::arrival_mode mode, const std::vector<std::string>& names, const options& o,
                                        const engines::device_memory& device)
{
    std::vector<std::string> out;
    for (const std::string& name : names) {
        const auto engine = engines::make_engine(name, engine_configuration(o, device), device, workloads::replay_image());
        if (engine->takes(mode))
            out.push_back(name);
        else if (o.engine != "all")
            throw usage_error("--engine " + o.engine + ": " + name + " takes no " + o.mode + " tasks (--mode); leave it out");
    }
    return out;
}

// What a paced run is about: how far the engine is behind its last task.
void note_delays(std::vector<engine_runs>& runs, double last_arrival_us)
{
    for (auto& r : runs)
        for (const double us : r.makespan_us) r.phases["after_last_arrival_us"].push_back(us - last_arrival_us);
}

void print_solo(std::FILE* to, const workloads::solo_times& s)
{
    if (!s.measured) return;
    std::fprintf(to, "\nSolo times: each body alone, %zu classes of tasks, sums over all tasks\n", s.classes.size());
    text_table table({"", "us", "of recorded"});
    const auto row = [&](const char* what, double us) {
        char share[32] = "-";
        if (s.recorded_us > 0) std::snprintf(share, sizeof share, "%.1f %%", 100 * us / s.recorded_us);
        table.add({what, microseconds(us), share});
    };
    row("recorded", s.recorded_us);
    row("launched (plain kernel)", s.launched_us);
    row("resident (alone in the slipstream engine)", s.resident_us);
    table.print(to);
}

void write_solo(json_writer& w, const workloads::solo_times& s)
{
    w.Key("solo");
    w.StartObject();
    field(w, "measured", s.measured);
    field(w, "recorded_us", s.recorded_us);
    field(w, "launched_us", s.launched_us);
    field(w, "resident_us", s.resident_us);
    field(w, "launch_floor_us", s.floor_us);
    w.Key("classes");
    w.StartArray();
    for (const auto& c : s.classes) {
        w.StartObject();
        field(w, "tasks", c.tasks);
        field(w, "blocks", c.blocks);
        field(w, "recorded_us", c.recorded_us);
        field(w, "recorded_bytes", c.recorded_bytes);
        field(w, "moved_bytes", c.moved_bytes);
        field(w, "iterations", c.iterations);
        field(w, "launched_us", c.launched_us);
        field(w, "resident_us", c.resident_us);
        w.EndObject();
    }
    w.EndArray();
    w.EndObject();
}

} // namespace

int run_replay(const options& o)
{
    if (o.kineto.empty() && o.et.empty())
        throw usage_error("replay: no trace given; name a Kineto file, an execution trace with --et, or both");
    const engines::arrival_mode mode = mode_of(o.mode);
    refuse_to_overwrite("--json", o.json, {o.kineto, o.et});
    refuse_to_overwrite("--timeline", o.timeline, {o.kineto, o.et, o.json});
    const report_target target(o);
    std::FILE* const to = target.tables();

    // Device and engines first: a wrong name should not cost an import.
    std::unique_ptr<engines::device_memory> device;
    std::vector<std::string> names, left_out;
    if (o.analyze) {
        check_device_name(o.device);
        chosen_engines(o.engine, o.device != "host");
    } else {
        device = open_named_device(o.device);
        const std::vector<std::string> chosen = chosen_engines(o.engine, device->is_cuda());
        names = engines_taking(mode, chosen, o, *device);
        std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(left_out),
                     [&](const std::string& name) { return std::find(names.begin(), names.end(), name) == names.end(); });
    }
    const timeline_request timeline(o, names);

    const trace::recorded_trace recorded = [&] {
        const host::nvtx_range range("import trace");
        return trace::import_trace(o.kineto, o.et);
    }();
    const engines::arrivals when = workloads::arrivals_of(recorded, mode);
    const trace::hazard_analysis analysis = trace::analyze(recorded);
    print_trace(to, o, recorded, analysis);

    const environment e = describe_environment(o, device ? device->name() : "none", device && device->is_cuda());
    rapidjson::StringBuffer text;
    json_writer w(text);
    w.StartObject();
    field(w, "command", "replay");
    write_trace(w, o, recorded, analysis);
    int code = exit_good;
    if (o.analyze) {
        write_runs(w, {}, e);
    } else {
        std::optional<workloads::replay> work;
        {
            const host::nvtx_range range("calibrate");
            progress_bar bar("calibrating");
            workloads::replay_options how;
            how.break_kind = o.break_kind;
            how.resident = engine_configuration(o, *device);
            how.resident.parts = 1; // a body alone may have all workers
            how.progress = [&](double done, double total) { bar.at(done, total); };
            work.emplace(*device, recorded, how);
        }
        for (const auto& note : work->notes()) std::fprintf(to, "  replay        %s\n", note.c_str());
        print_solo(to, work->solo());

        std::vector<engine_runs> runs = compare(*work, names, o, *device, {}, when);
        if (!when.at_us.empty()) note_delays(runs, when.at_us.back());
        std::fprintf(to, "\nReplay %s on %s, %s, %u runs each, commit %s:\n", o.mode.c_str(), e.device.c_str(),
                     sizes_text(o).c_str(), o.repeat, e.commit.c_str());
        if (!when.at_us.empty())
            std::fprintf(to, "  tasks arrive over %s us, as recorded (profiling slows the host that was recorded)\n",
                         microseconds(when.at_us.back()).c_str());
        for (const auto& name : left_out)
            std::fprintf(to, "  %s takes no %s tasks and is left out\n", name.c_str(), o.mode.c_str());
        print_rows(to, rows_of(runs));
        print_phases(to, runs);
        print_troubles(to, runs);
        if (!all_verified(runs)) code = exit_run_failed;
        if (!timeline.carry_out(*work, engine_configuration(o, *device), *device, e, to, when)) code = exit_run_failed;
        if (!e.is_cuda) {
            std::fprintf(to, "\nThis was a correctness run on the host device: its times are NOT GPU times.\n");
            if (const auto committed = find_committed_result({o.kineto, o.et, o.mode, recorded.tasks.size()}))
                print_committed_result(to, *committed);
        }
        field(w, "mode", o.mode);
        if (!when.at_us.empty()) field(w, "last_arrival_us", when.at_us.back());
        write_solo(w, work->solo());
        w.Key("replay_notes");
        w.StartArray();
        for (const auto& note : work->notes()) put(w, note);
        w.EndArray();
        write_runs(w, runs, e);
    }
    write_environment(w, e, o);
    w.EndObject();
    if (target.wants_json()) target.write(text);
    return code;
}

} // namespace slipstream::cli
