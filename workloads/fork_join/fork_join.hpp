// fork-join: a task, then many that need it, then one that needs them all, again and again; verified by digest.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type fork_join_type();

} // namespace slipstream::workloads
