// How the blocks of a launch meet. Control block and workers are two kernels, launched one after the other. Neither may begin
// before both are there: with some blocks missing, since others hold their SMs, the rest would wait for them and hold theirs. So
// each block says where it runs and waits until it is settled what becomes of the launch. It *goes*, once the control block has
// seen all workers. It is *void*, if some block loses patience before that, or the host wants an end: then all blocks leave, those
// that come later, too; nothing else was touched, and the host launches again.
//
// Where blocks come to lie is the GPU's choice. The two SMs of a TPC share an instruction cache, it seems, and slow each other
// down while both run code (seen on an H200; device/tried.md). So the worker beside the control block is its part's last one, which
// gets a task where all others have one.
//
// OWNERS  places[0]: the control block · places[1 + b]: block b of the workers' grid
//         outcome, void_launch, the other claim: who settles the launch. It is whoever adds to its claim first.
// TAGS    places and outcome hold the number of the launch, and every launch writes all of them before its last block has left:
//         nobody empties anything. Launches use two claims in turns; who settles one clears the next one's.
// COST    of a launch and block, all relaxed, the value being the message: a store of its place; then the control block two loads
//         for each 32 workers and one addition, a worker loads of the outcome until it is there. A look across the bus every
//         look_around polls.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// Device memory, zeroed when an engine is made. Launches are numbered from 1 on.
template <class P>
struct muster_memory {
    typename P::template word<u64>* outcome;
    typename P::template word<u32>* claims; ///< [2]
    typename P::template word<u32>* places; ///< [1 + workers]
};

/// What became of a launch, in 31 bits.
struct launch_outcome {
    static constexpr u32 none = 0x7fff;

    bool goes = false;
    u32 beside[2] = {none, none}; ///< blocks of the workers' grid beside the control block, none where there are fewer

    SLIPSTREAM_BOTH u32 encode() const { return static_cast<u32>(goes) | beside[0] << 1 | beside[1] << 16; }
    SLIPSTREAM_BOTH static launch_outcome decode(u32 bits) { return {(bits & 1) != 0, {bits >> 1 & none, bits >> 16 & none}}; }

    /// The number of that block's worker. The first blocks are the last workers.
    SLIPSTREAM_BOTH u32 worker_of(u32 block, u32 blocks) const
    {
        u32 last = 0, last_before = 0; // of the ones beside, all and those of a higher block
        bool is_last = false;
        for (const u32 other : beside) {
            if (other == none) continue;
            ++last;
            last_before += other > block;
            is_last |= other == block;
        }
        return is_last ? blocks - last + last_before : blocks - 1 - block - last_before;
    }
};

/// A block's part in it.
template <class P>
class muster {
public:
    using team_type = typename P::team;

    /// page: the host's, who may want an end by its command word.
    SLIPSTREAM_BOTH muster(const muster_memory<P>& memory, host_page<P>& page, u32 launch, u64 patience_ns, u32 workers)
        : m_(memory), page_(page), launch_(launch), until_(P::clock_ns() + patience_ns), workers_(workers)
    {
    }

    /// The control block, by one team of it: does the launch go? It has an SM to itself, `sm`.
    SLIPSTREAM_BOTH bool gather(team_type& team, u32 sm)
    {
        if (team.leader()) tell(0, sm);
        bool missing = false;
        for (u32 block = team.rank(); block < workers_ && !missing; block += team.size())
            for (u32 polls = 1; !missing && (place(block) ^ launch_) << 16 != 0; ++polls) {
                missing = ends(polls);
                P::pause(polls);
            }
        launch_outcome outcome;
        if (!team.any(missing)) {
            outcome.goes = true;
            outcome.beside[0] = beside(team, sm, 0);
            if (outcome.beside[0] != launch_outcome::none) outcome.beside[1] = beside(team, sm, outcome.beside[0] + 1);
        }
        return team.any(team.leader() && settle(outcome).goes);
    }

    /// Block `block` of the workers' grid, by one lane: the number of its worker; nowhere: it leaves.
    SLIPSTREAM_BOTH u32 join(u32 block, u32 sm)
    {
        tell(1 + block, sm);
        launch_outcome outcome;
        for (u32 polls = 1; !settled(outcome); ++polls) {
            if (ends(polls)) {
                outcome = settle({});
                break;
            }
            P::pause(polls);
        }
        return outcome.goes ? outcome.worker_of(block, workers_) : nowhere;
    }
    static constexpr u32 nowhere = ~0u;

private:
    SLIPSTREAM_BOTH void tell(u32 index, u32 sm) const
    {
        P::store(edge::P11_place, m_.places[index], sm << 16 | (launch_ & 0xffff), order::relaxed, scope::device);
    }

    SLIPSTREAM_BOTH u32 place(u32 block) const
    {
        return P::load(edge::P11_place, m_.places[1 + block], order::relaxed, scope::device);
    }

    /// The first block from `from` on beside the control block, whose SM is told; none: there is none.
    SLIPSTREAM_BOTH u32 beside(team_type& team, u32 sm, u32 from) const
    {
        u32 first = launch_outcome::none;
        for (u32 block = team.rank(); block < workers_; block += team.size())
            if (block >= from && block < first && (place(block) >> 16 ^ sm) == 1) first = block;
        return team.reduce_min(first);
    }

    SLIPSTREAM_BOTH bool ends(u32 polls) const
    {
        if (polls % P::look_around != 0) return false;
        if (P::clock_ns() >= until_) return true;
        const auto wanted = static_cast<command>(
            P::load(edge::A8_command, page_.command_word, order::relaxed, scope::system));
        return wanted == command::park || wanted == command::abort;
    }

    SLIPSTREAM_BOTH bool settled(launch_outcome& outcome) const
    {
        const u64 word = P::load(edge::P13_outcome, *m_.outcome, order::relaxed, scope::device);
        if (static_cast<u32>(word >> 32) != launch_) return false;
        outcome = launch_outcome::decode(static_cast<u32>(word));
        return true;
    }

    /// By one lane: this outcome, or whatever another block has made it.
    SLIPSTREAM_BOTH launch_outcome settle(launch_outcome outcome) const
    {
        if (P::fetch_add(edge::P12_claim, m_.claims[launch_ % 2], 1u, order::relaxed, scope::device) == 0) {
            P::store(edge::P12_claim, m_.claims[(launch_ + 1) % 2], 0u, order::relaxed, scope::device);
            if (!outcome.goes) P::store(edge::P14_void, page_.void_launch, launch_, order::relaxed, scope::system);
            P::store(edge::P13_outcome, *m_.outcome, u64{launch_} << 32 | outcome.encode(), order::relaxed, scope::device);
        } else {
            for (u32 polls = 1; !settled(outcome); ++polls) P::pause(polls); // who has claimed it waits for nobody
        }
        return outcome;
    }

    const muster_memory<P>& m_;
    host_page<P>& page_;
    u32 launch_;
    u64 until_;
    u32 workers_;
};

} // namespace slipstream::device
