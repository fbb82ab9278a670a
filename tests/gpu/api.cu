// The API on the GPU: order, blocks, memory, failures, pause and relaunch, deadlines.
#include "gpu_tasks.cuh"
#include "host/runtime_core.hpp"
#include <algorithm>
#include <numeric>
#include <random>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

// Whatever hangs in this program ends here.
const bool watched = (start_watchdog(240), true);

std::vector<u32> counters_of(buffer<u32>& b)
{
    std::vector<u32> out(b.size());
    b.download(out);
    return out;
}

} // namespace

TEST_CASE("the device names itself and its workers", "[gpu]")
{
    gpu_engine rt(gpu_config());
    REQUIRE(watched);
    CHECK(rt.on_cuda());
    CHECK(rt.device_name().rfind("cuda:0", 0) == 0);
    CHECK(rt.workers() > 1);
}

TEST_CASE("a chain on one buffer runs in order at every window and ring", "[gpu]")
{
    in_time(15, [] {
        for (const u32 window : {16u, 64u, 512u, 1024u})
            for (const u32 ring : {4u, 1024u}) {
                auto c = gpu_config();
                c.window = window;
                c.ring_slots = ring;
                gpu_engine rt(c);
                std::vector<u64> x(1000, 5);
                buffer<u64> b(rt, x.size());
                b.upload(x);
                for (u32 i = 0; i < 500; ++i) rt.submit(step_task{b}, {.blocks = 1 + i % 4});
                b.download(x);
                for (const u64 v : x) REQUIRE(v == stepped(5, 500));
            }
    });
}

namespace {

/// What a block of so many threads can do: every thread puts a word into the scratch memory, reads its neighbour's, and
/// takes part in the collectives.
template <u32 Threads> struct sized_task {
    static constexpr const char* name = "sized";
    static constexpr u32 threads = Threads;
    static constexpr u32 shared_bytes = 8 * Threads;
    inout<u64> words; ///< one a block
    u32 number;
    u32 failing; ///< block, or more than there are
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const u32 size = block.size(), rank = block.rank();
        auto* const scratch = block.template shared<u64>(size);
        scratch[rank] = mixed(rank, block.block_index(), number);
        block.sync();
        const u64 mine = scratch[(rank + 1) % size];
        const u64 all = mix(block.reduce_add(mine)) + mix(block.reduce_min(mine)) * 3 + mix(block.reduce_max(mine)) * 5;
        const u64 before = block.scan_add(mine) + block.warp_reduce_add(mine) * 7 + block.warp_scan_add(mine) * 11;
        if (rank == size - 1) words[block.block_index()] = mix(words[block.block_index()] + all) + before;
        if (block.block_index() == failing && rank == 0) block.fail(7);
    }
    static constexpr SLIPSTREAM_BOTH u64 mixed(u64 rank, u64 block, u64 number)
    {
        return (rank * 2654435761u ^ block * 40503u) + number;
    }

    static u64 expected(u64 word, u32 block, u32 number)
    {
        u64 sum = 0, least = ~u64{0}, most = 0, of_warp = 0, last = 0;
        for (u32 rank = 0; rank < Threads; ++rank) {
            last = mixed((rank + 1) % Threads, block, number);
            sum += last;
            of_warp += rank >= Threads - 32 ? last : 0;
            least = std::min(least, last);
            most = std::max(most, last);
        }
        return mix(word + mix(sum) + mix(least) * 3 + mix(most) * 5) + (sum - last) + of_warp * 7 + (of_warp - last) * 11;
    }
};

using sized_engine = runtime<sized_task<32>, sized_task<64>, sized_task<128>, sized_task<256>>;

template <u32 Threads> void blocks_of(u32 per_sm)
{
    auto c = gpu_config();
    c.workers_per_sm = per_sm;
    sized_engine rt(c);
    for (const u32 blocks : {1u, 7u, rt.workers() + 1, 2000u, 30000u}) {
        INFO(Threads << " threads, " << per_sm << " per SM, " << blocks << " blocks");
        buffer<u64> b(rt, blocks);
        std::vector<u64> words(blocks, 1), expected(blocks, 1);
        b.upload(words);
        for (u32 number = 0; number < 6; ++number) {
            rt.submit(sized_task<Threads>{b, number, blocks}, {.blocks = blocks});
            for (u32 k = 0; k < blocks; ++k) expected[k] = sized_task<Threads>::expected(expected[k], k, number);
            if (number % 3 == 1) {
                rt.pause(); // within a task, or between two
                rt.resume();
            }
        }
        b.download(words);
        CHECK(words == expected);
        const auto failed = rt.submit(sized_task<Threads>{b, 9, blocks - 1}, {.blocks = blocks});
        const task_status status = rt.wait(failed);
        CHECK((status.state == task_state::failed && status.code == 7));
        rt.clear_failure();
    }
}

} // namespace

TEST_CASE("blocks of 32, 64 and 128 threads run side by side, each with its own barrier, collectives and scratch memory", "[gpu]")
{
    in_time(60, [] {
        for (const u32 per_sm : {1u, 2u}) {
            blocks_of<32>(per_sm);
            blocks_of<64>(per_sm);
            blocks_of<128>(per_sm);
            blocks_of<256>(per_sm);
        }
    });
}

namespace {

void every_block_once(u32 per_sm)
{
    auto c = gpu_config();
    c.workers_per_sm = per_sm;
    gpu_engine rt(c);
    for (const u32 blocks : {1u, 2u, rt.workers(), rt.workers() + 1, 3000u, 100000u}) {
        INFO(per_sm << " per SM, " << blocks << " blocks");
        buffer<u32> b(rt, blocks);
        rt.submit(fill_task{{reinterpret_cast<unsigned char*>(b.data()), 4ull * blocks}, 0}, {.blocks = 8});
        const auto all = writes(b.data(), 4ull * blocks);
        const auto h = rt.submit(count_task{reinterpret_cast<u64>(b.data()), 0}, {.blocks = blocks, .accesses = all});
        CHECK(rt.wait(h).ok());
        for (const u32 n : counters_of(b)) REQUIRE(n == 1);
    }
}

} // namespace

TEST_CASE("one block, as many as workers, and far more: every block runs once", "[gpu]")
{
    in_time(15, [] { every_block_once(1); });
}

TEST_CASE("two workers on an SM: every block runs once", "[gpu][two_per_sm]")
{
    in_time(15, [] { every_block_once(2); });
}

TEST_CASE("uploads larger than the staging memory come back the same", "[gpu]")
{
    in_time(10, [] {
        auto c = gpu_config();
        c.staging_bytes = 64 << 10;
        gpu_engine rt(c);
        std::vector<u64> x(500001), y(x.size());
        std::iota(x.begin(), x.end(), 3);
        buffer<u64> b(rt, x.size()), d(rt, x.size());
        b.upload(x);
        rt.submit(copy_task{{reinterpret_cast<unsigned char*>(b.data()), 8 * x.size()},
                            {reinterpret_cast<unsigned char*>(d.data()), 8 * x.size()}},
                  {.blocks = 64});
        d.download(y);
        CHECK(x == y);
    });
}

TEST_CASE("a task with a thousand accesses goes through a ring of four slots and orders", "[gpu]")
{
    in_time(15, [] {
        auto c = gpu_config();
        c.ring_slots = 4;
        c.window = 16;
        c.rings = 2;
        gpu_engine rt(c);
        std::vector<u64> x(1000, 1);
        buffer<u64> b(rt, 1000);
        buffer<u32> counter(rt, 1);
        b.upload(x);
        counter.upload(std::vector<u32>{0});
        std::vector<slipstream::declared_access> all;
        for (u32 i = 0; i < 999; ++i) all.push_back(raw_access(access_mode::read, b.data() + i, 8));
        all.push_back(writes(counter.data(), 4));
        for (u32 i = 0; i < 30; ++i) {
            rt.submit(step_task{{b.data() + 7 * i, 1}});
            rt.submit(count_task{reinterpret_cast<u64>(counter.data()), 100}, {.accesses = all});
        }
        b.download(x);
        for (u32 i = 0; i < 30; ++i) CHECK(x[7 * i] == 4);
        CHECK(counters_of(counter)[0] == 30);
    });
}

TEST_CASE("a failing block gives the task its code; neighbours stay complete", "[gpu]")
{
    in_time(10, [] {
        gpu_engine rt(gpu_config());
        std::vector<task_handle> handles;
        for (u32 i = 0; i < 300; ++i)
            handles.push_back(rt.submit(fail_task{i % 3 == 0 ? 100 + i : 0, i % 5},
                                        {.blocks = 5 + i % 400, .order = ordering::no_access}));
        for (u32 i = 0; i < 300; ++i) {
            INFO("task " << i);
            const auto s = rt.wait(handles[i]);
            CHECK(s.state == (i % 3 == 0 ? task_state::failed : task_state::complete));
            CHECK(s.code == (i % 3 == 0 ? 100 + i : 0));
        }
    });
}

TEST_CASE("a failure cancels its readers and `after` dependants with the cause; a pure write heals; clear_failure resets",
          "[gpu][failure]")
{
    in_time(20, [] {
        for (const u32 window : {16u, 1024u}) {
            auto c = gpu_config();
            c.window = window;
            c.residency = 5ms;
            gpu_engine rt(c);
            constexpr u32 n = 64;
            buffer<u64> x(rt, 8 * n);
            buffer<u32> counters(rt, n);
            x.upload(std::vector<u64>(8 * n, 1));
            counters.upload(std::vector<u32>(n, 0));
            const auto root = rt.submit(fail_task{42, 2}, {.blocks = 5, .accesses = writes(x.data(), 8)});
            std::vector<task_handle> chain;
            for (u32 i = 0; i < n; ++i) {
                const declared_access both[] = {reads(x.data() + i, 8), writes(x.data() + i + 1, 8)};
                chain.push_back(rt.submit(count_task{reinterpret_cast<u64>(counters.data() + i), 100},
                                          {.accesses = list_view<declared_access>(std::span(both))}));
            }
            const auto dependant = rt.submit(marker_task{}, {.after = chain.back(), .order = ordering::no_access});
            const auto beside = rt.submit(step_task{{x.data() + 4 * n, 8}}, {.blocks = 3});
            const auto s = rt.wait(root);
            CHECK((s.state == task_state::failed && s.code == 42 && s.cause == root));
            for (const auto& h : chain) {
                const auto cancelled = rt.wait(h);
                REQUIRE((cancelled.state == task_state::cancelled && cancelled.code == 42 && cancelled.cause == root));
            }
            CHECK(rt.wait(dependant).state == task_state::cancelled);
            CHECK(rt.wait(beside).ok());
            CHECK(counters_of(counters) == std::vector<u32>(n, 0)); // no body ran
            std::vector<u64> out(8 * n);
            CHECK_THROWS_AS(x.download(out), task_error);
            const auto heals = rt.submit(fill_task{{reinterpret_cast<unsigned char*>(x.data()), 8 * (n + 1)}, 0}, {.blocks = 4});
            CHECK(rt.wait(heals).ok());
            x.download(out);
            CHECK((out[0] == 0 && out[n] == 0 && out[4 * n] == 4));
            CHECK(rt.wait(rt.submit(fail_task{7, 0}, {.order = ordering::whole_memory})).state == task_state::failed);
            CHECK(rt.wait(rt.submit(step_task{x})).state == task_state::cancelled);
            CHECK(rt.wait(rt.clear_failure()).ok());
            CHECK(rt.wait(rt.submit(step_task{x})).ok());
        }
    });
}

TEST_CASE("thousands of failures that nobody asks about are all reported afterwards", "[gpu][failure]")
{
    in_time(20, [] {
        gpu_engine rt(gpu_config());
        std::vector<task_handle> handles;
        const u32 many = 10 * device::failures_kept;
        for (u32 i = 0; i < many; ++i) handles.push_back(rt.submit(fail_task{i % 3, 0}, {.order = ordering::no_access}));
        CHECK(rt.wait_all());
        for (u32 i = 0; i < many; ++i) {
            const auto s = rt.query(handles[i]);
            REQUIRE(s.state == (i % 3 ? task_state::failed : task_state::complete));
            REQUIRE(s.code == i % 3);
        }
    });
}

TEST_CASE("a wait with a deadline returns in time while the task runs on", "[gpu]")
{
    in_time(10, [] {
        gpu_engine rt(gpu_config());
        buffer<u32> b(rt, 1);
        b.upload(std::vector<u32>{0});
        rt.wait_all();
        const auto h = rt.submit(count_task{reinterpret_cast<u64>(b.data()), 4'000'000}, {.accesses = writes(b.data(), 4)});
        const auto before = std::chrono::steady_clock::now();
        CHECK(rt.wait(h, before + 10ms).state == task_state::pending);
        const auto took = std::chrono::steady_clock::now() - before;
        CHECK((took >= 10ms && took < 500ms));
        CHECK(rt.wait(h).ok());
        CHECK(counters_of(b)[0] == 1);
    });
}

TEST_CASE("a task is seen to be complete while the one behind it on its worker runs, however brief the ones before were", "[gpu]")
{
    in_time(30, [] {
        gpu_engine rt(gpu_config());
        buffer<u64> b(rt, 1);
        buffer<u32> counter(rt, 1);
        counter.upload(std::vector<u32>{0});
        const auto pair = [&](u32 spin) { // both in the window before either can run: the second is mailed behind the first
            rt.pause();
            const auto first = rt.submit(step_task{b});
            const auto second = rt.submit(count_task{reinterpret_cast<u64>(counter.data()), spin},
                                          {.accesses = {writes(b.data(), 8)}});
            rt.resume();
            return std::pair{first, second};
        };
        for (u32 i = 0; i < 20; ++i) CHECK(rt.wait(pair(1).second).ok());
        const auto [first, second] = pair(40'000'000); // a second or so
        CHECK(rt.wait(first).ok());
        CHECK(rt.query(second).state == task_state::pending);
        CHECK(rt.wait(second).ok());
        CHECK(counters_of(counter)[0] == 21);
    });
}

TEST_CASE("a submission that comes at any time of the service thread's turn does not send the kernel away", "[gpu]")
{
    in_time(20, [] {
        auto c = gpu_config();
        c.residency = 60s;
        gpu_engine rt(c);
        buffer<u64> b(rt, 1);
        b.upload(std::vector<u64>{1});
        u64 steps = 0;
        for (const auto until = std::chrono::steady_clock::now() + 2s; std::chrono::steady_clock::now() < until; ++steps)
            REQUIRE(rt.wait(rt.submit(step_task{b})).ok()); // idle again each time
        CHECK(rt.launches() == 1);
        std::vector<u64> x(1);
        b.download(x);
        CHECK(x[0] == stepped(1, steps));
    });
}

TEST_CASE("parks and relaunches under load lose nothing and run nothing twice", "[gpu]")
{
    in_time(25, [] {
        auto c = gpu_config();
        c.residency = 2ms;
        c.window = 64;
        gpu_engine rt(c);
        constexpr u32 tasks = 1u << 20;
        buffer<u32> b(rt, tasks);
        rt.submit(fill_task{{reinterpret_cast<unsigned char*>(b.data()), 4ull * tasks}, 0}, {.blocks = 64});
        u32 i = 0;
        const auto until = std::chrono::steady_clock::now() + 6s;
        while (i < tasks && rt.launches() < 100 && std::chrono::steady_clock::now() < until) {
            rt.submit(count_task{reinterpret_cast<u64>(b.data() + i), 200}, {.accesses = writes(b.data() + i, 4)});
            ++i;
            if (i % 20000 == 0) {
                rt.pause();
                rt.resume();
            }
        }
        std::printf("%u tasks over %llu launches\n", i, static_cast<unsigned long long>(rt.launches()));
        CHECK(rt.launches() >= 20);
        const auto runs = counters_of(b);
        for (u32 k = 0; k < tasks; ++k) REQUIRE(runs[k] == (k < i ? 1 : 0));
    });
}

TEST_CASE("rows of brief tasks of several blocks, single ones and parks between: all in order", "[gpu][broadcast]")
{
    in_time(40, [] {
        for (const bool broadcast : {true, false}) {
            auto c = gpu_config();
            c.residency = 2ms;
            c.broadcast = broadcast;
            gpu_engine rt(c);
            constexpr u64 size = 5000;
            std::vector<u64> expected(size), seen(size);
            std::iota(expected.begin(), expected.end(), 1);
            buffer<u64> x(rt, size), y(rt, size);
            x.upload(expected);
            std::minstd_rand random(7);
            const u32 widths[] = {2, 3, 16, rt.workers() / 2, rt.workers() - 1, rt.workers(), rt.workers() + 1};
            bool in_x = true;
            for (u32 row = 0; row < 1500; ++row) {
                const u32 width = widths[random() % std::size(widths)];
                for (u32 i = random() % (row % 8 == 0 ? 64 : 6); i != 0; --i, in_x = !in_x) {
                    rt.submit(in_x ? turn_task{x, y} : turn_task{y, x}, {.blocks = width});
                    std::rotate(expected.begin(), expected.begin() + 1, expected.end());
                    for (u64& e : expected) e = e * 3 + 1;
                }
                for (u32 i = random() % 3; i != 0; --i) {
                    rt.submit(step_task{in_x ? x : y});
                    for (u64& e : expected) e = e * 3 + 1;
                }
                if (random() % 64 == 0) {
                    rt.pause();
                    rt.resume();
                }
                if (random() % 32 == 0) {
                    (in_x ? x : y).download(seen);
                    REQUIRE(seen == expected);
                }
            }
            (in_x ? x : y).download(seen);
            CHECK(seen == expected);
            rt.pause();
            CHECK((rt.core().broadcasts() > 0) == broadcast);
        }
    });
}

TEST_CASE("a task fails in a chain of others that promise not to: those before it ran, those behind it did not",
          "[gpu][failure]")
{
    in_time(20, [] {
        for (u32 round = 0; round < 40; ++round) {
            gpu_engine rt(gpu_config());
            buffer<u64> x(rt, 512);
            std::vector<u64> values(x.size(), 5);
            x.upload(values);
            // As long as mailboxes and parcels are, and longer: the task that fails has any place in them, by what had come.
            const u32 before = round, after = 40;
            std::vector<task_handle> run, left;
            for (u32 i = 0; i < before; ++i) run.push_back(rt.submit(step_task{x}));
            const auto fails = rt.submit(fail_task{5, 0}, {.accesses = reads_and_writes(x.data(), 8 * x.size())});
            for (u32 i = 0; i < after; ++i) left.push_back(rt.submit(step_task{x}));
            for (const auto h : run) REQUIRE(rt.wait(h).ok());
            REQUIRE(rt.wait(fails).state == task_state::failed);
            for (const auto h : left) REQUIRE(rt.wait(h).state == task_state::cancelled);
            REQUIRE(rt.wait(rt.clear_failure()).ok()); // what is there may be looked at
            x.download(values);
            for (const u64 v : values) REQUIRE(v == stepped(5, before));
        }
    });
}

TEST_CASE("a block of a row of wide tasks fails: those behind it are cancelled, and none is lost", "[gpu][broadcast][failure]")
{
    in_time(20, [] {
        u64 broadcasts = 0;
        for (u32 round = 0; round < 20; ++round) {
            gpu_engine rt(gpu_config());
            buffer<u64> x(rt, 1000), y(rt, 1000);
            std::vector<u64> values(1000, 1);
            x.upload(values);
            std::vector<task_handle> before, after;
            for (u32 i = 0; i < 6; ++i)
                before.push_back(rt.submit(i % 2 == 0 ? turn_task{x, y} : turn_task{y, x}, {.blocks = rt.workers()}));
            const auto fails = rt.submit(fail_task{5, round % rt.workers()},
                                         {.blocks = rt.workers(), .accesses = {writes(x.data(), 8)}});
            for (u32 i = 0; i < 6; ++i)
                after.push_back(rt.submit(i % 2 == 0 ? turn_task{x, y} : turn_task{y, x}, {.blocks = rt.workers()}));
            for (const auto h : before) CHECK(rt.wait(h).ok());
            CHECK(rt.wait(fails).state == task_state::failed);
            for (const auto h : after) CHECK(rt.wait(h).state == task_state::cancelled);
            rt.pause();
            broadcasts += rt.core().broadcasts();
        }
        CHECK(broadcasts > 0);
    });
}

TEST_CASE("batch mode runs nothing before run_batch and everything in it", "[gpu]")
{
    in_time(10, [] {
        auto c = gpu_config();
        c.batch = true;
        c.ring_slots = 4096;
        gpu_engine rt(c);
        std::vector<u64> x(100, 1), y(100);
        buffer<u64> b(rt, 100);
        b.upload(x);
        for (u32 i = 0; i < 500; ++i) rt.submit(step_task{b});
        rt.run_batch();
        REQUIRE(cudaMemcpy(y.data(), b.data(), 800, cudaMemcpyDeviceToHost) == cudaSuccess);
        CHECK(y == std::vector<u64>(100, stepped(1, 500)));
    });
}
