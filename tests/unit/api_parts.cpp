// An engine of several parts (config::parts), on the host device: memory belongs to parts, tasks that touch several are ordered in
// each, failures are told in the caller's terms.
#include "device/host_platform.hpp"
#include "host/runtime_core.hpp"
#include "api_tasks.hpp"
#include "tests/stress/digest_stream.hpp"
#include "tests/stress/failing_program.hpp"
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// to = to * 3 + from: of any two of them on the same memory, the order shows.
struct join_task {
    static constexpr const char* name = "join";
    in<u64> from;
    inout<u64> to;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < to.size(); i += block.global_size()) to[i] = to[i] * 3 + from[i];
    }
};

struct may_fail_task {
    static constexpr const char* name = "may fail";
    u32 code;
    template <class Block> void operator()(Block& block) const
    {
        if (code != 0) block.fail(code);
    }
};

using parts_engine = runtime<step_task, gate_task, count_task, join_task, may_fail_task>;

config parts_config(u32 parts, u32 workers_each = 2)
{
    config c = host_config();
    c.parts = parts;
    c.host_workers = workers_each * parts;
    return c;
}

bool says(const std::string& text, std::initializer_list<const char*> pieces)
{
    for (const char* piece : pieces)
        if (text.find(piece) == std::string::npos) {
            WARN("'" << text << "' does not say '" << piece << "'");
            return false;
        }
    return true;
}

/// Arrays of the test's own, one in each part; handles of them, or raw ranges.
struct spread_arrays {
    static constexpr u64 count = 32;

    spread_arrays(parts_engine& engine, bool with_handles)
        : rt(engine), values(engine.parts(), std::vector<u64>(count, 1)), expected(engine.parts(), 1)
    {
        for (u32 p = 0; p < rt.parts(); ++p) {
            rt.place(values[p].data(), 8 * count, p);
            if (with_handles) handles.push_back(rt.register_range(values[p].data(), 8 * count));
        }
    }
    template <class Access> Access at(u32 p) { return handles.empty() ? Access(values[p].data(), count) : Access(handles[p]); }
    task_handle step(u32 p)
    {
        expected[p] = expected[p] * 3 + 1;
        return rt.submit(step_task{at<inout<u64>>(p)});
    }
    task_handle join(u32 from, u32 to)
    {
        expected[to] = expected[to] * 3 + expected[from];
        return rt.submit(join_task{at<in<u64>>(from), at<inout<u64>>(to)});
    }
    bool right() const
    {
        for (u32 p = 0; p < expected.size(); ++p)
            if (values[p] != std::vector<u64>(count, expected[p])) return false;
        return true;
    }

    parts_engine& rt;
    std::vector<std::vector<u64>> values;
    std::vector<u64> expected;
    std::vector<data_handle> handles;
};

} // namespace

TEST_CASE("an engine of parts shares out its workers and adds up what it is asked", "[api][parts]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u, 3u, 8u}) {
            auto c = host_config();
            c.parts = parts;
            c.host_workers = 7;
            c.rings = 9; // taken as 1
            c.window = 40;
            parts_engine rt(c);
            CHECK(rt.parts() == parts);
            CHECK(rt.workers() == std::max(7u, parts));
            CHECK(rt.control_blocks() == parts);
            CHECK(rt.configuration().parts == parts);
            CHECK(rt.configuration().host_workers == 7);
            CHECK(rt.configuration().window == 64);
            CHECK(rt.configuration().rings == (parts == 1 ? 9 : 1));
            CHECK(rt.device_name() == "host");
        }
    });
}

TEST_CASE("parts that cannot be are refused in a sentence that says what to do", "[api][parts]")
{
    const auto refused = [](const config& c) { return thrown<config_error>([&] { parts_engine rt(c); }); };
    auto c = host_config();
    c.parts = 0;
    CHECK(says(refused(c), {"parts = 0", "1 to 8"}));
    c.parts = 9;
    CHECK(says(refused(c), {"parts = 9", "1 to 8"}));
    c.parts = 2;
    c.batch = true;
    CHECK(says(refused(c), {"batch mode has one part"}));
    c.batch = false;
    c.window = 3;
    CHECK(says(refused(c), {"window = 3"}));
}

TEST_CASE("tasks of one part go there, by handle and by address; their handles name the part", "[api][parts]")
{
    in_time(30, [] {
        for (const bool with_handles : {false, true}) {
            parts_engine rt(parts_config(3));
            spread_arrays arrays(rt, with_handles);
            std::vector<task_handle> all;
            for (u32 i = 0; i < 3000; ++i) {
                const auto h = arrays.step(i % 3);
                CHECK(h.ring == i % 3);
                all.push_back(h);
            }
            const auto last = rt.submit(step_task{arrays.at<inout<u64>>(2)}, {.after = all.back(), .name = "named"});
            arrays.expected[2] = stepped(arrays.expected[2], 1);
            CHECK(last.ring == 2);
            CHECK(rt.wait(last).ok());
            for (const auto h : all) {
                CHECK(rt.wait(h).ok());
                CHECK(rt.query(h).ok());
            }
            CHECK(rt.wait_all());
            CHECK(arrays.right());
        }
    });
}

TEST_CASE("tasks that touch nothing go to all parts in turns; one that has a predecessor goes to that one's", "[api][parts]")
{
    in_time(30, [] {
        parts_engine rt(parts_config(3));
        std::array<u32, 3> tasks{};
        for (u32 i = 0; i < 300; ++i) ++tasks.at(rt.submit(marker_task{}, {.order = ordering::no_access}).ring);
        CHECK(tasks == std::array<u32, 3>{100, 100, 100});
        for (u32 i = 0; i < 4; ++i) {
            const auto before = rt.submit(marker_task{}, {.order = ordering::no_access});
            const auto after = rt.submit(marker_task{}, {.after = before, .order = ordering::no_access});
            CHECK(after.ring == before.ring);
            CHECK(rt.wait(after).ok());
            CHECK(rt.query(before).ok());
        }
        CHECK(rt.wait_all());
    });
}

TEST_CASE("memory of a part's pool is that part's; a buffer that goes gives it back there", "[api][parts]")
{
    in_time(30, [] {
        auto c = parts_config(2);
        c.memory_bytes = 4096;
        parts_engine rt(c);
        for (u32 round = 0; round < 50; ++round) {
            buffer<u64> a(rt, 512), b(rt, 512, 1); // each is all of its pool
            CHECK(rt.part_of(a.data()) == 0);
            CHECK(rt.part_of(b.data()) == 1);
            CHECK(rt.part_of(b.data() + 511) == 1);
            std::vector<u64> values(512, round), back(512);
            CHECK(a.upload(values).ring == 0);
            CHECK(b.upload(values).ring == 1);
            const auto handle = b.handle();
            CHECK(rt.submit(step_task{handle}).ring == 1);
            CHECK(rt.submit(step_task{b}).ring == 1);
            b.download(back);
            CHECK(back == std::vector<u64>(512, stepped(round, 2)));
            a.download(back);
            CHECK(back == values);
        }
        CHECK(says(thrown<config_error>([&] { (void)rt.allocate(4097, 1); }), {"config::memory_bytes"}));
        CHECK(says(thrown<config_error>([&] { (void)rt.allocate(16, 2); }), {"part 2", "has 2"}));
        CHECK(rt.part_of(&c) == 0);
    });
}

TEST_CASE("memory is placed once, and whole; what is placed where cannot change", "[api][parts]")
{
    in_time(20, [] {
        parts_engine rt(parts_config(3));
        alignas(64) static char memory[4096];
        const auto refused = [&](u64 at, u64 bytes, u32 part) {
            return thrown<config_error>([&] { rt.place(memory + at, bytes, part); });
        };
        rt.place(memory + 1000, 100, 1);
        rt.place(memory + 1000, 100, 1); // again
        rt.place(memory + 1050, 100, 1); // and more
        CHECK(rt.part_of(memory + 999) == 0);
        CHECK(rt.part_of(memory + 1000) == 1);
        CHECK(rt.part_of(memory + 1149) == 1);
        CHECK(rt.part_of(memory + 1150) == 0);
        CHECK(says(refused(1149, 10, 2), {"was placed in part 1"}));
        CHECK(says(refused(0, 4096, 0), {"was placed in part 1"}));
        rt.place(memory + 1150, 50, 2);
        CHECK(rt.part_of(memory + 1150) == 2);
        CHECK(says(refused(2000, 10, 3), {"part 3", "has 3", "config::parts"}));
        CHECK(says(refused(2000, 0, 1), {"empty"}));
        CHECK(says(refused(2000, ~u64{0} - 100, 1), {"behind all addresses"}));
        CHECK(rt.part_of(memory + 2000) == 0);
        void* const pool = rt.allocate(256, 1);
        rt.place(pool, 16, 1); // where it is
        CHECK(says(thrown<config_error>([&] { rt.place(pool, 16, 2); }), {"pool of part 1"}));

        // What is registered in no part's memory became part 0's.
        (void)rt.register_range(memory + 3000, 100);
        CHECK(says(refused(3050, 100, 1), {"registered", "place it before"}));
        rt.place(memory + 3050, 100, 0);

        const auto reaches = [&](auto call) { return says(thrown<config_error>(call), {"several parts", "place()"}); };
        CHECK(reaches([&] { (void)rt.register_range(memory + 990, 20); }));
        CHECK(reaches([&] { (void)rt.register_tile(memory + 1000, 8, 3, 100); }));
        CHECK(reaches([&] { rt.upload(memory + 1140, memory, 20); }));
        CHECK(reaches([&] { rt.download(memory, memory + 1140, 20); }));
        const auto tile = rt.register_tile(memory + 1000, 8, 3, 50);
        CHECK(rt.register_tile(memory + 1000, 8, 3, 50).index == tile.index);
        CHECK(says(thrown<config_error>([&] { (void)rt.register_range(memory + 1001, 8); }), {"partly overlaps"}));
        CHECK(rt.submit(marker_task{}, {.accesses = on(access_mode::read, tile)}).ring == 1);

        parts_engine one(host_config());
        one.place(memory, 4096, 0);
        CHECK(one.part_of(memory) == 0);
        CHECK(says(thrown<config_error>([&] { one.place(memory, 4096, 1); }), {"part 1", "config::parts"}));
    });
}

TEST_CASE("handles have one index in all parts, and run out together", "[api][parts]")
{
    in_time(20, [] {
        auto c = parts_config(2);
        c.handles_max = 6;
        parts_engine rt(c);
        static u64 memory[8][8];
        for (u32 i = 0; i < 8; i += 2) rt.place(memory[i], 64, 1);
        for (u32 i = 0; i < 6; ++i) CHECK(rt.register_range(memory[i], 64).index == i);
        for (u32 i = 0; i < 6; ++i) CHECK(rt.register_range(memory[i], 64).index == i);
        for (u32 i = 6; i < 8; ++i)
            CHECK(says(thrown<config_error>([&] { (void)rt.register_range(memory[i], 64); }), {"config::handles_max"}));
    });
}

TEST_CASE("one thread submits; others may wait, register and allocate", "[api][parts]")
{
    in_time(20, [] {
        parts_engine rt(parts_config(2));
        spread_arrays arrays(rt, false);
        const auto h = arrays.step(1); // takes part 1's ring; part 0's goes with it
        std::thread([&] {
            CHECK(rt.wait(h).ok());
            CHECK(rt.register_range(arrays.values[1].data(), 64).index == 0);
            CHECK(says(thrown<config_error>([&] { rt.submit(step_task{{arrays.values[0].data(), 4}}); }),
                       {"more than one thread submits"}));
            CHECK(says(thrown<config_error>([&] { rt.submit(step_task{{arrays.values[1].data(), 4}}); }),
                       {"more than one thread submits"}));
            buffer<u64> b(rt, 16, 1);
        }).join();
        arrays.step(0);
        arrays.step(1);
        CHECK(rt.wait_all());
        CHECK(arrays.right());
    });
}

TEST_CASE("handles that are no handles of this runtime are refused, in `after` too", "[api][parts]")
{
    parts_engine rt(parts_config(2));
    const task_handle none{2, 0};
    CHECK(says(thrown<config_error>([&] { (void)rt.query(none); }), {"not of this runtime"}));
    CHECK(says(thrown<config_error>([&] { (void)rt.wait(none); }), {"not of this runtime"}));
    CHECK(says(thrown<config_error>([&] { rt.submit(marker_task{}, {.after = none}); }), {"not of this runtime"}));
    CHECK(says(thrown<config_error>([&] { rt.submit(may_fail_task{0}, {.blocks = 0}); }), {"blocks"}));
    CHECK(says(thrown<config_error>([&] { rt.submit_bytes(99, nullptr, {}); }), {"not in the runtime's list"}));
}

TEST_CASE("a read after a write, a write after a read and a write after a write keep their order across parts", "[api][parts]")
{
    in_time(60, [] {
        for (const bool with_handles : {false, true}) {
            parts_engine rt(parts_config(4));
            spread_arrays arrays(rt, with_handles);
            std::mt19937 random(1);
            for (u32 round = 0; round < 30; ++round) {
                gate g;
                rt.submit(g.task(), {.accesses = writes(arrays.values[random() % 4].data(), 8)});
                for (u32 i = 0; i < 40; ++i) {
                    if (random() % 3 == 0) {
                        arrays.step(random() % 4);
                    } else {
                        const u32 from = random() % 4, to = (from + 1 + random() % 3) % 4;
                        CHECK(arrays.join(from, to).ring == to); // where it writes
                    }
                }
                g.open();
                CHECK(rt.wait_all());
                REQUIRE(arrays.right());
            }
        }
    });
}

TEST_CASE("a crossing task waits for its predecessors in every part, and holds back what comes after it in every part",
          "[api][parts]")
{
    in_time(30, [] {
        parts_engine rt(parts_config(3));
        spread_arrays arrays(rt, true);
        std::atomic<u32> ran{0};
        gate before, within;
        const auto list = [&](access_mode mode, std::initializer_list<u32> parts) {
            std::vector<declared_access> out;
            for (const u32 p : parts) out.push_back(on(mode, arrays.handles[p]));
            return out;
        };
        const auto reader = rt.submit(before.task(), {.accesses = list(access_mode::read, {2})});
        const auto crossing = rt.submit(within.task(), {.accesses = list(access_mode::write, {1, 0, 2})});
        CHECK(crossing.ring == 1);
        std::vector<task_handle> behind;
        for (u32 p = 0; p < 3; ++p)
            behind.push_back(rt.submit(count_task{reinterpret_cast<u64>(&ran)}, {.accesses = list(access_mode::read, {p})}));
        const auto free = rt.submit(marker_task{}, {.accesses = writes(&ran, 4)}); // part 0 goes on beside it
        CHECK(rt.wait(free).ok());
        within.open();
        CHECK(rt.wait(crossing, after(20ms)).state == task_state::pending); // a write after a read in part 2
        CHECK(rt.query(reader).state == task_state::pending);
        CHECK(ran == 0);
        before.open();
        CHECK(rt.wait(crossing).ok());
        for (const auto h : behind) CHECK(rt.wait(h).ok());
        CHECK(ran == 3);
    });
}

TEST_CASE("a whole-memory task is ordered against everything in all parts", "[api][parts]")
{
    in_time(60, [] {
        parts_engine rt(parts_config(4));
        spread_arrays arrays(rt, true);
        for (u32 round = 0; round < 40; ++round) {
            std::atomic<u32> before{0}, after{0};
            for (u32 p = 0; p < 4; ++p)
                for (u32 i = 0; i < 5; ++i)
                    rt.submit(count_task{reinterpret_cast<u64>(&before)}, {.accesses = on(access_mode::read, arrays.handles[p])});
            // In turns: it says so, it says nothing, it says too much.
            std::vector<declared_access> many(2000, on(access_mode::read, arrays.handles[3]));
            gate g;
            const auto whole =
                round % 3 == 0   ? rt.submit(g.task(), {.accesses = writes(&before, 4), .order = ordering::whole_memory})
                : round % 3 == 1 ? rt.submit(g.task())
                                 : rt.submit(g.task(), {.accesses = many});
            for (u32 p = 0; p < 4; ++p)
                rt.submit(count_task{reinterpret_cast<u64>(&after)}, {.accesses = on(access_mode::read, arrays.handles[p])});
            while (before != 20) std::this_thread::yield();
            std::this_thread::sleep_for(2ms);
            REQUIRE(after == 0);
            REQUIRE(rt.query(whole).state == task_state::pending);
            g.open();
            CHECK(rt.wait_all());
            CHECK(after == 4);
        }
    });
}

TEST_CASE("after orders tasks of different parts; of parts it names, one that succeeded long ago costs nothing", "[api][parts]")
{
    in_time(40, [] {
        parts_engine rt(parts_config(3));
        spread_arrays arrays(rt, true);
        for (u32 round = 0; round < 30; ++round) {
            gate g;
            std::atomic<u32> ran{0};
            const auto first = rt.submit(g.task(), {.accesses = on(access_mode::read, arrays.handles[2])});
            const auto next = rt.submit(count_task{reinterpret_cast<u64>(&ran)},
                                        {.after = first, .accesses = on(access_mode::read, arrays.handles[1])});
            CHECK(next.ring == 1);
            const auto last = rt.submit(count_task{reinterpret_cast<u64>(&ran)},
                                        {.after = {{next, first}}, .order = ordering::no_access});
            CHECK(last.ring == 1);
            const auto other = rt.submit(marker_task{}, {.after = last, .accesses = on(access_mode::read, arrays.handles[0])});
            const auto free = rt.submit(marker_task{}, {.accesses = on(access_mode::read, arrays.handles[1])});
            CHECK(rt.wait(free).ok());
            CHECK(rt.query(other).state == task_state::pending);
            REQUIRE(ran == 0);
            g.open();
            CHECK(rt.wait(other).ok());
            CHECK(ran == 2);
            CHECK(rt.submit(marker_task{}, {.after = first, .order = ordering::no_access}).ring == 2);
            CHECK(rt.submit(marker_task{}, {.order = ordering::no_access}).ring == round % 3); // nothing leads it anywhere
        }
        CHECK(rt.wait_all());
    });
}

TEST_CASE("try_submit of a crossing task submits all of it or nothing", "[api][parts]")
{
    in_time(40, [] {
        auto c = parts_config(2);
        c.ring_slots = 8;
        c.window = 16;
        parts_engine rt(c);
        spread_arrays arrays(rt, true);
        gate g;
        rt.submit(g.task(), {.accesses = on(access_mode::write, arrays.handles[1])}); // part 1 fills, part 0 does not
        task_handle handle;
        u32 filled = 0;
        while (rt.try_submit(step_task{arrays.handles[1]}, handle) == submit_status::submitted && filled < 1000) {
            ++filled;
            std::this_thread::sleep_for(1ms);
        }
        REQUIRE(filled < 1000);
        const task_handle before = rt.submit(step_task{arrays.handles[0]});
        for (u32 i = 0; i < 20; ++i)
            CHECK(rt.try_submit(join_task{arrays.handles[1], arrays.handles[0]}, handle) == submit_status::full);
        const task_handle behind = rt.submit(step_task{arrays.handles[0]});
        CHECK(behind.position == before.position + 1);
        CHECK(rt.wait(behind).ok()); // nothing is in its way
        g.open();
        u32 crossed = 0;
        u64 want0 = stepped(1, 2);
        const u64 want1 = stepped(1, filled);
        while (crossed < 200) {
            if (rt.try_submit(join_task{arrays.handles[1], arrays.handles[0]}, handle) != submit_status::submitted) continue;
            ++crossed;
            want0 = want0 * 3 + want1;
        }
        CHECK(rt.wait_all());
        CHECK(arrays.values[0][0] == want0);
        CHECK(arrays.values[1][0] == want1);
    });
}

TEST_CASE("more crossing tasks than there are meetings", "[api][parts]")
{
    in_time(100, [] {
        for (const u32 parts : {2u, 5u}) {
            auto c = parts_config(parts);
            c.window = 1024;
            c.ring_slots = 4096;
            parts_engine rt(c);
            spread_arrays arrays(rt, true);
            task_handle handle;
            {
                gate g;
                rt.submit(g.task(), {.accesses = on(access_mode::write, arrays.handles[0])});
                for (u32 i = 0; i < abi::meetings_max; ++i) arrays.join(0, 1);
                CHECK(rt.try_submit(join_task{arrays.at<in<u64>>(0), arrays.at<inout<u64>>(1)}, handle) == submit_status::full);
                g.open();
                CHECK(rt.wait_all());
            }
            REQUIRE(arrays.right());
            for (u32 i = 0; i < 5000; ++i) {
                const u32 from = i % parts, to = (i * 7 + 1) % parts;
                if (from == to) arrays.step(from);
                else arrays.join(from, to);
            }
            CHECK(rt.wait_all());
            CHECK(arrays.right());
        }
    });
}

TEST_CASE("a crossing task of many blocks and of many accesses runs each block once", "[api][parts]")
{
    in_time(30, [] {
        auto c = parts_config(3);
        c.ring_slots = 4;
        c.window = 16;
        parts_engine rt(c);
        spread_arrays arrays(rt, false);
        std::vector<std::atomic<u32>> runs(500);
        std::vector<declared_access> many;
        for (u32 k = 0; k < 32; ++k)
            for (u32 p = 0; p < 3; ++p) many.push_back(writes(arrays.values[p].data() + k, 8));
        for (u32 i = 0; i < 50; ++i) {
            rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.blocks = 500, .accesses = many});
            arrays.step(i % 3);
        }
        CHECK(rt.wait_all());
        for (auto& r : runs) REQUIRE(r == 50);
        CHECK(arrays.right());
    });
}

TEST_CASE("tasks that cross become ready beside one whose blocks are being drawn: each block of all runs once", "[api][parts]")
{
    in_time(60, [] {
        parts_engine rt(parts_config(2)); // two workers each
        spread_arrays arrays(rt, false);
        u64 apart = 0; // part 0's, since it was never placed
        std::vector<std::atomic<u32>> wide(20), crossing(1);
        const auto counts = [](auto& of) { return count_task{reinterpret_cast<u64>(of.data())}; };
        for (u32 round = 0; round < 40; ++round) {
            gate g;
            const auto held = rt.submit(g.task(), {.blocks = 2 + round % 5, .accesses = writes(&apart, 8)}); // or drawn
            const auto behind = rt.submit(counts(wide), {.blocks = 20, .accesses = reads(&apart, 4)});
            rt.submit(counts(wide), {.blocks = 20, .order = ordering::no_access, .name = "beside it"});
            for (u32 k = 0; k < 1 + round % 7; ++k)
                rt.submit(counts(crossing), {.accesses = {{writes(&arrays.values[0][k], 8), reads(&arrays.values[1][k], 8)}}});
            CHECK(rt.wait(held, after(1ms)).state == task_state::pending);
            CHECK(rt.query(behind).state == task_state::pending);
            g.open();
            CHECK(rt.wait(behind).ok());
        }
        CHECK(rt.wait_all());
        for (auto& runs : wide) CHECK(runs == 80);
        u32 all = 0;
        for (u32 round = 0; round < 40; ++round) all += 1 + round % 7;
        CHECK(crossing[0] == all);
    });
}

TEST_CASE("random streams over memory of several parts equal the sequential run", "[api][parts][fuzz]")
{
    in_time(200, [] {
        const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
        for (u64 seed = given ? given : 500; seed < (given ? given + 1 : 516); ++seed) {
            std::mt19937_64 random(seed);
            config c = parts_config(2 + static_cast<u32>(random() % 3));
            if (random() % 8 == 0) c.parts = 8;
            c.window = std::vector<u32>{16, 32, 64, 256}[random() % 4];
            c.ring_slots = std::vector<u32>{4, 16, 64, 1024}[random() % 4];
            c.host_workers = c.parts + static_cast<u32>(random() % 6);
            if (seed % 3 == 0) c.residency = 1ms;
            const digest_stream stream(seed, {.tasks = 1000, .blocks_max = 1 + static_cast<u32>(random() % 12)});
            std::printf("seed %llu: parts %u window %u ring %u workers %u\n", static_cast<unsigned long long>(seed), c.parts,
                        c.window, c.ring_slots, c.host_workers);
            runtime<listed_task, member_task, row_task> rt(c);
            const std::string verdict = run_stream_in_parts(rt, stream, random, [&](u32) {
                if (random() % 200 != 0) return;
                rt.pause();
                rt.resume();
            });
            INFO(verdict);
            REQUIRE(verdict.empty());
        }
    });
}

namespace {

/// Everything in one-dimensional members: nearly every task that crosses is like this, and its messages are put together in one go.
struct mix_task {
    static constexpr const char* name = "mix";
    u32 number;
    in<u64> a;
    inout<u64> c;
    in<u64> b;
    out<u64> d;
    u64 more;
    static u64 mixed(u64 c, u64 a, u64 b, u64 number) { return c * 3 + a * 5 + b * 7 + number; }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < c.size(); i += block.global_size()) {
            c[i] = mixed(c[i], a[i], b[i], number + more);
            d[i] = c[i] ^ more;
        }
    }
};

/// Reads only; counts that it ran.
struct look_task {
    static constexpr const char* name = "look";
    in<u64> a, b;
    u64 runs;
    template <class Block> void operator()(Block&) const { ++*reinterpret_cast<std::atomic<u32>*>(runs); }
};

} // namespace

TEST_CASE("random tasks of 1-D members, by handle and as ranges of the parts' pools, equal the sequential run",
          "[api][parts][fuzz]")
{
    in_time(100, [] {
        constexpr u64 words = 8;
        constexpr u32 pieces = 6; // of each part
        const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
        for (u64 seed = given ? given : 700; seed < (given ? given + 1 : 712); ++seed) {
            std::mt19937_64 random(seed);
            config c = parts_config(2 + static_cast<u32>(random() % 3));
            c.window = std::vector<u32>{16, 32, 256}[random() % 3];
            c.ring_slots = std::vector<u32>{4, 16, 1024}[random() % 3];
            INFO("seed " << seed << ": parts " << c.parts << ", window " << c.window << ", ring " << c.ring_slots);
            runtime<mix_task, look_task> rt(c);
            std::vector<buffer<u64>> memory;
            std::vector<std::vector<u64>> expected;
            std::vector<data_handle> handles;
            for (u32 i = 0; i < pieces * c.parts; ++i) { // piece i is part i % parts's
                memory.emplace_back(rt, words, i % c.parts);
                expected.emplace_back(words, i + 1);
                memory.back().upload(expected.back());
                handles.push_back(memory.back().handle());
            }
            std::atomic<u32> looks{0}, looked = 0;
            u64 crossed = 0;
            for (u32 n = 0; n < 3000; ++n) {
                u32 at[4];
                for (u32& piece : at) piece = static_cast<u32>(random() % memory.size());
                if (random() % 3 == 0) at[0] = at[2] = at[1]; // within one part, perhaps
                while (at[3] == at[1] || at[3] == at[0] || at[3] == at[2]) at[3] = static_cast<u32>(random() % memory.size());
                const auto part = [&](u32 k) { return at[k] % c.parts; };
                const auto named = [&]<class Access>(u32 k, std::type_identity<Access>) {
                    return random() % 2 != 0 ? Access(handles[at[k]]) : Access(memory[at[k]].data(), words);
                };
                constexpr std::type_identity<in<u64>> reads;
                if (random() % 8 == 0) { // where nothing is written, home is where the first one lies
                    const look_task look{named(0, reads), named(2, reads), reinterpret_cast<u64>(&looks)};
                    const task_handle handle = rt.submit(look);
                    REQUIRE(handle.ring == part(0));
                    ++looked;
                    continue;
                }
                const u64 more = random();
                const mix_task task{n, named(0, reads), named(1, std::type_identity<inout<u64>>{}), named(2, reads),
                                    named(3, std::type_identity<out<u64>>{}), more};
                // With a name the message is put together chunk by chunk: it must say the same.
                const task_handle handle = random() % 16 == 0 ? rt.submit(task, {.name = "named"}) : rt.submit(task);
                REQUIRE(handle.ring == part(1)); // the first that is written
                crossed += part(0) != part(1) || part(2) != part(1) || part(3) != part(1);
                for (u64 i = 0; i < words; ++i) {
                    u64& to = expected[at[1]][i];
                    to = mix_task::mixed(to, expected[at[0]][i], expected[at[2]][i], n + more);
                    expected[at[3]][i] = to ^ more;
                }
            }
            CHECK(crossed > 1000);
            for (u32 i = 0; i < memory.size(); ++i) {
                std::vector<u64> found(words);
                memory[i].download(found);
                REQUIRE(found == expected[i]);
            }
            CHECK(rt.wait_all());
            CHECK(looks == looked);
        }
    });
}

TEST_CASE("pause stops all parts at a block boundary, in the middle of crossing tasks, too", "[api][parts]")
{
    in_time(40, [] {
        auto c = parts_config(3);
        c.window = 32;
        parts_engine rt(c);
        spread_arrays arrays(rt, true);
        std::mt19937 random(3);
        for (u32 round = 0; round < 60; ++round) {
            for (u32 i = 0; i < 60; ++i) {
                const u32 from = random() % 3;
                if (random() % 2) arrays.step(from);
                else arrays.join(from, (from + 1 + random() % 2) % 3);
            }
            rt.pause();
            const auto seen = arrays.values;
            std::this_thread::sleep_for(1ms);
            CHECK(seen == arrays.values);
            rt.resume();
        }
        CHECK(rt.wait_all());
        CHECK(arrays.right());
        CHECK(rt.launches() > 30);
    });
}

TEST_CASE("destruction waits for crossing tasks, also when paused", "[api][parts]")
{
    in_time(30, [] {
        for (u32 round = 0; round < 20; ++round) {
            std::atomic<u32> runs{0};
            {
                parts_engine rt(parts_config(4));
                if (round % 2) rt.pause();
                for (u32 i = 0; i < 50; ++i) rt.submit(count_task{reinterpret_cast<u64>(&runs)}, {.order = ordering::whole_memory});
            }
            REQUIRE(runs == 50);
        }
    });
}

TEST_CASE("memory is not handed out while a task of another part that does not declare it still uses it", "[api][parts]")
{
    in_time(20, [] {
        auto c = parts_config(2);
        c.memory_bytes = 4096;
        c.host_workers = 4;
        parts_engine rt(c);
        gate g;
        {
            buffer<u64> b(rt, 512, 1);
            const auto before = rt.submit(g.task(), {.order = ordering::no_access});
            CHECK(rt.submit(step_task{b}, {.after = before, .order = ordering::no_access}).ring == 0);
        }
        std::atomic<bool> opened{false};
        std::jthread opens([&] {
            std::this_thread::sleep_for(200ms);
            opened = true;
            g.open();
        });
        buffer<u64> again(rt, 512, 1);
        CHECK(opened);
    });
}

TEST_CASE("memory given up by another thread than the one that submits comes back, and takes no ring", "[api][parts]")
{
    in_time(20, [] {
        auto c = parts_config(2);
        c.memory_bytes = 4096;
        parts_engine rt(c);
        gate g;
        auto b = std::make_unique<buffer<u64>>(rt, 512, 1);
        rt.submit(marker_task{}, {.order = ordering::no_access}); // this thread has part 0's ring, and with it part 1's
        std::atomic<bool> gone{false}, over{false};
        std::thread other([&] {
            b.reset();
            gone = true;
            while (!over) std::this_thread::sleep_for(1ms);
        });
        while (!gone) std::this_thread::yield();
        buffer<u64> again(rt, 512, 1);
        CHECK(rt.wait(rt.submit(step_task{again})).ok());
        over = true;
        other.join();
    });
}

TEST_CASE("the flight log of an engine of parts tells workers apart and names tasks as the caller does", "[api][parts]")
{
    in_time(30, [] {
        auto c = parts_config(3);
        c.flight_log = 4096;
        parts_engine rt(c);
        spread_arrays arrays(rt, true);
        std::map<std::pair<u32, u64>, u32> submitted;
        const auto note = [&](task_handle h) { ++submitted[{h.ring, h.position}]; };
        for (u32 i = 0; i < 90; ++i) {
            note(arrays.step(i % 3));
            note(arrays.join(i % 3, (i + 1) % 3));
        }
        CHECK(rt.wait_all());
        rt.pause();
        std::map<std::pair<u32, u64>, u32> seen;
        u32 worker_max = 0;
        for (const auto& e : rt.flight_log()) {
            seen[{e.task.ring, e.task.position}] += e.blocks;
            worker_max = std::max(worker_max, e.worker);
            CHECK(e.worker / 2 == e.task.ring); // two workers a part
        }
        CHECK(seen == submitted);
        CHECK(worker_max < rt.workers());
        const auto samples = rt.flight_samples();
        CHECK(std::ranges::is_sorted(samples.window, {}, &flight_samples::window_sample::time_ns));
        for (const auto& s : samples.taken) CHECK(s.ring < 3);
        CHECK(rt.bus_traffic().ring_payload >= 64 * (180 + 90));
    });
}

namespace {

/// Bytes of an address space that nobody touches, `piece` in each part by turns.
struct parts_failure_test {
    static constexpr u64 base = u64{1} << 40;
    static constexpr u64 piece = 1000;

    explicit parts_failure_test(config c) : rt(c)
    {
        for (u32 p = 0; p < rt.parts(); ++p) rt.place(at(p, 0), piece, p);
    }
    static void* at(u32 part, u64 byte) { return reinterpret_cast<void*>(base + piece * part + byte); }
    static declared_access r(u32 part, u64 byte = 0) { return reads(at(part, byte), 8); }
    static declared_access w(u32 part, u64 byte = 0) { return writes(at(part, byte), 8); }
    static declared_access rw(u32 part, u64 byte = 0) { return reads_and_writes(at(part, byte), 8); }
    task_handle task(const std::vector<declared_access>& accesses, u32 code = 0, const std::vector<task_handle>& after = {})
    {
        submit_options o;
        o.accesses = accesses;
        o.after = after;
        if (accesses.empty()) o.order = ordering::no_access;
        return rt.submit(may_fail_task{code}, o);
    }
    bool ok(task_handle h) { return rt.wait(h).ok(); }
    bool is(task_handle h, task_state state, task_handle cause, u32 code)
    {
        const auto s = rt.wait(h);
        INFO("state " << static_cast<u32>(s.state) << ", code " << s.code << ", cause " << s.cause.ring << ":" << s.cause.position);
        CHECK(s.state == state);
        CHECK(s.cause == cause);
        CHECK(s.code == code);
        const auto again = rt.query(h);
        CHECK((again.state == state && again.cause == cause && again.code == code));
        return s.state == state && s.cause == cause && s.code == code;
    }
    bool failed(task_handle h, u32 code) { return is(h, task_state::failed, h, code); }
    bool cancelled(task_handle h, task_handle cause, u32 code) { return is(h, task_state::cancelled, cause, code); }

    parts_engine rt;
};

} // namespace

TEST_CASE("a failure crosses from part to part and back, and each answer names the task it goes back to", "[api][parts][failure]")
{
    in_time(40, [] {
        for (const bool late : {false, true}) {
            parts_failure_test t(parts_config(3));
            using f = parts_failure_test;
            gate g;
            if (!late) t.rt.submit(g.task(), {.order = ordering::whole_memory}); // all is in flight when the failure comes
            const auto settle = [&](task_handle h) {
                if (late) (void)t.rt.wait(h);
            };
            const auto root = t.task({f::w(0)}, 42);
            settle(root);
            const auto into1 = t.task({f::r(0), f::w(1)}); // its stand-in reads poison
            CHECK(into1.ring == 1);
            settle(into1);
            const auto within1 = t.task({f::r(1), f::w(1, 8)}); // poisoned in its own part
            settle(within1);
            const auto into2 = t.task({f::r(1, 8), f::w(2), f::w(0, 16)});
            CHECK(into2.ring == 2);
            settle(into2);
            const auto back0 = t.task({f::r(0, 16)}); // what a stand-in poisoned
            settle(back0);
            const auto named = t.task({}, 0, {into2});
            const auto named_across = t.task({f::w(1, 100)}, 0, {into2});
            const auto over = t.task({f::w(2), f::w(0, 16)}); // heals in both parts
            const auto good = t.task({f::r(2), f::r(0, 16)});
            g.open();
            CHECK(t.failed(root, 42));
            for (const auto h : {into1, within1, into2, back0, named, named_across}) CHECK(t.cancelled(h, root, 42));
            CHECK(t.ok(over));
            CHECK(t.ok(good));
            // A crossing task that fails itself.
            const auto itself = t.task({f::w(0, 200), f::w(1, 200), f::w(2, 200)}, 7);
            settle(itself);
            for (u32 p = 0; p < 3; ++p) CHECK(t.cancelled(t.task({f::r(p, 200)}), itself, 7));
            CHECK(t.failed(itself, 7));
            // Write after read, write after write: they only order.
            CHECK(t.ok(t.task({f::w(2, 200), f::w(0, 200)})));
            CHECK(t.ok(t.task({f::r(0, 200), f::r(2, 200)})));
            CHECK(t.cancelled(t.task({f::r(0, 200), f::r(1, 200)}), itself, 7));
        }
    });
}

TEST_CASE("what one part heals is healed, wherever the crossing task that poisoned it has its home", "[api][parts][failure]")
{
    in_time(30, [] {
        parts_failure_test t(parts_config(2));
        using f = parts_failure_test;
        const auto root = t.task({f::w(0), f::w(1)}, 3);
        CHECK(root.ring == 0);
        CHECK(t.failed(root, 3));
        CHECK(t.ok(t.task({f::w(1)})));
        CHECK(t.ok(t.task({f::w(0, 500), f::r(1)}))); // its home has seen the failure, but not what healed it
        CHECK(t.cancelled(t.task({f::r(0), f::w(1, 500)}), root, 3));
        // The same of typed members, and of a range that reaches into both.
        const auto both = reads_and_writes(f::at(0, f::piece - 8), 16);
        const auto again = t.task({writes(f::at(0, f::piece - 8), 16)}, 4);
        CHECK(t.failed(again, 4));
        CHECK(t.cancelled(t.task({both}), again, 4));
        CHECK(t.ok(t.task({f::w(0, f::piece - 8)})));
        CHECK(t.ok(t.task({f::w(1)})));
        CHECK(t.ok(t.task({both})));
    });
}

TEST_CASE("what a task reads of one that fails is found out, though another part's task that comes between reads nothing of it",
          "[api][parts][failure]")
{
    in_time(60, [] {
        for (u32 round = 0; round < 20; ++round) {
            parts_failure_test t(parts_config(2, 4));
            using f = parts_failure_test;
            gate g;
            (void)t.rt.submit(g.task(), {.accesses = writes(t.at(1, 500), 8)});
            (void)t.rt.submit(g.task(), {.accesses = writes(t.at(0, 500), 8)});
            const auto fails = t.task({f::r(1, 500), f::r(1, 8), f::w(1)}, 5);
            // Writes what that one reads, so that its stand-in is ready when that one has failed, all the same.
            const auto across = t.task({f::r(0, 500), f::w(0), f::w(1, 8)});
            const auto reads_both = t.task({f::r(1, 8), f::r(1), f::w(1, 16)});
            CHECK(across.ring == 0);
            CHECK(reads_both.ring == 1);
            g.open();
            CHECK(t.failed(fails, 5));
            CHECK(t.ok(across));
            CHECK(t.cancelled(reads_both, fails, 5));
        }
    });
}

TEST_CASE("what a task of another part reads of one that draws tickets and fails is found out, whoever has run between",
          "[api][parts][failure]")
{
    in_time(60, [] {
        for (u32 round = 0; round < 20; ++round) {
            parts_failure_test t(parts_config(2, 4));
            using f = parts_failure_test;
            gate g;
            (void)t.rt.submit(g.task(), {.accesses = writes(t.at(1, 500), 8)});
            submit_options many;
            const std::vector<declared_access> accesses = {f::r(1, 500), f::r(1, 8), f::w(1)};
            many.accesses = accesses;
            many.blocks = 40;
            const auto fails = t.rt.submit(may_fail_task{5}, many);
            const auto over = t.task({f::w(1, 8)}); // what that one reads: it is in order behind it, and runs
            const auto across = t.task({f::w(0), f::r(1), f::r(1, 8)});
            CHECK(across.ring == 0);
            g.open();
            CHECK(t.failed(fails, 5));
            CHECK(t.ok(over));
            CHECK(t.cancelled(across, fails, 5));
        }
    });
}

namespace {

/// Edges that sleep.
struct slow_edges {
    static inline std::array<std::atomic<u32>, static_cast<u32>(device::edge::count)> ms{};
    slow_edges(std::initializer_list<std::pair<device::edge, u32>> list)
    {
        for (const auto& [e, time] : list) ms[static_cast<u32>(e)] = time;
        device::host_delay_hook = [](device::edge e) {
            if (const u32 time = ms[static_cast<u32>(e)]) std::this_thread::sleep_for(std::chrono::milliseconds(time));
        };
    }
    ~slow_edges()
    {
        device::host_delay_hook = nullptr;
        for (auto& m : ms) m = 0;
    }
};

} // namespace

TEST_CASE("who is staged behind a stand-in and fails is not healed by it, whenever that one is said to be complete",
          "[api][parts][failure]")
{
    in_time(60, [] {
        parts_failure_test t(parts_config(2, 8));
        using f = parts_failure_test;
        gate other, g;
        (void)t.rt.submit(other.task(), {.accesses = writes(t.at(1, 500), 8)});
        const auto fails_first = t.task({f::rw(1, 500)}, 5); // there is poison then, of other memory
        (void)t.rt.submit(g.task(), {.accesses = writes(t.at(1, 0), 8)});
        const auto across = t.task({f::w(0), f::w(1)}); // its stand-in waits for that gate alone
        const auto fails = t.task({f::rw(1)}, 6);       // staged behind it
        std::this_thread::sleep_for(100ms);
        other.open();
        CHECK(t.failed(fails_first, 5));
        {
            const slow_edges slow{{device::edge::R19_message, 30}}; // it has failed before the stand-in is answered
            g.open();
            CHECK(t.failed(fails, 6));
            CHECK(t.ok(across));
            (void)t.rt.wait_all();
        }
        CHECK(t.cancelled(t.task({f::r(1)}), fails, 6));
    });
}

TEST_CASE("a stand-in is not cancelled for what was staged behind it and failed", "[api][parts][failure]")
{
    for (const bool reads : {true, false})
        in_time(60, [reads] {
            parts_failure_test t(parts_config(2, 4));
            using f = parts_failure_test;
            gate g;
            (void)t.rt.submit(g.task(), {.accesses = writes(t.at(1, 0), 8)});
            const auto across = t.task({f::w(0), reads ? f::r(1) : f::w(1), f::w(1, 8)});
            const auto fails = t.task({f::rw(1)}, 6); // staged behind its stand-in
            std::this_thread::sleep_for(100ms);
            {
                // It has failed before the stand-in is said to be ready, and before its task is said to be complete.
                const slow_edges slow{{device::edge::R14_ready, 20}, {device::edge::R19_message, 60}};
                g.open();
                CHECK(t.failed(fails, 6));
                CHECK(t.ok(across));
                (void)t.rt.wait_all();
            }
            CHECK(t.ok(t.task({f::r(1, 8)})));
            CHECK(t.cancelled(t.task({f::r(1)}), fails, 6));
            for (u32 i = 0; i < abi::meetings_max; ++i) (void)t.task({f::w(0, 16), f::w(1, 16)});
            CHECK(t.ok(t.task({f::r(0, 16)}))); // no meeting is left bad
        });
}

TEST_CASE("where everything comes to be poisoned while a task that was mailed ahead runs, no meeting is left bad",
          "[api][parts][failure]")
{
    in_time(60, [] {
        parts_failure_test t(parts_config(2, 8));
        using f = parts_failure_test;
        gate g, runs;
        (void)t.rt.submit(g.task(), {.accesses = writes(t.at(1, 0), 8)});
        const std::vector<declared_access> accesses = {f::w(0), f::r(1), f::w(1, 8)};
        const auto across = t.rt.submit(runs.task(), {.accesses = accesses}); // its stand-in waits for that gate alone
        std::this_thread::sleep_for(100ms);
        task_handle last;
        for (u32 i = 0; i < 600; ++i) last = t.rt.submit(may_fail_task{7}, {.accesses = writes(t.at(1, 100 + i), 1)});
        CHECK(t.failed(last, 7));
        g.open();
        std::this_thread::sleep_for(100ms); // the stand-in's turn comes, and its task runs
        runs.open();
        CHECK(t.ok(across));
        CHECK(t.rt.wait(t.rt.clear_failure()).ok());
        u32 bad = 0;
        for (u32 i = 0; i < abi::meetings_max; ++i) bad += !t.ok(t.task({f::w(0, 16), f::w(1, 16)}));
        CHECK(bad == 0);
    });
}

TEST_CASE("who comes after a failed task is cancelled for it, whatever whole-memory task lies between", "[api][parts][failure]")
{
    // The one that fails writes nothing, so that the whole-memory task runs all the same. It stands in for that one in part 1.
    enum class last { reads, touches_nothing, whole_memory };
    in_time(60, [] {
        for (const auto what : {last::reads, last::touches_nothing, last::whole_memory})
            for (u32 i = 0; i < 30; ++i) {
                static u64 memory[8];
                parts_engine rt(parts_config(2 + i % 2));
                rt.place(memory, sizeof memory, 1);
                const auto failed = rt.submit(may_fail_task{7}, {.accesses = reads(memory, 8)});
                const auto between = rt.submit(may_fail_task{0});
                submit_options options{.after = failed, .order = ordering::no_access};
                if (what == last::reads) options = {.after = failed, .accesses = reads(memory, 8)};
                if (what == last::whole_memory) options = {.after = failed};
                const auto status = rt.wait(rt.submit(may_fail_task{0}, options));
                CHECK(rt.wait(between).ok());
                CHECK((status.state == task_state::cancelled && status.cause == failed && status.code == 7));
            }
    });
}

TEST_CASE("a long chain of tasks that are cancelled from part to part", "[api][parts][failure]")
{
    in_time(60, [] {
        parts_failure_test t(parts_config(2));
        using f = parts_failure_test;
        const auto root = t.task({f::w(0)}, 5);
        std::vector<task_handle> chain;
        for (u32 i = 0; i < 3000; ++i) chain.push_back(t.task({f::r(i % 2), f::w((i + 1) % 2)}));
        CHECK(t.cancelled(chain.back(), root, 5));
        for (const auto h : chain) REQUIRE(t.cancelled(h, root, 5));
    });
}

TEST_CASE("a body may give the code that parts tell each other with", "[api][parts][failure]")
{
    in_time(20, [] {
        parts_failure_test t(parts_config(2));
        using f = parts_failure_test;
        const auto within = t.task({f::w(0)}, abi::status_crossing);
        const auto crossing = t.task({f::w(1), f::w(0, 8)}, abi::status_crossing);
        CHECK(t.failed(within, abi::status_crossing));
        CHECK(t.failed(crossing, abi::status_crossing));
        CHECK(t.cancelled(t.task({f::r(0, 8)}), crossing, abi::status_crossing));
        CHECK(t.cancelled(t.task({f::r(0), f::w(1, 100)}), within, abi::status_crossing));
    });
}

TEST_CASE("a task that touches nothing in its home, and waits for one in another part, is none of the whole memory",
          "[api][parts][failure]")
{
    in_time(20, [] {
        parts_failure_test t(parts_config(2));
        using f = parts_failure_test;
        CHECK(t.failed(t.task({f::w(1)}, 5), 5));
        CHECK(t.failed(t.task({f::w(0)}, 6), 6)); // poison in both parts
        gate g;
        const auto held = t.rt.submit(g.task(), {.accesses = writes(t.at(0, 400), 4)});
        const auto elsewhere = t.rt.submit(g.task(), {.accesses = writes(t.at(1, 400), 4)});
        const auto empty = t.rt.submit(may_fail_task{}, {.after = {elsewhere, held}, .accesses = writes(t.at(0, 0), 0)});
        g.open();
        CHECK(t.ok(empty));
    });
}

TEST_CASE("hundreds of tasks are cancelled for one failure in another part, and nobody else", "[api][parts][failure]")
{
    for (const u32 window : {16u, 256u})
        for (const bool home_away : {false, true}) { // a home that is away reads no messages meanwhile
            in_time(40, [&] {
                auto c = parts_config(2);
                c.window = window;
                parts_failure_test t(c);
                using f = parts_failure_test;
                const auto root = t.task({f::w(1)}, 5);
                CHECK(t.failed(root, 5));
                if (home_away) t.rt.core(0).pause();
                std::vector<task_handle> cancelled;
                for (u32 i = 0; i < 500; ++i) cancelled.push_back(t.task({f::r(1), f::w(0, 8)}));
                if (home_away) t.rt.core(0).resume();
                for (u32 i = 500; i < 700; ++i) cancelled.push_back(t.task({f::r(1), f::w(0, 8)}));
                const auto beside = t.task({f::r(0, 400), f::w(0, 408)});
                const auto named = t.task({}, 0, {cancelled[3]});
                for (const u32 i : {0u, 1u, 250u, 699u}) CHECK(t.cancelled(cancelled[i], root, 5));
                CHECK(t.cancelled(named, root, 5));
                CHECK(t.ok(beside));
            });
        }
}

TEST_CASE("a task that waited for another part while tens of thousands went past it is handed over, and whoever comes behind it",
          "[api][parts][large]")
{
    in_time(60, [] {
        parts_failure_test t(parts_config(2));
        using f = parts_failure_test;
        gate g;
        t.rt.submit(g.task(), {.accesses = writes(t.at(1, 0), 8)});
        const auto waits = t.task({f::r(1), declared_access(reads_and_writes(t.at(0, 0), 8))});
        const auto behind = t.task({declared_access(reads_and_writes(t.at(0, 0), 8))});
        for (u32 i = 0; i < 60'000; ++i) t.task({f::w(0, 16 + 8 * (i % 64))});
        g.open();
        CHECK(t.ok(waits));
        CHECK(t.ok(behind));
    });
}

TEST_CASE("a failed whole-memory task poisons all parts; clear_failure forgets in all of them", "[api][parts][failure]")
{
    in_time(30, [] {
        parts_failure_test t(parts_config(3));
        using f = parts_failure_test;
        for (u32 round = 0; round < 10; ++round) {
            const auto whole = t.rt.submit(may_fail_task{9 + round});
            for (u32 p = 0; p < 3; ++p) {
                CHECK(t.cancelled(t.task({f::r(p)}), whole, 9 + round));
                CHECK(t.ok(t.task({f::w(p, 8)})));
            }
            CHECK(t.cancelled(t.task({f::r(0), f::w(2)}), whole, 9 + round));
            CHECK(t.ok(t.rt.clear_failure()));
            for (u32 p = 0; p < 3; ++p) CHECK(t.ok(t.task({f::r(p)})));
            CHECK(t.ok(t.task({f::r(0), f::r(1), f::w(2)})));
            CHECK(t.ok(t.rt.submit(may_fail_task{0})));
            CHECK(t.failed(whole, 9 + round));
        }
    });
}

TEST_CASE("a download of memory that another part's failure poisoned throws with the cause", "[api][parts][failure]")
{
    in_time(30, [] {
        parts_engine rt(parts_config(2));
        buffer<u64> x(rt, 8), y(rt, 8, 1);
        std::vector<u64> values(8, 3), back(8);
        x.upload(values);
        y.upload(values);
        const auto root = rt.submit(may_fail_task{17}, {.accesses = writes(x.data(), 8)});
        rt.submit(join_task{x, y});
        try {
            y.download(back);
            FAIL("poison came back as data");
        } catch (const task_error& e) {
            CHECK(e.status().state == task_state::cancelled);
            CHECK(e.status().cause == root);
            CHECK(e.status().code == 17);
            CHECK(says(e.what(), {"clear_failure", "code 17"}));
        }
        y.upload(values);
        y.download(back);
        CHECK(back == values);
    });
}

TEST_CASE("random programs of several parts: each task's answer is that of a run one after another", "[api][parts][failure]")
{
    in_time(200, [] {
        const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
        for (u64 seed = given ? given : 1; seed < (given ? given + 1 : 13); ++seed) {
            INFO("seed " << seed);
            std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
            std::mt19937_64 random(seed);
            auto c = parts_config(2 + seed % 3);
            c.window = seed % 3 == 0 ? 16 : 64;
            c.ring_slots = seed % 2 ? 16 : 1024;
            if (seed % 5 == 0) c.residency = 1ms;
            parts_engine rt(c);
            CHECK(failing_program{}.run(rt, u64{1} << 40, random, [](u32 code) { return may_fail_task{code}; }) == "");
        }
    });
}

TEST_CASE("where one part stands still all are stopped, every call says so, and the runtime ends", "[api][parts][fault]")
{
    in_time(30, [] {
        static auto* const lasting = new gate; // bodies that nobody waits for any more still look at it
        auto c = parts_config(3);
        c.stall_limit = std::chrono::milliseconds(300 * time_stretch);
        auto rt = std::make_unique<parts_engine>(c);
        spread_arrays arrays(*rt, true);
        rt->submit(lasting->task(), {.accesses = on(access_mode::write, arrays.handles[1]), .name = "the one that hangs"});
        const auto crossing = arrays.join(1, 2);
        const auto behind = arrays.step(2);
        const std::string text = thrown<device_error>([&] { (void)rt->wait(behind); });
        CHECK(says(text, {"another one has ended", "no progress for", "block 0 of gate 'the one that hangs' (submission 1:0)"}));
        CHECK_FALSE(thrown<device_error>([&] { (void)rt->wait(crossing); }).empty());
        CHECK_FALSE(thrown<device_error>([&] { (void)rt->wait_all(); }).empty());
        const auto end = std::chrono::steady_clock::now();
        rt.reset();
        CHECK(std::chrono::steady_clock::now() - end < 5s);
        lasting->open();
        std::this_thread::sleep_for(10ms);
    });
}

TEST_CASE("try_submit of a crossing task says full while a part stands still, and throws once the engine was stopped",
          "[api][parts][fault]")
{
    in_time(60, [] {
        for (const bool by_room : {true, false}) { // full is the ring of the part that stands still, or no meeting is free
            static auto* const lasting = new gate;
            auto c = parts_config(2);
            c.stall_limit = std::chrono::milliseconds(300 * time_stretch);
            c.window = 16;
            c.ring_slots = by_room ? 8 : 2048;
            auto rt = std::make_unique<parts_engine>(c);
            spread_arrays arrays(*rt, true);
            rt->submit(lasting->task(), {.accesses = on(access_mode::write, arrays.handles[1])});
            task_handle handle;
            u32 full = 0;
            const std::string text = thrown<device_error>([&] {
                for (;;) {
                    const auto status = rt->try_submit(join_task{arrays.handles[1], arrays.handles[0]}, handle);
                    if (status == submit_status::full) ++full;
                }
            });
            CHECK(says(text, {"no progress for"}));
            CHECK(full > 0);
            rt.reset();
        }
    });
}

TEST_CASE("try_submit takes a crossing task whose messages its rings just hold", "[api][parts]")
{
    in_time(30, [] {
        auto c = parts_config(2);
        c.ring_slots = 4; // 16 chunks
        parts_engine rt(c);
        spread_arrays arrays(rt, false);
        for (const u32 more : {0u, 4u, 12u, 13u, 14u}) // of header, two members and so many further ranges, a chunk each: 15 to 17
            for (const std::string_view name : {"", "named"}) {
                INFO(more << " further accesses, " << name);
                std::vector<declared_access> accesses;
                for (u32 i = 0; i < more; ++i)
                    for (u32 p = 0; p < 2; ++p) accesses.push_back(reads(arrays.values[p].data() + i, 8));
                task_handle handle;
                const join_task task{arrays.at<in<u64>>(1), arrays.at<inout<u64>>(0)};
                const auto try_it = [&] { return rt.try_submit(task, handle, {.accesses = accesses, .name = name}); };
                if (more == 14) {
                    CHECK(rt.wait_all());
                    CHECK(try_it() == submit_status::full);
                    continue;
                }
                auto status = submit_status::full; // the rings may not be known to be empty yet
                for (const auto until = after(500ms); status == submit_status::full && std::chrono::steady_clock::now() < until;)
                    status = try_it();
                REQUIRE(status == submit_status::submitted);
                CHECK(rt.wait(handle).ok());
            }
    });
}

TEST_CASE("a part that waits for another one's progress is no stall", "[api][parts][fault]")
{
    in_time(30, [] {
        auto c = parts_config(2);
        c.stall_limit = std::chrono::milliseconds(400 * time_stretch);
        c.residency = 60s; // a kernel that is about to leave starts nothing, and waits for the gate
        parts_engine rt(c);
        spread_arrays arrays(rt, true);
        gate g;
        const auto first = rt.submit(g.task(), {.accesses = on(access_mode::write, arrays.handles[0])});
        const auto crossing = arrays.join(0, 1); // part 1 has nothing else to do
        const auto until = after(1000ms);
        while (std::chrono::steady_clock::now() < until) {
            rt.submit(marker_task{}, {.accesses = writes(&g, 4)}); // part 0 goes on
            std::this_thread::sleep_for(10ms);
        }
        g.open();
        CHECK(rt.wait(first).ok());
        CHECK(rt.wait(crossing).ok());
    });
}
