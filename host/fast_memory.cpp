#include "host/fast_memory.hpp"
#include <algorithm>

namespace slipstream::host {
namespace {

device::control_offsets measure(const device::sizes& n) { return device::control_state<device::host_platform>::measure(n); }

constexpr u32 word = device::pool_word_blocks;
constexpr u32 word_bytes = 32 * (sizeof(abi::access_entry) + sizeof(u16)); // the entry, and where the index has it

constexpr u32 buckets_least = 64;

/// The access index names an access by 16 bits: of more, which messages of very many accesses want, it would miss some.
bool can_name_all(const device::sizes& n) { return u64{n.pool_blocks} * device::pool_block_entries <= 0xffff; }

/// The access index gives way where the rest needs the room: a large one for some accesses, the smallest for nothing.
/// Without it every access is compared with all of the window: at 1024 slots that is six times slower.
device::control_offsets choose_index(device::sizes& n, u64 most)
{
    constexpr u32 words_left = 6;
    n.index_buckets = can_name_all(n) ? n.index_buckets_wanted() : 0;
    while (n.index_buckets > buckets_least && measure(n).near_bytes + words_left * word_bytes > most) n.index_buckets /= 2;
    if (measure(n).near_bytes > most) n.index_buckets = 0;
    return measure(n);
}

/// The longest looks across the bus that leave it some room: shorter ones cost more than a smaller index (raw ranges at a
/// window of 1024: looks of 64 slots, 256 buckets 2.5 M tasks/s, 128 and 128 3.0 to 3.1).
device::control_offsets choose_looks(device::sizes& n, u64 most)
{
    for (n.ahead_slots = device::ahead_slots_max;; n.ahead_slots /= 2) {
        const device::control_offsets offsets = choose_index(n, most);
        const bool fits = offsets.near_bytes <= most && (n.index_buckets != 0 || !can_name_all(n));
        if (fits || n.ahead_slots == device::ahead_slots_least) return offsets;
    }
}

} // namespace

device::control_offsets share_fast_memory(device::sizes& n, u64 most)
{
    n.pool_near_blocks = 0;
    const device::control_offsets offsets = choose_looks(n, most);
    // Of the pool in fast memory what fits beside the rest: a look at it costs 30 cycles there, 300 in device memory.
    if (offsets.near_bytes + 2 * word_bytes > most) return offsets;
    n.pool_near_blocks = static_cast<u32>(std::min<u64>(n.pool_blocks / word, (most - offsets.near_bytes) / word_bytes - 1) * word);
    return measure(n);
}

} // namespace slipstream::host
