// refused: has no member named .pop|no member named 'pop'
#include "tests/misuse/case.hpp"
#include "device/host_platform.hpp"
#include "device/queue.hpp"

namespace device = slipstream::device;
using platform = device::host_platform;
using pushing_end = device::queue_producer<platform, u32, device::edge::P5_self, device::edge::P5_self>;
using popping_end = device::queue_consumer<platform, u32, device::edge::P5_self, device::edge::P5_self>;

#ifdef MISUSE
u32 use(pushing_end& end) { return end.pop(); }
#else
u32 use(popping_end& end) { return end.pop(); }
#endif
