// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "tools/slipstream/bench/bench_tasks.hpp"

namespace slipstream::bench {
namespace {

template <class... Tasks> kernel_image image_of_list(task_list<Tasks...>)
{
    return detail::image_of<detail::platforms, Tasks...>();
}

} // namespace

kernel_image bench_image()
{
    return image_of_list(bench_list{});
}

} // namespace slipstream::bench
