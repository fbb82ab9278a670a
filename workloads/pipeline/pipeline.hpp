// pipeline: items go through stages in order, each stage with a bounded number of output slots; verified by digest.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type pipeline_type();

} // namespace slipstream::workloads
