// The messages that are put together in one go, of a task in one part and of a crossing one and its stand-ins, say what the task's
// accesses say, each in its part; and they are the bytes that the other way makes, chunk by chunk.
#include "host/located_accesses.hpp"
#include "api_tasks.hpp"
#include "host/partitioned_core.hpp"
#include "trace_catch.hpp"
#include "wrapped_backend.hpp"
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

using namespace slipstream;
using namespace slipstream::tests;
using host::located_accesses;

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

/// Access k reads, or writes if k is odd: 1 + k bytes at `at` + k, or handle 100 + k.
entry entry_of(u32 k, bool handle, access_mode mode) { return handle ? entry{mode, 100 + k, 0} : entry{mode, at + k, 1 + k}; }

/// The first `members` of them are the struct's, the others declared.
located_accesses accesses_of(u32 count, u32 members, u32 handles, const std::array<u32, 6>& parts)
{
    located_accesses out;
    out.count = count;
    out.members = members;
    for (u32 k = 0; k < count; ++k) {
        out.list[k] = {at + k, 1 + k, handles >> k & 1 ? 101 + k : 0, k % 2 ? access_mode::write : access_mode::read, parts[k]};
        out.parts |= 1u << parts[k];
    }
    out.home = parts[count > 1 ? 1 : 0]; // the first written
    return out;
}

/// Reads what was put together, chunk by chunk; the chunks of entries must be as many as the header says.
std::vector<entry> entries_of(const host::message_room& message)
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

abi::message_header header_of(const host::message_room& message)
{
    return abi::message_header::decode(std::bit_cast<abi::chunk>(message[0]));
}

void fill(host::message_room& room) { std::fill(std::begin(room), std::end(room), detail::chunk_vector{~u64{0}, ~u64{0}}); }

/// Calls visit(accesses, handles) for 2 to 6 accesses in parts 0 to 2, each a handle or a range; the struct's are all, half, none.
template <class Visit>
void for_each_task(const Visit& visit)
{
    for (u32 count = 2; count <= 6; ++count)
        for (u32 handles = 0; handles < 1u << count; ++handles) {
            std::array<u32, 6> parts{};
            for (u32 k = 0; k < count;) {
                for (const u32 members : {count, count / 2, 0u}) {
                    const located_accesses accesses = accesses_of(count, members, handles, parts);
                    if (std::popcount(accesses.parts) > 1) visit(accesses, handles);
                }
                for (k = 0; k < count && ++parts[k] == 3; ++k) parts[k] = 0;
            }
        }
}

} // namespace

TEST_CASE("a crossing task's message has all of its members, those of other parts without an effect, and what it declares at home",
          "[host][located_accesses]")
{
    const u32 scalars[] = {21, 22, 23, 24};
    abi::task_type layout{};
    layout.words = layout.scalars = 4;
    layout.bytes = sizeof scalars;
    for (u8 k = 0; k < 4; ++k) layout.scalar_offset[k] = k;
    for_each_task([&](const located_accesses& accesses, u32 handles) {
        host::message_room message;
        fill(message);
        const u32 slots = host::make_message(message, accesses, layout, scalars, 9, 17, word);
        std::vector<entry> expected;
        for (u32 k = 0; k < accesses.count; ++k) {
            const bool here = accesses.list[k].part == accesses.home;
            if (here || k < accesses.members)
                expected.push_back(entry_of(k, handles >> k & 1, here ? accesses.list[k].mode : access_mode::none));
        }
        REQUIRE(entries_of(message) == expected);
        const abi::message_header h = header_of(message);
        REQUIRE((h.blocks == 17 && h.type == 9 && h.flags == abi::flag_crossing && h.scalars == 4 && h.crossing.word == word.word));
        for (u32 k = 0; k < 4; ++k)
            REQUIRE(std::bit_cast<abi::chunk>(message[1 + h.entry_chunks() + k / 3]).w[k % 3] == scalars[k]);
        REQUIRE(slots == (h.plain_chunks() + abi::slot_chunks - 1) / abi::slot_chunks);
        for (u32 c = h.plain_chunks(); c < slots * abi::slot_chunks; ++c)
            REQUIRE((message[c][0] == 0 && message[c][1] == 0)); // nothing of an earlier message
    });
}

TEST_CASE("a stand-in's message has the accesses in its part and no blocks", "[host][located_accesses]")
{
    for_each_task([](const located_accesses& accesses, u32 handles) {
        for (u32 part = 0; part < 3; ++part) {
            if (part == accesses.home || (accesses.parts >> part & 1) == 0) continue;
            host::message_room message;
            fill(message);
            const u32 flags = part % 2 == 0 ? u32{abi::flag_counted} : 0u;
            const u32 slots = host::make_stand_in(message, accesses, part, 12, flags, word);
            std::vector<entry> expected;
            for (u32 k = 0; k < accesses.count; ++k)
                if (accesses.list[k].part == part) expected.push_back(entry_of(k, handles >> k & 1, accesses.list[k].mode));
            REQUIRE(entries_of(message) == expected);
            const abi::message_header h = header_of(message);
            REQUIRE((h.blocks == 0 && h.type == 12 && h.flags == (flags | abi::flag_crossing) && h.scalars == 0
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
struct bare {
    u32 a, b;
};
struct of_bytes {
    u8 a, b, c;
};
struct tiled {
    in<u32> a;
    in2d<u32> b;
};

constexpr u32 handles_given = 6;

/// In an engine of one part; slots 0: the task is left to the other way.
template <class T>
host::direct_size put(host::message_room& out, const T& task, const submit_options& options, u32 accesses_max = 1024)
{
    return host::put_direct<false>(out, 9, describe_task<T>(), &task, options, accesses_max, handles_given, nullptr);
}
template <class T>
bool is_put(const T& task, const submit_options& options, u32 accesses_max = 1024)
{
    host::message_room message;
    return put(message, task, options, accesses_max).slots != 0;
}

} // namespace

TEST_CASE("a crossing task's message is the task's own, but for the modes of other parts' members and the header",
          "[host][located_accesses]")
{
    constexpr u32 count = 4;
    const abi::task_type layout = describe_task<several>();
    for (u32 handles = 0; handles < 1u << count; ++handles) {
        several task{11, 12, {}, {}, 13, {}, {}, 14, 15};
        const located_accesses made = accesses_of(count, count, handles, {0, 1, 2, 0, 0, 0});
        for (u32 k = 0; k < count; ++k) {
            const located_accesses::access& a = made.list[k];
            const detail::packed_range range = detail::pack(a.address, a.bytes, a.handle_plus_one);
            std::memcpy(reinterpret_cast<unsigned char*>(&task) + 4 * layout.member_offset[k], &range, sizeof range);
        }
        detail::short_room plain;
        const u32 slots = detail::short_encoder_of<several>()(&task, 9, 17, plain).slots;
        REQUIRE(slots == 2);
        const auto same = [&](const host::message_room& message, u32 c, u64 ignored) {
            for (u32 half = 0; half < 2; ++half) REQUIRE((message[c][half] | ignored) == (plain[c][half] | ignored));
        };
        host::message_room own, crossing;
        REQUIRE(host::put_direct<false>(own, 9, layout, &task, {.blocks = 17}, 1024, 101 + count, nullptr).slots == slots);
        for (u32 c = 0; c < slots * abi::slot_chunks; ++c) same(own, c, 0);

        REQUIRE(host::make_message(crossing, made, layout, &task, 9, 17, word) == slots);
        abi::message_header expected = header_of(own);
        expected.flags = abi::flag_crossing;
        expected.crossing = word;
        REQUIRE(std::ranges::equal(header_of(crossing).encode().w, expected.encode().w));
        // first words of entries, or handles: bits 28 to 30 are the mode
        constexpr u64 modes = u64{7} << 28 | u64{7} << 60;
        for (u32 c = 1; c < slots * abi::slot_chunks; ++c) same(crossing, c, c <= expected.entry_chunks() ? modes : 0);
    }
}

TEST_CASE("handles share a chunk across members and declared accesses; home is the part of the first that is written",
          "[host][located_accesses]")
{
    const u8 part_of_handle[handles_given] = {0, 1, 2, 3, 4, 5};
    const detail::part_table table{part_of_handle, handles_given, nullptr, 0};
    const auto handle = [](u32 index) { return data_handle{index, at, 64}; };
    several task{1, 2, handle(0), handle(1), 3, handle(2), handle(3), 4, 5};
    const std::vector<declared_access> declared{on(access_mode::read, handle(4)), on(access_mode::write, handle(5))};
    const abi::task_type layout = describe_task<several>();
    host::message_room message;
    const host::direct_size found
        = host::put_direct<true>(message, 9, layout, &task, {.accesses = declared}, 6, handles_given, &table);
    CHECK((found.slots == 0 && found.parts == 0x3f && found.crosses()));
    located_accesses accesses;
    accesses.gather(layout, &task, {.accesses = declared}, table);
    CHECK((accesses.count == 6 && accesses.members == 4 && accesses.home == 1 && accesses.parts == 0x3f));
    REQUIRE(put(message, task, {.accesses = declared}, 6).slots == 2);
    CHECK(header_of(message).entry_chunks() == 2);
    CHECK(entries_of(message).size() == 6);
}

TEST_CASE("what only the other way can say is left to it", "[host][located_accesses]")
{
    const data_handle handle{0, at, 64}, tile_handle{1, at, 64, 4, 128};
    const bare none{1, 2};
    const declared_access range = raw_access(access_mode::read, &none, 8);
    CHECK(is_put(none, {.accesses = range}));
    CHECK(is_put(of_bytes{}, {.accesses = range}));
    CHECK(is_put(none, {.accesses = on(access_mode::read, tile_handle)}));
    CHECK(is_put(none, {.accesses = raw_access(access_mode::none, nullptr, 0)}));
    CHECK(is_put(none, {.order = ordering::no_access}));
    CHECK(is_put(tiled{handle, tile_handle}, {}));
    CHECK(is_put(tiled{handle, {nullptr, 1, 4, 64}}, {}));

    CHECK_FALSE(is_put(none, {})); // whole memory
    CHECK_FALSE(is_put(none, {.accesses = range, .order = ordering::whole_memory}));
    CHECK_FALSE(is_put(none, {.after = task_handle{0, 0}, .accesses = range}));
    CHECK_FALSE(is_put(none, {.accesses = range, .name = "named"}));
    CHECK_FALSE(is_put(none, {.blocks = 0, .accesses = range}));
    CHECK_FALSE(is_put(none, {.blocks = 1u << 31, .accesses = range}));
    CHECK(is_put(none, {.blocks = (1u << 31) - 1, .accesses = range}));
    CHECK_FALSE(is_put(none, {.accesses = tile(access_mode::read, &none, 4, 2, 64)}));
    CHECK(is_put(none, {.accesses = tile(access_mode::read, &none, 4, 1, 64)}));
    CHECK_FALSE(is_put(none, {.accesses = raw_access(access_mode::read, &none, u64{1} << 32)}));
    CHECK(is_put(none, {.accesses = raw_access(access_mode::read, &none, (u64{1} << 32) - 1)}));
    CHECK_FALSE(is_put(tiled{handle, {nullptr, 2, 4, 64}}, {}));

    const std::vector<declared_access> many(host::short_accesses_max, range);
    const marker_task nothing;
    CHECK(is_put(nothing, {.accesses = many}));
    CHECK(is_put(nothing, {.accesses = many}, host::short_accesses_max));
    CHECK_FALSE(is_put(nothing, {.accesses = many}, host::short_accesses_max - 1)); // becomes a whole-memory task
    CHECK_FALSE(is_put(none, {.accesses = many})); // no chunk is left for scalars
    CHECK_FALSE(is_put(tiled{handle, tile_handle}, {.accesses = many}));

    const data_handle unknown{handles_given, at, 64};
    CHECK_FALSE(is_put(none, {.accesses = on(access_mode::read, unknown)}));

    // In an engine of several parts: nothing lies nowhere, and what lies in no pool is looked up.
    detail::part_table table{};
    table.parts = 2;
    for (u64 p = 0; p < 2; ++p) table.pools[p] = {at + 4096 * p, 4096};
    const auto parts_of = [&](u64 begin, u64 bytes) {
        host::message_room message;
        const declared_access a = raw_access(access_mode::read, reinterpret_cast<const void*>(begin), bytes);
        return host::put_direct<true>(message, 9, describe_task<bare>(), &none, {.accesses = a}, 1024, 0, &table);
    };
    CHECK((parts_of(at + 4096, 64).slots == 1 && parts_of(at + 4096, 64).parts == 2));
    CHECK((parts_of(at + 4095, 1).slots == 1 && parts_of(at + 4095, 1).parts == 1));
    CHECK((parts_of(at + 4095, 2).slots == 0 && parts_of(at + 4095, 2).parts == 0));
    CHECK(parts_of(at - 1, 1).slots == 0);
    CHECK(parts_of(at, 0).slots == 0);
}

namespace {

constexpr u32 parts_most = 3;
constexpr u64 pool_bytes = (1u << 20) - 256; ///< nothing else of an engine is as large
/// The same addresses for both engines; no body looks at it.
alignas(256) unsigned char pools[parts_most][pool_bytes];
alignas(256) unsigned char placed[parts_most][4096]; ///< the last one is not, so that it is part 0's

/// Says where the rings of an engine are, and lets it have the pool above.
class shown_backend final : public wrapped_backend {
public:
    shown_backend(std::unique_ptr<host::backend> inner, std::vector<const unsigned char*>& rings)
        : wrapped_backend(std::move(inner)), rings_(rings)
    {
    }
    void* take_pinned(std::size_t bytes) override
    {
        void* const taken = wrapped_backend::take_pinned(bytes);
        if (!seen_) rings_.push_back(static_cast<const unsigned char*>(taken)); // they are taken first
        seen_ = true;
        return taken;
    }
    void* take_device(std::size_t bytes) override
    {
        return bytes == pool_bytes ? pools[rings_.size() - 1] : wrapped_backend::take_device(bytes);
    }

private:
    std::vector<const unsigned char*>& rings_;
    bool seen_ = false;
};

/// An engine, paused, of whose rings all bytes can be seen.
template <class Core>
struct shown_engine {
    std::vector<const unsigned char*> rings; ///< outlives the core
    Core core;

    shown_engine(const config& c, const kernel_image& image)
        : core(c, image, host::beginning{.around = [this](std::unique_ptr<host::backend> inner) {
                   return std::make_unique<shown_backend>(std::move(inner), rings);
               }})
    {
        core.pause();
        if constexpr (std::is_same_v<Core, host::partitioned_core>)
            for (u32 p = 0; p + 1 < parts_most; ++p) core.place(placed[p], sizeof placed[p], p);
    }
};

/// Of members in any order with scalars between them; one without members is of any size.
abi::task_type random_type(std::mt19937_64& random)
{
    abi::task_type out{};
    out.members = static_cast<u8>(random() % 2 * (random() % 6));
    u32 words = 0;
    const auto add_scalars = [&](u64 count) {
        for (; count > 0; --count) out.scalar_offset[out.scalars++] = static_cast<u8>(words++);
    };
    for (u32 k = 0; k < out.members; ++k) {
        add_scalars(random() % 3);
        const bool rect = random() % 4 == 0;
        out.rect_mask = static_cast<u16>(out.rect_mask | (rect ? 1u << k : 0u));
        out.member_mode[k] = static_cast<u8>(1 + random() % 3);
        out.member_offset[k] = static_cast<u8>(words);
        words += rect ? 6 : 4;
    }
    add_scalars(random() % 20 == 0 ? abi::task_words_max - words : random() % 8);
    out.words = static_cast<u8>(words);
    out.bytes = static_cast<u16>(4 * words - (out.members == 0 && words != 0 ? random() % 4 : 0));
    return out;
}

/// Random tasks for two engines that have the same handles.
struct random_tasks {
    std::mt19937_64 random;
    std::vector<abi::task_type> table;
    std::vector<data_handle> handles;
    u32 words[abi::task_words_max] = {};
    std::vector<declared_access> declared;

    declared_access access()
    {
        const auto mode = static_cast<access_mode>(random() % 4);
        if (random() % 2 == 0) return on(mode, handles[random() % handles.size()]);
        const u64 in = 64 * (random() % 16), kind = random() % 12;
        const u64 part = random() % parts_most;
        unsigned char* const at = (random() % 4 == 0 ? placed[part] : pools[part]) + in;
        if (kind == 0) return raw_access(mode, at, 0);
        if (kind == 1) return tile(mode, at, 16, 1 + random() % 3, 64);
        if (kind == 2) return raw_access(mode, at, (u64{1} << 32) + random() % 2);
        if (kind == 3) return raw_access(mode, pools[0] + pool_bytes - 64, 128); // the end of one, and the next
        return raw_access(mode, at, 1 + random() % 100);
    }
    void fill_task(const abi::task_type& layout)
    {
        for (u32& w : words) w = static_cast<u32>(random());
        for (u32 k = 0; k < layout.members; ++k) {
            const bool rect = (layout.rect_mask >> k & 1) != 0;
            declared_access a = access();
            if (rect && a.rows > 1 && a.bytes >> 32 != 0) a.rows = 1; // there is no such member
            const detail::packed_range range = detail::pack(a.address, a.bytes, a.handle_plus_one);
            std::memcpy(&words[layout.member_offset[k]], &range, sizeof range);
            const u32 rows_and_pitch[] = {static_cast<u32>(a.rows), static_cast<u32>(a.pitch)};
            if (rect) std::memcpy(&words[layout.member_offset[k] + 4], rows_and_pitch, sizeof rows_and_pitch);
        }
    }
    /// The next task's options; its type and struct are in the other members.
    submit_options next(u32& type, const std::vector<task_handle>& before)
    {
        type = static_cast<u32>(random() % table.size());
        fill_task(table[type]);
        declared.clear();
        const u64 count = random() % 10 == 0 ? random() % 40 : random() % 6;
        for (u64 k = 0; k < count; ++k) declared.push_back(access());
        submit_options o;
        o.blocks = static_cast<u32>(1 + random() % 3);
        o.accesses = declared;
        if (const u64 order = random() % 20; order < 5) o.order = order == 0 ? ordering::whole_memory : ordering::no_access;
        if (!before.empty() && random() % 20 == 0) o.after = before[random() % before.size()];
        return o;
    }
};

/// Submits the same to an engine as it is and to one where every task has a name, which only the way chunk by chunk can say,
/// and which does not go over the bus.
template <class Core>
void check_same_bytes(u32 parts, u64 seed)
{
    random_tasks tasks{std::mt19937_64(seed), {}, {}, {}, {}};
    for (u32 t = 0; t < 12; ++t) tasks.table.push_back(random_type(tasks.random));
    tasks.table.push_back(describe_task<marker_task>()); // what stand-ins are
    const std::vector<detail::short_encoder> no_encoders(tasks.table.size());
    const std::vector<kernel_image::host_body> bodies(tasks.table.size(), [](const void*, host_block&) {});
    const std::vector<const char*> names(tasks.table.size(), "random");
    const std::vector<u32> shared(tasks.table.size());
    const kernel_image image{static_cast<u32>(tasks.table.size()), tasks.table.data(), no_encoders.data(), bodies.data(),
                             names.data(), shared.data(), nullptr, false};
    config c = host_config();
    c.parts = parts;
    c.host_workers = parts;
    c.memory_bytes = pool_bytes;
    c.ring_slots = 4096;
    c.accesses_max = 36;
    c.handles_max = 64;
    shown_engine<Core> quick(c, image), other(c, image);
    for (u32 p = 0; p < parts_most; ++p)
        for (u64 k = 0; k < 4; ++k) { // away from the ranges, some of them tiles
            unsigned char* const at = (k == 3 ? placed[p] : pools[p]) + 2048 + 256 * k;
            tasks.handles.push_back(quick.core.register_range(at, 16, k == 2 ? 4 : 1, k == 2 ? 64 : 0));
            REQUIRE(other.core.register_range(at, 16, k == 2 ? 4 : 1, k == 2 ? 64 : 0).index == tasks.handles.back().index);
        }
    std::vector<task_handle> all;
    const auto bytes_are_the_same = [&] {
        REQUIRE((quick.rings.size() == parts && other.rings.size() == parts));
        for (u32 p = 0; p < parts; ++p)
            if (std::memcmp(quick.rings[p], other.rings[p], u64{c.ring_slots} * sizeof(abi::chunk) * abi::slot_chunks) != 0)
                return false;
        return true;
    };
    const auto part = [](Core& core, [[maybe_unused]] u32 p) -> host::runtime_core& {
        if constexpr (std::is_same_v<Core, host::partitioned_core>) return core.core(p);
        else return core;
    };
    for (u32 i = 0; i < 200; ++i) {
        u32 type = 0;
        submit_options o = tasks.next(type, all);
        INFO("task " << i << " of type " << type);
        task_handle handle, expected;
        REQUIRE(quick.core.submit(type, tasks.words, o, true, handle) == submit_status::submitted);
        o.name = "said chunk by chunk";
        REQUIRE(other.core.submit(type, tasks.words, o, true, expected) == submit_status::submitted);
        REQUIRE(handle == expected);
        for (u32 p = 0; p < parts; ++p)
            REQUIRE(part(quick.core, p).unordered_end(0) == part(other.core, p).unordered_end(0));
        if (i % 20 == 19) REQUIRE(bytes_are_the_same());
        all.push_back(handle);
    }
    quick.core.resume();
    other.core.resume();
}

} // namespace

TEST_CASE("whichever way a task takes, the same bytes are in the rings", "[host][located_accesses]")
{
    in_time(60, [] {
        const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
        for (u64 seed = given != 0 ? given : 1; seed <= (given != 0 ? given : 12); ++seed) {
            INFO("SLIPSTREAM_SEED=" << seed);
            check_same_bytes<host::runtime_core>(1, seed);
            check_same_bytes<host::partitioned_core>(2, seed);
            check_same_bytes<host::partitioned_core>(parts_most, seed);
        }
    });
}
