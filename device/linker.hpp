// The linker role: keeps the dependency table. It links admitted tasks to their predecessors, wakes the successors of completed
// ones, and hands whoever waits for nobody to the scheduler.
//
// It runs beside the scheduler's fence: a completion comes here before it, what is woken goes back and is mailed after it.
//
// OWNERS  this role alone: the dependency table.
// STATES  of a slot here: admitted -> linked (waiting, or at once ready) -> ready -> complete.
//         A slot that comes again as admitted was complete before, and its completion is in the completed queue by then: that queue
//         is emptied between looking for admitted tasks and linking them.
// EDGES   A10 (admitted: slot, row) -> R15 (linked), R14 (ready) · A13 (completed) -> R14 (ready), R13_taken (looked at)
#pragma once
#include "device/dependency_table.hpp"

namespace slipstream::device {

template <class P>
class linker {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH linker(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), table_(memory, state), admitted_(state.admitted_queue()), completed_(state.completed_queue()),
          ready_(state.ready_queue()), in_flight_(state.counters[saved_in_flight]),
          linked_(P::load(edge::P5_self, *state.linked, order::relaxed, scope::block))
    {
    }

    /// True when it did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        // Completions first, others wait for them. With nothing else to do there are two looks a turn at them.
        if (const u32 done = completed_.available(team)) {
            complete(team, done);
            return true;
        }
        const u32 arrived = admitted_.available(team);
        SLIPSTREAM_ONE_COPY
        while (const u32 done = completed_.available(team)) complete(team, done); // before a slot comes again
        if (arrived == 0) return false;
        link(team, arrived < 32 ? arrived : 32);
        return true;
    }

    /// Every task linked so far is complete.
    SLIPSTREAM_BOTH bool empty() const { return in_flight_ == 0; }

    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (team.leader()) s_.counters[saved_in_flight] = in_flight_;
        team.sync();
    }

private:
    SLIPSTREAM_BOTH void complete(team_type& team, u32 done)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < done; ++i) {
            table_.wake(team, completed_.peek(i), [&](u32, u32 mask, auto entry_of) {
                team.each32([&](u32 k) {
                    if (mask >> k & 1) ready_.put_ahead(popcount(mask & ((1u << k) - 1)), entry_of(k));
                });
                ready_.advance(popcount(mask)); // never full: it has room for every slot
            });
            ready_.publish(team);
        }
        table_.remove(team, done, [&](u32 k) { return completed_.peek(k); });
        completed_.skip(done);
        completed_.release(team);
        in_flight_ -= done;
    }

    /// In order. Runs of tasks that wait for nobody are taken in together.
    SLIPSTREAM_BOTH void link(team_type& team, u32 count)
    {
        const auto slot_of = [&](u32 k) { return admitted_.peek(k) & 0xffff; };
        const u32 rows = team.mask32([&](u32 k) {
            return k < count && (admitted_.peek(k) & admitted_free) == 0;
        });
        u32 waiting = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count;) {
            const u32 rest = rows >> k;
            const u32 run = rest == 0 ? count - k : lowest_bit(rest);
            if (run != 0) {
                table_.link_free(team, run, [&](u32 i) { return slot_of(k + i); });
                k += run;
            } else {
                const u32 row = (admitted_.position() + k) % admitted_max;
                if (table_.link(team, slot_of(k), s_.predecessors + row * m_.n.groups(), linked_ + k + 1) != 0) waiting |= 1u << k;
                ++k;
            }
        }
        const u32 ready = (count == 32 ? ~0u : (1u << count) - 1) & ~waiting;
        team.each32([&](u32 k) {
            if (ready >> k & 1) ready_.put_ahead(popcount(ready & ((1u << k) - 1)), ready_entry::make(slot_of(k), linked_ + k + 1));
        });
        ready_.advance(popcount(ready));
        in_flight_ += count;
        linked_ += count;
        admitted_.skip(count);
        admitted_.release(team);
        if (team.leader()) P::store(edge::R15_linked, *s_.linked, linked_, order::release, scope::block);
        ready_.publish(team);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    dependency_table<P> table_;
    queue_consumer<P, u32, edge::A10_admitted, edge::R10_linked> admitted_;
    queue_consumer<P, u32, edge::A13_completed, edge::R13_taken> completed_;
    queue_producer<P, ready_entry, edge::R14_ready, edge::A14_taken> ready_;
    // Equal on all lanes.
    u32 in_flight_; ///< linked and not complete
    u32 linked_;    ///< ever; wraps
};

} // namespace slipstream::device
