// The control block's kernel, for the host that launches it.
#pragma once
#include <slipstream/abi/portable.hpp>

namespace slipstream::device {

inline constexpr u32 control_threads = 256; ///< eight warps (control_warps)

/// Workers that there are kernels for.
constexpr u32 control_workers_max(u32 parts) { return parts == 1 ? 320 : 160; }

/// The __global__ function that schedules for so many of them, in an engine of so many parts: takes one kernel_arguments by
/// value. Launched as one block of control_threads threads; it takes an SM for itself.
const void* control_kernel_for(u32 workers, u32 parts);

} // namespace slipstream::device
