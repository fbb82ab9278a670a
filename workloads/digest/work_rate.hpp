// How long digest_work takes here: measured once, by running one task of one block with two amounts of work.
#pragma once
#include "host/engines/engine.hpp"

namespace slipstream::workloads {

/// Iterations of digest_work in a microsecond, on one block of `device`. `type`: index of digest_task in the image.
double iterations_per_us(engines::device_memory& device, const kernel_image& image, u32 type);

} // namespace slipstream::workloads
