// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "tools/slipstream/bench/wide_tasks.hpp"

namespace slipstream::bench {
namespace {

template <class... Tasks> kernel_image image_of_list(task_list<Tasks...>)
{
    return detail::image_for_workers<detail::platforms, 1, Tasks...>();
}

} // namespace

kernel_image wide_image()
{
    return image_of_list(wide_list{});
}

} // namespace slipstream::bench
