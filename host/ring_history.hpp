// How far a ring was written, and when: what its submitting thread keeps for a flight log.
//
// OWNERS  the thread that holds the ring writes; any thread reads.
// EDGES   count_ (release by note(), acquire by kept()): the samples below it are whole.
#pragma once
#include <atomic>
#include <memory>
#include <slipstream/abi/portable.hpp>
#include <span>

namespace slipstream::host {

class ring_history {
public:
    struct sample {
        u64 time_ns;
        u64 written; ///< ring slots ever
    };

    /// Before the first submission; 0: no history is wanted.
    void reserve(u32 samples)
    {
        if (samples != 0) samples_ = std::make_unique<sample[]>(samples);
        capacity_ = samples;
    }
    bool wanted() const { return capacity_ != 0; }

    /// Beyond its capacity only the count goes on.
    void note(u64 time_ns, u64 written)
    {
        const u64 at = count_.load(std::memory_order_relaxed);
        if (at < capacity_) samples_[at] = {time_ns, written};
        count_.store(at + 1, std::memory_order_release);
    }

    std::span<const sample> kept() const
    {
        const u64 count = count_.load(std::memory_order_acquire);
        return {samples_.get(), count < capacity_ ? count : capacity_};
    }
    u64 lost() const
    {
        const u64 count = count_.load(std::memory_order_acquire);
        return count < capacity_ ? 0 : count - capacity_;
    }

private:
    std::unique_ptr<sample[]> samples_;
    u64 capacity_ = 0;
    std::atomic<u64> count_{0};
};

} // namespace slipstream::host
