// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "workloads/digest/digest_image.hpp"
#include "workloads/digest/digest_task.hpp"
#include "workloads/task_bench/point_task.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::workloads {

kernel_image digest_image()
{
    using list = task_list<digest_task, point_task, copy_task, fill_task, marker_task>;
    static_assert(list::index_of<digest_task>() == digest_task_type && list::index_of<point_task>() == point_task_type);
    return detail::image_of<detail::platforms, digest_task, point_task, copy_task, fill_task, marker_task>();
}

} // namespace slipstream::workloads
