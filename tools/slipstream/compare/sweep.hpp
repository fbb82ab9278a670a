// Sweeps: one parameter of a workload, or the window, over a list of values.
#pragma once
#include "tools/slipstream/compare/subject.hpp"
#include <span>

namespace slipstream::cli {

struct sweep_axis {
    const char* name;      ///< as --sweep takes it
    const char* label;     ///< in tables and plots
    const char* parameter; ///< of the workload; null: the window of the engines over our runtime
    std::vector<double> values;
};

/// length, width, fan-in, window, with the values of the results page.
std::span<const sweep_axis> sweep_axes();

/// "AXIS", "AXIS=V,V,..." (ascending) or "all". Throws usage_error for anything else.
std::vector<sweep_axis> parse_sweep(const std::string& text);

/// What a sweep runs at one value of its axis.
struct sweep_point {
    workloads::parameters values;
    u32 window;
};

/// The workload that sweeps use when none is named: layers of one-block tasks that declare registered handles and nothing else.
subject layered_dag();

/// `given` tells which parameters of the subject stay as they are; the number of tasks, and the cells of a layered DAG, follow the
/// others otherwise, so that a point takes a short time and tasks read the same amount at any width. `tasks` other than 0
/// overrides. Throws usage_error when the workload has no such parameter.
sweep_point point_of(const subject& s, const sweep_axis& axis, double value, u32 window, u64 tasks);

} // namespace slipstream::cli
