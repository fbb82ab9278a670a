// Runs streams of a case on an engine, and judges them.
#pragma once
#include "host/partitioned_core.hpp"
#include "tools/slipstream/soak/soak_stream.hpp"
#include <atomic>
#include <memory>
#include <string>
#include <thread>

namespace slipstream::soak {

/// An engine of the case's sizes. The calling thread is the first of the submitting ones.
class soak_engine {
public:
    /// device: as in config::device. stall_limit: an engine without progress for so long is given up (device_error).
    /// tasks_max: of a stream.
    soak_engine(const soak_case& c, const std::string& device, std::chrono::seconds stall_limit, u32 tasks_max);
    ~soak_engine();

    /// Empty when every cell, result and status is the sequential run's; else what is wrong first.
    std::string run(const soak_stream& stream);

    u64 launches() const { return parts_ ? parts_->launches() : core_->launches(); }
    u64 pauses() const { return pauses_.load(std::memory_order_relaxed); }
    /// How many tasks were mailed to all workers at once: none where there are several parts. The last call: pauses for good.
    u64 end_and_count_broadcasts();
    std::string device_name() { return device().name(); }

private:
    struct submitter {
        u32 ring = 0;
        u64 first = 0;
    };
    /// call(engine): the same calls, whether it has parts or none.
    template <class Call> decltype(auto) on_engine(const Call& call) const { return parts_ ? call(*parts_) : call(*core_); }
    host::backend& device() const { return (parts_ ? parts_->core(0) : *core_).device(); }
    void end_parks();
    void submit_share(const soak_stream& stream, u32 thread);
    task_handle handle_of(const soak_stream& stream, u32 task) const;
    std::string judge_statuses(const soak_stream& stream);
    task_handle submit(u32 type, const void* task, const submit_options& options);
    task_status wait(task_handle handle);
    u64* take(u64 words);
    u64* take_placed(u64 words);
    u64 gather(u32 cells);

    soak_case case_;
    std::unique_ptr<host::runtime_core> core_;      ///< null: there are several parts
    std::unique_ptr<host::partitioned_core> parts_; ///< null: there is one
    u64 board_ = 0, cells_ = 0, results_ = 0, ops_ = 0;
    u64 gathered_ = 0; ///< of several parts: the cells again, all of them in part 0
    u64 cells_held_ = 0, results_held_ = 0, ops_held_ = 0; ///< words there is room for
    std::vector<data_handle> handles_;
    std::vector<submitter> submitters_;
    std::vector<task_handle> submitted_; ///< of several parts: each task's, which nobody can tell before
    std::atomic<u32> ready_{0};
    std::atomic<bool> over_{false};
    std::atomic<u64> pauses_{0};
    std::thread parker_;
};

} // namespace slipstream::soak
