// Holds the stream- and graph-based engines against hand-written CUDA.
#pragma once
#include "host/engines/engine.hpp"
#include "tools/slipstream/bench/targets.hpp"

namespace slipstream::bench {

/// An engine may take this much of the time of its hand-written loop.
inline constexpr double guard_factor = 1.15;

/// A row for each engine, loop, shape and body. `slow_streams`: for the test that wants to see it fail.
std::vector<target> measure_guard(engines::device_memory& device, u32 repeats, bool slow_streams);

} // namespace slipstream::bench
