// slipstream compare: several subjects and sweeps in one command, on every engine, with bounds, costs and plots.
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/committed_result.hpp"
#include "tools/slipstream/compare/measurement_report.hpp"
#include "tools/slipstream/compare/plots.hpp"
#include "tools/slipstream/compare/suite.hpp"
#include "tools/slipstream/compare/sweep_run.hpp"
#include "tools/slipstream/device_choice.hpp"
#include <algorithm>
#include <charconv>
#include <utility>

namespace slipstream::cli {
namespace {

/// Everything the command line names, looked up before anything runs.
struct plan {
    std::vector<subject> subjects;
    std::vector<subject> swept;
    std::vector<sweep_axis> axes;
    std::vector<u64> seeds;
};

std::vector<u64> seeds_of(const options& o)
{
    if (o.seeds.empty()) return {o.seed};
    std::vector<u64> out;
    for (std::size_t from = 0; from <= o.seeds.size();) {
        const std::size_t comma = std::min(o.seeds.find(',', from), o.seeds.size());
        u64 seed = 0;
        const auto [end, problem] = std::from_chars(o.seeds.data() + from, o.seeds.data() + comma, seed);
        if (problem != std::errc{} || end != o.seeds.data() + comma)
            throw usage_error("--seeds " + o.seeds + ": not a list of whole numbers; write them as in --seeds 1,2,3");
        if (std::find(out.begin(), out.end(), seed) != out.end())
            throw usage_error("--seeds " + o.seeds + ": " + std::to_string(seed) + " is given twice; leave one out");
        out.push_back(seed);
        from = comma + 1;
    }
    return out;
}

plan plan_of(const options& o)
{
    plan out;
    out.seeds = seeds_of(o);
    for (const std::string& text : o.sweeps)
        for (const sweep_axis& axis : parse_sweep(text)) out.axes.push_back(axis);
    if (o.tasks != 0 && out.axes.empty())
        throw usage_error("compare: --tasks is of a sweep's points, and there is no --sweep; write NAME:tasks=N for a workload");
    if (o.suite)
        for (const suite_entry& entry : results_suite()) {
            out.subjects.push_back(parse_subject(entry.text));
            out.subjects.back().title = entry.title;
        }
    // With --sweep, the subjects named are what is swept.
    for (const std::string& text : o.subjects) {
        const subject s = parse_subject(text);
        if (!out.axes.empty() && s.workload == nullptr)
            throw usage_error("compare " + text + ": a trace has nothing to sweep; name a workload, or leave --sweep away");
        (out.axes.empty() ? out.subjects : out.swept).push_back(s);
    }
    if (!out.axes.empty() && out.swept.empty()) out.swept.push_back(layered_dag());
    for (const subject& s : out.swept)
        for (const sweep_axis& axis : out.axes)
            for (const double value : axis.values) (void)point_of(s, axis, value, o.window, o.tasks);
    if (out.subjects.empty() && out.swept.empty())
        throw usage_error("compare: nothing to compare; name workloads or traces, or use demo, --suite or --sweep");
    return out;
}

/// A trace is the same at every seed: it runs once.
std::vector<u64> seeds_for(const subject& s, const std::vector<u64>& seeds)
{
    return s.workload ? seeds : std::vector<u64>{seeds.front()};
}

std::string seeded(const std::string& title, u64 seed, std::size_t seeds)
{
    return seeds > 1 ? title + ", seed " + std::to_string(seed) : title;
}

/// A comparison under way: where it reports to, and what it has found so far.
struct session {
    const options& o;
    const plan& todo;
    std::FILE* to;
    json_writer& w;
    environment e{};
    std::vector<std::string> engines{};
    std::exception_ptr ended_by{}; ///< before all was measured
    bool good = true;
    bool headed = false;
};

/// Above the first result only: parameters that are refused while a workload is made leave nothing but their line.
void print_heading(session& s)
{
    if (std::exchange(s.headed, true)) return;
    std::fprintf(s.to, "Back-to-back on %s, %s, %u runs each, commit %s\n", s.e.device.c_str(), sizes_text(s.o).c_str(), s.o.repeat,
                 s.e.commit.c_str());
}

/// Subject after subject; what ends it is thrown when that which was measured before has been reported.
void compare_subject(session& s, subject what, const std::string& place)
{
    const std::vector<u64> seeds = seeds_for(what, s.todo.seeds);
    const std::string title = what.title;
    for (const u64 seed : seeds) {
        what.title = seeded(title, seed, seeds.size());
        const measurement m = measure(what, seed, s.engines, s.o, place + what.title);
        s.good &= all_verified(m);
        print_heading(s);
        print_measurement(s.to, m, s.e);
        if (!s.e.is_cuda && what.workload == nullptr)
            if (const auto committed = find_committed_result({what.kineto, what.et, "back-to-back", m.tasks}))
                print_committed_result(s.to, *committed);
        std::fflush(s.to); // the next one may take a while
        s.w.StartObject();
        write_measurement(s.w, m, s.e);
        write_figures(s.w, m);
        s.w.EndObject();
        if (m.ended_by) std::rethrow_exception(m.ended_by);
    }
}

void sweep_subject(session& s, subject what, const sweep_axis& axis)
{
    const std::string title = what.title;
    for (const u64 seed : s.todo.seeds) {
        what.title = seeded(title, seed, s.todo.seeds.size());
        const sweep_run run = run_sweep(what, axis, seed, s.engines, s.o, what.title);
        s.good &= all_verified(run);
        print_heading(s);
        print_sweep(s.to, run, s.e);
        std::fflush(s.to);
        s.w.StartObject();
        write_sweep(s.w, run, s.e);
        s.w.EndObject();
        if (run.ended_by) std::rethrow_exception(run.ended_by);
    }
}

/// Measures with `what`, unless something has ended the comparison. Nothing is kept of one that ends before its first result.
template <class What>
void until_ended(session& s, const What& what)
{
    if (s.ended_by) return;
    try {
        what();
    } catch (const error&) {
        if (!s.headed) throw;
        s.ended_by = std::current_exception();
    }
}

std::string text_of(const std::exception_ptr& problem)
{
    try {
        std::rethrow_exception(problem);
    } catch (const std::exception& e) {
        return e.what();
    }
}

} // namespace

int run_compare(const options& o)
{
    const report_target target(o);
    const plan todo = plan_of(o);
    for (const subject& each : todo.subjects) refuse_to_overwrite("--json", o.json, {each.kineto, each.et});
    rapidjson::StringBuffer text;
    json_writer w(text);
    session s{o, todo, target.tables(), w};
    {
        const auto device = open_named_device(o.device);
        s.engines = chosen_engines(o.engine, device->is_cuda());
        s.e = describe_environment(o, device->name(), device->is_cuda());
    }
    if (!o.plots.empty()) make_plots_folder(o.plots);

    w.StartObject();
    field(w, "command", "compare");
    w.Key("subjects");
    w.StartArray();
    for (std::size_t i = 0; i < todo.subjects.size(); ++i)
        until_ended(s, [&] {
            compare_subject(s, todo.subjects[i], std::to_string(i + 1) + " of " + std::to_string(todo.subjects.size()) + ": ");
        });
    w.EndArray();
    w.Key("sweeps");
    w.StartArray();
    for (const subject& what : todo.swept)
        for (const sweep_axis& axis : todo.axes) until_ended(s, [&] { sweep_subject(s, what, axis); });
    w.EndArray();
    if (s.ended_by) field(w, "ended_by", text_of(s.ended_by));
    write_environment(w, s.e, o);
    w.EndObject();
    if (target.wants_json()) target.write(text);
    if (!o.plots.empty()) {
        options beside = o;
        beside.json = o.plots + "/compare.json";
        report_target(beside).write(text);
        if (!s.ended_by && !draw_plots(beside.json, o.plots)) return exit_run_failed;
    }
    if (s.ended_by) std::rethrow_exception(s.ended_by);
    return s.good ? exit_good : exit_run_failed;
}

} // namespace slipstream::cli
