// Threads that poll the window while a run is on, and sleep between runs.
#include "host/engines/acs_scheduler.hpp"
#include "host/engines/declared_accesses.hpp"
#include "host/engines/run_clock.hpp"
#include "host/start_threads.hpp"

namespace slipstream::engines {

acs_scheduler::acs_scheduler(u32 threads, executor& tasks)
    : executor_(tasks),
      threads_(host::start_threads("acs-sw", threads,
                                   "ask for fewer, or raise this process's limits of threads and of address space",
                                   [this](u32 i) { serve(i); }))
{
}

acs_scheduler::~acs_scheduler()
{
    active_.store(false, std::memory_order_relaxed);
    {
        const std::lock_guard lock(run_mutex_);
        quit_ = true;
    }
    changed_.notify_all();
    for (std::thread& t : threads_) t.join();
}

run_result acs_scheduler::run(const program& p, const arrivals& when)
{
    {
        std::unique_lock lock(run_mutex_);
        changed_.wait(lock, [&] { return idle_ == threads_.size(); });
        window_.clear(); // all threads are idle
        note_window();
        completed_.store(0, std::memory_order_relaxed);
        program_ = &p;
        failure_ = nullptr;
        entered_ = 0;
        active_.store(true, std::memory_order_relaxed); // threads see it by run_mutex_
        ++run_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return entered_ == threads_.size(); });
    }

    const run_clock clock;
    pacer arriving(when, clock.watch());
    run_result result;
    {
        // However this block is left, the threads go idle. Relaxed: what a run leaves is looked at when all of them are.
        const struct at_end {
            std::atomic<bool>& active;
            ~at_end() { active.store(false, std::memory_order_relaxed); }
        } idle_again{active_};
        const auto on = [&] { return active_.load(std::memory_order_relaxed); };
        const std::span<const program_task> tasks = p.tasks();
        for (u32 i = 0; i < tasks.size(); ++i) {
            arriving.await_next();
            const bool whole = declared_accesses(p, tasks[i], accesses_);
            while (full_.load(std::memory_order_relaxed) && on()) std::this_thread::yield();
            if (!on()) break;
            const std::lock_guard lock(window_mutex_);
            window_.insert(i, accesses_, whole, p.after(tasks[i])); // only this thread fills it
            note_window();
        }
        const double submit_us = clock.total_us();
        while (completed_.load(std::memory_order_acquire) < tasks.size() && on()) std::this_thread::yield();
        result = clock.stop(submit_us);
    }

    std::unique_lock lock(run_mutex_);
    changed_.wait(lock, [&] { return idle_ == threads_.size(); });
    if (failure_) std::rethrow_exception(failure_);
    return result;
}

/// Brings the hints up to date; under window_mutex_, or while all threads are idle.
void acs_scheduler::note_window()
{
    ready_.store(window_.ready(), std::memory_order_relaxed);
    full_.store(window_.full(), std::memory_order_relaxed);
}

void acs_scheduler::serve(u32 thread)
{
    u64 done = 0; // the last run this thread was in
    std::unique_lock lock(run_mutex_);
    for (;;) {
        ++idle_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return quit_ || run_ != done; });
        if (quit_) return;
        done = run_;
        --idle_;
        lock.unlock();
        std::exception_ptr failure;
        bool entered = false;
        const auto say_entered = [&] {
            const std::lock_guard said(run_mutex_);
            ++entered_;
            entered = true;
            changed_.notify_all();
        };
        try {
            executor_.enter(thread);
            say_entered();
            work(thread);
        } catch (...) {
            failure = std::current_exception();
            active_.store(false, std::memory_order_relaxed);
            if (!entered) say_entered();
        }
        lock.lock();
        if (failure && !failure_) failure_ = failure;
    }
}

void acs_scheduler::work(u32 thread)
{
    while (active_.load(std::memory_order_relaxed)) {
        if (ready_.load(std::memory_order_relaxed) == 0) {
            std::this_thread::yield();
            continue;
        }
        u32 slot = acs_window::none;
        u32 task = 0;
        {
            const std::lock_guard lock(window_mutex_);
            slot = window_.take_ready();
            if (slot != acs_window::none) task = window_.task(slot);
            note_window();
        }
        if (slot == acs_window::none) continue; // another thread was faster
        executor_.execute(thread, *program_, program_->tasks()[task]);
        const std::lock_guard lock(window_mutex_);
        window_.complete(slot);
        note_window();
        completed_.store(completed_.load(std::memory_order_relaxed) + 1, std::memory_order_release); // to run(): the tasks' results
    }
}

} // namespace slipstream::engines
