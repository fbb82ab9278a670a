// A failing task is an answer: who is cancelled for it, who is not, and what heals; on the host device.
#include "api_tasks.hpp"
#include "device/layout.hpp"
#include "trace_catch.hpp"
#include <algorithm>
#include <memory>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Does nothing but fail when told to, on its last block.
struct may_fail_task {
    static constexpr const char* name = "may fail";
    u32 code;
    template <class Block> void operator()(Block& block) const
    {
        if (code != 0 && block.block_index() + 1 == block.blocks()) block.fail(code);
    }
};

using failing_engine = runtime<step_task, gate_task, count_task, may_fail_task>;

/// Shorthand: submits one task over some bytes of an address space that nobody touches.
struct failure_test {
    explicit failure_test(config c = host_config()) : rt(c) {}

    using list = std::vector<declared_access>;
    task_handle task(const list& accesses, u32 code = 0, const std::vector<task_handle>& after = {}, u32 blocks = 1)
    {
        submit_options o;
        o.accesses = list_view<declared_access>(accesses);
        o.after = list_view<task_handle>(after);
        o.blocks = blocks;
        if (accesses.empty()) o.order = ordering::no_access;
        return rt.submit(may_fail_task{code}, o);
    }
    static declared_access r(u64 at, u64 bytes) { return reads(reinterpret_cast<void*>(base + at), bytes); }
    static declared_access w(u64 at, u64 bytes) { return writes(reinterpret_cast<void*>(base + at), bytes); }
    static declared_access rw(u64 at, u64 bytes) { return reads_and_writes(reinterpret_cast<void*>(base + at), bytes); }
    static declared_access square(access_mode mode, u64 at, u64 width, u64 rows, u64 pitch)
    {
        return tile(mode, reinterpret_cast<void*>(base + at), width, rows, pitch);
    }

    bool ok(task_handle h) { return rt.wait(h).ok(); }
    bool failed(task_handle h, u32 code)
    {
        const auto s = rt.wait(h);
        return s.state == task_state::failed && s.code == code && s.cause == h;
    }
    bool cancelled(task_handle h, task_handle cause, u32 code)
    {
        const auto s = rt.wait(h);
        INFO("state " << static_cast<u32>(s.state) << ", code " << s.code << ", cause " << s.cause.ring << ":" << s.cause.position);
        CHECK(s.state == task_state::cancelled);
        return s.state == task_state::cancelled && s.code == code && s.cause == cause;
    }

    failing_engine rt;
    static constexpr u64 base = u64{1} << 40;
};

} // namespace

TEST_CASE("a chain behind a failure is cancelled to its end, with the root's code and handle; its bodies do not run",
          "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        std::atomic<u32> runs{0};
        for (const bool late : {false, true}) {
            const u64 at = late ? 4096 : 0;
            gate g;
            if (!late)
                t.rt.submit(g.task(), {.accesses = failure_test::w(at, 8)}); // everything is in flight when the failure comes
            const auto root = t.task({failure_test::w(at, 8)}, 42);
            if (late) CHECK(t.failed(root, 42)); // or the failure is long known
            std::vector<task_handle> chain;
            for (u32 i = 0; i < 20; ++i) {
                const declared_access both[] = {failure_test::r(at + 8 * i, 8), failure_test::w(at + 8 * i + 8, 8)};
                chain.push_back(t.rt.submit(count_task{reinterpret_cast<u64>(&runs)},
                                            {.accesses = std::span<const declared_access>(both)}));
            }
            g.open();
            CHECK(t.failed(root, 42));
            for (const auto& h : chain) CHECK(t.cancelled(h, root, 42));
            CHECK(t.rt.query(chain.back()).cause == root);
        }
        CHECK(t.rt.wait_all());
        CHECK(runs == 0);
    });
}

TEST_CASE("a write after a read and a write after a write only order: they run, and heal what they cover", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        const auto reader = t.task({f::r(0, 8)}, 7);          // fails, and writes nothing
        const auto writer = t.task({f::w(0, 8)});             // WAR on a failed task
        const auto root = t.task({f::w(100, 8)}, 9);
        const auto over = t.task({f::w(100, 8)});             // WAW
        const auto reads_new = t.task({f::r(0, 8), f::r(100, 8)});
        const auto root2 = t.task({f::w(200, 8)}, 11);
        const auto part = t.task({f::w(200, 4)});
        const auto good_half = t.task({f::r(200, 4)});
        const auto bad_half = t.task({f::r(204, 4)});
        const auto updates = t.task({f::rw(200, 8)});         // reads poison: an update heals nothing
        const auto still = t.task({f::r(207, 1)});
        CHECK(t.failed(reader, 7));
        CHECK(t.ok(writer));
        CHECK(t.failed(root, 9));
        CHECK(t.ok(over));
        CHECK(t.ok(reads_new));
        CHECK(t.failed(root2, 11));
        CHECK(t.ok(part));
        CHECK(t.ok(good_half));
        CHECK(t.cancelled(bad_half, root2, 11));
        CHECK(t.cancelled(updates, root2, 11));
        CHECK(t.cancelled(still, root2, 11));
        CHECK(t.cancelled(t.task({f::r(200, 4)}), root2, 11)); // the update poisoned all it would have written
    });
}

TEST_CASE("poison is exact to the byte: neighbours run, holes heal, the rest stays", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        const auto root = t.task({f::w(1000, 100)}, 3);
        CHECK(t.ok(t.task({f::r(900, 100)})));
        CHECK(t.ok(t.task({f::r(1100, 100)})));
        CHECK(t.cancelled(t.task({f::r(1099, 2)}), root, 3));
        CHECK(t.cancelled(t.task({f::r(0, 4000)}), root, 3));
        CHECK(t.ok(t.task({f::w(1040, 20)}))); // a hole
        CHECK(t.ok(t.task({f::r(1040, 20)})));
        CHECK(t.cancelled(t.task({f::r(1039, 1)}), root, 3));
        CHECK(t.cancelled(t.task({f::r(1060, 1)}), root, 3));
        CHECK(t.ok(t.task({f::w(1000, 40)})));
        CHECK(t.ok(t.task({f::w(1060, 40)})));
        CHECK(t.ok(t.task({f::r(1000, 100)})));
    });
}

TEST_CASE("poisoned rectangles: the gaps between the rows are good, a covering rectangle heals, a crossing one does not",
          "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        constexpr auto W = access_mode::write, R = access_mode::read;
        const auto root = t.task({f::square(W, 0, 16, 8, 64)}, 4);
        CHECK(t.ok(t.task({f::r(16, 48)})));                     // between rows 0 and 1
        CHECK(t.ok(t.task({f::square(R, 16, 48, 8, 64)})));      // the columns beside
        CHECK(t.cancelled(t.task({f::square(R, 15, 2, 8, 64)}), root, 4));
        CHECK(t.cancelled(t.task({f::r(64, 1)}), root, 4));
        CHECK(t.ok(t.task({f::square(W, 0, 16, 4, 64)})));       // the upper half: kept whole, as it is no range
        CHECK(t.cancelled(t.task({f::square(R, 7 * 64, 16, 2, 64)}), root, 4));
        CHECK(t.ok(t.task({f::square(W, 0, 32, 8, 64)})));
        CHECK(t.ok(t.task({f::square(R, 0, 64, 8, 128)})));
    });
}

TEST_CASE("`after` a failed or cancelled task cancels, known or not when it is submitted; its outputs are poisoned",
          "[api][failure]")
{
    in_time(20, [] {
        for (const bool late : {false, true}) {
            failure_test t;
            using f = failure_test;
            gate g;
            task_handle gate_handle = t.rt.submit(g.task(), {.order = ordering::no_access});
            const auto root = t.task({}, 21, {gate_handle});
            if (late) {
                g.open();
                CHECK(t.failed(root, 21));
            }
            const auto direct = t.task({f::w(0, 8)}, 0, {root});
            const auto second = t.task({}, 0, {direct});
            const auto reads_it = t.task({f::r(4, 1)});
            const auto other = t.task({f::w(64, 8)}, 0, {gate_handle});
            task_handle whole{};
            // another ring
            std::thread([&] { whole = t.rt.submit(may_fail_task{0}, {.after = second, .order = ordering::no_access}); }).join();
            g.open();
            CHECK(t.failed(root, 21));
            CHECK(t.cancelled(direct, root, 21));
            CHECK(t.cancelled(second, root, 21));
            CHECK(t.cancelled(reads_it, root, 21));
            CHECK(t.cancelled(whole, root, 21));
            CHECK(t.ok(other));
            CHECK(t.ok(t.task({f::r(64, 8)})));
            // Many predecessors, one of them bad, more than a slot holds.
            std::vector<task_handle> many(60, gate_handle);
            many[40] = second;
            CHECK(t.cancelled(t.task({}, 0, many), root, 21));
        }
    });
}

TEST_CASE("of two causes the older one is named", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        const auto first = t.task({f::w(0, 8)}, 1);
        CHECK(t.failed(first, 1));
        const auto second = t.task({f::w(8, 8)}, 2);
        CHECK(t.failed(second, 2));
        CHECK(t.cancelled(t.task({f::r(0, 16)}), first, 1));
        CHECK(t.cancelled(t.task({f::r(8, 8)}), second, 2));
    });
}

TEST_CASE("a failed whole-memory task poisons everything; pure writes run; clear_failure resets", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        const auto root = t.rt.submit(may_fail_task{13}, {.order = ordering::whole_memory});
        const auto reader = t.task({f::r(0, 8)});
        const auto writer = t.task({f::w(0, 8)});
        const auto again = t.task({f::r(0, 8)});
        const auto barrier = t.rt.submit(marker_task{});
        const auto free_one = t.task({});
        CHECK(t.failed(root, 13));
        CHECK(t.cancelled(reader, root, 13));
        CHECK(t.ok(writer));
        CHECK(t.cancelled(again, root, 13));
        CHECK(t.cancelled(barrier, root, 13));
        CHECK(t.ok(free_one));
        const auto before = t.task({f::r(0, 8)});
        const auto clear = t.rt.clear_failure();
        const auto behind = t.task({f::r(0, 8)}, 0, {root});
        CHECK(t.cancelled(before, root, 13));
        CHECK(t.ok(clear));
        CHECK(t.ok(behind));
        CHECK(t.ok(t.task({f::r(0, 8)}, 0, {root}))); // known to have failed, and forgiven
        CHECK(t.failed(root, 13));                    // still known
        CHECK(t.ok(t.rt.submit(marker_task{})));
        // Anew.
        const auto next = t.task({f::w(0, 8)}, 14);
        CHECK(t.cancelled(t.rt.submit(marker_task{}), next, 14));
    });
}

TEST_CASE("a whole-memory task reads every poison there is", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        const auto root = t.task({f::w(0, 8)}, 5);
        CHECK(t.failed(root, 5));
        const auto healed = t.task({f::w(0, 8)});
        CHECK(t.ok(healed));
        CHECK(t.ok(t.rt.submit(marker_task{}))); // nothing is poisoned any more
        const auto second = t.task({f::w(0, 8)}, 6);
        CHECK(t.cancelled(t.rt.submit(marker_task{}), second, 6));
        CHECK(t.cancelled(t.task({f::r(1 << 20, 8)}), second, 6)); // it would have written everything
    });
}

TEST_CASE("more poisoned ranges than the books hold poison everything, and clear_failure still resets", "[api][failure]")
{
    in_time(30, [] {
        failure_test t;
        using f = failure_test;
        std::vector<task_handle> roots;
        const u32 many = device::poison_entries_max + 10;
        for (u32 i = 0; i < many; ++i) roots.push_back(t.task({f::w(64 * i, 8)}, 100 + i));
        for (u32 i = 0; i < many; ++i) CHECK(t.failed(roots[i], 100 + i));
        const auto anywhere = t.rt.wait(t.task({f::r(1 << 30, 8)}));
        CHECK(anywhere.state == task_state::cancelled);
        CHECK(anywhere.code >= 100);
        CHECK(t.ok(t.task({f::w(0, 8)})));
        CHECK(t.ok(t.rt.clear_failure()));
        for (u32 i = 0; i < many; i += 50) CHECK(t.ok(t.task({f::r(64 * i, 8)})));
    });
}

TEST_CASE("more failed tasks than the books hold cancel whoever has an `after`", "[api][failure]")
{
    in_time(30, [] {
        failure_test t;
        std::vector<task_handle> roots;
        std::vector<task_handle> good;
        for (u32 i = 0; i < device::failed_runs_max + 10; ++i) {
            good.push_back(t.task({}));
            roots.push_back(t.task({}, 1));
        }
        CHECK(t.rt.wait_all());
        CHECK(t.rt.wait(t.task({}, 0, {roots.back()})).state == task_state::cancelled);
        gate g;
        const auto h = t.rt.submit(g.task(), {.order = ordering::no_access});
        const auto behind = t.task({}, 0, {h});
        g.open();
        CHECK(t.rt.wait(behind).state == task_state::cancelled);
        for (const auto& x : good) REQUIRE(t.ok(x));
        CHECK(t.ok(t.rt.clear_failure()));
        CHECK(t.ok(t.task({}, 0, {roots.back()})));
    });
}

TEST_CASE("ten thousand failures that nobody asks about are all reported as failures afterwards", "[api][failure]")
{
    in_time(60, [] {
        failure_test t;
        using f = failure_test;
        std::vector<task_handle> handles;
        const u32 many = 10 * device::failures_kept;
        for (u32 i = 0; i < many; ++i) handles.push_back(t.task({f::w(64 * (i % 400), 8)}, i % 3 == 0 ? 0 : i));
        CHECK(t.rt.wait_all());
        for (u32 i = 0; i < many; ++i) {
            const auto s = t.rt.query(handles[i]);
            REQUIRE(s.state == (i % 3 == 0 ? task_state::complete : task_state::failed));
            if (i % 3) REQUIRE(s.code == i);
        }
    });
}

TEST_CASE("tasks of many blocks fail as a whole and are cancelled as a whole", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.host_workers = 3;
        failure_test t(c);
        using f = failure_test;
        for (const u32 blocks : {2u, 3u, 4u, 500u}) {
            const auto root = t.task({f::w(0, 8)}, blocks, {}, blocks);
            std::vector<std::atomic<u32>> runs(blocks);
            const auto behind = t.rt.submit(count_task{reinterpret_cast<u64>(runs.data())},
                                            {.blocks = blocks, .accesses = f::r(0, 8)});
            CHECK(t.failed(root, blocks));
            CHECK(t.cancelled(behind, root, blocks));
            for (auto& r : runs) REQUIRE(r == 0);
            // Good ones run whole while there is poison about.
            const auto good = t.rt.submit(count_task{reinterpret_cast<u64>(runs.data())},
                                          {.blocks = blocks, .accesses = f::w(64, 8)});
            CHECK(t.ok(good));
            for (auto& r : runs) REQUIRE(r == 1);
        }
    });
}

TEST_CASE("poison outlives parks and relaunches", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.residency = std::chrono::milliseconds(1);
        failure_test t(c);
        using f = failure_test;
        const auto root = t.task({f::w(0, 8)}, 8);
        CHECK(t.failed(root, 8));
        for (u32 i = 0; i < 30; ++i) {
            const auto h = t.task({f::r(0, 8), f::w(64 + 64 * i, 8)});
            t.rt.pause();
            t.rt.resume();
            CHECK(t.cancelled(h, root, 8));
        }
        CHECK(t.cancelled(t.task({f::r(64, 8)}), root, 8));
    });
}

TEST_CASE("a download of poisoned memory throws with the cause; its staging memory is good for the next one", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.staging_bytes = 1 << 14;
        failing_engine rt(c);
        buffer<u64> x(rt, 64), y(rt, 64);
        std::vector<u64> values(64, 3), back(64);
        x.upload(values);
        y.upload(values);
        const auto root = rt.submit(may_fail_task{17}, {.accesses = writes(x.data(), 8)});
        for (u32 i = 0; i < 40; ++i) { // more than the staging memory has pieces
            try {
                x.download(back);
                FAIL("poison came back as data");
            } catch (const task_error& e) {
                CHECK(e.status().state == task_state::cancelled);
                CHECK(e.status().cause == root);
                CHECK(e.status().code == 17);
                CHECK(std::string(e.what()).find("clear_failure") != std::string::npos);
            }
            y.upload(values);
            y.download(back);
            REQUIRE(back == values);
        }
        x.upload(values); // writes it anew
        x.download(back);
        CHECK(back == values);
    });
}

TEST_CASE("an upload in pieces is told to be cancelled when they were, and heals as one in a single piece does", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.staging_bytes = 16384; // pieces of 4096 B
        failing_engine rt(c);
        buffer<u64> x(rt, 2048);
        const std::vector<u64> values(2048, 3);
        std::vector<u64> back(2048);
        // A tile of which each piece has a row: none of them covers it.
        const auto of_all = rt.submit(may_fail_task{5}, {.accesses = tile(access_mode::write, x.data(), 8, 4, 4096)});
        CHECK(rt.wait(of_all).state == task_state::failed);
        CHECK(rt.wait(x.upload(values)).ok());
        CHECK_NOTHROW(x.download(back));
        CHECK(back == values);
        // Everything is poisoned: what reads is cancelled, as the copies are, which read the staging memory.
        const auto everything = rt.submit(may_fail_task{6});
        CHECK(rt.wait(everything).state == task_state::failed);
        for (const u64 count : {512u, 2048u}) {
            INFO(count);
            const auto s = rt.wait(x.upload(std::span(values).first(count)));
            CHECK(s.state == task_state::cancelled);
            CHECK(s.cause == everything);
        }
        CHECK(rt.wait(rt.clear_failure()).ok());
        CHECK(rt.wait(x.upload(values)).ok());
    });
}

TEST_CASE("memory that was given back poisoned is good when it is taken again", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.memory_bytes = 1 << 16;
        failing_engine rt(c);
        for (u32 i = 0; i < 20; ++i) {
            buffer<u64> x(rt, 6000); // no two of them fit
            std::vector<u64> back(100);
            CHECK(rt.wait(rt.submit(step_task{{x.data(), 100}})).ok());
            CHECK_FALSE(rt.wait(rt.submit(may_fail_task{1}, {.accesses = writes(x.data(), 8 * x.size())})).ok());
        }
    });
}

TEST_CASE("random programs of several rings: each task's answer is that of a run one after another", "[api][failure]")
{
    in_time(90, [] {
        for (u64 seed = 1; seed <= 12; ++seed) {
            INFO("seed " << seed);
            std::mt19937_64 random(seed);
            auto c = host_config();
            c.window = seed % 3 == 0 ? 16 : 64;
            c.ring_slots = seed % 2 ? 16 : 1024;
            failure_test t(c);
            using f = failure_test;
            constexpr u32 places = 40;
            const u32 tasks = 400;
            std::vector<std::vector<u32>> bad(places); // causes of each place
            std::vector<std::vector<u32>> of_task;     // causes of each task: empty if it succeeded
            std::vector<task_handle> handles;
            std::vector<u32> codes;
            struct answer {
                task_state state;
                std::vector<u32> causes; ///< any of them may be named
            };
            std::vector<answer> expected;
            const auto check = [&](u32 i) {
                const auto status = t.rt.wait(handles[i]);
                INFO("task " << i);
                REQUIRE(status.state == expected[i].state);
                bool named = expected[i].causes.empty();
                for (const u32 x : expected[i].causes) named |= status.cause == handles[x] && status.code == codes[x];
                REQUIRE(named);
            };
            const auto merge = [](std::vector<u32>& into, const std::vector<u32>& from) {
                for (const u32 x : from)
                    if (std::find(into.begin(), into.end(), x) == into.end()) into.push_back(x);
            };
            // Every task is of one ring here; a second thread sends unrelated ones all the while.
            std::atomic<bool> over{false};
            std::thread noise([&] {
                for (u32 i = 0; !over; ++i) {
                    std::vector<declared_access> a{f::rw((1u << 20) + 8 * (i % 5), 8)};
                    submit_options o;
                    o.accesses = list_view<declared_access>(a);
                    (void)t.rt.submit(may_fail_task{0}, o);
                    if (i % 64 == 0) std::this_thread::sleep_for(100us);
                }
            });
            for (u32 i = 0; i < tasks; ++i) {
                if (random() % 60 == 0) {
                    t.rt.clear_failure();
                    for (auto& b : bad) b.clear();
                    for (auto& o : of_task) o.clear(); // forgiven as far as `after` goes
                }
                std::vector<declared_access> accesses;
                std::vector<u32> causes;
                std::vector<std::pair<u32, u32>> pure, mixed;
                const u32 n = 1 + random() % (random() % 8 == 0 ? 30 : 4);
                for (u32 k = 0; k < n; ++k) {
                    const u32 at = random() % places, length = 1 + random() % std::min<u32>(6, places - at);
                    const u32 mode = random() % 4;
                    if (mode == 0) {
                        accesses.push_back(f::w(at, length));
                        pure.emplace_back(at, length);
                    } else if (mode == 1) {
                        accesses.push_back(f::rw(at, length));
                        mixed.emplace_back(at, length);
                    } else {
                        accesses.push_back(f::r(at, length));
                    }
                    if (mode != 0)
                        for (u32 b = at; b < at + length; ++b) merge(causes, bad[b]);
                }
                std::vector<task_handle> after;
                if (random() % 6 == 0 && i > 0) {
                    const u32 on = static_cast<u32>(random() % i);
                    after.push_back(handles[on]);
                    merge(causes, of_task[on]);
                }
                const bool fails = random() % 12 == 0;
                handles.push_back(t.task(accesses, fails ? 1000 + i : 0, after));
                codes.push_back(fails ? 1000 + i : 0);
                const bool cancelled = !causes.empty();
                const std::vector<u32> result = cancelled ? causes : fails ? std::vector<u32>{i} : std::vector<u32>{};
                for (const auto& [at, length] : pure)
                    for (u32 b = at; b < at + length; ++b) bad[b] = {};
                for (const auto* const list : {&pure, &mixed})
                    for (const auto& [at, length] : *list)
                        for (u32 b = at; b < at + length; ++b) merge(bad[b], result);
                of_task.push_back(result);
                expected.push_back({cancelled ? task_state::cancelled : fails ? task_state::failed : task_state::complete,
                                    cancelled ? causes : result});
                if (random() % 8 == 0) check(i); // now and then at once: what follows meets a failure that is long known
            }
            over = true;
            noise.join();
            CHECK(t.rt.wait_all());
            for (u32 i = 0; i < tasks; ++i) check(i);
            CHECK(std::count_if(expected.begin(), expected.end(),
                                [](const answer& a) { return a.state == task_state::cancelled; }) > 50);
            CHECK(std::count_if(expected.begin(), expected.end(),
                                [](const answer& a) { return a.state == task_state::complete; }) > 50);
        }
    });
}

namespace {

/// Fails once it may.
struct fails_later_task {
    static constexpr const char* name = "fails later";
    std::atomic<u32>* may;
    template <class Block> void operator()(Block& block) const
    {
        while (*may == 0) std::this_thread::sleep_for(50us);
        block.fail(7);
    }
};
/// Says so, and takes its time.
struct slow_task {
    static constexpr const char* name = "slow";
    std::atomic<u32>* begun;
    std::atomic<u32>* ended;
    template <class Block> void operator()(Block&) const
    {
        ++*begun;
        std::this_thread::sleep_for(2ms);
        ++*ended;
    }
};

} // namespace

TEST_CASE("a task of which some blocks run is not cancelled when the books of poison overflow", "[api][failure]")
{
    in_time(30, [] {
        auto c = host_config();
        c.host_workers = 2;
        c.accesses_max = 2000;
        runtime<fails_later_task, slow_task> rt(c);
        std::atomic<u32> begun{0}, ended{0};
        std::vector<declared_access> many;
        for (u64 i = 0; i < device::poison_entries_max + 1; ++i)
            many.push_back(writes(reinterpret_cast<void*>((1ull << 40) + 64 * i), 8));
        submit_options o;
        o.accesses = list_view<declared_access>(many);
        const auto fails = rt.submit(fails_later_task{&begun}, o); // on one worker, until the other has begun what comes next
        const auto other = reads(reinterpret_cast<void*>(1ull << 41), 8);
        o.accesses = list_view<declared_access>(other);
        o.blocks = 60; // draws tickets
        const auto status = rt.wait(rt.submit(slow_task{&begun, &ended}, o));
        CHECK(status.ok());
        CHECK((begun == 60 && ended == 60));
        CHECK(rt.query(fails).state == task_state::failed);
        CHECK(rt.wait_all());
    });
}

TEST_CASE("a pure write of a rectangle too large for a message heals what it covers alone", "[api][failure]")
{
    in_time(20, [] {
        failure_test t;
        using f = failure_test;
        constexpr u64 pitch = u64{6} << 30; // eight fields of 6 GiB each; a task writes a chunk of each field
        constexpr auto W = access_mode::write;
        const auto root = t.task({f::square(W, 0, 4096, 8, pitch)}, 5);
        CHECK(t.failed(root, 5));
        CHECK(t.ok(t.task({f::square(W, 4096, 4096, 8, pitch)})));
        CHECK(t.cancelled(t.task({f::r(0, 16)}), root, 5));     // before the second chunk
        CHECK(t.cancelled(t.task({f::r(pitch, 16)}), root, 5)); // in a gap of it
    });
}

TEST_CASE("a tile of very many rows is healed by its handle, and the tile beside it is another one", "[api][failure][handles]")
{
    in_time(20, [] {
        failure_test t;
        const auto at = [](u64 a) { return reinterpret_cast<void*>(failure_test::base + a); };
        const auto left = t.rt.register_tile(at(0), 16, 70000, 64), right = t.rt.register_tile(at(16), 16, 70000, 64);
        const auto root = t.task({on(access_mode::write, left)}, 5);
        CHECK(t.failed(root, 5));
        CHECK(t.ok(t.task({on(access_mode::read, right)})));
        CHECK(t.ok(t.task({on(access_mode::write, right)})));
        CHECK(t.cancelled(t.task({on(access_mode::read, left)}), root, 5));
        CHECK(t.ok(t.task({on(access_mode::write, left)})));
        CHECK(t.ok(t.task({on(access_mode::read, left)})));
    });
}

TEST_CASE("cancelled updates of one tile of very many rows do not fill the books of poison", "[api][failure]")
{
    in_time(60, [] {
        failure_test t;
        using f = failure_test;
        const auto update = f::square(access_mode::read_write, 0, 16, 70000, 64);
        const auto root = t.task({update}, 5);
        for (u32 i = 0; i < 600; ++i) (void)t.rt.wait(t.task({update})); // each is cancelled
        CHECK(t.ok(t.task({f::r(u64{1} << 30, 16)}))); // has nothing to do with it
        CHECK(t.failed(root, 5));
    });
}
