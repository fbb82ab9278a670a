// A sweep measured: every point a measurement, the curves between them.
#pragma once
#include "tools/slipstream/compare/crossover.hpp"
#include "tools/slipstream/compare/measurement.hpp"
#include "tools/slipstream/compare/sweep.hpp"
#include "tools/slipstream/json_report.hpp"

namespace slipstream::cli {

struct sweep_run {
    subject what;
    sweep_axis axis;
    std::vector<measurement> points;        ///< one for each value; all hold the same engines
    std::vector<std::string> measured_once; ///< window sweeps: engines that have no window, whose runs are those of the first point
    std::exception_ptr ended_by{}; ///< before its last point; `axis` has the values of those that were measured
};

/// Measures all points in ascending order; `title` stands in the progress bar. What is wrong with the first is thrown; with a later
/// one, it is kept (`ended_by`), and so are the points before it.
sweep_run run_sweep(const subject& what, const sweep_axis& axis, u64 seed, const std::vector<std::string>& engines,
                    const options& o, const std::string& title);

/// One engine's curve.
struct sweep_curve {
    std::string engine;
    std::vector<double> us_per_task;            ///< by point
    std::vector<double> bound_share;            ///< by point; not a number without bounds
    std::vector<crossover> against;             ///< where slipstream and this engine change places; empty for slipstream itself
    std::optional<bool> slipstream_wins_first;  ///< at the first point where both were measured
    std::optional<double> half_from, most_from; ///< from where on it keeps 50 % and 90 % of the bound
};

std::vector<sweep_curve> curves_of(const sweep_run& s);

void print_sweep(std::FILE* to, const sweep_run& s, const environment& e);
/// The members of one object.
void write_sweep(json_writer& w, const sweep_run& s, const environment& e);

bool all_verified(const sweep_run& s);

} // namespace slipstream::cli
