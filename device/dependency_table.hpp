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
// COST    every operation takes up to 32 tasks, a lane each, and costs much the same for one as for 32. Link: a word of the row for each
//         32 slots, and for each predecessor one bit set. Complete: the row of successors, and a count down for each; a task with
//         many (wide) takes turns with the others: then a lane a successor. Staging: waits_max looks a lane. Fast memory, up to a
//         window of sizes::successors_near_max.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class dependency_table {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH dependency_table(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Takes in tasks in program order: slot_of(k), k < count <= 32, the first one as `link_number`, each with the row row_of(k) if
    /// has_row(k). Hands over those that wait for nobody; returns their mask.
    template <class SlotOf, class HasRow, class RowOf>
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 count, u32 link_number, SlotOf slot_of, HasRow has_row, RowOf row_of)
    {
        // All of them before the first row: one may wait for another.
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slot_of(k);
            s_.pending[slot] = (link_number + k) << 16;
            const task_head head = P::get(s_.heads[slot]);
            s_.identities[slot] = head.identity;
            s_.blocks[slot] = head.blocks <= m_.n.workers ? head.blocks : 0;
            team.set_bits(s_.arriving[slot / 32], 1u << slot % 32);
        });
        team.sync();
        typename P::template lane_array<u32, 1> waits;
        u32 rows = team.mask32([&](u32 k) {
            waits.at(0, k) = 0;
            return k < count && has_row(k);
        });
        // A few tasks are entered sooner one after another, by all lanes together. And always where the rows of successors lie in device
        // memory: they are changed without atomics, which would pass by the L1 that plain loads read.
        if (popcount(rows) <= few || !m_.n.successors_near()) {
            SLIPSTREAM_ONE_COPY
            for (; rows != 0; rows &= rows - 1) {
                const u32 task = lowest_bit(rows);
                const u32 found = find_together(team, slot_of(task), row_of(task));
                team.each32([&](u32 k) { if (k == task) waits.at(0, k) = found; });
            }
        } else {
            team.each32([&](u32 k) { if (rows >> k & 1) waits.at(0, k) = find_predecessors(team, slot_of(k), row_of(k)); });
        }
        const u32 free = team.mask32([&](u32 k) { return k < count && waits.at(0, k) == 0; });
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slot_of(k);
            s_.pending[slot] = waits.at(0, k) | (link_number + k) << 16;
            team.set_bits(s_.in_flight[slot / 32], 1u << slot % 32);
            team.clear_bits(s_.arriving[slot / 32], 1u << slot % 32);
        });
        hand(team, free, slot_of);
        return free;
    }

    SLIPSTREAM_BOTH bool is(const u32* bits, u32 slot) const { return (bits[slot / 32] >> slot % 32 & 1) != 0; }
    SLIPSTREAM_BOTH u32 pending(u32 slot) const { return s_.pending[slot] & pending_mask; }

    /// Is this task, linked as `link_number`, still here and neither handed over nor ready?
    SLIPSTREAM_BOTH bool waits(u32 slot, u32 link_number) const
    {
        const u32 entry = s_.pending[slot];
        return entry >> 16 == (link_number & 0xffff) && (entry & pending_mask) != 0 && !is(s_.staged, slot);
    }

    /// By a lane: may a task that waits be staged, if those that `soon(slot)` tells of are handed over before it? Then a bit for each place
    /// of its list that holds one it waits for; else 0. No branches: loads of three places fly together.
    template <class Soon>
    SLIPSTREAM_BOTH u32 may_stage(u32 slot, Soon soon) const
    {
        const predecessor_list list{s_.waits_for[slot]};
        bool good = (pending(slot) <= waits_max) & list.complete();
        u32 places = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_max; ++i) {
            const u32 p = list.slot(i); // of an empty place 0: looked at, not used
            const bool there = (i < list.count()) & waits_on(slot, p);
            good &= (!there) | is(s_.handed, p) | (soon(p) & !is(s_.tainted, p));
            places |= static_cast<u32>(there) << i;
        }
        return good ? places : 0;
    }

    /// A task that had more predecessors than a list holds, and has few enough now: writes them down. Seldom.
    SLIPSTREAM_BOTH void list_again(team_type& team, u32 slot)
    {
        if (pending(slot) > waits_max || predecessor_list{s_.waits_for[slot]}.complete()) return;
        constexpr u32 words = 4;
        predecessor_list list{};
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < m_.n.groups(); g += words) {
            u32 mine[words];
            team.masks32(
                mine,
                [&](u32 n, u32 k) { return g + n < m_.n.groups() ? s_.successor_word((32 * (g + n) + k) * m_.n.groups() + slot / 32) : 0; },
                [&](u32, u32, u32 word) { return (word >> slot % 32 & 1) != 0; });
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < words; ++n)
                for (; mine[n] != 0; mine[n] &= mine[n] - 1) list.add(32 * (g + n) + lowest_bit(mine[n]));
        }
        team.sync();
        if (team.leader()) s_.waits_for[slot] = list.word;
        team.sync();
    }

    /// Hands over tasks that wait, slot_of(k) for each bit of `tasks`, each of which may_stage behind those before it, with places_of(k):
    /// staged(k, number of tasks that it waits for) is called by lanes.
    template <class SlotOf, class PlacesOf, class Staged>
    SLIPSTREAM_BOTH void stage(team_type& team, u32 tasks, SlotOf slot_of, PlacesOf places_of, Staged staged)
    {
        team.each32([&](u32 k) {
            if (tasks >> k & 1) team.set_bits(s_.staged[slot_of(k) / 32], 1u << slot_of(k) % 32);
        });
        hand(team, tasks, slot_of); // now all targets are what they come to
        team.each32([&](u32 k) {
            if (!(tasks >> k & 1)) return;
            const u32 slot = slot_of(k);
            const predecessor_list list{s_.waits_for[slot]};
            const u32 places = places_of(k);
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_max; ++i) {
                const u32 p = list.slot(i);
                const awaited_task before{p, s_.targets[p], s_.identities[p], 0};
                if (places >> i & 1) P::set(s_.waits[slot * waits_max + popcount(places & ((1u << i) - 1))], before);
            }
            staged(k, popcount(places));
        });
        team.sync();
    }

    /// Forgets completed tasks, slot_of(k) for each bit of `tasks`, none of which waits for anybody, and wakes those that wait for
    /// them. Who waits for nobody now is handed over: ready(entry, place) is called by lanes, shown(count) by all lanes when `count`
    /// places are filled. `mailed`: those whose blocks have counted, or will.
    template <class SlotOf, class Ready, class Shown>
    SLIPSTREAM_BOTH void complete(team_type& team, u32 tasks, u32 mailed, SlotOf slot_of, Ready ready, Shown shown)
    {
        const u32 woken = team.mask32([&](u32 k) { return (tasks >> k & 1) && is(s_.awaited, slot_of(k)); });
        u32 blocks = 0, count = 0; // handed over, less those taken off; of this lane
        if (woken != 0) wake(team, woken, slot_of, ready, shown, blocks, count);
        team.each32([&](u32 k) {
            if (!(tasks >> k & 1)) return;
            const u32 slot = slot_of(k);
            const u32 bit = 1u << slot % 32;
            take_off(team, slot, (mailed >> k & 1) != 0, blocks, count);
            team.clear_bits(s_.in_flight[slot / 32], bit);
            if (woken >> k & 1) team.clear_bits(s_.awaited[slot / 32], bit);
        });
        note(team, blocks, count);
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
        team.sync();
        u32 blocks = 0, count = 0;
        if (team.leader()) take_off(team, slot, mailed, blocks, count);
        note(team, blocks, count);
        const bool free = pending(slot) == 0;
        if (free) hand(team, 1, [&](u32) { return slot; });
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

private:
    SLIPSTREAM_BOTH bool waits_on(u32 slot, u32 predecessor) const
    {
        return (s_.successor_word(predecessor * m_.n.groups() + slot / 32) >> slot % 32 & 1) != 0;
    }

    /// Of the predecessors in word g of a row, those that are not complete. A row may name a complete task whose slot comes again, behind
    /// this one, among those that arrive.
    SLIPSTREAM_BOTH u32 still_there(u32 named, u32 g, u32 number) const
    {
        const u32 arriving = s_.arriving[g];
        u32 before = named & (s_.in_flight[g] | arriving);
        SLIPSTREAM_ONE_COPY
        for (u32 bits = before & arriving; bits != 0; bits &= bits - 1)
            if (static_cast<std::int16_t>((s_.pending[32 * g + lowest_bit(bits)] >> 16) - number) > 0) before &= ~(bits & (0 - bits));
        return before;
    }

    /// By a lane: enters a task of those that arrive with its predecessors, and returns how many they are.
    template <class Row>
    SLIPSTREAM_BOTH u32 find_predecessors(team_type& team, u32 slot, const Row* row) const
    {
        const u32 groups = m_.n.groups();
        predecessor_list list{};
        u32 count = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < groups; ++g) {
            const u32 before = still_there(P::get(row[g]), g, s_.pending[slot] >> 16);
            if (before == 0) continue;
            team.set_bits(s_.awaited[g], before);
            SLIPSTREAM_ONE_COPY
            for (u32 bits = before; bits != 0; bits &= bits - 1) {
                const u32 p = 32 * g + lowest_bit(bits);
                team.set_bits(s_.successors_near[p * groups + slot / 32], 1u << slot % 32);
                list.add(p);
                ++count;
            }
        }
        s_.waits_for[slot] = list.word;
        return count;
    }

    /// The same by all lanes, a word of the row each.
    template <class Row>
    SLIPSTREAM_BOTH u32 find_together(team_type& team, u32 slot, const Row* row) const
    {
        const u32 groups = m_.n.groups();
        predecessor_list list{};
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < groups; first += 32) {
            typename P::template lane_array<u32, 1> before;
            u32 words = team.mask32([&](u32 k) {
                const u32 g = first + k;
                before.at(0, k) = g < groups ? still_there(P::get(row[g]), g, s_.pending[slot] >> 16) : 0;
                if (before.at(0, k) == 0) return false;
                s_.awaited[g] |= before.at(0, k);
                SLIPSTREAM_ONE_COPY
                for (u32 bits = before.at(0, k); bits != 0; bits &= bits - 1) { // rows of different predecessors: lanes never meet
                    const u32 at = (32 * g + lowest_bit(bits)) * groups + slot / 32;
                    s_.set_successor_word(at, s_.successor_word(at) | 1u << slot % 32);
                }
                return true;
            });
            SLIPSTREAM_ONE_COPY
            for (; words != 0; words &= words - 1) {
                const u32 word = team.from_lane(before, lowest_bit(words));
                if (list.count() + popcount(word) > waits_max) {
                    list.word += static_cast<u64>(popcount(word)) << 48; // no longer complete: only the number counts
                    continue;
                }
                SLIPSTREAM_ONE_COPY
                for (u32 bits = word; bits != 0; bits &= bits - 1) list.add(32 * (first + lowest_bit(words)) + lowest_bit(bits));
            }
        }
        if (team.leader()) s_.waits_for[slot] = list.word;
        team.sync();
        return list.count();
    }

    /// The tasks slot_of(k), for each bit of `tasks`, go to the scheduler.
    template <class SlotOf>
    SLIPSTREAM_BOTH void hand(team_type& team, u32 tasks, SlotOf slot_of)
    {
        u32 blocks = 0, count = 0;
        team.each32([&](u32 k) {
            if (tasks >> k & 1) hand_one(team, slot_of(k), blocks, count);
        });
        note(team, blocks, count);
    }

    /// By a lane, which has handed over so many blocks and tasks.
    SLIPSTREAM_BOTH void hand_one(team_type& team, u32 slot, u32& blocks, u32& count)
    {
        const u32 mine = s_.blocks[slot];
        if (mine == 0) return;
        s_.targets[slot] += mine;
        blocks += mine;
        ++count;
        if (!is(s_.tainted, slot)) team.set_bits(s_.handed[slot / 32], 1u << slot % 32);
    }

    /// By a lane: a completed or skipped task is no longer with the scheduler. `mailed`: its blocks have counted, or will.
    SLIPSTREAM_BOTH void take_off(team_type& team, u32 slot, bool mailed, u32& blocks, u32& count)
    {
        const u32 mine = s_.blocks[slot];
        if (mine == 0) return;
        const u32 bit = 1u << slot % 32;
        team.clear_bits(s_.handed[slot / 32], bit);
        team.clear_bits(s_.staged[slot / 32], bit);
        blocks -= mine;
        --count;
        if (!mailed) s_.targets[slot] -= mine;
    }

    SLIPSTREAM_BOTH void note(team_type& team, u32 blocks, u32 count)
    {
        const u32 all_blocks = team.reduce_add(blocks);
        const u32 all_tasks = team.reduce_add(count);
        if (team.leader()) {
            s_.counters[handed_blocks] += all_blocks;
            s_.counters[handed_tasks] += all_tasks;
        }
        team.sync();
    }

    template <class SlotOf, class Ready, class Shown>
    SLIPSTREAM_BOTH void wake(team_type& team, u32 tasks, SlotOf slot_of, Ready ready, Shown shown, u32& blocks, u32& count)
    {
        const u32 groups = m_.n.groups();
        // A task by itself is done sooner by all lanes together, one with many successors, too.
        u32 wide = tasks;
        if ((tasks & (tasks - 1)) != 0) {
            if (team.leader()) s_.counters[woken_tasks] = 0;
            wide = team.mask32([&](u32 k) {
                if (!(tasks >> k & 1)) return false;
                const u32 row = slot_of(k) * groups;
                u32 room = narrow_max;
                SLIPSTREAM_ONE_COPY
                for (u32 g = 0; g < groups; ++g) {
                    const u32 waiting = s_.successor_word(row + g);
                    if (waiting == 0) continue;
                    if (popcount(waiting) > room) return true;
                    room -= popcount(waiting);
                    s_.set_successor_word(row + g, 0);
                    SLIPSTREAM_ONE_COPY
                    for (u32 bits = waiting; bits != 0; bits &= bits - 1) {
                        const u32 slot = 32 * g + lowest_bit(bits);
                        const u32 left = team.add(s_.pending[slot], ~u32{0}) - 1;
                        if ((left & pending_mask) != 0 || is(s_.staged, slot)) continue;
                        ready(ready_entry::make(slot, left >> 16), team.add(s_.counters[woken_tasks], 1));
                        hand_one(team, slot, blocks, count);
                    }
                }
                return false;
            });
            const u32 woken = s_.counters[woken_tasks];
            team.sync();
            if (woken != 0) shown(woken);
        }
        SLIPSTREAM_ONE_COPY
        for (; wide != 0; wide &= wide - 1) {
            typename P::template lane_array<u32, 1> slots;
            team.each32([&](u32 k) { slots.at(0, k) = wide >> k & 1 ? slot_of(k) : 0; });
            const u32 row = team.from_lane(slots, lowest_bit(wide)) * groups;
            SLIPSTREAM_ONE_COPY
            for (u32 first = 0; first < groups; first += 32) {
                typename P::template lane_array<u32, 1> mine; // a word of the row each
                u32 words = team.mask32([&](u32 k) {
                    mine.at(0, k) = first + k < groups ? s_.successor_word(row + first + k) : 0;
                    if (mine.at(0, k) != 0) s_.set_successor_word(row + first + k, 0);
                    return mine.at(0, k) != 0;
                });
                SLIPSTREAM_ONE_COPY
                for (; words != 0; words &= words - 1) {
                    const u32 g = first + lowest_bit(words);
                    const u32 waiting = team.from_lane(mine, lowest_bit(words));
                    const u32 staged = s_.staged[g];
                    typename P::template lane_array<u32, 1> left;
                    const u32 freed = team.mask32([&](u32 k) {
                        if (!(waiting >> k & 1)) return false;
                        left.at(0, k) = --s_.pending[32 * g + k];
                        return (left.at(0, k) & pending_mask) == 0;
                    }) & ~staged;
                    if (freed == 0) continue;
                    team.each32([&](u32 k) {
                        if (freed >> k & 1) ready(ready_entry::make(32 * g + k, left.at(0, k) >> 16), popcount(freed & ((1u << k) - 1)));
                    });
                    shown(popcount(freed));
                    team.each32([&](u32 k) { // the scheduler is at work with them by now
                        if (freed >> k & 1) hand_one(team, 32 * g + k, blocks, count);
                    });
                }
            }
        }
    }

    static constexpr u32 pending_mask = 0xffff; ///< of `pending`; the upper half holds the link number
    static constexpr u32 few = 3;        ///< tasks that are not worth a lane each
    static constexpr u32 narrow_max = 6; ///< successors that a lane wakes by itself
    static_assert(window_slots_max <= pending_mask);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
