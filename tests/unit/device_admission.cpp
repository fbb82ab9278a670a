// Admission and the linker's dependency table, through the queue between them, on an engine made by hand: who waits for whom.
#include "device_engine.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <map>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;
using device::edge;

namespace {

constexpr u64 base = 0x7f0000000000;

access_entry read_of(u64 from, u64 bytes) { return access_entry::range(access_mode::read, base + from, bytes); }
access_entry write_of(u64 from, u64 bytes) { return access_entry::range(access_mode::write, base + from, bytes); }
access_entry update_of(u64 from, u64 bytes) { return access_entry::range(access_mode::read_write, base + from, bytes); }
access_entry tile_of(access_mode mode, u64 from, u64 width, u64 rows, u64 pitch)
{
    return access_entry::rect(mode, base + from, width, rows, pitch);
}

/// Plays ingest, the linker (on its own table), the scheduler and the notifier around the admission role.
struct window_test {
    explicit window_test(u32 slots = 32, u32 pool_blocks = 1024, bool index = true)
        : engine({.window = slots, .pool_blocks = pool_blocks, .index = index}), admission(engine.m, engine.s),
          table(engine.m, engine.s), decoded(engine.s.decoded_queue()), admitted(engine.s.admitted_queue()),
          finished(engine.s.finished_queue()), free(engine.s.free_queue())
    {
    }

    // The way of a task, a role at a time.
    void decode(u32 slot, u64 id, const std::vector<access_entry>& entries, u32 flags = 0)
    {
        engine.fill_slot(slot, id, entries, flags);
        decoded.push(engine.team, slot);
    }
    /// As far as admission gets; true when it did anything.
    bool step()
    {
        bool any = false;
        while (admission.step(engine.crew)) any = true;
        return any;
    }
    struct linked {
        u32 slot;
        u32 pending; ///< predecessors that it waits for: those that are not complete, and that no other one implies
        u32 named;   ///< predecessors in the row
        u32 stale;   ///< of these, those that are complete
    };
    bool may_link() { return admitted.available(engine.team) != 0; }
    linked link_next() { return link_together(1).front(); }
    /// The next `count` <= 32 at once: one may wait for another.
    std::vector<linked> link_together(u32 count)
    {
        REQUIRE(admitted.available(engine.team) >= count);
        const u32 groups = engine.m.n.groups(), first = admitted.position();
        const auto place_of = [&](u32 k) { return (first + k) % device::admitted_max; };
        std::vector<linked> out;
        u32 has_row = 0;
        std::vector<u32> there(engine.s.in_flight, engine.s.in_flight + groups); // when the one in hand comes
        for (u32 k = 0; k < count; ++k) {
            const auto* const row = engine.s.predecessors + place_of(k) * groups;
            const u32 entry = admitted.pop();
            linked l{entry & 0xffff, 0, 0, 0};
            if ((entry & device::admitted_free) == 0) {
                has_row |= 1u << k;
                for (u32 g = 0; g < groups; ++g) {
                    l.named += device::popcount(P::get(row[g]));
                    l.stale += device::popcount(P::get(row[g]) & ~there[g]);
                }
            }
            there[l.slot / 32] |= 1u << l.slot % 32;
            out.push_back(l);
        }
        const u32 ready = table.link(
            engine.team, count, links + 1, [&](u32 k) { return out[k].slot; }, [&](u32 k) { return (has_row >> k & 1) != 0; },
            place_of);
        for (u32 k = 0; k < count; ++k) {
            out[k].pending = table.pending(out[k].slot);
            REQUIRE(((ready >> k & 1) != 0) == (out[k].pending == 0));
            number_of[out[k].slot] = ++links;
        }
        admitted.release(engine.team);
        return out;
    }
    /// The linker's side of a completion, and the notifier's. Returns the slots that became ready.
    std::vector<u32> complete(u32 slot)
    {
        std::vector<u32> freed;
        u32 shown = 0;
        table.complete(
            engine.team, 1, 1, [&](u32) { return slot; },
            [&](device::ready_entry entry, u32 place) {
                REQUIRE(shown + place == freed.size());
                REQUIRE(entry.word >> 16 == (number_of.at(entry.slot()) & 0xffff)); // of its link, however long it waited
                freed.push_back(entry.slot());
            },
            [&](u32 count) {
                REQUIRE((shown += count) == freed.size());
                // The scheduler is at work with them from now on: all that it looks at is written.
                for (const u32 other : freed) REQUIRE((engine.s.handed[other / 32] >> other % 32 & 1) != 0);
            });
        finished.push(engine.team, slot);
        return freed;
    }
    std::vector<u32> take_free()
    {
        std::vector<u32> out;
        while (free.available(engine.team)) {
            out.push_back(free.pop());
            engine.free_chain(out.back());
        }
        free.release(engine.team);
        return out;
    }

    // The same at once. Returns how many admission names.
    u32 admit(u32 slot, const std::vector<access_entry>& entries, u32 flags = 0) { return admit_as(slot, slot, entries, flags); }
    u32 admit_as(u32 slot, u64 id, const std::vector<access_entry>& entries, u32 flags = 0)
    {
        decode(slot, id, entries, flags);
        REQUIRE(step());
        const linked l = link_next();
        REQUIRE(l.slot == slot);
        REQUIRE(l.stale == 0); // admission knew everything
        REQUIRE((l.pending == 0) == (l.named == 0));
        REQUIRE(l.pending <= l.named);
        REQUIRE_FALSE(may_link());
        return l.named;
    }
    /// Returns the slots that became ready.
    std::vector<u32> retire(u32 slot)
    {
        const auto freed = complete(slot);
        REQUIRE(step());
        REQUIRE(take_free() == std::vector<u32>{slot});
        return freed;
    }

    bool remembers_nothing() const { return engine.remembers_nothing(); }

    hand_made_engine engine;
    device::admission<P> admission;
    device::dependency_table<P> table;
    device::queue_producer<P, u16, edge::R3_decoded, edge::A3_taken> decoded;
    device::queue_consumer<P, u32, edge::A10_admitted, edge::R10_linked> admitted;
    device::queue_producer<P, u16, edge::R11_finished, edge::A11_taken> finished;
    device::queue_consumer<P, u16, edge::A2_slot_freed, edge::R2_slot_taken> free;
    u32 links = 0xfffffff0; ///< link numbers: they wrap soon
    std::map<u32, u32> number_of;
};

using slots = std::vector<u32>;

} // namespace

TEST_CASE("a reader waits for an earlier writer of a shared byte (RAW)", "[device][admission]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 8)}) == 0);
    CHECK(w.admit(1, {read_of(7, 1)}) == 1);
    CHECK(w.admit(2, {read_of(8, 8)}) == 0);
    CHECK(w.retire(0) == slots{1});
}

TEST_CASE("a writer waits for every earlier reader of a shared byte (WAR)", "[device][admission]")
{
    window_test w;
    CHECK(w.admit(0, {read_of(0, 8)}) == 0);
    CHECK(w.admit(1, {read_of(4, 8)}) == 0);
    CHECK(w.admit(2, {write_of(0, 8)}) == 2);
    CHECK(w.retire(1) == slots{});
    CHECK(w.retire(0) == slots{2});
}

TEST_CASE("a writer waits for an earlier writer (WAW), readers do not wait for readers", "[device][admission]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 8)}) == 0);
    CHECK(w.admit(1, {write_of(0, 8)}) == 1);
    CHECK(w.admit(2, {read_of(0, 8)}) == 1);
    CHECK(w.admit(3, {read_of(0, 8)}) == 1);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.retire(1) == slots{2, 3});
}

TEST_CASE("the readers between two writers are waited for, whichever of the two covers them", "[device][admission]")
{
    window_test w;
    CHECK(w.admit(0, {write_of(0, 16)}) == 0);
    CHECK(w.admit(1, {read_of(0, 16)}) == 1);
    CHECK(w.admit(2, {write_of(0, 8)}) >= 1); // the reader; the writer as well or through the reader
    CHECK(w.admit(3, {write_of(8, 8)}) >= 1);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.retire(1) == slots{2, 3});
}

TEST_CASE("a chain of covering writes keeps one access live: each task waits for exactly one, not for all before it",
          "[device][admission]")
{
    window_test w(1024);
    for (u32 slot = 0; slot < 1000; ++slot) {
        REQUIRE(w.admit(slot, {update_of(0, 64)}) == (slot == 0 ? 0 : 1));
    }
    for (u32 slot = 0; slot + 1 < 1000; ++slot) REQUIRE(w.retire(slot) == slots{slot + 1});
    REQUIRE(w.retire(999) == slots{});
}

TEST_CASE("a write that covers an old access only in part leaves it live", "[device][admission]")
{
    window_test w;
    w.admit(0, {write_of(0, 16)});
    CHECK(w.admit(1, {write_of(0, 15)}) == 1);
    CHECK(w.admit(2, {read_of(15, 1)}) == 1); // still task 0
    CHECK(w.retire(0) == slots{1, 2});
}

TEST_CASE("a covering read supersedes nothing", "[device][admission]")
{
    window_test w;
    w.admit(0, {write_of(0, 8)});
    CHECK(w.admit(1, {read_of(0, 16)}) == 1);
    CHECK(w.admit(2, {read_of(0, 8)}) == 1);
    CHECK(w.retire(0) == slots{1, 2});
}

TEST_CASE("two accesses of one task that hit the same predecessor count once", "[device][admission]")
{
    window_test w;
    w.admit(0, {write_of(0, 8), write_of(32, 8)});
    CHECK(w.admit(1, {read_of(0, 8), read_of(32, 8), write_of(4, 4), update_of(36, 8)}) == 1);
    CHECK(w.retire(0) == slots{1});
}

TEST_CASE("a whole-memory task waits for everything in flight, and everything later waits for it", "[device][admission]")
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

TEST_CASE("a task without accesses waits for nobody but whole-memory tasks", "[device][admission]")
{
    window_test w;
    w.admit(0, {write_of(0, 1024)});
    CHECK(w.admit(1, {}) == 0);
    CHECK(w.admit(2, {write_of(0, 0), read_of(8, 0)}) == 0);
}

TEST_CASE("after waits for the named task while it is in flight, and not beyond", "[device][admission]")
{
    window_test w;
    CHECK(w.admit_as(0, u64{3} << 56 | 17, {}) == 0);
    CHECK(w.admit(1, {access_entry::after(3, 17)}) == 1);
    CHECK(w.admit(2, {access_entry::after(3, 16), access_entry::after(2, 17)}) == 0);
    CHECK(w.admit(3, {access_entry::after(3, 17), access_entry::after(0, 1), write_of(0, 8)}) == 2);
    CHECK(w.retire(0) == slots{1});
    CHECK(w.admit(4, {access_entry::after(3, 17)}) == 0);
    CHECK(w.retire(1) == slots{3});
}

TEST_CASE("a task that declares nothing implies nobody, whomever the one before it in its place of the queue waited for",
          "[device][admission]")
{
    const bool whole = GENERATE(false, true);
    window_test w;
    REQUIRE(w.admit(3, {write_of(0, 8)}) == 0);
    REQUIRE(w.admit(4, {read_of(0, 8)}) == 1); // names slot 3
    const u32 place = (w.admitted.position() - 1) % device::admitted_max;
    w.retire(3);
    w.retire(4);
    while (w.admitted.position() % device::admitted_max != (place + device::admitted_max - 1) % device::admitted_max) {
        w.admit(5, {});
        w.retire(5);
    }
    REQUIRE(w.admit(3, {write_of(0, 8)}) == 0);
    w.decode(7, 7, {}); // the place of the one that waited for slot 3
    const std::vector<access_entry> both{access_entry::after(0, 3), access_entry::after(0, 7)};
    w.decode(8, 8, whole ? std::vector<access_entry>{} : both, whole ? u32{abi::flag_whole_memory} : 0u);
    REQUIRE(w.step());
    CHECK(w.link_together(2)[1].pending == 2);
    CHECK(w.complete(7) == slots{});
    CHECK(w.complete(3) == slots{8});
}

TEST_CASE("accesses beyond four and beyond 36 are compared like the first ones", "[device][admission]")
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

TEST_CASE("a pooled access that one write covers is superseded, the others stay", "[device][admission]")
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

TEST_CASE("tiles of one matrix meet only where they share bytes", "[device][admission]")
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

TEST_CASE("registered tiles meet only themselves, raw rectangles whatever they share bytes with", "[device][admission]")
{
    constexpr u64 side = 4, width = 64, rows = 8, pitch = side * width + 32;
    const auto place = [](u64 tile) { return tile / side * rows * pitch + tile % side * width; };
    const auto registered = [&](access_mode mode, u64 tile) {
        return hand_made_engine::registered(tile_of(mode, place(tile), width, rows, pitch));
    };
    for (const bool by_handle : {true, false}) {
        for (u64 a = 0; a < side * side; ++a)
            for (u64 b = 0; b < side * side; ++b) {
                window_test t;
                t.admit(0, {registered(access_mode::write, a)});
                const auto later = [&](access_mode mode, u64 tile) {
                    return by_handle ? registered(mode, tile) : tile_of(mode, place(tile), width, rows, pitch);
                };
                CHECK(t.admit(1, {later(access_mode::read, b)}) == (a == b));
                // The write covers the first one's access, if any, and the reader's: whoever follows waits for it alone.
                // By handles the reader's wait is enough.
                CHECK(t.admit(2, {later(access_mode::write, b)}) == (a == b && !by_handle ? 2 : 1));
                CHECK(t.admit(3, {registered(access_mode::read, b)}) == 1);
            }
    }
    // A raw rectangle on no grid, over the corner of four tiles; a registered range across a row of tiles.
    window_test t;
    for (u32 tile = 0; tile < side * side; ++tile) t.admit(tile, {registered(access_mode::write, tile)});
    CHECK(t.admit(16, {tile_of(access_mode::read, place(0) + width - 8, 16, rows + 1, pitch)}) == 4);
    CHECK(t.admit(17, {hand_made_engine::registered(read_of(place(4), side * width))}) == side);
    CHECK(t.admit(18, {registered(access_mode::read, 3), registered(access_mode::write, 15)}) == 2);
}

TEST_CASE("a predecessor that completes between admission and link is named, and not waited for", "[device][admission]")
{
    window_test w;
    REQUIRE(w.admit(0, {write_of(0, 8)}) == 0);
    REQUIRE(w.admit(1, {write_of(8, 8)}) == 0);
    w.decode(2, 2, {read_of(0, 16)});
    w.decode(3, 3, {}, abi::flag_whole_memory);
    REQUIRE(w.step());
    CHECK(w.complete(0) == slots{}); // nobody is linked behind it yet
    const auto reader = w.link_next();
    CHECK((reader.slot == 2 && reader.named == 2 && reader.pending == 1));
    const auto whole = w.link_next();
    CHECK((whole.slot == 3 && whole.named == 3 && whole.pending == 1)); // the reader waits for 1
    CHECK(w.complete(1) == slots{2});
    CHECK(w.complete(2) == slots{3});
    // Admission learns of the completions in its own time; all slots come back, in the order of completion.
    REQUIRE(w.step());
    CHECK(w.take_free() == slots{0, 1, 2});
}

TEST_CASE("a slot that is used again behind a row that names it is another task's", "[device][admission]")
{
    window_test w;
    REQUIRE(w.admit(0, {write_of(0, 8)}) == 0);
    w.decode(1, 1, {read_of(0, 8)});
    REQUIRE(w.step()); // its row names slot 0
    CHECK(w.complete(0) == slots{});
    REQUIRE(w.step());
    REQUIRE(w.take_free() == slots{0});
    w.decode(0, 2, {write_of(64, 8)}); // the slot's next task comes through the same queues: behind the row
    w.decode(2, 3, {read_of(64, 8), write_of(0, 8), access_entry::after(0, 0)});
    REQUIRE(w.step());
    const auto reader = w.link_next();
    CHECK((reader.slot == 1 && reader.named == 1 && reader.pending == 0));
    const auto again = w.link_next();
    CHECK((again.slot == 0 && again.pending == 0));
    const auto last = w.link_next();
    CHECK((last.slot == 2 && last.pending == 2)); // slots 0 (the new task) and 1
    CHECK(w.complete(0) == slots{});
    CHECK(w.complete(1) == slots{2});
}

TEST_CASE("a whole-memory task that finished is forgotten only once admission knows, and hides nobody after that",
          "[device][admission]")
{
    window_test w;
    REQUIRE(w.admit(0, {}, abi::flag_whole_memory) == 0);
    w.decode(1, 1, {});
    REQUIRE(w.step());
    CHECK(w.complete(0) == slots{});
    const auto behind = w.link_next();
    CHECK((behind.named == 1 && behind.pending == 0));
    REQUIRE(w.step());
    w.decode(2, 2, {});
    REQUIRE(w.step());
    CHECK(w.link_next().named == 0);
}

TEST_CASE("a full admitted queue holds admission back and loses nothing", "[device][admission]")
{
    constexpr u32 tasks = device::admitted_max + 48;
    window_test w(128);
    for (u32 slot = 0; slot < tasks; ++slot)
        w.decode(slot, slot, slot % 3 ? std::vector<access_entry>{update_of(0, 8)} : std::vector<access_entry>{});
    REQUIRE(w.step());
    while (w.step()) {}
    CHECK(w.admitted.available(w.engine.team) == device::admitted_max);
    u32 next = 0;
    const auto link_some = [&](u32 count) {
        for (; count != 0 && w.may_link(); --count) {
            const auto l = w.link_next();
            REQUIRE(l.slot == next);
            REQUIRE(l.pending == (next % 3 && next > 1 ? 1 : 0)); // the one before in the chain of updates
            ++next;
        }
    };
    link_some(5);
    CHECK(w.step());
    CHECK_FALSE(w.step());
    for (u32 turn = 0; turn < 20; ++turn) {
        link_some(7);
        w.step();
    }
    CHECK(next == tasks);
}

TEST_CASE("the access index tells of handles and raw ranges together, not of tiles beside raw ranges", "[device][admission]")
{
    const auto by_handle = [](access_mode mode, u64 from, u64 bytes) {
        return hand_made_engine::registered(access_entry::range(mode, base + from, bytes));
    };
    // access_batch's scans_due, of the batch before: what was compared with everything
    const auto scans = [](const window_test& w) { return w.engine.s.batch_marks[1]; };
    {
        window_test w;
        CHECK(w.admit(0, {by_handle(access_mode::write, 0, 64)}) == 0);
        CHECK(w.admit(1, {by_handle(access_mode::write, 64, 200)}) == 0);
        CHECK(w.admit(2, {access_entry::range(access_mode::read, base + 60, 8)}) == 2); // both
        CHECK(w.admit(3, {by_handle(access_mode::write, 0, 64)}) == 2);                 // its own, and the raw reader
        CHECK(w.admit(4, {access_entry::range(access_mode::write, base, 64)}) == 2);    // covers the handle, not the reader
        CHECK(w.admit(5, {by_handle(access_mode::read, 0, 64)}) == 1);                  // the raw writer, which superseded
                                                                                        // the handle's
        CHECK(w.admit(6, {by_handle(access_mode::read, 264, 64)}) == 0);
        CHECK(scans(w) == 0);
    }
    { // pieces of a buffer and the whole of it: nine cells of the pieces' grid
        window_test w;
        for (u32 k = 0; k < 8; ++k) CHECK(w.admit(k, {access_entry::range(access_mode::write, base + 64 * k, 64)}) == 0);
        CHECK(w.admit(8, {by_handle(access_mode::read, 0, 512)}) == 8);
        CHECK(scans(w) == 0);
        CHECK(w.admit(9, {access_entry::range(access_mode::write, base + 64, 64)}) == 2);
        CHECK(scans(w) == 0);
    }
    {
        window_test w;
        CHECK(w.admit(0, {hand_made_engine::registered(tile_of(access_mode::write, 0, 8, 3, 64))}) == 0);
        CHECK(w.admit(1, {access_entry::range(access_mode::write, base + 64, 4)}) == 1);
        CHECK(scans(w) == 1);
    }
}

TEST_CASE("a write that covers more accesses than a batch supersedes leaves the others to the next one", "[device][admission]")
{
    constexpr u32 readers = device::covered_max + 44;
    window_test w(512, 1024);
    for (u32 k = 0; k < readers; ++k) CHECK(w.admit(k, {access_entry::range(access_mode::read, base + 8 * k, 8)}) == 0);
    const std::vector<access_entry> all{access_entry::range(access_mode::write, base, 8 * readers)};
    CHECK(w.admit(readers, all) == readers);
    CHECK(w.admit(readers + 1, all) == 1 + 44);
    CHECK(w.admit(readers + 2, all) == 1);
    for (u32 k = 0; k < readers + 3; ++k) w.retire(k);
    CHECK(w.remembers_nothing());
}

namespace {

constexpr u64 handle_bytes = 64;
access_entry by_handle(access_mode mode, u64 handle)
{
    return hand_made_engine::registered(access_entry::range(mode, base + handle_bytes * handle, handle_bytes));
}
access_entry read_by(u64 handle) { return by_handle(access_mode::read, handle); }
access_entry write_by(u64 handle) { return by_handle(access_mode::write, handle); }
access_entry update_by(u64 handle) { return by_handle(access_mode::read_write, handle); }

bool nothing_live(const window_test& w)
{
    const auto& s = w.engine.s;
    return std::all_of(s.live, s.live + w.engine.m.n.pool_words(), [](u32 word) { return word == 0; });
}

} // namespace

TEST_CASE("by handle: a reader waits for the last writer, a writer for the readers since or else for the writer; "
          "nothing becomes live",
          "[device][admission][handles]")
{
    window_test w;
    CHECK(w.admit(0, {write_by(0)}) == 0);
    CHECK(w.admit(1, {read_by(0)}) == 1);
    CHECK(w.admit(2, {read_by(0), write_by(1)}) == 1);
    CHECK(w.admit(3, {update_by(0)}) == 2); // the readers, who wait for the writer
    CHECK(w.admit(4, {read_by(0), read_by(1)}) == 2);
    CHECK(w.admit(5, {write_by(1)}) == 1);
    CHECK(w.admit(6, {read_by(2)}) == 0);
    CHECK(nothing_live(w));
    CHECK(w.retire(0) == slots{1, 2});
    CHECK(w.retire(1) == slots{});
    CHECK(w.retire(2) == slots{3});
    CHECK(w.retire(3) == slots{4});
    CHECK(w.admit_as(0, 7, {read_by(0)}) == 0); // its writer has finished
    CHECK(w.admit_as(1, 8, {write_by(0)}) == 2); // 4 and 7, of which 4 still runs
}

TEST_CASE("by handle: several tasks of a batch on one handle, and one task that names it twice", "[device][admission][handles]")
{
    window_test w;
    w.decode(0, 0, {write_by(0)});
    w.decode(1, 1, {read_by(0), write_by(0)});
    w.decode(2, 2, {read_by(0)});
    w.decode(3, 3, {read_by(0), read_by(0)});
    w.decode(4, 4, {write_by(0), read_by(0)});
    w.decode(5, 5, {read_by(0)});
    REQUIRE(w.step());
    const u32 expected[] = {0, 1, 1, 1, 3, 1}; // of the fifth the read waits for 1, the write for those who read since
    for (const u32 named : expected) CHECK(w.link_next().named == named);
    CHECK(w.complete(0) == slots{1});
    CHECK(w.complete(1) == slots{2, 3});
    CHECK(w.complete(3) == slots{});
    CHECK(w.complete(2) == slots{4});
    CHECK(w.complete(4) == slots{5});
    REQUIRE(w.step());
    CHECK(w.take_free() == slots{0, 1, 3, 2, 4});
    CHECK(w.admit_as(0, 6, {write_by(0)}) == 1); // 5
    CHECK(nothing_live(w));
}

TEST_CASE("by handle: more readers than a page has room for are live, and the next writer waits for all of them",
          "[device][admission][handles]")
{
    constexpr u32 readers = device::handle_page::readers_max + 12;
    for (const bool index : {true, false}) {
        window_test w(32, 1024, index);
        for (u32 k = 0; k < readers; ++k) CHECK(w.admit(k, {read_by(0), read_by(1)}) == 0);
        CHECK_FALSE(nothing_live(w));
        CHECK(w.admit(readers, {read_by(2), write_by(1)}) == readers);
        w.retire(3); // of those on the page; there is room for another one
        CHECK(w.admit_as(3, readers + 1, {read_by(0)}) == 0);
        CHECK(w.admit(readers + 1, {write_by(0)}) == readers);
        CHECK(w.admit(readers + 2, {write_by(1)}) == 1);
        for (u32 k = 0; k < readers + 3; ++k) w.retire(k);
        CHECK(w.remembers_nothing());
        // Readers whom nobody follows.
        for (u32 k = 0; k < readers; ++k) w.admit_as(k, 100 + k, {read_by(0), write_by(2 + k)});
        CHECK_FALSE(nothing_live(w));
        for (u32 k = 0; k < readers; ++k) w.retire(k);
        CHECK(w.remembers_nothing());
    }
}

TEST_CASE("a raw range finds what tasks by handle have in the book, and they find it; "
          "after a while without any the book is open again",
          "[device][admission][handles]")
{
    window_test w(256, 1024);
    CHECK(w.admit(0, {write_by(0)}) == 0);
    CHECK(w.admit(1, {read_by(0), write_by(1)}) == 1);
    CHECK(w.admit(2, {read_of(handle_bytes - 4, 8)}) == 2); // bytes of both
    CHECK_FALSE(nothing_live(w));
    CHECK(w.admit(3, {read_by(1)}) == 1);
    CHECK(w.admit(4, {write_by(1)}) == 3); // 1, 2 and 3
    for (u32 slot = 0; slot < 5; ++slot) w.retire(slot);
    CHECK(nothing_live(w));
    u32 closed = 0;
    for (u32 slot = 5; slot < 100; ++slot) {
        CHECK(w.admit(slot, {update_by(5)}) == (slot == 5 ? 0 : 1));
        closed += !nothing_live(w);
    }
    CHECK(closed > 5);
    CHECK(closed < 90);
    // The last one of those that the book did not take in is still live.
    CHECK(w.admit(100, {read_of(5 * handle_bytes, 4)}) >= 1);
    CHECK(w.engine.s.booked[0] + w.engine.s.booked[1] + w.engine.s.booked[2] + w.engine.s.booked[3] == 0);
    for (u32 slot = 5; slot < 101; ++slot) w.retire(slot);
    CHECK(w.remembers_nothing());
}

TEST_CASE("who left the book when it was closed, or was hidden by a whole-memory task, is not taken for the next task of its slot",
          "[device][admission][handles]")
{
    for (const bool whole : {false, true}) {
        window_test w(256, 1024);
        CHECK(w.admit(0, {write_by(0)}) == 0);
        if (whole) CHECK(w.admit(1, {}, abi::flag_whole_memory) == 1);
        else CHECK(w.admit(1, {read_of(0, 4)}) == 1);
        w.retire(0);
        w.retire(1);
        for (u32 k = 2; k < 80; ++k) { // the book opens again
            w.admit(k, {write_by(1)});
            w.retire(k);
        }
        CHECK(w.admit_as(0, 100, {read_by(0)}) == 0);
        CHECK(w.admit_as(1, 101, {write_by(0)}) == 1);
        w.retire(0);
        w.retire(1);
        CHECK(w.remembers_nothing());
    }
}

TEST_CASE("a task by handle with more accesses than a batch, and whole-memory tasks, beside the book",
          "[device][admission][handles]")
{
    window_test w(32, 1024);
    std::vector<access_entry> many;
    for (u32 h = 0; h < 200; ++h) many.push_back(read_by(h));
    many.push_back(write_by(200));
    CHECK(w.admit(0, {write_by(7)}) == 0);
    CHECK(w.admit(1, {write_by(150)}) == 0);
    CHECK(w.admit(2, many) == 2);
    CHECK(w.admit(3, {write_by(7)}) >= 1); // 2, which waits for 0
    CHECK(w.admit(4, {read_by(200)}) == 1);
    CHECK(w.admit(5, {}, abi::flag_whole_memory) == 5);
    CHECK(w.admit(6, {read_by(7)}) == 1);
    CHECK(w.admit(7, {read_of(200 * handle_bytes, 4)}) == 1);
    CHECK(w.retire(0) == slots{});
    CHECK(w.retire(1) == slots{2});
    CHECK(w.retire(2) == slots{3, 4});
    w.retire(3);
    CHECK(w.retire(4) == slots{5});
    CHECK(w.retire(5) == slots{6, 7});
    w.retire(6);
    w.retire(7);
    CHECK(w.remembers_nothing());
}

TEST_CASE("a slot's last epoch: the book is wiped, and no stamp of an earlier task is taken for a later one's",
          "[device][admission][handles]")
{
    window_test w;
    auto& epochs = w.engine.s.epochs;
    std::fill(epochs, epochs + 32, u16{0xfffe});
    CHECK(w.admit(0, {write_by(0)}) == 0);
    CHECK(w.admit(1, {write_by(1)}) == 0);
    CHECK(w.admit(2, {read_by(1)}) == 1);
    w.retire(0);
    CHECK(w.admit_as(0, 3, {write_by(2)}) == 0);
    CHECK(epochs[0] == 0xffff);
    w.retire(0); // stays at its last epoch: nothing is asked of the book before it is wiped
    CHECK(w.engine.s.counters[device::book_worn] == 1);
    CHECK(w.admit_as(0, 4, {read_by(0), read_by(2)}) == 0); // not itself
    CHECK(w.engine.s.counters[device::book_worn] == 0);
    CHECK(epochs[0] == 0);
    CHECK(w.admit(3, {write_by(1)}) == 2); // 1 and 2 are live now
    CHECK(w.admit(4, {update_by(0)}) == 1);
    for (const u32 slot : {0, 1, 2, 3, 4}) w.retire(slot);
    CHECK(w.remembers_nothing());
}

TEST_CASE("random tasks complete in any order, admission lagging or not: no conflict is missed, "
          "nobody waits for nothing, nobody is lost",
          "[device][admission]")
{
    // Of every kind; ranges of all lengths, handles, and both, which the access index finds; tiles beside ranges, which it cannot.
    enum kind { any, ranges, handles, ranges_and_tiles, ranges_and_handles, kinds };
    for (u64 seed = 1; seed <= 72; ++seed) {
        const auto drawn = static_cast<kind>(seed / 15 % kinds); // with every lag and window
        std::mt19937_64 random(seed);
        const u32 window_slots = std::vector<u32>{32, 64, 96, 256, 1024}[seed % 5];
        const u32 lag = std::vector<u32>{0, 30, 70}[seed % 3]; // percent of the turns in which admission, or the link, sleeps
        INFO("seed " << seed << " window " << window_slots << " lag " << lag << " kind " << drawn);
        window_test w(window_slots, 16 * window_slots, seed % 11 != 0);
        if (seed % 7 == 0) // some slot soon comes to its last epoch
            for (u32 slot = 0; slot < window_slots; ++slot) w.engine.s.epochs[slot] = static_cast<u16>(0xffff - random() % 40);
        const auto below = [&](u64 n) { return random() % n; };
        struct task {
            std::vector<access_entry> entries;
            bool whole = false;
            u64 id = 0;
            std::vector<u64> waits_for; // by the oracle: not complete when it was linked
        };
        std::map<u64, task> flying;   // linked, not complete
        std::map<u64, task> upstream; // decoded, not linked
        std::vector<u32> ready;
        std::vector<u32> free_slots;
        std::vector<u64> in_slot(window_slots);
        for (u32 i = 0; i < window_slots; ++i) free_slots.push_back(i);
        u64 next_id = 0;
        u64 next_linked = 0;
        u64 stale = 0;
        const u64 space = 40 + below(400);
        const auto draw_entry = [&] {
            const bool mostly_reads = drawn == handles && seed % 2 == 0; // more than a page of the handle book has room for
            const auto mode = mostly_reads && below(20) != 0 ? access_mode::read : static_cast<access_mode>(1 + below(3));
            // Handles, then ranges of one length in their memory, then both in one batch.
            const u64 phase = next_id / (seed % 2 == 0 ? 60 : 200) % 3; // in the longer ones the handle book opens again
            const bool both = drawn == ranges_and_tiles || drawn == ranges_and_handles;
            if (drawn == handles || (both && (phase == 0 || (phase == 2 && below(2) == 0)))) {
                const u64 h = below(space / 4);
                const bool tile = drawn != ranges_and_handles && h % 2 == 0;
                return hand_made_engine::registered(tile ? tile_of(mode, 64 * h, 8, 3, 64 * space)
                                                         : access_entry::range(mode, base + 64 * h, h % 3 == 0 ? 20 : 64));
            }
            if (both) return access_entry::range(mode, base + below(16 * space), 40 + below(24));
            if (drawn == ranges) {
                const u64 longest = std::vector<u64>{12, 64, 200, 5000, 300000}[below(5)];
                return access_entry::range(mode, base + below(1000 * space), 1 + below(longest));
            }
            if (below(4) == 0) return tile_of(mode, below(space), 1 + below(6), 1 + below(4), 8 + 4 * below(2));
            return access_entry::range(mode, base + below(space), below(12));
        };
        const auto submit = [&] {
            task t;
            t.id = next_id++;
            t.whole = below(60) == 0;
            const u32 afters = below(8) == 0 ? 1 + below(2) : 0;
            for (u32 i = 0; i < afters && t.id > 0; ++i)
                t.entries.push_back(access_entry::after(0, t.id - 1 - below(std::min<u64>(t.id, below(2) ? 40 : 4))));
            const u32 count = below(12) == 0 ? 5 + below(50) : below(5);
            for (u32 i = 0; i < count; ++i) t.entries.push_back(draw_entry());
            const auto pick = below(free_slots.size());
            const u32 slot = free_slots[pick];
            free_slots.erase(free_slots.begin() + static_cast<long>(pick));
            in_slot[slot] = t.id;
            w.decode(slot, t.id, t.entries, t.whole ? u32{abi::flag_whole_memory} : 0u);
            upstream[t.id] = t;
        };
        const auto link = [&] {
            const u32 waiting = std::min(w.admitted.available(w.engine.team), u32{32});
            for (const auto& l : w.link_together(1 + static_cast<u32>(below(waiting)))) {
                REQUIRE(in_slot[l.slot] == next_linked);
                task t = upstream.at(next_linked);
                upstream.erase(next_linked++);
                for (const auto& [id, old] : flying) {
                    bool wait = t.whole || old.whole;
                    for (const auto& e : t.entries) {
                        if (e.kind() == abi::entry_kind::after) wait |= e.after_position() == id;
                        else if (e.is_memory())
                            for (const auto& o : old.entries) wait |= o.is_memory() && abi::conflicts(e, o);
                    }
                    if (wait) t.waits_for.push_back(id);
                }
                REQUIRE((l.pending == 0) == t.waits_for.empty());
                REQUIRE(l.pending <= t.waits_for.size());
                REQUIRE(l.pending <= l.named);
                REQUIRE(l.pending + l.stale <= l.named);
                stale += l.stale;
                if (l.pending == 0) ready.push_back(l.slot);
                flying[t.id] = t;
            }
        };
        const auto complete = [&] {
            const auto pick = below(ready.size());
            const u32 slot = ready[pick];
            ready.erase(ready.begin() + static_cast<long>(pick));
            for (const u64 before : flying[in_slot[slot]].waits_for) REQUIRE_FALSE(flying.contains(before));
            for (const u32 freed : w.complete(slot)) {
                REQUIRE(std::find(ready.begin(), ready.end(), freed) == ready.end());
                ready.push_back(freed);
            }
            flying.erase(in_slot[slot]);
        };
        for (u32 turn = 0; turn < 3000; ++turn) {
            const bool submits = !free_slots.empty() && below(100) < 55;
            if (submits) submit();
            else if (!ready.empty()) complete();
            if (below(100) >= lag) w.step();
            while (w.may_link() && below(100) >= lag) link();
            for (const u32 slot : w.take_free()) free_slots.push_back(slot);
            REQUIRE((flying.empty() || !ready.empty())); // somebody can always go on
        }
        for (u64 turn = 0; turn < 4 * next_id && free_slots.size() != window_slots; ++turn) {
            w.step();
            while (w.may_link()) link();
            if (!ready.empty()) complete();
            for (const u32 slot : w.take_free()) free_slots.push_back(slot);
        }
        REQUIRE((flying.empty() && upstream.empty() && free_slots.size() == window_slots));
        w.step();
        REQUIRE(w.remembers_nothing());
        if (lag == 0) CHECK(stale == 0);
        else CHECK(stale > 0);
    }
}
