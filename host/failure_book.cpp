// Reads the device's failure records and answers for tasks.
#include "host/failure_book.hpp"

namespace slipstream::host {

using device::edge;
using device::order;
using device::scope;

device::failure_record failure_book::next() const
{
    const u32 read = read_.load(std::memory_order_relaxed);
    return device::failure_record::decode(
        P::load(edge::A7_failure, page_->failures[read % device::failures_kept], order::relaxed, scope::system));
}

task_status failure_book::of(task_handle task)
{
    // A record that another thread reads in this moment is new to us or counted in read_; never neither.
    if (next().tag == 0 && read_.load(std::memory_order_acquire) == 0) return {task_state::complete, 0, {}};
    const std::lock_guard lock(mutex_);
    read_locked();
    const auto found = tasks_.find({task.ring, task.position});
    return found == tasks_.end() ? task_status{task_state::complete, 0, {}} : found->second;
}

void failure_book::read()
{
    if (next().tag <= read_.load(std::memory_order_relaxed)) return;
    const std::lock_guard lock(mutex_);
    read_locked();
}

void failure_book::read_locked()
{
    const u32 before = read_.load(std::memory_order_relaxed);
    u32 read = before;
    for (device::failure_record record = next(); record.tag == read + 1; record = next()) {
        task_status status{task_state::failed, record.status, {record.ring, record.position}};
        if (record.cancelled && record.status == record.tag) { // for what happened in another part
            status.code = abi::status_crossing;
            roots_[record.tag] = status;
        } else if (record.cancelled) {
            status = roots_.at(record.status); // the root's record came first
            status.state = task_state::cancelled;
        } else {
            roots_[record.tag] = status;
        }
        tasks_[{record.ring, record.position}] = status;
        read_.store(++read, std::memory_order_release);
    }
    if (read != before)
        P::store(edge::R18_failures_read, page_->failures_read, read, order::release, scope::system);
}

} // namespace slipstream::host
