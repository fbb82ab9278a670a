// What the engine should reach, against what it reached in this run.
#pragma once
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/json_report.hpp"
#include <optional>

namespace slipstream::bench {

/// `value` against `limit`, both in the unit of the row's figure unless `what` says otherwise.
struct condition {
    std::string what;
    double value = 0;
    double limit = 0;
    bool at_least = false; ///< else at most
    bool holds() const { return at_least ? value >= limit : value <= limit; }
};

enum class verdict { met, falls_short, not_measured };

struct target {
    std::string row;
    std::string wanted;
    std::optional<figure> measured;
    std::vector<condition> conditions;
    verdict outcome = verdict::not_measured;
    std::string why; ///< not measured, or measured and not counted
};

/// The rates of independent tasks and METG are those of an engine of parts_usual parts, where the user has not given `--parts`,
/// beside those of one; all else is one control block's. Measures every row that has a benchmark, and lists the others. A row is
/// met only on a GPU, with a verified figure and every reference measured in this run.
std::vector<target> measure_targets(const bench_setup& s, bool on_cuda);

void print_targets(std::FILE* to, const std::vector<target>& targets);
/// `"targets": [...]`.
void write_targets(cli::json_writer& w, const std::vector<target>& targets);

} // namespace slipstream::bench
