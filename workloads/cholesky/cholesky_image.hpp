// The task lists of cholesky as images, one for each precision, so that each kernel holds only what it runs.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

/// Indices in both images.
inline constexpr u32 potrf_type = 0, trsm_type = 1, syrk_type = 2, gemm_type = 3;

kernel_image cholesky_fp32_image();
kernel_image cholesky_fp64_image();

} // namespace slipstream::workloads
