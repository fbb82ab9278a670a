// The benchmarks of the engine: each runs tasks through the public API alone and returns its figures.
#pragma once
#include "tools/slipstream/bench/bench_tasks.hpp"
#include "tools/slipstream/bench/chain.hpp"
#include "tools/slipstream/bench/fan.hpp"
#include "tools/slipstream/bench/floor_book.hpp"
#include "tools/slipstream/bench/slope.hpp"

namespace slipstream::bench {

/// What the command line chose.
struct bench_setup {
    config configuration;
    effort how_long;
    bool parts_given = false; ///< configuration.parts: by the user
    bool lose_a_task = false; ///< for tests
    u32 fan_width = 8;
    bool on_cuda = false;
    u64 memory_bytes = 0; ///< of the GPU
    floor_book& floors;
    engines::device_memory& device; ///< for those that run programs on engines
};

std::vector<figure> bench_chain(const bench_setup& s);
std::vector<figure> bench_fan(const bench_setup& s);
std::vector<figure> bench_throughput(const bench_setup& s);
std::vector<figure> bench_window(const bench_setup& s);
/// One engine of 1 to 7 parts, and what tasks cost it that touch memory of two.
std::vector<figure> bench_parts(const bench_setup& s);
std::vector<figure> bench_echo(const bench_setup& s);
std::vector<figure> bench_blocks(const bench_setup& s);
std::vector<figure> bench_submit(const bench_setup& s);
std::vector<figure> bench_bus(const bench_setup& s);
std::vector<figure> bench_bodies(const bench_setup& s);
std::vector<figure> bench_large(const bench_setup& s);
std::vector<figure> bench_idle(const bench_setup& s);
/// The last figure says by how much costs grow at most.
std::vector<figure> bench_growth(const bench_setup& s);

/// One chain: the bytes that each of a task's blocks steps.
figure chain_figure(const bench_setup& s, u32 bytes, named how);
figure moved_chain_figure(const bench_setup& s); ///< 4 KB; each task on another SM than the one before
figure fan_figure(const bench_setup& s, u32 width, fan_parts parts);
figure blocks_figure(const bench_setup& s, u32 blocks, named how);
figure wide_chain_figure(const bench_setup& s); ///< as many blocks as there are workers
enum class declared;
/// Of as many parts as the configuration says. With handles, so many of a hundred tasks read memory of two.
figure throughput_figure(const bench_setup& s, declared what, u32 window, u32 crossing_percent = 0);
inline constexpr u32 parts_usual = 6; ///< of the engine that the rates and METG of `bench targets` are asked of
/// Bytes a task of one slot (declared::handles) or two (declared::four_ranges).
figure bus_figure(const bench_setup& s, declared what);
/// A task of very many blocks, beside the same body launched; its image holds the bodies of all kinds.
enum class wide_kind : u32;
figure body_figure(const bench_setup& s, wide_kind kind);
std::string bodies_trouble(const bench_setup& s); ///< why the bodies cannot be measured here; empty when they can
figure mixed_bodies_figure(const bench_setup& s); ///< a task of each of body_kinds at once
figure large_figure(const bench_setup& s, wide_kind kind);
/// What an idle engine costs a copy on the SMs that it leaves free, in per cent.
figure idle_figure(const bench_setup& s);

struct benchmark {
    std::string name;
    std::string what;
    std::vector<figure> (*run)(const bench_setup&);
};

/// In the order of the documentation; those that give no plain list of figures of this engine are not among them:
/// floors, guard, metg, targets.
const std::vector<benchmark>& all_benchmarks();

} // namespace slipstream::bench
