// Makes a failing case small: fewer tasks, fewer threads, a smaller window, nothing that is not needed.
#pragma once
#include "tools/slipstream/soak/soak_case.hpp"
#include <chrono>
#include <functional>

namespace slipstream::soak {

/// What is wrong with a case that was run; empty: nothing.
using trial = std::function<std::string(const soak_case&)>;

struct shrunk_case {
    soak_case smallest;
    std::string verdict; ///< of its last failing run
    u32 trials = 0;
    std::string ended; ///< what a trial threw that ended the search (device_error); empty: none did
};

/// `failing` has failed with `verdict`. A case may fail by chance only: each smaller one is tried `attempts` times
/// before it is taken for good. Gives up with what it has at the deadline, and when a trial throws device_error:
/// further ones would find no device.
shrunk_case shrink(const soak_case& failing, const std::string& verdict, const trial& run, u32 attempts,
                   std::chrono::steady_clock::time_point until);

} // namespace slipstream::soak
