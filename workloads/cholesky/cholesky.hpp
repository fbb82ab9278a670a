// cholesky: tile Cholesky of a symmetric positive definite matrix in fp32 or fp64, checked against a host factorization and by
// residual.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type cholesky_type();

} // namespace slipstream::workloads
