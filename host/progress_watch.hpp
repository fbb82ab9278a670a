// For how long nothing has happened: the clock of the watchdog. One thread uses it.
#pragma once
#include <chrono>
#include <slipstream/abi/portable.hpp>

namespace slipstream::host {

class progress_watch {
public:
    using time_point = std::chrono::steady_clock::time_point;

    /// Something that nobody need worry about: nothing is to be done, or it was told already.
    void restart(time_point now)
    {
        since_ = now;
        known_ = false;
    }

    /// mark: any number that changes whenever something happens. How long it has been the same.
    std::chrono::nanoseconds look(u64 mark, time_point now)
    {
        if (!known_ || mark != mark_) {
            known_ = true;
            mark_ = mark;
            since_ = now;
        }
        return now - since_;
    }

private:
    bool known_ = false;
    u64 mark_ = 0;
    time_point since_{};
};

} // namespace slipstream::host
