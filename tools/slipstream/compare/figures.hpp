// What a comparison says of each engine, derived from its runs and the bounds.
#pragma once
#include "tools/slipstream/compare/bounds.hpp"
#include "tools/slipstream/compare/engine_kind.hpp"
#include "tools/slipstream/comparison.hpp"

namespace slipstream::cli {

/// Not a number where something is not known or does not apply.
struct engine_figures {
    std::string engine;
    engine_kind kind = engine_kind::own;
    bool verified = false;
    spread makespan_us;
    double over_serial = 0;      ///< how often the makespan fits into that of serial
    double over_alternative = 0; ///< into that of the best alternative
    double bound_share = 0;      ///< the lowest possible makespan / this one; may exceed 1: compare/README.md
    // Of one task:
    double submit_us = 0;                       ///< host time of the submissions
    double cpu_us = 0;                          ///< CPU time of all threads of the process
    double submitter_cpu_us = 0;                ///< of it, the submitting thread
    double bytes_to_gpu = 0, bytes_to_host = 0; ///< across the bus, where the engine counts them
    // Of the engine:
    double scheduling_sms = 0;
};

struct comparison_figures {
    std::vector<engine_figures> engines; ///< in the order of the runs; graph-replay is followed by the same with its building
    std::string best_alternative;        ///< "" when none ran
};

/// Name of the row behind graph-replay: the graph built, instantiated, uploaded and replayed once.
inline constexpr const char* replay_with_build = "graph-replay + build";

/// `limits` may be null.
comparison_figures figures_of(const std::vector<engine_runs>& runs, u64 tasks, const bounds* limits);

/// Engines that took less time than `engine`, the fastest first: where it loses. Runs that did not verify do not count.
std::vector<const engine_figures*> faster_than(const comparison_figures& all, const std::string& engine);

} // namespace slipstream::cli
