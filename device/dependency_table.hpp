// The dependency table: who waits for whom, among the tasks that the linker has taken in.
//
// A task is linked with the row of predecessors that admission found; those that are complete by now are dropped. Each
// predecessor keeps a row of successors, each successor a count of predecessors: a completion clears one row and counts down.
//
// OWNERS  the linker role alone.
// COST    of link: a row read and one read-modify-write a predecessor, a lane each group of 32; of wake, when somebody waits: the
//         row (one load a lane), and for each word of it one ballot and one count down a lane. Fast memory, up to a window of
//         sizes::successors_near_max.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class dependency_table {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH dependency_table(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Takes in tasks that wait for nobody: slot_of(k), k < count.
    template <class SlotOf>
    SLIPSTREAM_BOTH void link_free(team_type& team, u32 count, SlotOf slot_of)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) {
            const u32 slot = slot_of(k);
            team.set_bits(s_.in_flight[slot / 32], 1u << slot % 32);
        }
        team.sync();
    }

    /// Takes in a task with the row of predecessors at `row`. Returns how many of them are not complete.
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
        }
        team.sync();
        return count;
    }

    /// Wakes the tasks that wait for a completed one: ready(first, mask, entry_of) is called by all lanes with slots first + bits
    /// of mask; entry_of(k) is the ready entry of slot first + k, on its lane.
    template <class Ready>
    SLIPSTREAM_BOTH void wake(team_type& team, u32 slot, Ready ready)
    {
        // Two copies, so that neither asks at each access where the rows lie.
        if (m_.n.successors_near()) wake_in(team, s_.successors_near + slot * m_.n.groups(), ready);
        else if (s_.awaited[slot / 32] >> slot % 32 & 1) wake_in(team, s_.successors_far + slot * m_.n.groups(), ready);
    }

    /// Forgets completed tasks whose successors were woken: slot_of(k), k < count.
    template <class SlotOf>
    SLIPSTREAM_BOTH void remove(team_type& team, u32 count, SlotOf slot_of)
    {
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) {
            const u32 slot = slot_of(k);
            team.clear_bits(s_.in_flight[slot / 32], 1u << slot % 32);
            team.clear_bits(s_.awaited[slot / 32], 1u << slot % 32);
        }
        team.sync();
    }

private:
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
                u32* const pending = s_.pending + 32 * (first + w);
                typename P::template lane_array<u32, 1> left;
                const u32 freed = team.mask32([&](u32 k) {
                    if (!(waiting >> k & 1)) return false;
                    left.at(0, k) = --pending[k];
                    return (left.at(0, k) & pending_mask) == 0;
                });
                if (freed) ready(32 * (first + w), freed, [&](u32 k) { return ready_entry::make(32 * (first + w) + k, left.at(0, k) >> 16); });
            }
        }
    }

    static constexpr u32 pending_mask = 0xffff; ///< of `pending`; the upper half holds the link number
    static_assert(window_slots_max <= pending_mask);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
