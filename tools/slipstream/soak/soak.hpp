// A soak: case after case until the time or the tasks are used up, each stream against the sequential oracle.
#pragma once
#include "tools/slipstream/soak/shrink.hpp"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace slipstream::soak {

struct soak_request {
    std::string device;      ///< as in config::device
    bool cuda = false;
    u64 seed = 1;
    u64 tasks = 0;           ///< 0: as many as time allows
    double seconds = 0;      ///< 0: as long as the tasks take
    u32 stream_tasks = 0;    ///< of each stream; 0: what suits the device
    u32 parts_max = 3;       ///< of a drawn case: what the device has room for
    std::string style;       ///< "": all in turn
    std::optional<u64> start; ///< of every case; else drawn
    u32 hide = 0;            ///< see soak_case
    std::optional<soak_case> only; ///< this one, again and again
    double stall_seconds = 60; ///< an engine without progress for so long has failed
    double shrink_seconds = 60;
};

/// What was run of one case.
struct case_record {
    soak_case drawn;
    u32 number = 0;
    u64 tasks = 0, streams = 0;
    double seconds = 0;
    u64 launches = 0, pauses = 0;
    u64 broadcasts = 0; ///< tasks that were mailed to all workers at once; known when the case is over
};

struct soak_failure {
    soak_case drawn;
    std::string verdict;
    bool again = false;     ///< did it fail again on a fresh engine?
    shrunk_case shrunk;     ///< meaningful if so
    std::string ended;      ///< the device_error that ended repeating or shrinking; empty: none did
};

struct soak_result {
    std::vector<case_record> cases;
    std::optional<soak_failure> failure;
    double seconds = 0;
};

/// `failing` has failed with `verdict`: does it again, and how small can it be made? See shrink().
soak_failure examine(const soak_case& failing, const std::string& verdict, const trial& run, u32 attempts,
                     std::chrono::steady_clock::time_point until);

/// Ends with the first failure. told: after every stream, with the case so far; the last call of a case says so.
soak_result run_soak(const soak_request& request, const std::function<void(const case_record&, bool over)>& told);

} // namespace slipstream::soak
