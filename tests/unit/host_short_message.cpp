// A short message says what the struct says, in the order of abi/message.hpp, or is refused.
#include "trace_catch.hpp"
#include <algorithm>
#include <bit>
#include <iterator>
#include <slipstream/short_message.hpp>
#include <vector>

using namespace slipstream;

namespace {

constexpr u64 at = 0x7f12'3456'7890;

template <u32 Count>
struct words {
    u32 w[Count];
};

// `Members` 1-D accesses that read and write in turn, then `Scalars` words.
template <u32 Members, u32 Scalars> struct task;
#define SLIPSTREAM_TASK(count, ...)                                                                                                \
    template <u32 Scalars> struct task<count, Scalars> {                                                                           \
        __VA_ARGS__;                                                                                                               \
        words<Scalars> scalars;                                                                                                    \
    };                                                                                                                             \
    template <> struct task<count, 0> {                                                                                            \
        __VA_ARGS__;                                                                                                               \
    };
SLIPSTREAM_TASK(1, in<u32> a)
SLIPSTREAM_TASK(2, in<u32> a; out<u32> b)
SLIPSTREAM_TASK(3, in<u32> a; out<u32> b; in<u32> c)
SLIPSTREAM_TASK(4, in<u32> a; out<u32> b; in<u32> c; out<u32> d)
SLIPSTREAM_TASK(5, in<u32> a; out<u32> b; in<u32> c; out<u32> d; in<u32> e)
SLIPSTREAM_TASK(6, in<u32> a; out<u32> b; in<u32> c; out<u32> d; in<u32> e; out<u32> f)
SLIPSTREAM_TASK(7, in<u32> a; out<u32> b; in<u32> c; out<u32> d; in<u32> e; out<u32> f; in<u32> g)
SLIPSTREAM_TASK(8, in<u32> a; out<u32> b; in<u32> c; out<u32> d; in<u32> e; out<u32> f; in<u32> g; out<u32> h)
#undef SLIPSTREAM_TASK

struct made {
    std::vector<abi::chunk> chunks;
    abi::message_header header;
};

/// The message of type 3 and 17 blocks that the bytes of a T make.
template <class T>
made make_of(const u32* bytes)
{
    detail::short_room room;
    std::fill(std::begin(room), std::end(room), detail::chunk_vector{~u64{0}, ~u64{0}});
    constexpr detail::short_encoder encode = detail::short_encoder_of<T>();
    static_assert(encode != nullptr);
    const u32 count = abi::slot_chunks * encode(bytes, 3, 17, room).slots;
    made m{};
    for (u32 c = 0; c < count; ++c) m.chunks.push_back(std::bit_cast<abi::chunk>(room[c]));
    if (count != 0) m.header = abi::message_header::decode(m.chunks[0]);
    return m;
}

/// handles: bit k: member k is the handle 100 + k, else the range at + k of k + 1 bytes. Scalar k is 7000 + k.
template <u32 Members, u32 Scalars>
made make(u32 handles)
{
    std::vector<u32> bytes(sizeof(task<Members, Scalars>) / 4);
    for (u32 k = 0; k < Members; ++k) {
        const u64 address = at + k;
        const u64 tail = (k + 1) | (handles >> k & 1 ? u64{101 + k} << detail::member_handle_shift : 0);
        std::memcpy(&bytes[4 * k], &address, 8);
        std::memcpy(&bytes[4 * k + 2], &tail, 8);
    }
    for (u32 k = 4 * Members; k < bytes.size(); ++k) bytes[k] = 7000 + k - 4 * Members; // the last one may be padding
    return make_of<task<Members, Scalars>>(bytes.data());
}

/// Calls visit(members, scalars, make) for 1 to 8 members and 0 to 10 scalar words. A struct that holds accesses has an even
/// number of words.
template <class Visit>
void for_each_layout(const Visit& visit)
{
    detail::for_each_constant<8>([&](auto m) {
        detail::for_each_constant<6>([&](auto s) { visit(m + 1, 2 * s, make<m + 1, 2 * s>); });
    });
}

} // namespace

TEST_CASE("a short message is what the struct says", "[host][short_message]")
{
    for_each_layout([](u32 members, u32 scalars, auto make) {
        for (u32 handles = 0; handles < 1u << members; ++handles) {
            // As many chunks as the entries need: a range has one, up to three handles in a row share one.
            std::vector<std::vector<u32>> entries; // members of each chunk
            for (u32 k = 0; k < members; ++k) {
                const bool handle = (handles >> k & 1) != 0;
                const bool joins = handle && !entries.empty() && entries.back().size() < 3 && (handles >> entries.back()[0] & 1);
                if (joins) entries.back().push_back(k);
                else entries.push_back({k});
            }
            const u32 needed = 1 + static_cast<u32>(entries.size()) + (scalars + 2) / 3;
            const made m = make(handles);
            INFO(members << " members, " << scalars << " scalars, handles " << handles);
            if (needed > detail::short_chunks_max) {
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
                    const auto mode = k % 2 ? access_mode::write : access_mode::read;
                    if (handles >> k & 1) {
                        REQUIRE(word == (i < entries[c].size() ? abi::encode_handle(100 + k, mode) : 0));
                        continue;
                    }
                    const u32 high = static_cast<u32>((at + k) >> 32);
                    REQUIRE(word == (i == 0   ? abi::encode_first(abi::entry_kind::range, mode, high)
                                     : i == 1 ? static_cast<u32>(at + k)
                                              : k + 1));
                }
            for (u32 k = 0; k < scalars; ++k) REQUIRE(m.chunks[1 + entries.size() + k / 3].w[k % 3] == 7000 + k);
            for (std::size_t c = needed; c < m.chunks.size(); ++c) // nothing of an earlier message
                REQUIRE((m.chunks[c].w[0] == 0 && m.chunks[c].w[1] == 0 && m.chunks[c].w[2] == 0));
        }
    });
}

namespace {
struct mixed {
    u32 x, y;
    in<u32> a;
    void* p;
    out<u32> b;
    u64 z;
    u8 last;
};
struct tiled {
    in<u32> a;
    in2d<u32> b;
};
struct bare {
    u32 a, b, c;
};
} // namespace

TEST_CASE("a short message has the scalars in the struct's order, wherever they lie between the members", "[host][short_message]")
{
    static_assert(detail::scalars_of<mixed> == 8);
    u32 words[16];
    for (u32 k = 0; k < 16; ++k) words[k] = 1 + k;
    words[5] = words[11] = 0; // the upper halves of the ranges' bytes
    const made m = make_of<mixed>(words);
    REQUIRE(m.chunks.size() == 8);
    CHECK(m.header.entries == 2);
    CHECK(m.header.scalars == 8);
    const u32 scalars[] = {1, 2, 7, 8, 13, 14, 15, 16};
    for (u32 k = 0; k < 8; ++k) CHECK(m.chunks[3 + k / 3].w[k % 3] == scalars[k]);
    CHECK(m.chunks[1].w[1] == 3);
    CHECK(m.chunks[2].w[1] == 9);
}

TEST_CASE("what is no short message is left to the other path", "[host][short_message]")
{
    CHECK(detail::short_encoder_of<tiled>() == nullptr);
    CHECK(detail::short_encoder_of<bare>() == nullptr); // declares nothing: whole memory
    CHECK(detail::short_encoder_of<task<1, 20>>() == nullptr);
    CHECK(make<1, 18>(0).chunks.size() == 8);
    CHECK(make<2, 18>(0).chunks.empty());
    // A range of 4 GiB and more takes two chunks.
    u32 words[4] = {static_cast<u32>(at), static_cast<u32>(at >> 32), 0, 1};
    CHECK(make_of<task<1, 0>>(words).chunks.empty());
    words[2] = ~0u;
    words[3] = 0;
    CHECK(make_of<task<1, 0>>(words).chunks.size() == 4);
}
