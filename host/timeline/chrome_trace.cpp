#include "host/timeline/chrome_trace.hpp"
#include "host/clean_text.hpp"
#include "host/timeline/gz_file.hpp"
#include <algorithm>
#include <map>
#include <rapidjson/writer.h>
#include <string_view>

namespace slipstream::timeline {
namespace {

using json = rapidjson::Writer<gz_file>;

constexpr u32 host_track = 0;

u32 track_of(u32 worker) { return worker + 1; }

std::string name_of(const engines::program& p, const task_run& run)
{
    const engines::program_task& task = p.tasks()[run.task];
    return task.name.empty() ? p.image().names[task.type] : std::string(task.name);
}

void put(json& out, std::string_view text)
{
    const std::string clean = host::clean_text(text);
    out.String(clean.data(), static_cast<rapidjson::SizeType>(clean.size()));
}

std::int64_t ns(double us) { return static_cast<std::int64_t>(us * 1e3); }
double us(std::int64_t ns) { return static_cast<double>(ns) / 1e3; }

/// When the runs begin, by the clock of the file. Perfetto drops what lies before its zero.
std::int64_t begin_of(const std::vector<recorded_run>& runs)
{
    std::int64_t earliest = 0;
    for (const recorded_run& run : runs) {
        earliest = std::min(earliest, run.submit_begin_ns);
        for (const task_run& r : run.runs) earliest = std::min(earliest, r.waited ? std::min(r.wait_ns, r.start_ns) : r.start_ns);
        for (const auto* levels : {&run.occupied, &run.ring_fill})
            for (const level& l : *levels) earliest = std::min(earliest, l.time_ns);
    }
    return -earliest;
}

/// The events of one engine, whose run begins at begin_ns.
class engine_events {
public:
    engine_events(json& out, u32 process, const recorded_run& run, const engines::program& program, std::int64_t begin_ns)
        : out_(out), process_(process), run_(run), program_(program), begin_ns_(begin_ns)
    {
    }

    void write()
    {
        name_tracks();
        const std::int64_t submitted_ns = run_.submit_begin_ns + ns(run_.result.submit_us);
        range("submit", run_.submit_begin_ns, submitted_ns);
        range("wait for the last task", submitted_ns, ns(run_.result.makespan_us));
        for (const task_run& r : run_.runs) write_run(r);
        counter("window", "occupied", run_.occupied);
        counter("ring", "filled", run_.ring_fill);
        if (run_.lost_runs + run_.lost_samples != 0) note_losses();
    }

private:
    void text(const char* key, std::string_view value)
    {
        out_.Key(key);
        put(out_, value);
    }
    void number(const char* key, u64 value)
    {
        out_.Key(key);
        out_.Uint64(value);
    }

    void begin_event(const char* phase, std::string_view name, u32 track, std::int64_t at_ns)
    {
        out_.StartObject();
        text("ph", phase);
        text("name", name);
        number("pid", process_);
        number("tid", track);
        out_.Key("ts");
        out_.Double(us(begin_ns_ + at_ns));
    }
    void begin_arguments()
    {
        out_.Key("args");
        out_.StartObject();
    }
    void end_event_with_arguments()
    {
        out_.EndObject();
        out_.EndObject();
    }
    void duration(std::int64_t ns)
    {
        out_.Key("dur");
        out_.Double(us(ns));
    }

    void name_track(const char* what, u32 track, std::string_view name)
    {
        begin_event("M", what, track, 0);
        begin_arguments();
        text("name", name);
        end_event_with_arguments();
    }

    void name_tracks()
    {
        name_track("process_name", host_track, run_.engine);
        name_track("thread_name", host_track, "host: submitting thread");
        std::map<u32, u32> sm_of; // by worker
        for (const task_run& r : run_.runs) sm_of[r.worker] = r.sm;
        for (const auto& [worker, sm] : sm_of)
            name_track("thread_name", track_of(worker), "SM " + std::to_string(sm) + ", worker " + std::to_string(worker));
    }

    void range(const char* name, std::int64_t from_ns, std::int64_t to_ns)
    {
        begin_event("X", name, host_track, from_ns);
        text("cat", "host");
        duration(to_ns - from_ns);
        out_.EndObject();
    }

    void write_run(const task_run& r)
    {
        const std::string name = name_of(program_, r);
        begin_event("X", name, track_of(r.worker), r.start_ns);
        text("cat", "task");
        duration(r.end_ns - r.start_ns);
        begin_arguments();
        number("task", r.task);
        number("ring", r.handle.ring);
        number("position", r.handle.position);
        number("first_block", r.first_block);
        number("blocks", r.blocks);
        end_event_with_arguments();
        if (!r.waited) return;
        // The spans of one worker never overlap: it is their id.
        const std::string waits = "worker " + std::to_string(r.worker) + " waits";
        for (const bool begins : {true, false}) {
            begin_event(begins ? "b" : "e", waits, track_of(r.worker), begins ? r.wait_ns : r.start_ns);
            text("cat", "wait");
            number("id", r.worker + 1);
            begin_arguments();
            if (begins) {
                text("for the tasks before", name);
                number("task", r.task);
            }
            end_event_with_arguments();
        }
    }

    void counter(const char* name, const char* value, const std::vector<level>& levels)
    {
        for (const level& l : levels) {
            begin_event("C", name, host_track, l.time_ns);
            begin_arguments();
            number(value, l.value);
            end_event_with_arguments();
        }
    }

    void note_losses()
    {
        const std::string what = "not recorded, for want of room: " + std::to_string(run_.lost_runs) + " runs of blocks, "
            + std::to_string(run_.lost_samples) + " samples";
        begin_event("i", what, host_track, ns(run_.result.makespan_us));
        text("s", "p");
        begin_arguments();
        number("lost_runs", run_.lost_runs);
        number("lost_samples", run_.lost_samples);
        end_event_with_arguments();
    }

    json& out_;
    u32 process_;
    const recorded_run& run_;
    const engines::program& program_;
    std::int64_t begin_ns_;
};

void write_facts(json& out, const trace_facts& facts)
{
    for (const auto& [name, value] : facts) {
        out.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
        put(out, value);
    }
}

trace_facts facts_of(const recorded_run& run, std::int64_t begin_ns)
{
    return {{run.engine + ".workers", std::to_string(run.workers)},
            {run.engine + ".window", std::to_string(run.window)},
            {run.engine + ".ring", std::to_string(run.ring)},
            {run.engine + ".run_begins_us", std::to_string(us(begin_ns))},
            {run.engine + ".makespan_us", std::to_string(run.result.makespan_us)},
            {run.engine + ".clock_error_us", std::to_string(static_cast<double>(run.clock.error_ns) / 1e3)},
            {run.engine + ".lost_runs", std::to_string(run.lost_runs)},
            {run.engine + ".lost_samples", std::to_string(run.lost_samples)}};
}

} // namespace

void write_chrome_trace(const std::string& path, const std::vector<recorded_run>& runs, const engines::program& program,
                        const trace_facts& facts)
{
    const std::int64_t begin_ns = begin_of(runs);
    gz_file file(path);
    json out(file);
    out.SetMaxDecimalPlaces(3); // nanoseconds
    out.StartObject();
    out.Key("displayTimeUnit");
    out.String("ns");
    out.Key("otherData");
    out.StartObject();
    write_facts(out, facts);
    for (const recorded_run& run : runs) write_facts(out, facts_of(run, begin_ns));
    out.EndObject();
    out.Key("traceEvents");
    out.StartArray();
    u32 process = 0;
    for (const recorded_run& run : runs) engine_events(out, ++process, run, program, begin_ns).write();
    out.EndArray();
    out.EndObject();
    file.close();
}

} // namespace slipstream::timeline
