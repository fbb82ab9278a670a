// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "workloads/cholesky/cholesky_image.hpp"
#include "workloads/cholesky/cholesky_tasks.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::workloads {

kernel_image cholesky_fp64_image()
{
    // One worker an SM: two would leave the bodies half of the registers, and each kernel takes half a minute to compile.
    return detail::image_for_workers<detail::platforms, 1, potrf_task<double>, trsm_task<double>, syrk_task<double>,
                                     gemm_task<double>, copy_task, fill_task, marker_task>();
}

} // namespace slipstream::workloads
