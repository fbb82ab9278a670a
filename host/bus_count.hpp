// The roles' bus counts as bytes.
#pragma once
#include "host/backend.hpp"
#include <slipstream/bus_traffic.hpp>

namespace slipstream::host {

/// While no kernel is resident.
bus_traffic bus_traffic_of(const host_memory& memory);

} // namespace slipstream::host
