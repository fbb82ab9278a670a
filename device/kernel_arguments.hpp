// What a launch hands to both halves of the megakernel.
#pragma once
#include "device/muster.hpp"

namespace slipstream::device {

template <class P>
struct kernel_arguments {
    engine_memory<P> memory;
    control_offsets offsets;
    unsigned char* near_saved; ///< device memory: the control block's fast memory between launches
    unsigned char* far;        ///< device memory: what did not fit into fast memory
    u64 residency_ns;
    // Of the GPU alone: threads of the host device begin all together, or none does.
    muster_memory<P> muster_words;
    u32 launch;      ///< number of this launch
    u64 patience_ns; ///< of blocks that wait for others
};

} // namespace slipstream::device
