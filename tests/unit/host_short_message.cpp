// A short message says what the struct says, in the order of abi/message.hpp, or is refused.
#include "host/short_message.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <iterator>
#include <slipstream/task.hpp>
#include <vector>

using namespace slipstream;

namespace {

constexpr u64 at = 0x7f12'3456'7890;

/// `members` 1-D accesses, then `scalars` words.
abi::task_type layout_of(u32 members, u32 scalars)
{
    abi::task_type t{};
    t.members = static_cast<u8>(members);
    t.scalars = static_cast<u8>(scalars);
    t.words = static_cast<u16>(4 * members + scalars);
    t.bytes = static_cast<u16>(4 * t.words);
    for (u32 k = 0; k < members; ++k) {
        t.member_offset[k] = static_cast<u8>(4 * k);
        t.member_mode[k] = static_cast<u8>(k % 2 ? access_mode::write : access_mode::read);
    }
    for (u32 k = 0; k < scalars; ++k) t.scalar_offset[k] = static_cast<u8>(4 * members + k);
    return t;
}

struct made {
    std::vector<abi::chunk> chunks;
    abi::message_header header;
};

/// handles: bit k: member k is the handle 100 + k, else the range at + k of k + 1 bytes. Scalar k is 7000 + k.
made make(u32 members, u32 scalars, u32 handles, const abi::task_type& layout)
{
    std::vector<u32> words(4 * members + scalars);
    for (u32 k = 0; k < members; ++k) {
        const u64 address = at + k;
        const u64 tail = (k + 1) | (handles >> k & 1 ? u64{101 + k} << detail::member_handle_shift : 0);
        std::memcpy(&words[4 * k], &address, 8);
        std::memcpy(&words[4 * k + 2], &tail, 8);
    }
    for (u32 k = 0; k < scalars; ++k) words[4 * members + k] = 7000 + k;
    host::short_room room;
    std::fill(std::begin(room), std::end(room), host::chunk_vector{~u64{0}, ~u64{0}});
    const u32 count = abi::slot_chunks * host::encode_short(host::short_layout(layout, 3), words.data(), 17, room);
    made m{};
    for (u32 c = 0; c < count; ++c) m.chunks.push_back(std::bit_cast<abi::chunk>(room[c]));
    if (count != 0) m.header = abi::message_header::decode(m.chunks[0]);
    return m;
}

} // namespace

TEST_CASE("a short message is what the struct says", "[host][short_message]")
{
    for (u32 members = 1; members <= 8; ++members)
        for (u32 scalars = 0; scalars <= 9; ++scalars)
            for (u32 handles = 0; handles < 1u << members; ++handles) {
                const auto layout = layout_of(members, scalars);
                // As many chunks as the entries need: a range has one, up to three handles in a row share one.
                std::vector<std::vector<u32>> entries; // members of each chunk
                for (u32 k = 0; k < members; ++k) {
                    const bool handle = (handles >> k & 1) != 0;
                    const bool joins = handle && !entries.empty() && entries.back().size() < 3 && (handles >> entries.back()[0] & 1);
                    if (joins) entries.back().push_back(k);
                    else entries.push_back({k});
                }
                const u32 needed = 1 + static_cast<u32>(entries.size()) + (scalars + 2) / 3;
                const made m = make(members, scalars, handles, layout);
                INFO(members << " members, " << scalars << " scalars, handles " << handles);
                if (needed > host::short_chunks_max) {
                    REQUIRE(m.chunks.empty());
                    continue;
                }
                REQUIRE(m.chunks.size() == (needed + abi::slot_chunks - 1) / abi::slot_chunks * abi::slot_chunks);
                REQUIRE(m.header.plain());
                REQUIRE(m.header.plain_chunks() == needed);
                REQUIRE(m.header.blocks == 17);
                REQUIRE(m.header.type == 3);
                REQUIRE(m.header.flags == 0);
                REQUIRE(m.header.entries == members);
                REQUIRE(m.header.scalars == scalars);
                for (u32 c = 0; c < entries.size(); ++c)
                    for (u32 i = 0; i < 3; ++i) {
                        const u32 word = m.chunks[1 + c].w[i];
                        const u32 k = entries[c][i < entries[c].size() ? i : 0];
                        const auto mode = static_cast<access_mode>(layout.member_mode[k]);
                        if (handles >> k & 1) {
                            REQUIRE(word == (i < entries[c].size() ? abi::encode_handle(100 + k, mode) : 0));
                            continue;
                        }
                        const u32 high = static_cast<u32>((at + k) >> 32);
                        REQUIRE(word == (i == 0 ? abi::encode_first(abi::entry_kind::range, mode, high) : i == 1 ? static_cast<u32>(at + k) : k + 1));
                    }
                for (u32 k = 0; k < scalars; ++k) REQUIRE(m.chunks[1 + entries.size() + k / 3].w[k % 3] == 7000 + k);
                for (std::size_t c = needed; c < m.chunks.size(); ++c) // nothing of an earlier message
                    REQUIRE((m.chunks[c].w[0] == 0 && m.chunks[c].w[1] == 0 && m.chunks[c].w[2] == 0));
            }
}

TEST_CASE("what is no short message is left to the other path", "[host][short_message]")
{
    CHECK_FALSE(make(2, 1, 0, layout_of(2, 1)).chunks.empty());
    auto layout = layout_of(2, 1);
    layout.rect_mask = 2;
    CHECK(make(2, 1, 0, layout).chunks.empty());
    layout = layout_of(2, 1);
    layout.bytes = static_cast<u16>(layout.bytes - 1); // its last word is not whole
    CHECK(make(2, 1, 0, layout).chunks.empty());
    CHECK(make(0, 3, 0, layout_of(0, 3)).chunks.empty()); // declares nothing: whole memory
    // A range of 4 GiB and more takes two chunks.
    const host::short_layout one(layout_of(1, 0), 0);
    host::short_room out;
    u32 words[4] = {static_cast<u32>(at), static_cast<u32>(at >> 32), 0, 1};
    CHECK(host::encode_short(one, words, 1, out) == 0);
    words[2] = ~0u;
    words[3] = 0;
    CHECK(host::encode_short(one, words, 1, out) == 1);
}
