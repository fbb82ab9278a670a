// The task list of the workloads whose bodies are digest tasks, as an image: compiled by nvcc when there is one, else for the host only.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

inline constexpr u32 digest_task_type = 0; ///< index of digest_task in the image

kernel_image digest_image();

} // namespace slipstream::workloads
