// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "workloads/qr/qr_image.hpp"
#include "workloads/qr/qr_tasks.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::workloads {

kernel_image qr_fp32_image()
{
    // One worker an SM: two would leave the bodies half of the registers, and each kernel takes half a minute to compile.
    return detail::image_for_workers<detail::platforms, 1, geqrt_task<float>, unmqr_task<float>, tsqrt_task<float>,
                                     tsmqr_task<float>, copy_task, fill_task, marker_task>();
}

} // namespace slipstream::workloads
