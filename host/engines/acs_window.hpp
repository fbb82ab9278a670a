// The scheduling window of ACS-SW: 32 tasks in program order of entry, each with the list of those it waits for.
//
// A task is checked once, when it enters: all its accesses against all accesses of every task in the window. The rule is the
// complete one, RAW, WAR and WAW (the algorithm as printed in the paper compares new writes only and misses RAW). A task that is no
// longer in the window is done, since tasks enter in program order. Not thread-safe: acs_scheduler has the lock.
//
// STATES  of a slot: free -> pending (insert, somebody upstream) -> ready (complete of the last one upstream, or insert without
// any)
//         -> executing (take_ready) -> free (complete)
#pragma once
#include <array>
#include <slipstream/abi/access_entry.hpp>
#include <span>
#include <vector>

namespace slipstream::engines {

class acs_window {
public:
    static constexpr u32 slots = 32; ///< the paper's default; one bit each in a word
    static constexpr u32 none = ~0u;

    bool full() const { return ~occupied_ == 0; }
    bool empty() const { return occupied_ == 0; }
    /// Tasks that take_ready() would give now, one after another.
    u32 ready() const;

    /// Adds a task; the window is not full. `task` numbers ascend; `after`: tasks to wait for, whatever they access.
    void insert(u32 task, std::span<const abi::access_entry> accesses, bool whole_memory, std::span<const u32> after);
    /// The slot of the ready task that came first, which now executes; `none` when no task is ready.
    u32 take_ready();
    u32 task(u32 slot) const { return slots_[slot].task; }
    /// The task in this slot has ended: it leaves, and those that waited for it alone are ready.
    void complete(u32 slot);
    /// Forgets all tasks.
    void clear() { occupied_ = ready_ = executing_ = 0; }

private:
    struct slot {
        u32 task = 0;
        u32 upstream = 0; ///< bit s: waits for the task in slot s
        bool whole_memory = false;
        std::vector<abi::access_entry> accesses;
    };
    static bool conflict(const slot& next, const slot& earlier);

    std::array<slot, slots> slots_;
    u32 occupied_ = 0; ///< bits by slot; ready_ and executing_ lie within and share none; the rest is pending
    u32 ready_ = 0;
    u32 executing_ = 0;
};

} // namespace slipstream::engines
