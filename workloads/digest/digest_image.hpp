// The task list of the workloads that are verified by digest, as an image: compiled by nvcc when there is one, else for
// the host only.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

inline constexpr u32 digest_task_type = 0; ///< index of digest_task in the image
inline constexpr u32 point_task_type = 1;  ///< of task_bench's point_task: light enough to need no kernel of its own

kernel_image digest_image();

} // namespace slipstream::workloads
