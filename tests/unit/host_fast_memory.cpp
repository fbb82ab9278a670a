// Who gets the control block's fast memory: the figures that device/layout.hpp gives, and that the access index is the last to go.
#include "host/fast_memory.hpp"
#include "trace_catch.hpp"

using namespace slipstream;

namespace {

constexpr u64 of_an_h200 = 227 << 10;

/// As the runtime asks for it, with messages of 1024 accesses at most.
device::sizes engine_of(u32 window, u32 rings, u32 types)
{
    constexpr u32 blocks_per_message = (1024 + abi::task_members_max + device::pool_block_entries - 1) / device::pool_block_entries;
    constexpr u32 word = device::pool_word_blocks;
    device::sizes n{};
    n.window = n.window_used = window;
    n.rings = rings;
    n.ring_slots = 1024;
    n.workers = 131;
    n.types = types;
    n.pool_blocks = ((rings + 1) * blocks_per_message + window + word - 1) / word * word;
    return n;
}

u64 needed_with(device::sizes n, u32 index_buckets)
{
    n.index_buckets = index_buckets;
    n.pool_near_blocks = 0;
    n.ahead_slots = device::ahead_slots_least;
    return device::control_state<device::host_platform>::measure(n).near_bytes;
}

} // namespace

TEST_CASE("the table of the fast-memory budget says what is chosen", "[host]")
{
    struct row {
        u32 window, kib, blocks, near_blocks, index_buckets, ahead_slots;
    };
    for (const row& r : {row{32, 155, 1336, 1336, 64, 128}, row{64, 167, 1368, 1368, 128, 128}, row{256, 226, 1560, 1264, 512, 128},
                         row{512, 226, 1816, 264, 512, 128}, row{1024, 226, 2328, 32, 64, 128}}) {
        CAPTURE(r.window);
        device::sizes n = engine_of(r.window, 4, 5);
        const u64 bytes = host::share_fast_memory(n, of_an_h200).near_bytes;
        CHECK((bytes + 512) / 1024 == r.kib);
        CHECK(n.pool_blocks == r.blocks);
        CHECK(n.pool_near_blocks == r.near_blocks);
        CHECK(n.index_buckets == r.index_buckets);
        CHECK(n.ahead_slots == r.ahead_slots);
    }
}

TEST_CASE("what must be there gets its room, then the smallest access index, then accesses", "[host]")
{
    u32 without_index = 0, refused = 0, short_looks = 0;
    for (u32 window : {32u, 256u, 512u, 1024u, 2048u})
        for (u32 rings = 1; rings <= 16; ++rings)
            for (u32 types : {1u, 5u, 10u, 20u, 100u}) {
                CAPTURE(window, rings, types);
                device::sizes n = engine_of(window, rings, types);
                const u64 bytes = host::share_fast_memory(n, of_an_h200).near_bytes;
                CHECK((bytes <= of_an_h200) == (needed_with(n, 0) <= of_an_h200));
                CHECK((n.index_buckets != 0) == (needed_with(n, 64) <= of_an_h200));
                CHECK((n.ahead_slots >= device::ahead_slots_least && n.ahead_slots <= device::ahead_slots_max));
                // Shorter looks only where longer ones would leave the index no room.
                if (device::sizes longer = n; n.index_buckets != 0 && n.ahead_slots < device::ahead_slots_max) {
                    longer.ahead_slots *= 2;
                    longer.index_buckets = 64;
                    longer.pool_near_blocks = 0;
                    CHECK(device::control_state<device::host_platform>::measure(longer).near_bytes > of_an_h200);
                    ++short_looks;
                }
                CHECK(n.pool_near_blocks <= n.pool_blocks);
                CHECK(n.pool_near_blocks % device::pool_word_blocks == 0);
                without_index += n.index_buckets == 0;
                refused += bytes > of_an_h200;
            }
    CHECK(without_index > refused); // the grid holds every case
    CHECK(refused > 0);
    CHECK(short_looks > 0);
}

TEST_CASE("without a bound the access index is as large as it is wanted, and some accesses lie beside it", "[host]")
{
    device::sizes n = engine_of(1024, 4, 5);
    host::share_fast_memory(n, ~u64{0});
    CHECK(n.index_buckets == n.index_buckets_wanted());
    CHECK(n.pool_near_blocks > 0);
}

TEST_CASE("of more accesses than the index can name there is none", "[host]")
{
    constexpr u32 most = 0xffff / device::pool_block_entries / device::pool_word_blocks * device::pool_word_blocks;
    for (const u32 blocks : {most, most + device::pool_word_blocks}) {
        device::sizes n = engine_of(256, 4, 5);
        n.pool_blocks = blocks;
        (void)host::share_fast_memory(n, ~u64{0});
        CHECK((n.index_buckets != 0) == (blocks == most));
        CHECK(n.ahead_slots == device::ahead_slots_max); // shorter looks would gain nothing
    }
}

TEST_CASE("a channel between parts has room for a message a meeting and an answer a window slot", "[host]")
{
    for (const u32 window : {16u, 256u, 512u, 544u, 1024u, 4096u}) {
        device::sizes n = engine_of(window, 1, 5);
        CHECK(n.channel_slots() >= abi::meetings_max + window);
        CHECK((n.channel_slots() & (n.channel_slots() - 1)) == 0);
    }
}
