// bus: how many bytes cross the bus, both ways, for one more task, by the protocol's own count.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"
#include "tools/slipstream/bench/report.hpp"

namespace slipstream::bench {
namespace {

// 2 N. The ring is full all the time: whatever is polled in vain then is the engine's doing, not the submitter's.
constexpr u64 tasks_max = 1'000'000;
constexpr u64 tasks_usual_cuda = 50'000, tasks_usual_host = 2'000;

} // namespace

figure bus_figure(const bench_setup& s, declared what)
{
    config c = s.configuration;
    c.memory_bytes += independent_tasks_bytes(tasks_max);
    bench_runtime runtime(c);
    const u64 usual = runtime.on_cuda() ? tasks_usual_cuda : tasks_usual_host;
    const u64 tasks = std::min(s.how_long.tasks != 0 ? s.how_long.tasks : usual, tasks_max / 2);
    const auto stream = make_independent_tasks(runtime, s.lose_a_task, what, 2 * tasks);

    struct direction {
        const char* name;
        u64 (*bytes)(const bus_traffic&);
        std::vector<double> each;
    };
    direction all{"both ways", [](const bus_traffic& t) { return t.to_gpu() + t.to_host(); }, {}};
    direction parts[] = {{"ring_payload", [](const bus_traffic& t) { return t.ring_payload; }, {}},
                         {"ring_polls", [](const bus_traffic& t) { return t.ring_polls; }, {}},
                         {"handles_and_commands", [](const bus_traffic& t) { return t.handles + t.commands; }, {}},
                         {"recorder", [](const bus_traffic& t) { return t.recorder; }, {}},
                         {"completions", [](const bus_traffic& t) { return t.completions; }, {}},
                         {"progress_and_heartbeats", [](const bus_traffic& t) { return t.ring_progress + t.heartbeats; }, {}}};
    (void)stream->run_counted(tasks); // handles cross once
    for (u32 i = 0; i < s.how_long.repeats; ++i) {
        const bus_traffic once = stream->run_counted(tasks), twice = stream->run_counted(2 * tasks);
        const auto slope = [&](direction& d) {
            d.each.push_back((static_cast<double>(d.bytes(twice)) - static_cast<double>(d.bytes(once)))
                             / static_cast<double>(tasks));
        };
        slope(all);
        for (direction& d : parts) slope(d);
    }

    figure f{std::string("bus, ") + (what == declared::four_ranges ? "two slots: 4 raw ranges" : "one slot: handles, 2 in 1 out"),
             "B", spread_of(all.each)};
    for (const direction& d : parts) {
        f.further.emplace_back(d.name, spread_of(d.each).median);
        f.note += (f.note.empty() ? "of it " : ", ") + std::string(d.name) + " " + number_text(f.further.back().second);
    }
    f.tasks = tasks;
    f.repeats = s.how_long.repeats;
    f.verified = stream->verified();
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    return f;
}

std::vector<figure> bench_bus(const bench_setup& s)
{
    return {bus_figure(s, declared::handles), bus_figure(s, declared::four_ranges)};
}

} // namespace slipstream::bench
