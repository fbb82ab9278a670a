// Which tasks failed or were cancelled, and why: the host's copy of the failure records.
//
// The device gives failures numbers from 1 on and puts record n at place (n - 1) % failures_kept of the host page; it waits when
// the host has not read what lies there. So the book is complete: a task it does not know, once retired, has succeeded.
//
// OWNERS  failures_read: whoever holds mutex_ -> notifier, system
// EDGES   A7_failure (relaxed: one chunk says everything): read after the task's completion was seen, so its record is there
//         R18 (failures_read, release): the records up to it were read
#pragma once
#include "device/host_platform.hpp"
#include "device/layout.hpp"
#include <atomic>
#include <map>
#include <mutex>
#include <slipstream/status.hpp>
#include <unordered_map>

namespace slipstream::host {

class failure_book {
public:
    using P = device::host_platform;

    void attach(device::host_page<P>* page) { page_ = page; }

    /// What became of a task that is retired. No lock while nothing has failed.
    task_status of(task_handle task);
    /// Reads what is there. Called by the service thread at every turn, so that the device never waits for long.
    void read();

private:
    device::failure_record next() const;
    void read_locked();

    device::host_page<P>* page_ = nullptr;
    std::atomic<u32> read_{0}; ///< records read
    std::mutex mutex_;         ///< never held while waiting for the device
    std::map<std::pair<u32, u64>, task_status> tasks_;
    std::unordered_map<u32, task_status> roots_; ///< by number: failures that cancelled tasks go back to
};

} // namespace slipstream::host
