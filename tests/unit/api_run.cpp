// The kernel's life: pause, relaunch, batch mode, blocks and tickets, flight log, several runtimes, configuration errors.
#include "api_tasks.hpp"
#include "host/runtime_core.hpp"
#include "wrapped_backend.hpp"
#include <map>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Begun and ended while the program's static objects are made, which the library's own may come behind.
const u64 stepped_before_main = [] {
    auto c = host_config();
    c.host_workers = 2;
    engine rt(c);
    u64 x = 1;
    rt.submit(step_task{{&x, 1}});
    (void)rt.wait_all();
    return x;
}();

} // namespace

TEST_CASE("a runtime works before main, too", "[api][run]") { CHECK(stepped_before_main == stepped(1, 1)); }

TEST_CASE("pause keeps everything away until resume; nothing is lost and nothing runs twice", "[api][run]")
{
    in_time(40, [] {
        auto c = host_config();
        c.window = 32;
        c.ring_slots = 16;
        c.rings = 3;
        engine rt(c);
        constexpr u32 tasks = 4000;
        std::vector<std::atomic<u32>> runs(2 * tasks);
        std::vector<u64> x(2, 1);
        std::atomic<u32> done{0};
        std::vector<std::thread> threads;
        for (u32 t = 0; t < 2; ++t)
            threads.emplace_back([&, t] {
                for (u32 i = 0; i < tasks; ++i) {
                    rt.submit(count_task{reinterpret_cast<u64>(&runs[t * tasks + i])}, {.order = ordering::no_access});
                    if (i % 4 == 0) rt.submit(step_task{{&x[t], 1}});
                }
                ++done;
            });
        u32 pauses = 0;
        while (done != 2) {
            rt.pause();
            u64 before = 0, later = 0;
            for (auto& r : runs) before += r;
            std::this_thread::sleep_for(1ms);
            for (auto& r : runs) later += r;
            CHECK(before == later);
            rt.resume();
            ++pauses;
            std::this_thread::sleep_for(2ms);
        }
        for (auto& t : threads) t.join();
        CHECK(rt.wait_all());
        CHECK(pauses > 3);
        CHECK(rt.launches() > 3);
        for (auto& r : runs) REQUIRE(r == 1);
        for (const u64 v : x) CHECK(v == stepped(1, tasks / 4));
    });
}

TEST_CASE("a pause that another thread ends before the kernel has left returns", "[api][run]")
{
    in_time(20, [] {
        auto c = host_config();
        c.residency = 60s;
        engine rt(c);
        gate g;
        std::vector<u64> x(1, 1);
        const auto busy = rt.submit(g.task(), {.accesses = writes(x.data(), 8)});
        std::this_thread::sleep_for(50ms); // it runs, most likely
        std::thread pauses([&] { rt.pause(); });
        std::this_thread::sleep_for(20ms);
        rt.resume();
        pauses.join();
        g.open();
        CHECK(rt.wait(busy).ok());
    });
}

TEST_CASE("a residency of milliseconds relaunches hundreds of times under load and loses nothing", "[api][run]")
{
    in_time(60, [] {
        for (const auto residency : {1ms, 5ms}) {
            auto c = host_config();
            c.residency = residency;
            c.window = 64;
            c.ring_slots = 8;
            c.host_workers = 3;
            engine rt(c);
            std::vector<std::atomic<u32>> runs(200000);
            u64 x = 1;
            u32 i = 0, steps = 0;
            const u64 launches = residency == 1ms ? 300 : 60;
            const auto until = after(15s);
            while (i < runs.size() && rt.launches() < launches && std::chrono::steady_clock::now() < until) {
                rt.submit(count_task{reinterpret_cast<u64>(&runs[i++])}, {.order = ordering::no_access});
                if (i % 8 == 0) {
                    rt.submit(step_task{{&x, 1}});
                    ++steps;
                }
            }
            CHECK(rt.wait_all());
            CHECK(rt.launches() >= launches);
            for (u32 k = 0; k < runs.size(); ++k) REQUIRE(runs[k] == (k < i ? 1 : 0));
            CHECK(x == stepped(1, steps));
        }
    });
}

TEST_CASE("a submission that comes at any time of the service thread's turn does not send the kernel away", "[api][run]")
{
    in_time(30, [] {
        auto c = host_config();
        c.residency = 60s;
        engine rt(c);
        u64 x = 1, steps = 0;
        for (const auto until = after(2s); std::chrono::steady_clock::now() < until; ++steps)
            REQUIRE(rt.wait(rt.submit(step_task{{&x, 1}})).ok()); // idle again each time
        CHECK(rt.launches() == 1);
        CHECK(x == stepped(1, steps));
    });
}

TEST_CASE("a task of many blocks goes on where it was when the kernel leaves in its middle", "[api][run]")
{
    in_time(30, [] {
        auto c = host_config();
        c.residency = 1ms;
        c.host_workers = 3;
        engine rt(c);
        for (u32 round = 0; round < 10; ++round) {
            std::vector<std::atomic<u32>> runs(20000);
            const auto h = rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.blocks = 20000});
            rt.pause();
            rt.resume();
            CHECK(rt.wait(h).ok());
            for (auto& r : runs) REQUIRE(r == 1);
        }
    });
}

TEST_CASE("tasks of three thousand blocks and of one block mix; every block runs once", "[api][run]")
{
    in_time(30, [] {
        for (const u32 workers : {1u, 2u, 5u}) {
            auto c = host_config();
            c.host_workers = workers;
            c.window = 16;
            engine rt(c);
            std::mt19937 random(workers);
            std::vector<u32> blocks;
            for (u32 i = 0; i < 60; ++i) blocks.push_back(i % 10 == 0 ? 3000 : 1 + random() % (2 * workers + 2));
            std::vector<std::vector<std::atomic<u32>>> runs;
            for (const u32 b : blocks) runs.emplace_back(b);
            u64 x = 1;
            for (u32 i = 0; i < blocks.size(); ++i) {
                if (i % 3)
                    rt.submit(count_task{reinterpret_cast<u64>(runs[i].data())},
                              {.blocks = blocks[i], .order = ordering::no_access});
                else
                    rt.submit(count_task{reinterpret_cast<u64>(runs[i].data())},
                              {.blocks = blocks[i], .accesses = reads_and_writes(&x, 8)});
            }
            CHECK(rt.wait_all());
            for (u32 i = 0; i < blocks.size(); ++i)
                for (auto& r : runs[i]) REQUIRE(r == 1);
        }
    });
}

TEST_CASE("the flight log shows every block exactly once, with its task, type and times", "[api][run]")
{
    in_time(30, [] {
        auto c = host_config();
        c.host_workers = 4;
        c.flight_log = 8192;
        engine rt(c);
        std::vector<std::atomic<u32>> runs(3000);
        std::map<u64, u32> blocks;
        for (u32 i = 0; i < 40; ++i) {
            const u32 n = i == 5 ? 3000 : 1 + i % 7;
            blocks[rt.submit(count_task{reinterpret_cast<u64>(runs.data())},
                             {.blocks = n, .order = ordering::no_access}).position] = n;
        }
        CHECK(rt.wait_all());
        rt.pause();
        std::map<u64, std::map<u32, u32>> seen;
        for (const auto& e : rt.flight_log()) {
            CHECK(e.type == 2);
            CHECK(e.worker < 4);
            CHECK(e.end_ns >= e.start_ns);
            for (u32 b = 0; b < e.blocks; ++b) ++seen[e.task.position][e.first_block + b];
        }
        CHECK(seen.size() == blocks.size());
        for (const auto& [position, n] : blocks) {
            REQUIRE(seen[position].size() == n);
            for (const auto& [block, times] : seen[position]) REQUIRE((block < n && times == 1));
        }
    });
}

TEST_CASE("the flight log may be read only while the kernel is away", "[api][run]")
{
    in_time(10, [] {
        auto c = host_config();
        c.flight_log = 16;
        engine rt(c);
        gate g;
        rt.submit(g.task());
        while (rt.launches() == 0) std::this_thread::yield();
        CHECK_THROWS_AS(rt.flight_log(), config_error);
        g.open();
    });
}

namespace {

config batch_config()
{
    auto c = host_config();
    c.batch = true;
    c.ring_slots = 4096;
    return c;
}

} // namespace

TEST_CASE("batch mode runs nothing before run_batch and everything in it, again and again", "[api][run]")
{
    in_time(20, [] {
        engine rt(batch_config());
        u64 x = 1;
        for (u32 round = 0; round < 5; ++round) {
            const u64 before = x;
            task_handle h{};
            for (u32 i = 0; i < 300; ++i) h = rt.submit(step_task{{&x, 1}});
            std::this_thread::sleep_for(2ms);
            CHECK(x == before);
            CHECK(rt.query(h).state == task_state::pending);
            rt.run_batch();
            CHECK(rt.query(h).ok());
            CHECK(x == stepped(before, 300));
        }
        rt.run_batch(); // nothing to do
        CHECK_THROWS_AS(rt.resume(), config_error);
    });
}

TEST_CASE("pause in batch mode waits for a batch that another thread runs, and stops nothing for good", "[api][run]")
{
    in_time(20, [] {
        engine rt(batch_config());
        u64 x = 1;
        for (u32 round = 0; round < 20; ++round) {
            const u64 before = x;
            for (u32 i = 0; i < 1000; ++i) rt.submit(step_task{{&x, 1}});
            std::atomic<bool> over{false};
            std::thread runs([&] {
                rt.run_batch();
                over = true;
            });
            while (!over) rt.pause();
            runs.join();
            CHECK(x == stepped(before, 1000));
        }
        rt.pause();
    });
}

namespace {

/// Two threads in run_batch(): the first, at its end, has seen that its batch is done, and waits until the other has begun its own.
struct batch_meeting {
    static inline std::atomic<u32> turn{0}; ///< 1: the service thread is to stand still; 2: it does; 3: the second thread's turn
    static inline std::atomic<u32> looks_of_second{0};
    static inline thread_local u32 who = 0; // 1, 2: the threads
    static inline thread_local u32 looks = 0;

    static void delay(device::edge e)
    {
        if (e != device::edge::A7_low_water || who == 0) return;
        if (who == 2) ++looks_of_second;
        if (who != 1 || ++looks != 2) return; // at the second of two rings; the first is the other thread's
        turn = 1;
        while (turn != 2) std::this_thread::yield();
        turn = 3;
        const auto until = after(200ms); // it does not come if the first thread's end is waited for
        while (looks_of_second == 0 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    }
};

class patient_service final : public wrapped_backend {
public:
    using wrapped_backend::wrapped_backend;
    bool running() override
    {
        while (batch_meeting::turn != 0) {
            u32 asked = 1;
            batch_meeting::turn.compare_exchange_strong(asked, 2);
            std::this_thread::yield();
        }
        return wrapped_backend::running();
    }
};

} // namespace

TEST_CASE("run_batch by two threads: one that comes to its end does not pause what the other has just begun", "[api][run]")
{
    in_time(20, [] {
        auto c = host_config();
        c.batch = true;
        c.rings = 2;
        host::beginning start;
        start.around = [](std::unique_ptr<host::backend> inner) { return std::make_unique<patient_service>(std::move(inner)); };
        host::runtime_core core(c, detail::image_of<detail::platforms, step_task, copy_task, fill_task, marker_task>(), start);
        std::atomic<u32> rings{0};
        u64 x = 1;
        const auto submit = [&] {
            const step_task task{{&x, 1}};
            task_handle h;
            (void)core.submit(0, &task, {}, true, h);
            ++rings;
            return h;
        };
        task_handle first{}, last{};
        std::thread second([&] { // asserts nothing: Catch2 is not for two threads at a time
            first = submit();
            while (batch_meeting::turn != 3) std::this_thread::yield();
            last = submit();
            batch_meeting::who = 2;
            core.run_batch();
        });
        while (rings == 0) std::this_thread::yield();
        CHECK(submit().ring == 1);
        core.run_batch();
        CHECK(x == stepped(1, 2));

        device::host_delay_hook = &batch_meeting::delay;
        batch_meeting::who = 1;
        core.run_batch(); // nothing to do
        batch_meeting::who = 0;
        batch_meeting::turn = 0;
        second.join();
        device::host_delay_hook = nullptr;
        CHECK(first.ring == 0);
        CHECK(core.query(last).ok());
        CHECK(x == stepped(1, 3));
    });
}

TEST_CASE("a batch that does not fit its ring is refused with a remedy, and what was submitted still runs", "[api][run]")
{
    in_time(20, [] {
        auto c = host_config();
        c.batch = true;
        c.ring_slots = 16;
        engine rt(c);
        std::vector<u64> x(100, 1);
        u32 accepted = 0;
        std::string said;
        std::vector<slipstream::declared_access> several;
        for (auto& v : x) several.push_back(reads_and_writes(&v, 8));
        several.resize(9); // three slots: the message breaks off in its middle
        std::vector<std::atomic<u32>> runs(1);
        try {
            for (; accepted < 100; ++accepted) rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.accesses = several});
        } catch (const config_error& e) {
            said = e.what();
        }
        CHECK(said.find("ring_slots") != std::string::npos);
        CHECK(accepted < 100);
        rt.run_batch();
        CHECK(runs[0] == accepted);
        // The ring must not keep a part of the refused message: a marker, which touches nothing, still goes through.
        const auto h = rt.submit(marker_task{}, {.order = ordering::no_access});
        CHECK(h.position == accepted);
        rt.run_batch();
        CHECK(rt.query(h).ok());
    });
}

TEST_CASE("destruction waits for everything submitted, also when paused", "[api][run]")
{
    in_time(20, [] {
        for (const bool paused : {false, true}) {
            std::vector<std::atomic<u32>> runs(500);
            {
                engine rt(host_config());
                if (paused) rt.pause();
                for (auto& r : runs) rt.submit(count_task{reinterpret_cast<u64>(&r)}, {.order = ordering::no_access});
            }
            for (auto& r : runs) REQUIRE(r == 1);
        }
    });
}

TEST_CASE("a long message from a ring of four slots wakes a kernel that was away", "[api][run]")
{
    in_time(20, [] {
        auto c = host_config();
        c.ring_slots = 4;
        c.residency = 1ms;
        engine rt(c);
        std::vector<u64> x(200, 1);
        std::vector<slipstream::declared_access> all;
        for (auto& v : x) all.push_back(reads_and_writes(&v, 8));
        std::vector<std::atomic<u32>> runs(1);
        for (u32 i = 0; i < 20; ++i) {
            const auto h = rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.accesses = all});
            CHECK(rt.wait(h).ok());
            std::this_thread::sleep_for(3ms); // the kernel leaves
        }
        CHECK(runs[0] == 20);
    });
}

TEST_CASE("several runtimes live side by side and one after another", "[api][run]")
{
    in_time(30, [] {
        auto c = host_config();
        c.host_workers = 2;
        c.rings = 2;
        {
            engine a(c), b(c), d(c);
            std::vector<u64> x(3, 1);
            for (u32 i = 0; i < 1000; ++i) {
                a.submit(step_task{{&x[0], 1}});
                b.submit(step_task{{&x[1], 1}});
                d.submit(step_task{{&x[2], 1}});
            }
            CHECK((a.wait_all() && b.wait_all() && d.wait_all()));
            for (const u64 v : x) CHECK(v == stepped(1, 1000));
        }
        for (u32 i = 0; i < 40; ++i) {
            engine rt(c);
            u64 x = 1;
            rt.submit(step_task{{&x, 1}});
            if (i % 2) CHECK(rt.wait_all());
        }
    });
}

TEST_CASE("sixty-four workers on few cores with a window as small lose nothing", "[api][run]")
{
    in_time(40, [] {
        auto c = host_config();
        c.host_workers = 64;
        c.window = 64;
        c.ring_slots = 1024;
        engine rt(c);
        std::vector<std::atomic<u32>> runs(20000);
        for (auto& r : runs) rt.submit(count_task{reinterpret_cast<u64>(&r)}, {.order = ordering::no_access});
        CHECK(rt.wait_all());
        for (auto& r : runs) REQUIRE(r == 1);
    });
}

TEST_CASE("a configuration that cannot work is refused in a sentence that says what to do", "[api][config]")
{
    const auto said = [](auto change) -> std::string {
        auto c = host_config();
        change(c);
        try {
            engine rt(c);
        } catch (const config_error& e) {
            return e.what();
        }
        return "accepted";
    };
    const auto has = [](const std::string& text, std::initializer_list<const char*> parts) {
        INFO(text);
        for (const char* part : parts) CHECK(text.find(part) != std::string::npos);
    };
    has(said([](config& c) { c.window = 0; }), {"window = 0", "16"});
    has(said([](config& c) { c.window = 15; }), {"window = 15"});
    has(said([](config& c) { c.window = 5000; }), {"window = 5000", "4096"});
    has(said([](config& c) { c.ring_slots = 0; }), {"ring_slots = 0", "4"});
    has(said([](config& c) { c.ring_slots = 3; }), {"ring_slots = 3"});
    has(said([](config& c) { c.rings = 0; }), {"rings = 0", "16"});
    has(said([](config& c) { c.rings = 17; }), {"rings = 17"});
    has(said([](config& c) { c.rings = 16; c.window = 16; }), {"rings = 16", "window"});
    has(said([](config& c) { c.accesses_max = 0; }), {"accesses_max = 0", "4"});
    has(said([](config& c) { c.handles_max = 0; }), {"handles_max = 0"});
    has(said([](config& c) { c.residency = 0ms; }), {"residency"});
    has(said([](config& c) { c.staging_bytes = 4095; }), {"staging_bytes = 4095", "4096"});
    has(said([](config& c) { c.staging_bytes = 0; }), {"staging_bytes = 0", "4096"});
    has(said([](config& c) { c.host_workers = 2000; }), {"host_workers", "1024"});
    has(said([](config& c) { c.device = "gpu"; }), {"'gpu'", "host"});
    has(said([](config& c) { c.device = "cuda:"; }), {"cuda:N"});
    CHECK(said([](config& c) { c.window = 16; c.rings = 15; }) == "accepted");
    CHECK(said([](config& c) { c.window = 17; c.ring_slots = 5; }) == "accepted");
}

TEST_CASE("the configuration in use is the rounded one", "[api][config]")
{
    auto c = host_config();
    c.window = 33;
    engine rt(c);
    CHECK(rt.configuration().window == 64);
    CHECK(rt.configuration().ring_slots >= 1024);
}
