// The floors of a build with CUDA.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include <cuda_runtime_api.h>
#include <slipstream/status.hpp>

namespace slipstream::bench {

std::vector<floor_entry> all_floors(u32 ordinal)
{
    if (cudaSetDevice(static_cast<int>(ordinal)) != cudaSuccess)
        throw device_error("floors: cuda:" + std::to_string(ordinal) + " cannot be used; see 'slipstream devices'");
    std::vector<floor_entry> out;
    add_signal_floors(out);
    add_hop_floors(out);
    add_barrier_floors(out);
    add_bus_floors(out);
    add_launch_alternatives(out);
    add_graph_alternatives(out);
    add_wide_alternatives(out);
    return out;
}

} // namespace slipstream::bench
