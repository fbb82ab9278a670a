// The dependency table: who waits for whom, among the tasks that the linker has taken in, and who may be staged behind whom.
//
// A task is linked with the row of predecessors that admission found; those that are complete by now are dropped. Each
// predecessor keeps a row of successors, each successor a count of predecessors: a completion clears one row and counts down.
//
// EDGES   that another one implies are not entered, where it is cheap to see (successors in fast memory, waits_max
//         predecessors at most): with whom the predecessor that was linked last waits for, as far as the first waits_near_max
//         places of its list tell. (A task that is complete has seen all that it waited for complete, on its worker, too.)
//         Failures do not go by edges, but by what tasks read.
// STAGING A task is handed to the scheduler when it waits for nobody, or staged: when all it waits for was handed over before it
//   (waits_max tasks at most). Its workers then wait for the finished counts of those. The scheduler mails in the order in which
//   tasks are handed over, so whatever a mail waits for was mailed before it (but for other parts' tasks, and stand-ins).
//   A task of more blocks than workers draws tickets and cannot be waited for in this way, nor can one in a tainted slot.
//   What crosses: crossing_stage.hpp.
// OWNERS  the linker role alone, but for `brief`, `joins`, `joins_both`, `targets` and what they wait for
//         (control_state::set_awaited), which the scheduler reads of tasks that were handed over.
// COST    every operation takes up to 32 tasks, a lane each, and costs much the same for one as for 32. Link: a word of the row
//         for each 32 slots, and for each predecessor one bit set and an entry of its list. Complete: a count down for each
//         successor: those of a list by four lanes a task, eight tasks at a time, without a look at a row; of a task with more
//         than a list holds by all lanes, a word of its row at a time.
//         Staging: a look for each predecessor. Fast memory, up to a window of successors_near_max.
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

    /// Takes in tasks in program order: slot_of(k), k < count <= 32, the first one as `link_number`, each with the row row_of(k) if
    /// has_row(k). Hands over those that wait for nobody; returns their mask.
    template <class SlotOf, class HasRow, class RowOf>
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 count, u32 link_number, SlotOf slot_of, HasRow has_row, RowOf row_of)
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
                              | (several() && head.crosses() ? linked_load::crosses_bit : 0)
                              | (several() && head.stands_in() ? linked_load::stands_in_bit : 0)};
            if (brief) team.set_bits(s_.brief[slot / 32], 1u << slot % 32);
            else team.clear_bits(s_.brief[slot / 32], 1u << slot % 32);
            team.set_bits(s_.arriving[slot / 32], 1u << slot % 32);
            if (some_old_) team.clear_bits(s_.old[slot / 32], 1u << slot % 32);
            s_.waits_for[slot].number = 0; // what was there is another task's
        });
        team.sync();
        typename P::template lane_array<u32, 1> waits;
        u32 rows = team.mask32([&](u32 k) {
            waits.at(0, k) = 0;
            return k < count && has_row(k);
        });
        // One after another, by all lanes together, where the rows of successors lie in device memory: they are changed without
        // atomics, which would pass by the L1 that plain loads read.
        if (!m_.n.successors_near()) {
            SLIPSTREAM_ONE_COPY
            for (; rows != 0; rows &= rows - 1) {
                const u32 task = lowest_bit(rows);
                const u32 found = find_together(team, slot_of(task), row_of(task));
                team.each32([&](u32 k) { if (k == task) waits.at(0, k) = found; });
            }
        } else {
            enter_apart(team, rows, slot_of, row_of, waits);
        }
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
        hand(team, free, slot_of);
        if (several()) look_ahead(team, count, slot_of, waits);
        return free;
    }

    /// Link numbers have 16 bits, and a task may be here while any number of others are linked. At each 2^numbers_bits of them,
    /// whoever is here is old: from then on nothing is concluded from when it was linked.
    SLIPSTREAM_BOTH void grow_old(team_type& team)
    {
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
    /// places_of(k): staged(k, number of tasks that it waits for) is called by lanes. Of these the one that was linked last is
    /// number 0 (control_state::set_awaited).
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
            const u32 places = places_of(k);
            const auto note_staged = [&](u32 waits) {
                const bool crosses = several() && s_.loads[slot].crosses();
                if (crosses) crossing_.list(slot);
                staged(k, crosses ? crossing_.note_awaited(slot, waits) : waits);
            };
            if (places >> waits_near_max == 0) {
                note_staged(places != 0 ? note_awaited(team, slot, places) : 0);
                return;
            }
            const more_predecessors more = s_.waits_for_more[slot];
            const auto predecessor = [&](u32 i) {
                return i < waits_near_max ? s_.predecessor(slot, i) : more.at(i - waits_near_max);
            };
            u32 waits = 0;
            u32 last = predecessor(lowest_bit(places)); // the one that was linked last comes first
            SLIPSTREAM_ONE_COPY
            for (u32 left = places & (places - 1); left != 0; left &= left - 1) {
                u32 p = predecessor(lowest_bit(left));
                if (is_later(number_of(p), number_of(last))) {
                    const u32 other = last;
                    last = p;
                    p = other;
                }
                s_.set_awaited(slot, ++waits, awaited(p));
            }
            s_.set_awaited(slot, 0, awaited(last));
            note_joins(team, slot, last);
            note_staged(waits + 1);
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
    SLIPSTREAM_BOTH bool several() const { return Several && m_.n.parts > 1; }
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

    /// By a lane, of a task that waits for those at the first `places` of its list alone: writes them down for its workers, the
    /// one that was linked last first. No loop: all loads fly together. Returns how many they are.
    SLIPSTREAM_BOTH u32 note_awaited(team_type& team, u32 slot, u32 places)
    {
        const predecessor_list list = s_.waits_for[slot];
        awaited_task tasks[waits_near_max];
        u32 numbers[waits_near_max];
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i) {
            const u32 p = places >> i & 1 ? list.slots[i] : slot; // an empty place's slot may be anything
            tasks[i] = awaited(p);
            numbers[i] = number_of(p);
        }
        u32 last = lowest_bit(places);
        u32 latest = numbers[0], last_slot = tasks[0].slot; // of the last one; not of place `last` before the loop has come there
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i) {
            const bool later = (places >> i & 1) != 0 && (i <= last || is_later(numbers[i], latest));
            last = later ? i : last;
            latest = later ? numbers[i] : latest;
            last_slot = later ? tasks[i].slot : last_slot;
        }
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            if (places >> i & 1) {
                const u32 before = popcount(places & low_bits(i)); // and the last one, if it is not among them
                P::set(s_.waits_near[slot * waits_near_max + (i == last ? 0 : before + (i < last))], tasks[i]);
            }
        note_joins(team, slot, last_slot & (awaited_task::stand_in_bit - 1));
        return popcount(places);
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

    /// Of a row of 32 words at most: those that are not 0, a bit each, and how many slots it names.
    struct row_summary {
        u32 words, named;
    };
    /// By a lane; four loads fly together.
    template <class Row>
    SLIPSTREAM_BOTH row_summary summary_of(const Row* row) const
    {
        row_summary out{0, 0};
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < m_.n.groups(); i += 4) {
            SLIPSTREAM_UNROLL
            for (u32 n = i; n < i + 4; ++n) {
                const u32 word = n < m_.n.groups() ? P::get(row[n]) : 0;
                out.words |= static_cast<u32>(word != 0) << n;
                out.named += popcount(word);
            }
        }
        return out;
    }

    /// By a lane: calls with(p, its link number) for each predecessor of a task of those that arrive, by its row and the words of
    /// it that name any. One loop for the predecessors of all words: lanes have theirs in different ones.
    template <class Row, class With>
    SLIPSTREAM_BOTH void each_predecessor(u32 slot, const Row* row, u32 words, With with) const
    {
        const u32 number = number_of(slot);
        u32 g = 0;
        u32 before = 0;
        SLIPSTREAM_ONE_COPY
        for (;;) {
            if (before == 0) {
                if (words == 0) break;
                g = lowest_bit(words);
                words &= words - 1;
                before = still_there(P::get(row[g]), g);
                if (before == 0) continue;
            }
            const u32 p = 32 * g + lowest_bit(before);
            before &= before - 1;
            const u32 other = number_of(p);
            if (is(s_.arriving, p) && is_later(other, number)) continue; // see comes_after()
            with(p, other);
        }
    }

    /// Each task of `rows` is entered with its predecessors, a lane a task; waits.at(0, k) becomes their number. Not with those
    /// whom the one that was linked last waits for by itself, as the first waits_near_max places of its list tell: it is complete
    /// after them, and what they wrote is seen by whoever sees that it is.
    template <class SlotOf, class RowOf>
    SLIPSTREAM_BOTH void enter_apart(team_type& team, u32 rows, SlotOf slot_of, RowOf row_of,
                                     typename P::template lane_array<u32, 1>& waits) const
    {
        typename P::template lane_array<u32, 1> latest;
        team.each32([&](u32 k) {
            if (!(rows >> k & 1)) return;
            const u32 slot = slot_of(k);
            latest.at(0, k) = slot;
            const row_summary row = summary_of(row_of(k));
            waits.at(0, k) = row.named; // at most
            s_.waits_for[slot].number = static_cast<u16>(waits_max + 1);
            if (row.named > waits_max) return; // a second pass over many would cost more than it saves
            u32 count = 0, last = 0, last_number = 0;
            each_predecessor(slot, row_of(k), row.words, [&](u32 p, u32 number) {
                if (count == 0 || is_later(number, last_number)) {
                    last = p;
                    last_number = number;
                }
                s_.arriving_after[k * waits_max + count++] = static_cast<u16>(p);
            });
            waits.at(0, k) = count;
            latest.at(0, k) = last;
            predecessor_list list{static_cast<u16>(count), {}};
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_near_max; ++i)
                list.slots[i] = s_.arriving_after[k * waits_max + i]; // beyond `count` anything
            s_.waits_for[slot] = list; // whole, for those of the batch that wait for this one
        });
        team.sync(); // others' lists are read
        typename P::template lane_array<predecessor_list, 1> of_latest;
        team.each32([&](u32 k) {
            if (rows >> k & 1) of_latest.at(0, k) = s_.waits_for[latest.at(0, k)];
        });
        team.sync(); // before the lists change
        team.each32([&](u32 k) {
            const u32 all = rows >> k & 1 ? waits.at(0, k) : 0;
            if (all == 0) return;
            const u32 slot = slot_of(k);
            if (all > waits_max) {
                waits.at(0, k) = enter_many(team, slot, row_of(k));
                s_.waits_for[slot].number = static_cast<u16>(waits.at(0, k));
                return;
            }
            // A slot in that list may have come again since: for a task that was linked later. One that has no room for all
            // may hold none of them.
            predecessor_list implied = of_latest.at(0, k);
            if (!implied.complete() || (some_old_ && is(s_.old, latest.at(0, k)))) implied.number = 0;
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_near_max; ++i)
                if (i >= implied.number) implied.slots[i] = static_cast<u16>(no_slot);
            waits.at(0, k) = enter(team, k, slot, all, implied, number_of(latest.at(0, k)));
        });
    }

    /// By a lane: enters a task with those of its `all` predecessors, in arriving_after, that are not among `implied`, or were
    /// linked later than `last_number`. Returns how many.
    SLIPSTREAM_BOTH u32 enter(team_type& team, u32 k, u32 slot, u32 all, predecessor_list implied, u32 last_number) const
    {
        const auto is_implied = [&](u32 p) {
            bool listed = false;
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_near_max; ++i) listed |= implied.slots[i] == p;
            return listed & is_later(last_number, number_of(p));
        };
        // The first ones without branches, step after step for all of them: their loads and atomics fly together. In an empty
        // place the task stands itself, and nothing is added.
        constexpr u32 at_once = waits_near_max + 1;
        u32 p[at_once], place[at_once];
        u32 enters = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) p[i] = i < all ? s_.arriving_after[k * waits_max + i] : slot;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) enters |= static_cast<u32>((i < all) & !is_implied(p[i])) << i;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i)
            place[i] = linked_load{team.add(s_.loads[p[i]].word, (enters >> i & 1) * linked_load::successor)}.successors();
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < at_once; ++i) {
            team.set_bits(s_.successors_near[p[i] * m_.n.groups() + slot / 32], (enters >> i & 1) << slot % 32);
            if (((enters >> i & 1) != 0) & (place[i] < successors_listed))
                s_.listed_near[p[i] * successors_listed + place[i]] = static_cast<u16>(slot);
        }
        predecessor_list list{static_cast<u16>(popcount(enters)), {}};
        u32 left = enters; // those that enter, from the lowest on
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < waits_near_max; ++n, left &= left - 1) {
            u32 nth = p[at_once - 1];
            SLIPSTREAM_UNROLL
            for (u32 i = at_once - 1; i-- > n;) nth = left >> i & 1 ? p[i] : nth; // the lowest one comes last
            list.slots[n] = static_cast<u16>(nth); // beyond their number anything
        }
        s_.waits_for[slot] = list;
        u32 count = list.number;
        if (count == at_once) s_.set_predecessor(slot, waits_near_max, p[waits_near_max]);
        if (all <= at_once) return count;
        SLIPSTREAM_ONE_COPY
        for (u32 i = at_once; i < all; ++i) {
            const u32 before = s_.arriving_after[k * waits_max + i];
            if (is_implied(before)) continue;
            list_successor(team, before, slot);
            team.set_bits(s_.successors_near[before * m_.n.groups() + slot / 32], 1u << slot % 32);
            s_.set_predecessor(slot, count++, before);
        }
        s_.waits_for[slot].number = static_cast<u16>(count);
        return count;
    }
    /// By a lane: enters a task with all of its predecessors, any number.
    template <class Row>
    SLIPSTREAM_BOTH u32 enter_many(team_type& team, u32 slot, const Row* row) const
    {
        u32 count = 0;
        each_predecessor(slot, row, summary_of(row).words, [&](u32 p, u32) {
            list_successor(team, p, slot);
            team.set_bits(s_.successors_near[p * m_.n.groups() + slot / 32], 1u << slot % 32);
            if (count < waits_max) s_.set_predecessor(slot, count, p);
            ++count;
        });
        return count;
    }

    /// By a lane. Others may list successors of the same task.
    SLIPSTREAM_BOTH void list_successor(team_type& team, u32 slot, u32 successor) const
    {
        const u32 place = linked_load{team.add(s_.loads[slot].word, linked_load::successor)}.successors();
        if (place < successors_listed) s_.set_listed(slot, place, successor);
    }

    /// The same by all lanes, a word of the row each.
    template <class Row>
    SLIPSTREAM_BOTH u32 find_together(team_type& team, u32 slot, const Row* row) const
    {
        const u32 groups = m_.n.groups();
        u32 count = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < groups; first += 32) {
            typename P::template lane_array<u32, 1> before;
            u32 words = team.mask32([&](u32 k) {
                const u32 g = first + k;
                before.at(0, k) = g < groups ? still_there(P::get(row[g]), g) : 0;
                SLIPSTREAM_ONE_COPY
                for (u32 bits = g < groups ? before.at(0, k) & s_.arriving[g] : 0; bits != 0; bits &= bits - 1)
                    if (comes_after(32 * g + lowest_bit(bits), number_of(slot))) before.at(0, k) &= ~(bits & (0 - bits));
                if (before.at(0, k) == 0) return false;
                SLIPSTREAM_ONE_COPY
                for (u32 bits = before.at(0, k); bits != 0; bits &= bits - 1) { // rows of different predecessors: lanes never meet
                    list_successor(team, 32 * g + lowest_bit(bits), slot);
                    const u32 at = (32 * g + lowest_bit(bits)) * groups + slot / 32;
                    s_.set_successor_word(at, s_.successor_word(at) | 1u << slot % 32);
                }
                return true;
            });
            SLIPSTREAM_ONE_COPY
            for (; words != 0; words &= words - 1) {
                const u32 word = team.from_lane(before, lowest_bit(words));
                if (team.leader() && count + popcount(word) <= waits_max) {
                    u32 at = count;
                    SLIPSTREAM_ONE_COPY
                    for (u32 bits = word; bits != 0; bits &= bits - 1)
                        s_.set_predecessor(slot, at++, 32 * (first + lowest_bit(words)) + lowest_bit(bits));
                }
                count += popcount(word);
            }
        }
        if (team.leader()) s_.waits_for[slot].number = static_cast<u16>(count);
        team.sync();
        return count;
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
                        if (freed >> k & 1)
                            ready(ready_entry{entries.at(0, k)}, popcount(freed & ((1u << k) - 1)));
                    });
                    shown(popcount(freed));
                    team.each32([&](u32 k) { // the scheduler is at work with them by now
                        if (freed >> k & 1) hand_one(team, 32 * g + k, books);
                    });
                }
            }
        }
    }

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
