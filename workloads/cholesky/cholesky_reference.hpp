// A Cholesky factorization on the host, in double and by rows, that shares nothing with the tiled bodies.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <vector>

namespace slipstream::workloads {

/// Above this the host would need more than a few seconds.
inline constexpr u32 cholesky_reference_side_max = 2048;

/// Replaces the lower triangle of the n x n matrix `a`, by rows, by L; the rest does not matter.
void factor_cholesky(std::vector<double>& a, u32 n);

} // namespace slipstream::workloads
