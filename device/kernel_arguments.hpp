// What a launch hands to both halves of the megakernel.
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
    typename P::template word<u32>* places; ///< device memory: where the blocks run (placement.cuh). Null on the host
    u32 launch;                             ///< number of this launch
};

} // namespace slipstream::device
