// A recorded trace as a workload: each task a synthetic body that is calibrated to take the recorded time and to move the
// recorded bytes, with the recorded grid, and that is verified by digest.
#pragma once
#include "host/trace/recorded_trace.hpp"
#include "workloads/workload.hpp"
#include <functional>
#include <slipstream/config.hpp>

namespace slipstream::workloads {

struct replay_options {
    std::string break_kind;  ///< "RAW", "WAR" or "WAW": leave out one such edge, so that the result cannot verify
    config resident;         ///< of the slipstream engine, for the resident solo times
    std::function<void(double done, double total)> progress; ///< of the calibration; may be empty
};

/// Tasks that are calibrated together: the same blocks, and nearly the same recorded time, bytes and digest.
struct solo_class {
    u32 tasks = 0;
    u32 example = 0;         ///< the first of them
    u32 blocks = 1;
    double recorded_us = 0;  ///< assumed when the trace has no durations
    u64 recorded_bytes = 0;  ///< of one task; assumed when the trace does not say
    u64 moved_bytes = 0;     ///< what the body moves
    u32 iterations = 0;      ///< of the arithmetic chain
    double launched_us = 0;  ///< alone, as a plain kernel: see launch_timer.hpp
    double resident_us = 0;  ///< alone in the slipstream engine: see resident_times.hpp; 0: not measured
};

/// Solo times of the bodies; sums are over all tasks of the trace.
struct solo_times {
    bool measured = false; ///< false on the host device: nothing is calibrated there
    double floor_us = 0;   ///< an empty body, launched
    double recorded_us = 0, launched_us = 0, resident_us = 0;
    std::vector<solo_class> classes;
};

/// When the tasks of a replay arrive. Paced: at the recorded times of their launch calls, from the first one on. Throws
/// config_error when the trace has none, or when the last one is more than ten minutes behind the first.
engines::arrivals arrivals_of(const trace::recorded_trace& recorded, engines::arrival_mode mode);

class replay final : public workload {
public:
    /// Calibrates on a GPU, within about ten seconds. `device` outlives it. Throws config_error when `break_kind` names a kind
    /// of edge that the trace does not have, device_error when the device fails.
    replay(engines::device_memory& device, const trace::recorded_trace& recorded, const replay_options& options);
    ~replay() override;

    std::string name() const override { return "replay"; }
    const engines::program& program() const override;
    void reset() override;
    verdict verify() override;

    const solo_times& solo() const;
    /// What a reader of the result must know: caps, assumptions, kinds of dependencies. One sentence each.
    const std::vector<std::string>& notes() const;

private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace slipstream::workloads
