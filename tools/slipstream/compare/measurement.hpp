// One subject measured on all engines that were asked for, with its bounds.
#pragma once
#include "tools/slipstream/compare/figures.hpp"
#include "tools/slipstream/compare/subject.hpp"
#include <algorithm>
#include <exception>
#include <optional>

namespace slipstream::cli {

struct measurement {
    subject what; ///< with the values that were run
    u64 seed = 0;
    u32 window = 0;
    u64 tasks = 0;
    std::vector<engine_runs> runs;
    std::optional<bounds> limits;
    u32 workers = 0;                ///< that the bounds count on
    std::vector<std::string> notes; ///< what a reader must know, one sentence each
    bool solo_good = true;          ///< false: run one by one for the bounds, the tasks failed or gave a wrong result
    std::exception_ptr ended_by{};  ///< the device was lost behind the runs: nothing can be measured after them
};

/// Opens the device, makes the subject's workload, runs it, and times its tasks alone. `progress` names the subject in the progress
/// bar. Memory is given back with the device, so that many subjects fit one after another.
measurement measure(const subject& what, u64 seed, const std::vector<std::string>& engines, const options& o,
                    const std::string& progress);

comparison_figures figures_of(const measurement& m);

/// All runs, those for the bounds, too, verified.
inline bool all_verified(const measurement& m)
{
    return m.solo_good && std::all_of(m.runs.begin(), m.runs.end(), [](const engine_runs& r) { return r.verified; });
}

} // namespace slipstream::cli
