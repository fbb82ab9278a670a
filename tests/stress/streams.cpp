// Threads, random delays around every atomic operation, parks at random points, rings and windows of the smallest sizes:
// random streams must still equal their sequential run. Meant for ThreadSanitizer and for ASan with UBSan as well.
//   SLIPSTREAM_SEED=n              replays one seed, and only it
//   SLIPSTREAM_STRESS_SECONDS=n    how long to go on (20)
#include "digest_stream.hpp"
#include "in_time.hpp"
#include "random_delays.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace std::chrono_literals;

namespace {

using engine = runtime<listed_task, member_task, row_task>;
using clock_type = std::chrono::steady_clock;

std::atomic<bool> broadcast_seen{false}; ///< a scheduler waited for a task that was mailed to all workers at once

void delay_and_see(device::edge e)
{
    if (e == device::edge::A24_finished) broadcast_seen.store(true, std::memory_order_relaxed);
    random_delays::before(e);
}

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
    const u32 delay_one_in = 32u << random() % 5;
    const device::edge favourite = random_delays::any_edge(random);
    std::printf("seed %llu: %s parts %u window %u ring %u rings %u threads %u workers %u residency %lld ms, %s delayed\n",
                static_cast<unsigned long long>(seed), parks ? "parks" : "stays", c.parts, c.window, c.ring_slots, c.rings,
                shape.threads, c.host_workers, static_cast<long long>(c.residency.count()),
                device::edge_name(favourite));
    std::fflush(stdout);
    const random_delays delays({.seed = seed, .one_in = delay_one_in, .favourite = favourite}, delay_and_see);
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
