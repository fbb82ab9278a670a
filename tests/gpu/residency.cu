// What other users of the GPU see while tasks flow, and that small tasks run beside a large one.
// And that engines whose blocks do not find room wait for it without holding what they have.
//   SLIPSTREAM_RECORD_DIR=folder   writes overlap.csv there: worker, SM, task, blocks, start and end of every pick-up
#include "gpu_tasks.cuh"
#include <array>
#include <atomic>
#include <fstream>
#include <numeric>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

__global__ void foreign_kernel(u32* out) { atomicAdd(out, 1u); }

/// Holds an SM for itself with each block, until it is let go, 5 s at most.
__global__ void hold(const u32* let_go)
{
    u64 start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (*static_cast<const volatile u32*>(let_go) == 0 && now - start < 5'000'000'000);
}

double milliseconds_of(std::chrono::steady_clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

} // namespace

TEST_CASE("while tasks flow, synchronising calls return within the residency limit plus a margin", "[gpu][residency]")
{
    in_time(30, [] {
        // Touch the foreign kernel first: lazy loading is not what is measured.
        u32* own = nullptr;
        REQUIRE(cudaMalloc(&own, 4096) == cudaSuccess);
        REQUIRE(cudaMemset(own, 0, 4096) == cudaSuccess);
        foreign_kernel<<<1, 32>>>(own);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);

        auto c = gpu_config();
        c.rings = 2;
        gpu_engine rt(c);
        buffer<u32> b(rt, 4096);
        std::vector<u32> counts(4096, 0);
        b.upload(counts);
        std::atomic<bool> over{false};
        std::atomic<u64> submitted{0};
        constexpr u32 spin = 100'000; // longest body: a few milliseconds
        std::thread load([&] {
            for (u32 i = 0; !over; ++i) {
                const u32 at = i % 4096;
                rt.submit(count_task{reinterpret_cast<u64>(b.data() + at), i % 64 == 0 ? spin : 500},
                          {.accesses = writes(b.data() + at, 4)});
                ++submitted;
            }
        });
        while (submitted < 1000) std::this_thread::yield();
        const double longest_body_ms = 20;
        const double limit = static_cast<double>(c.residency.count()) + longest_body_ms + 250;
        std::vector<char> host(1 << 20);
        const auto timed = [&](const char* what, auto call) {
            const u64 tasks = submitted;
            const auto before = std::chrono::steady_clock::now();
            const bool good = call();
            const double took = milliseconds_of(std::chrono::steady_clock::now() - before);
            std::printf("%-24s %8.2f ms (limit %.0f), %llu tasks submitted meanwhile\n", what, took, limit,
                        static_cast<unsigned long long>(submitted - tasks));
            CHECK(good);
            CHECK(took <= limit);
        };
        for (u32 round = 0; round < 3; ++round) {
            const u64 tasks = submitted;
            void* p = nullptr;
            timed("cudaMalloc", [&] { return cudaMalloc(&p, 8 << 20) == cudaSuccess; });
            timed("cudaMemcpy to device", [&] {
                return cudaMemcpy(p, host.data(), host.size(), cudaMemcpyHostToDevice) == cudaSuccess;
            });
            timed("cudaMemcpy to host", [&] {
                return cudaMemcpy(host.data(), p, host.size(), cudaMemcpyDeviceToHost) == cudaSuccess;
            });
            timed("foreign kernel", [&] {
                foreign_kernel<<<1, 32>>>(own);
                return cudaStreamSynchronize(nullptr) == cudaSuccess;
            });
            timed("cudaDeviceSynchronize", [&] { return cudaDeviceSynchronize() == cudaSuccess; });
            timed("cudaFree", [&] { return cudaFree(p) == cudaSuccess; });
            // More than ring and window hold: tasks were taken in and ended meanwhile. An idle GPU answers anybody at once.
            CHECK(submitted - tasks > u64{c.ring_slots} + c.window);
        }
        over = true;
        load.join();
        CHECK(rt.wait_all());
        b.download(counts);
        CHECK(std::accumulate(counts.begin(), counts.end(), u64{0}) == submitted.load());
        CHECK(rt.launches() > 1);
        CHECK(cudaFree(own) == cudaSuccess);
    });
}

TEST_CASE("a task of 200 blocks and 40 tasks of one block overlap", "[gpu][residency]")
{
    in_time(20, [] {
        auto c = gpu_config();
        c.flight_log = 1024;
        gpu_engine rt(c);
        buffer<u32> large(rt, 200), small(rt, 40);
        rt.submit(fill_task{{reinterpret_cast<unsigned char*>(large.data()), 800}, 0});
        rt.submit(fill_task{{reinterpret_cast<unsigned char*>(small.data()), 160}, 0});
        rt.wait_all();
        // 20 small ones before and 20 after: blocks of both kinds are in flight at one time.
        std::vector<task_handle> singles;
        const auto one = [&](u32 i) {
            singles.push_back(rt.submit(count_task{reinterpret_cast<u64>(small.data() + i), 20000},
                                        {.accesses = writes(small.data() + i, 4)}));
        };
        for (u32 i = 0; i < 20; ++i) one(i);
        const auto big = rt.submit(count_task{reinterpret_cast<u64>(large.data()), 20000},
                                   {.blocks = 200, .accesses = writes(large.data(), 800)});
        for (u32 i = 20; i < 40; ++i) one(i);
        rt.wait_all();
        rt.pause();
        const auto log = rt.flight_log();
        rt.resume();
        u64 big_start = ~u64{0}, big_end = 0, first = ~u64{0};
        u32 big_blocks = 0, single_blocks = 0, beside = 0;
        const auto is_single = [&](const flight_entry& e) {
            return std::find(singles.begin(), singles.end(), e.task) != singles.end();
        };
        for (const auto& e : log) {
            first = std::min(first, e.start_ns);
            if (e.task == big) {
                big_start = std::min(big_start, e.start_ns);
                big_end = std::max(big_end, e.end_ns);
                big_blocks += e.blocks;
            }
        }
        for (const auto& e : log)
            if (is_single(e)) {
                single_blocks += e.blocks;
                beside += e.start_ns < big_end && e.end_ns > big_start;
            }
        std::printf("the large task took %.1f us; %u of 40 small tasks ran beside it\n",
                    static_cast<double>(big_end - big_start) / 1000, beside);
        CHECK(big_blocks == 200);
        CHECK(single_blocks == 40);
        CHECK(beside > 0);
        if (const char* const folder = std::getenv("SLIPSTREAM_RECORD_DIR")) {
            std::ofstream out(std::string(folder) + "/overlap.csv");
            out << "worker,sm,kind,ring,position,first_block,blocks,start_ns,end_ns\n";
            for (const auto& e : log)
                out << e.worker << ',' << e.sm << ',' << (e.task == big ? "large" : is_single(e) ? "small" : "other") << ','
                    << e.task.ring << ',' << e.task.position << ',' << e.first_block << ',' << e.blocks << ','
                    << e.start_ns - first << ',' << e.end_ns - first << '\n';
            CHECK(out.good());
        }
    });
}

TEST_CASE("an engine whose workers find too few SMs goes on when they are free, by another launch", "[gpu][residency]")
{
    in_time(30, [] {
        int shared = 0;
        u32* let_go = nullptr;
        cudaStream_t others = nullptr;
        REQUIRE(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0) == cudaSuccess);
        REQUIRE(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, shared) == cudaSuccess);
        REQUIRE(cudaHostAlloc(&let_go, sizeof *let_go, cudaHostAllocMapped) == cudaSuccess);
        REQUIRE(cudaStreamCreateWithFlags(&others, cudaStreamNonBlocking) == cudaSuccess);
        const auto set = [&](u32 value) { std::atomic_ref<u32>(*let_go).store(value); };
        set(1);
        hold<<<2, 32, shared, others>>>(let_go); // loaded now, while nothing is resident
        REQUIRE(cudaStreamSynchronize(others) == cudaSuccess);

        gpu_engine rt(gpu_config());
        constexpr u32 tasks = 500; // the ring holds them
        buffer<u32> b(rt, tasks);
        b.upload(std::vector<u32>(tasks, 0));
        const auto count = [&] {
            task_handle last;
            for (u32 i = 0; i < tasks; ++i)
                last = rt.submit(count_task{reinterpret_cast<u64>(b.data() + i), 100}, {.accesses = writes(b.data() + i, 4)});
            return last;
        };
        for (const bool pauses : {false, true}) {
            count();
            rt.wait_all();
            rt.pause();
            const u64 launches = rt.launches();
            set(0);
            hold<<<2, 32, shared, others>>>(let_go);
            REQUIRE(cudaGetLastError() == cudaSuccess);
            std::this_thread::sleep_for(5ms);
            rt.resume();
            const task_handle last = count();
            // The launch is void by then. Its workers leave when they have come; CUDA makes one grid of them, and others wait.
            CHECK(rt.wait(last, std::chrono::steady_clock::now() + (pauses ? 10ms : 200ms)).state == task_state::pending);
            CHECK(cudaStreamQuery(others) == cudaErrorNotReady);
            CHECK(rt.launches() == launches + 1);
            std::thread pause;
            if (pauses) pause = std::thread([&] { rt.pause(); });
            std::this_thread::sleep_for(10ms);
            set(1);
            if (pauses) {
                pause.join();
                CHECK(rt.query(last).state == task_state::pending); // void by the park: nothing has begun
                rt.resume();
            }
            CHECK(rt.wait(last, std::chrono::steady_clock::now() + 10s).state == task_state::complete);
            CHECK(rt.launches() >= launches + 2);
        }
        rt.wait_all();
        std::vector<u32> counts(tasks);
        b.download(counts);
        for (const u32 n : counts) REQUIRE(n == 4);
        CHECK(cudaStreamDestroy(others) == cudaSuccess);
        CHECK(cudaFreeHost(let_go) == cudaSuccess);
    });
}

TEST_CASE("two engines on one GPU, paused and resumed together, each with all its SMs or with half of them", "[gpu][residency]")
{
    in_time(60, [] {
        cudaDeviceProp properties{};
        REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
        for (const u32 left_free : {0u, static_cast<u32>(properties.multiProcessorCount) / 2}) {
            auto c = gpu_config();
            c.residency = 5ms;
            c.stall_limit = 15s;
            c.sms_left_free = left_free;
            gpu_engine first(c), second(c);
            constexpr u32 tasks = 60'000, rounds = 30;
            std::array<buffer<u32>, 2> counters{buffer<u32>(first, tasks), buffer<u32>(second, tasks)};
            std::array<gpu_engine*, 2> engines{&first, &second};
            std::array<std::thread, 2> submitters;
            for (auto& b : counters) b.upload(std::vector<u32>(tasks, 0));
            for (u32 e = 0; e < 2; ++e)
                submitters[e] = std::thread([&, e] {
                    u32* const at = counters[e].data();
                    for (u32 i = 0; i < tasks; ++i)
                        engines[e]->submit(count_task{reinterpret_cast<u64>(at + i), 2000}, {.accesses = writes(at + i, 4)});
                });
            for (u32 round = 0; round < rounds; ++round) {
                for (gpu_engine* const engine : engines) engine->pause();
                for (gpu_engine* const engine : engines) engine->resume();
                std::this_thread::sleep_for(std::chrono::milliseconds(round % 10));
            }
            for (std::thread& t : submitters) t.join();
            for (u32 e = 0; e < 2; ++e) {
                CHECK(engines[e]->wait_all());
                std::vector<u32> counts(tasks);
                counters[e].download(counts);
                for (const u32 n : counts) REQUIRE(n == 1);
                CHECK(engines[e]->launches() > 2);
            }
            std::printf("two engines, %u SMs left free: %llu and %llu launches\n", left_free,
                        static_cast<unsigned long long>(first.launches()), static_cast<unsigned long long>(second.launches()));
        }
    });
}
