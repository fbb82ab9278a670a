// A stream of tasks that one benchmark times, with the result that a sequential run would have.
#pragma once
#include "tools/slipstream/bench/bench_tasks.hpp"
#include <string>

namespace slipstream::bench {

class task_stream {
public:
    task_stream(bench_runtime& runtime, bool lose_a_task) : runtime_(runtime), lose_a_task_(lose_a_task) {}
    virtual ~task_stream() = default;

    /// Runs `count` tasks (of a fan: rounds) and compares the memory with a sequential run's, outside the timed part. Returns the
    /// seconds from the first submission to the host seeing the last completion.
    double run(u64 count);
    /// The same; returns what crossed the bus from the first submission until the kernel left behind the last completion.
    bus_traffic run_counted(u64 count);
    /// Every run so far had the right result.
    bool verified() const { return verified_; }

protected:
    /// Submits tasks [0, count) of a run, except `lost`. Nothing but submissions: this is timed.
    virtual void submit(u64 count, u64 lost) = 0;
    /// Goes through the same tasks on the host and compares.
    virtual bool check(u64 count) = 0;

    bench_runtime& runtime_;

private:
    u64 lost_of(u64 count) const { return lose_a_task_ ? count / 2 : ~u64{0}; }

    bool lose_a_task_; ///< for tests: verification must find it
    bool verified_ = true;
};

/// Waits for everything; throws device_error when nothing has come for a minute.
void wait_all(runtime_base& runtime);
/// Brings the kernel onto the device: a launch is start-up and no part of a task's cost.
void wake(bench_runtime& runtime);

} // namespace slipstream::bench
