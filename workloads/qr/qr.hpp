// qr: tile QR of a square matrix in fp32 or fp64, flat tree, checked against a host factorization, by residual and orthogonality.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type qr_type();

} // namespace slipstream::workloads
