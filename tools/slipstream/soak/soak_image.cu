// One text for both compilers: CMake hands this file to nvcc, or to the C++ compiler where there is no CUDA.
#include "tools/slipstream/soak/soak_image.hpp"
#include "tools/slipstream/soak/soak_task.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::soak {

kernel_image soak_image()
{
    using list = task_list<move_task, update_task, tile_task, join_task, add_task, listed_task, row_task, reset_task, copy_task,
                           fill_task, marker_task>;
    static_assert(list::index_of<move_task>() == type_move && list::index_of<update_task>() == type_update
                  && list::index_of<tile_task>() == type_tile && list::index_of<join_task>() == type_join
                  && list::index_of<add_task>() == type_add && list::index_of<listed_task>() == type_listed
                  && list::index_of<row_task>() == type_row && list::index_of<reset_task>() == type_reset
                  && list::index_of<marker_task>() == type_marker);
    return detail::image_of<detail::platforms, move_task, update_task, tile_task, join_task, add_task, listed_task, row_task,
                            reset_task, copy_task, fill_task, marker_task>();
}

} // namespace slipstream::soak
