// --timeline FILE: after the measured runs, one more of each engine over a runtime, recorded and written as a Chrome trace.
#pragma once
#include "tools/slipstream/environment.hpp"
#include "workloads/workload.hpp"
#include <cstdio>

namespace slipstream::cli {

/// What a command was asked to record. Made before anything runs: what cannot work is refused at once (usage_error).
class timeline_request {
public:
    /// `names`: the engines chosen.
    timeline_request(const options& o, const std::vector<std::string>& names);

    /// Records, verifies and writes, and says on `to` where the picture is; nothing without --timeline. False: a run
    /// did not verify.
    bool carry_out(workloads::workload& work, const config& configuration, engines::device_memory& device, const environment& e,
                   std::FILE* to, const engines::arrivals& when = {}) const;

private:
    std::string file_; ///< "": none
    u32 entries_;
    std::vector<std::string> engines_;
};

} // namespace slipstream::cli
