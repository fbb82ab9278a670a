// The generator.
//
// Task (i, s) takes item i through stage s. It reads the slot that stage s - 1 left the item in, reads and writes the state of
// stage s, and writes slot i % slots of stage s. So it waits for (i, s - 1) and (i - 1, s), and, since slots are used again, for
// the reader of what the slot held before: (i - slots, s + 1).
#include "workloads/pipeline/pipeline.hpp"
#include "workloads/digest/digest_workload.hpp"
#include "workloads/parameters.hpp"

namespace slipstream::workloads {
namespace {

using abi::access_mode;

const parameters& defaults()
{
    static const parameters values{{"stages", "8"}, {"items", "100"}, {"slots", "2"},   {"work_us", "5"},
                                   {"blocks", "1"}, {"cells", "16"},  {"handles", "1"}, {"break", ""}};
    return values;
}

struct shape {
    u32 stages, items, slots, blocks, cells;
    bool handles;
    double work_us;
    std::string broken;

    u64 all_cells() const { return u64{stages} * (slots + 1) * cells; }
};

shape read_shape(const parameters& given)
{
    const parameter_reader values("pipeline", defaults(), given);
    shape s{};
    s.stages = values.whole("stages", 1, 4096);
    s.items = values.whole("items", 1, 1'000'000);
    s.slots = values.whole("slots", 1, 4096);
    s.blocks = values.whole("blocks", 1, 1u << 20);
    s.cells = values.whole("cells", 1, 4096);
    s.handles = values.whole("handles", 0, 1) == 1;
    s.work_us = values.number("work_us", 0, 1e6);
    s.broken = values.text("break");
    if (u64{s.stages} * s.items > 10'000'000) throw config_error("pipeline: stages x items must be at most 10000000 tasks");
    if (s.all_cells() > 1u << 28) throw config_error("pipeline: stages x (slots + 1) x cells must be at most 268435456 cells");
    return s;
}

/// Longest path in tasks. Its steps go one stage on, one item on, or, by the reuse of a slot, `slots` items on and one stage back.
/// The last kind gains nothing over `slots` steps of one item, since the stage has to be made good, unless there is one slot:
/// then every item costs two steps, as a stage takes the next item only when the next stage has read the last one.
u64 path_tasks(const shape& s)
{
    const u64 steps_of_an_item = s.slots == 1 && s.stages > 1 ? 2 : 1;
    return (s.items - 1) * steps_of_an_item + s.stages;
}

digest_plan fill(const shape& s, digest_board& board)
{
    // A stage's cells: its state, then its slots.
    std::vector<u32> handle_plus_one(u64{s.stages} * (s.slots + 1), 0);
    if (s.handles)
        for (u32 piece = 0; piece < handle_plus_one.size(); ++piece)
            handle_plus_one[piece] = board.register_cells(piece * s.cells, s.cells) + 1;
    const auto piece = [&](access_mode mode, u32 stage, u32 place) {
        const u32 number = stage * (s.slots + 1) + place;
        return cell_access{.mode = mode, .first = number * s.cells, .count = s.cells, .handle_plus_one = handle_plus_one[number]};
    };
    std::vector<cell_access> accesses;
    for (u32 i = 0; i < s.items; ++i)
        for (u32 stage = 0; stage < s.stages; ++stage) {
            const u32 slot = 1 + i % s.slots;
            accesses.assign({piece(access_mode::read_write, stage, 0), piece(access_mode::write, stage, slot)});
            if (stage > 0) accesses.push_back(piece(access_mode::read, stage - 1, slot));
            board.add({.declared = accesses, .blocks = s.blocks});
        }
    const u64 tasks = path_tasks(s);
    return {std::vector<double>(board.tasks(), s.work_us), path_length{tasks, static_cast<double>(tasks) * s.work_us}};
}

std::unique_ptr<workload> make(engines::device_memory& device, const parameters& values, u64)
{
    const shape s = read_shape(values);
    return std::make_unique<digest_workload>(
        "pipeline", device, static_cast<u32>(s.all_cells()), [&](digest_board& board) { return fill(s, board); }, s.broken);
}

} // namespace

workload_type pipeline_type()
{
    return {"pipeline",
            "items through stages with a bounded number of slots: RAW and WAR, a known critical path; verified by digest",
            defaults(), &make};
}

} // namespace slipstream::workloads
