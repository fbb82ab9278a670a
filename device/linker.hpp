// The linker role: keeps the dependency table. It links admitted tasks to their predecessors, wakes the successors of completed
// ones, and hands to the scheduler whoever waits for nobody, or only for tasks that were handed to it before (staged).
//
// It runs beside the scheduler's fence: a completion comes here before it, what is woken goes back and is mailed after it. Staging is
// on nobody's critical path as long as it keeps ahead of the workers.
//
// OWNERS  this role alone: the dependency table.
// STATES  of a slot here: admitted -> linked -> waiting -> ready -> complete; or waiting -> staged -> complete, when all that it waits
//         for is handed to the scheduler (and back to waiting when it was skipped).
//         A slot that comes again as admitted was complete before, and its report is in the report queue by then: that queue is
//         emptied between looking for admitted tasks and linking them. A staged task may be reported complete before one that it
//         waits for, since the scheduler reads their workers' words in no order: it is kept (early) until that report comes, and while
//         there is one nobody is linked: its slot may be the one that comes again.
// EDGES   A10 (admitted: slot, row) -> R15 (linked), R14 (ready, staged) · A13 (reports) -> R14, R13_taken (looked at)
#pragma once
#include "device/dependency_table.hpp"

namespace slipstream::device {

template <class P>
class linker {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH linker(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), table_(memory, state), admitted_(state.admitted_queue()), reports_(state.report_queue()),
          ready_(state.ready_queue()), in_flight_(state.counters[saved_in_flight]), early_(state.counters[saved_early]),
          ordered_(state.counters[saved_ordered]), settled_(state.counters[saved_settled]),
          linked_(P::load(edge::P5_self, *state.linked, order::relaxed, scope::block))
    {
    }

    /// True when it did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        // Reports first, others wait for them. With nothing else to do there are two looks a turn at them.
        if (const u32 count = reports_.available(team)) {
            take(team, count);
            return true;
        }
        const u32 arrived = early_ == 0 ? admitted_.available(team) : 0;
        SLIPSTREAM_ONE_COPY
        while (const u32 count = reports_.available(team)) take(team, count); // before a slot comes again
        if (arrived == 0 || early_ != 0) return look_again_ && stage_ahead(team);
        link(team, arrived < 32 ? arrived : 32);
        return true;
    }

    /// Every task linked so far is complete.
    SLIPSTREAM_BOTH bool empty() const { return in_flight_ == 0; }

    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (team.leader()) {
            s_.counters[saved_in_flight] = in_flight_;
            s_.counters[saved_early] = early_;
            s_.counters[saved_ordered] = ordered_;
            s_.counters[saved_settled] = settled_;
        }
        team.sync();
    }

private:
    SLIPSTREAM_BOTH void take(team_type& team, u32 count)
    {
        if (count > 32) count = 32;
        u32 removed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count; ++k) {
            const report entry = reports_.peek(k);
            if (entry.kind() == report_kind::skipped || entry.kind() == report_kind::declined) {
                take_back(team, entry.slot(), entry.kind() == report_kind::skipped);
                continue;
            }
            if (entry.kind() == report_kind::failed) {
                table_.taint(team, entry.slot());
                tainted_ = true;
            }
            if (table_.pending(entry.slot()) != 0) {
                if (team.leader()) s_.early[entry.slot() / 32] |= 1u << entry.slot() % 32;
                ++early_;
                continue;
            }
            complete(team, entry.slot(), entry.kind() != report_kind::cancelled);
            removed |= 1u << k;
        }
        if (removed) table_.remove(team, removed, [&](u32 k) { return reports_.peek(k).slot(); });
        reports_.skip(count);
        reports_.release(team);
        if (early_ != 0) complete_early(team);
        stage_ahead(team);
        if (tainted_ && in_flight_ == 0) tainted_ = !table_.cleanse(team);
    }

    SLIPSTREAM_BOTH void complete(team_type& team, u32 slot, bool mailed)
    {
        table_.wake(team, slot, [&](u32, u32 mask, auto entry_of) {
            team.each32([&](u32 k) {
                if (mask >> k & 1) ready_.put_ahead(popcount(mask & ((1u << k) - 1)), entry_of(k));
            });
            ready_.advance(popcount(mask)); // never full: it has room for every slot
            ready_.publish(team);
        });
        table_.take_off(team, slot, mailed);
        --in_flight_;
    }

    /// Those whose reports came before the one they wait for.
    SLIPSTREAM_BOTH void complete_early(team_type& team)
    {
        SLIPSTREAM_ONE_COPY
        for (bool again = true; again;) {
            again = false;
            SLIPSTREAM_ONE_COPY
            for (u32 g = 0; g < m_.n.groups(); ++g) {
                SLIPSTREAM_ONE_COPY
                for (u32 bits = s_.early[g]; bits != 0; bits &= bits - 1) {
                    const u32 slot = 32 * g + lowest_bit(bits);
                    if (table_.pending(slot) != 0) continue;
                    team.sync();
                    if (team.leader()) s_.early[g] &= ~(1u << slot % 32);
                    --early_;
                    complete(team, slot, true);
                    table_.remove(team, 1, [&](u32) { return slot; });
                    again = true;
                }
            }
        }
    }

    SLIPSTREAM_BOTH void take_back(team_type& team, u32 slot, bool mailed)
    {
        tainted_ |= mailed;
        if (!table_.take_back(team, slot, mailed)) return;
        ready_.put(team, ready_entry::make(slot, linked_));
        ready_.publish(team);
    }

    /// Is a task of so many blocks worth workers that wait? Where much else can run they are better kept for that; a program that is one
    /// task after another may fill the mailboxes.
    SLIPSTREAM_BOTH bool worthwhile(u32 blocks) const
    {
        const u32 most = s_.counters[handed_tasks] <= serial_tasks ? mailbox_depth * m_.n.workers : m_.n.workers - m_.n.workers / 4;
        return s_.counters[handed_blocks] + blocks <= most;
    }

    /// Stages tasks that wait, in the order in which they were linked, up to the first that cannot be: it comes to its turn when more is
    /// complete. True when it staged one.
    SLIPSTREAM_BOTH bool stage_ahead(team_type& team)
    {
        // What was linked a window before is complete, and overwritten.
        if (ordered_ - settled_ > s_.queue_slots) settled_ = ordered_ - s_.queue_slots;
        u32 staged = 0;
        SLIPSTREAM_ONE_COPY
        for (; settled_ != ordered_ && staged < stage_at_a_time; ++settled_) {
            const ready_entry entry{s_.link_order[settled_ & (s_.queue_slots - 1)]};
            const u32 slot = entry.slot();
            if (!table_.waits(slot, entry.number())) continue;
            if (!worthwhile(s_.blocks[slot])) break;
            const u32 waits = table_.stage(team, slot);
            if (waits == 0) break;
            ready_.put(team, ready_entry::make(slot, entry.number(), waits));
            ++staged;
        }
        ready_.publish(team);
        look_again_ = staged == stage_at_a_time;
        return staged != 0;
    }

    /// In order. Runs of tasks that wait for nobody are taken in together, the others one by one.
    SLIPSTREAM_BOTH void link(team_type& team, u32 count)
    {
        const auto slot_of = [&](u32 k) { return admitted_.peek(k) & 0xffff; };
        const bool settled = settled_ == ordered_;
        const u32 rows = team.mask32([&](u32 k) {
            return k < count && (admitted_.peek(k) & admitted_free) == 0;
        });
        u32 ready = 0;
        u32 k = 0;
        u32 rows_done = 0;
        SLIPSTREAM_ONE_COPY
        while (k < count && rows_done < rows_at_a_time) {
            const u32 rest = rows >> k;
            const u32 run = rest == 0 ? count - k : lowest_bit(rest);
            if (run != 0) {
                table_.link_free(team, run, linked_ + k + 1, [&](u32 i) { return slot_of(k + i); });
                ready |= (run == 32 ? ~0u : (1u << run) - 1) << k;
                k += run;
                continue;
            }
            const u32 slot = slot_of(k);
            const u32 row = (admitted_.position() + k) % admitted_max;
            const u32 waits = table_.link(team, slot, s_.predecessors + row * m_.n.groups(), linked_ + k + 1);
            if (waits == 0) ready |= 1u << k;
            else if (m_.n.staging != 0 && s_.blocks[slot] != 0) {
                if (team.leader()) s_.link_order[ordered_ & (s_.queue_slots - 1)] = ready_entry::make(slot, linked_ + k + 1).word;
                ++ordered_;
            }
            ++k;
            ++rows_done;
        }
        team.each32([&](u32 i) {
            if (ready >> i & 1) ready_.put_ahead(popcount(ready & ((1u << i) - 1)), ready_entry::make(slot_of(i), linked_ + i + 1));
        });
        ready_.advance(popcount(ready));
        in_flight_ += k;
        linked_ += k;
        admitted_.skip(k);
        admitted_.release(team);
        if (team.leader()) P::store(edge::R15_linked, *s_.linked, linked_, order::release, scope::block);
        ready_.publish(team);
        if (settled) stage_ahead(team); // else the first that waits has not changed
    }

    static constexpr u32 rows_at_a_time = 2; ///< reports must not wait
    static constexpr u32 stage_at_a_time = 4; ///< likewise
    static constexpr u32 serial_tasks = 2; ///< with so many handed over, a program is taken for one task after another

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    dependency_table<P> table_;
    queue_consumer<P, u32, edge::A10_admitted, edge::R10_linked> admitted_;
    queue_consumer<P, report, edge::A13_report, edge::R13_taken> reports_;
    queue_producer<P, ready_entry, edge::R14_ready, edge::A14_taken> ready_;
    // Equal on all lanes.
    u32 in_flight_; ///< linked and not complete
    u32 early_;     ///< reported complete before one that they wait for
    u32 ordered_;   ///< entries of link_order ever written; wraps
    u32 settled_;   ///< the first so many of them need no further look; wraps
    u32 linked_;    ///< ever; wraps
    bool look_again_ = false; ///< there may be more to stage
    bool tainted_ = true; ///< there may be a tainted slot
};

} // namespace slipstream::device
