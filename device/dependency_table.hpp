// The dependency table: who waits for whom, among the tasks that the linker has taken in, and who may be staged behind whom.
//
// A task is linked with the row of predecessors that admission found; those that are complete by now are dropped. Each
// predecessor keeps a row of successors, each successor a count of predecessors: a completion clears one row and counts down.
//
// STAGING A task is handed to the scheduler when it waits for nobody, or staged: when all it waits for was handed over before it
//   (waits_max tasks at most). Its workers then wait for the finished counts of those. The scheduler mails in the order in which
//   tasks are handed over, so whatever a mail waits for was mailed before it.
//   A task of more blocks than workers draws tickets and cannot be waited for in this way, nor can one in a tainted slot.
// OWNERS  the linker role alone, but for `waits`, which the scheduler reads of tasks that were handed over staged.
// COST    of link: a row read and one read-modify-write a predecessor, a lane each group of 32; of wake, when somebody waits: the
//         row (one load a lane), and for each word of it one ballot and one count down a lane; of staging: a look at the recent_max
//         tasks handed over last, a lane each. Fast memory, up to a window of sizes::successors_near_max.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class dependency_table {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH dependency_table(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Takes in tasks that wait for nobody, and hands them over: slot_of(k), k < count, the first one as `link_number`.
    template <class SlotOf>
    SLIPSTREAM_BOTH void link_free(team_type& team, u32 count, u32 link_number, SlotOf slot_of)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) {
            const u32 slot = slot_of(k);
            team.set_bits(s_.in_flight[slot / 32], 1u << slot % 32);
            s_.pending[slot] = (link_number + k) << 16;
            note(slot);
            hand(team, slot);
        }
        team.sync();
    }

    /// Takes in a task with the row of predecessors at `row`. Returns how many of them are not complete: when none, it is handed over.
    template <class Row>
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 slot, const Row* row, u32 link_number)
    {
        const u32 groups = m_.n.groups();
        const u32 word = slot / 32;
        const u32 bit = 1u << slot % 32;
        u32 mine = 0;
        // Rows of different predecessors: lanes never meet.
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < groups; g += team.size()) {
            const u32 waiting_for = P::get(row[g]) & s_.in_flight[g];
            if (waiting_for == 0) continue;
            s_.awaited[g] |= waiting_for;
            mine += popcount(waiting_for);
            SLIPSTREAM_ONE_COPY
            for (u32 bits = waiting_for; bits != 0; bits &= bits - 1) {
                const u32 at = (32 * g + lowest_bit(bits)) * groups + word;
                s_.set_successor_word(at, s_.successor_word(at) | bit);
            }
        }
        const u32 count = team.reduce_add(mine);
        if (team.leader()) {
            s_.pending[slot] = count | link_number << 16;
            s_.in_flight[word] |= bit;
            note(slot);
            if (count == 0) hand(team, slot);
        }
        team.sync();
        return count;
    }

    SLIPSTREAM_BOTH bool is(const u32* bits, u32 slot) const { return (bits[slot / 32] >> slot % 32 & 1) != 0; }
    SLIPSTREAM_BOTH u32 pending(u32 slot) const { return s_.pending[slot] & pending_mask; }

    /// Is this task, linked as `link_number`, still here and neither handed over nor ready?
    SLIPSTREAM_BOTH bool waits(u32 slot, u32 link_number) const
    {
        const u32 entry = s_.pending[slot];
        return entry >> 16 == (link_number & 0xffff) && (entry & pending_mask) != 0 && !is(s_.staged, slot);
    }

    /// Hands over a task that waits, if what it waits for is little and was handed over lately. Returns how many it waits for; 0: it
    /// cannot be staged yet.
    SLIPSTREAM_BOTH u32 stage(team_type& team, u32 slot)
    {
        const u32 count = pending(slot);
        if (count > waits_max) return 0;
        const u32 groups = m_.n.groups();
        const u32 word = slot / 32;
        typename P::template lane_array<u32, 1> before;
        const u32 found = team.mask32([&](u32 k) {
            const ready_entry entry{s_.recent[k]};
            const u32 p = entry.slot();
            before.at(0, k) = p;
            // Another task may have the slot by now, and be among the recent ones itself.
            return entry.waits() != 0 && is(s_.handed, p) && s_.pending[p] >> 16 == entry.number()
                && (s_.successor_word(p * groups + word) >> slot % 32 & 1) != 0;
        });
        if (popcount(found) != count) return 0;
        team.each32([&](u32 k) {
            if (!(found >> k & 1)) return;
            const u32 p = before.at(0, k);
            P::set(s_.waits[slot * waits_max + popcount(found & ((1u << k) - 1))], awaited_task{p, s_.targets[p], s_.identities[p], 0});
        });
        if (team.leader()) {
            s_.staged[word] |= 1u << slot % 32;
            hand(team, slot);
        }
        team.sync();
        return count;
    }

    /// Wakes the tasks that wait for a completed one, and hands over those that wait for nobody now: ready(first, mask, entry_of) is
    /// called by all lanes with slots first + bits of mask; entry_of(k) is the ready entry of slot first + k, on its lane.
    template <class Ready>
    SLIPSTREAM_BOTH void wake(team_type& team, u32 slot, Ready ready)
    {
        if (!is(s_.awaited, slot)) return;
        // Two copies, so that neither asks at each access where the rows lie.
        if (m_.n.successors_near()) wake_in(team, s_.successors_near + slot * m_.n.groups(), ready);
        else wake_in(team, s_.successors_far + slot * m_.n.groups(), ready);
    }

    /// A completed or skipped task is no longer with the scheduler. `mailed`: its blocks have counted, or will.
    SLIPSTREAM_BOTH void take_off(team_type& team, u32 slot, bool mailed)
    {
        team.sync();
        if (team.leader()) {
            const u32 blocks = s_.blocks[slot];
            const u32 bit = 1u << slot % 32;
            s_.handed[slot / 32] &= ~bit;
            s_.staged[slot / 32] &= ~bit;
            if (blocks != 0) {
                s_.counters[handed_blocks] -= blocks;
                --s_.counters[handed_tasks];
                if (!mailed) s_.targets[slot] -= blocks;
            }
        }
        team.sync();
    }

    /// The slot's finished count has failures: nobody is staged behind its tasks until it is set back.
    SLIPSTREAM_BOTH void taint(team_type& team, u32 slot)
    {
        team.sync();
        if (team.leader()) s_.tainted[slot / 32] |= 1u << slot % 32;
        team.sync();
    }

    /// A staged task was not run and waits like any other from now on; or is handed over, if it waits for nobody: true then.
    SLIPSTREAM_BOTH bool take_back(team_type& team, u32 slot, bool mailed)
    {
        if (mailed) taint(team, slot); // its workers said so in the finished count
        team.each32([&](u32 k) { // it may come to be handed over again: no task is among them twice
            const ready_entry entry{s_.recent[k]};
            if (entry.slot() == slot && entry.number() == s_.pending[slot] >> 16) s_.recent[k] = 0;
        });
        take_off(team, slot, mailed);
        const bool free = pending(slot) == 0;
        if (free && team.leader()) hand(team, slot);
        team.sync();
        return free;
    }

    /// Sets the finished counts of tainted slots back. Nobody may be waiting: no task is in flight. True when all of them were: a
    /// worker's last addition may still be on its way.
    SLIPSTREAM_BOTH bool cleanse(team_type& team)
    {
        bool late = false;
        SLIPSTREAM_ONE_COPY
        for (u32 slot = team.rank(); slot < m_.n.window; slot += team.size()) {
            if (!is(s_.tainted, slot)) continue;
            auto& record = m_.records[slot];
            if (finished_count{P::load(edge::A12_finished, record.finished, order::relaxed, scope::device)}.blocks() != s_.targets[slot]) {
                late = true;
                continue;
            }
            P::store(edge::P6_finished_reset, record.finished, u64{0}, order::relaxed, scope::device);
            s_.targets[slot] = 0;
            team.clear_bits(s_.tainted[slot / 32], 1u << slot % 32);
        }
        return !team.any(late);
    }

    /// Forgets completed tasks whose successors were woken: slot_of(k), for each bit k of `tasks`.
    template <class SlotOf>
    SLIPSTREAM_BOTH void remove(team_type& team, u32 tasks, SlotOf slot_of)
    {
        team.sync();
        team.each32([&](u32 k) {
            if (!(tasks >> k & 1)) return;
            const u32 slot = slot_of(k);
            const u32 bit = 1u << slot % 32;
            team.clear_bits(s_.in_flight[slot / 32], bit);
            team.clear_bits(s_.awaited[slot / 32], bit);
        });
        team.sync();
    }

private:
    /// By one lane: what is needed of the task's head, which may be another task's as soon as this one is complete.
    SLIPSTREAM_BOTH void note(u32 slot)
    {
        const task_head head = P::get(s_.heads[slot]);
        s_.identities[slot] = head.identity;
        s_.blocks[slot] = head.blocks <= m_.n.workers ? head.blocks : 0;
    }

    /// By one lane: the task goes to the scheduler.
    SLIPSTREAM_BOTH void hand(team_type& team, u32 slot)
    {
        const u32 blocks = s_.blocks[slot];
        if (blocks == 0) return;
        const u32 bit = 1u << slot % 32;
        s_.targets[slot] += blocks;
        team.add(s_.counters[handed_blocks], blocks);
        team.add(s_.counters[handed_tasks], 1);
        if (is(s_.tainted, slot)) return;
        team.set_bits(s_.handed[slot / 32], bit);
        s_.recent[team.add(s_.counters[handed_ever], 1) % recent_max] = ready_entry::make(slot, s_.pending[slot] >> 16, 1).word; // 1: in use
    }

    template <class Ready>
    SLIPSTREAM_BOTH void wake_in(team_type& team, u32* row, Ready ready)
    {
        const u32 groups = m_.n.groups();
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < groups; first += 32) {
            typename P::template lane_array<u32, 1> mine; // a word of the row each
            team.each32([&](u32 k) { mine.at(0, k) = first + k < groups ? row[first + k] : 0; });
            u32 words = team.mask32([&](u32 k) { return mine.at(0, k) != 0; });
            team.each32([&](u32 k) {
                if (mine.at(0, k) != 0) row[first + k] = 0;
            });
            SLIPSTREAM_ONE_COPY
            for (; words != 0; words &= words - 1) {
                const u32 w = lowest_bit(words);
                const u32 waiting = team.from_lane(mine, w);
                const u32 staged = s_.staged[first + w];
                u32* const pending = s_.pending + 32 * (first + w);
                typename P::template lane_array<u32, 1> left;
                const u32 freed = team.mask32([&](u32 k) {
                    if (!(waiting >> k & 1)) return false;
                    left.at(0, k) = --pending[k];
                    return (left.at(0, k) & pending_mask) == 0;
                }) & ~staged;
                if (freed == 0) continue;
                ready(32 * (first + w), freed, [&](u32 k) { return ready_entry::make(32 * (first + w) + k, left.at(0, k) >> 16); });
                // The scheduler is at work with them by now.
                team.each32([&](u32 k) {
                    if (freed >> k & 1) hand(team, 32 * (first + w) + k);
                });
            }
        }
    }

    static constexpr u32 pending_mask = 0xffff; ///< of `pending`; the upper half holds the link number
    static_assert(window_slots_max <= pending_mask && recent_max == 32);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
