// Recorded runs as a Chrome trace, the JSON that Perfetto (https://ui.perfetto.dev) and chrome://tracing read.
//
// A process is an engine. All runs begin at the same time, which otherData says (run_begins_us): 0, unless something lies before
// it, as the submission of preloaded tasks does, and device times by the error of the clocks. Tracks: the host's thread that
// submits (its two phases), and each worker that ran anything ("SM 12, worker 5"): a complete event for each run of a task's
// blocks. Waits of staged tasks are async spans beside their worker; counters are the occupied slots of the window and the filled
// ones of the ring. What was lost for want of room is an instant event at the end and stands in otherData, as do the facts given
// and how well the clocks are aligned.
#pragma once
#include "host/timeline/recorded_run.hpp"
#include <string>
#include <utility>
#include <vector>

namespace slipstream::timeline {

/// Name and value, for otherData.
using trace_facts = std::vector<std::pair<std::string, std::string>>;

/// Writes `path`, compressed when it ends in .gz. The runs are of `program`. Throws std::runtime_error with the reason.
void write_chrome_trace(const std::string& path, const std::vector<recorded_run>& runs, const engines::program& program,
                        const trace_facts& facts);

} // namespace slipstream::timeline
