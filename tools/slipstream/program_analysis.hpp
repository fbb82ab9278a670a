// The reported edges of a program that was made, not recorded: its declared accesses under the rule for traces.
#pragma once
#include "host/engines/program.hpp"
#include "host/trace/hazard_analysis.hpp"

namespace slipstream::cli {

/// Every row of a 2-D access counts as a range of its own; a whole-memory task touches every address. Durations are unknown.
trace::hazard_analysis analyze(const engines::program& program);

} // namespace slipstream::cli
