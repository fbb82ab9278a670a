// chain, blocks and fan: what one more dependent task costs.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/fan.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include <map>

namespace slipstream::bench {
namespace {

using namespace floor_names;

// Verification of a chain is a fold on the host: more tasks than this would take longer to check than to run.
constexpr u64 tasks_max = 4'000'000;

const char* text_of(named how)
{
    return how == named::by_handle ? ", by handle" : ", by range";
}

figure measured(const bench_setup& s, std::string name, task_stream& stream, const std::vector<std::string>& floors,
                const std::vector<std::string>& alternatives)
{
    const timed_run run = [&](u64 count) { return stream.run(count); };
    const u64 tasks = slope_tasks(run, s.how_long, tasks_max);
    figure f = cost_figure(std::move(name), slopes(run, tasks, s.how_long.repeats), tasks);
    f.verified = stream.verified();
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    f.floors = s.floors.references(floors, f.unit);
    f.alternatives = s.floors.references(alternatives, f.unit);
    return f;
}

} // namespace

figure chain_figure(const bench_setup& s, u32 bytes, named how)
{
    // Which worker runs the successor is the scheduler's choice: both hops are floors.
    const std::vector<std::string> floors{same_cta_hop(bytes), release_hop(bytes)};
    std::vector<std::string> alternatives{graph_chain(bytes), graph_chain(bytes, edge_kind::early)};
    for (const edge_kind edges : {edge_kind::full, edge_kind::early})
        if (bytes != 0) alternatives.push_back(stream_chain(bytes, edges));
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    chain stream(runtime, s.lose_a_task, bytes, 1, how);
    figure f = measured(s, "chain, " + size_text(bytes) + (bytes == 0 ? " (no-op bodies)" : "") + text_of(how), stream, floors,
                        alternatives);
    if (bytes == 0 && f.note.empty()) f.note = "bodies write nothing: flatters every fence, and verifies nothing";
    return f;
}

// Without chaining a task that is mailed before the one it waits for is done goes to an idle worker, so to another one:
// the flight log of a run shows how often. And without the bypass, by which the first ones, which come alone, go to worker 0.
figure moved_chain_figure(const bench_setup& given)
{
    constexpr u32 looked_at = 4000;
    bench_setup s = given;
    s.configuration.chaining = false;
    s.configuration.bypass = false;
    config c = s.configuration;
    c.flight_log = looked_at;
    c.memory_bytes += 1u << 20;
    u64 hops = 0, stayed = 0;
    bool verified = false;
    {
        bench_runtime runtime(c);
        chain stream(runtime, false, 4096, 1, named::by_handle);
        (void)stream.run(looked_at);
        verified = stream.verified();
        runtime.pause();
        std::map<u64, u32> sm_of; // by the number of the task
        for (const flight_entry& e : runtime.flight_log())
            if (e.type == bench_list::index_of<step_task>()) sm_of[e.task.position] = e.sm;
        for (auto at = sm_of.begin(); at != sm_of.end(); ++at) {
            const auto next = sm_of.find(at->first + 1);
            if (next == sm_of.end()) continue;
            ++hops;
            stayed += next->second == at->second;
        }
    }
    figure f = chain_figure(s, 4096, named::by_handle);
    f.name += ", successor on another SM";
    if (!verified) {
        f.verified = false;
        f.note = "the memory differs from a sequential run's";
    }
    f.further = {{"hops_looked_at", static_cast<double>(hops)}, {"hops_that_stayed_on_their_sm", static_cast<double>(stayed)}};
    return f;
}

std::vector<figure> bench_chain(const bench_setup& s)
{
    std::vector<figure> out{chain_figure(s, 4096, named::by_handle)};
    if (s.configuration.staging)
        out.push_back(moved_chain_figure(s)); // else it goes to the worker that has just become idle, the same one
    for (const u32 bytes : {4u, 0u}) out.push_back(chain_figure(s, bytes, named::by_handle));
    out.push_back(chain_figure(s, 4096, named::by_range));
    return out;
}

figure blocks_figure(const bench_setup& s, u32 blocks, named how)
{
    // The barrier spans all SMs: a floor for tasks about as wide, too strict for wider ones, too lax for single blocks.
    const std::vector<std::string> floors{blocks == 1 ? release_hop(4096) : grid_barrier(4096)};
    std::vector<std::string> alternatives;
    for (const edge_kind edges : {edge_kind::full, edge_kind::early})
        alternatives.push_back(blocks == 1 ? graph_chain(4096, edges) : graph_wide_chain(blocks, edges));
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    chain stream(runtime, s.lose_a_task, 4096, blocks, how);
    return measured(s, "chain of tasks of " + std::to_string(blocks) + " blocks, 4 KB each" + text_of(how), stream, floors,
                    alternatives);
}

figure wide_chain_figure(const bench_setup& s)
{
    const u32 workers = bench_runtime(s.configuration).workers();
    return blocks_figure(s, workers, named::by_handle);
}

std::vector<figure> bench_blocks(const bench_setup& s)
{
    std::vector<figure> out;
    for (const u32 blocks : {1u, 2u, 16u, 50u, 131u, 500u}) out.push_back(blocks_figure(s, blocks, named::by_handle));
    for (const u32 blocks : {2u, 131u}) out.push_back(blocks_figure(s, blocks, named::by_range));
    return out;
}

figure fan_figure(const bench_setup& s, u32 width, fan_parts parts)
{
    const std::vector<std::string> alternatives{graph_fan(width), graph_fan(width, edge_kind::early), streams_fan(width)};
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    fan stream(runtime, s.lose_a_task, width, parts);
    const std::string where = parts == fan_parts::handles  ? ", by handle"
                              : parts == fan_parts::pieces ? ", parts in one buffer"
                                                           : "";
    figure f = measured(s, "fan of " + std::to_string(width) + ", 4 KB, a round" + where, stream, {}, alternatives);
    if (f.note.empty()) f.note = "a round is " + std::to_string(width + 2) + " tasks and 3 hops";
    return f;
}

std::vector<figure> bench_fan(const bench_setup& s)
{
    std::vector<figure> out;
    if (fan::in_buffers(s.fan_width))
        for (const fan_parts parts : {fan_parts::handles, fan_parts::buffers}) out.push_back(fan_figure(s, s.fan_width, parts));
    out.push_back(fan_figure(s, s.fan_width, fan_parts::pieces));
    return out;
}

} // namespace slipstream::bench
