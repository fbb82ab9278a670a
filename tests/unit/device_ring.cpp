// The submission ring from both ends: ring_writer here, ingest there.
#include "device_engine.hpp"
#include "host/ring_writer.hpp"
#include "trace_catch.hpp"
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
    explicit ring_test(const engine_shape& shape) : engine(shape, {describe_task<plain_task>()}), ingest(engine.m, engine.s), decoded(engine.s.decoded_queue()),
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
            ok = ok && w.put({{abi::encode_first(abi::entry_kind::after, access_mode::none, r), static_cast<u32>(p), static_cast<u32>(p >> 32), 0}}, never);
        for (u32 i = 0; i < ranges; ++i)
            ok = ok && w.put({{abi::encode_first(abi::entry_kind::range, access_mode::write, 0x7f), 64 * i, 8, 0}}, never);
        return ok && w.put({{1, 2, 3, 0}}, never) && w.finish(never);
    }
    std::vector<u32> take_decoded()
    {
        std::vector<u32> out;
        while (decoded.available(engine.team)) out.push_back(decoded.pop());
        decoded.release(engine.team);
        return out;
    }
    void free_slot(u32 slot) { freed.push(engine.team, slot); }

    hand_made_engine engine;
    device::ingest<P> ingest;
    device::queue_consumer<P, u32, edge::A3_decoded, edge::R3_admitted> decoded;
    device::queue_producer<P, u32, edge::R2_slot_freed, edge::A2_slot_taken> freed;
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
        for (u32 i = 0; i < 200; ++i) {
            INFO("ring " << slots << " message " << i);
            const plain_task task{{x, 4}, 1000 + i, {y, 2, 3, 32}, u64{i} << 40 | 5};
            auto& w = t.writers[0];
            u32 words[sizeof(task) / 4];
            std::memcpy(words, &task, sizeof task);
            const auto type = describe_task<plain_task>();
            REQUIRE(w.put(abi::message_header{i + 1, 0, 0, 2, type.scalars}.encode(), never));
            const u64 xa = reinterpret_cast<u64>(x), ya = reinterpret_cast<u64>(y);
            REQUIRE(w.put({{abi::encode_first(abi::entry_kind::range, access_mode::read, static_cast<u32>(xa >> 32)), static_cast<u32>(xa), 16, 0}}, never));
            REQUIRE(w.put({{abi::encode_first(abi::entry_kind::rect, access_mode::write, static_cast<u32>(ya >> 32)), static_cast<u32>(ya), 12, 0}}, never));
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
            REQUIRE((P::get(record.blocks) == i + 1 && P::get(t.engine.s.task_id[got[0]]) == i && P::get(t.engine.s.type[got[0]]) == 0));
            plain_task back;
            std::memcpy(static_cast<void*>(&back), record.words, sizeof back);
            REQUIRE((back.a == task.a && back.b == task.b && back.x.data() == x && back.x.size() == 4));
            REQUIRE((back.y.data() == y && back.y.rows() == 2 && back.y.columns() == 3 && back.y.pitch() == 32));
            const auto read = P::get(t.engine.s.accesses[got[0]]), write = P::get(t.engine.s.accesses[t.engine.m.n.window + got[0]]);
            REQUIRE((read.begin() == xa && read.end() == xa + 16 && read.reads() && !read.writes()));
            REQUIRE((write.begin() == ya && write.rows() == 2 && write.width() == 12 && !write.reads()));
            t.free_slot(got[0]);
        }
        CHECK(t.ingest.rings_empty());
    }
}

TEST_CASE("a message longer than its ring streams through it, a slot at a time", "[device][ring]")
{
    ring_test t({.window = 32, .ring_slots = 4, .pool_blocks = 64});
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
    u32 block = P::get(t.engine.s.first_block[got[0]]);
    for (u32 i = device::inline_accesses; i < 1000; ++i) {
        const u32 at = (i - device::inline_accesses) % device::pool_block_entries;
        if (at == 0 && i != device::inline_accesses) block = P::get(t.engine.s.pool_next[block]);
        REQUIRE((P::get(t.engine.s.pool_entries(block)[at]).begin() & 0xffffffff) == 64 * i);
    }
    CHECK(P::get(t.engine.s.pool_next[block]) == device::no_block);
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
    CHECK(t.ingest.rings_empty());
}

TEST_CASE("pool blocks held by finished tasks come back when a message needs them", "[device][ring]")
{
    // Three tasks take all pool blocks and finish; the next one needs as many. A free slot is in hand all the while.
    ring_test t({.window = 32, .window_used = 16, .ring_slots = 1024, .pool_blocks = 12});
    const auto four_blocks = device::inline_accesses + 4 * device::pool_block_entries;
    for (u32 i = 0; i < 4; ++i) REQUIRE(t.send(0, {}, four_blocks));
    while (t.ingest.step(t.engine.team)) {}
    const auto got = t.take_decoded();
    REQUIRE(got.size() == 3);
    for (const u32 slot : got) t.free_slot(slot);
    for (u32 i = 0; i < 100; ++i) t.ingest.step(t.engine.team);
    CHECK(t.take_decoded().size() == 1);
}

TEST_CASE("random messages over random rings: every one is decoded once, in order, and the pool ends full", "[device][ring]")
{
    for (u64 seed = 1; seed <= 8; ++seed) {
        INFO("seed " << seed);
        std::mt19937_64 random(seed);
        const u32 rings = 1 + random() % 4;
        ring_test t({.window = 32, .window_used = 16 + 16 * static_cast<u32>(random() % 2), .rings = rings,
                     .ring_slots = 4u << random() % 3, .pool_blocks = 40});
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
            // Finish them in any order, but at most 7 blocks each: 40 blocks serve any five of them.
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
    }
}
