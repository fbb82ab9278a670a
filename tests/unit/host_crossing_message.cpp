// The messages of a crossing task and its stand-ins, put together in one go, say what the task's members say, each in its part.
#include "host/crossing_message.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

using namespace slipstream;
using host::located_members;

namespace {

constexpr u64 at = 0x7f12'3456'7890;
const abi::crossing_word word = abi::crossing_word::make(301, 5);

/// One entry as abi/message.hpp has it.
struct entry {
    access_mode mode;
    u64 address; ///< of a handle its index
    u64 bytes;   ///< 0: a handle

    bool operator==(const entry&) const = default;
};

/// Member k reads, or writes if k is odd: 1 + k bytes at `at` + k, or handle 100 + k.
entry entry_of(u32 k, bool handle, access_mode mode) { return handle ? entry{mode, 100 + k, 0} : entry{mode, at + k, 1 + k}; }

located_members members_of(u32 count, u32 handles, const std::array<u32, 6>& parts)
{
    located_members out;
    out.count = count;
    for (u32 k = 0; k < count; ++k) {
        const u64 handle_plus_one = handles >> k & 1 ? 101 + k : 0;
        out.list[k] = {{at + k, (1 + k) | handle_plus_one << detail::member_handle_shift},
                       k % 2 ? access_mode::write : access_mode::read, parts[k]};
        out.parts |= 1u << parts[k];
    }
    out.home = parts[count > 1 ? 1 : 0]; // the first written
    return out;
}

/// Reads what was put together, chunk by chunk; the chunks of entries must be as many as the header says.
std::vector<entry> entries_of(const detail::short_room& message)
{
    const auto chunk = [&](u32 c) { return std::bit_cast<abi::chunk>(message[c]); };
    const abi::message_header header = abi::message_header::decode(chunk(0));
    std::vector<entry> out;
    u32 c = 1;
    for (; out.size() < header.entries; ++c) {
        const abi::chunk e = chunk(c);
        if ((e.w[0] & abi::handle_bit) == 0) {
            REQUIRE(abi::kind_of(e.w[0]) == abi::entry_kind::range);
            out.push_back({abi::mode_of(e.w[0]), u64{e.w[0] & 0x1ffffff} << 32 | e.w[1], e.w[2]});
            continue;
        }
        for (u32 i = 0; i < 3 && e.w[i] != 0; ++i)
            out.push_back({static_cast<access_mode>(e.w[i] >> 28 & 7), e.w[i] & abi::handle_index_mask, 0});
    }
    REQUIRE(out.size() == header.entries);
    REQUIRE(header.entry_chunks_plus_one == c);
    return out;
}

abi::message_header header_of(const detail::short_room& message)
{
    return abi::message_header::decode(std::bit_cast<abi::chunk>(message[0]));
}

void fill(detail::short_room& room) { std::fill(std::begin(room), std::end(room), detail::chunk_vector{~u64{0}, ~u64{0}}); }

/// Calls visit(members, handles) for 2 to 6 members in parts 0 to 2, each a handle or a range.
template <class Visit>
void for_each_task(const Visit& visit)
{
    for (u32 count = 2; count <= 6; ++count)
        for (u32 handles = 0; handles < 1u << count; ++handles) {
            std::array<u32, 6> parts{};
            for (u32 k = 0; k < count;) {
                const located_members members = members_of(count, handles, parts);
                if (members.cross()) visit(members, handles);
                for (k = 0; k < count && ++parts[k] == 3; ++k) parts[k] = 0;
            }
        }
}

} // namespace

TEST_CASE("a crossing task's message has all of its members, those of other parts without an effect", "[host][crossing_message]")
{
    for_each_task([](const located_members& members, u32 handles) {
        detail::short_room message;
        fill(message);
        host::make_crossing(message, members, 9, 17, 4, word);
        std::vector<entry> expected;
        for (u32 k = 0; k < members.count; ++k)
            expected.push_back(entry_of(k, handles >> k & 1,
                                        members.list[k].part == members.home ? members.list[k].mode : access_mode::none));
        REQUIRE(entries_of(message) == expected);
        const abi::message_header h = header_of(message);
        REQUIRE((h.blocks == 17 && h.type == 9 && h.flags == abi::flag_crossing && h.scalars == 4 && h.crossing.word == word.word));
    });
}

TEST_CASE("a stand-in's message has the members in its part and no blocks", "[host][crossing_message]")
{
    for_each_task([](const located_members& members, u32 handles) {
        for (u32 part = 0; part < 3; ++part) {
            if (part == members.home || (members.parts >> part & 1) == 0) continue;
            detail::short_room message;
            fill(message);
            const u32 slots = host::make_stand_in(message, members, part, 12, word);
            std::vector<entry> expected;
            for (u32 k = 0; k < members.count; ++k)
                if (members.list[k].part == part) expected.push_back(entry_of(k, handles >> k & 1, members.list[k].mode));
            REQUIRE(entries_of(message) == expected);
            const abi::message_header h = header_of(message);
            REQUIRE((h.blocks == 0 && h.type == 12 && h.flags == abi::flag_crossing && h.scalars == 0
                     && h.crossing.word == word.word));
            REQUIRE(slots == (h.plain_chunks() + abi::slot_chunks - 1) / abi::slot_chunks);
            for (u32 c = h.plain_chunks(); c < slots * abi::slot_chunks; ++c)
                REQUIRE((message[c][0] == 0 && message[c][1] == 0)); // nothing of an earlier message
        }
    });
}

namespace {

struct several {
    u32 x, y;
    in<u32> a;
    out<u32> b;
    u64 z;
    in<u32> c;
    out<u32> d;
    u32 last, padding;
};

} // namespace

TEST_CASE("a crossing task's message is the task's own, but for the modes of other parts' members and the header",
          "[host][crossing_message]")
{
    constexpr u32 count = 4;
    for (u32 handles = 0; handles < 1u << count; ++handles) {
        const located_members members = members_of(count, handles, {0, 1, 2, 0, 0, 0});
        several task{11, 12, {}, {}, 13, {}, {}, 14, 15};
        const std::size_t offsets[] = {offsetof(several, a), offsetof(several, b), offsetof(several, c), offsetof(several, d)};
        for (u32 k = 0; k < count; ++k)
            std::memcpy(reinterpret_cast<unsigned char*>(&task) + offsets[k], &members.list[k].range, sizeof(detail::packed_range));
        detail::short_room plain, crossing;
        fill(plain);
        const u32 slots = detail::short_encoder_of<several>()(&task, 9, 17, plain);
        REQUIRE(slots == 2);
        std::copy(std::begin(plain), std::end(plain), std::begin(crossing));
        host::make_crossing(crossing, members, 9, 17, detail::scalars_of<several>, word);
        abi::message_header expected = header_of(plain);
        expected.flags = abi::flag_crossing;
        expected.crossing = word;
        REQUIRE(std::ranges::equal(header_of(crossing).encode().w, expected.encode().w));
        const u32 entry_chunks = expected.entry_chunks();
        for (u32 c = 1; c < std::size(plain); ++c)
            for (u32 half = 0; half < 2; ++half)
                if (c > entry_chunks) {
                    REQUIRE(crossing[c][half] == plain[c][half]);
                } else { // first words of entries, or handles: bits 28 to 30 are the mode
                    const u64 modes = u64{7} << 28 | u64{7} << 60;
                    REQUIRE((crossing[c][half] | modes) == (plain[c][half] | modes));
                }
    }
}
