// What an imported trace holds and what its hazards allow, for people and as JSON.
#pragma once
#include "host/trace/hazard_analysis.hpp"
#include "host/trace/recorded_trace.hpp"
#include "tools/slipstream/json_report.hpp"

namespace slipstream::cli {

void print_trace(std::FILE* to, const options& o, const trace::recorded_trace& t, const trace::hazard_analysis& a);

/// `"trace": {...}`.
void write_trace(json_writer& w, const options& o, const trace::recorded_trace& t, const trace::hazard_analysis& a);

/// `"edges": {"total": n, "RAW": n, ...}`: every combination of RAW, WAR and WAW, and those with ORDER that occur.
void write_edges(json_writer& w, const trace::hazard_analysis& a);
void print_edges(std::FILE* to, const trace::hazard_analysis& a);

} // namespace slipstream::cli
