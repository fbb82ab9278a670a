// A stream of tasks that one benchmark times, with the result that a sequential run would have.
#pragma once
#include "tools/slipstream/bench/bench_tasks.hpp"
#include <string>

namespace slipstream::bench {

/// Waits for everything; throws device_error when nothing has come for a minute.
void wait_all(runtime_base& runtime);

/// Brings the kernels of all parts onto the device: a launch is start-up and no part of a task's cost.
template <class Runtime> void wake(Runtime& runtime)
{
    // Of a whole-memory task every part hears.
    (void)runtime.submit(marker_task{}, {.order = runtime.parts() > 1 ? ordering::whole_memory : ordering::no_access});
    wait_all(runtime);
}

template <class Runtime> class basic_task_stream {
public:
    basic_task_stream(Runtime& runtime, bool lose_a_task) : runtime_(runtime), lose_a_task_(lose_a_task) {}
    virtual ~basic_task_stream() = default;

    /// Runs `count` tasks (of a fan: rounds) and compares the memory with a sequential run's, outside the timed part. Returns the
    /// seconds from the first submission to the host seeing the last completion.
    double run(u64 count) { return run_timed(count).all; }

    /// The same; returns the seconds of the submissions alone.
    double run_submissions(u64 count) { return run_timed(count).submissions; }

    /// The same; returns what crossed the bus from the first submission until the kernel left behind the last completion.
    bus_traffic run_counted(u64 count)
    {
        runtime_.pause();
        const bus_traffic before = runtime_.bus_traffic();
        runtime_.resume();
        submit(count, lost_of(count)); // the ring is full when the kernel comes
        wait_all(runtime_);
        runtime_.pause();
        const bus_traffic moved = runtime_.bus_traffic() - before;
        runtime_.resume();
        if (!check(count)) verified_ = false;
        return moved;
    }

    /// Every run so far had the right result.
    bool verified() const { return verified_; }

protected:
    /// Submits tasks [0, count) of a run, except `lost`. Nothing but submissions: this is timed.
    virtual void submit(u64 count, u64 lost) = 0;
    /// Goes through the same tasks on the host and compares.
    virtual bool check(u64 count) = 0;

    Runtime& runtime_;

private:
    struct seconds {
        double submissions, all;
    };
    seconds run_timed(u64 count)
    {
        using clock = std::chrono::steady_clock;
        wake(runtime_);
        const auto start = clock::now();
        submit(count, lost_of(count));
        const auto submitted = clock::now();
        wait_all(runtime_);
        const auto end = clock::now();
        if (!check(count)) verified_ = false;
        return {std::chrono::duration<double>(submitted - start).count(), std::chrono::duration<double>(end - start).count()};
    }
    u64 lost_of(u64 count) const { return lose_a_task_ ? count / 2 : ~u64{0}; }

    bool lose_a_task_; ///< for tests: verification must find it
    bool verified_ = true;
};

using task_stream = basic_task_stream<bench_runtime>;

} // namespace slipstream::bench
