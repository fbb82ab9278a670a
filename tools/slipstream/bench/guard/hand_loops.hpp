// The steps of a shape as one would write them by hand in CUDA.
#pragma once
#include "tools/slipstream/bench/guard/guard_shape.hpp"
#include <memory>

namespace slipstream::bench {

enum class hand_loop { one_stream, streams_and_events, graph, graph_with_programmatic_edges };

/// A loop over `steps` steps of a shape on zeroed data, made once and run many times.
class hand_written {
public:
    virtual ~hand_written() = default;
    /// Microseconds of host clock, from the first launch to the host seeing the last completion. Throws device_error.
    virtual double run_us() = 0;
};

/// On the GPU with this ordinal, which becomes the thread's current device. `data` holds shape.words(steps) words. Throws
/// device_error in a build without CUDA.
std::unique_ptr<hand_written> make_hand_written(hand_loop loop, const guard_shape& shape, u32 steps, u32* data, u32 ordinal);

} // namespace slipstream::bench
