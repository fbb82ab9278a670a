// A workload and its parameters as the command line names them.
#pragma once
#include "workloads/workload.hpp"
#include <span>

namespace slipstream::cli {

/// Set by --break alone: for tests, like the flag itself.
inline constexpr std::string_view hidden_parameter = "break";

/// The workload of that name, null when there is none.
const workloads::workload_type* find_workload(const std::string& name);
/// "random-dag, ...": for messages.
std::string workload_names();

/// Its defaults, with the given NAME=VALUE put in. Throws usage_error, beginning with `where`, for what is no such parameter.
workloads::parameters workload_values(const std::string& where, const workloads::workload_type& type,
                                      std::span<const std::string> given);

} // namespace slipstream::cli
