// The task lists of qr as images, one for each precision, so that each kernel holds only what it runs.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

/// Indices in both images.
inline constexpr u32 geqrt_type = 0, unmqr_type = 1, tsqrt_type = 2, tsmqr_type = 3;

kernel_image qr_fp32_image();
kernel_image qr_fp64_image();

} // namespace slipstream::workloads
