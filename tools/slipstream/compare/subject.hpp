// What `slipstream compare` runs: a workload with parameters or a recorded trace, as the command line names it.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::cli {

struct subject {
    std::string title;                                  ///< in tables and plots
    const workloads::workload_type* workload = nullptr; ///< null: a trace
    workloads::parameters values;                       ///< of a workload: all of them
    std::vector<std::string> given;                     ///< of a workload: the parameters that were named
    std::string kineto, et;                             ///< of a trace
};

/// "NAME[:key=value,...]" for a workload; "X.kineto.json[.gz]" for a trace whose execution trace lies beside it by name;
/// "KINETO+ET" for one that names both; "demo" for the trace of the quick start. Throws usage_error for anything else.
subject parse_subject(const std::string& text);

} // namespace slipstream::cli
