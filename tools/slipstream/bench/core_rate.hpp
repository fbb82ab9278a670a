// How fast the core under a thread is: additions a nanosecond that wait for nothing.
//
// What a submission costs is what its core lends: where the core's other hyperthread works, too, a thread may do half as
// many additions, and a submission take twice as long (device/tried.md). Nothing else tells the one state from the other.
#pragma once
#include <chrono>
#include <cstdint>

namespace slipstream::bench {

/// Takes 1 to 3 us, and touches no memory.
inline double additions_a_ns()
{
    constexpr std::uint64_t turns = 2000, chains = 8;
    std::uint64_t a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6, h = 7;
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < turns; ++i) {
        a += i, b += i, c += i, d += i, e += i, f += i, g += i, h += i;
        asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h)); // each of them, each turn
    }
    const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - start;
    return static_cast<double>(turns * chains) / taken.count();
}

} // namespace slipstream::bench
