// The wire format word by word, and the pool behind buffers.
#include "host/memory_pool.hpp"
#include "trace_catch.hpp"
#include <map>
#include <random>
#include <slipstream/abi/access_entry.hpp>
#include <vector>

using namespace slipstream;

TEST_CASE("a message header survives its chunk", "[device][message]")
{
    std::mt19937_64 random(1);
    for (u32 i = 0; i < 2000; ++i) {
        const abi::message_header h{static_cast<u32>(random()) & 0x7fffffff,
                                    static_cast<u32>(random() % abi::message_header::types_max),
                                    static_cast<u32>(random() & 0xff),
                                    static_cast<u32>(random() & 0xffff),
                                    static_cast<u32>(random() & abi::message_header::scalars_max),
                                    static_cast<u32>(random() & 0xff),
                                    abi::crossing_word::make(static_cast<u32>(random() % abi::meetings_max),
                                                             static_cast<u32>(random() % abi::parts_max))};
        const auto d = abi::message_header::decode(h.encode());
        REQUIRE((d.blocks == h.blocks && d.type == h.type && d.flags == h.flags && d.entries == h.entries
                 && d.scalars == h.scalars));
        REQUIRE((d.entry_chunks_plus_one == h.entry_chunks_plus_one && d.plain() == (h.entry_chunks_plus_one != 0)));
        REQUIRE((d.crossing.word == h.crossing.word && d.crossing.meeting() == h.crossing.meeting()
                 && d.crossing.peer() == h.crossing.peer()));
        REQUIRE(h.encode().w[3] == 0);
    }
}

TEST_CASE("the first word of an entry says handle or kind, and its mode", "[device][message]")
{
    for (const auto mode : {abi::access_mode::read, abi::access_mode::write, abi::access_mode::read_write}) {
        const u32 h = abi::encode_handle(0xabcdef, mode);
        CHECK((h & abi::handle_bit) != 0);
        CHECK((h & abi::handle_index_mask) == 0xabcdef);
        CHECK(abi::mode_of(h) == mode);
        using kinds = abi::entry_kind;
        for (const auto kind : {kinds::range, kinds::rect, kinds::loose, kinds::long_range}) {
            const u32 w = abi::encode_first(kind, mode, 0x1ffffff);
            CHECK((w & abi::handle_bit) == 0);
            CHECK(abi::kind_of(w) == kind);
            CHECK(abi::mode_of(w) == mode);
            CHECK((w & 0x1ffffff) == 0x1ffffff);
        }
    }
    CHECK(abi::kind_of(abi::encode_first(abi::entry_kind::after, abi::access_mode::none, 15)) == abi::entry_kind::after);
}

TEST_CASE("lap tags of one place differ from lap to lap, and zeroed memory is no first lap", "[device][message]")
{
    for (const u32 slots : {4u, 8u, 16u, 1024u})
        for (const u64 position : {u64{0}, u64{slots} - 1, (u64{1} << 32) - 1, (u64{1} << 32) * slots - 1, u64{1} << 40}) {
            const u32 tag = abi::lap_tag(position, slots);
            CHECK(tag != abi::lap_tag(position + slots, slots));
            if (position < slots) CHECK(tag != 0);
        }
}

TEST_CASE("random take and give: pieces are aligned, apart, inside, and everything comes back as one hole", "[device][memory_pool]")
{
    constexpr u64 total = 1 << 16;
    const u64 start = 1 << 20;
    for (u64 seed = 1; seed <= 5; ++seed) {
        INFO("seed " << seed);
        std::mt19937_64 random(seed);
        host::memory_pool pool(reinterpret_cast<void*>(start), total);
        std::map<u64, u64> held;
        u32 refused = 0;
        for (u32 i = 0; i < 4000; ++i) {
            if (random() % 5 < 3) {
                const u64 bytes = random() % 5000;
                const u64 address = reinterpret_cast<u64>(pool.take(bytes));
                if (address == 0) {
                    ++refused;
                    continue;
                }
                const u64 end = address + std::max<u64>(bytes, 1);
                REQUIRE(address % host::memory_pool::alignment == 0);
                REQUIRE((address >= start && end <= start + total));
                const auto next = held.lower_bound(address);
                if (next != held.end()) REQUIRE(end <= next->first);
                if (next != held.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second <= address);
                held[address] = bytes;
            } else if (!held.empty()) {
                auto it = held.begin();
                std::advance(it, static_cast<long>(random() % held.size()));
                pool.give(reinterpret_cast<void*>(it->first), it->second);
                held.erase(it);
            }
        }
        CHECK(refused > 0);
        for (const auto& [address, bytes] : held) pool.give(reinterpret_cast<void*>(address), bytes);
        CHECK(pool.take(total) == reinterpret_cast<void*>(start));
        CHECK(pool.take(1) == nullptr);
    }
}
