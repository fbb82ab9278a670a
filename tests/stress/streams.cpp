// Threads, random delays around every atomic operation, parks at random points, rings and windows of the smallest sizes:
// random streams must still equal their sequential run. Meant for ThreadSanitizer and for ASan with UBSan as well.
//   SLIPSTREAM_SEED=n              replays one seed, and only it
//   SLIPSTREAM_STRESS_SECONDS=n    how long to go on (20)
#include "device/host_platform.hpp"
#include "digest_stream.hpp"
#include "in_time.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace std::chrono_literals;

namespace {

using engine = runtime<listed_task, member_task, row_task>;
using clock_type = std::chrono::steady_clock;

// How the hook delays; set before threads start, the hook reads it relaxed.
std::atomic<u64> delay_seed{1};
std::atomic<u32> delay_one_in{64};
std::atomic<u32> favourite{0}; ///< one edge that is delayed often and long
std::atomic<bool> broadcast_seen{false}; ///< a scheduler waited for a task that was mailed to all workers at once

void random_delay(device::edge e)
{
    if (e == device::edge::A24_finished) broadcast_seen.store(true, std::memory_order_relaxed);
    static std::atomic<u64> threads{0};
    thread_local u64 state = delay_seed.load(std::memory_order_relaxed) * 977 + threads.fetch_add(1, std::memory_order_relaxed);
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const u32 draw = static_cast<u32>(state >> 33);
    const bool often = static_cast<u32>(e) == favourite.load(std::memory_order_relaxed);
    if (draw % (often ? 4 : delay_one_in.load(std::memory_order_relaxed)) != 0) return;
    switch (draw / 4096 % 16) {
    case 0: std::this_thread::sleep_for(std::chrono::microseconds(often ? 50 : 5)); break;
    case 1:
    case 2: std::this_thread::yield(); break;
    default:
        for (u32 spins = draw / 65536 % (often ? 2000 : 300); spins > 0; --spins)
            std::atomic_signal_fence(std::memory_order_seq_cst);
    }
}

struct delays_on {
    delays_on() { device::host_delay_hook = random_delay; }
    ~delays_on() { device::host_delay_hook = nullptr; }
};

/// One seed: everything about the run follows from it (the schedule of the threads excepted).
std::string run_seed(u64 seed, bool parks, bool parts)
{
    std::mt19937_64 random(seed);
    config c;
    c.device = "host";
    c.memory_bytes = 1u << 20;
    c.staging_bytes = 1u << 17;
    c.window = random() % 2 ? 16 : 32u << random() % 3;
    c.ring_slots = random() % 2 ? 4 : 8u << random() % 4;
    stream_shape shape;
    shape.threads = parts ? 1 : 1 + static_cast<u32>(random() % 4);
    shape.tasks = 200 + static_cast<u32>(random() % 400);
    shape.blocks_max = 1 + static_cast<u32>(random() % 20);
    shape.spin_max = 100;
    shape.whole_per_mille = random() % 2 ? 15 : 60;
    c.rings = shape.threads + static_cast<u32>(random() % 3);
    c.host_workers = 1 + static_cast<u32>(random() % 8);
    if (parts) c.parts = 2 + static_cast<u32>(random() % 3);
    if (random() % 2) c.residency = 1ms;
    if (shape.threads == 1 && random() % 2) c.accesses_max = 24; // with threads, a task may name more than that in `after`
    delay_seed = seed;
    delay_one_in = 32u << random() % 5;
    favourite = static_cast<u32>(random() % static_cast<u32>(device::edge::count));
    std::printf("seed %llu: %s parts %u window %u ring %u rings %u threads %u workers %u residency %lld ms, %s delayed\n",
                static_cast<unsigned long long>(seed), parks ? "parks" : "stays", c.parts, c.window, c.ring_slots, c.rings,
                shape.threads, c.host_workers, static_cast<long long>(c.residency.count()),
                device::edge_name(static_cast<device::edge>(favourite.load())));
    std::fflush(stdout);
    const delays_on delays;
    engine rt(c);
    const digest_stream stream(seed, shape);
    std::atomic<bool> over{false};
    std::thread parker;
    if (parks)
        parker = std::thread([&] {
            std::mt19937_64 own(seed + 1);
            while (!over) {
                std::this_thread::sleep_for(std::chrono::microseconds(own() % 3000));
                rt.pause();
                if (own() % 2) std::this_thread::sleep_for(std::chrono::microseconds(own() % 500));
                rt.resume();
            }
        });
    std::string verdict;
    try {
        const auto now_and_then = [&](u32 t) {
            if (mix(seed + t) % 32 == 0) std::this_thread::sleep_for(std::chrono::microseconds(mix(t) % 200));
        };
        verdict = parts ? run_stream_in_parts(rt, stream, random, now_and_then) : run_stream(rt, stream, now_and_then);
    } catch (const std::exception& e) {
        verdict = e.what();
    }
    over = true;
    if (parker.joinable()) parker.join();
    return verdict;
}

void run_for(u64 first_seed, bool parks, bool parts, u64 share_of_time)
{
    const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
    const auto seconds = std::chrono::seconds(number_from_env("SLIPSTREAM_STRESS_SECONDS", 20));
    const auto until = clock_type::now() + seconds / static_cast<int>(share_of_time);
    u64 seed = given ? given : first_seed;
    broadcast_seen = parts; // those of several parts send none
    const auto goes_on = [&] { return clock_type::now() < until || (!broadcast_seen && seed < first_seed + 100); };
    do {
        in_time(60, [seed, parks, parts] {
            const std::string verdict = run_seed(seed, parks, parts);
            INFO(verdict);
            REQUIRE(verdict.empty());
        });
        ++seed;
    } while (!given && goes_on());
    if (!given) CHECK(broadcast_seen); // or the streams are not what they are meant to be
}

} // namespace

TEST_CASE("delays around every atomic operation change no result", "[stress]") { run_for(1000, false, false, 3); }

TEST_CASE("parks at random points under delays lose nothing and change no result", "[stress]") { run_for(2000, true, false, 3); }

TEST_CASE("crossing tasks between parts that park at random points, under delays, change no result", "[stress]")
{
    run_for(3000, true, true, 3);
}
