// The submission ring from both ends: ring_writer here, ingest there.
#include "device_engine.hpp"
#include "host/ring_writer.hpp"
#include "trace_catch.hpp"
#include <array>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;
using device::order;
using device::scope;

namespace {

struct plain_task {
    in<u32> x;
    u32 a;
    out2d<u32> y;
    u64 b;
    template <class B> void operator()(B&) const {}
};

constexpr auto never = [] { return false; };

struct ring_test {
    explicit ring_test(const engine_shape& shape)
        : engine(shape, {describe_task<plain_task>()}), ingest(engine.m, engine.s), decoded(engine.s.decoded_queue()),
          freed(engine.s.free_queue())
    {
        for (u32 r = 0; r < shape.rings; ++r)
            writers.emplace_back(engine.m.rings + r * shape.ring_slots, shape.ring_slots, engine.m.ring_pages + r);
    }
    /// Writes a message of after entries and ranges; returns false when the ring filled up on the way.
    bool send(u32 ring, const std::vector<std::pair<u32, u64>>& after, u32 ranges, u32 blocks = 1)
    {
        auto& w = writers[ring];
        // Ranges only, as accesses beyond the members: a type with two members takes the first two.
        bool ok = w.put(abi::message_header{blocks, 0, 0, static_cast<u32>(after.size()) + ranges, 3}.encode(), never);
        for (const auto& [r, p] : after)
            ok = ok && w.put({{abi::encode_first(abi::entry_kind::after, access_mode::none, r), static_cast<u32>(p),
                               static_cast<u32>(p >> 32), 0}}, never);
        for (u32 i = 0; i < ranges; ++i)
            ok = ok && w.put({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0x7f), 64 * i, 8, 0}}, never);
        return ok && w.put({{1, 2, 3, 0}}, never) && w.finish(never);
    }
    std::vector<u32> take_decoded()
    {
        std::vector<u32> out;
        while (decoded.available(engine.team)) {
            out.push_back(decoded.pop());
            engine.resolve(out.back());
        }
        decoded.release(engine.team);
        return out;
    }
    void free_slot(u32 slot) { freed.push(engine.team, slot); }

    hand_made_engine engine;
    device::ingest<P> ingest;
    device::queue_consumer<P, u16, edge::A3_decoded, edge::R3_taken> decoded;
    device::queue_producer<P, u16, edge::R2_slot_freed, edge::A2_slot_taken> freed;
    std::vector<host::ring_writer<P>> writers;
};

} // namespace

TEST_CASE("a full ring refuses and leaves position and slots unchanged", "[device][ring]")
{
    for (const u32 slots : {4u, 8u, 64u}) {
        ring_test t({.ring_slots = slots});
        auto& w = t.writers[0];
        for (u32 i = 0; i < slots; ++i)
            for (u32 c = 0; c < abi::slot_chunks; ++c) REQUIRE(w.put({{i, c, 0, 0}}, never));
        REQUIRE(w.position() == slots);
        std::vector<abi::chunk> before;
        for (u32 i = 0; i < slots; ++i)
            for (const auto& c : t.engine.m.rings[i].chunks) before.push_back(c.raw);
        u32 asked = 0;
        CHECK_FALSE(w.has_room(1));
        CHECK_FALSE(w.put({{99, 99, 99, 0}}, [&] { return ++asked < 3; }));
        CHECK(asked == 3);
        CHECK(w.position() == slots);
        u32 k = 0;
        for (u32 i = 0; i < slots; ++i)
            for (const auto& c : t.engine.m.rings[i].chunks) REQUIRE(std::memcmp(&c.raw, &before[k++], 16) == 0);
        // The reader gives two slots back: exactly two fit.
        P::store(edge::R1_ring_consumed, t.engine.m.ring_pages[0].consumed, u64{2}, order::release, scope::system);
        CHECK(w.has_room(2));
        CHECK_FALSE(w.has_room(3));
        CHECK(w.put({{7, 7, 7, 0}}, never));
        CHECK(t.engine.m.rings[0].chunks[0].raw.w[3] == abi::lap_tag(slots, slots));
    }
}

TEST_CASE("finish fills the slot up and an empty finish writes nothing", "[device][ring]")
{
    ring_test t({.ring_slots = 4});
    auto& w = t.writers[0];
    CHECK(w.finish(never));
    CHECK(w.position() == 0);
    CHECK(w.put({{1, 2, 3, 0}}, never));
    CHECK(w.finish(never));
    CHECK(w.position() == 1);
    for (const auto& c : t.engine.m.rings[0].chunks) CHECK(c.raw.w[3] == 1);
}

TEST_CASE("a message comes out of the ring as the struct that went in, at every ring size and offset", "[device][ring]")
{
    for (const u32 slots : {4u, 8u, 16u}) {
        ring_test t({.window = 32, .ring_slots = slots});
        u32 x[4] = {}, y[16] = {};
        // g++ does not follow addresses through halves of 32 bits, and "knows" that none comes back
        asm volatile("" : : "r"(x), "r"(y) : "memory");
        for (u32 i = 0; i < 200; ++i) {
            INFO("ring " << slots << " message " << i);
            const plain_task task{{x, 4}, 1000 + i, {y, 2, 3, 32}, u64{i} << 40 | 5};
            auto& w = t.writers[0];
            u32 words[sizeof(task) / 4];
            std::memcpy(words, &task, sizeof task);
            const auto type = describe_task<plain_task>();
            REQUIRE(w.put(abi::message_header{i + 1, 0, 0, 2, type.scalars}.encode(), never));
            const u64 xa = reinterpret_cast<u64>(x), ya = reinterpret_cast<u64>(y);
            REQUIRE(w.put({{abi::encode_first(abi::entry_kind::range, access_mode::read, static_cast<u32>(xa >> 32)),
                            static_cast<u32>(xa), 16, 0}}, never));
            REQUIRE(w.put({{abi::encode_first(abi::entry_kind::rect, access_mode::write, static_cast<u32>(ya >> 32)),
                            static_cast<u32>(ya), 12, 0}}, never));
            REQUIRE(w.put({{2, 32, 0, 0}}, never));
            for (u32 k = 0; k < type.scalars; k += 3) {
                abi::chunk c{};
                for (u32 j = 0; j < 3 && k + j < type.scalars; ++j) c.w[j] = words[type.scalar_offset[k + j]];
                REQUIRE(w.put(c, never));
            }
            REQUIRE(w.finish(never));
            while (t.ingest.step(t.engine.team)) {}
            const auto got = t.take_decoded();
            REQUIRE(got.size() == 1);
            auto& record = t.engine.m.records[got[0]];
            REQUIRE((P::get(record.blocks) == i + 1 && P::get(t.engine.s.task_id[got[0]]) == i
                     && P::get(t.engine.s.heads[got[0]]).slot_and_type == got[0]));
            REQUIRE((P::get(t.engine.s.heads[got[0]]).blocks == i + 1
                     && P::get(t.engine.s.heads[got[0]]).identity == device::identity_of(i)));
            plain_task back;
            std::memcpy(static_cast<void*>(&back), record.words, sizeof back);
            REQUIRE((back.a == task.a && back.b == task.b && back.x.data() == x && back.x.size() == 4));
            REQUIRE((back.y.data() == y && back.y.rows() == 2 && back.y.columns() == 3 && back.y.pitch() == 32));
            const auto entries = t.engine.entries_of(got[0]);
            REQUIRE(entries.size() == 2);
            const auto read = entries[0], write = entries[1];
            REQUIRE((read.begin() == xa && read.end() == xa + 16 && read.reads() && !read.writes()));
            REQUIRE((write.begin() == ya && write.rows() == 2 && write.width() == 12 && !write.reads()));
            t.free_slot(got[0]);
        }
        CHECK(t.ingest.rings_empty());
    }
}

TEST_CASE("a message longer than its ring streams through it, a slot at a time", "[device][ring]")
{
    ring_test t({.window = 32, .ring_slots = 4, .pool_blocks = 256});
    auto& w = t.writers[0];
    const auto feed = [&] {
        t.ingest.step(t.engine.team);
        return true;
    };
    REQUIRE(w.put(abi::message_header{1, 0, 0, 1000, 0}.encode(), feed));
    for (u32 i = 0; i < 1000; ++i)
        REQUIRE(w.put({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0x7f), 64 * i, 8, 0}}, feed));
    REQUIRE(w.finish(feed));
    while (t.ingest.step(t.engine.team)) {}
    const auto got = t.take_decoded();
    REQUIRE(got.size() == 1);
    const auto entries = t.engine.entries_of(got[0]);
    REQUIRE(entries.size() == 1000);
    for (u32 i = 0; i < 1000; ++i) REQUIRE((entries[i].begin() & 0xffffffff) == 64 * i);
    u32 blocks = 0;
    for (u32 b = P::get(t.engine.s.first_block[got[0]]); b != device::no_block; b = P::get(t.engine.s.pool_next[b])) ++blocks;
    CHECK(blocks == 1000 / device::pool_block_entries);
    CHECK(*t.engine.s.pool_free_count == t.engine.m.n.pool_blocks - blocks);
}

TEST_CASE("a ring whose head names a task of another ring waits alone, and goes on once that one is handed over", "[device][ring]")
{
    ring_test t({.rings = 3, .ring_slots = 16});
    REQUIRE(t.send(0, {{1, 1}}, 1)); // waits for the second task of ring 1
    REQUIRE(t.send(0, {}, 1));
    REQUIRE(t.send(1, {}, 1));
    REQUIRE(t.send(2, {}, 1));
    while (t.ingest.step(t.engine.team)) {}
    CHECK(t.take_decoded().size() == 2);
    CHECK_FALSE(t.ingest.rings_empty());
    REQUIRE(t.send(1, {}, 1));
    while (t.ingest.step(t.engine.team)) {}
    const auto got = t.take_decoded();
    REQUIRE(got.size() == 3);
    CHECK(P::get(t.engine.s.task_id[got[0]]) == (u64{1} << 56 | 1));
    CHECK(P::get(t.engine.s.task_id[got[1]]) == 0);
    CHECK(P::get(t.engine.s.task_id[got[2]]) == 1);
    CHECK(t.ingest.rings_empty());
}

TEST_CASE("all window slots taken: ingest waits, takes nothing in part, and is not dry", "[device][ring]")
{
    ring_test t({.window = 32, .window_used = 16, .ring_slots = 64});
    for (u32 i = 0; i < 20; ++i) REQUIRE(t.send(0, {}, 1));
    while (t.ingest.step(t.engine.team)) {}
    const auto got = t.take_decoded();
    CHECK(got.size() == 16);
    CHECK_FALSE(t.ingest.step(t.engine.team));
    CHECK_FALSE(t.ingest.rings_empty());
    for (u32 i = 0; i < 4; ++i) t.free_slot(got[i]);
    while (t.ingest.step(t.engine.team)) {}
    CHECK(t.take_decoded().size() == 4);
    CHECK_FALSE(t.ingest.rings_empty()); // nobody looks while nothing could be taken
    t.free_slot(got[4]);
    CHECK_FALSE(t.ingest.step(t.engine.team));
    CHECK(t.ingest.rings_empty());
}

TEST_CASE("pool blocks held by finished tasks come back when a message needs them", "[device][ring]")
{
    // Three tasks take all pool blocks and finish; the next one needs as many. A free slot is in hand all the while.
    ring_test t({.window = 32, .window_used = 16, .ring_slots = 1024, .pool_blocks = 24});
    for (u32 i = 0; i < 4; ++i) REQUIRE(t.send(0, {}, 8 * device::pool_block_entries));
    while (t.ingest.step(t.engine.team)) {}
    const auto got = t.take_decoded();
    REQUIRE(got.size() == 3);
    for (const u32 slot : got) t.free_slot(slot);
    for (u32 i = 0; i < 100; ++i) t.ingest.step(t.engine.team);
    CHECK(t.take_decoded().size() == 1);
}

TEST_CASE("a message of many pool blocks comes to its turn beside rings that take each block as it comes back", "[device][ring]")
{
    // Rings 0 and 2 are never empty, and each of their tasks takes a block; what ring 1 asks for is never free by itself.
    ring_test t({.window = 32, .rings = 3, .ring_slots = 64, .pool_blocks = 24});
    const auto refill = [&] {
        for (const u32 r : {0u, 2u})
            while (t.writers[r].has_room(2)) REQUIRE(t.send(r, {}, 1));
    };
    refill();
    std::vector<u32> held;
    const auto take = [&] {
        bool large = false;
        for (const u32 slot : t.take_decoded()) {
            large |= P::get(t.engine.s.task_id[slot]) >> 56 == 1;
            held.push_back(slot);
        }
        return large;
    };
    while (held.size() < 24) {
        t.ingest.step(t.engine.team);
        take();
    }
    for (u32 round = 0; round < 3; ++round) {
        REQUIRE(t.send(1, {}, 10 * device::pool_block_entries));
        bool seen = false;
        u32 finished = 0;
        for (; finished < 200 && !seen; ++finished) { // a task ends, and its block comes back
            t.free_slot(held.front());
            held.erase(held.begin());
            for (u32 i = 0; i < 2 * P::look_at_rings; ++i) t.ingest.step(t.engine.team);
            seen = take();
            refill();
        }
        CHECK(seen);
        CHECK(finished <= 24 + 10);
    }
    const size_t before = held.size();
    while (held.size() > 8) {
        t.free_slot(held.front());
        held.erase(held.begin());
    }
    for (u32 i = 0; i < 8; ++i) t.ingest.step(t.engine.team);
    take();
    CHECK(held.size() > before / 2); // nobody is kept from his turn any more
}

TEST_CASE("in an engine of several parts no ring keeps another from beginning: tasks in flight may wait for what that one brings",
          "[device][ring]")
{
    ring_test t({.window = 32, .rings = 2, .ring_slots = 64, .pool_blocks = 24, .parts = 2});
    const auto refill = [&] {
        while (t.writers[0].has_room(2)) REQUIRE(t.send(0, {}, 1));
    };
    std::vector<u32> held;
    const auto take_all = [&] {
        for (u32 i = 0; i < 2 * P::look_at_rings; ++i) t.ingest.step(t.engine.team);
        for (const u32 slot : t.take_decoded()) held.push_back(slot);
        refill();
    };
    refill();
    while (held.size() < 24) take_all();
    REQUIRE(t.send(1, {}, 10 * device::pool_block_entries)); // never so many at once
    for (u32 i = 0; i < 60; ++i) {
        t.free_slot(held.front());
        held.erase(held.begin());
        take_all();
        REQUIRE(held.size() == 24);
    }
}

TEST_CASE("random messages over random rings: every one is decoded once, in order, and the pool ends full", "[device][ring]")
{
    for (u64 seed = 1; seed <= 8; ++seed) {
        INFO("seed " << seed);
        std::mt19937_64 random(seed);
        const u32 rings = 1 + random() % 4;
        constexpr u32 blocks_max = 56; // of a message: 199 accesses, rounded up
        ring_test t({.window = 32, .window_used = 16 + 16 * static_cast<u32>(random() % 2), .rings = rings,
                     .ring_slots = 4u << random() % 3, .pool_blocks = 5 * blocks_max});
        std::vector<u64> next(rings);
        std::vector<u32> held;
        u32 decoded = 0;
        const auto turn = [&] {
            t.ingest.step(t.engine.team);
            for (const u32 slot : t.take_decoded()) {
                const u64 id = P::get(t.engine.s.task_id[slot]);
                REQUIRE((id & 0xffffffffffffff) == next[id >> 56]++);
                held.push_back(slot);
                ++decoded;
            }
            // Finish them in any order; the pool serves any five of them.
            while (held.size() > 3 || (!held.empty() && random() % 2)) {
                const auto pick = random() % held.size();
                t.free_slot(held[pick]);
                held.erase(held.begin() + static_cast<long>(pick));
            }
            return true;
        };
        for (u32 i = 0; i < 500; ++i) {
            auto& w = t.writers[random() % rings];
            const u32 ranges = random() % 8 == 0 ? static_cast<u32>(random() % 200) : static_cast<u32>(random() % 6);
            u32 tries = 0;
            const auto wait = [&] { return turn() && ++tries < 10000; };
            bool ok = w.put(abi::message_header{1, 0, 0, ranges, 1}.encode(), wait);
            for (u32 k = 0; k < ranges && ok; ++k)
                ok = w.put({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0x7f), 64 * k, 8, 0}}, wait);
            ok = ok && w.put({{1, 0, 0, 0}}, wait) && w.finish(wait);
            REQUIRE(ok);
        }
        for (u32 i = 0; i < 2000 && decoded < 500; ++i) turn();
        CHECK(decoded == 500);
        for (const u32 slot : held) t.free_slot(slot);
        t.ingest.step(t.engine.team);
        CHECK(*t.engine.s.pool_free_count == t.engine.m.n.pool_blocks);
    }
}

namespace {

/// One message in words, before it is packed into chunks.
struct wire_message {
    struct item {
        u32 w[3];
        u32 words; ///< 1: a handle; 3: a chunk of its own
    };
    std::vector<item> entries;
    std::vector<u32> scalars;
    u32 blocks = 1;
    u32 flags = 0;

    std::vector<abi::chunk> entry_chunks() const
    {
        std::vector<abi::chunk> out;
        u32 run = 0; // handles in the last chunk
        for (const item& e : entries) {
            if (e.words == 1 && run % 3 != 0) {
                out.back().w[run % 3] = e.w[0];
                ++run;
                continue;
            }
            out.push_back({{e.w[0], e.words == 1 ? 0 : e.w[1], e.words == 1 ? 0 : e.w[2], 0}});
            run = e.words == 1;
        }
        return out;
    }
    std::vector<abi::chunk> chunks(bool plain) const
    {
        const auto middle = entry_chunks();
        std::vector<abi::chunk> out;
        out.push_back(abi::message_header{blocks, 0, flags, static_cast<u32>(entries.size()), static_cast<u32>(scalars.size()),
                                          plain ? static_cast<u32>(middle.size()) + 1 : 0}
                          .encode());
        out.insert(out.end(), middle.begin(), middle.end());
        for (u32 i = 0; i < scalars.size(); i += 3) {
            abi::chunk c{};
            for (u32 j = 0; j < 3 && i + j < scalars.size(); ++j) c.w[j] = scalars[i + j];
            out.push_back(c);
        }
        return out;
    }
    u32 slots() const { return static_cast<u32>((chunks(true).size() + abi::slot_chunks - 1) / abi::slot_chunks); }
};

bool put_all(host::ring_writer<P>& w, const std::vector<abi::chunk>& chunks)
{
    bool ok = true;
    for (const auto& c : chunks) ok = ok && w.put(c, never);
    return ok && w.finish(never);
}

} // namespace

TEST_CASE("a message decoded at once and the same one decoded chunk by chunk leave the same task", "[device][ring]")
{
    for (u64 seed = 1; seed <= 30; ++seed) {
        std::mt19937_64 random(seed);
        const u32 ring_slots = std::vector<u32>{4, 8, 64}[seed % 3];
        INFO("seed " << seed << " ring " << ring_slots);
        const engine_shape shape{.window = 32, .ring_slots = ring_slots, .pool_blocks = 1024};
        ring_test at_once(shape), by_chunk(shape);
        for (ring_test* t : {&at_once, &by_chunk})
            for (u32 h = 0; h < shape.handles; ++h)
                t->engine.handles[h] = h % 3 ? abi::handle_entry{0x1000 + 0x100 * h, 64 + h, 0, 0, 0}
                                             : abi::handle_entry{0x1000 + 0x100 * h, 16 + h, 3, 128, 0};
        const auto below = [&](u64 n) { return static_cast<u32>(random() % n); };
        const u32 slots_max = std::min(abi::message_plain_slots, ring_slots);
        u64 number = 0;
        u32 longest = 0;
        const auto draw = [&] {
            wire_message m;
            m.blocks = 1 + below(1000);
            m.flags = below(4) == 0 ? u32{abi::flag_no_access} : below(8) == 0 ? u32{abi::flag_whole_memory} : 0u;
            const u32 entries = below(4) == 0 ? below(60) : below(6);
            const u32 afters = number == 0 || below(3) ? 0 : below(entries + 1);
            for (u32 i = 0; i < below(9); ++i) m.scalars.push_back(static_cast<u32>(random()));
            for (u32 i = 0; i < entries; ++i) {
                const auto mode = static_cast<access_mode>(1 + below(3));
                const u64 position = number == 0 ? 0 : number - 1 - below(std::min<u64>(number, 50));
                const bool handle = below(3) != 0;
                wire_message::item e{};
                if (i < afters)
                    e = {{abi::encode_first(abi::entry_kind::after, access_mode::none, 0), static_cast<u32>(position), 0}, 3};
                else if (handle)
                    e = {{abi::encode_handle(below(shape.handles), mode), 0, 0}, 1};
                else
                    e = {{abi::encode_first(abi::entry_kind::range, mode, below(0x1ffffff)), static_cast<u32>(random()),
                          below(5) ? static_cast<u32>(random()) : 0u}, 3};
                m.entries.push_back(e);
                if (m.slots() > slots_max) { // at the limit: this one was too many
                    m.entries.pop_back();
                    break;
                }
            }
            return m;
        };
        for (u32 batch = 0; batch < 150; ++batch) {
            // As many as fit, so that messages begin anywhere in what is fetched and run over its end.
            u32 room = ring_slots;
            std::vector<wire_message> sent;
            for (;;) {
                const wire_message m = draw();
                if (m.slots() > room || sent.size() == 12) break;
                room -= m.slots();
                longest = std::max(longest, m.slots());
                REQUIRE(put_all(at_once.writers[0], m.chunks(true)));
                REQUIRE(put_all(by_chunk.writers[0], m.chunks(false)));
                sent.push_back(m);
                ++number;
                if (below(3) == 0) break;
            }
            while (at_once.ingest.step(at_once.engine.team)) {}
            while (by_chunk.ingest.step(by_chunk.engine.team)) {}
            REQUIRE((at_once.ingest.rings_empty() && by_chunk.ingest.rings_empty()));
            const auto a = at_once.take_decoded(), b = by_chunk.take_decoded();
            REQUIRE(a == b);
            REQUIRE(a.size() == sent.size());
            for (u32 i = 0; i < a.size(); ++i) {
                const u32 slot = a[i];
                INFO("message " << number - sent.size() + i << ", " << sent[i].entries.size() << " entries, flags "
                                << sent[i].flags);
                const auto &x = at_once.engine, &y = by_chunk.engine;
                REQUIRE(std::memcmp(x.m.records[slot].words, y.m.records[slot].words, sizeof x.m.records[slot].words) == 0);
                REQUIRE(P::get(x.m.records[slot].blocks) == P::get(y.m.records[slot].blocks));
                REQUIRE(P::get(x.s.task_id[slot]) == P::get(y.s.task_id[slot]));
                const auto hx = P::get(x.s.heads[slot]), hy = P::get(y.s.heads[slot]);
                REQUIRE((hx.slot_and_type == hy.slot_and_type && hx.identity == hy.identity && hx.blocks == hy.blocks));
                REQUIRE(hx.entries_and_flags >> 16 == hy.entries_and_flags >> 16);
                // A task that orders nothing by its accesses need not store them.
                auto ex = x.entries_of(slot), ey = y.entries_of(slot);
                const auto is_none = [](const access_entry& e) { return e.kind() == abi::entry_kind::none; };
                if (sent[i].flags & abi::flag_no_access) {
                    std::erase_if(ex, is_none);
                    std::erase_if(ey, is_none);
                    for (const auto& e : ex) REQUIRE_FALSE(e.is_memory());
                } else {
                    std::size_t real = 0;
                    for (const auto& item : sent[i].entries)
                        real += item.words == 1 || abi::kind_of(item.w[0]) == abi::entry_kind::after || item.w[2] != 0;
                    REQUIRE(static_cast<std::size_t>(std::count_if(ex.begin(), ex.end(), is_none)) == ex.size() - real);
                }
                REQUIRE(ex.size() == ey.size());
                for (u32 e = 0; e < ex.size(); ++e) REQUIRE((ex[e].head == ey[e].head && ex[e].tail == ey[e].tail));
                // And the tags say which is what.
                for (const auto* engine : {&x, &y}) {
                    const auto all = engine->entries_of(slot);
                    u32 block = P::get(engine->s.first_block[slot]);
                    for (u32 e = 0; e < all.size(); ++e) {
                        const u32 at = e % device::pool_block_entries;
                        if (e != 0 && at == 0) block = P::get(engine->s.pool_next[block]);
                        const device::pool_tag tag{P::get(engine->s.pool_tags[block])};
                        REQUIRE(tag.slot() == slot);
                        REQUIRE((tag.memory() >> at & 1) == (all[e].is_memory() ? 1u : 0u));
                        REQUIRE((tag.after() >> at & 1) == (all[e].kind() == abi::entry_kind::after ? 1u : 0u));
                    }
                    if (!all.empty()) REQUIRE(P::get(engine->s.pool_next[block]) == device::no_block);
                }
            }
            for (const u32 slot : a) {
                at_once.free_slot(slot);
                by_chunk.free_slot(slot);
            }
        }
        CHECK(longest == slots_max);
        at_once.ingest.step(at_once.engine.team);
        CHECK(*at_once.engine.s.pool_free_count == shape.pool_blocks);
    }
}

TEST_CASE("what short messages name is left for admission to resolve, but for tasks that it sees nothing of", "[device][ring]")
{
    const engine_shape shape{.window = 128, .ring_slots = 8, .pool_blocks = 1024};
    ring_test t(shape);
    for (u32 h = 0; h < shape.handles; ++h) t.engine.handles[h] = {0x1000 + 0x100 * h, 64 + h, 0, 0, 0};
    std::mt19937_64 random(7);
    const auto below = [&](u64 n) { return static_cast<u32>(random() % n); };
    u32 left = 0, resolved = 0;
    for (u32 number = 0; number < 100; ++number) { // nobody takes any: admission is far behind
        wire_message m;
        m.flags = below(6) == 0 ? u32{abi::flag_no_access} : below(6) == 0 ? u32{abi::flag_whole_memory} : 0u;
        m.scalars = {number};
        const u32 known = 1 + number * (shape.handles - 1) / 100; // new ones come all the time
        for (u32 i = 0; i < 1 + number % 5; ++i)
            m.entries.push_back({{abi::encode_handle(below(known), static_cast<access_mode>(1 + below(3))), 0, 0}, 1});
        REQUIRE(put_all(t.writers[0], m.chunks(true)));
        while (t.ingest.step(t.engine.team)) {}
        REQUIRE(t.decoded.available(t.engine.team, number + 1) == number + 1);
        const u32 slot = t.decoded.peek(number);
        const device::pool_tag tag{P::get(t.engine.s.pool_tags[P::get(t.engine.s.first_block[slot])])};
        INFO("message " << number << ", flags " << m.flags);
        REQUIRE((tag.unresolved() != 0) == (m.flags == 0));
        ++(m.flags == 0 ? left : resolved);
        if (m.flags != abi::flag_whole_memory) continue;
        const auto entries = t.engine.entries_of(slot);
        REQUIRE(entries.size() == m.entries.size());
        for (u32 e = 0; e < entries.size(); ++e) {
            const auto& h = t.engine.handles[m.entries[e].w[0] & abi::handle_index_mask];
            const auto wanted = access_entry::range(abi::mode_of(m.entries[e].w[0]), h.address, h.bytes);
            REQUIRE((entries[e].head == wanted.head && entries[e].tail == wanted.tail));
        }
    }
    CHECK((left > 30 && resolved > 10));
}

TEST_CASE("entries of every kind, in messages longer than a look and than the ring, come out as they went in", "[device][ring]")
{
    for (u64 seed = 1; seed <= 40; ++seed) {
        std::mt19937_64 random(seed);
        const auto below = [&](u64 n) { return static_cast<u32>(random() % n); };
        const u32 ring_slots = std::vector<u32>{4, 8, 64}[seed % 3];
        INFO("seed " << seed << " ring " << ring_slots);
        const engine_shape shape{.window = 32, .ring_slots = ring_slots, .pool_blocks = 1024};
        ring_test t(shape);
        for (u32 h = 0; h < shape.handles; ++h)
            t.engine.handles[h] = h % 3 ? abi::handle_entry{0x1000 + 0x100 * h, 64 + h, 0, 0, 0}
                                        : abi::handle_entry{0x1000 + 0x100 * h, 16 + h, 3, 128, 0};
        std::array<u32, 6> seen{};
        for (u32 number = 0; number < 60; ++number) {
            const u32 flags = below(5) == 0 ? u32{abi::flag_no_access} : 0u;
            const u32 count = 2 + below(below(3) ? 12 : 300);
            const u32 afters = number == 0 || below(3) ? 0 : below(40) % count;
            const u32 favourite = below(6); // of kinds: as a rule one or all in turn
            const u32 steady = 1 + below(4);
            std::vector<abi::access_entry> wanted;
            std::vector<abi::chunk> chunks(1);
            u32 run = 0; // handles in the last chunk
            for (u32 i = 0; i < count; ++i) {
                const auto mode = static_cast<access_mode>(1 + below(3));
                const u64 address = random() & ((u64{1} << abi::address_bits) - 1);
                // too wide for a rectangle as the window keeps it, or not
                const u32 bytes = 1 + below(below(2) ? 0xfffffff : 0xfffff);
                const u32 kind = below(steady) ? favourite : below(6);
                ++seen[kind];
                if (i >= afters && kind < 2) {
                    const u32 index = below(shape.handles);
                    const auto& h = t.engine.handles[index];
                    wanted.push_back(h.rows ? access_entry::rect(mode, h.address, h.bytes, h.rows, h.pitch)
                                            : access_entry::range(mode, h.address, h.bytes));
                    if (run % 3 == 0) chunks.push_back({});
                    chunks.back().w[run++ % 3] = abi::encode_handle(index, mode);
                    continue;
                }
                run = 0;
                const auto first = [&](abi::entry_kind k) {
                    return abi::encode_range(abi::encode_first(k, mode, 0), address, bytes);
                };
                if (i < afters) {
                    const u64 position = number - 1 - below(number);
                    wanted.push_back(access_entry::after(0, position));
                    chunks.push_back({{abi::encode_first(abi::entry_kind::after, access_mode::none, 0),
                                       static_cast<u32>(position), 0, 0}});
                } else if (kind == 2) {
                    const u32 rows = 2 + below(1000), pitch = bytes + below(1000);
                    wanted.push_back(access_entry::rect(mode, address, bytes, rows, pitch));
                    chunks.push_back(first(abi::entry_kind::rect));
                    chunks.push_back({{rows, pitch, 0, 0}});
                } else if (kind == 3) {
                    // The second half looks like anything.
                    const u32 high = static_cast<u32>(random()) & 0xffff;
                    const bool loose = below(2) != 0;
                    wanted.push_back(access_entry::make(loose ? abi::entry_kind::loose : abi::entry_kind::range, mode, address,
                                                        bytes | u64{high} << 32));
                    chunks.push_back(first(loose ? abi::entry_kind::loose : abi::entry_kind::long_range));
                    chunks.push_back({{high, static_cast<u32>(random()), static_cast<u32>(random()), 0}});
                } else {
                    wanted.push_back(access_entry::range(mode, address, bytes));
                    chunks.push_back(first(abi::entry_kind::range));
                }
            }
            chunks[0] = abi::message_header{1 + number, 0, flags, count, 4, 0}.encode();
            chunks.push_back({{random() % 2 ? 0xffffffffu : 1u, 0, 0xa0000000u + number, 0}}); // a, what lies behind it, b
            chunks.push_back({{7, 0, 0, 0}});

            // Written in pieces, so that entries and their halves end anywhere in what is at hand.
            const auto turn = [&] { return t.ingest.step(t.engine.team), true; };
            for (const auto& c : chunks) {
                REQUIRE(t.writers[0].put(c, turn));
                if (below(40) == 0) turn();
            }
            REQUIRE(t.writers[0].finish(turn));
            while (t.ingest.step(t.engine.team)) {}
            const auto got = t.take_decoded();
            INFO("message " << number << ", " << count << " entries, " << afters << " of them after, flags " << flags);
            REQUIRE(got.size() == 1);
            const auto& e = t.engine;
            REQUIRE(P::get(e.m.records[got[0]].blocks) == 1 + number);
            auto entries = e.entries_of(got[0]);
            REQUIRE(entries.size() == count);
            u32 block = P::get(e.s.first_block[got[0]]);
            for (u32 i = 0; i < count; ++i) {
                const u32 at = i % device::pool_block_entries;
                if (i != 0 && at == 0) block = P::get(e.s.pool_next[block]);
                const device::pool_tag tag{P::get(e.s.pool_tags[block])};
                const bool ordered = flags == 0;
                INFO("entry " << i);
                REQUIRE((tag.after() >> at & 1) == (i < afters));
                REQUIRE((tag.memory() >> at & 1) == (i >= afters && ordered));
                if (i < afters || ordered) REQUIRE((entries[i].head == wanted[i].head && entries[i].tail == wanted[i].tail));
            }
            // The struct: its members are the first two accesses.
            plain_task back;
            std::memcpy(static_cast<void*>(&back), e.m.records[got[0]].words, sizeof back);
            if (afters < count) REQUIRE(reinterpret_cast<u64>(back.x.data()) == wanted[afters].begin());
            if (afters + 1 < count) REQUIRE(reinterpret_cast<u64>(back.y.data()) == wanted[afters + 1].begin());
            REQUIRE((back.b == (u64{7} << 32 | (0xa0000000u + number))));
            t.free_slot(got[0]);
        }
        for (const u32 n : seen) CHECK(n > 0);
        t.ingest.step(t.engine.team);
        CHECK(*t.engine.s.pool_free_count == shape.pool_blocks);
    }
}

TEST_CASE("a plain message of which only a part is published is not taken", "[device][ring]")
{
    for (const u32 before : {0u, 1u, 5u}) {
        ring_test t({.window = 32, .ring_slots = 8});
        for (u32 i = 0; i < before; ++i) REQUIRE(t.send(0, {}, 1));
        wire_message m;
        m.scalars = {1, 2, 3};
        for (u32 i = 0; i < 7; ++i)
            m.entries.push_back({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0), 64 * i, 8}, 3});
        auto chunks = m.chunks(true);
        REQUIRE(m.slots() == 3);
        while (chunks.size() % abi::slot_chunks) chunks.push_back({});
        for (u32 c = 0; c < chunks.size(); ++c) {
            INFO(before << " messages before, " << c << " chunks published");
            for (u32 i = 0; i < 3; ++i) t.ingest.step(t.engine.team);
            REQUIRE(t.take_decoded().size() == (c == 0 ? before : 0));
            REQUIRE(*t.engine.s.pool_free_count == t.engine.m.n.pool_blocks - before);
            REQUIRE(*t.engine.s.free_slot_count == 32 - before);
            REQUIRE(t.engine.m.ring_pages[0].consumed.raw == before);
            REQUIRE(t.writers[0].put(chunks[c], never));
        }
        while (t.ingest.step(t.engine.team)) {}
        const auto got = t.take_decoded();
        REQUIRE(got.size() == 1);
        CHECK(t.engine.entries_of(got[0]).size() == 7);
        CHECK(t.engine.m.ring_pages[0].consumed.raw == before + 3);
    }
}

namespace {

/// Number `i` of a test: so many ranges, whose addresses say whose they are; two of them and a word of scalars fit a slot.
wire_message numbered(u32 i, u32 ranges)
{
    wire_message m;
    m.blocks = 1 + i;
    m.scalars = {i};
    for (u32 k = 0; k < ranges; ++k)
        m.entries.push_back({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0), 0x1000 * (i + 1) + 64 * k, 8}, 3});
    return m;
}

void require_numbered(const auto& t, u32 slot, u32 i, u32 ranges)
{
    INFO("message " << i);
    REQUIRE(P::get(t.engine.s.task_id[slot]) == i);
    REQUIRE(P::get(t.engine.m.records[slot].blocks) == 1 + i);
    const auto entries = t.engine.entries_of(slot);
    REQUIRE(entries.size() == ranges);
    for (u32 k = 0; k < ranges; ++k) REQUIRE(entries[k].begin() == 0x1000 * (i + 1) + 64 * k);
}

u64 slots_looked(ring_test& t)
{
    t.ingest.save(t.engine.team);
    return P::get(t.engine.m.bus[device::ring_chunks_looked]) / abi::slot_chunks;
}

} // namespace

namespace {

void pass_patterns(u32 ahead_slots)
{
    // Ranges of each message, over and over: runs of one-slot messages of different length, others at their begin, middle and end.
    const std::vector<std::vector<u32>> patterns = {{2}, {5}, {2, 5}, {1, 0, 2, 5, 1}, {5, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2},
                                                    {28, 1, 9, 0, 0, 2}};
    for (const auto& pattern : patterns)
        for (const auto& [ring_slots, window] :
             {std::pair{8u, 96u}, {64u, 96u}, {128u, 5u}, {128u, 11u}}) { // small: what was fetched is kept
            INFO("pattern of " << pattern.size() << " from " << pattern[0] << ", ring " << ring_slots << ", window " << window);
            ring_test t({.window = 96, .window_used = window, .ring_slots = ring_slots, .pool_blocks = 1024,
                         .ahead_slots = ahead_slots});
            const u32 count = 20 * ring_slots;
            const auto ranges = [&](u32 i) { return pattern[i % pattern.size()]; };
            u32 sent = 0, done = 0;
            while (done < count) {
                while (sent < count && t.writers[0].has_room(numbered(sent, ranges(sent)).slots())) {
                    REQUIRE(put_all(t.writers[0], numbered(sent, ranges(sent)).chunks(true)));
                    ++sent;
                }
                while (t.ingest.step(t.engine.team)) {}
                const auto got = t.take_decoded();
                REQUIRE_FALSE(got.empty());
                for (const u32 slot : got) {
                    require_numbered(t, slot, done, ranges(done));
                    ++done;
                }
                for (const u32 slot : got) t.free_slot(slot);
            }
            t.ingest.step(t.engine.team);
            CHECK(t.ingest.rings_empty());
            CHECK(*t.engine.s.pool_free_count == t.engine.m.n.pool_blocks);
            CHECK(*t.engine.s.free_slot_count == window);
        }
}

} // namespace

TEST_CASE("messages of one slot, of two and of more in one look come out whole and in order, over many laps", "[device][ring]")
{
    pass_patterns(device::ahead_slots_max);
    pass_patterns(device::ahead_slots_least);
}

TEST_CASE("slots or pool blocks that end within a batch: as many as find a place are taken, the next ones later", "[device][ring]")
{
    for (const u32 ranges : {1u, 8u}) // a block each: slots end first, then two blocks each: blocks do
        for (const u32 freed : {1u, 2u, 7u}) {
            INFO(ranges << " ranges, " << freed << " freed at a time");
            ring_test t({.window = 32, .window_used = 20, .ring_slots = 256, .pool_blocks = 24});
            const u32 at_first = ranges == 1 ? 20 : 12;
            constexpr u32 count = 64;
            for (u32 i = 0; i < count; ++i) REQUIRE(put_all(t.writers[0], numbered(i, ranges).chunks(true)));
            std::vector<u32> held;
            u32 done = 0;
            while (done < count) {
                while (t.ingest.step(t.engine.team)) {}
                for (const u32 slot : t.take_decoded()) {
                    require_numbered(t, slot, done++, ranges);
                    held.push_back(slot);
                }
                if (done < count) REQUIRE(held.size() == at_first);
                for (u32 i = 0; i < freed && !held.empty(); ++i) {
                    t.free_slot(held.front());
                    held.erase(held.begin());
                }
            }
        }
}

TEST_CASE("a full window fetches nothing twice, and nothing while it stays full", "[device][ring]")
{
    ring_test t({.window = 32, .window_used = 16, .ring_slots = 256});
    constexpr u32 count = 250;
    for (u32 i = 0; i < count; ++i) REQUIRE(put_all(t.writers[0], numbered(i, 0).chunks(true)));
    while (t.ingest.step(t.engine.team)) {}
    const u64 before = slots_looked(t);
    for (u32 i = 0; i < 100; ++i) REQUIRE_FALSE(t.ingest.step(t.engine.team));
    CHECK(slots_looked(t) == before);
    u32 taken = 0;
    for (u32 turn = 0; turn < 2 * count && taken < count; ++turn) {
        for (const u32 slot : t.take_decoded()) {
            ++taken;
            t.free_slot(slot);
        }
        t.ingest.step(t.engine.team);
    }
    CHECK(taken == count);
    CHECK(slots_looked(t) <= count + device::ahead_slots_max + device::glance_slots);
}

TEST_CASE("an empty ring costs a glance a step; looks grow while they come back full", "[device][ring]")
{
    ring_test t({.window = 128, .ring_slots = 256});
    for (u32 i = 0; i < 10; ++i) REQUIRE_FALSE(t.ingest.step(t.engine.team));
    CHECK(slots_looked(t) == 10 * device::glance_slots);
    u32 expected[] = {2, 6, 14, 30, 62, 100};
    for (u32 i = 0; i < 100; ++i) REQUIRE(put_all(t.writers[0], numbered(i, 0).chunks(true)));
    u32 taken = 0;
    for (const u32 sum : expected) {
        REQUIRE(t.ingest.step(t.engine.team));
        taken += static_cast<u32>(t.take_decoded().size());
        CHECK(taken == sum);
    }
}

TEST_CASE("a step that takes nothing has looked at every ring afresh, also after one that was read ahead", "[device][ring]")
{
    ring_test t({.rings = 2, .ring_slots = 64});
    u32 number = 0;
    for (u32 round = 0; round < 12; ++round) {
        INFO("round " << round);
        for (u32 i = 0; i < 6; ++i) REQUIRE(put_all(t.writers[0], numbered(number++, 0).chunks(true)));
        u32 taken = 0;
        while (taken < 6) {
            REQUIRE(t.ingest.step(t.engine.team));
            for (const u32 slot : t.take_decoded()) {
                ++taken;
                t.free_slot(slot);
            }
        }
        const u32 ranges = round % 3 == 0 ? 0 : round % 3 == 1 ? 5 : 28;
        REQUIRE(put_all(t.writers[0], numbered(number, ranges).chunks(true)));
        REQUIRE(t.ingest.step(t.engine.team));
        const auto got = t.take_decoded();
        REQUIRE(got.size() == 1);
        require_numbered(t, got[0], number++, ranges);
        t.free_slot(got[0]);
        if (round % 2) continue; // with and without an idle step between
        REQUIRE_FALSE(t.ingest.step(t.engine.team));
        REQUIRE(t.ingest.rings_empty());
    }
}

TEST_CASE("a ring that is read ahead leaves the others their turn", "[device][ring]")
{
    ring_test t({.window = 128, .rings = 3, .ring_slots = 64});
    for (u32 i = 0; i < 64; ++i) REQUIRE(put_all(t.writers[1], numbered(i, 0).chunks(true)));
    u32 sent = 64, steps = 0;
    bool seen = false;
    for (; steps < 4 * P::look_at_rings && !seen; ++steps) {
        REQUIRE(t.ingest.step(t.engine.team));
        if (steps == P::look_at_rings) REQUIRE(put_all(t.writers[2], numbered(0, 0).chunks(true)));
        for (const u32 slot : t.take_decoded()) {
            seen |= P::get(t.engine.s.task_id[slot]) >> 56 == 2;
            t.free_slot(slot);
        }
        while (t.writers[1].has_room(1)) REQUIRE(put_all(t.writers[1], numbered(sent++, 0).chunks(true)));
    }
    CHECK(seen);
    CHECK(steps <= 2 * P::look_at_rings + 2);
}

TEST_CASE("a chunk is seen whole, also by who looks while its place is written again", "[device]")
{
    P::chunk_word place{};
    constexpr u32 last = 200000;
    std::thread writer([&] {
        for (u32 n = 1; n <= last; ++n)
            P::store(device::edge::R4_mail, place, {{n, n, n, device::tag_of(n)}}, device::order::relaxed, device::scope::device);
    });
    u32 torn = 0, seen = 0;
    for (u32 newest = 0; newest != last;) {
        const abi::chunk c = P::load(device::edge::A4_mail, place, device::order::acquire, device::scope::device);
        if (c.w[3] >> 31 == 0) continue; // nothing yet, or not now
        const u32 n = c.w[3] & 0x7fffffff;
        torn += c.w[0] != n || c.w[1] != n || c.w[2] != n || n < newest;
        ++seen;
        newest = n;
    }
    writer.join();
    CHECK(torn == 0);
    CHECK(seen > 0);
}
