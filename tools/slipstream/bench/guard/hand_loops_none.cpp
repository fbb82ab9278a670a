// A build without CUDA has no loops to hold engines against.
#include "tools/slipstream/bench/guard/hand_loops.hpp"
#include <slipstream/status.hpp>

namespace slipstream::bench {

std::unique_ptr<hand_written> make_hand_written(hand_loop, const guard_shape&, u32, u32*, u32)
{
    throw device_error("hand-written CUDA loops: this build has no CUDA; configure where nvcc is found");
}

} // namespace slipstream::bench
