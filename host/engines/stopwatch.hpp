// The host clock of a run, in microseconds.
#pragma once
#include <chrono>
#include <slipstream/abi/portable.hpp>
#include <utility>

namespace slipstream::engines {

class stopwatch {
public:
    /// When it was made, by the clock's own count.
    u64 begin_ns() const
    {
        return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count());
    }
    /// Since construction.
    double total_us() const { return us(clock::now() - start_); }
    /// Since construction or the last lap.
    double lap_us()
    {
        const auto now = clock::now();
        return us(now - std::exchange(lap_, now));
    }

private:
    using clock = std::chrono::steady_clock;
    static double us(clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
    clock::time_point start_ = clock::now();
    clock::time_point lap_ = start_;
};

} // namespace slipstream::engines
