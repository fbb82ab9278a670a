// METG, the minimum effective task granularity of Task Bench: how short tasks may get before an engine loses half of the machine.
//
// What is measured: a graph of Task Bench as wide as the workers of this engine, at task lengths that double from half a
// microsecond on.
//   granularity   wall time x places / tasks, where places are all that could run a block: the workers and those that schedule
//   instead efficiency    iterations a second / peak; only the arithmetic of tasks counts, and the peak is that of all places
//   together METG(x %)     the granularity from which on the efficiency never falls below x %, interpolated between the lengths
//   around it
#pragma once
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/json_report.hpp"
#include "workloads/task_bench/task_bench.hpp"

namespace slipstream::bench {

struct metg_request {
    std::vector<std::string> patterns;
    std::vector<std::string> engines;
    u32 buffers = 2; ///< outputs of a point, used in turn; 0: one for each step
    u32 steps = 0;   ///< rows, where the user has not said how many tasks; 0: as many as is usual for the pattern
};

/// Engines that METG compares where the user names none, those of them that the device has.
std::vector<std::string> metg_engines(bool cuda);

/// One length on one engine.
struct metg_point {
    u32 iterations = 0;
    spread wall_us; ///< of the whole graph
    u32 repeats = 0;
    bool verified = false;
};

struct metg_value {
    enum class kind { reached, at_most, not_reached };
    kind what = kind::not_reached;
    double us = 0; ///< at_most: that of the shortest tasks, which keep the share too
};

struct metg_curve {
    std::string engine;
    std::vector<metg_point> points; ///< longer and longer tasks
    bool verified = true;
    std::string trouble;
};

struct metg_graph {
    workloads::task_bench_plan plan;
    u64 tasks = 0, inputs = 0;
    std::vector<metg_curve> curves;
};

/// Iterations in a microsecond.
struct metg_peak {
    double rate = 0;       ///< the highest of all, on all places together
    std::string from;      ///< what reached it
    double solo_rate = 0;  ///< of the body alone: one launch of 32 blocks a place; on the host, one thread times the workers
    double block_rate = 0; ///< of one block alone
    bool verified = false; ///< the solo run
};

struct metg_result {
    u32 places = 0, workers = 0;
    u32 threads = 0;       ///< of a block
    double longest_us = 0; ///< an engine that has not reached its peak at this length has not reached it
    metg_peak peak;
    std::vector<metg_graph> graphs;

    bool verified() const;
    double length_us(u32 iterations) const { return iterations / peak.block_rate; } ///< of such a task alone
    double granularity_us(const metg_graph& g, double wall_us) const { return wall_us * places / static_cast<double>(g.tasks); }
    double efficiency(const metg_graph& g, u32 iterations, double wall_us) const
    {
        return static_cast<double>(g.tasks) * iterations / wall_us / peak.rate;
    }
    /// METG at `level` (0.5: 50 %), by that percentile of the wall times.
    metg_value metg(const metg_graph& g, const metg_curve& c, double level, double spread::*percentile = &spread::median) const;
    double peak_tera_flops() const; ///< two operations a multiply-add
};

metg_result measure_metg(const bench_setup& s, const metg_request& wanted);

/// METG(50 %) of an engine on the first graph, for `bench targets`: p10 and p90 by those of the wall times. No number, with the
/// reason in its note, when there is none.
figure metg_figure(const metg_result& r, const std::string& engine);

void print_metg(std::FILE* to, const metg_result& r);
/// `"metg": {...}`.
void write_metg(cli::json_writer& w, const metg_result& r);

} // namespace slipstream::bench
