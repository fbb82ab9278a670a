// random-dag: layers of tasks with random accesses of every kind, the same for the same seed; verified by digest.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type random_dag_type();

} // namespace slipstream::workloads
