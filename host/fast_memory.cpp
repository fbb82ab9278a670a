#include "host/fast_memory.hpp"
#include <algorithm>

namespace slipstream::host {
namespace {

device::control_offsets measure(const device::sizes& n) { return device::control_state<device::host_platform>::measure(n); }

constexpr u32 word = device::pool_word_blocks;
constexpr u32 word_bytes = 32 * (sizeof(abi::access_entry) + sizeof(u16)); // the entry, and where the index has it
constexpr u32 block_bytes = word_bytes / word;

constexpr u32 buckets_least = 64;

/// The access index gives way where the rest needs the room: a large one for some accesses, the smallest for nothing.
/// Without it every access is compared with all of the window: at 1024 slots that is six times slower.
device::control_offsets choose_index(device::sizes& n, u64 most)
{
    constexpr u32 words_left = 6;
    // It names an access by 16 bits: of more, which messages of very many accesses want, it would miss some.
    constexpr u64 nameable = 0xffff;
    n.index_buckets = u64{n.pool_blocks} * device::pool_block_entries <= nameable ? n.index_buckets_wanted() : 0;
    while (n.index_buckets > buckets_least && measure(n).near_bytes + words_left * word_bytes > most) n.index_buckets /= 2;
    if (measure(n).near_bytes > most) n.index_buckets = 0;
    return measure(n);
}

/// The longest looks across the bus that cost the access index nothing.
device::control_offsets choose_looks(device::sizes& n, u64 most)
{
    n.ahead_slots = device::ahead_slots_least;
    const device::control_offsets least = choose_index(n, most);
    const u32 index = n.index_buckets;
    for (u32 slots = n.lone_workers != 0 ? device::ahead_slots_max : device::ahead_slots_least; slots > device::ahead_slots_least;
         slots /= 2) {
        n.ahead_slots = slots;
        const device::control_offsets offsets = choose_index(n, most);
        if (n.index_buckets == index && offsets.near_bytes <= most) return offsets;
    }
    n.ahead_slots = device::ahead_slots_least;
    n.index_buckets = index;
    return least;
}

} // namespace

device::control_offsets share_fast_memory(device::sizes& n, u64 most)
{
    n.pool_near_blocks = 0;
    const device::control_offsets offsets = choose_looks(n, most);
    // Of the pool in fast memory what fits beside the rest: a look at it costs 30 cycles there, 300 in device memory. But all
    // workers are launched with the control block's fast memory, and what it takes of an SM they lack as L1: beyond a size nine
    // blocks for eight window slots are enough. The driver gives an SM shared memory by steps, of which the last three are 164,
    // 196 and 228 KiB: a byte more than fits the first of these costs 32 KiB of L1.
    constexpr u64 usual = 160 << 10, last_steps = 64 << 10;
    const u64 comfortable = most < usual ? most : std::min(usual, most - last_steps);
    const u64 room = std::min<u64>(most, std::max<u64>(comfortable, offsets.near_bytes + n.window * 9 / 8 * block_bytes));
    if (offsets.near_bytes + 2 * word_bytes > room) return offsets;
    n.pool_near_blocks = static_cast<u32>(std::min<u64>(n.pool_blocks / word, (room - offsets.near_bytes) / word_bytes - 1) * word);
    return measure(n);
}

} // namespace slipstream::host
