// The dependency table: who waits for whom, among the tasks that the linker has taken in, and who may be staged behind whom.
//
// A task is linked with the predecessors that admission found: a row, and a list of the first ones. Those that are complete by now
// are dropped. Each predecessor keeps a row of successors, each successor a count of predecessors: a completion clears one row and
// counts down.
//
// EDGES   that another one implies are not entered, where it is cheap to see (waits_max predecessors at most): with whom the
//         predecessor that was linked last waits for, as far as the first waits_near_max places of its list tell. (A task that is
//         complete has seen all that it waited for complete, on its worker, too.) Failures do not go by edges, but by what tasks
//         read, judged when their turn comes; who is staged is skipped till then, for a failure of any that it waits for, and so
//         are those staged behind it. No worker skips for a stand-in: an edge from or to one is always entered.
// STAGING A task is handed to the scheduler when it waits for nobody, or staged: when all it waits for was handed over before it
//   (waits_max tasks at most). Its workers then wait for the finished counts of those. The scheduler mails in the order in which
//   tasks are handed over, so whatever a mail waits for was mailed before it (but for other parts' tasks, and stand-ins).
//   A task of more blocks than workers draws tickets and cannot be waited for in this way, nor can one in a tainted slot.
//   A clear_failure is not staged, so that nobody is behind it before its turn: until then the scheduler declines what is staged,
//   and whoever is staged behind that before this role hears so must be declined, too.
//   What crosses: crossing_stage.hpp.
// OWNERS  the linker role alone, but for `brief`, `joins`, `joins_both`, `targets` and what they wait for
//         (control_state::set_awaited), which the scheduler reads of tasks that were handed over.
// COST    every operation takes up to 32 tasks, a lane each, and costs much the same for one as for 32. What counts is how many
//         instructions the warp goes through, 10 to 12 cycles each (device/measured.md): not what lies between a load and its use.
//         Link: for each predecessor one bit set and an entry of its list, four at once where no task has more; else a lane a
//         predecessor, 32 at a time. Complete: a count down for each
//         successor: those of a list by four lanes a task, eight tasks at a time, without a look at a row; of a task with more
//         than a list holds by all lanes, a word of its row at a time.
//         Staging: a look for each predecessor; written down, where a task waits for more than three, a lane each. Fast memory;
//         in a window of more than successors_near_max a task's successors lie in device memory, row and list: a bit set is not
//         waited for, a look is (all of a call's first places together).
#pragma once
#include "device/crossing_stage.hpp"

namespace slipstream::device {

template <class P, bool Several = true>
class dependency_table {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH dependency_table(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), crossing_(memory, state), handed_blocks_(state.counters[handed_blocks]),
          handed_tasks_(state.counters[handed_tasks]), handed_lasting_(state.counters[handed_lasting]),
          in_flight_(state.counters[saved_in_flight]), early_(state.counters[saved_early])
    {
    }
    /// By the leader.
    SLIPSTREAM_BOTH void save()
    {
        crossing_.save();
        s_.counters[saved_in_flight] = in_flight_;
        s_.counters[saved_early] = early_;
    }

    /// Tasks linked and not forgotten (complete, and all they waited for, too), and those of them that are complete.
    SLIPSTREAM_BOTH u32 in_flight() const { return in_flight_; }
    SLIPSTREAM_BOTH u32 early() const { return early_; }

    /// How tasks that cross are staged: of use where there are several parts.
    SLIPSTREAM_BOTH crossing_stage<P>& crossing() { return crossing_; }

    /// Of tasks handed to the scheduler and not complete, without those that draw tickets: their blocks, how many they are, and
    /// how many of them do not promise to be brief.
    SLIPSTREAM_BOTH u32 blocks_handed() const { return handed_blocks_; }
    SLIPSTREAM_BOTH u32 tasks_handed() const { return handed_tasks_; }
    SLIPSTREAM_BOTH u32 lasting_handed() const { return handed_lasting_; }

    /// Takes in tasks in program order: slot_of(k), k < count <= 32, the first one as `link_number`, each with the predecessors
    /// that the row at place_of(k) names, if has_row(k). Hands over those that wait for nobody; returns their mask.
    template <class SlotOf, class HasRow, class PlaceOf>
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 count, u32 link_number, SlotOf slot_of, HasRow has_row, PlaceOf place_of)
    {
        if (some_old_) {
            bool mine = false;
            SLIPSTREAM_ONE_COPY
            for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) mine |= s_.old[g] != 0;
            some_old_ = team.any(mine);
        }
        // All of them before the first row: one may wait for another.
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slot_of(k);
            s_.pending[slot] = (link_number + k) << 16;
            const task_head head = P::get(s_.heads[slot]);
            s_.identities[slot] = head.identity;
            const bool brief = s_.types[head.slot_and_type >> 16].brief != 0;
            s_.loads[slot] = {(head.blocks <= m_.n.workers ? head.blocks : 0) | (brief ? linked_load::brief_bit : 0)
                              | (head.has(abi::flag_clear_failure) ? linked_load::clears_bit : 0)
                              | (several() && head.crosses() ? linked_load::crosses_bit : 0)
                              | (several() && head.stands_in() ? linked_load::stands_in_bit : 0)};
            if (brief) team.set_bits(s_.brief[slot / 32], 1u << slot % 32);
            else team.clear_bits(s_.brief[slot / 32], 1u << slot % 32);
            team.set_bits(s_.arriving[slot / 32], 1u << slot % 32);
            if (some_old_) team.clear_bits(s_.old[slot / 32], 1u << slot % 32);
            s_.waits_for[slot].number = 0; // what was there is another task's
        });
        team.sync();
        lane_values waits;
        const u32 rows = team.mask32([&](u32 k) {
            waits.at(0, k) = 0;
            return k < count && has_row(k);
        });
        enter_apart(team, rows, link_number, slot_of, place_of, waits);
        if (several()) // as for one more predecessor
            team.each32([&](u32 k) {
                if (k < count && s_.loads[slot_of(k)].crosses()) waits.at(0, k) += crossing_.meet(slot_of(k));
            });
        const u32 free = team.mask32([&](u32 k) { return k < count && waits.at(0, k) == 0; });
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slot_of(k);
            s_.pending[slot] = waits.at(0, k) | (link_number + k) << 16;
            team.set_bits(s_.in_flight[slot / 32], 1u << slot % 32);
            team.clear_bits(s_.arriving[slot / 32], 1u << slot % 32);
        });
        in_flight_ += count;
        if (free != 0) hand(team, free, slot_of);
        if (several()) look_ahead(team, count, slot_of, waits);
        return free;
    }

    /// Link numbers have 16 bits, and a task may be here while any number of others are linked. At each 2^numbers_bits of them,
    /// whoever is here is old: from then on nothing is concluded from when it was linked.
    SLIPSTREAM_BOTH void grow_old(team_type& team)
    {
        team.sync(); // whoever was linked last is in flight
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) s_.old[g] |= s_.in_flight[g];
        team.sync();
        some_old_ = true;
    }
    static constexpr u32 numbers_bits = 14;

    SLIPSTREAM_BOTH task_head head(u32 slot) const { return P::get(s_.heads[slot]); }
    /// Takes in that stand-ins are ready, word_of(k) for each k < count <= 32. Who waits for nobody now is handed over:
    /// ready(entry, place) is called by lanes. Returns how many these are.
    template <class WordOf, class Ready>
    SLIPSTREAM_BOTH u32 arrive(team_type& team, u32 count, WordOf word_of, Ready ready)
    {
        typename P::template lane_array<u32, 1> met, entries;
        team.each32([&](u32 k) {
            if (k < count) met.at(0, k) = crossing_.note_arrival(team, word_of(k));
        });
        team.sync(); // all of them are noted, whose task is to have a list of them
        lane_books books;
        const u32 freed = team.mask32([&](u32 k) {
            const u32 task = k < count ? crossing_.met_by(word_of(k), met.at(0, k)) : 0;
            return task != 0 && count_down(team, task - 1, entries.at(0, k), books); // one lane a task
        });
        team.each32([&](u32 k) {
            if (!(freed >> k & 1)) return;
            const ready_entry entry{entries.at(0, k)};
            ready(entry, popcount(freed & ((1u << k) - 1)));
            hand_one(team, entry.slot(), books);
        });
        note(team, books);
        return popcount(freed);
    }

    SLIPSTREAM_BOTH bool is(const u32* bits, u32 slot) const { return (bits[slot / 32] >> slot % 32 & 1) != 0; }
    /// Of the task that was linked there last.
    SLIPSTREAM_BOTH bool is_brief(u32 slot) const { return s_.loads[slot].brief(); }
    SLIPSTREAM_BOTH u32 blocks(u32 slot) const { return s_.loads[slot].blocks(); }
    SLIPSTREAM_BOTH linked_load load(u32 slot) const { return s_.loads[slot]; }
    SLIPSTREAM_BOTH u32 pending(u32 slot) const { return s_.pending[slot] & pending_mask; }

    /// Is this task, linked as `link_number`, still here and neither handed over nor ready?
    SLIPSTREAM_BOTH bool waits(u32 slot, u32 link_number) const
    {
        const u32 entry = s_.pending[slot];
        // no branches: both loads fly together
        return (entry >> 16 == (link_number & 0xffff)) & ((entry & pending_mask) != 0) & !is(s_.staged, slot);
    }

    /// By a lane: may a task that waits be staged, if those that `soon(slot)` tells of are handed over before it? Then may_bit and
    /// a bit for each place of its list that holds one it waits for; else 0. No branches for the first places: their loads fly
    /// together.
    template <class Soon>
    SLIPSTREAM_BOTH u32 may_stage(u32 slot, Soon soon) const
    {
        const predecessor_list list = s_.waits_for[slot];
        bool good = (pending(slot) <= waits_max) & list.complete();
        u32 places = 0;
        const auto look = [&](u32 i, u32 p, bool filled) {
            const bool there = filled & waits_on(slot, p);
            good &= (!there) | is(s_.handed, p) | (soon(p) & !is(s_.tainted, p));
            places |= static_cast<u32>(there) << i;
        };
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            look(i, list.slots[i], i < list.number); // an empty place's slot is looked at, not used
        if (good & (list.number > waits_near_max)) {
            const more_predecessors more = s_.waits_for_more[slot];
            SLIPSTREAM_ONE_COPY
            for (u32 first = 0; waits_near_max + first < list.number && good; first += more.at_once) {
                const u64 four = more.four(first / more.at_once);
                SLIPSTREAM_UNROLL
                for (u32 i = 0; i < more.at_once; ++i) {
                    const u32 place = waits_near_max + first + i;
                    look(place, more.in_four(four, i), place < list.number);
                }
            }
        }
        return good ? places | may_bit : 0;
    }
    static constexpr u32 may_bit = 1u << 31;
    static_assert(waits_max < 31);

    /// A task that had more predecessors than a list holds, and has few enough now: writes them down. Seldom.
    SLIPSTREAM_BOTH void list_again(team_type& team, u32 slot)
    {
        if (pending(slot) > waits_max || s_.waits_for[slot].complete()) return;
        constexpr u32 words = 4;
        u32 count = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < m_.n.groups(); g += words) {
            u32 mine[words];
            team.masks32(
                mine,
                [&](u32 n, u32 k) {
                    return g + n < m_.n.groups() ? s_.successor_word((32 * (g + n) + k) * m_.n.groups() + slot / 32) : 0;
                },
                [&](u32, u32, u32 word) { return (word >> slot % 32 & 1) != 0; });
            if (!team.leader()) continue;
            SLIPSTREAM_UNROLL
            for (u32 n = 0; n < words; ++n)
                for (; mine[n] != 0; mine[n] &= mine[n] - 1) // waits_max at most
                    s_.set_predecessor(slot, count++, 32 * (g + n) + lowest_bit(mine[n]));
        }
        if (team.leader()) s_.waits_for[slot].number = static_cast<u16>(count);
        team.sync();
    }

    /// Hands over tasks that wait, slot_of(k) for each bit of `tasks`, each of which may_stage behind those before it, with
    /// places_of(k): staged(k, number of tasks that it waits for) is called by lanes. Of all its predecessors the one that was
    /// linked last is number 0 (control_state::set_awaited), if it is among these.
    template <class SlotOf, class PlacesOf, class Staged>
    SLIPSTREAM_BOTH void stage(team_type& team, u32 tasks, SlotOf slot_of, PlacesOf places_of, Staged staged)
    {
        team.each32([&](u32 k) {
            if (tasks >> k & 1) team.set_bits(s_.staged[slot_of(k) / 32], 1u << slot_of(k) % 32);
        });
        hand(team, tasks, slot_of); // now all targets are what they come to
        const u32 longer = team.mask32([&](u32 k) { return (tasks >> k & 1) != 0 && places_of(k) >> waits_near_max != 0; });
        if (longer != 0) note_all_awaited(team, longer, slot_of, places_of);
        team.each32([&](u32 k) {
            if (!(tasks >> k & 1)) return;
            const u32 slot = slot_of(k), places = places_of(k);
            if (!(longer >> k & 1)) note_awaited(slot, places);
            if (places != 0) note_joins(team, slot, s_.predecessor(slot, lowest_bit(places)));
            const bool crosses = several() && s_.loads[slot].crosses();
            if (crosses) crossing_.list(slot);
            staged(k, crosses ? crossing_.note_awaited(slot, popcount(places)) : popcount(places));
        });
        team.sync();
    }

    /// Takes in that tasks are complete, slot_of(k) for each bit of `tasks`, and wakes those that wait for them. Who waits for
    /// nobody now is handed over: ready(entry, place) is called by lanes, shown(count) by all lanes when `count` places are
    /// filled. `mailed`: those whose blocks have counted, or will. Forgets those that wait for nobody. The others are early: a
    /// staged task stays until all that it waits for are known to be complete, or their counts down would fall on whoever has its
    /// slot next.
    template <class SlotOf, class Ready, class Shown>
    SLIPSTREAM_BOTH void complete(team_type& team, u32 tasks, u32 mailed, SlotOf slot_of, Ready ready, Shown shown)
    {
        lane_books books;
        wake(team, tasks, slot_of, ready, shown, books);
        // All wakings come before this: one of them may have waited for another.
        const u32 done = team.mask32([&](u32 k) { return (tasks >> k & 1) && pending(slot_of(k)) == 0; });
        team.each32([&](u32 k) {
            if (done >> k & 1) forget(team, slot_of(k), (mailed >> k & 1) != 0, books);
            else if (tasks >> k & 1) team.set_bits(s_.early[slot_of(k) / 32], 1u << slot_of(k) % 32);
        });
        early_ += popcount(tasks & ~done);
        in_flight_ -= popcount(done);
        note(team, books);
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
        lane_books books;
        if (team.leader()) take_off(team, slot, mailed, books);
        note(team, books);
        const bool free = pending(slot) == 0;
        if (free) hand(team, 1, [&](u32) { return slot; });
        return free;
    }

    /// A task that was handed over will not run: if another part was told of it, its count says so there.
    SLIPSTREAM_BOTH bool break_if_pointed_at(team_type& team, u32 slot)
    {
        if (!crossing_.is_pointed_at(slot) || blocks(slot) == 0) return false; // of a stand-in: below
        crossing_.break_count(team, slot, blocks(slot));
        taint(team, slot);
        return true;
    }
    /// A stand-in's task has failed, or did not run: who waits behind the stand-in is told likewise.
    SLIPSTREAM_BOTH void break_stand_in(team_type& team, u32 slot)
    {
        crossing_.break_count(team, slot, 1);
        taint(team, slot);
    }

    /// Sets the finished counts of tainted slots back. Nobody may be waiting: no task is in flight. True when all of them were: a
    /// worker's last addition may still be on its way. Never once another part was told of tasks here: its workers may be waiting,
    /// so that those slots stay tainted.
    SLIPSTREAM_BOTH bool cleanse(team_type& team)
    {
        if (several() && crossing_.has_told()) return true;
        bool late = false;
        SLIPSTREAM_ONE_COPY
        for (u32 slot = team.rank(); slot < m_.n.window; slot += team.size()) {
            if (!is(s_.tainted, slot)) continue;
            auto& record = m_.records[slot];
            if (finished_count{P::load(edge::A12_finished, record.finished, order::relaxed, scope::device)}.blocks()
                != P::get(s_.targets[slot])) {
                late = true;
                continue;
            }
            P::store(edge::P6_finished_reset, record.finished, u64{0}, order::relaxed, scope::device);
            P::set(s_.targets[slot], 0u);
            team.clear_bits(s_.tainted[slot / 32], 1u << slot % 32);
        }
        return !team.any(late);
    }

private:
    using lane_values = typename P::template lane_array<u32, 1>;
    SLIPSTREAM_BOTH bool several() const { return Several && m_.n.parts > 1; }
    SLIPSTREAM_BOTH auto* row_at(u32 place) const { return s_.predecessors + place * m_.n.groups(); }
    SLIPSTREAM_BOTH bool waits_on(u32 slot, u32 predecessor) const
    {
        return (s_.successor_word(predecessor * m_.n.groups() + slot / 32) >> slot % 32 & 1) != 0;
    }

    /// Of tasks that were linked, and of how many each waits: those of them that are stand-ins. Where their tasks' workers will
    /// count a block, others may be staged behind them from now on; what one waits for alone its home is told.
    template <class SlotOf, class Waits>
    SLIPSTREAM_BOTH void look_ahead(team_type& team, u32 count, SlotOf slot_of, Waits& waits)
    {
        const u32 stand_ins = team.mask32([&](u32 k) { return k < count && s_.loads[slot_of(k)].stands_in(); });
        if (stand_ins == 0) return;
        team.each32([&](u32 k) {
            if ((stand_ins >> k & 1) && head(slot_of(k)).has(abi::flag_counted)) crossing_.expect(team, slot_of(k));
        });
        team.sync();
        if (m_.n.staging == 0 || crossing_.failed()) return;
        typename P::template lane_array<u32, 1> awaited;
        const u32 foreseen = team.mask32([&](u32 k) {
            if (!(stand_ins >> k & 1) || waits.at(0, k) != 1) return false;
            const u32 slot = slot_of(k);
            const predecessor_list list = s_.waits_for[slot];
            u32 p = no_slot;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < list.number && list.complete(); ++i)
                if (const u32 named = s_.predecessor(slot, i); waits_on(slot, named)) p = named;
            awaited.at(0, k) = p;
            return p != no_slot && !is(s_.tainted, p) && (s_.loads[p].stands_in() ? crossing_.is_counted(p) : blocks(p) != 0);
        });
        if (foreseen == 0) return;
        team.each32([&](u32 k) {
            if (!(foreseen >> k & 1)) return;
            const u32 p = awaited.at(0, k);
            crossing_.foresee(team, slot_of(k), p, P::get(s_.targets[p]) + (is(s_.handed, p) ? 0 : blocks(p)));
        });
        team.sync();
    }

    /// Task p, as those that wait for it are told.
    SLIPSTREAM_BOTH awaited_task awaited(u32 p) const
    {
        return {several() && s_.loads[p].stands_in() ? p | awaited_task::stand_in_bit : p, P::get(s_.targets[p]), s_.identities[p]};
    }

    /// By a lane, of a task that waits for those at the first `places` of its list alone: writes them down for its workers. No
    /// loop: all loads fly together.
    SLIPSTREAM_BOTH void note_awaited(u32 slot, u32 places) const
    {
        const predecessor_list list = s_.waits_for[slot];
        awaited_task tasks[waits_near_max];
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            tasks[i] = awaited(places >> i & 1 ? list.slots[i] : slot); // an empty place's slot may be anything
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            if (places >> i & 1) P::set(s_.waits_near[slot * waits_near_max + popcount(places & low_bits(i))], tasks[i]);
    }
    /// The same of tasks that wait for more, slot_of(k) for each bit.
    template <class SlotOf, class PlacesOf>
    SLIPSTREAM_BOTH void note_all_awaited(team_type& team, u32 longer, SlotOf slot_of, PlacesOf places_of) const
    {
        lane_values counts, tasks, number, facts, of_task; // facts: of a task, its slot | places << 16, which its lane alone has
        static_assert(waits_max <= 16);
        team.each32([&](u32 k) {
            counts.at(0, k) = longer >> k & 1 ? s_.waits_for[slot_of(k)].number : 0;
            facts.at(0, k) = slot_of(k) | places_of(k) << 16;
            tasks.at(0, k) = 0;
        });
        by_items(team, counts, tasks, number, [&](u32 there) {
            team.gather32(facts, tasks, of_task);
            team.each32([&](u32 k) {
                const u32 i = number.at(0, k), slot = of_task.at(0, k) & 0xffff, places = of_task.at(0, k) >> 16;
                if (!(there >> k & 1) || !(places >> i & 1)) return;
                s_.set_awaited(slot, popcount(places & low_bits(i)), awaited(s_.predecessor(slot, i)));
            });
        });
    }

    /// By a lane: may the answer to the last one that the task waits for come with the task's own?
    SLIPSTREAM_BOTH void note_joins(team_type& team, u32 slot, u32 last)
    {
        const u32 successors = is_brief(slot) ? s_.loads[last].successors() : 0;
        const auto note = [&](u32* bits, bool is) {
            if (is) team.set_bits(bits[slot / 32], 1u << slot % 32);
            else team.clear_bits(bits[slot / 32], 1u << slot % 32);
        };
        note(s_.joins, successors == 1);
        note(s_.joins_both, successors == 2);
    }

    /// Tasks are numbered as they are linked, modulo 2^16.
    SLIPSTREAM_BOTH u32 number_of(u32 slot) const { return s_.pending[slot] >> 16; }
    SLIPSTREAM_BOTH static bool is_later(u32 number, u32 than) { return static_cast<std::int16_t>(number - than) > 0; }

    /// Of the predecessors in word g of a row, those that are not complete. A row may name a complete task whose slot comes again,
    /// behind this one, among those that arrive: comes_after().
    SLIPSTREAM_BOTH u32 still_there(u32 named, u32 g) const
    {
        return named & ((several() ? s_.in_flight[g] & ~s_.early[g] : s_.in_flight[g]) | s_.arriving[g]);
    }
    SLIPSTREAM_BOTH bool comes_after(u32 slot, u32 number) const
    {
        return is(s_.arriving, slot) && is_later(number_of(slot), number);
    }

    /// A lane for each of the counts.at(0, k) <= waits_max items of task k, in rounds of whole tasks: round(there) is called with
    /// a bit for each lane that has one, of task tasks.at(0, k), number.at(0, k) of it. Where most have one and some have nine,
    /// those would keep the others' lanes waiting.
    template <class Round>
    SLIPSTREAM_BOTH void by_items(team_type& team, lane_values& counts, lane_values& tasks, lane_values& number, Round round) const
    {
        lane_values before; // items of those before it
        const u32 having = team.mask32([&](u32 k) { return (before.at(0, k) = counts.at(0, k)) != 0; });
        team.sums_before(before);
        const u32 all = team.from_lane(before, 31) + team.from_lane(counts, 31);
        team.each32([&](u32 k) {
            if (having >> k & 1) s_.having_items[popcount(having & low_bits(k))] = k | before.at(0, k) << 8;
        });
        team.sync();
        u32 begun = 0; // tasks of the rounds before
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < all;) {
            u32 begins = 0, next = all; // a bit for the first lane of each task
            team.each32([&](u32 k) {
                if (!(having >> k & 1) || before.at(0, k) < first) return;
                const u32 at = before.at(0, k) - first;
                if (at + counts.at(0, k) <= 32) begins |= 1u << at;
                else if (before.at(0, k) < next) next = before.at(0, k);
            });
            begins = team.reduce_add(begins);
            next = team.reduce_min(next);
            team.each32([&](u32 k) {
                if (first + k >= next) return;
                const u32 item = s_.having_items[begun + popcount(begins & low_bits(k + 1)) - 1];
                tasks.at(0, k) = item & 0xff;
                number.at(0, k) = first + k - (item >> 8);
            });
            round(low_bits(next - first));
            begun += popcount(begins);
            first = next;
        }
    }

    /// Each task of `rows` is entered with its predecessors, waits.at(0, k) becomes their number: not with those whom the one that
    /// was linked last waits for by itself, as the first waits_near_max places of its list tell. It is complete after them, and
    /// what they wrote is seen by whoever sees that it is. That one takes the first place in the task's own list.
    template <class SlotOf, class PlaceOf>
    SLIPSTREAM_BOTH void enter_apart(team_type& team, u32 rows, u32 link_number, SlotOf slot_of, PlaceOf place_of,
                                     lane_values& waits) const
    {
        lane_values named; // predecessors; of one with very many none
        enum : u32 { some, more, very_many };
        u32 naming[3];
        team.masks32(naming, [&](u32, u32 k) { return rows >> k & 1 ? P::get(s_.named_count[place_of(k)]) : 0; },
                     [&](u32 n, u32 k, u32 count) {
                         named.at(0, k) = count <= waits_max ? count : 0;
                         return n == very_many ? count > waits_max : n == more ? count > at_once : count != 0;
                     });
        if (naming[more] == 0) {
            team.each32([&](u32 k) {
                if (naming[some] >> k & 1) waits.at(0, k) = enter_few(team, slot_of(k), link_number, k, named.at(0, k), place_of);
            });
            return;
        }
        enter_by_items(team, named, link_number, slot_of, place_of, waits);
        if (naming[very_many] != 0)
            team.each32([&](u32 k) {
                if (naming[very_many] >> k & 1) waits.at(0, k) = enter_many(team, slot_of(k), row_at(place_of(k)));
            });
    }

    /// Of a task's predecessor: how many tasks were linked since | its slot. The least is that of the one that was linked last. ~0
    /// if it is complete: a slot that comes again may stand for it, behind this task.
    SLIPSTREAM_BOTH u32 distance_of(u32 p, u32 number) const
    {
        const u32 other = number_of(p);
        const bool there = (still_there(1u << p % 32, p / 32) != 0) & !(is(s_.arriving, p) & is_later(other, number));
        return there ? (number - other) << 16 | p : ~0u;
    }
    /// Whom a predecessor at that distance from task k of those that arrive, in `slot`, waits for, as far as its first places tell.
    /// A slot in them may have come again since, for a task that was linked later: no predecessor of a task whose last one this is.
    /// A list that had no room for all may hold none of them.
    template <class PlaceOf>
    SLIPSTREAM_BOTH predecessor_list implied_by(u32 distance, u32 slot, u32 k, PlaceOf place_of) const
    {
        const u32 p = distance & 0xffff;
        predecessor_list list;
        if (is(s_.arriving, p)) { // its own list is being written, by other lanes
            const u32 place = place_of(k - (distance >> 16));
            list.number = static_cast<u16>(P::get(s_.named_count[place]));
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_near_max; ++i) list.slots[i] = P::get(s_.named[place * waits_max + i]);
        } else {
            list = s_.waits_for[p];
        }
        const bool stands_in = several() && (((s_.loads[p].word | s_.loads[slot].word) & linked_load::stands_in_bit) != 0);
        if (!list.complete() || stands_in || (some_old_ && is(s_.old, p))) list.number = 0;
        return list;
    }
    SLIPSTREAM_BOTH static bool has(const predecessor_list& list, u32 p)
    {
        bool found = false;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i) found |= (i < list.number) & (list.slots[i] == p);
        return found;
    }

    /// By a lane, of task k of those that arrive, with `count` <= at_once predecessors. Step after step for all of them: their
    /// loads and atomics fly together. In an empty place the task stands itself, and nothing is added. Returns how many entered.
    template <class PlaceOf>
    SLIPSTREAM_BOTH u32 enter_few(team_type& team, u32 slot, u32 link_number, u32 k, u32 count, PlaceOf place_of) const
    {
        u32 p[at_once], place[at_once], distances[at_once];
        u32 nearest = ~0u, enters = 0, last = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) p[i] = i < count ? P::get(s_.named[place_of(k) * waits_max + i]) : slot;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) {
            distances[i] = i < count ? distance_of(p[i], link_number + k) : ~0u;
            last = distances[i] < nearest ? i : last;
            nearest = distances[i] < nearest ? distances[i] : nearest;
        }
        if (nearest == ~0u) return 0;
        const predecessor_list implied = implied_by(nearest, slot, k, place_of);
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i)
            enters |= static_cast<u32>((i == last) | ((distances[i] != ~0u) & !has(implied, p[i]))) << i;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i)
            place[i] = linked_load{team.add(s_.loads[p[i]].word, (enters >> i & 1) * linked_load::successor)}.successors();
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) {
            set_successor(team, p[i], slot, enters >> i & 1);
            if (((enters >> i & 1) != 0) & (place[i] < successors_listed)) s_.set_listed(p[i], place[i], slot);
        }
        s_.waits_for[slot].number = static_cast<u16>(popcount(enters));
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i)
            if (enters >> i & 1) s_.set_predecessor(slot, i == last ? 0 : popcount(enters & low_bits(i)) + (i < last), p[i]);
        return popcount(enters);
    }

    /// Of task k named.at(0, k) predecessors: a lane each.
    template <class SlotOf, class PlaceOf>
    SLIPSTREAM_BOTH void enter_by_items(team_type& team, lane_values& named, u32 link_number, SlotOf slot_of, PlaceOf place_of,
                                        lane_values& waits) const
    {
        team.each32([&](u32 k) { s_.entering[k] = {~0u, 1}; });
        lane_values tasks, number, slots; // slots: of a lane that has a predecessor
        by_items(team, named, tasks, number, [&](u32 there) {
            const u32 enters = team.mask32([&](u32 k) {
                if (!(there >> k & 1)) return false;
                const u32 task = tasks.at(0, k);
                const u32 p = slots.at(0, k) = P::get(s_.named[place_of(task) * waits_max + number.at(0, k)]);
                const u32 distance = distance_of(p, link_number + task);
                team.lower(s_.entering[task].nearest, distance);
                return distance != ~0u;
            });
            team.each32([&](u32 k) {
                if (!(enters >> k & 1)) return;
                const u32 task = tasks.at(0, k), slot = slot_of(task), p = slots.at(0, k), nearest = s_.entering[task].nearest;
                const bool last = p == (nearest & 0xffff);
                if (!last && has(implied_by(nearest, slot, task, place_of), p)) return;
                list_successor(team, p, slot);
                set_successor(team, p, slot, 1);
                s_.set_predecessor(slot, last ? 0 : team.add(s_.entering[task].entered, 1), p);
            });
        });
        team.sync();
        team.each32([&](u32 k) {
            if (named.at(0, k) == 0) return;
            const u32 count = s_.entering[k].nearest != ~0u ? s_.entering[k].entered : 0;
            waits.at(0, k) = count;
            s_.waits_for[slot_of(k)].number = static_cast<u16>(count);
        });
    }

    /// By a lane: enters a task with all of its predecessors, any number.
    template <class Row>
    SLIPSTREAM_BOTH u32 enter_many(team_type& team, u32 slot, const Row* row) const
    {
        u32 count = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < m_.n.groups(); ++g)
            SLIPSTREAM_ONE_COPY
            for (u32 left = still_there(P::get(row[g]), g); left != 0; left &= left - 1) {
                const u32 p = 32 * g + lowest_bit(left);
                if (comes_after(p, number_of(slot))) continue;
                list_successor(team, p, slot);
                set_successor(team, p, slot, 1);
                if (count < waits_max) s_.set_predecessor(slot, count, p);
                ++count;
            }
        s_.waits_for[slot].number = static_cast<u16>(count);
        return count;
    }

    /// By a lane. Others may list successors of the same task.
    SLIPSTREAM_BOTH void list_successor(team_type& team, u32 slot, u32 successor) const
    {
        const u32 place = linked_load{team.add(s_.loads[slot].word, linked_load::successor)}.successors();
        if (place < successors_listed) s_.set_listed(slot, place, successor);
    }

    /// By a lane: notes, if `bit` is 1, that task p has the one in `slot` among its successors. Others may change the same word.
    SLIPSTREAM_BOTH void set_successor(team_type& team, u32 p, u32 slot, u32 bit) const
    {
        const u32 at = p * m_.n.groups() + slot / 32;
        if (s_.rows_near) team.set_bits(s_.successors_near[at], bit << slot % 32);
        else if (bit != 0) team.set_bits(s_.successors_far[at], bit << slot % 32);
    }

    /// The tasks slot_of(k), for each bit of `tasks`, go to the scheduler.
    template <class SlotOf>
    SLIPSTREAM_BOTH void hand(team_type& team, u32 tasks, SlotOf slot_of)
    {
        lane_books books;
        team.each32([&](u32 k) {
            if (tasks >> k & 1) hand_one(team, slot_of(k), books);
        });
        note(team, books);
    }

    /// What a lane has to enter in the books. Wraps: what was taken off counts down.
    struct lane_books {
        u32 blocks = 0;  ///< handed over
        u32 tasks = 0;   ///< likewise (`lasting` ones count in the upper half, too)
        u32 crossed = 0; ///< tasks that cross and stand-ins that were forgotten
        u32 early = 0;   ///< tasks that were complete early, and were forgotten
    };

    /// By a lane.
    SLIPSTREAM_BOTH void hand_one(team_type& team, u32 slot, lane_books& books)
    {
        const linked_load load = s_.loads[slot];
        const u32 mine = load.blocks();
        if (mine == 0) return;
        P::set(s_.targets[slot], P::get(s_.targets[slot]) + mine);
        books.blocks += mine;
        books.tasks += load.brief() ? 1 : 1 + lasting;
        if (!is(s_.tainted, slot)) team.set_bits(s_.handed[slot / 32], 1u << slot % 32);
    }

    /// By a lane: a completed or skipped task is no longer with the scheduler. `mailed`: its blocks have counted, or will.
    SLIPSTREAM_BOTH void take_off(team_type& team, u32 slot, bool mailed, lane_books& books)
    {
        const linked_load load = s_.loads[slot];
        const u32 mine = load.blocks();
        if (mine == 0) return;
        const u32 bit = 1u << slot % 32;
        team.clear_bits(s_.handed[slot / 32], bit);
        team.clear_bits(s_.staged[slot / 32], bit);
        books.blocks -= mine;
        books.tasks -= load.brief() ? 1 : 1 + lasting;
        if (!mailed) P::set(s_.targets[slot], P::get(s_.targets[slot]) - mine);
    }

    /// By a lane: a complete task that waits for nobody.
    SLIPSTREAM_BOTH void forget(team_type& team, u32 slot, bool mailed, lane_books& books)
    {
        take_off(team, slot, mailed, books);
        team.clear_bits(s_.in_flight[slot / 32], 1u << slot % 32);
        if (several()) books.crossed += crossing_.leave(team, slot);
    }

    /// By a lane: a task waits for one less. True when it is to be handed over: `entry` then. Forgets who was complete early, and
    /// waits for nobody now.
    SLIPSTREAM_BOTH bool count_down(team_type& team, u32 slot, u32& entry, lane_books& books)
    {
        const u32 left = team.add(s_.pending[slot], ~u32{0}) - 1;
        entry = ready_entry::make(slot, left >> 16).word;
        if ((left & pending_mask) != 0) return false;
        const bool staged = is(s_.staged, slot);
        if (is(s_.early, slot)) { // a stand-in is to be said to be ready all the same
            team.clear_bits(s_.early[slot / 32], 1u << slot % 32);
            forget(team, slot, true, books);
            ++books.early;
        }
        return !staged;
    }

    SLIPSTREAM_BOTH void note(team_type& team, const lane_books& books)
    {
        const u32 all_blocks = team.reduce_add(books.blocks);
        const u32 all = team.reduce_add(books.tasks);
        const u32 forgotten = team.reduce_add(books.early | books.crossed << 16); // a window of 2^16 slots would be too large
        const auto tasks = static_cast<u32>(static_cast<std::int16_t>(all)); // a few, more or less
        handed_blocks_ += all_blocks;
        handed_tasks_ += tasks;
        handed_lasting_ += static_cast<u32>(static_cast<std::int32_t>(all - tasks) >> 16);
        in_flight_ -= forgotten & 0xffff;
        early_ -= forgotten & 0xffff;
        if (several()) crossing_.ended(forgotten >> 16);
        if (team.leader()) { // for the next launch
            s_.counters[handed_blocks] = handed_blocks_;
            s_.counters[handed_tasks] = handed_tasks_;
            s_.counters[handed_lasting] = handed_lasting_;
        }
        team.sync();
    }

    /// Counts down for the successors of completed tasks. A lane each that are listed, four lanes a task, eight tasks at a
    /// time; else by the row.
    template <class SlotOf, class Ready, class Shown>
    SLIPSTREAM_BOTH void wake(team_type& team, u32 tasks, SlotOf slot_of, Ready ready, Shown shown, lane_books& books)
    {
        const u32 groups = m_.n.groups();
        typename P::template lane_array<u32, 1> numbers;
        const u32 awaited = team.mask32([&](u32 k) {
            const bool mine = (tasks >> k & 1) != 0;
            const u32 slot = mine ? slot_of(k) : 0;
            const u32 number = mine ? s_.loads[slot].successors() : 0;
            numbers.at(0, k) = number;
            s_.woken[k] = slot | (number <= successors_listed ? number : 0) << 16;
            return number != 0;
        });
        if (awaited == 0) return;
        u32 wide = team.mask32([&](u32 k) { return numbers.at(0, k) > successors_listed; });
        const u32 longer = team.mask32([&](u32 k) { return numbers.at(0, k) > lanes_a_task; }); // than a step
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < 32; first += tasks_a_step) {
            const u32 mine = low_bits(tasks_a_step) << first;
            if ((awaited & ~wide & mine) == 0) continue;
            u32 woken = 0;
            const u32 end = (longer & mine) == 0 ? lanes_a_task : successors_listed;
            SLIPSTREAM_ONE_COPY
            for (u32 at = 0; at < end; at += lanes_a_task) {
                typename P::template lane_array<u32, 1> entries;
                const u32 freed = team.mask32([&](u32 k) {
                    const u32 task = s_.woken[first + k / lanes_a_task];
                    const u32 place = at + k % lanes_a_task;
                    if (place >= task >> 16) return false;
                    const u32 before = task & 0xffff;
                    const u32 slot = s_.listed(before, place);
                    s_.set_successor_word(before * groups + slot / 32, 0);
                    return count_down(team, slot, entries.at(0, k), books);
                });
                team.each32([&](u32 k) {
                    if (!(freed >> k & 1)) return;
                    const ready_entry entry{entries.at(0, k)};
                    ready(entry, woken + popcount(freed & ((1u << k) - 1)));
                    hand_one(team, entry.slot(), books);
                });
                woken += popcount(freed);
            }
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
                    typename P::template lane_array<u32, 1> entries;
                    const u32 freed = team.mask32([&](u32 k) {
                        return (waiting >> k & 1) != 0 && count_down(team, 32 * g + k, entries.at(0, k), books);
                    });
                    if (freed == 0) continue;
                    team.each32([&](u32 k) {
                        if (!(freed >> k & 1)) return;
                        ready(ready_entry{entries.at(0, k)}, popcount(freed & ((1u << k) - 1)));
                        hand_one(team, 32 * g + k, books);
                    });
                    shown(popcount(freed)); // the scheduler is at work with them from now on
                }
            }
        }
    }

    static constexpr u32 at_once = 4; ///< predecessors that a lane looks at
    static constexpr u32 lasting = 1u << 16; ///< in a count of tasks: one that does not promise to be brief
    static constexpr u32 pending_mask = 0xffff; ///< of `pending`; the upper half holds the link number
    static_assert(successors_near_max <= 32 * 32);
    static constexpr u32 lanes_a_task = 4; ///< that wake its successors
    static constexpr u32 tasks_a_step = 32 / lanes_a_task;
    static_assert(successors_listed % lanes_a_task == 0);
    static_assert(window_slots_max <= pending_mask);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    crossing_stage<P> crossing_;
    bool some_old_ = true; ///< perhaps: some bit is set in `old`
    // Equal on all lanes; wrap.
    u32 handed_blocks_;
    u32 handed_tasks_;
    u32 handed_lasting_;
    u32 in_flight_; ///< linked and not forgotten
    u32 early_;     ///< of these: reported complete before one that they wait for
};

} // namespace slipstream::device
