// Runs the same workload on several engines, alternated, and keeps what each took and whether it verified.
#pragma once
#include "tools/slipstream/options.hpp"
#include "tools/slipstream/spread.hpp"
#include "workloads/workload.hpp"
#include <map>
#include <string>
#include <vector>

namespace slipstream::cli {

struct engine_runs {
    std::string engine;
    std::vector<double> makespan_us;
    std::vector<double> submit_us;
    std::vector<double> cpu_us, submitter_cpu_us; ///< run_result's
    double scheduling_sms = 0;                    ///< engine's
    std::map<std::string, std::vector<double>> phases; ///< run_result::phases, by name
    std::map<std::string, u64> counts;                 ///< run_result::counts, summed over the repetitions
    bool verified = true; ///< every run
    std::string trouble;  ///< the first thing that went wrong
};

/// The engines `--engine` names, in the order of engine_names(); throws config_error for an unknown name.
std::vector<std::string> chosen_engines(const std::string& wanted, bool cuda);

/// Window, ring and parts, as reports say them.
std::string sizes_text(const options& o);

/// The configuration of the engines that `o` asks for, on the device that was opened.
config engine_configuration(const options& o, const engines::device_memory& device);

/// Repetition 1 of all engines, then repetition 2 of all, ...: drifts of clock and temperature meet all alike. The device's
/// memory is reset before and verified after each run. A lost device ends the comparison: the rest counts as not verified.
/// All engines named take tasks that arrive like `when`.
/// `title`: of the progress bar; by itself it names the workload.
std::vector<engine_runs> compare(workloads::workload& work, const std::vector<std::string>& names, const options& o,
                                 engines::device_memory& device, const std::string& title = {}, const engines::arrivals& when = {});

/// One line of the table at the end.
struct run_row {
    std::string engine;
    spread makespan_us;
    bool verified = false;
};

std::vector<run_row> rows_of(const std::vector<engine_runs>& runs);

bool all_verified(const std::vector<engine_runs>& runs);

} // namespace slipstream::cli
