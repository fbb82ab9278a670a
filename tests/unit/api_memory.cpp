// Buffers, uploads, downloads, copy, fill, handles and tiles, on the host device.
#include "api_tasks.hpp"
#include "host/memory_pool.hpp"
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("upload and download of more than the staging memory give the same bytes back", "[api][memory]")
{
    in_time(30, [] {
        for (const u64 staging : {u64{4096}, u64{16384}, u64{1} << 18}) {
            auto c = host_config();
            c.staging_bytes = staging;
            c.memory_bytes = 8u << 20;
            c.ring_slots = 4;
            engine rt(c);
            const u64 count = 300001;
            std::vector<u64> x(count), y(count);
            std::iota(x.begin(), x.end(), 7);
            buffer<u64> b(rt, count);
            b.upload(x);
            rt.submit(step_task{b});
            b.download(y);
            for (u64 i = 0; i < count; ++i) REQUIRE(y[i] == x[i] * 3 + 1);
        }
    });
}

TEST_CASE("the handle of an upload in pieces stands for all of them, however late the first one is", "[api][memory]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.parts = parts;
            c.staging_bytes = 16384;    // pieces of 4096 B
            c.host_workers = 4 * parts; // one runs the gate, and one may wait with what comes behind it
            c.residency = 60s;          // a kernel that is to leave starts nothing until the gate has opened
            engine rt(c);
            const u32 part = parts - 1;
            buffer<u64> b(rt, 2048, part);
            std::vector<u64> x(2048), y(2048);
            std::iota(x.begin(), x.end(), 3);
            gate g;
            rt.submit(g.task(), {.accesses = writes(b.data(), 8)}); // in the first piece
            const auto copied = b.upload(x);
            const auto behind = rt.submit(marker_task{}, {.after = copied, .order = ordering::no_access});
            CHECK(copied.ring == part);
            CHECK(rt.wait(copied, after(100ms)).state == task_state::pending);
            CHECK(rt.query(behind).state == task_state::pending);
            g.open();
            CHECK(rt.wait(behind).ok());
            CHECK(rt.query(copied).ok());
            b.download(y);
            CHECK(y == x);
        }
    });
}

TEST_CASE("batch mode: an upload in pieces takes a place in the ring for each of them and one more", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.batch = true;
        c.staging_bytes = 16384; // pieces of 4096 B
        c.ring_slots = 4;
        engine rt(c);
        buffer<u64> b(rt, 2048);
        std::vector<u64> x(2048, 7), y(1536);
        const auto copied = b.upload(std::span(x).first(1536));
        CHECK(copied.position == 3);
        rt.run_batch();
        CHECK(rt.query(copied).ok());
        rt.submit(copy_task{{reinterpret_cast<const unsigned char*>(b.data()), 12288},
                            {reinterpret_cast<unsigned char*>(y.data()), 12288}});
        rt.run_batch();
        CHECK(y == std::vector<u64>(1536, 7));
        CHECK(has(thrown<config_error>([&] { b.upload(x); }), "config::ring_slots"));
        rt.run_batch(); // the pieces that were submitted
        CHECK(rt.submit(marker_task{}).position == 9);
        rt.run_batch();
    });
}

TEST_CASE("the host memory of an upload may be reused at once", "[api][memory]")
{
    in_time(20, [] {
        engine rt(host_config());
        buffer<u64> b(rt, 1000);
        gate g;
        rt.submit(g.task());
        std::vector<u64> x(1000, 11);
        b.upload(x);
        std::fill(x.begin(), x.end(), 99);
        g.open();
        b.download(x);
        CHECK(x == std::vector<u64>(1000, 11));
    });
}

TEST_CASE("copy and fill reach every byte and no other, at any alignment", "[api][memory]")
{
    in_time(20, [] {
        std::mt19937 random(3);
        engine rt(host_config());
        for (u32 i = 0; i < 60; ++i) {
            INFO("round " << i);
            std::vector<unsigned char> from(3000), to(3000, 0xee), want(3000, 0xee);
            for (auto& v : from) v = static_cast<unsigned char>(random());
            const u64 n = random() % 2000, at = random() % 900, source = i % 2 ? at : random() % 900;
            const u32 blocks = 1 + random() % 9;
            rt.submit(copy_task{{&from[source], n}, {&to[at], n}}, {.blocks = blocks});
            std::copy_n(&from[source], n, &want[at]);
            const u64 m = random() % 500, fill = random() % 2500;
            rt.submit(fill_task{{&to[fill], m}, i}, {.blocks = blocks});
            std::fill_n(&want[fill], m, static_cast<unsigned char>(i));
            CHECK(rt.wait_all());
            REQUIRE(to == want);
        }
    });
}

TEST_CASE("memory of a buffer comes back only when its last task is done", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 4096;
        c.host_workers = 2;
        engine rt(c);
        std::vector<u64> x(512, 1), y(512);
        for (u32 i = 0; i < 50; ++i) {
            buffer<u64> b(rt, 512); // all of the pool: waits for the one before
            b.upload(x);
            for (u32 k = 0; k < 5; ++k) rt.submit(step_task{b});
            if (i % 10 == 0) {
                b.download(y);
                CHECK(y[511] == stepped(1, 5));
            }
        }
        CHECK_THROWS_AS(rt.allocate(8192), config_error);
    });
}

namespace {

struct call_at_end {
    std::function<void()> call;
    ~call_at_end()
    {
        if (call) call();
    }
};
// In the order in which a thread makes them: they go the other way round, and before them what gives the thread's rings back.
thread_local std::optional<buffer<u64>> last_of_thread;
thread_local call_at_end later_at_thread_end, at_thread_end;

} // namespace

TEST_CASE("a thread_local buffer goes behind its thread's ring: nothing is written into a ring that is another thread's by then",
          "[api][memory]")
{
    in_time(20, [] {
        for (const u32 parts : {1u, 2u}) {
            INFO(parts << " parts");
            auto c = host_config();
            c.rings = 1;
            c.parts = parts;
            c.memory_bytes = 4096;
            engine rt(c);
            u64 x = 1;
            task_handle before{}, behind{};
            std::string said;
            std::atomic<u32> turn{0};
            std::thread next([&] {
                while (turn != 1) std::this_thread::sleep_for(100us);
                before = rt.submit(step_task{{&x, 1}}); // takes the ring
                turn = 2;
                while (turn != 3) std::this_thread::sleep_for(100us);
                behind = rt.submit(step_task{{&x, 1}});
            });
            std::thread([&] {
                last_of_thread.emplace(rt, 512);
                later_at_thread_end.call = [&] { turn = 3; };
                at_thread_end.call = [&] {
                    turn = 1;
                    while (turn != 2) std::this_thread::sleep_for(100us);
                    said = thrown<config_error>([&] { rt.submit(step_task{{&x, 1}}); });
                    last_of_thread.reset(); // gives the memory back
                };
                rt.submit(step_task{*last_of_thread});
            }).join();
            next.join();
            INFO(said);
            CHECK(said.find("given its submission ring back") != std::string::npos);
            CHECK(behind.ring == before.ring);
            CHECK(behind.position == before.position + 1);
            CHECK(rt.wait_all());
            CHECK(x == stepped(1, 2));
            buffer<u64> again(rt, 512); // all of the pool: it came back
            CHECK(rt.part_of(again.data()) == 0);
        }
    });
}

TEST_CASE("staging memory comes back though a buffer that was given up before waits for a slow task", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.staging_bytes = 16384;
        c.host_workers = 4; // one runs the gate, and one may wait with what comes behind it
        c.residency = 60s;  // a kernel that is to leave starts nothing until the gate has opened
        engine rt(c);
        gate g;
        {
            buffer<u64> slow(rt, 512);
            rt.submit(g.task(), {.accesses = writes(slow.data(), 4096)});
        }
        std::vector<u64> x(512, 5), y(512);
        for (u32 i = 0; i < 16; ++i) { // four times the staging memory
            const auto copied = rt.upload(y.data(), x.data(), 4096);
            CHECK(rt.wait(copied).ok());
        }
        CHECK(y == x);
        CHECK(g.flag == 0);
    });
}

TEST_CASE("memory comes back in the order in which its tasks end", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 8192;
        c.host_workers = 4; // one runs the gate, and one may wait with what comes behind it
        c.residency = 60s;  // a kernel that is to leave starts nothing until the gate has opened
        engine rt(c);
        gate g;
        {
            buffer<u64> quick(rt, 512), slow(rt, 512);
            rt.submit(g.task(), {.accesses = writes(slow.data(), 4096)});
        } // slow is given up first
        buffer<u64> again(rt, 512);
        CHECK(g.flag == 0);
        g.open();
        buffer<u64> other(rt, 512);
    });
}

TEST_CASE("memory is not handed out while a task of another thread, submitted earlier, still waits for its turn", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 4096;
        engine rt(c);
        auto first = std::make_unique<buffer<u64>>(rt, 512);
        rt.submit(marker_task{}); // this thread has ring 0
        std::atomic<u32> stage{0};
        std::jthread other([&] {
            // Ring 1 stands still until ring 2 has its first task.
            rt.submit(marker_task{}, {.after = task_handle{2, 0}, .order = ordering::no_access});
            rt.submit(step_task{*first});
            stage = 1;
            while (stage != 2) std::this_thread::sleep_for(1ms); // the ring stays taken
        });
        while (stage != 1) std::this_thread::sleep_for(1ms);
        first.reset();
        std::atomic<bool> opened{false};
        task_handle awaited;
        std::jthread opens([&] {
            std::this_thread::sleep_for(200ms);
            opened = true;
            awaited = rt.submit(marker_task{}, {.order = ordering::no_access});
            stage = 2;
        });
        buffer<u64> second(rt, 512);
        CHECK(opened);
        const std::vector<u64> ones(512, 1);
        std::vector<u64> y(512);
        second.upload(ones);
        opens.join();
        CHECK(awaited == task_handle{2, 0});
        CHECK(rt.wait_all());
        second.download(y);
        CHECK(y == ones);
    });
}

TEST_CASE("memory is not handed out while a task that is ordered by `after` alone still uses it", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 4096;
        c.host_workers = 2;
        engine rt(c);
        gate g;
        {
            buffer<u64> b(rt, 512);
            const auto before = rt.submit(g.task(), {.order = ordering::no_access});
            rt.submit(step_task{b}, {.after = before, .order = ordering::no_access});
        }
        std::atomic<bool> opened{false};
        std::jthread opens([&] {
            std::this_thread::sleep_for(200ms);
            opened = true;
            g.open();
        });
        buffer<u64> again(rt, 512);
        CHECK(opened);
    });
}

TEST_CASE("memory given up by a thread that cannot submit comes back once all that was submitted is done", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 4096;
        c.rings = 1;
        engine rt(c);
        gate g;
        auto b = std::make_unique<buffer<u64>>(rt, 512);
        rt.submit(g.task(), {.accesses = writes(b->data(), 4096)});
        std::thread([&] { b.reset(); }).join(); // the only ring is taken
        std::atomic<bool> opened{false};
        std::jthread opens([&] {
            std::this_thread::sleep_for(100ms);
            opened = true;
            g.open();
        });
        buffer<u64> again(rt, 512);
        CHECK(opened);
    });
}

TEST_CASE("batch mode: memory that was given up comes back with run_batch, and a full pool is refused until then", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.batch = true;
        c.memory_bytes = 4096;
        c.ring_slots = 4;
        engine rt(c);
        { buffer<u64> b(rt, 512); } // of a thread that has submitted nothing, when nothing was submitted: at once
        {
            buffer<u64> b(rt, 512);
            rt.submit(marker_task{}, {.order = ordering::no_access});
        }
        const std::string text = thrown<config_error>([&] { (void)rt.allocate(4096); });
        INFO(text);
        CHECK(has(text, "run_batch()"));
        CHECK(has(text, "memory_bytes"));
        rt.run_batch();
        {
            buffer<u64> b(rt, 512);
            for (u32 i = 0; i < 4; ++i) rt.submit(marker_task{}, {.order = ordering::no_access});
        } // and when the ring had no room for it
        CHECK(has(thrown<config_error>([&] { (void)rt.allocate(4096); }), "run_batch()"));
        rt.run_batch();
        buffer<u64> b(rt, 512);
        CHECK(has(thrown<config_error>([&] { (void)rt.allocate(256); }), "raise config::memory_bytes")); // nothing is to come
    });
}

TEST_CASE("batch mode: download is refused before it takes or submits anything, and what its text names works", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.batch = true;
        c.staging_bytes = 16384;
        engine rt(c);
        buffer<u64> b(rt, 512);
        std::vector<u64> x(512, 3), y(512), z(512);
        b.upload(x);
        const auto last = rt.submit(step_task{b});
        for (u32 i = 0; i < 8; ++i) { // twice the staging memory
            const std::string text = thrown<config_error>([&] { b.download(y); });
            INFO(text);
            CHECK(has(text, "copy_task"));
        }
        const auto copy = rt.submit(copy_task{{reinterpret_cast<const unsigned char*>(b.data()), 4096},
                                              {reinterpret_cast<unsigned char*>(z.data()), 4096}});
        CHECK(copy.position == last.position + 1);
        rt.run_batch();
        CHECK(z == std::vector<u64>(512, stepped(3, 1)));
        for (u32 i = 0; i < 4; ++i) b.upload(x); // all of the staging memory
        rt.run_batch();
    });
}

TEST_CASE("an upload that throws gives its staging memory back", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.staging_bytes = 16384;
        c.rings = 1;
        engine rt(c);
        buffer<u64> b(rt, 512);
        const std::vector<u64> x(512, 9);
        std::vector<u64> y(512);
        b.upload(x);
        std::thread([&] {
            for (u32 i = 0; i < 8; ++i) { // twice the staging memory
                CHECK(has(thrown<config_error>([&] { b.upload(x); }), "config::rings"));
                CHECK(has(thrown<config_error>([&] { b.download(y); }), "config::rings"));
            }
        }).join();
        b.upload(x);
        b.download(y);
        CHECK(y == x);
    });
}

TEST_CASE("sizes that cannot be are refused: more than the pool has, more than can be counted, spans longer than the buffer",
          "[api][memory]")
{
    in_time(20, [] {
        engine rt(host_config());
        constexpr u64 most = std::numeric_limits<u64>::max();
        const std::string too_much = thrown<config_error>([&] { (void)rt.allocate((1u << 20) + 1); });
        INFO(too_much);
        CHECK(has(too_much, "1048577 B"));
        CHECK(has(too_much, "config::memory_bytes"));
        CHECK(has(too_much, "1048576"));
        CHECK(thrown<config_error>([&] { (void)rt.allocate(most); }) != "");
        CHECK(thrown<config_error>([&] { buffer<unsigned char> b(rt, most); }) != "");
        const std::string too_many = thrown<config_error>([&] { buffer<u64> b(rt, most / 8 + 2); }); // 8 B when it wraps
        INFO(too_many);
        CHECK(has(too_many, std::to_string(most / 8 + 2) + " elements of 8 B"));

        buffer<u64> a(rt, 64), b(rt, 64); // b behind a
        const std::vector<u64> zeros(64, 0), more(65, 9);
        std::vector<u64> y(64), long_y(65);
        a.upload(zeros);
        b.upload(zeros);
        for (const std::string& text :
             {thrown<config_error>([&] { a.upload(more); }), thrown<config_error>([&] { a.download(long_y); })}) {
            INFO(text);
            CHECK(has(text, "65 elements"));
            CHECK(has(text, "64"));
        }
        b.download(y);
        CHECK(y == zeros);
        b.download(std::span(y).first(3)); // shorter ones are fine
        auto moved = std::move(a);
        CHECK(a.size() == 0);
        CHECK(thrown<config_error>([&] { a.upload(zeros); }) != "");
    });
}

TEST_CASE("a buffer that another one is moved to gives its own memory back, and the other is empty", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 8192;
        engine rt(c);
        buffer<u64> a(rt, 512), b(rt, 512); // all of the pool
        u64* const kept = b.data();
        a = std::move(b);
        CHECK(a.data() == kept);
        CHECK(a.size() == 512);
        CHECK(b.data() == nullptr);
        CHECK(b.size() == 0);
        buffer<u64> again(rt, 512); // a's memory of before
        auto& same = a;
        a = std::move(same);
        CHECK(a.data() == kept);
        CHECK(a.size() == 512);
        a.upload(std::vector<u64>(512, 1));
        CHECK(rt.wait(rt.submit(step_task{a})).ok());
        a = std::move(b); // of an empty one
        CHECK(a.data() == nullptr);
        b = buffer<u64>(rt, 512);
        CHECK(b.size() == 512);
    });
}

TEST_CASE("a memory pool takes back what was taken from it, once, and nothing else", "[api][memory]")
{
    using host::give_result;
    const auto at = [](u64 address) { return reinterpret_cast<void*>(address); };
    host::memory_pool pool(at(4096), 1024 + 100); // four pieces, and what is too little for one
    for (u64 i = 0; i < 4; ++i) CHECK(pool.take(200) == at(4096 + 256 * i));
    CHECK(pool.take(1) == nullptr);
    for (const auto& [address, bytes] : std::initializer_list<std::pair<u64, u64>>{
             {0, 256}, {3840, 256}, {3840, 512}, {4100, 8}, {4096 + 1024, 8}, {4096 + 768, 257}, {1u << 20, 1}, {4096, ~u64{0}}}) {
        INFO(address << ", " << bytes << " B");
        CHECK(pool.give(at(address), bytes) == give_result::foreign);
        CHECK(pool.give_up(at(address), bytes) == give_result::foreign);
    }
    for (const auto& [address, bytes] : std::initializer_list<std::pair<u64, u64>>{{4096, 512}, {4352, 257}, {4096, 1024}}) {
        INFO("several pieces: " << address << ", " << bytes << " B");
        CHECK(pool.give(at(address), bytes) == give_result::foreign);
        CHECK(pool.give_up(at(address), bytes) == give_result::foreign);
    }
    CHECK(pool.take(1) == nullptr);
    CHECK(pool.give_up(at(4352), 200) == give_result::taken_back);
    for (const u64 bytes : {u64{1}, u64{256}, u64{512}}) CHECK(pool.give_up(at(4352), bytes) == give_result::given_twice);
    CHECK(pool.give_up(at(4096), 512) == give_result::given_twice);
    CHECK(pool.take(1) == nullptr); // something may still use it
    CHECK(pool.give(at(4352), 200) == give_result::taken_back);
    CHECK(pool.give(at(4352), 200) == give_result::given_twice);
    CHECK(pool.give_up(at(4352), 200) == give_result::given_twice);
    CHECK(pool.give(at(4096), 1024) == give_result::given_twice);
    CHECK(pool.give(at(4096), 0) == give_result::taken_back); // neighbours become one
    CHECK(pool.take(512) == at(4096));
    CHECK(pool.take(1) == nullptr);
    CHECK(pool.give(at(4096), 200) == give_result::foreign); // it is a larger piece now
    CHECK(pool.give(at(4096), 512) == give_result::taken_back);
}

TEST_CASE("a thread that gives memory back and never submits takes no ring", "[api][memory]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 4096;
        c.rings = 1;
        engine rt(c);
        { buffer<u64> b(rt, 512); }
        u64 x = 1;
        std::thread([&] { CHECK(rt.wait(rt.submit(step_task{{&x, 1}})).ok()); }).join();
        buffer<u64> again(rt, 512); // the pool's whole memory
        CHECK(again.data() != nullptr);
    });
}

TEST_CASE("many threads download at once through little staging memory", "[api][memory]")
{
    in_time(30, [] {
        auto c = host_config();
        c.rings = 9;
        c.staging_bytes = 16384;
        c.memory_bytes = 4u << 20;
        engine rt(c);
        const u64 count = 20000;
        std::vector<u64> x(count);
        std::iota(x.begin(), x.end(), 0);
        buffer<u64> b(rt, count);
        b.upload(x);
        std::atomic<u32> wrong{0};
        std::vector<std::string> errors(8);
        std::vector<std::thread> threads;
        for (u32 t = 0; t < 8; ++t)
            threads.emplace_back([&, t] {
                try {
                    std::vector<u64> y(count);
                    for (u32 i = 0; i < 5; ++i) {
                        b.download(y);
                        wrong += y != x;
                    }
                } catch (const error& e) {
                    errors[t] = e.what();
                }
            });
        for (auto& t : threads) t.join();
        for (const auto& e : errors) CHECK(e == "");
        CHECK(wrong == 0);
    });
}

TEST_CASE("equal memory gives the same handle, partly overlapping memory is refused, disjoint memory is fine", "[api][handles]")
{
    engine rt(host_config());
    std::vector<u32> x(1024);
    const auto a = rt.register_range(x.data(), 256);
    CHECK(rt.register_range(x.data(), 256).index == a.index);
    const auto b = rt.register_range(x.data() + 64, 256);
    CHECK(b.index != a.index);
    CHECK_THROWS_AS(rt.register_range(x.data(), 255), config_error);
    CHECK_THROWS_AS(rt.register_range(x.data() + 63, 8), config_error);
    CHECK_THROWS_AS(rt.register_range(x.data() + 32, 1024), config_error);
    CHECK_THROWS_AS(rt.register_range(x.data(), 4096), config_error);
    CHECK_THROWS_AS(rt.register_range(nullptr, 4), config_error);
    CHECK_THROWS_AS(rt.register_range(x.data() + 512, 0), config_error);
    // 8 x 8 elements each, rows of 32 elements, from element 256 on.
    u32* const m = x.data() + 256;
    const auto t = rt.register_tile(m, 32, 8, 128);
    CHECK(rt.register_tile(m, 32, 8, 128).index == t.index);
    CHECK(rt.register_tile(m + 8, 32, 8, 128).index != t.index); // beside it
    CHECK_THROWS_AS(rt.register_tile(m + 4, 32, 8, 128), config_error);
    CHECK_THROWS_AS(rt.register_tile(m + 7 * 32, 32, 8, 128), config_error);
    CHECK_THROWS_AS(rt.register_tile(m, 32, 8, 16), config_error); // rows over each other
    CHECK(rt.register_range(m + 16, 4).index != t.index);          // in the gap between its rows
    CHECK_THROWS_AS(rt.register_range(m + 32, 4), config_error);   // on its second row
    try {
        rt.register_range(x.data(), 255);
        FAIL("not refused");
    } catch (const config_error& e) {
        CHECK(std::string(e.what()).find("equal or disjoint") != std::string::npos);
    }
}

TEST_CASE("tiles of very many rows, and of long rows, are told apart; one that ends behind all addresses is refused",
          "[api][handles]")
{
    engine rt(host_config());
    const auto at = [](u64 byte) { return reinterpret_cast<void*>((u64{1} << 40) + byte); }; // nobody touches it
    const auto index = [&](u64 from, u64 bytes, u64 rows, u64 pitch) {
        return rt.register_tile(at(from), bytes, rows, pitch).index;
    };
    for (const auto& [rows, pitch] : {std::pair<u64, u64>{70'000, 64}, {10, u64{1} << 25}}) {
        INFO(rows);
        const u64 first = rows << 32;
        const u32 left = index(first, 16, rows, pitch);
        CHECK(index(first, 16, rows, pitch) == left);
        CHECK(index(first + 16, 16, rows, pitch) != left);
        CHECK(rt.register_range(at(first + 32), 8).index != left);
        CHECK_THROWS_AS(index(first + 24, 16, rows, pitch), config_error);
        CHECK_THROWS_AS(rt.register_range(at(first + 9 * pitch + 15), 8), config_error);
        CHECK_THROWS_AS(index(first + 40, pitch - 39, rows, pitch), config_error); // reaches the next row of the first one
        CHECK(index(first + 40, pitch - 40, rows, pitch) != left);
    }
    CHECK_THROWS_AS(index(0, 16, 0xffffffff, 0xffffffff), config_error);
}

TEST_CASE("handles run out with a remedy, not a crash", "[api][handles]")
{
    auto c = host_config();
    c.handles_max = 3;
    engine rt(c);
    std::vector<u32> x(16);
    for (u32 i = 0; i < 3; ++i) rt.register_range(&x[i], 4);
    CHECK(rt.register_range(&x[1], 4).index == 1);
    try {
        rt.register_range(&x[9], 4);
        FAIL("not refused");
    } catch (const config_error& e) {
        CHECK(std::string(e.what()).find("handles_max") != std::string::npos);
    }
}

TEST_CASE("handles of a buffer end with it: whoever gets its memory may register other pieces of it", "[api][handles]")
{
    in_time(20, [] {
        auto c = host_config();
        c.memory_bytes = 8192;
        engine rt(c);
        std::vector<u64> y(512);
        u32 last = 0;
        for (u64 round = 0; round < 20; ++round) {
            CHECK(rt.wait_all()); // all of the pool is there
            const u64 count = round % 2 ? 512 : 300;
            buffer<u64> b(rt, count);
            const auto all = b.handle();
            CHECK(all.bytes == count * 8);
            CHECK(b.handle().index == all.index);
            b.upload(std::vector<u64>(count, round));
            for (u32 i = 0; i < 5; ++i) rt.submit(step_task{all});
            buffer<u64> parts(rt, 500);
            for (u32 i = 0; i < 4; ++i) last = std::max(last, rt.register_tile(parts.data() + i * 4 + round % 2, 16, 8, 128).index);
            if (round % 5 == 0) {
                b.download(std::span(y).first(count));
                CHECK(y[0] == stepped(round, 5));
                CHECK(y[count - 1] == stepped(round, 5));
            }
        }
        CHECK(last < 10); // ten pieces in all: the same memory in the same shape has the index that it had
        CHECK(rt.wait_all());
        buffer<u64> live(rt, 512);
        (void)live.handle();
        CHECK(has(thrown<config_error>([&] { (void)rt.register_range(live.data(), 8); }), "equal or disjoint"));
    });
}

TEST_CASE("buffers that come and go with their handles use up one handle for each size, however often", "[api][handles]")
{
    in_time(20, [] {
        auto c = host_config();
        c.handles_max = 3;
        c.memory_bytes = 4096;
        engine rt(c);
        for (u32 i = 0; i < 20; ++i) {
            buffer<u64> b(rt, i % 2 ? 512 : 100);
            CHECK(b.handle().index == i % 2);
            rt.submit(step_task{b.handle()});
        }
    });
}

TEST_CASE("handles and raw ranges over the same memory order against each other", "[api][handles]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 4;
        engine rt(c);
        std::vector<u64> x(64, 1);
        const auto all = rt.register_range(x.data(), 8 * 16);
        const auto other = rt.register_range(x.data() + 16, 8 * 16);
        for (u32 i = 0; i < 500; ++i) {
            rt.submit(step_task{all});
            rt.submit(step_task{{&x[3], 2}});
            rt.submit(step_task{{&x[15], 2}}); // one element of each handle
            rt.submit(marker_task{}, {.accesses = {on(access_mode::read, all), reads(&x[15], 16)}});
            rt.submit(step_task{other});
        }
        CHECK(rt.wait_all());
        CHECK(x[0] == stepped(1, 500));
        CHECK(x[3] == stepped(1, 1000));
        CHECK(x[15] == stepped(1, 1000));
        CHECK(x[16] == stepped(1, 1000));
        CHECK(x[17] == stepped(1, 500));
        CHECK(x[40] == 1);
    });
}

TEST_CASE("a tile member walks its rows, from numbers or from a handle, and orders against ranges", "[api][handles]")
{
    in_time(20, [] {
        auto c = host_config();
        c.host_workers = 3;
        engine rt(c);
        std::vector<u32> m(64);
        std::iota(m.begin(), m.end(), 0);
        u64 a[2] = {}, b[2] = {};
        const auto h = rt.register_tile(&m[9], 12, 4, 32);
        rt.submit(tile_sum_task{{&m[9], 4, 3, 32}, {a, 2}});
        rt.submit(tile_sum_task{h, {b, 2}});
        CHECK(rt.wait_all());
        u64 want = 0;
        for (u32 r = 0; r < 4; ++r)
            for (u32 k = 0; k < 3; ++k) want += 9 + 8 * r + k;
        CHECK(a[0] == want);
        CHECK(b[0] == want);
        CHECK(a[1] == 12);
        gate g;
        rt.submit(g.task(), {.accesses = on(access_mode::write, h)});
        const auto gap = rt.submit(tile_sum_task{{&m[12], 4, 5, 32}, {a, 2}}); // columns 4-7 and 0: the tile's gap
        CHECK(rt.wait(gap, after(2s)).ok());
        const auto row = rt.submit(marker_task{}, {.accesses = reads(&m[8 * 3 + 3], 4)});
        CHECK(rt.wait(row, std::chrono::steady_clock::now() + 20ms).state == task_state::pending);
        g.open();
        CHECK(rt.wait(row).ok());
    });
}
