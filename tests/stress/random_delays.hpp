// Delays before the host platform's atomic operations: where the threads of a run meet is drawn anew from each seed.
#pragma once
#include "device/host_platform.hpp"
#include <chrono>
#include <random>
#include <thread>

namespace slipstream::tests {

/// On as long as it lives, one at a time. Threads begin and end within that, since they read it without asking.
class random_delays {
public:
    struct choice {
        u64 seed = 1;
        u32 one_in = 64;               ///< of all operations so many are delayed, by a few microseconds at most
        device::edge favourite = {};   ///< of its operations one in four, and longer
        u32 favourite_us_max = 0;      ///< by so much, each of them; 0: by less, and few of them by 50 us
    };

    explicit random_delays(const choice& c, void (*hook)(device::edge) = before)
    {
        seed_ = c.seed;
        one_in_ = c.one_in;
        favourite_ = static_cast<u32>(c.favourite);
        favourite_us_max_ = c.favourite_us_max;
        device::host_delay_hook = hook;
    }
    ~random_delays() { device::host_delay_hook = nullptr; }
    random_delays(const random_delays&) = delete;
    random_delays& operator=(const random_delays&) = delete;

    static device::edge any_edge(std::mt19937_64& random)
    {
        return static_cast<device::edge>(random() % static_cast<u32>(device::edge::count));
    }

    /// What the platform calls; a hook of one's own goes on to it.
    static void before(device::edge e)
    {
        static std::atomic<u64> threads{0};
        thread_local u64 state = seed_.load(std::memory_order_relaxed) * 977 + threads.fetch_add(1, std::memory_order_relaxed);
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const u32 draw = static_cast<u32>(state >> 33);
        const bool often = static_cast<u32>(e) == favourite_.load(std::memory_order_relaxed);
        if (draw % (often ? 4 : one_in_.load(std::memory_order_relaxed)) != 0) return;
        if (const u32 most = favourite_us_max_.load(std::memory_order_relaxed); often && most != 0)
            return std::this_thread::sleep_for(std::chrono::microseconds(draw / 4096 % most));
        switch (draw / 4096 % 16) {
        case 0: std::this_thread::sleep_for(std::chrono::microseconds(often ? 50 : 5)); break;
        case 1:
        case 2: std::this_thread::yield(); break;
        default:
            for (u32 spins = draw / 65536 % (often ? 2000 : 300); spins > 0; --spins)
                std::atomic_signal_fence(std::memory_order_seq_cst);
        }
    }

private:
    static inline std::atomic<u64> seed_{1};
    static inline std::atomic<u32> one_in_{64};
    static inline std::atomic<u32> favourite_{0};
    static inline std::atomic<u32> favourite_us_max_{0};
};

} // namespace slipstream::tests
