// Submission, completion, deadlines, back-pressure and order, on the host device.
#include "api_tasks.hpp"
#include "host/runtime_core.hpp"
#include "wrapped_backend.hpp"
#include <random>
#include <unistd.h>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

struct tile_size_task {
    in2d<u32> tile;
    out<u64> size;
    template <class Block> void operator()(Block&) const { size[0] = tile.row_bytes(); }
};

struct tile_fill_task {
    out2d<u32> tile;
    u32 value;
    template <class Block> void operator()(Block&) const
    {
        for (u64 r = 0; r < tile.rows(); ++r)
            for (u64 c = 0; c < tile.columns(); ++c) tile(r, c) = value;
    }
};

/// Says where the pages of an engine's rings are, which nothing else of it is as large as.
class shown_pages final : public wrapped_backend {
public:
    using page = device::ring_page<device::host_platform>;

    shown_pages(std::unique_ptr<host::backend> inner, u32 rings, page*& pages)
        : wrapped_backend(std::move(inner)), bytes_(rings * sizeof(page)), pages_(pages)
    {
    }
    void* take_pinned(std::size_t bytes) override
    {
        void* const taken = wrapped_backend::take_pinned(bytes);
        if (bytes == bytes_) pages_ = static_cast<page*>(taken);
        return taken;
    }

private:
    std::size_t bytes_;
    page*& pages_;
};

} // namespace

TEST_CASE("no name of the library hides a POSIX function behind `using namespace slipstream`", "[api]")
{
    CHECK(access("/", F_OK) == 0); // of unistd.h
    const declared_access a = reads("x", 1);
    CHECK(a.mode == access_mode::read);
}

TEST_CASE("a submitted task runs, is complete, and its writes are there", "[api]")
{
    in_time(10, [] {
        engine rt(host_config());
        CHECK(rt.device_name() == "host");
        CHECK_FALSE(rt.on_cuda());
        CHECK(rt.workers() >= 2);
        std::vector<u64> x{1, 2, 3};
        const auto h = rt.submit(step_task{x});
        CHECK(rt.wait(h).ok());
        CHECK(rt.query(h).state == task_state::complete);
        CHECK(x == std::vector<u64>{4, 7, 10});
    });
}

TEST_CASE("a chain on one buffer runs in order: the value says so", "[api]")
{
    in_time(20, [] {
        for (const u32 window : {16u, 64u, 1024u}) {
            auto c = host_config();
            c.window = window;
            engine rt(c);
            std::vector<u64> x{5};
            for (u32 i = 0; i < 2000; ++i) rt.submit(step_task{x});
            CHECK(rt.wait_all());
            CHECK(x[0] == stepped(5, 2000));
        }
    });
}

TEST_CASE("a pending task says pending, a deadline ends the wait, and the task goes on", "[api]")
{
    in_time(20, [] {
        engine rt(host_config());
        gate g;
        const auto h = rt.submit(g.task(), {.order = ordering::no_access});
        CHECK(rt.query(h).state == task_state::pending);
        const auto before = std::chrono::steady_clock::now();
        CHECK(rt.wait(h, before + 30ms).state == task_state::pending);
        CHECK(std::chrono::steady_clock::now() - before >= 30ms);
        CHECK(std::chrono::steady_clock::now() - before < 3s);
        CHECK_FALSE(rt.wait_all(std::chrono::steady_clock::now() + 10ms));
        g.open();
        CHECK(rt.wait(h).ok());
        CHECK(rt.wait_all());
    });
}

TEST_CASE("a task is seen to be complete while the one behind it on its worker runs, however brief the ones before were", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 1;
        engine rt(c);
        buffer<u64> b(rt, 1);
        gate open, closed;
        open.open();
        const auto pair = [&](gate& g) { // both in the window before either can run: the second is mailed behind the first
            rt.pause();
            const auto first = rt.submit(step_task{b});
            const auto second = rt.submit(g.task(), {.accesses = {writes(b.data(), 8)}});
            rt.resume();
            return std::pair{first, second};
        };
        for (u32 i = 0; i < 20; ++i) CHECK(rt.wait(pair(open).second).ok());
        const auto [first, second] = pair(closed);
        CHECK(rt.wait(first, after(5s)).ok());
        CHECK(rt.query(second).state == task_state::pending);
        closed.open();
        CHECK(rt.wait(second).ok());
    });
}

namespace {
struct says_so {
    static constexpr bool brief = true;
};
struct says_no {
    static constexpr bool brief = false;
};
struct has_a_member {
    bool brief;
};
} // namespace

TEST_CASE("a type promises to be brief by a constant, not by a member of that name", "[api]")
{
    STATIC_REQUIRE(is_brief<says_so>());
    STATIC_REQUIRE_FALSE(is_brief<says_no>());
    STATIC_REQUIRE_FALSE(is_brief<has_a_member>());
    STATIC_REQUIRE_FALSE(is_brief<gate_task>());
    CHECK(describe_task<step_task>().brief == 1);
    CHECK(describe_task<gate_task>().brief == 0);
}

namespace {
struct eight_task {
    static constexpr const char* name = "eight";
    in<u64> a, b, c, d, e, f, g;
    inout<u64> h;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.rank() == 0) h[0] += a[0] + b[0] + c[0] + d[0] + e[0] + f[0] + g[0];
    }
};
} // namespace

TEST_CASE("a message is asked for as much room as it takes, from the first one on and whichever runtime had the one before",
          "[api]")
{
    // By handles eight accesses take two ring slots; as many chunks as they might have taken would need five.
    in_time(20, [] {
        using wide = runtime<eight_task>;
        auto c = host_config();
        c.ring_slots = 4;
        c.batch = true;
        wide one(c), other(c);
        for (u32 turn = 0; turn < 3; ++turn)
            for (wide* rt : {&one, &other}) {
                std::vector<u64> x(8, 1);
                eight_task task;
                in<u64>* const inputs[] = {&task.a, &task.b, &task.c, &task.d, &task.e, &task.f, &task.g};
                for (u32 i = 0; i < 7; ++i) *inputs[i] = in<u64>(rt->register_range(&x[i], sizeof x[i]));
                task.h = inout<u64>(rt->register_range(&x[7], sizeof x[7]));
                task_handle h;
                REQUIRE(rt->try_submit(task, h) == submit_status::submitted);
                REQUIRE_NOTHROW(rt->submit(task));
                rt->run_batch();
                CHECK(x[7] == 15);
                // With a name it goes the longer way, and takes as much.
                REQUIRE(rt->try_submit(task, h, {.name = "named"}) == submit_status::submitted);
                REQUIRE_NOTHROW(rt->submit(task, {.name = "named, too"}));
                rt->run_batch();
                CHECK(x[7] == 29);
            }
    });
}

TEST_CASE("try_submit on a full ring says full, changes nothing and loses nothing", "[api]")
{
    in_time(20, [] {
        for (const u32 slots : {4u, 64u}) {
            auto c = host_config();
            c.window = 16;
            c.ring_slots = slots;
            engine rt(c);
            std::vector<std::atomic<u32>> runs(5000);
            gate g;
            rt.submit(g.task()); // whole memory: everything waits behind it
            task_handle last{};
            u32 accepted = 0, refused = 0;
            const auto until = after(2s);
            while (refused < 200 && accepted < runs.size() && std::chrono::steady_clock::now() < until) {
                task_handle h{77, 77};
                const auto s = rt.try_submit(count_task{reinterpret_cast<u64>(&runs[accepted])}, h, {.order = ordering::no_access});
                if (s == submit_status::full) {
                    ++refused;
                    CHECK(h == task_handle{77, 77});
                    std::this_thread::sleep_for(100us);
                } else {
                    if (accepted > 0) CHECK(h.position == last.position + 1);
                    last = h;
                    ++accepted;
                }
            }
            CHECK(refused >= 200);
            CHECK(accepted >= slots);
            CHECK(accepted <= slots + 16);
            g.open();
            CHECK(rt.wait_all());
            for (u32 i = 0; i < runs.size(); ++i) REQUIRE(runs[i] == (i < accepted ? 1 : 0));
        }
    });
}

TEST_CASE("a span of unfinished submissions is back-pressure, and bits of later laps are right", "[api][large]")
{
    in_time(60, [] {
        auto c = host_config();
        c.ring_slots = 1u << 17;
        c.window = 1024;
        c.host_workers = 2;
        engine rt(c);
        std::vector<std::atomic<u32>> runs(1);
        gate g;
        const auto first = rt.submit(g.task(), {.order = ordering::no_access});
        u32 accepted = 1;
        task_handle h{};
        for (;;) {
            // Tasks behind the gate's worker may be staged there: only the mark must stand still.
            if (rt.try_submit(count_task{reinterpret_cast<u64>(runs.data())}, h, {.order = ordering::no_access})
                == submit_status::full)
                break;
            ++accepted;
        }
        CHECK(accepted == 65536);
        CHECK(rt.query(first).state == task_state::pending);
        g.open();
        CHECK(rt.wait(first).ok());
        CHECK(rt.wait(h).ok());
        for (u32 i = 0; i < 100000; ++i)
            h = rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.order = ordering::no_access});
        CHECK(rt.wait(h).ok());
        CHECK(rt.wait_all());
        CHECK(runs[0] == 65535 + 100000);
        CHECK(rt.query(first).ok());
        CHECK(rt.query({h.ring, h.position + 1}).state == task_state::pending);
    });
}

TEST_CASE("a task with a thousand accesses goes through a ring of four slots", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.ring_slots = 4;
        c.rings = 1;
        c.window = 16;
        engine rt(c);
        std::vector<u64> x(1000, 1);
        std::vector<slipstream::declared_access> all;
        for (auto& v : x) all.push_back(reads_and_writes(&v, 8));
        std::vector<std::atomic<u32>> runs(1);
        for (u32 i = 0; i < 40; ++i) {
            rt.submit(count_task{reinterpret_cast<u64>(runs.data())}, {.accesses = all});
            rt.submit(step_task{{&x[i * 7], 1}});
        }
        CHECK(rt.wait_all());
        CHECK(runs[0] == 40);
        for (u32 i = 0; i < 40; ++i) CHECK(x[i * 7] == 4);
    });
}

TEST_CASE("a thousand accesses order: the last one is as good as the first", "[api]")
{
    in_time(20, [] {
        for (const u32 at : {0u, 3u, 4u, 36u, 999u}) {
            auto c = host_config();
            c.host_workers = 3;
            engine rt(c);
            std::vector<u64> x(1000, 1);
            std::vector<slipstream::declared_access> all;
            for (auto& v : x) all.push_back(raw_access(access_mode::read, &v, 8));
            gate g;
            const auto held = rt.submit(g.task(), {.accesses = all});
            const auto next = rt.submit(step_task{{&x[at], 1}});
            const auto free = rt.submit(step_task{{x.data(), 0}}, {.order = ordering::no_access});
            CHECK(rt.wait(free).ok());
            CHECK(rt.query(next).state == task_state::pending);
            CHECK(x[at] == 1);
            g.open();
            CHECK(rt.wait(next).ok());
            CHECK(rt.query(held).ok());
            CHECK(x[at] == 4);
        }
    });
}

TEST_CASE("more accesses than accesses_max make a whole-memory task", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.accesses_max = 8;
        c.host_workers = 3;
        engine rt(c);
        std::vector<u64> x(9, 1);
        u64 elsewhere = 1;
        std::vector<slipstream::declared_access> all;
        for (auto& v : x) all.push_back(raw_access(access_mode::read, &v, 8));
        gate g;
        rt.submit(g.task(), {.accesses = all});
        const auto h = rt.submit(step_task{{&elsewhere, 1}});
        CHECK(rt.wait(h, std::chrono::steady_clock::now() + 30ms).state == task_state::pending);
        g.open();
        CHECK(rt.wait(h).ok());
    });
}

TEST_CASE("no_access waits for nothing but whole-memory tasks, even with typed members", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 3;
        engine rt(c);
        u64 x = 1, y = 1;
        gate g;
        rt.submit(g.task(), {.accesses = writes(&x, 8)});
        const auto free = rt.submit(step_task{{&y, 1}}, {.order = ordering::no_access});
        CHECK(rt.wait(free, after(1s)).ok());
        const auto declared = rt.submit(step_task{{&x, 1}}, {.order = ordering::no_access});
        CHECK(rt.wait(declared, after(300ms)).ok());
        g.open();
        rt.wait_all();
    });
}

TEST_CASE("a task that declares nothing is ordered against everything", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 4;
        engine rt(c);
        u64 x = 1;
        gate g;
        rt.submit(g.task(), {.order = ordering::no_access});
        const auto whole = rt.submit(marker_task{});
        const auto later = rt.submit(step_task{{&x, 1}});
        const auto none = rt.submit(marker_task{}, {.order = ordering::no_access});
        CHECK(rt.wait(none, std::chrono::steady_clock::now() + 30ms).state == task_state::pending);
        CHECK(rt.query(whole).state == task_state::pending);
        CHECK(rt.query(later).state == task_state::pending);
        g.open();
        CHECK(rt.wait_all());
        CHECK(x == 4);
    });
}

TEST_CASE("a partial overlap orders, neighbouring bytes do not", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 3;
        engine rt(c);
        std::vector<u64> x(4, 1);
        gate g;
        rt.submit(g.task(), {.accesses = writes(x.data(), 9)}); // one byte of x[1]
        const auto meets = rt.submit(step_task{{&x[1], 1}});
        const auto apart = rt.submit(step_task{{&x[2], 2}});
        CHECK(rt.wait(apart, after(2s)).ok());
        CHECK(rt.query(meets).state == task_state::pending);
        g.open();
        CHECK(rt.wait(meets).ok());
    });
}

TEST_CASE("after orders two threads, and may name a task that is not submitted yet", "[api]")
{
    in_time(30, [] {
        for (u32 round = 0; round < 20; ++round) {
            auto c = host_config();
            c.rings = 2;
            engine rt(c);
            u64 x = 1, y = 0;
            const auto mine = rt.submit(marker_task{}, {.order = ordering::no_access});
            std::atomic<u32> other_ring{~0u};
            std::atomic<bool> go{false};
            std::thread other([&] {
                other_ring = rt.submit(marker_task{}, {.order = ordering::no_access}).ring;
                while (!go) std::this_thread::sleep_for(50us);
                rt.submit(step_task{{&x, 1}}, {.order = ordering::no_access}); // position 1
            });
            while (other_ring == ~0u) std::this_thread::yield();
            REQUIRE(other_ring != mine.ring);
            const auto waits = rt.submit(step_task{{&y, 1}}, {.after = task_handle{other_ring, 1}, .order = ordering::no_access});
            CHECK(rt.wait(waits, std::chrono::steady_clock::now() + 5ms).state == task_state::pending);
            CHECK(y == 0);
            go = true;
            CHECK(rt.wait(waits).ok());
            CHECK(x == 4);
            CHECK(y == 1);
            other.join();
        }
    });
}

TEST_CASE("a task that is yet to be submitted is pending, however far ahead, also while bits come later than their mark", "[api]")
{
    using P = device::host_platform;
    auto c = host_config();
    c.rings = 3;
    shown_pages::page* pages = nullptr;
    host::beginning start;
    start.around = [&](std::unique_ptr<host::backend> inner) {
        return std::make_unique<shown_pages>(std::move(inner), c.rings, pages);
    };
    host::runtime_core core(c, detail::image_of<detail::platforms, step_task, copy_task, fill_task, marker_task>(), start);
    core.pause();
    REQUIRE(pages != nullptr);
    // As a host sees it whom the mark of a round has reached before its bits: a GPU stores them in no order.
    P::store(device::edge::R7_low_water, pages[1].low_water, u64{100}, device::order::release, device::scope::system);
    CHECK(core.query({1, 99}).ok());
    for (const u64 ahead : {u64{0}, u64{device::submissions_ahead_max} - 1, u64{device::submissions_ahead_max},
                            u64{device::completion_span} - 50, u64{device::completion_span} - 1,
                            u64{device::completion_span}, u64{1} << 40}) {
        INFO(ahead << " ahead of the mark");
        CHECK(core.query({1, 100 + ahead}).state == task_state::pending);
    }
}

TEST_CASE("after that names a task its own thread has yet to submit is refused: nothing is submitted, and all goes on",
          "[api]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 3u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.parts = parts;
            c.host_workers = 2 * parts;
            c.exit_limit = 1s; // of an engine that takes it
            engine rt(c);
            std::vector<u64> x(parts, 1);
            for (u32 p = 0; p < parts; ++p) rt.place(&x[p], 8, p);
            std::vector<task_handle> last;
            for (u32 p = 0; p < parts; ++p) last.push_back(rt.submit(step_task{{&x[p], 1}}));
            for (u32 p = 0; p < parts; ++p)
                for (const u64 ahead : {u64{1}, u64{2}, u64{200'000}, u64{1} << 40}) {
                    const task_handle future{last[p].ring, last[p].position + ahead};
                    const std::string text = thrown<config_error>([&] { // with several parts one that crosses, so that none has it
                        rt.submit(step_task{x}, {.after = {last[0], future}});
                    });
                    INFO(text);
                    REQUIRE(text.find("`after` names " + std::to_string(p) + ":" + std::to_string(future.position)
                                      + ", which this thread has yet to submit") == 0);
                    task_handle none{77, 77};
                    REQUIRE_THROWS_AS(rt.submit(step_task{{&x[p], 1}}, {.after = future}), config_error);
                    REQUIRE_THROWS_AS(rt.submit(marker_task{}, {.after = future, .order = ordering::no_access}), config_error);
                    REQUIRE_THROWS_AS(rt.try_submit(marker_task{}, none, {.after = future}), config_error);
                    CHECK(none == task_handle{77, 77});
                }
            for (u32 p = 0; p < parts; ++p) {
                const task_handle next = rt.submit(step_task{{&x[p], 1}}, {.after = last[p]});
                CHECK(next == task_handle{last[p].ring, last[p].position + 1});
            }
            CHECK(rt.wait_all());
            CHECK(x == std::vector<u64>(parts, stepped(1, 2)));
        }
    });
}

TEST_CASE("a thread that waits without a deadline for a task that it has yet to submit is told so", "[api]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 3u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.parts = parts;
            c.host_workers = 2 * parts;
            engine rt(c);
            std::vector<u64> x(parts, 1);
            for (u32 p = 0; p < parts; ++p) rt.place(&x[p], 8, p);
            for (u32 p = 0; p < parts; ++p) {
                const task_handle last = rt.submit(step_task{{&x[p], 1}});
                CHECK(rt.wait(last).ok());
                for (const u64 ahead : {u64{1}, u64{200'000}}) {
                    const task_handle future{last.ring, last.position + ahead};
                    const std::string text = thrown<config_error>([&] { rt.wait(future); });
                    INFO(text);
                    CHECK(text.find(std::to_string(p) + ":" + std::to_string(future.position)
                                    + " is one that this thread has yet to submit") != std::string::npos);
                    CHECK(rt.wait(future, std::chrono::steady_clock::now() + 5ms).state == task_state::pending);
                }
                const task_handle next{last.ring, last.position + 1};
                std::atomic<u32> seen{0}; // 1: not as it should be
                std::thread other([&] { seen = rt.wait(next).ok() ? 2 : 1; }); // that thread may hope
                std::this_thread::sleep_for(5ms);
                CHECK(seen == 0);
                CHECK(rt.submit(step_task{{&x[p], 1}}) == next);
                other.join();
                CHECK(seen == 2);
            }
        }
    });
}

TEST_CASE("only the ring whose after is open waits", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.rings = 3;
        c.window = 16;
        c.ring_slots = 4;
        engine rt(c);
        std::atomic<u32> rings_known{0};
        std::vector<std::atomic<u32>> runs(1);
        const auto mine = rt.submit(marker_task{}, {.order = ordering::no_access});
        std::vector<task_handle> theirs(2);
        std::atomic<bool> finish{false};
        const auto count = count_task{reinterpret_cast<u64>(runs.data())};
        std::thread a([&] { // takes a ring, then is late
            theirs[0] = rt.submit(marker_task{}, {.order = ordering::no_access});
            ++rings_known;
            while (!finish) std::this_thread::sleep_for(50us);
            rt.submit(count, {.order = ordering::no_access});
        });
        while (rings_known != 1) std::this_thread::yield();
        const auto stuck = rt.submit(marker_task{}, {.after = task_handle{theirs[0].ring, 1}, .order = ordering::no_access});
        std::thread b([&] {
            std::vector<task_handle> all; // they are unordered: the last one may be done before others
            for (u32 i = 0; i < 3000; ++i) all.push_back(rt.submit(count, {.order = ordering::no_access}));
            for (const task_handle& h : all) CHECK(rt.wait(h).ok());
        });
        b.join();
        CHECK(runs[0] == 3000);
        CHECK(rt.query(stuck).state == task_state::pending);
        finish = true;
        a.join();
        CHECK(rt.wait(stuck).ok());
        CHECK(mine.position == 0);
    });
}

TEST_CASE("four submitting threads lose nothing and keep their own order", "[api]")
{
    in_time(30, [] {
        for (const u32 slots : {4u, 256u}) {
            auto c = host_config();
            c.rings = 4;
            c.ring_slots = slots;
            c.window = 32;
            engine rt(c);
            std::vector<u64> x(4, 1);
            std::vector<std::thread> threads;
            for (u32 t = 0; t < 4; ++t)
                threads.emplace_back([&, t] {
                    for (u32 i = 0; i < 2000; ++i) rt.submit(step_task{{&x[t], 1}});
                });
            for (auto& t : threads) t.join();
            CHECK(rt.wait_all());
            for (const u64 v : x) CHECK(v == stepped(1, 2000));
        }
    });
}

TEST_CASE("more submitting threads than rings is a clear error; a thread that ended gives its ring back", "[api]")
{
    in_time(20, [] {
        auto c = host_config();
        c.rings = 2;
        engine rt(c);
        rt.submit(marker_task{});
        std::atomic<bool> taken{false}, leave{false};
        std::thread second([&] {
            rt.submit(marker_task{});
            taken = true;
            while (!leave) std::this_thread::sleep_for(1ms);
        });
        while (!taken) std::this_thread::yield();
        std::string said;
        std::thread([&] {
            try {
                rt.submit(marker_task{});
            } catch (const config_error& e) {
                said = e.what();
            }
        }).join();
        CHECK(said.find("2 threads") != std::string::npos);
        CHECK(said.find("config::rings") != std::string::npos);
        leave = true;
        second.join();
        for (u32 i = 0; i < 10; ++i)
            std::thread([&] {
                const auto h = rt.submit(marker_task{});
                CHECK(rt.wait(h).ok());
            }).join();
        CHECK(rt.wait_all());
    });
}

TEST_CASE("handles that are no handles of this runtime are refused", "[api]")
{
    engine rt(host_config());
    CHECK_THROWS_AS(rt.query({}), config_error);
    CHECK_THROWS_AS(rt.wait({99, 0}), config_error);
    CHECK_THROWS_AS(rt.submit(marker_task{}, {.after = task_handle{}}), config_error);
    CHECK_THROWS_AS(rt.submit(marker_task{}, {.blocks = 0}), config_error);
    CHECK(rt.query({0, 12345}).state == task_state::pending);
}

TEST_CASE("what a member has no room for is refused where the member is made, with the number and the limit", "[api]")
{
    u64 x = 0;
    const u64 below_zero = u64{3} - 4;
    const std::string text = thrown<config_error>([&] { inout<u64>(&x, below_zero); });
    INFO(text);
    CHECK(text.find("of 18446744073709551615 elements") != std::string::npos);
    CHECK(text.find("at most 137438953471") != std::string::npos);
    constexpr u64 most = detail::member_bytes_max;
    CHECK(in<u64>(&x, most / 8).bytes() == most / 8 * 8);
    CHECK(in<u64>(&x, most / 8).handle_plus_one() == 0);
    CHECK_THROWS_AS(in<u64>(&x, most / 8 + 1), config_error);
    CHECK(in<char>(reinterpret_cast<char*>(&x), most).size() == most);
    CHECK_THROWS_AS(in<char>(reinterpret_cast<char*>(&x), most + 1), config_error);
    CHECK_THROWS_AS(in<u64>(std::span<const u64>(&x, below_zero)), config_error);

    constexpr u64 longest = ~u32{0};
    CHECK(in2d<u64>(&x, longest, 1, 8).rows() == longest);
    CHECK(in2d<u64>(&x, 2, 1, longest).pitch() == longest);
    const auto tile_text = [&](u64 rows, u64 columns, u64 pitch) {
        return thrown<config_error>([&] { inout2d<u64>(&x, rows, columns, pitch); });
    };
    CHECK(tile_text(longest + 1, 1, 8).find("of 4294967296 rows: at most 4294967295") != std::string::npos);
    CHECK(tile_text(1, below_zero, 8).find("of 18446744073709551615 columns") != std::string::npos);
    CHECK(tile_text(1, 1, longest + 1).find("of 4294967296 bytes of pitch") != std::string::npos);

    const data_handle good{detail::member_handles_max - 1, 4096, most, 0, 0};
    CHECK(in<u64>(good).handle_plus_one() == detail::member_handles_max);
    CHECK(in<u64>(good).bytes() == most);
    CHECK(in<u64>(data_handle{}).bytes() == 0);
    for (const data_handle& bad : {data_handle{1u << 24, 4096, 8, 0, 0}, data_handle{0, 4096, most + 1, 0, 0}}) {
        CHECK_THROWS_AS(in<u64>(bad), config_error);
        CHECK_THROWS_AS(in2d<u64>(bad), config_error);
    }
}

TEST_CASE("a tile without rows is empty: its task writes nothing, and nobody waits for it", "[api]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.parts = parts;
            c.host_workers = 4; // in each part one beside the gate
            runtime<tile_fill_task, gate_task> rt(c);
            std::vector<u32> x(24, 7);
            gate open;
            rt.submit(open.task(), {.accesses = writes(x.data(), 24 * sizeof(u32))}); // in the way of whoever touches x
            const out2d<u32> none(x.data(), 0, 8, 8 * sizeof(u32));
            CHECK((none.rows() == 0 && none.columns() == 0 && none.row_bytes() == 0));
            CHECK(rt.wait(rt.submit(tile_fill_task{none, 1})).ok());
            const declared_access nothing = tile(access_mode::write, x.data(), 32, 0, 64);
            CHECK(rt.wait(rt.submit(tile_fill_task{none, 2}, {.accesses = nothing})).ok());
            open.open();
            CHECK(rt.wait(rt.submit(tile_fill_task{{x.data() + 8, 1, 4, 32}, 3})).ok()); // one row is one
            CHECK(rt.wait_all());
            std::vector<u32> expected(24, 7);
            std::fill_n(expected.begin() + 8, 4, 3);
            CHECK(x == expected);
        }
    });
}

TEST_CASE("a handle that this runtime has not given out is refused on every way to submit it, and all goes on", "[api]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.parts = parts;
            c.handles_max = 100;
            c.host_workers = 4;
            engine rt(c), other(c);
            std::vector<u64> x(100, 1), mine(4, 1);
            const data_handle known = rt.register_range(mine.data(), 8);
            data_handle foreign; // the first that this runtime does not have, and one beyond all that it ever has
            for (auto& word : x) foreign = other.register_range(&word, 8);
            const data_handle next{known.index + 1, reinterpret_cast<u64>(&x[1]), 8, 0, 0};
            data_handle beyond = foreign;
            beyond.index = 5000;
            CHECK(rt.wait(rt.submit(step_task{known})).ok()); // there is a ring, for the quick way
            u64 sum[2] = {};
            task_handle h{};
            for (const data_handle& bad : {next, foreign, beyond}) {
                INFO("handle " << bad.index);
                const std::string text = thrown<config_error>([&] { rt.submit(step_task{bad}); });
                INFO(text);
                CHECK(text.find("handle " + std::to_string(bad.index) + " is not of this runtime") == 0);
                CHECK_THROWS_AS(rt.submit(step_task{bad}, {.blocks = 2}), config_error);
                CHECK_THROWS_AS(rt.submit(step_task{bad}, {.order = ordering::no_access}), config_error);
                CHECK_THROWS_AS(rt.submit(step_task{bad}, {.order = ordering::whole_memory}), config_error);
                CHECK_THROWS_AS(rt.submit(step_task{bad}, {.after = rt.submit(marker_task{})}), config_error);
                CHECK_THROWS_AS(rt.try_submit(step_task{bad}, h), config_error);
                CHECK_THROWS_AS(rt.submit(tile_sum_task{in2d<u32>(bad), {sum, 2}}), config_error);
                CHECK_THROWS_AS(rt.submit(marker_task{}, {.accesses = on(access_mode::read, bad)}), config_error);
                CHECK_THROWS_AS(rt.submit(step_task{known}, {.accesses = {writes(&mine[1], 8), on(access_mode::read, bad)}}),
                                config_error);
            }
            // Nothing of it was submitted, and the handle is good once it was given out.
            const data_handle given = rt.register_range(&mine[1], 8);
            CHECK(given.index == next.index);
            CHECK(rt.wait(rt.submit(step_task{given})).ok());
            CHECK(rt.wait_all());
            CHECK(mine == std::vector<u64>{4, 4, 1, 1});
            CHECK(std::ranges::count(x, u64{1}) == 100);
        }
    });
}

TEST_CASE("a failing body gives its code, on whichever block it was; others stay complete", "[api]")
{
    in_time(20, [] {
        engine rt(host_config());
        std::vector<task_handle> handles;
        for (u32 i = 0; i < 200; ++i)
            handles.push_back(rt.submit(fail_task{i % 3 == 0 ? 100 + i : 0, i % 5},
                                        {.blocks = 1 + i % 5 + i % 40, .order = ordering::no_access}));
        for (u32 i = 0; i < 200; ++i) {
            INFO("task " << i);
            const auto s = rt.wait(handles[i]);
            if (i % 3 == 0) {
                CHECK(s.state == task_state::failed);
                CHECK(s.code == 100 + i);
                CHECK_FALSE(s.ok());
            } else {
                CHECK(s.ok());
            }
            CHECK(rt.query(handles[i]).state == s.state);
        }
    });
}

TEST_CASE("an access that ends behind all addresses is refused; one that ends before is not", "[api]")
{
    u64 word = 0;
    const u64 address = reinterpret_cast<u64>(&word);
    CHECK_THROWS_AS(reads(&word, ~u64{0}), config_error);
    CHECK_THROWS_AS(writes(&word, 0 - address), config_error); // its end would be 0
    CHECK(reads_and_writes(&word, 0 - address - 1).bytes == 0 - address - 1);
    CHECK_THROWS_AS(tile(access_mode::read, &word, 4000, u64{1} << 33, u64{1} << 33), config_error);
    CHECK_THROWS_AS(tile(access_mode::read, &word, 8, u64{1} << 32, (u64{1} << 32) - 1), config_error);
    CHECK(tile(access_mode::read, &word, 8, 0, ~u64{0}).rows == 0);
    CHECK(tile(access_mode::read, &word, 0, ~u64{0}, ~u64{0}).bytes == 0);
    CHECK(tile(access_mode::read, &word, 8, 1, ~u64{0}).rows == 1);
    CHECK_THROWS_AS(in2d<u64>(&word, 0xffffffff, 1, 0xffffffff), config_error);
    CHECK(in2d<u64>(&word, u64{1} << 24, 1, 0xffffffff).rows() == 1u << 24);
}

TEST_CASE("a task struct of three bytes crosses whole", "[api]")
{
    in_time(10, [] {
        engine rt(host_config());
        small_task::seen = 0;
        const auto task = std::make_unique<small_task>(small_task{1, 2, 3}); // exactly three bytes are there to be read
        CHECK(rt.wait(rt.submit(*task)).ok());
        CHECK(small_task::seen == 0x010203);
    });
}

TEST_CASE("a tile whose rows are 4 GiB or longer keeps its size", "[api]")
{
    in_time(10, [] {
        u32 base = 0;
        u64 size = 1;
        // One row of 5 GiB, which the body does not touch.
        const in2d<u32> tile(&base, 1, (u64{5} << 30) / 4, 0);
        runtime<tile_size_task> other(host_config());
        CHECK(other.wait(other.submit(tile_size_task{tile, {&size, 1}})).ok());
        CHECK(size == u64{5} << 30);
    });
}

// where it is told: api_fault
TEST_CASE("a name stays with the host: tasks take the same place in the ring with and without one", "[api]")
{
    in_time(10, [] {
        engine rt(host_config());
        const auto payload = [&] {
            CHECK(rt.wait_all());
            rt.pause();
            const u64 bytes = rt.bus_traffic().ring_payload;
            rt.resume();
            return bytes;
        };
        const auto plain = rt.submit(marker_task{});
        const u64 first = payload();
        const auto named = rt.submit(marker_task{}, {.name = "here I am"});
        const u64 second = payload();
        const auto again = rt.submit(marker_task{});
        const u64 third = payload();
        CHECK(first > 0);
        CHECK(second == 2 * first);
        CHECK(third == 3 * first);
        CHECK(rt.query(plain).ok());
        CHECK(rt.query(named).ok());
        CHECK(rt.query(again).ok());
        CHECK(named.position == plain.position + 1);
        CHECK(again.position == named.position + 1);
    });
}

TEST_CASE("a name is its task's alone, and what comes behind it, or behind a clear_failure, goes the short way again", "[api]")
{
    in_time(10, [] {
        engine rt(host_config());
        host::runtime_core& core = rt.core();
        CHECK(rt.wait(rt.submit(marker_task{})).ok());
        REQUIRE(core.takes_short(1));
        const auto named = rt.submit(marker_task{}, {.name = "here I am"});
        CHECK(core.takes_short(1));
        const auto behind = rt.submit(marker_task{});
        const auto cleared = rt.clear_failure();
        CHECK(core.takes_short(1));
        constexpr u32 marker = engine::tasks::index_of<marker_task>();
        CHECK(core.task_name(named, marker) == "here I am");
        CHECK(core.task_name(behind, marker) == "marker");
        CHECK(core.task_name(cleared, marker) == "clear_failure");
        const task_handle a_lap_later{named.ring, named.position + device::completion_span};
        CHECK(core.task_name(a_lap_later, marker) == "marker");
        CHECK(rt.wait_all());
    });
}

TEST_CASE("a thread whose neighbours never pause gets its share of a small window", "[api]")
{
    in_time(40, [] {
        for (const u32 neighbours : {1u, 3u, 6u}) { // six: rings beyond the four that are fetched together
            auto c = host_config();
            c.window = 16;
            c.rings = 8;
            c.host_workers = 2;
            engine rt(c);
            std::atomic<bool> over{false};
            std::atomic<u32> started{0};
            std::vector<std::thread> threads;
            for (u32 t = 0; t < neighbours; ++t)
                threads.emplace_back([&] {
                    rt.submit(marker_task{}, {.order = ordering::no_access});
                    ++started;
                    while (!over) rt.submit(marker_task{}, {.order = ordering::no_access});
                });
            while (started != neighbours) std::this_thread::yield(); // their rings come before ours
            u32 answered = 0;
            for (; answered < 40; ++answered)
                if (!rt.wait(rt.submit(marker_task{}, {.order = ordering::no_access}), after(4s)).ok()) break;
            over = true;
            for (auto& t : threads) t.join();
            CHECK(answered == 40);
        }
    });
}
