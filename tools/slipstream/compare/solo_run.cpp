#include "tools/slipstream/compare/solo_run.hpp"
#include "tools/slipstream/spread.hpp"
#include <algorithm>
#include <map>
#include <slipstream/runtime.hpp>
#include <tuple>

namespace slipstream::cli {
namespace {

constexpr u32 passes = 3;
constexpr u32 log_entries = 8192; // of each worker: 256 KiB of pinned memory
constexpr double short_us = 1;    // the device's clock goes in steps of 32 ns (H200): shorter tasks are judged by their class

/// Lines that one task leaves in the log of one worker at most: a line is a run of blocks that the worker drew at once.
u32 log_lines(u32 blocks)
{
    return std::min(blocks, 64u);
}

/// The longest stretch of tasks from `first` on that a log surely holds; at least one.
u32 stretch_end(const engines::program& p, u32 first)
{
    u32 lines = 1; // the engine's marker
    u32 end = first;
    const auto& tasks = p.tasks();
    while (end < tasks.size() && (end == first || lines + log_lines(tasks[end].blocks) <= log_entries))
        lines += log_lines(tasks[end++].blocks);
    return end;
}

/// Tasks [first, end) with the same bodies and arguments, each ordered against everything.
engines::program one_by_one(const engines::program& p, u32 first, u32 end)
{
    engines::program out(p.image());
    for (const data_handle& h : p.registrations()) {
        const auto* const data = reinterpret_cast<const void*>(h.address);
        if (h.rows)
            out.register_tile(data, h.bytes, h.rows, h.pitch);
        else
            out.register_range(data, h.bytes);
    }
    for (u32 i = first; i < end; ++i) {
        const engines::program_task& t = p.tasks()[i];
        out.add(t.type, p.arguments(t), t.blocks, {}, {}, ordering::whole_memory, t.name);
    }
    return out;
}

/// What the passes saw of one task.
struct samples {
    std::vector<double> span_us, work_us;

    void add(const samples& other)
    {
        span_us.insert(span_us.end(), other.span_us.begin(), other.span_us.end());
        work_us.insert(work_us.end(), other.work_us.begin(), other.work_us.end());
    }
    task_time time() const { return {spread_of(span_us).median, spread_of(work_us).median}; }
};

/// One task's lines of the log, of one pass.
struct log_span {
    u64 start_ns = ~u64{0}, end_ns = 0, work_ns = 0, blocks = 0;
};

/// Adds what the log says of tasks [first, end), which were the runtime's submissions 1, 2, ... (0 is the engine's marker).
void read_log(runtime_base& runtime, const engines::program& p, u32 first, u32 end, std::vector<samples>& all)
{
    std::vector<log_span> spans(end - first);
    for (const flight_entry& e : runtime.flight_log()) {
        if (e.task.position == 0 || e.task.position > spans.size()) continue;
        log_span& s = spans[e.task.position - 1];
        s.start_ns = std::min(s.start_ns, e.start_ns);
        s.end_ns = std::max(s.end_ns, e.end_ns);
        s.work_ns += e.end_ns - e.start_ns;
        s.blocks += e.blocks;
    }
    for (u32 i = 0; i < spans.size(); ++i) {
        const log_span& s = spans[i];
        if (s.blocks != p.tasks()[first + i].blocks) continue; // a log ran over
        all[first + i].span_us.push_back(static_cast<double>(s.end_ns - s.start_ns) / 1e3);
        all[first + i].work_us.push_back(static_cast<double>(s.work_ns) / 1e3);
    }
}

/// Medians: a task's own, or for short and unseen ones those of all short, or of all, tasks of the same kind.
std::vector<task_time> times_of(const engines::program& p, const std::vector<samples>& all)
{
    using kind = std::tuple<u32, u32, std::string_view>;
    struct kind_samples {
        samples of_short, of_all;
    };
    std::map<kind, kind_samples> kinds;
    std::vector<task_time> out(all.size());
    const auto kind_of = [&](std::size_t i) {
        const engines::program_task& t = p.tasks()[i];
        return kind{t.type, t.blocks, t.name};
    };
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (all[i].span_us.empty()) continue;
        out[i] = all[i].time();
        kind_samples& k = kinds[kind_of(i)];
        k.of_all.add(all[i]);
        if (out[i].span_us < short_us) k.of_short.add(all[i]);
    }
    std::map<kind, task_time> short_time, any_time;
    for (const auto& [name, k] : kinds) {
        any_time[name] = k.of_all.time();
        if (!k.of_short.span_us.empty()) short_time[name] = k.of_short.time();
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].span_us.empty() && out[i].span_us >= short_us) continue;
        const auto& medians = all[i].span_us.empty() ? any_time : short_time;
        const auto found = medians.find(kind_of(i));
        if (found == medians.end()) throw error("the flight log holds no complete run of task " + std::to_string(i));
        out[i] = found->second;
    }
    return out;
}

} // namespace

solo_times time_tasks_alone(workloads::workload& work, const config& configuration, const engines::device_memory& device)
{
    const engines::program& p = work.program();
    const u32 tasks = static_cast<u32>(p.tasks().size());
    config c = configuration;
    c.flight_log = log_entries;
    c.parts = 1; // a task may have all workers: bounds are the machine's
    const auto engine = engines::make_engine("slipstream", c, device, p.image());
    solo_times out;
    std::vector<samples> all(tasks);
    for (u32 pass = 0; pass < passes; ++pass) {
        work.reset();
        // A log is never emptied: each stretch gets a runtime, and with it a log, of its own.
        for (u32 first = 0; first < tasks;) {
            const u32 end = stretch_end(p, first);
            const engines::program stretch = one_by_one(p, first, end);
            engine->prepare(stretch);
            try {
                engine->run(stretch);
            } catch (const device_error&) {
                throw;
            } catch (const error& e) {
                throw wrong_solo_run(e.what());
            }
            read_log(*engine->runtime(), p, first, end, all);
            out.workers = engine->runtime()->workers();
            first = end;
        }
        if (const workloads::verdict v = work.verify(); !v.verified)
            throw wrong_solo_run("run one by one, the tasks gave a wrong result: " + v.detail);
    }
    out.tasks = times_of(p, all);
    return out;
}

} // namespace slipstream::cli
