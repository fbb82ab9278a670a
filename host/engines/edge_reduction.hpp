// Transitive reduction of a growing task graph, where it is cheap: within a fixed reach back.
//
// Each of the last `reach` tasks keeps one bit for each of the `reach` tasks before it: set when it waits for that one, directly or
// by way of others. An edge is dropped when a later predecessor waits for the earlier one. Edges longer than the reach, and paths
// through tasks farther back, are not looked at: such an edge stays, which is one too many and never one too few.
//
// Bit k of word w in the record of task t stands for task t - 1 - (64 w + k).
#pragma once
#include <array>
#include <slipstream/abi/portable.hpp>
#include <span>
#include <vector>

namespace slipstream::engines {

class edge_reduction {
public:
    static constexpr u32 reach = 512; ///< a record is one cache line

    edge_reduction() : records_(reach) {}

    /// Starts again with task 0.
    void start_again() { next_ = 0; }

    /// Adds the next task (the first call adds task 0). `predecessors`: earlier tasks, each once, the latest first. Returns those
    /// that no other one of them implies, the latest first; valid until the next call.
    std::span<const u32> next(std::span<const u32> predecessors);

private:
    static constexpr u32 words = reach / 64;
    using record = std::array<u64, words>;

    std::vector<record> records_; ///< of task t at t % reach
    u32 next_ = 0;
    std::vector<u32> kept_;
};

} // namespace slipstream::engines
