// A named range on the host's track of NVIDIA's profilers, from construction to destruction. Empty in a build without CUDA; with no
// profiler attached it is a call through a pointer that does nothing. For what happens once a launch or a run, never once a task.
#pragma once
#include <string>
#if SLIPSTREAM_WITH_NVTX
#include <nvtx3/nvtx3.hpp>
#endif

namespace slipstream::host {

#if SLIPSTREAM_WITH_NVTX
class nvtx_range {
public:
    explicit nvtx_range(const std::string& name) : range_(name) {}

private:
    struct domain {
        static constexpr const char* name = "slipstream";
    };
    nvtx3::scoped_range_in<domain> range_;
};
#else
class [[maybe_unused]] nvtx_range {
public:
    explicit nvtx_range(const std::string&) {}
};
#endif

} // namespace slipstream::host
