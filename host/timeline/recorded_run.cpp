#include "host/timeline/recorded_run.hpp"
#include <algorithm>
#include <map>
#include <slipstream/runtime.hpp>

namespace slipstream::timeline {
namespace {

constexpr u32 clock_tasks = 32;
constexpr u32 position_bits = 27; // of a flight entry

using task_key = std::pair<u32, u64>; // ring, low bits of the position

task_key key_of(const task_handle& h)
{
    return {h.ring, h.position & ((u64{1} << position_bits) - 1)};
}

u64 host_now_ns()
{
    return static_cast<u64>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// Tasks that do nothing, one at a time. The runtime is paused before and after.
clock_alignment measure_clocks(runtime_base& runtime, u32 marker_type)
{
    std::map<task_key, clock_bracket> seen;
    runtime.resume();
    for (u32 i = 0; i < clock_tasks; ++i) {
        submit_options how;
        how.order = ordering::no_access;
        const u64 before = host_now_ns();
        const task_handle handle = runtime.submit_bytes(marker_type, nullptr, how);
        if (!runtime.wait(handle).ok()) throw device_error("a task that does nothing failed while the clocks were compared");
        seen[key_of(handle)] = {before, 0, 0, host_now_ns()};
    }
    runtime.pause();
    std::vector<clock_bracket> brackets;
    for (const flight_entry& e : runtime.flight_log())
        if (const auto it = seen.find(key_of(e.task)); it != seen.end())
            brackets.push_back({it->second.submitted_ns, e.start_ns, e.end_ns, it->second.seen_ns});
    return align_clocks(brackets);
}

/// So many slots of a ring were ever written, or taken.
struct ring_change {
    std::int64_t time_ns;
    u32 ring;
    u64 slots;
    bool is_written;
};

/// Written minus taken, of all rings together. Slots taken before they were written, by the error of the clocks, count as none;
/// more than a ring has, as all.
std::vector<level> fill_of(std::vector<ring_change> changes, u64 ring_slots)
{
    struct ends {
        u64 written = 0, taken = 0;
        u64 fill(u64 most) const { return written > taken ? std::min(written - taken, most) : 0; }
    };
    std::stable_sort(changes.begin(), changes.end(),
                     [](const ring_change& a, const ring_change& b) { return a.time_ns < b.time_ns; });
    std::map<u32, ends> rings;
    std::vector<level> out;
    u64 sum = 0;
    for (const ring_change& c : changes) {
        ends& r = rings[c.ring];
        sum -= r.fill(ring_slots);
        (c.is_written ? r.written : r.taken) = c.slots;
        sum += r.fill(ring_slots);
        out.push_back({c.time_ns, sum});
    }
    return out;
}

void drop_before(std::int64_t begin_ns, std::vector<level>& levels)
{
    std::erase_if(levels, [&](const level& l) { return l.time_ns < begin_ns; });
}

} // namespace

recorded_run record_run(const std::string& name, const config& configuration, const engines::device_memory& device,
                        const engines::program& program, u32 entries, const engines::arrivals& when)
{
    config c = configuration;
    c.flight_log = std::max(entries, history_entries_min);
    const auto engine = engines::make_engine(name, c, device, program.image());
    engine->set_arrivals(when);
    engine->prepare(program);
    runtime_base& runtime = *engine->runtime();

    recorded_run out;
    out.engine = name;
    out.workers = runtime.workers();
    out.window = runtime.configuration().window;
    out.ring = runtime.configuration().ring_slots;
    out.clock = measure_clocks(runtime, program.image().types - 1);
    out.result = engine->run(program);
    if (when.mode == engines::arrival_mode::preloaded) // the clock of the run was started behind submission
        out.submit_begin_ns = -static_cast<std::int64_t>(out.result.submit_us * 1e3);

    const auto begin = static_cast<std::int64_t>(out.result.begin_ns);
    const auto since_begin = [&](u64 device_ns) { return out.clock.host_ns(device_ns) - begin; };
    std::map<task_key, u32> numbers;
    const std::span<const task_handle> handles = engine->handles();
    for (std::size_t i = 0; i < handles.size(); ++i) numbers[key_of(handles[i])] = static_cast<u32>(i);
    for (const flight_entry& e : runtime.flight_log()) {
        const auto number = numbers.find(key_of(e.task));
        if (number == numbers.end()) continue; // a marker
        const bool waited = e.wait_ns != 0;
        out.runs.push_back({number->second, handles[number->second], e.worker, e.sm, e.first_block, e.blocks, waited,
                            waited ? since_begin(e.wait_ns) : 0, since_begin(e.start_ns), since_begin(e.end_ns)});
    }

    const flight_samples samples = runtime.flight_samples();
    for (const auto& s : samples.window) out.occupied.push_back({since_begin(s.time_ns), s.occupied});
    std::vector<ring_change> changes; // at one time written before taken
    for (const auto& s : samples.written) changes.push_back({static_cast<std::int64_t>(s.time_ns) - begin, s.ring, s.slots, true});
    for (const auto& s : samples.taken) changes.push_back({since_begin(s.time_ns), s.ring, s.slots, false});
    out.ring_fill = fill_of(std::move(changes), out.ring);
    drop_before(0, out.occupied);
    drop_before(out.submit_begin_ns, out.ring_fill);
    out.lost_runs = samples.lost_runs;
    out.lost_samples = samples.lost_samples + samples.lost_writes;
    return out;
}

} // namespace slipstream::timeline
