// How long one task takes as a plain kernel, launched alone. CUDA only.
#pragma once
#include <memory>
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

/// Measures with CUDA graphs: a chain of the same kernel, timed by events, the time of an empty launch taken off. A node of such
/// a chain costs what the kernel takes plus the GPU's own launch latency (0.7 us on an H200), and nothing of the host.
class launch_timer {
public:
    virtual ~launch_timer() = default;
    /// Microseconds of one run of a task of type `type`. `expected_us` decides how often it is repeated.
    virtual double run(u32 type, const void* task, u32 blocks, double expected_us) = 0;
};

/// Null in a build without CUDA. Throws device_error when the device fails.
std::unique_ptr<launch_timer> make_launch_timer(const kernel_image& image, int ordinal);

} // namespace slipstream::workloads
