// The subcommands. Each returns the process's exit code; bad input is thrown (usage_error, import_error, config_error).
#pragma once
#include "tools/slipstream/options.hpp"
#include "tools/slipstream/usage_error.hpp"

namespace slipstream::cli {

/// Exit codes of the binary.
inline constexpr int exit_good = 0;
inline constexpr int exit_run_failed = 1; ///< a run failed or did not verify
inline constexpr int exit_bad_input = 2;  ///< usage or input

int run_devices(const options& o);
int run_replay(const options& o);
int run_workload(const options& o);
int run_bench(const options& o);
int run_compare(const options& o);
int run_soak(const options& o);

} // namespace slipstream::cli
