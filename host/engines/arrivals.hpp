// When the tasks of a program arrive at an engine.
#pragma once
#include "host/engines/stopwatch.hpp"
#include <slipstream/abi/portable.hpp>
#include <slipstream/status.hpp>
#include <span>
#include <string>
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
        : paced_(when.mode == arrival_mode::paced), left_(when.at_us), watch_(watch)
    {
    }

    /// Called once for each task, in program order. config_error: this one has no time.
    void await_next()
    {
        if (!paced_) return;
        if (left_.empty())
            throw config_error("paced: arrivals::at_us has no times left, and the program has more tasks: give each of them one");
        while (watch_.total_us() < left_.front()) std::this_thread::yield();
        left_ = left_.subspan(1);
    }

private:
    bool paced_;
    std::span<const double> left_; ///< of the next task and those behind it
    const stopwatch& watch_;
};

} // namespace slipstream::engines
