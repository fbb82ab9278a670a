#include "tools/slipstream/bench/floors/slot_writer.hpp"
#include "device/host_platform.hpp"

namespace slipstream::bench {

void write_slots(abi::chunk_word* ring, u32 slots, u32 count)
{
    using P = device::host_platform;
    for (u32 i = 0; i < count; ++i) {
        abi::chunk_word* const slot = ring + static_cast<u64>(i % slots) * slot_chunks;
        for (u32 c = 0; c < slot_chunks; ++c)
            P::store(device::edge{}, slot[c], abi::chunk{{i, i, i, i}}, device::order::relaxed, device::scope::system);
    }
}

} // namespace slipstream::bench
