// slipstream soak: random streams of tasks against the sequential oracle, for as long as wanted.
#include "host/backend.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/json_report.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include "tools/slipstream/soak/soak.hpp"
#include "tools/slipstream/text_table.hpp"
#include <algorithm>
#include <map>

namespace slipstream::cli {
namespace {

/// A part needs two SMs; on the host device each has threads of its own, and these are enough.
u32 parts_max_of(bool cuda, int ordinal)
{
    return cuda ? std::clamp(host::cuda_multiprocessors(ordinal) / 2, 1u, soak::drawn_parts_max) : 3;
}

soak::soak_request request_of(const options& o, const std::string& device, bool cuda, u32 parts_max)
{
    soak::soak_request r;
    r.device = device;
    r.cuda = cuda;
    r.parts_max = parts_max;
    r.seed = o.seed;
    r.tasks = o.soak_tasks;
    r.seconds = o.soak_seconds;
    if (r.tasks == 0 && r.seconds == 0) r.seconds = 20;
    r.stream_tasks = o.stream_tasks;
    if (r.stream_tasks == 1) throw usage_error("--stream-tasks 1: a stream has 2 tasks or more, since one alone orders nothing");
    r.style = o.style;
    if (o.start_given) r.start = o.start_position;
    r.hide = soak::hazard_of(o.break_kind);
    if (!o.soak_case.empty()) {
        const std::pair<bool, const char*> said_by_case[] = {
            {!o.style.empty(), "--style: write style=NAME into the case"},
            {o.stream_tasks != 0, "--stream-tasks: write tasks=N into the case"},
            {o.start_given, "--start-position: write start=N into the case"},
            {!o.break_kind.empty(), "--break: write hide=1 (RAW), 2 (WAR) or 3 (WAW) into the case"}};
        for (const auto& [given, what] : said_by_case)
            if (given) throw usage_error(std::string("--case says all of a case, so that it takes no ") + what);
        r.only = soak::soak_case::read(o.soak_case);
    }
    if (!r.style.empty()) (void)soak::soak_case::read("style=" + r.style);
    return r;
}

std::string rate(u64 tasks, double seconds)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", seconds > 0 ? static_cast<double>(tasks) / seconds / 1e6 : 0);
    return text;
}

struct total {
    u64 cases = 0, first_launches = 0, with_parts = 0, streams = 0, tasks = 0, launches = 0, pauses = 0, broadcasts = 0;
    double seconds = 0;

    void add(const soak::case_record& r)
    {
        ++cases;
        with_parts += r.drawn.parts > 1;
        streams += r.streams;
        tasks += r.tasks;
        launches += r.launches;
        first_launches += r.drawn.parts; // of each part one, which is no relaunch
        pauses += r.pauses;
        broadcasts += r.broadcasts;
        seconds += r.seconds;
    }
};

std::map<std::string, total> totals_of(const soak::soak_result& result)
{
    std::map<std::string, total> out;
    for (const auto& r : result.cases) {
        out[soak::style_of(r.drawn.style).name].add(r);
        out["all"].add(r);
    }
    return out;
}

void write_totals(json_writer& w, const total& t)
{
    w.StartObject();
    field(w, "cases", t.cases);
    field(w, "cases_with_parts", t.with_parts);
    field(w, "streams", t.streams);
    field(w, "tasks", t.tasks);
    field(w, "launches", t.launches);
    field(w, "pauses", t.pauses);
    field(w, "broadcasts", t.broadcasts);
    field(w, "seconds", t.seconds);
    w.EndObject();
}

void write(json_writer& w, const options& o, const environment& e, const soak::soak_request& request,
           const soak::soak_result& result)
{
    w.StartObject();
    field(w, "command", "soak");
    field(w, "seed", request.seed);
    field(w, "verified", !result.failure.has_value());
    field(w, "mismatches", static_cast<u32>(result.failure ? 1 : 0));
    field(w, "wall_seconds", result.seconds);
    w.Key("totals");
    w.StartObject();
    for (const auto& [name, t] : totals_of(result)) {
        w.Key(name.c_str());
        write_totals(w, t);
    }
    w.EndObject();
    w.Key("cases");
    w.StartArray();
    for (const auto& r : result.cases) {
        w.StartObject();
        field(w, "number", r.number);
        field(w, "case", r.drawn.text());
        field(w, "streams", r.streams);
        field(w, "tasks", r.tasks);
        field(w, "launches", r.launches);
        field(w, "pauses", r.pauses);
        field(w, "broadcasts", r.broadcasts);
        field(w, "seconds", r.seconds);
        w.EndObject();
    }
    w.EndArray();
    if (result.failure) {
        const soak::soak_failure& f = *result.failure;
        w.Key("failure");
        w.StartObject();
        field(w, "verdict", f.verdict);
        field(w, "case", f.drawn.text());
        field(w, "failed_again", f.again);
        if (!f.ended.empty()) field(w, "ended_by", f.ended);
        if (f.again) {
            field(w, "smallest_case", f.shrunk.smallest.text());
            field(w, "smallest_verdict", f.shrunk.verdict);
            field(w, "tasks_left", f.shrunk.smallest.keep);
            field(w, "trials", f.shrunk.trials);
        }
        w.EndObject();
    }
    write_environment(w, e, o);
    w.EndObject();
}

void print_failure(std::FILE* to, const soak::soak_failure& f, const std::string& device)
{
    std::fprintf(to, "\nMISMATCH: %s\n  again: slipstream soak --device %s --case %s\n", f.verdict.c_str(), device.c_str(),
                 f.drawn.text().c_str());
    if (!f.ended.empty()) std::fprintf(to, "  %s ended with: %s\n", f.again ? "Making it small" : "Repeating it", f.ended.c_str());
    if (!f.again) {
        if (!f.ended.empty()) return;
        std::fprintf(to, "  It did not fail again on a fresh engine: repeat the whole command.\n");
        return;
    }
    std::fprintf(to, "  smallest case found, %u task(s), after %u trial(s): %s\n  again: slipstream soak --device %s --case %s\n",
                 f.shrunk.smallest.keep, f.shrunk.trials, f.shrunk.verdict.c_str(), device.c_str(),
                 f.shrunk.smallest.text().c_str());
}

} // namespace

int run_soak(const options& o)
{
    const report_target target(o);
    std::string name, device;
    bool cuda = false;
    u32 parts_max = 1;
    {
        const auto opened = open_named_device(o.device);
        name = opened->name();
        cuda = opened->is_cuda();
        parts_max = parts_max_of(cuda, opened->ordinal());
        device = cuda ? "cuda:" + std::to_string(opened->ordinal()) : "host";
    }
    const soak::soak_request request = request_of(o, device, cuda, parts_max);
    const environment e = describe_environment(o, name, cuda);
    std::FILE* const to = target.tables();
    std::fprintf(to, "soak on %s, seed %llu, commit %s:\n", e.device.c_str(), static_cast<unsigned long long>(request.seed),
                 e.commit.c_str());
    u64 done = 0;
    const auto start = std::chrono::steady_clock::now();
    const soak::soak_result result = [&] {
        progress_bar bar("soaking");
        u64 before = 0;
        return soak::run_soak(request, [&](const soak::case_record& r, bool over) {
            if (!over) {
                bar.at(request.tasks ? static_cast<double>(done + r.tasks)
                                     : std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
                       request.tasks ? static_cast<double>(request.tasks) : request.seconds);
                return;
            }
            done = before += r.tasks;
            std::fprintf(to, "case %4u: %10llu tasks, %s M/s, %5llu launches   %s\n", r.number,
                         static_cast<unsigned long long>(r.tasks), rate(r.tasks, r.seconds).c_str(),
                         static_cast<unsigned long long>(r.launches), r.drawn.text().c_str());
            std::fflush(to);
        });
    }();
    text_table table({"style", "cases", "with parts", "streams", "tasks", "M tasks/s", "launches", "pauses", "broadcasts",
                      "mismatches"});
    for (const auto& [style, t] : totals_of(result)) {
        const bool mine = result.failure && (style == "all" || style == soak::style_of(result.failure->drawn.style).name);
        table.add({style, std::to_string(t.cases), std::to_string(t.with_parts), std::to_string(t.streams), std::to_string(t.tasks),
                   rate(t.tasks, t.seconds), std::to_string(t.launches), std::to_string(t.pauses), std::to_string(t.broadcasts),
                   mine ? "1" : "0"});
    }
    std::fprintf(to, "\n");
    table.print(to);
    const total all = totals_of(result)["all"];
    std::fprintf(to, "%llu oracle-checked tasks in %.1f s, %llu park/relaunch cycles, %s\n",
                 static_cast<unsigned long long>(all.tasks), result.seconds,
                 static_cast<unsigned long long>(all.launches - std::min(all.launches, all.first_launches)),
                 result.failure ? "1 mismatch" : "0 mismatches");
    if (result.failure) print_failure(to, *result.failure, device);
    if (!cuda) std::fprintf(to, "This was a correctness run on the host device: its times are NOT GPU times.\n");
    if (target.wants_json()) {
        rapidjson::StringBuffer text;
        json_writer w(text);
        write(w, o, e, request, result);
        target.write(text);
    }
    return result.failure ? exit_run_failed : exit_good;
}

} // namespace slipstream::cli
