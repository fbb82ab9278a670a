// The three ways to import a recorded run: Kineto alone, Kineto with its execution trace, execution trace alone.
#pragma once

#include <string>

#include "import_error.hpp"
#include "import_limits.hpp"
#include "recorded_trace.hpp"

namespace slipstream::trace {

// All three read plain or gzip files as streams, throw import_error for anything wrong with the input, keep no state
// between calls and may be called from several threads at once. Times are microseconds.

// Kineto alone: per-stream chains plus the synchronisation it recorded. These are stream-order, not data dependencies.
recorded_trace import_kineto(const std::string& kineto_path, const import_limits& limits = {});

// Kineto and execution trace of one run: byte ranges, durations, hazards. Refused when too few operators match.
recorded_trace import_kineto_with_et(const std::string& kineto_path, const std::string& et_path,
                                     const import_limits& limits = {});

// Execution trace alone: byte ranges and hazards, no durations, streams or grids; one task per launching operator.
recorded_trace import_execution_trace(const std::string& et_path, const import_limits& limits = {});

// By which files were given; an empty path stands for not given, at least one must be.
recorded_trace import_trace(const std::string& kineto_path, const std::string& et_path,
                            const import_limits& limits = {});

}  // namespace slipstream::trace
