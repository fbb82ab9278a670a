// The numbers of workers, and the meeting of a launch's blocks by threads.
#include "device/host_platform.hpp"
#include "device/muster.hpp"
#include "trace_catch.hpp"
#include <thread>
#include <vector>

using namespace slipstream;
using device::launch_outcome;
using P = device::host_platform;

TEST_CASE("each block is one worker, those beside the control block are the last", "[unit][muster]")
{
    constexpr u32 none = launch_outcome::none, blocks = 320;
    for (const auto& [first, second] : std::vector<std::pair<u32, u32>>{
             {none, none}, {0, none}, {7, none}, {319, none}, {0, 1}, {0, 319}, {17, 18}, {250, 300}, {318, 319}}) {
        const launch_outcome outcome = launch_outcome::decode(launch_outcome{true, {first, second}}.encode());
        CHECK(outcome.goes);
        std::vector<u32> of_worker(blocks, none);
        for (u32 block = 0; block < blocks; ++block) {
            const u32 worker = outcome.worker_of(block, blocks);
            REQUIRE(worker < blocks);
            CHECK(of_worker[worker] == none);
            of_worker[worker] = block;
        }
        const u32 beside = (first != none) + (second != none);
        for (u32 worker = 0; worker < blocks; ++worker) {
            const bool last = of_worker[worker] == first || of_worker[worker] == second;
            CHECK(last == (worker >= blocks - beside));
        }
    }
    CHECK_FALSE(launch_outcome::decode(launch_outcome{}.encode()).goes);
}

TEST_CASE("threads that meet as the blocks of many launches all go, or all leave where one comes too late", "[unit][muster]")
{
    constexpr u32 workers = 3, launches = 70'000; // 16 bits of a launch's number are in a place
    P::word<u64> outcome{};
    P::word<u32> claims[2]{}, places[1 + workers]{};
    const auto page = std::make_unique<device::host_page<P>>();
    const device::muster_memory<P> memory{&outcome, claims, places};
    std::vector<std::vector<u32>> number(launches + 1, std::vector<u32>(1 + workers));
    std::atomic<u64> left{0};
    const auto late = [](u32 launch) { return launch % 10'000 == 0; };
    const auto block = [&](u32 index) {
        for (u32 launch = 1; launch <= launches; ++launch) {
            device::muster<P> there(memory, *page, launch, late(launch) ? 100'000 : 1'000'000'000'000, workers);
            if (index == 0) {
                P::team team;
                number[launch][0] = there.gather(team, 100);
            } else {
                const auto is_void = [&] {
                    using namespace device;
                    return P::load(edge::P14_void, page->void_launch, order::relaxed, scope::system) == launch;
                };
                while (late(launch) && index == 1 && !is_void()) std::this_thread::yield();
                number[launch][index] = there.join(index - 1, 100 ^ index);
            }
            left.fetch_add(1, std::memory_order_acq_rel);
            while (left.load(std::memory_order_acquire) < u64{launch} * (1 + workers)) std::this_thread::yield();
        }
    };
    std::vector<std::thread> threads;
    for (u32 index = 0; index <= workers; ++index) threads.emplace_back(block, index);
    for (std::thread& t : threads) t.join();
    u32 wrong = 0;
    for (u32 launch = 1; launch <= launches; ++launch) {
        const bool goes = number[launch][0] != 0;
        wrong += goes == late(launch);
        for (u32 index = 1; index <= workers; ++index) // the first block is beside the control block
            wrong += number[launch][index] != (!goes ? device::muster<P>::nowhere : index == 1 ? 2 : workers - index);
    }
    CHECK(wrong == 0);
}
