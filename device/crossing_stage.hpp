// Tasks that cross, staged (device/crossing.hpp has what else there is to them): their workers wait for tasks of other parts by
// themselves, as they do for those of their own, and others are staged behind a stand-in as behind a task.
//
// Without this a hop from part to part takes two rounds of each scheduler and one of each linker, one behind the other, all of
// them after the predecessor has ended. With it they are over before that: what is left is a finished count, polled in the
// other part's memory.
//
// FORESEEN    a stand-in that waits for one task alone when it is linked: its linker names that task to the home, by its slot and
//             the finished count that it will have come to. Nobody has to be handed over for that, so that no word goes to and fro
//             for each row of a stencil; where each side told the other what it had handed over a row of one took 30 us.
// CLOCK       what else a foreseen stand-in comes behind is complete by then, as its own part knows, and nobody else: its linker
//             also names the scheduler's fence that covers all it was told of, and the task's worker waits until that part's clock
//             has come so far (part_clock: fences made). Most often it has long ago. That fence has been made, or is in the same
//             step, so nobody waits for long.
// COUNTED     a stand-in of a task of one block (and of stand_ins_counted_max stand-ins at most): the task's worker counts a block
//             in its slot when it is done, and who waits behind the stand-in goes on. Known when it is submitted
//             (abi::flag_counted), so that others may be staged behind it as soon as it is linked. The books follow by the way
//             that crossing.hpp has (RETIRED). Not of a clear_failure, behind which nobody is staged.
// STAGED      a task of one block all of whose stand-ins are ready or foreseen: its worker waits for what its own linker knows of,
//             and for what was named.
// STANDSTILL  none, though what a mail waits for may not be mailed yet, by three rules of the scheduler and the linker. Mails that
//             wait go out in the order of the ring (but behind each other on one worker), and the host writes tasks that cross into
//             all rings in one order; a task that waits for nobody is mailed behind none that waits; and of each part one worker
//             gets none that waits, nor may there be more of them than the others have places. So take the oldest task of all that
//             are not complete, which waits for nobody: if it was mailed staged, what waits before it on its worker is older; if
//             not, that worker has room for it sooner or later, and nobody stands in the queue before it for ever.
// FAILURE     a linker that has heard of any failure foresees no more: a stand-in may read poison. What was said before:
//             - the foreseen task fails or is skipped: its finished count says so. If it is cancelled its linker breaks its count
//               (break_count). The crossing task is skipped, for any failure in that slot: it comes again when its stand-ins are
//               ready, and is judged then.
//             - the crossing task is skipped: it counts for its stand-ins when it has come again. Who waits behind them waits till
//               then, and is in nobody's way.
//             - it fails, or is cancelled: it counts nothing. Its stand-ins' linkers break their counts when the home answers.
//             Slots with failures stay tainted from the first message on: a worker elsewhere may look at their counts.
// MESSAGES    16 bytes, numbered. None comes too late: a linker takes all that are there before it takes in what its scheduler
//             knows from another part (a stand-in that is ready), which comes behind the message of that one's linker:
//             R26_staging -> R14_ready -> R4A5_step_fence -> R19_message -> R4A5_step_fence -> R20_arrived -> A26_staging.
// COST        a look at the channels every other step of the linker while a task that crosses is linked (every step, when it has
//             nothing else to do), one load a lane; a message for each stand-in that is foreseen; of the scheduler two stores
//             behind each fence; of the worker one more chunk with the mail, an addition for each stand-in, and for each of the
//             clocks one more lane of the load that polls.
// OWNERS      the linker alone: meetings, stand_ins, counted, pointed_at, staging_sent, staging_seen, fences_named; stand_in_lists
//             it fills before a task is handed over, the scheduler reads. The scheduler writes its part_clock, and fences_promised.
// EDGES       R26_staging / A26_staging: the value is the message · R27_broken_fence (release), then R12_finished: failed_by
//             R4A5_step_fence -> R28_fences · A12_finished -> A12_finished_fence: what was complete when a stand-in was linked
//             P15_promised (scheduler -> linker), before R13_report
#pragma once
#include "device/mail.hpp"

namespace slipstream::device {

/// From a stand-in's linker to that of its home: all that it waits for is the task in slot `awaited`, which comes to `target`; what
/// else it comes behind, `fence` covers.
struct staging_message {
    u32 slot; ///< of the stand-in
    u32 awaited;
    u32 meeting;
    u32 target;
    u32 fence;

    // The last bit of the meeting lies in the tag, of which 30 bits tell two laps of a channel apart.
    static constexpr u32 meeting_bit = 1u << 30;
    SLIPSTREAM_BOTH static u32 tag(u32 number) { return tag_of(number) & ~meeting_bit; }
    SLIPSTREAM_BOTH abi::chunk encode(u32 number) const
    {
        return {{slot | awaited << 12 | meeting << 24, fence, target, tag(number) | meeting >> 8 << 30}};
    }
    SLIPSTREAM_BOTH static bool is(const abi::chunk& c, u32 number) { return (c.w[3] & ~meeting_bit) == tag(number); }
    SLIPSTREAM_BOTH static staging_message decode(const abi::chunk& c)
    {
        return {c.w[0] & 0xfff, c.w[0] >> 12 & 0xfff, c.w[0] >> 24 | (c.w[3] & meeting_bit) >> 22, c.w[2], c.w[1]};
    }
};
static_assert(window_slots_max <= 1u << 12 && abi::meetings_max <= 1u << 9);

/// From scheduler to linker: a stand-in is ready.
struct arrival {
    u32 word; ///< meeting | part << 9 | its slot << 12

    SLIPSTREAM_BOTH static arrival make(u32 meeting, u32 part, u32 slot) { return {meeting | part << 9 | slot << 12}; }
    SLIPSTREAM_BOTH u32 meeting() const { return word & (abi::meetings_max - 1); }
    SLIPSTREAM_BOTH u32 part() const { return word >> 9 & (abi::parts_max - 1); }
    SLIPSTREAM_BOTH u32 slot() const { return word >> 12; }
};

/// A slot of another part, in awaited_task::slot.
SLIPSTREAM_BOTH u32 far_slot(u32 part, u32 slot) { return slot | (part + 1) << 12; }
SLIPSTREAM_BOTH bool is_far(u32 slot) { return slot >> 12 != 0; }
SLIPSTREAM_BOTH u32 part_of(u32 far_slot) { return (far_slot >> 12) - 1; }

/// What has come from other linkers. A value, for functions out of line.
template <class P>
struct staging_inbox {
    using team_type = typename P::team;
    using looked_type = typename P::template lane_array<abi::chunk, 1>;

    typename P::chunk_word* channels;
    u32 parts;
    u32 part;
    u32 channel_slots;
    stand_in_place* stand_ins;
    u32* meetings;
    u32* seen;
    u32* fences;

    /// Lanes that look at one channel.
    SLIPSTREAM_BOTH u32 each() const { return parts <= 2 ? 16 : parts <= 4 ? 8 : 4; }
    SLIPSTREAM_BOTH typename P::chunk_word& place(u32 from, u32 to, u32 number) const
    {
        return channels[(from * parts + to) * channel_slots + (number & (channel_slots - 1))];
    }
    /// By lane k: what may be the next message but so many of a channel.
    SLIPSTREAM_BOTH void look(team_type& team, looked_type& looked) const
    {
        team.each32([&](u32 k) {
            const u32 from = k / each();
            looked.at(0, k) = {};
            if (from >= parts || from == part) return;
            looked.at(0, k)
                = P::load(edge::A26_staging, place(from, part, seen[from] + 1 + k % each()), order::relaxed, scope::device);
        });
    }
    /// A bit for each lane whose look brought one.
    SLIPSTREAM_BOTH u32 came(team_type& team, looked_type& looked) const
    {
        return team.mask32([&](u32 k) {
            const u32 from = k / each();
            return from < parts && from != part && staging_message::is(looked.at(0, k), seen[from] + 1 + k % each());
        });
    }
    /// Takes them; where a look was too short for all that had come, the others, too.
    SLIPSTREAM_BOTH void take(team_type& team, looked_type looked, u32 there) const
    {
        SLIPSTREAM_ONE_COPY
        while (there != 0) {
            const auto run_of = [&](u32 from) { // as there is no gap before them
                return lowest_bit(~(there >> from * each() & low_bits(each())));
            };
            team.each32([&](u32 k) {
                if (!(there >> k & 1) || k % each() >= run_of(k / each())) return;
                const staging_message message = staging_message::decode(looked.at(0, k));
                stand_ins[message.meeting * parts + k / each()] = {message.target, message.slot | message.awaited << 16};
                if (k % each() == run_of(k / each()) - 1) fences[k / each()] = message.fence; // no earlier than those before
                team.set_bits(meetings[message.meeting], 1u << (8 + k / each()));
            });
            const bool more = team.mask32([&](u32 k) { return k < parts && k != part && run_of(k) == each(); }) != 0;
            team.each32([&](u32 k) { if (k < parts && k != part) seen[k] += run_of(k); });
            team.sync();
            if (!more) return;
            look(team, looked);
            there = came(team, looked);
        }
    }
};

/// So many mails that wait there may be for each worker that gets any, of an engine of several parts: a round of its scheduler and
/// one of its linker take some 11 us each, in which a worker is done with several brief tasks. More where tasks cross, which waits
/// for two linkers; else chains would be cut more often than they are (device/tried.md). One worker may have more than its share
/// (scheduler::staged_depth).
template <class P>
SLIPSTREAM_BOTH constexpr u32 staged_places(bool crossings)
{
    const u32 wanted = crossings ? 12 : 4;
    return P::mailbox_depth < wanted ? P::mailbox_depth : wanted;
}

/// The linker's end.
template <class P>
class crossing_stage {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH crossing_stage(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), here_(state.counters[saved_crossings_here]), failed_(state.counters[saved_failures] != 0)
    {
    }
    /// By the leader.
    SLIPSTREAM_BOTH void save()
    {
        s_.counters[saved_crossings_here] = here_;
        s_.counters[saved_failures] = failed_;
    }

    /// Is a task that crosses, or a stand-in, linked here and not complete?
    SLIPSTREAM_BOTH bool some() const { return here_ != 0; }
    SLIPSTREAM_BOTH void linked(u32 count) { here_ += count; }
    SLIPSTREAM_BOTH void ended(u32 count) { here_ -= count; }
    /// Does some other part's worker perhaps wait for what was said here?
    SLIPSTREAM_BOTH bool has_told() const
    {
        bool any = false;
        SLIPSTREAM_ONE_COPY
        for (u32 p = 0; p < m_.n.parts; ++p) any |= s_.staging_sent[p] != 0;
        return any;
    }
    /// Some task has failed, or did not run: from now on nothing is foreseen.
    SLIPSTREAM_BOTH void note_failure() { failed_ = true; }
    SLIPSTREAM_BOTH bool failed() const { return failed_; }

    // Of a task. A meeting's word: a bit for each part whose stand-in is ready | likewise, foreseen << 8 | 1 + slot of the task
    // << 16 | how many they are << 29, once it is linked and waits. 0 when all are ready, and before.

    /// By a lane, of a task that is linked. Does it wait for stand-ins?
    SLIPSTREAM_BOTH bool meet(u32 slot) const
    {
        const abi::crossing_word word{s_.crossings[slot]};
        u32& met = s_.meetings[word.meeting()];
        const bool all = popcount(met & parts_mask) == word.peer();
        if (all) P::set(s_.stand_in_lists[slot], list_of(slot, met & parts_mask));
        met = all ? 0 : met | (slot + 1) << 16 | word.peer() << 29;
        return !all;
    }
    SLIPSTREAM_BOTH bool waits(u32 slot) const { return task_of(s_.meetings[meeting_of(slot)]) == slot + 1; }

    /// By a lane: one more stand-in is ready. Returns the meeting's word.
    SLIPSTREAM_BOTH u32 note_arrival(team_type& team, arrival word) const
    {
        stand_in_place& place = s_.stand_ins[word.meeting() * m_.n.parts + word.part()];
        place.slots = (place.slots & ~0xffffu) | word.slot();
        const u32 bit = 1u << word.part();
        return team.set_bits(s_.meetings[word.meeting()], bit) | bit;
    }
    /// By a lane, with what note_arrival() returned, once all lanes have noted theirs. When that stand-in was the last one, and its
    /// task is linked: 1 + the task's slot. Else 0.
    SLIPSTREAM_BOTH u32 met_by(arrival word, u32 met) const
    {
        const u32 task = task_of(met);
        if (task == 0 || popcount(met & parts_mask) != met >> 29) return 0; // its slot may be another task's by now
        s_.meetings[word.meeting()] = 0;
        // While it is staged its scheduler may read it.
        if ((s_.staged[(task - 1) / 32] >> (task - 1) % 32 & 1) == 0)
            P::set(s_.stand_in_lists[task - 1], list_of(task - 1, met & parts_mask));
        return task;
    }

    /// By a lane, of a task of one block: a bit for each part whose stand-in it has to wait for by itself; unknown: some is
    /// neither ready nor foreseen.
    SLIPSTREAM_BOTH u32 awaits(u32 slot) const
    {
        const abi::crossing_word word{s_.crossings[slot]};
        const u32 met = s_.meetings[word.meeting()];
        if (task_of(met) != slot + 1) return 0;
        return popcount((met | met >> 8) & parts_mask) == word.peer() ? met >> 8 & ~met & parts_mask : unknown;
    }
    static constexpr u32 unknown = ~0u;

    /// By a lane: notes what it awaits there, behind the first `count` tasks that it waits for. Returns how many these are then.
    SLIPSTREAM_BOTH u32 note_awaited(u32 slot, u32 count) const
    {
        const u32 first = meeting_of(slot) * m_.n.parts;
        SLIPSTREAM_ONE_COPY
        for (u32 parts = awaits(slot); parts != 0; parts &= parts - 1) {
            const stand_in_place place = s_.stand_ins[first + lowest_bit(parts)];
            const u32 part = lowest_bit(parts);
            s_.set_awaited(slot, count++, {far_slot(part, place.slots >> 16), place.target, s_.fences_named[part]});
        }
        return count;
    }
    static constexpr u32 waits_most = waits_max - 1; ///< the last chunk beside the mail has the stand-ins

    /// By a lane, of a task that is staged: notes its stand-ins for its worker.
    SLIPSTREAM_BOTH void list(u32 slot) const
    {
        const u32 meeting = meeting_of(slot), met = s_.meetings[meeting];
        if (task_of(met) == slot + 1) P::set(s_.stand_in_lists[slot], list_of(slot, (met | met >> 8) & parts_mask));
    }

    // Of a stand-in.

    /// By a lane: it is being linked, and is counted.
    SLIPSTREAM_BOTH void expect(team_type& team, u32 slot) const
    {
        const u32 bit = 1u << slot % 32;
        P::set(s_.targets[slot], P::get(s_.targets[slot]) + 1);
        team.set_bits(s_.counted[slot / 32], bit);
        if ((s_.tainted[slot / 32] & bit) == 0) team.set_bits(s_.handed[slot / 32], bit);
    }
    SLIPSTREAM_BOTH bool is_counted(u32 slot) const { return (s_.counted[slot / 32] >> slot % 32 & 1) != 0; }
    /// By a lane: it waits for the task in slot `awaited` alone, which will come to `target`.
    SLIPSTREAM_BOTH void foresee(team_type& team, u32 slot, u32 awaited, u32 target) const
    {
        const abi::crossing_word word{s_.crossings[slot]};
        team.set_bits(s_.pointed_at[awaited / 32], 1u << awaited % 32);
        const u32 number = team.add(s_.staging_sent[word.peer()], 1u) + 1;
        const u32 fence = P::load(edge::P15_promised, *s_.fences_promised, order::relaxed, scope::block);
        P::store(edge::R26_staging, inbox().place(m_.n.part, word.peer(), number),
                 staging_message{slot, awaited, word.meeting(), target, fence}.encode(number), order::relaxed, scope::device);
    }

    // Of any.

    /// Was another part told of this one?
    SLIPSTREAM_BOTH bool is_pointed_at(u32 slot) const { return (s_.pointed_at[slot / 32] >> slot % 32 & 1) != 0; }

    /// None of its blocks will run: whoever waits for them goes on, and is skipped. The slot is to be tainted then.
    SLIPSTREAM_BOTH void break_count(team_type& team, u32 slot, u32 blocks) const
    {
        team.sync();
        if (team.leader()) {
            auto& record = m_.records[slot];
            u64 failed = finished_count::block;
            if ((s_.tainted[slot / 32] >> slot % 32 & 1) == 0) { // as in worker_port::note_failure
                P::store(edge::P4_status, record.failed_by, s_.identities[slot], order::relaxed, scope::device);
                P::fence(edge::R27_broken_fence, order::release, scope::device);
                failed = finished_count::failed_block;
            }
            P::add(edge::R12_finished, record.finished, failed + (blocks - 1), order::relaxed, scope::device);
        }
        team.sync();
    }

    /// By a lane: the task is complete. Returns 1 if it crosses or stands in.
    SLIPSTREAM_BOTH u32 leave(team_type& team, u32 slot) const
    {
        const linked_load load = s_.loads[slot];
        const u32 bit = 1u << slot % 32;
        if (is_pointed_at(slot)) team.clear_bits(s_.pointed_at[slot / 32], bit);
        if (!load.stands_in()) return load.crosses();
        team.clear_bits(s_.counted[slot / 32], bit);
        team.clear_bits(s_.handed[slot / 32], bit);
        return 1;
    }

    /// One load a lane, which flies while other things are done.
    SLIPSTREAM_BOTH void look(team_type& team, typename staging_inbox<P>::looked_type& looked) const { inbox().look(team, looked); }
    /// Takes all messages that had come by that look. True if there were any.
    SLIPSTREAM_BOTH bool take(team_type& team, typename staging_inbox<P>::looked_type& looked) const
    {
        const staging_inbox<P> in = inbox();
        const u32 there = in.came(team, looked);
        if (there == 0) return false;
        take_out(in, team, looked, there);
        return true;
    }

private:
    static constexpr u32 parts_mask = (1u << abi::parts_max) - 1;

    SLIPSTREAM_BOTH static u32 task_of(u32 met) { return met >> 16 & 0x1fff; }
    static_assert(window_slots_max < 1u << 13 && abi::parts_max <= 8);
    SLIPSTREAM_BOTH u32 meeting_of(u32 slot) const { return abi::crossing_word{s_.crossings[slot]}.meeting(); }
    SLIPSTREAM_BOTH staging_inbox<P> inbox() const
    {
        return {m_.staging_channels, m_.n.parts, m_.n.part, m_.n.staging_channel_slots(), s_.stand_ins, s_.meetings,
                s_.staging_seen, s_.fences_named};
    }
    SLIPSTREAM_BOTH_RARE static void take_out(const staging_inbox<P> in, team_type team,
                                              typename staging_inbox<P>::looked_type looked, u32 there)
    {
        in.take(team, looked, there);
    }
    /// None of those that are not counted.
    SLIPSTREAM_BOTH stand_in_list list_of(u32 slot, u32 parts) const
    {
        stand_in_list out{};
        const linked_load load = s_.loads[slot];
        if (!abi::counts_for_stand_ins(load.blocks(), popcount(parts), load.clears())) return out;
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; parts != 0; parts &= parts - 1, ++i) {
            const u32 part = lowest_bit(parts);
            const u32 entry = stand_in_list::entry(part, s_.stand_ins[meeting_of(slot) * m_.n.parts + part].slots & 0xffff);
            SLIPSTREAM_UNROLL
            for (u32 pair = 0; pair < 3; ++pair)
                if (pair == i / 2) out.pairs[pair] |= entry << i % 2 * 16;
        }
        return out;
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    u32 here_;    ///< tasks that cross and stand-ins: linked, not complete
    bool failed_;
};

} // namespace slipstream::device
