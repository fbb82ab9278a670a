// The window and its dependency table, on an engine made by hand: who waits for whom.
#include "device_engine.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <map>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

constexpr u64 base = 0x7f0000000000;

access_entry read_of(u64 from, u64 bytes) { return access_entry::range(access_mode::read, base + from, bytes); }
access_entry write_of(u64 from, u64 bytes) { return access_entry::range(access_mode::write, base + from, bytes); }
access_entry update_of(u64 from, u64 bytes) { return access_entry::range(access_mode::read_write, base + from, bytes); }
access_entry tile_of(access_mode mode, u64 from, u64 width, u64 rows, u64 pitch)
{
    return access_entry::rect(mode, base + from, width, rows, pitch);
}

struct window_test {
    explicit window_test(u32 slots = 32, u32 pool_blocks = 256) : engine({.window = slots, .pool_blocks = pool_blocks}), table(engine.m, engine.s) {}

    u32 admit(u32 slot, const std::vector<access_entry>& entries, u32 flags = 0)
    {
        engine.fill_slot(slot, slot, entries, flags);
        return table.admit(engine.team, slot);
    }
    /// The slots that became ready.
    std::vector<u32> retire(u32 slot)
    {
        std::vector<u32> freed;
        table.wake(engine.team, slot, [&](u32 first, u32 mask) {
            for (; mask; mask &= mask - 1) freed.push_back(first + device::lowest_bit(mask));
        });
        table.remove(engine.team, 1, [&](u32) { return slot; });
        return freed;
    }

    hand_made_engine engine;
    device::window<P> table;
};

using slots = std::vector<u32>;

} // namespace

TEST_CASE("a reader waits for an earlier writer of a shared byte (RAW)", "[device][window]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 8)}) == 0);
    CHECK(w.admit(1, {read_of(7, 1)}) == 1);
    CHECK(w.admit(2, {read_of(8, 8)}) == 0);
    CHECK(w.retire(0) == slots{1});
}

TEST_CASE("a writer waits for every earlier reader of a shared byte (WAR)", "[device][window]")
{
    window_test w;
    CHECK(w.admit(0, {read_of(0, 8)}) == 0);
    CHECK(w.admit(1, {read_of(4, 8)}) == 0);
    CHECK(w.admit(2, {write_of(0, 8)}) == 2);
    CHECK(w.retire(1) == slots{});
    CHECK(w.retire(0) == slots{2});
}

TEST_CASE("a writer waits for an earlier writer (WAW), readers do not wait for readers", "[device][window]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 8)}) == 0);
    CHECK(w.admit(1, {write_of(0, 8)}) == 1);
    CHECK(w.admit(2, {read_of(0, 8)}) == 1);
    CHECK(w.admit(3, {read_of(0, 8)}) == 1);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.retire(1) == slots{2, 3});
}

TEST_CASE("the readers between two writers are waited for, whichever of the two covers them", "[device][window]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 16)}) == 0);
    CHECK(w.admit(1, {read_of(0, 16)}) == 1);
    CHECK(w.admit(2, {write_of(0, 8)}) >= 1); // the reader; the writer as well or through the reader
    CHECK(w.admit(3, {write_of(8, 8)}) >= 1);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.retire(1) == slots{2, 3});
}

TEST_CASE("a chain of covering writes keeps one access live: each task waits for exactly one, not for all before it", "[device][window]")
{
    window_test w(1024);
    for (u32 slot = 0; slot < 1000; ++slot) {
        REQUIRE(w.admit(slot, {update_of(0, 64)}) == (slot == 0 ? 0 : 1));
    }
    for (u32 slot = 0; slot + 1 < 1000; ++slot) REQUIRE(w.retire(slot) == slots{slot + 1});
    REQUIRE(w.retire(999) == slots{});
}

TEST_CASE("a write that covers an old access only in part leaves it live", "[device][window]")
{
    window_test w;
    w.admit(0, {write_of(0, 16)});
    CHECK(w.admit(1, {write_of(0, 15)}) == 1);
    CHECK(w.admit(2, {read_of(15, 1)}) == 1); // still task 0
    CHECK(w.retire(0) == slots{1, 2});
}

TEST_CASE("a covering read supersedes nothing", "[device][window]")
{
    window_test w;
    w.admit(0, {write_of(0, 8)});
    CHECK(w.admit(1, {read_of(0, 16)}) == 1);
    CHECK(w.admit(2, {read_of(0, 8)}) == 1);
    CHECK(w.retire(0) == slots{1, 2});
}

TEST_CASE("two accesses of one task that hit the same predecessor count once", "[device][window]")
{
    window_test w;
    w.admit(0, {write_of(0, 8), write_of(32, 8)});
    CHECK(w.admit(1, {read_of(0, 8), read_of(32, 8), write_of(4, 4), update_of(36, 8)}) == 1);
    CHECK(w.retire(0) == slots{1});
}

TEST_CASE("a whole-memory task waits for everything in flight, and everything later waits for it", "[device][window]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 8)}) == 0);
    CHECK(w.admit(1, {}) == 0); // no_access
    CHECK(w.admit(2, {read_of(100, 8)}) == 0);
    CHECK(w.admit(3, {}, abi::flag_whole_memory) == 3);
    CHECK(w.admit(4, {}) == 1);
    CHECK(w.admit(5, {write_of(0, 8)}) == 1);
    CHECK(w.admit(6, {}, abi::flag_whole_memory) == 3); // 3, 4, 5: the exposed ones
    CHECK(w.retire(0) == slots{});
    CHECK(w.retire(2) == slots{});
    CHECK(w.retire(1) == slots{3});
    CHECK(w.retire(3) == slots{4, 5});
    CHECK(w.retire(4) == slots{});
    CHECK(w.retire(5) == slots{6});
    CHECK(w.retire(6) == slots{});
    CHECK(w.admit(7, {read_of(0, 8)}) == 0);
}

TEST_CASE("a task without accesses waits for nobody but whole-memory tasks", "[device][window]")
{
    window_test w;
    w.admit(0, {write_of(0, 1024)});
    CHECK(w.admit(1, {}) == 0);
    CHECK(w.admit(2, {write_of(0, 0), read_of(8, 0)}) == 0);
}

TEST_CASE("after waits for the named task while it is in flight, and not beyond", "[device][window]")
{
    window_test w;
    w.engine.fill_slot(0, u64{3} << 56 | 17, {});
    CHECK(w.table.admit(w.engine.team, 0) == 0);
    CHECK(w.admit(1, {access_entry::after(3, 17)}) == 1);
    CHECK(w.admit(2, {access_entry::after(3, 16), access_entry::after(2, 17)}) == 0);
    CHECK(w.admit(3, {access_entry::after(3, 17), access_entry::after(0, 1), write_of(0, 8)}) == 2);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.admit(4, {access_entry::after(3, 17)}) == 0);
    CHECK(w.retire(1) == slots{3});
}

TEST_CASE("accesses beyond four and beyond 36 are compared like the first ones", "[device][window]")
{
    for (const u32 count : {4u, 5u, 36u, 37u, 68u, 69u, 200u, 1024u}) {
        INFO(count << " accesses");
        window_test w(64);
        std::vector<access_entry> old, next;
        for (u32 i = 0; i < count; ++i) old.push_back(write_of(64 * i, 8));
        REQUIRE(w.admit(0, old) == 0);
        // Each access alone is found ...
        const std::vector<u32> probes{0, 3, count - 1, count / 2};
        u32 slot = 1;
        for (const u32 i : probes) {
            REQUIRE(w.admit(slot++, {read_of(64 * i + 7, 1)}) == 1);
            REQUIRE(w.admit(slot++, {read_of(64 * i + 8, 8)}) == 0);
        }
        // ... and by a task with as many of its own, of which only the last meets.
        for (u32 i = 0; i + 1 < count; ++i) next.push_back(read_of((u64{1} << 30) + 8 * i, 8));
        next.push_back(read_of(64 * (count - 1), 4));
        REQUIRE(w.admit(slot, next) == 1);
        const auto freed = w.retire(0);
        REQUIRE(freed == slots{1, 3, 5, 7, 9});
    }
}

TEST_CASE("a pooled access that one write covers is superseded, the others stay", "[device][window]")
{
    window_test w;
    std::vector<access_entry> old;
    for (u32 i = 0; i < 40; ++i) old.push_back(read_of(64 * i, 8));
    w.admit(0, old);
    CHECK(w.admit(1, {write_of(0, 64 * 39)}) == 1);
    CHECK(w.admit(2, {write_of(64 * 5, 8)}) == 1);  // task 1 alone: it covers the old read
    CHECK(w.admit(3, {write_of(64 * 39, 8)}) == 1); // task 0: not covered
    CHECK(w.retire(0) == slots{1, 3});
    CHECK(w.retire(1) == slots{2});
}

TEST_CASE("tiles of one matrix meet only where they share bytes", "[device][window]")
{
    window_test w;
    using m = access_mode;
    CHECK(w.admit(0, {tile_of(m::write, 0, 16, 4, 64)}) == 0);       // rows 0-3, columns 0-15
    CHECK(w.admit(1, {tile_of(m::write, 16, 16, 4, 64)}) == 0);      // beside it
    CHECK(w.admit(2, {tile_of(m::write, 4 * 64, 16, 4, 64)}) == 0);  // below it
    CHECK(w.admit(3, {tile_of(m::read, 3 * 64 + 15, 2, 2, 64)}) == 3); // a byte each of 0, 1 and 2
    CHECK(w.admit(4, {read_of(16 + 64, 48)}) == 1);                  // a range across a gap row: task 1 only
    CHECK(w.admit(5, {tile_of(m::read, 60, 8, 3, 64)}) == 1);        // wraps: columns 60-63 and 0-3 of the next row
    CHECK(w.retire(0) == slots{5});
    CHECK(w.retire(2) == slots{});
    CHECK(w.retire(1) == slots{3, 4});
}

TEST_CASE("random tasks retire in any order: no conflict is missed, nobody waits for nothing, nobody is lost", "[device][window]")
{
    for (u64 seed = 1; seed <= 24; ++seed) {
        std::mt19937_64 random(seed);
        const u32 window_slots = std::vector<u32>{32, 64, 96, 256, 1024}[seed % 5];
        INFO("seed " << seed << " window " << window_slots);
        window_test w(window_slots, 4096);
        const auto below = [&](u64 n) { return random() % n; };
        struct task {
            std::vector<access_entry> entries;
            bool whole = false;
            u64 id = 0;
            std::vector<u64> waits_for; // by the oracle, in flight at admission
            u32 slot = 0;
        };
        std::map<u64, task> flying; // id -> task
        std::vector<u32> ready;
        std::vector<u32> free_slots;
        std::vector<u64> in_slot(window_slots);
        for (u32 i = 0; i < window_slots; ++i) free_slots.push_back(i);
        std::map<u64, bool> is_ready;
        u64 next_id = 0;
        const u64 space = 40 + below(400);
        const auto draw_entry = [&] {
            const auto mode = static_cast<access_mode>(1 + below(3));
            if (below(4) == 0) return tile_of(mode, below(space), 1 + below(6), 1 + below(4), 8 + 4 * below(2));
            return access_entry::range(mode, base + below(space), below(12));
        };
        for (u32 step = 0; step < 3000; ++step) {
            if (!free_slots.empty() && below(100) < 55) {
                task t;
                t.id = next_id++;
                t.whole = below(60) == 0;
                const u32 afters = below(8) == 0 ? 1 + below(2) : 0;
                for (u32 i = 0; i < afters && t.id > 0; ++i)
                    t.entries.push_back(access_entry::after(0, t.id - 1 - below(std::min<u64>(t.id, 40))));
                const u32 count = below(12) == 0 ? 5 + below(60) : below(5);
                for (u32 i = 0; i < count; ++i) t.entries.push_back(draw_entry());
                for (const auto& [id, old] : flying) {
                    bool wait = t.whole || old.whole;
                    for (const auto& e : t.entries) {
                        if (e.kind() == abi::entry_kind::after) wait |= e.after_position() == id;
                        else if (e.is_memory())
                            for (const auto& o : old.entries) wait |= o.is_memory() && abi::conflicts(e, o);
                    }
                    if (wait) t.waits_for.push_back(id);
                }
                const auto pick = below(free_slots.size());
                t.slot = free_slots[pick];
                free_slots.erase(free_slots.begin() + static_cast<long>(pick));
                in_slot[t.slot] = t.id;
                w.engine.fill_slot(t.slot, t.id, t.entries, t.whole ? u32{abi::flag_whole_memory} : 0u);
                u32 pending = 0;
                if (t.entries.empty() && !t.whole && w.table.nothing_whole())
                    w.table.admit_free(w.engine.team, 1, [&](u32) { return t.slot; });
                else
                    pending = w.table.admit(w.engine.team, t.slot);
                REQUIRE((pending == 0) == t.waits_for.empty());
                REQUIRE(pending <= t.waits_for.size());
                if (pending == 0) ready.push_back(t.slot);
                flying[t.id] = t;
            } else if (!ready.empty()) {
                const auto pick = below(ready.size());
                const u32 slot = ready[pick];
                ready.erase(ready.begin() + static_cast<long>(pick));
                const u64 id = in_slot[slot];
                for (const u64 before : flying[id].waits_for) REQUIRE_FALSE(flying.contains(before));
                for (const u32 freed : w.retire(slot)) {
                    REQUIRE(std::find(ready.begin(), ready.end(), freed) == ready.end());
                    ready.push_back(freed);
                }
                flying.erase(id);
                w.engine.free_chain(slot);
                free_slots.push_back(slot);
            }
            REQUIRE((flying.empty() || !ready.empty())); // somebody can always go on
        }
        while (!ready.empty()) {
            const u32 slot = ready.back();
            ready.pop_back();
            for (const u64 before : flying[in_slot[slot]].waits_for) REQUIRE_FALSE(flying.contains(before));
            for (const u32 freed : w.retire(slot)) ready.push_back(freed);
            flying.erase(in_slot[slot]);
        }
        REQUIRE(flying.empty());
    }
}
