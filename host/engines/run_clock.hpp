// The clocks of one run: host time for the makespan, and the CPU time that the process spends on it.
#pragma once
#include "host/engines/engine.hpp"
#include "host/engines/stopwatch.hpp"
#include <ctime>

namespace slipstream::engines {

/// Starts when it is made. CPU clocks are system calls of up to a microsecond: they are read outside the makespan.
class run_clock {
public:
    double total_us() const { return watch_.total_us(); }
    double lap_us() { return watch_.lap_us(); }
    const stopwatch& watch() const { return watch_; }

    /// The run is over: its times, with the counts and phases left empty. Call it on the thread that made this.
    run_result stop(double submit_us) const
    {
        run_result result;
        result.makespan_us = watch_.total_us();
        result.submit_us = submit_us;
        result.submitter_cpu_us = cpu_us(CLOCK_THREAD_CPUTIME_ID) - thread_us_;
        result.cpu_us = cpu_us(CLOCK_PROCESS_CPUTIME_ID) - process_us_;
        return result;
    }

private:
    static double cpu_us(clockid_t clock)
    {
        timespec t{};
        clock_gettime(clock, &t);
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
    }

    // The process's lap holds the thread's: begun before it, ended behind it.
    double process_us_ = cpu_us(CLOCK_PROCESS_CPUTIME_ID);
    double thread_us_ = cpu_us(CLOCK_THREAD_CPUTIME_ID);
    stopwatch watch_; ///< last: it starts when the others have been read
};

} // namespace slipstream::engines
