// refused: has no member named .push|no member named 'push'
#include "tests/misuse/case.hpp"
#include "device/host_platform.hpp"
#include "device/queue.hpp"

namespace device = slipstream::device;
using platform = device::host_platform;
using pushing_end = device::queue_producer<platform, u32, device::edge::P5_self, device::edge::P5_self>;
using popping_end = device::queue_consumer<platform, u32, device::edge::P5_self, device::edge::P5_self>;

#ifdef MISUSE
void use(popping_end& end, platform::team& team) { end.push(team, 7); }
#else
void use(pushing_end& end, platform::team& team) { end.push(team, 7); }
#endif
