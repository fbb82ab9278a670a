// Completion bits and low-water marks, across laps of the bit map.
#include "device_engine.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

using namespace slipstream;
using namespace slipstream::tests;
using device::completion_span;

namespace {

struct notifier_test {
    explicit notifier_test(u32 rings = 1)
        : engine({.window = 64, .rings = rings}), retired(engine.s.retired_queue()), finished(engine.s.finished_queue()),
          notify(engine.m, engine.s, ~u64{0} >> 2)
    {
        for (u32 slot = 0; slot < engine.m.n.window; ++slot) slots.push_back(slot);
    }
    /// A task of its own slot; `look`: the scheduler has settled it.
    void retire(u32 ring, u64 position, u32 status = 0, u32 failure = 0)
    {
        retire_as(ring, position, status, failure, failure != 0);
    }
    u32 retire_as(u32 ring, u64 position, u32 status, u32 failure, bool look)
    {
        if (slots.empty()) drain();
        REQUIRE_FALSE(slots.empty());
        const u32 slot = slots.back();
        slots.pop_back();
        P::set(engine.s.task_id[slot], u64{ring} << 56 | position);
        engine.s.poison_outcomes[slot] = {status, failure};
        retired.push(engine.team, slot | (look ? device::retired_look : 0));
        return slot;
    }
    void drain()
    {
        while (notify.step(engine.team)) {}
        while (finished.available(engine.team)) slots.push_back(finished.pop());
        finished.release(engine.team);
    }
    bool bit(u32 ring, u64 position) const
    {
        const u32 at = static_cast<u32>(position % completion_span);
        const u32 word = engine.m.complete_bits[ring * device::completion_words + at / 32].raw;
        return (word >> at % 32 & 1) == device::complete_value(position);
    }
    u64 low_water(u32 ring) const { return engine.m.ring_pages[ring].low_water.raw; }

    hand_made_engine engine;
    device::queue_producer<P, u32, device::edge::R6_retired, device::edge::A6_notified> retired;
    device::queue_consumer<P, u16, device::edge::A11_finished, device::edge::R11_taken> finished;
    device::notifier<P> notify;
    std::vector<u32> slots; ///< free ones
};

} // namespace

TEST_CASE("a completed bit means the opposite on the next lap", "[device][notifier]")
{
    for (const u64 p : {u64{0}, u64{completion_span} - 1, u64{completion_span}, u64{5} * completion_span + 7, u64{1} << 40})
        CHECK(device::complete_value(p) != device::complete_value(p + completion_span));
    CHECK(device::complete_value(0) == 1); // zeroed memory: nothing is complete
}

TEST_CASE("the mark waits for the oldest submission; later ones have their bits", "[device][notifier]")
{
    notifier_test t;
    for (u64 p = 1; p < 200; ++p) t.retire(0, p);
    t.drain();
    CHECK(t.low_water(0) == 0);
    CHECK_FALSE(t.bit(0, 0));
    for (u64 p = 1; p < 200; ++p) REQUIRE(t.bit(0, p));
    CHECK_FALSE(t.bit(0, 200));
    t.retire(0, 0);
    t.drain();
    CHECK(t.low_water(0) == 200);
}

TEST_CASE("shuffled completions over four laps: mark and bits are right after every batch", "[device][notifier]")
{
    for (u64 seed = 1; seed <= 3; ++seed) {
        INFO("seed " << seed);
        std::mt19937_64 random(seed);
        notifier_test t(2);
        const u64 total = 4ull * completion_span + 1234;
        std::vector<bool> complete(total + completion_span);
        std::vector<u64> open;
        u64 next = 0, mark = 0;
        while (mark < total) {
            while (next < total && open.size() < 700 && next < mark + completion_span) open.push_back(next++);
            const auto pick = random() % open.size();
            const u64 p = open[pick];
            open[pick] = open.back();
            open.pop_back();
            complete[p] = true;
            t.retire(1, p);
            if (random() % 16 == 0 || open.empty() || next == total) {
                t.drain();
                while (mark < total && complete[mark]) ++mark;
                REQUIRE(t.low_water(1) == mark);
                for (u32 i = 0; i < 8; ++i) {
                    const u64 probe = mark + random() % 1500;
                    REQUIRE(t.bit(1, probe) == complete[probe]);
                }
            }
        }
        CHECK(t.low_water(0) == 0);
    }
}

TEST_CASE("a span that completes in reverse moves the mark once, over all of it", "[device][notifier]")
{
    notifier_test t;
    for (u64 lap = 0; lap < 2; ++lap) {
        for (u64 i = 0; i < completion_span; ++i) {
            REQUIRE(t.low_water(0) == lap * completion_span);
            t.retire(0, (lap + 1) * completion_span - 1 - i);
        }
        t.drain();
        REQUIRE(t.low_water(0) == (lap + 1) * completion_span);
    }
}

TEST_CASE("a failure leaves its record before its completion bit", "[device][notifier]")
{
    notifier_test t;
    t.retire(0, 0);
    t.retire(0, 1, 77, 1);
    t.retire(0, 2, 1, 2 | device::outcome_cancelled);
    t.drain();
    const auto record = device::failure_record::decode(t.engine.m.page->failures[0].raw);
    CHECK((record.position == 1 && record.ring == 0 && record.status == 77 && record.tag == 1 && !record.cancelled));
    const auto second = device::failure_record::decode(t.engine.m.page->failures[1].raw);
    CHECK((second.position == 2 && second.ring == 0 && second.status == 1 && second.tag == 2 && second.cancelled));
    CHECK(t.engine.m.page->failures[2].raw.w[3] == 0);
    CHECK(t.low_water(0) == 3);
}

TEST_CASE("a failure whose place holds a record the host has not read waits, and its task is not complete before",
          "[device][notifier]")
{
    notifier_test t;
    for (u32 n = 1; n <= device::failures_kept; ++n) t.retire(0, n - 1, 1000 + n, n);
    t.drain();
    CHECK(t.low_water(0) == device::failures_kept);
    t.retire(0, device::failures_kept, 5, device::failures_kept + 1);
    std::thread host([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const u64 mark = std::atomic_ref<u64>(t.engine.m.ring_pages[0].low_water.raw).load();
        CHECK(mark == device::failures_kept);
        CHECK(P::load(device::edge::A7_failure, t.engine.m.page->failures[0], device::order::acquire,
                      device::scope::system).w[3] == 1);
        P::store(device::edge::R18_failures_read, t.engine.m.page->failures_read, 1u, device::order::release,
                 device::scope::system);
    });
    t.drain();
    host.join();
    CHECK(t.low_water(0) == device::failures_kept + 1);
    CHECK(device::failure_record::decode(t.engine.m.page->failures[0].raw).tag == device::failures_kept + 1);
}

TEST_CASE("a failure whose record finds no room when the engine is aborted never looks like a success", "[device][notifier]")
{
    notifier_test t;
    for (u32 n = 1; n <= device::failures_kept; ++n) t.retire(0, n - 1, 1000 + n, n);
    t.drain();
    P::store(device::edge::R8_command, t.engine.m.page->command_word, static_cast<u32>(device::command::abort),
             device::order::release, device::scope::system);
    t.retire(0, device::failures_kept, 5, device::failures_kept + 1);
    t.retire(0, device::failures_kept + 1);
    t.drain();
    for (const u32 position : {0u, 1u}) CHECK_FALSE(t.bit(0, device::failures_kept + position));
    CHECK(t.low_water(0) == device::failures_kept);
}

TEST_CASE("slots go on to admission in the order they retired, each once, in batches of any size", "[device][notifier]")
{
    notifier_test t;
    t.finished.release(t.engine.team);
    u64 position = 0;
    for (const u32 count : {1u, 31u, 32u, 33u, 64u, 7u}) {
        std::vector<u32> retired;
        for (u32 i = 0; i < count; ++i) retired.push_back(t.retire_as(0, position++, 0, 0, false));
        t.slots.clear();
        t.drain();
        CHECK(t.slots == retired);
        CHECK(t.low_water(0) == position);
        t.slots.clear();
        for (u32 slot = 0; slot < 64; ++slot) t.slots.push_back(slot);
    }
}

TEST_CASE("an outcome is looked at only where the scheduler says that there is one", "[device][notifier]")
{
    notifier_test t;
    t.retire_as(0, 0, 55, 7, false); // what a task before it left in the slot
    t.retire_as(0, 1, 0, 0, true);
    t.retire_as(0, 2, 66, 1, true);
    t.drain();
    const auto record = device::failure_record::decode(t.engine.m.page->failures[0].raw);
    CHECK((record.position == 2 && record.status == 66 && record.tag == 1));
    CHECK(t.engine.m.page->failures[1].raw.w[3] == 0);
}

TEST_CASE("park is asked for when the residency is over, once, and the stop word says so", "[device][notifier]")
{
    hand_made_engine e({});
    device::notifier<P> over(e.m, e.s, 0);
    over.step(e.team);
    CHECK(e.s.request->raw == static_cast<u32>(device::command::park));
    CHECK(e.m.stop->raw == static_cast<u32>(device::stop_level::park));
    const u32 beat = e.m.page->heartbeat.raw;
    for (u32 i = 0; i < 1000; ++i) over.step(e.team); // idle rounds look at the host now and then
    CHECK(e.m.page->heartbeat.raw > beat);
    e.m.page->command_word.raw = static_cast<u32>(device::command::drain);
    for (u32 i = 0; i < 1000; ++i) over.step(e.team);
    CHECK(e.s.request->raw == static_cast<u32>(device::command::park));
}

TEST_CASE("one round completes bits of several words and rings, each word told once", "[device][notifier]")
{
    notifier_test t(3);
    const std::vector<std::pair<u32, u64>> round = {{0, 33}, {1, 5}, {0, 0}, {2, 64}, {0, 32},
                                                    {1, 0}, {0, 1}, {2, 31}, {0, 95}, {1, 6}};
    for (const auto& [ring, position] : round) t.retire(ring, position);
    t.drain();
    for (u32 ring = 0; ring < 3; ++ring)
        for (u64 position = 0; position < 128; ++position)
            REQUIRE(t.bit(ring, position) == (std::find(round.begin(), round.end(), std::pair{ring, position}) != round.end()));
    CHECK((t.low_water(0) == 2 && t.low_water(1) == 1 && t.low_water(2) == 0));
    t.notify.save(t.engine.team);
    CHECK(P::get(t.engine.m.bus[device::completion_words_told]) == 6);
    CHECK(P::get(t.engine.m.bus[device::low_water_told]) == 2);
}

TEST_CASE("the end of one lap and the middle of the next meet in a word, in one round", "[device][notifier]")
{
    // Only submission 191 keeps the mark back; one of the next lap that shares its word has completed before.
    notifier_test t;
    for (u64 p = 0; p < completion_span; ++p)
        if (p != 191) t.retire(0, p);
    t.drain();
    CHECK(t.low_water(0) == 191);
    t.retire(0, completion_span + 160);
    t.retire(0, 191);
    t.retire(0, completion_span + 190);
    t.drain();
    CHECK(t.low_water(0) == completion_span);
    for (u64 p = completion_span; p < completion_span + 192; ++p)
        REQUIRE(t.bit(0, p) == (p == completion_span + 160 || p == completion_span + 190));
    for (u64 p = 0; p < 160; ++p) t.retire(0, completion_span + p);
    t.drain();
    CHECK(t.low_water(0) == completion_span + 161);
}

TEST_CASE("match32 finds the first of those with a key, among those asked for", "[device][platform]")
{
    std::mt19937 random(1);
    for (u32 round = 0; round < 200; ++round) {
        const u32 mask = round == 0 ? ~0u : static_cast<u32>(random());
        const u32 spread = 1 + random() % 32;
        u32 keys[32];
        for (u32& key : keys) key = random() % spread;
        P::lane_array<u32, 1> first{};
        P::team::match32(mask, [&](u32 k) { return keys[k]; }, first);
        for (u32 k = 0; k < 32; ++k) {
            if (!(mask >> k & 1)) continue;
            u32 expected = 0;
            while (!(mask >> expected & 1) || keys[expected] != keys[k]) ++expected;
            REQUIRE(first.at(0, k) == expected);
        }
    }
}
