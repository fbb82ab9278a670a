// A measurement for people and as JSON.
#pragma once
#include "tools/slipstream/compare/measurement.hpp"
#include "tools/slipstream/json_report.hpp"

namespace slipstream::cli {

/// Bounds, the engines' times, what a task costs, where slipstream loses.
void print_measurement(std::FILE* to, const measurement& m, const environment& e);

/// What was run, its bounds and its runs: members of an object that the caller opens and closes.
void write_measurement(json_writer& w, const measurement& m, const environment& e);
/// `"figures": [...]` and `"best_alternative"`: what follows from them, another two members.
void write_figures(json_writer& w, const measurement& m);

/// Its files, or its workload with all parameters.
std::string description_of(const subject& s);

/// A ratio as "1.24", "-" when it is not known.
std::string ratio_text(double value);

} // namespace slipstream::cli
