// How long tasks take alone in the slipstream engine: the span of their blocks in the workers' flight log.
#pragma once
#include <slipstream/runtime.hpp>
#include <span>
#include <vector>

namespace slipstream::workloads {

struct solo_request {
    u32 type;
    const void* task;
    u32 blocks;
};

/// Microseconds of each, the shortest of three runs with nothing else on the device; 0 where the flight log was too short.
/// Hops, submission and completion are not in it: only the bodies, from the first block's start to the last block's end on the
/// device's clock. Throws device_error when a body fails or the device is lost.
std::vector<double> resident_times(const config& configuration, const kernel_image& image, std::span<const solo_request> requests);

} // namespace slipstream::workloads
