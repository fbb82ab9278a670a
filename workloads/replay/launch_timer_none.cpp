// A build without CUDA has nothing to launch.
#include "workloads/replay/launch_timer.hpp"

namespace slipstream::workloads {

std::unique_ptr<launch_timer> make_launch_timer(const kernel_image&, int) { return nullptr; }

} // namespace slipstream::workloads
