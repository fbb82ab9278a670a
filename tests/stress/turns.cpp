// The host device's control block runs its five roles on one thread: none of them may wait for another.
#include "device/host_platform.hpp"
#include "in_time.hpp"
#include <slipstream/runtime.hpp>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

struct tick_task {
    u64 counter;
    template <class Block> void operator()(Block&) const { reinterpret_cast<std::atomic<u32>*>(counter)->fetch_add(1); }
};

/// Makes the scheduler slow, so that all workers have answered whenever it looks.
void slow_polls(device::edge e)
{
    thread_local u32 polls = 0;
    if (e == device::edge::A5_done && ++polls % 64 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

} // namespace

TEST_CASE("a scheduler that finds every worker done at once, again and again, does not wait for the notifier", "[stress]")
{
    in_time(30, [] {
        config c;
        c.device = "host";
        c.host_workers = 64;
        c.window = 64;
        runtime<tick_task> rt(c);
        std::vector<std::atomic<u32>> runs(6000);
        device::host_delay_hook = slow_polls;
        for (auto& r : runs) rt.submit(tick_task{reinterpret_cast<u64>(&r)}, {.order = ordering::no_access});
        const bool all = rt.wait_all(std::chrono::steady_clock::now() + std::chrono::seconds(20));
        device::host_delay_hook = nullptr;
        CHECK(all);
        for (auto& r : runs) REQUIRE(r == 1);
    });
}

TEST_CASE("a park that comes within a task of very many accesses leaves no half of it behind", "[stress]")
{
    in_time(60, [] {
        config c;
        c.device = "host";
        c.host_workers = 2;
        c.window = 16;
        c.memory_bytes = 1u << 20;
        runtime<tick_task> rt(c);
        constexpr u32 accesses = 240; // eight batches of admission
        buffer<u64> cells(rt, accesses);
        std::vector<std::atomic<u32>> runs(3000);
        std::atomic<bool> over{false};
        std::thread parker([&] {
            while (!over) {
                rt.pause();
                rt.resume();
            }
        });
        for (u32 t = 0; t < runs.size(); ++t) {
            const tick_task task{reinterpret_cast<u64>(&runs[t])};
            if (t % 8 == 7) {
                rt.submit(task, {.order = ordering::whole_memory});
                continue;
            }
            std::vector<declared_access> list;
            for (u32 k = 0; k < accesses; ++k) list.push_back(writes(cells.data() + k, 8));
            rt.submit(task, {.accesses = list});
        }
        const bool all = rt.wait_all(std::chrono::steady_clock::now() + std::chrono::seconds(40));
        over = true;
        parker.join();
        CHECK(all);
        for (auto& r : runs) REQUIRE(r == 1);
    });
}
