// ACS-SW's threads: the window module, which is the thread that calls run(), and scheduler threads that run ready tasks to their
// end.
//
// OWNERS  window_: whoever holds window_mutex_
//         ready_, full_, completed_: written under window_mutex_; read without it as hints of when to look (relaxed: the lock
//         orders everything that is then read)
//         run_, idle_, entered_, quit_, failure_: under run_mutex_
//         active_: set by run(), cleared by run() or a thread that failed; polled by all
// STATES  of a scheduler thread: idle (on the condition variable, between runs) -> active (polls the window) -> idle. run() starts
// its
//         clock when all of them are active: waking threads is start-up, not part of the makespan.
//
// What a task wrote is seen by its successors: complete() and take_ready() are ordered by the lock.
#pragma once
#include "host/engines/acs_window.hpp"
#include "host/engines/engine.hpp"
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace slipstream::engines {

class acs_scheduler {
public:
    /// Runs tasks on behalf of a scheduler thread.
    class executor {
    public:
        virtual ~executor() = default;
        /// Once for each thread and run, before its first task.
        virtual void enter(u32 thread) = 0;
        /// Launches a task and returns when it has ended; called by one thread at a time for each `thread`.
        virtual void execute(u32 thread, const program& p, const program_task& t) = 0;
    };

    /// device_error: so many threads are not to be had.
    acs_scheduler(u32 threads, executor& tasks);
    ~acs_scheduler();
    acs_scheduler(const acs_scheduler&) = delete;
    acs_scheduler& operator=(const acs_scheduler&) = delete;

    /// Runs all tasks. Throws what an executor threw, when all threads are idle again.
    run_result run(const program& p, const arrivals& when = {});

private:
    void serve(u32 thread);
    void work(u32 thread);
    void note_window();

    executor& executor_;
    std::vector<abi::access_entry> accesses_; ///< of the task that enters

    std::mutex window_mutex_;
    acs_window window_;
    alignas(128) std::atomic<u32> ready_{0};
    alignas(128) std::atomic<bool> full_{false};
    std::atomic<u64> completed_{0};
    alignas(128) std::atomic<bool> active_{false};
    const program* program_ = nullptr; ///< of this run; set before active_, while all threads are idle

    std::mutex run_mutex_;
    std::condition_variable changed_;
    u64 run_ = 0;     ///< number of the run that threads should be in
    u32 idle_ = 0;    ///< threads that are idle
    u32 entered_ = 0; ///< threads that have begun this run
    bool quit_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_; ///< behind all that they look at
};

} // namespace slipstream::engines
