// One workload on one engine of the host device, for the tests of workloads.
#pragma once
#include "host/engines/engine.hpp"
#include "host/engines/hazard_search.hpp"
#include "workloads/workload.hpp"
#include <algorithm>

namespace slipstream::tests {

inline const workloads::workload_type& workload_named(const std::string& name)
{
    for (const workloads::workload_type& w : workloads::all_workloads())
        if (w.name == name) return w;
    throw std::logic_error(name + " is not in the list of workloads");
}

/// Makes the workload, runs it `runs` times, and says what the last check said, or the first that failed.
inline workloads::verdict run_workload(const std::string& workload, const std::string& engine_name, const config& configuration,
                                       const workloads::parameters& values, u64 seed, u32 runs = 1)
{
    const auto device = engines::open_device("host");
    const auto load = workload_named(workload).make(*device, values, seed);
    const auto engine = engines::make_engine(engine_name, configuration, *device, load->program().image());
    engine->prepare(load->program());
    workloads::verdict v;
    for (u32 i = 0; i < runs; ++i) {
        load->reset();
        engine->run(load->program());
        v = load->verify();
        if (!v.verified) break;
    }
    return v;
}

inline config small_engine(u32 window, u32 ring)
{
    config c;
    c.window = window;
    c.ring_slots = ring;
    c.memory_bytes = 1 << 20;
    c.staging_bytes = 1 << 20;
    return c;
}

/// What the workload says of parameters that it refuses; empty when it takes them.
inline std::string refusal(const std::string& workload, const workloads::parameters& values)
{
    const auto device = engines::open_device("host");
    try {
        workload_named(workload).make(*device, values, 1);
    } catch (const config_error& e) {
        return e.what();
    }
    return "";
}

/// The program without its first task of that name; throws when there is none.
inline engines::program without_first(const engines::program& p, std::string_view name)
{
    engines::program shorter(p.image());
    bool left_out = false;
    for (const engines::program_task& t : p.tasks()) {
        if (!left_out && t.name == name)
            left_out = true;
        else
            shorter.add(t.type, p.arguments(t), t.blocks, p.accesses(t), {}, t.order, t.name);
    }
    if (!left_out) throw std::logic_error("the program has no task named " + std::string(name));
    return shorter;
}

/// Tasks on the longest chain of dependent tasks, by the hazards between the declared accesses.
inline u64 longest_path(const engines::program& p)
{
    engines::hazard_search search;
    std::vector<u64> length;
    u64 longest = 0;
    for (const engines::program_task& t : p.tasks()) {
        u64 before = 0;
        for (const u32 predecessor : search.next(p, t)) before = std::max(before, length[predecessor]);
        length.push_back(before + 1);
        longest = std::max(longest, before + 1);
    }
    return longest;
}

} // namespace slipstream::tests
