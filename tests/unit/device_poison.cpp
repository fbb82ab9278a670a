// The books of poison (device/poison.hpp) on an engine made by hand.
#include "device_engine.hpp"
#include "trace_catch.hpp"

using namespace slipstream;
using namespace slipstream::tests;

namespace {

struct poison_test {
    poison_test() : engine({.window = 64, .pool_blocks = 1024}), poison(engine.m, engine.s) {}

    /// Completes tasks in slots, as the scheduler does; `code` of each.
    void complete(const std::vector<std::pair<u32, u32>>& slots)
    {
        u32 n = 0;
        for (const auto& [slot, code] : slots) {
            P::store(device::edge::P4_status, engine.m.records[slot].status, code, device::order::relaxed, device::scope::device);
            engine.s.batch[n++] = slot;
        }
        poison.settle(engine.team, n);
    }
    bool cancels(u32 slot) { return poison.cancels(engine.team, slot); }
    void fill(u32 slot, u64 id, const std::vector<access_entry>& entries, u32 flags = 0)
    {
        engine.fill_slot(slot, id, entries, flags);
    }
    static access_entry r(u64 at, u64 bytes) { return access_entry::range(access_mode::read, at, bytes); }
    static access_entry w(u64 at, u64 bytes) { return access_entry::range(access_mode::write, at, bytes); }

    hand_made_engine engine;
    device::poison<P> poison;
};

} // namespace

TEST_CASE("numbers follow the batch, so that the notifier meets them in order; successes have none", "[device][poison]")
{
    poison_test t;
    for (u32 slot = 0; slot < 40; ++slot) t.fill(slot, slot, {poison_test::w(8 * slot, 8)});
    CHECK_FALSE(t.poison.any());
    std::vector<std::pair<u32, u32>> batch;
    for (u32 slot = 40; slot-- > 0;) batch.emplace_back(slot, slot % 2 ? 100 + slot : 0);
    t.complete(batch);
    CHECK(t.poison.any());
    u32 number = 0;
    for (const auto& [slot, code] : batch) {
        const auto outcome = t.poison.outcome(slot);
        CHECK(outcome.status == code);
        CHECK(outcome.failure == (code ? ++number : 0));
    }
}

TEST_CASE("a task found free of poison stays so, whatever fails while its blocks are dealt", "[device][poison]")
{
    poison_test t;
    t.fill(0, 0, {poison_test::w(0, 8)});
    t.fill(1, 1, {poison_test::r(64, 8)});
    t.fill(2, 2, {}, abi::flag_whole_memory);
    t.fill(3, 3, {poison_test::r(64, 8)});
    t.complete({{0, 5}});
    CHECK_FALSE(t.cancels(1));
    t.complete({{2, 6}}); // everything is poisoned (as when the books overflow)
    CHECK_FALSE(t.cancels(1));
    CHECK(t.cancels(3));
    // The slot's next task is judged anew.
    t.fill(1, 99, {poison_test::r(64, 8)});
    CHECK(t.cancels(1));
    CHECK(t.poison.pending() == 2);
    t.engine.s.batch[0] = 60; // a task that workers completed stands before them
    t.fill(60, 60, {});
    REQUIRE(t.poison.collect(t.engine.team, 1) == 3);
    CHECK((t.engine.s.batch[0] == 60 && t.engine.s.batch[1] == 3 && t.engine.s.batch[2] == 1));
    CHECK(t.poison.pending() == 0);
    t.poison.settle(t.engine.team, 3);
    CHECK(t.poison.outcome(60).failure == 0);
    CHECK(t.poison.outcome(3).failure == (3 | device::outcome_cancelled));
    CHECK(t.poison.outcome(3).status == 2); // the failure that poisoned everything
    CHECK(t.poison.outcome(1).failure == (4 | device::outcome_cancelled));
}

TEST_CASE("accesses in pool blocks poison, are cancelled and heal like the others", "[device][poison]")
{
    poison_test t;
    std::vector<access_entry> many, reading;
    for (u32 i = 0; i < 100; ++i) many.push_back(poison_test::w(16 * i, 8));
    for (u32 i = 0; i < 99; ++i) reading.push_back(poison_test::r(16 * i + 8, 8));
    t.fill(0, 0, many);
    t.fill(1, 1, reading);
    reading.push_back(poison_test::r(16 * 77, 1));
    t.fill(2, 2, reading);
    t.complete({{0, 5}});
    CHECK_FALSE(t.cancels(1));
    CHECK(t.cancels(2));
    t.fill(3, 3, many);
    t.complete({{3, 0}}); // not judged: mailed before the failure
    t.fill(4, 4, reading);
    CHECK(t.cancels(4));
    t.fill(5, 5, many);
    CHECK_FALSE(t.cancels(5));
    t.complete({{5, 0}});
    t.fill(6, 6, reading);
    CHECK_FALSE(t.cancels(6));
}

TEST_CASE("cancelled tasks of one ring in a row take one place in the book, a stream join none", "[device][poison]")
{
    poison_test t;
    t.fill(0, 10, {});
    t.complete({{0, 5}});
    for (u64 id = 11; id < 2000; ++id) {
        const u32 slot = id % 64;
        t.fill(slot, id, {access_entry::after(0, id - 1), access_entry::after(abi::after_stream_ring, 3)});
        REQUIRE(t.cancels(slot));
        REQUIRE(t.poison.collect(t.engine.team, 0) == 1);
        t.poison.settle(t.engine.team, 1);
    }
    CHECK(t.engine.s.poison_state[device::poison_run_count] == 1);
    CHECK(t.engine.s.poison_state[device::poison_everything] == 0);
    t.fill(0, 5000, {access_entry::after(abi::after_stream_ring, 15)});
    CHECK_FALSE(t.cancels(0));
    t.fill(1, 5001, {}, abi::flag_whole_memory | abi::flag_clear_failure);
    CHECK_FALSE(t.cancels(1));
    CHECK_FALSE(t.poison.any());
    t.fill(2, 5002, {access_entry::after(0, 1500)});
    CHECK_FALSE(t.cancels(2));
}
