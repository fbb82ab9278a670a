// The task list of random-dag as an image: compiled by nvcc when there is one, else for the host only.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

inline constexpr u32 random_dag_digest_type = 0; ///< index of digest_task in the image

kernel_image random_dag_image();

} // namespace slipstream::workloads
