// Tasks that cross, staged (device/crossing.hpp has what else there is to them): the linkers of the parts tell each other what was
// handed over, so that workers wait for tasks of other parts by themselves, as they do for those of their own.
//
// Without this a hop from part to part takes two rounds of each scheduler and one of each linker, one behind the other, all of
// them after the predecessor has ended. With it they are over before that: what is left is a finished count, polled in the
// other part's memory.
//
// FORESEEN    a stand-in that waits for one task alone, once that one is handed over: its linker names that task to the home, by
//             its slot and the finished count that it comes to.
// HANDED      a task of one block all of whose stand-ins are ready or foreseen is staged as any other: its worker waits for what
//             its own linker knows of, and for what was named. Its linker tells those of the stand-ins, which stage behind a
//             stand-in as behind a task.
// DONE        its worker counts a block in the slot of each stand-in that was told so: who waits behind one goes on. The books
//             follow by the way that crossing.hpp has. The home's scheduler keeps a task that is done before all of its
//             stand-ins were said to be ready (control_state::meeting_held).
// STANDSTILL  none: a task is handed over after all that its worker waits for, in time, over all parts; the mails of a part go
//             out in the order of handing over, and each worker takes its own in order. So the first one of all that are handed
//             over and not done can run.
// FAILURE     a linker that has heard of any failure foresees and tells no more. What was said before:
//             - the foreseen task fails or is skipped: its finished count says so. If it is cancelled, or goes back without being
//               mailed, its linker breaks its count (break_count). The crossing task is skipped, for any failure in that slot: it
//               comes again when its stand-ins are ready, and is judged then.
//             - the crossing task is skipped: its stand-ins are told (TAKEN BACK), and their linkers break their counts. Or else
//               who waits behind them would keep the workers that the task needs when it comes again.
//             - it fails, or is cancelled: it counts no block for its stand-ins. Their linkers break their counts when the home
//               answers.
//             Slots with failures stay tainted from the first message on: a worker elsewhere may look at their counts.
// MESSAGES    16 bytes, numbered. None comes too late: a linker takes all that are there before it takes in what its scheduler
//             knows from another one (a stand-in that is ready, a task that is done), and that comes behind the messages of the
//             linkers by whose word it came about: R26_staging -> R14_ready -> R4A5_step_fence -> R19_message ->
//             R4A5_step_fence -> R13_report or R20_arrived -> A26_staging.
// COST        a look at the channels a step of the linker while a task that crosses is linked, one load a lane; a message for each
//             stand-in there and back; of the worker one more chunk with the mail, and an addition for each stand-in.
// OWNERS      the linker alone: meetings, stand_ins, told, pointed_at, staging_sent, staging_seen; stand_in_lists it fills
//             before a task is handed over, the scheduler reads.
// EDGES       R26_staging / A26_staging: the value is the message · R27_broken_fence (release), then R12_finished: failed_by
#pragma once
#include "device/mail.hpp"

namespace slipstream::device {

/// From linker to linker.
struct staging_message {
    enum kind_name : u32 {
        foreseen,  ///< of a stand-in to the home: all that it waits for is `awaited`, which comes to `target`
        handed,    ///< of the task to a stand-in: it was handed over, and its worker will count a block there
        taken_back ///< likewise: it has been skipped, and will not
    };
    u32 kind;
    u32 slot;    ///< of the stand-in
    u32 awaited; ///< slot
    u32 meeting;
    u32 target;

    SLIPSTREAM_BOTH abi::chunk encode(u32 number) const
    {
        return {{kind | slot << 2 | awaited << 14, meeting, target, tag_of(number)}};
    }
    SLIPSTREAM_BOTH static bool is(const abi::chunk& c, u32 number) { return c.w[3] == tag_of(number); }
    SLIPSTREAM_BOTH static staging_message decode(const abi::chunk& c)
    {
        return {c.w[0] & 3, c.w[0] >> 2 & 0xfff, c.w[0] >> 14 & 0xfff, c.w[1], c.w[2]};
    }
};
static_assert(window_slots_max <= 1u << 12);

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
    /// Some task has failed, or did not run: from now on nothing is foreseen, and nobody told.
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
        P::set(s_.stand_in_lists[slot], list_of(word.meeting(), all ? met & parts_mask : 0));
        met = all ? 0 : met | (slot + 1) << 16 | word.peer() << 29;
        return !all;
    }
    SLIPSTREAM_BOTH bool waits(u32 slot) const { return task_of(s_.meetings[meeting_of(slot)]) == slot + 1; }

    /// One more stand-in is ready. When it is the last one, and its task is linked: 1 + the task's slot. Else 0.
    SLIPSTREAM_BOTH u32 arrive(team_type& team, arrival word) const
    {
        const u32 meeting = word.meeting();
        const u32 met = s_.meetings[meeting] | 1u << word.part();
        const u32 task = task_of(met);
        const bool all = task != 0 && popcount(met & parts_mask) == met >> 29; // its slot may be another task's by now
        team.sync();
        if (team.leader()) {
            stand_in_place& place = s_.stand_ins[meeting * m_.n.parts + word.part()];
            place.slots = (place.slots & ~0xffffu) | word.slot();
            s_.meetings[meeting] = all ? 0 : met;
            // While it is staged its scheduler may read it.
            if (all && (s_.staged[(task - 1) / 32] >> (task - 1) % 32 & 1) == 0 && P::get(s_.stand_in_lists[task - 1]).told == 0)
                P::set(s_.stand_in_lists[task - 1], list_of(meeting, met & parts_mask));
        }
        team.sync();
        return all ? task : 0;
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
            s_.set_awaited(slot, count++, {far_slot(lowest_bit(parts), place.slots >> 16), place.target, 0});
        }
        return count;
    }
    static constexpr u32 waits_most = waits_max - 1; ///< the last chunk beside the mail has the stand-ins

    /// A task was handed over, and its entry is not shown to the scheduler yet: its stand-ins are told, if it has one block.
    SLIPSTREAM_BOTH void tell(team_type& team, u32 slot) const
    {
        if (failed_ || m_.n.staging == 0 || s_.loads[slot].blocks() != 1 || (s_.tainted[slot / 32] >> slot % 32 & 1) != 0) return;
        const u32 meeting = meeting_of(slot), met = s_.meetings[meeting];
        stand_in_list list = P::get(s_.stand_in_lists[slot]);
        if (list.told != 0) return;
        if (task_of(met) == slot + 1) list = list_of(meeting, (met | met >> 8) & parts_mask);
        if (list.pairs[0] == 0) return;
        list.told = 1;
        send_all(team, list, staging_message::handed);
        if (team.leader()) P::set(s_.stand_in_lists[slot], list);
        team.sync();
    }
    /// It was skipped.
    SLIPSTREAM_BOTH void take_back(team_type& team, u32 slot) const
    {
        const stand_in_list list = P::get(s_.stand_in_lists[slot]);
        if (!s_.loads[slot].crosses() || list.told == 0) return;
        send_all(team, list, staging_message::taken_back);
        if (team.leader()) P::set(s_.stand_in_lists[slot], stand_in_list{});
        team.sync();
    }

    // Of a stand-in.

    /// It waits for the task in slot `awaited` alone, which was handed over.
    SLIPSTREAM_BOTH void foresee(team_type& team, u32 slot, u32 awaited) const
    {
        if (failed_) return;
        const abi::crossing_word word{s_.crossings[slot]};
        if (team.leader()) {
            team.set_bits(s_.pointed_at[awaited / 32], 1u << awaited % 32);
            send(word.peer(), {staging_message::foreseen, slot, awaited, word.meeting(), P::get(s_.targets[awaited])});
        }
        team.sync();
    }
    /// Was it told that its task is handed over?
    SLIPSTREAM_BOTH bool is_told(u32 slot) const { return (s_.told[slot / 32] >> slot % 32 & 1) != 0; }

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
        team.clear_bits(s_.told[slot / 32], bit);
        team.clear_bits(s_.handed[slot / 32], bit);
        return 1;
    }

    /// Takes all messages that have come. back(slot): a stand-in that was told has to take it that nothing will be counted there.
    /// True if there were any.
    template <class Back>
    SLIPSTREAM_BOTH bool take(team_type& team, Back back) const
    {
        const u32 parts = m_.n.parts, each = parts <= 2 ? 16 : parts <= 4 ? 8 : 4; // lanes that look at one channel
        bool some = false;
        SLIPSTREAM_ONE_COPY
        for (bool more = true; more;) {
            typename P::template lane_array<abi::chunk, 1> looked;
            u32 there = team.mask32([&](u32 k) {
                const u32 from = k / each;
                if (from >= parts || from == m_.n.part) return false;
                const u32 number = s_.staging_seen[from] + 1 + k % each;
                looked.at(0, k) = P::load(edge::A26_staging, place(from, m_.n.part, number), order::relaxed, scope::device);
                return staging_message::is(looked.at(0, k), number);
            });
            if (there == 0) break;
            some = true;
            const auto run_of = [&](u32 from) { return lowest_bit(~(there >> from * each & low_bits(each))); };
            const u32 next = team.mask32([&](u32 k) { return (there >> k & 1) != 0 && k % each < run_of(k / each); });
            typename P::template lane_array<u32, 1> slots;
            const u32 backs = team.mask32([&](u32 k) {
                if (!(next >> k & 1)) return false;
                const staging_message message = staging_message::decode(looked.at(0, k));
                slots.at(0, k) = message.slot;
                const u32 slot = message.slot, bit = 1u << slot % 32;
                if (message.kind == staging_message::foreseen) {
                    s_.stand_ins[message.meeting * parts + k / each] = {message.target, slot | message.awaited << 16};
                    team.set_bits(s_.meetings[message.meeting], 1u << (8 + k / each));
                } else if (message.kind == staging_message::handed) {
                    P::set(s_.targets[slot], P::get(s_.targets[slot]) + 1);
                    team.set_bits(s_.told[slot / 32], bit);
                    if ((s_.tainted[slot / 32] & bit) == 0) team.set_bits(s_.handed[slot / 32], bit);
                }
                return message.kind == staging_message::taken_back;
            });
            more = team.mask32([&](u32 k) { return k < parts && run_of(k) == each; }) != 0;
            team.each32([&](u32 k) { if (k < parts && k != m_.n.part) s_.staging_seen[k] += run_of(k); });
            team.sync();
            SLIPSTREAM_ONE_COPY
            for (u32 bits = backs; bits != 0; bits &= bits - 1) {
                const u32 slot = team.from_lane(slots, lowest_bit(bits)), bit = 1u << slot % 32;
                if (team.leader()) {
                    team.clear_bits(s_.told[slot / 32], bit);
                    team.clear_bits(s_.handed[slot / 32], bit);
                }
                back(slot);
            }
        }
        return some;
    }

private:
    static constexpr u32 parts_mask = (1u << abi::parts_max) - 1;

    SLIPSTREAM_BOTH static u32 task_of(u32 met) { return met >> 16 & 0x1fff; }
    static_assert(window_slots_max < 1u << 13 && abi::parts_max <= 8);
    SLIPSTREAM_BOTH u32 meeting_of(u32 slot) const { return abi::crossing_word{s_.crossings[slot]}.meeting(); }
    /// Those of more than a list holds are not told.
    SLIPSTREAM_BOTH stand_in_list list_of(u32 meeting, u32 parts) const
    {
        stand_in_list out{};
        if (popcount(parts) > stand_in_list::most) return out;
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; parts != 0; parts &= parts - 1, ++i) {
            const u32 part = lowest_bit(parts);
            const u32 entry = stand_in_list::entry(part, s_.stand_ins[meeting * m_.n.parts + part].slots & 0xffff);
            SLIPSTREAM_UNROLL
            for (u32 pair = 0; pair < 3; ++pair)
                if (pair == i / 2) out.pairs[pair] |= entry << i % 2 * 16;
        }
        return out;
    }
    SLIPSTREAM_BOTH typename P::chunk_word& place(u32 from, u32 to, u32 number) const
    {
        const u32 slots = m_.n.staging_channel_slots();
        return m_.staging_channels[(from * m_.n.parts + to) * slots + (number & (slots - 1))];
    }
    /// By one lane for each part.
    SLIPSTREAM_BOTH void send(u32 to, const staging_message& message) const
    {
        const u32 number = ++s_.staging_sent[to];
        P::store(edge::R26_staging, place(m_.n.part, to, number), message.encode(number), order::relaxed, scope::device);
    }
    SLIPSTREAM_BOTH void send_all(team_type& team, const stand_in_list& list, u32 kind) const
    {
        const abi::chunk c = list.encode(0);
        team.sync();
        team.each32([&](u32 k) {
            if (k >= stand_in_list::most) return;
            const u32 pair = k / 2 == 0 ? c.w[0] : k / 2 == 1 ? c.w[1] : c.w[2];
            const u32 entry = pair >> k % 2 * 16 & 0xffff;
            if (entry != 0) send(stand_in_list::part_of(entry), {kind, stand_in_list::slot_of(entry), 0, 0, 0});
        });
        team.sync();
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    u32 here_;    ///< tasks that cross and stand-ins: linked, not complete
    bool failed_;
};

} // namespace slipstream::device
