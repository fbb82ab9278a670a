// A thread block of 64 host threads: bodies as a GPU runs them, with barriers and staging, where ThreadSanitizer can watch.
#pragma once
#include "host/engines/program.hpp"
#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>

namespace slipstream::tests {

/// What the threads of a block share; one team runs one block after the other.
struct thread_team {
    static constexpr u32 threads = 64;
    static constexpr u32 lanes = 32;

    explicit thread_team(u32 shared_bytes) : scratch(shared_bytes / sizeof(std::max_align_t) + 1) {}

    std::barrier<> block{threads};
    std::barrier<> warps[threads / lanes]{std::barrier<>(lanes), std::barrier<>(lanes)};
    std::vector<std::max_align_t> scratch;
    double values[threads] = {}; ///< of a reduction
};

/// One thread's view of its block: the members of slipstream/block.hpp that tile bodies use.
class team_block {
public:
    team_block(thread_team& team, u32 rank, u32 index, u32 blocks) : team_(&team), rank_(rank), index_(index), blocks_(blocks) {}

    u32 rank() const { return rank_; }
    static constexpr u32 size() { return thread_team::threads; }
    u32 block_index() const { return index_; }
    u32 blocks() const { return blocks_; }
    void sync() const { team_->block.arrive_and_wait(); }
    template <class T>
    T* shared(u32) const
    {
        return reinterpret_cast<T*>(team_->scratch.data());
    }
    template <class T>
    T reduce_add(T value)
    {
        team_->values[rank_] = value;
        sync();
        T sum = 0;
        for (const double part : team_->values) sum += static_cast<T>(part);
        sync();
        return sum;
    }
    template <class T>
    T warp_reduce_add(T value)
    {
        const u32 warp = rank_ / thread_team::lanes;
        team_->values[rank_] = value;
        team_->warps[warp].arrive_and_wait();
        T sum = 0;
        for (u32 lane = 0; lane < thread_team::lanes; ++lane)
            sum += static_cast<T>(team_->values[warp * thread_team::lanes + lane]);
        team_->warps[warp].arrive_and_wait();
        return sum;
    }

private:
    thread_team* team_;
    u32 rank_, index_, blocks_;
};

/// Runs a program's tasks in order, block after block. `Tasks`: the first task types of its image; it may use no others.
template <class... Tasks>
void run_on_team(const engines::program& p)
{
    thread_team team(std::max({Tasks::shared_bytes...}));
    const auto work = [&](u32 rank) {
        for (const engines::program_task& t : p.tasks())
            for (u32 b = 0; b < t.blocks; ++b) {
                team_block block(team, rank, b, t.blocks);
                u32 type = 0;
                ((type++ == t.type ? (*static_cast<const Tasks*>(p.arguments(t)))(block) : void()), ...);
                block.sync();
            }
    };
    std::vector<std::thread> threads;
    for (u32 rank = 0; rank < thread_team::threads; ++rank) threads.emplace_back(work, rank);
    for (std::thread& t : threads) t.join();
}

} // namespace slipstream::tests
