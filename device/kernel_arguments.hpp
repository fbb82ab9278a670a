// What a launch hands to the megakernel.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
struct kernel_arguments {
    engine_memory<P> memory;
    control_offsets offsets;
    unsigned char* near_saved; ///< device memory: the control block's fast memory between launches
    unsigned char* far;        ///< device memory: what did not fit into fast memory
    u64 residency_ns;
};

} // namespace slipstream::device
