// The generator.
//
// A stage has width pieces that its fork writes, width pieces that its branches write, each from one piece of the fork, and one
// piece that its join writes from all of them and the next fork reads. Two sets of pieces are used in turn, so that a branch
// which loses its fork has nobody else to wait for: with one set, the join before would still hold it back (WAR).
#include "workloads/fork_join/fork_join.hpp"
#include "workloads/digest/digest_workload.hpp"
#include "workloads/parameters.hpp"

namespace slipstream::workloads {
namespace {

using abi::access_mode;

const parameters& defaults()
{
    static const parameters values{{"depth", "20"}, {"width", "64"}, {"work_us", "5"}, {"serial_us", "1"},
                                   {"blocks", "1"}, {"cells", "16"}, {"break", ""}};
    return values;
}

struct shape {
    u32 depth, width, blocks, cells;
    double work_us, serial_us;
    std::string broken;

    u32 cells_of_a_set() const { return (2 * width + 1) * cells; }
};

shape read_shape(const parameters& given)
{
    const parameter_reader values("fork-join", defaults(), given);
    shape s{};
    s.depth = values.whole("depth", 1, 1'000'000);
    s.width = values.whole("width", 1, 65536);
    s.blocks = values.whole("blocks", 1, 1u << 20);
    s.cells = values.whole("cells", 1, 4096);
    s.work_us = values.number("work_us", 0, 1e6);
    s.serial_us = values.number("serial_us", 0, 1e6);
    s.broken = values.text("break");
    if (u64{s.depth} * (s.width + 2) > 10'000'000)
        throw config_error("fork-join: depth x (width + 2) must be at most 10000000 tasks");
    if (u64{s.width} * s.cells > 1u << 26) throw config_error("fork-join: width x cells must be at most 67108864");
    return s;
}

digest_plan fill(const shape& s, digest_board& board)
{
    digest_plan plan;
    const auto add = [&](std::initializer_list<cell_access> accesses, u32 blocks, double us, std::string_view name) {
        board.add({.declared = accesses, .blocks = blocks, .name = name});
        plan.work_us.push_back(us);
    };
    const u32 all = s.width * s.cells;
    for (u32 stage = 0; stage < s.depth; ++stage) {
        const u32 set = stage % 2 * s.cells_of_a_set(), other_set = s.cells_of_a_set() - set;
        const u32 forked = set, branched = set + all, joined = 2 * all; // the last within either set
        add({{access_mode::read, other_set + joined, s.cells}, {access_mode::write, forked, all}}, 1, s.serial_us, "fork");
        for (u32 i = 0; i < s.width; ++i)
            add({{access_mode::read, forked + i * s.cells, s.cells}, {access_mode::write, branched + i * s.cells, s.cells}},
                s.blocks, s.work_us, "branch");
        add({{access_mode::read, branched, all}, {access_mode::write, set + joined, s.cells}}, 1, s.serial_us, "join");
    }
    // Every stage begins with a fork that reads what the join before has written: fork, any branch, join, one after another.
    plan.critical_path = path_length{u64{3} * s.depth, s.depth * (2 * s.serial_us + s.work_us)};
    return plan;
}

std::unique_ptr<workload> make(engines::device_memory& device, const parameters& values, u64)
{
    const shape s = read_shape(values);
    return std::make_unique<digest_workload>(
        "fork-join", device, 2 * s.cells_of_a_set(), [&](digest_board& board) { return fill(s, board); }, s.broken);
}

} // namespace

workload_type fork_join_type()
{
    return {"fork-join", "fork, parallel branches, join, repeated: a known critical path; verified by digest", defaults(), &make};
}

} // namespace slipstream::workloads
