// The benchmarks of the engine: each runs tasks through the public API alone and returns its figures.
#pragma once
#include "tools/slipstream/bench/bench_tasks.hpp"
#include "tools/slipstream/bench/floor_book.hpp"
#include "tools/slipstream/bench/slope.hpp"

namespace slipstream::bench {

/// What the command line chose.
struct bench_setup {
    config configuration;
    effort how_long;
    bool lose_a_task = false; ///< for tests
    u32 fan_width = 8;
    floor_book& floors;
    engines::device_memory& device; ///< for those that run programs on engines
};

std::vector<figure> bench_chain(const bench_setup& s);
std::vector<figure> bench_fan(const bench_setup& s);
std::vector<figure> bench_throughput(const bench_setup& s);
std::vector<figure> bench_window(const bench_setup& s);
std::vector<figure> bench_echo(const bench_setup& s);
std::vector<figure> bench_blocks(const bench_setup& s);
std::vector<figure> bench_submit(const bench_setup& s);
std::vector<figure> bench_bus(const bench_setup& s);

/// One chain: the bytes that each of a task's blocks steps.
figure chain_figure(const bench_setup& s, u32 bytes);
figure fan_figure(const bench_setup& s, u32 width);
figure blocks_figure(const bench_setup& s, u32 blocks);
enum class declared;
figure throughput_figure(const bench_setup& s, declared what, u32 window);
/// Bytes a task of one slot (declared::handles) or two (declared::four_ranges).
figure bus_figure(const bench_setup& s, declared what);

struct benchmark {
    std::string name;
    std::string what;
    std::vector<figure> (*run)(const bench_setup&);
};

/// In the order of the documentation; those that give no plain list of figures of this engine are not among them: floors, guard, metg, targets.
const std::vector<benchmark>& all_benchmarks();

} // namespace slipstream::bench
