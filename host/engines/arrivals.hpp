// When the tasks of a program arrive at an engine.
#pragma once
#include "host/engines/stopwatch.hpp"
#include <slipstream/abi/portable.hpp>
#include <thread>
#include <vector>

namespace slipstream::engines {

enum class arrival_mode {
    back_to_back, ///< as fast as the engine takes them
    preloaded,    ///< all of them before the clock starts: submission is not part of the makespan
    paced,        ///< each at a time of its own, as in the application they come from
};

/// "back-to-back", "preloaded", "paced".
constexpr const char* name_of(arrival_mode m)
{
    switch (m) {
    case arrival_mode::back_to_back: return "back-to-back";
    case arrival_mode::preloaded: return "preloaded";
    case arrival_mode::paced: return "paced";
    }
    return "";
}

struct arrivals {
    arrival_mode mode = arrival_mode::back_to_back;
    std::vector<double> at_us{}; ///< paced: of each task, from the start of the clock, ascending
};

/// Holds a submitting loop back until the next task has arrived. Polls: a sleep would be late by more than a task takes.
class pacer {
public:
    pacer(const arrivals& when, const stopwatch& watch)
        : at_us_(when.mode == arrival_mode::paced ? when.at_us.data() : nullptr), watch_(watch)
    {
    }

    /// Called once for each task, in program order.
    void await_next()
    {
        if (at_us_ == nullptr) return;
        while (watch_.total_us() < *at_us_) std::this_thread::yield();
        ++at_us_;
    }

private:
    const double* at_us_; ///< of the next task; null: nobody waits
    const stopwatch& watch_;
};

} // namespace slipstream::engines
