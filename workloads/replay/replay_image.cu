// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "workloads/replay/replay_task.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::workloads {

kernel_image replay_image() { return detail::image_of<detail::platforms, replay_task, copy_task, fill_task, marker_task>(); }

} // namespace slipstream::workloads
