// The task list of a soak, compiled for all platforms of the build.
#pragma once
#include <slipstream/kernel_image.hpp>

namespace slipstream::soak {

/// Indices of the types in soak_image(); copy, fill and marker follow.
enum soak_type : u32 {
    type_move,
    type_update,
    type_tile,
    type_join,
    type_add,
    type_listed,
    type_row,
    type_reset,
    type_copy,
    type_fill,
    type_marker
};

kernel_image soak_image();

} // namespace slipstream::soak
