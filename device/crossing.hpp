// Tasks that touch memory of several parts of an engine (config::parts): how their parts meet.
//
// A part is a control block with its own ring, window, workers and memory: two tasks of different parts have nothing to do with
// each other, and no role here looks at another part's memory. A task that touches memory of several is known to all of them:
// in one, its home, it is a task like any other; in each of the others a stand-in has its accesses to memory there, and no
// blocks. A stand-in waits for its predecessors as any task does. When it is ready its scheduler tells the home, and it stays,
// in the way of whoever comes after it, until the home says that the task is complete.
//
// HOME      the task waits in the linker for its own predecessors and, as if they were one more, for all of its stand-ins
//           (crossing_stage::meet, dependency_table::arrive).
// CHANNEL   from each part to each other: a ring in device memory with room for all there ever is (sizes::channel_slots), so
//           nobody looks for room. The messages carry their number, as mails do.
// MEETING   a number that the host gives each crossing task, of its home's meetings_max; used again when the task is retired.
// ORDER     the host writes crossing tasks into the rings of all their parts in one order. So the oldest task that is not
//           complete has all of its stand-ins at the head of their rings or in their windows, where nothing is in their way: it
//           runs, whatever the windows' sizes.
// STAGED    most often the task is mailed before its stand-ins are ready: crossing_stage.hpp. When its worker has answered it is
//           complete, and its stand-ins are answered, ready or not: what they wait for has run, since the worker has waited for
//           it. Else the books of both parts would follow each other, row by row of a stencil, by two rounds of a scheduler and
//           one of a linker each: that was all that such a row took (device/tried.md).
// RETIRED   such a task, when its last stand-in is said to be ready; such a stand-in, when it is said to be. So their slots and
//           the meeting's number do not come again before each has been said to be ready, once, and answered, once
//           (control_state::unretired, told, meeting_held). In the linker's books both are early (dependency_table): they free
//           who waits for them, and stay until those before them are complete.
// COST      a stand-in ready: one store, behind a fence; its answer likewise. A look at the channels each step of a scheduler
//           while a task that crosses is linked there, one load a lane beside its poll of the workers. A hop from part to part,
//           if nothing was staged: release and poll of the predecessor, linker, message, poll, linker, mail: two rounds of
//           schedulers and one of a linker more than a hop within one.
// FAILURE   of a stand-in that would read poison the home is told so: the task is cancelled, and then the stand-in, as any task
//           is. Once this part has seen any failure no task is complete before its stand-ins are ready: it is kept till then.
//           When a task has failed or was cancelled its stand-ins are cancelled, and poison what it would have written
//           there. Either has itself for a cause, unless there is one in its own part (poison::cancel_by_itself): the host
//           knows which task a stand-in stands for.
// OWNERS    ingest fills crossings · the linker alone: meetings, crossings_linked · the scheduler alone: meeting_slots,
//           meeting_held, meetings_bad, unretired, told, crossings_ended, channel_sent, channel_seen. Of a channel the sending
//           scheduler writes, the receiving one reads.
// EDGES     R4A5_step_fence (release, the sender's) -> R19_message · A19_message -> R4A5_step_fence (acquire, the receiver's):
//           what a stand-in's predecessors wrote is visible to the task, and what the task wrote to those behind its stand-ins
//           P7_crossings (linker -> scheduler: how many were ever linked), before R14_ready
//           R20_arrived / A20_arrived (scheduler -> linker: a stand-in is ready), R20_taken / A20_room
#pragma once
#include "device/crossing_stage.hpp"
#include "device/poison.hpp"
#include <new>

namespace slipstream::device {

/// From scheduler to scheduler, 8 bytes, one store.
struct crossing_message {
    enum kind_name : u32 {
        ready,     ///< of a stand-in: what the task does there it may do
        cancelled, ///< of a stand-in: likewise, but it would read poison, and is cancelled when the home has answered
        done,      ///< of the task, to a stand-in: it is complete
        failed     ///< likewise: it has failed, or did not run
    };
    u32 content; ///< window slot of the stand-in | meeting << 12 | kind << 21

    SLIPSTREAM_BOTH static crossing_message make(kind_name kind, u32 slot, u32 meeting)
    {
        return {slot | meeting << 12 | kind << 21};
    }
    SLIPSTREAM_BOTH u32 slot() const { return content & 0xfff; }
    SLIPSTREAM_BOTH u32 meeting() const { return content >> 12 & (abi::meetings_max - 1); }
    SLIPSTREAM_BOTH u32 kind() const { return content >> 21; }
    SLIPSTREAM_BOTH bool answers() const { return kind() >= done; }
    /// Number `number` of its channel.
    SLIPSTREAM_BOTH u64 encode(u32 number) const { return tag_of(number) | static_cast<u64>(content) << 32; }
    SLIPSTREAM_BOTH static bool is(u64 word, u32 number) { return static_cast<u32>(word) == tag_of(number); }
    SLIPSTREAM_BOTH static crossing_message decode(u64 word) { return {static_cast<u32>(word >> 32)}; }
};
static_assert(window_slots_max <= 1u << 12 && abi::meetings_max <= 1u << 9);

/// The scheduler's end: what its functions out of line work on. Engines of one part never call them.
template <class P>
struct crossing_tables {
    using team_type = typename P::team;
    using arrived_end = queue_producer<P, u32, edge::R20_arrived, edge::A20_room>;
    using retired_end = queue_producer<P, u32, edge::R6_retired, edge::A6_notified>;
    using lane_values = typename P::template lane_array<u32, 1>;

    typename P::template word<u64>* channels;
    u32 parts;
    u32 part;
    u32 channel_slots;
    queue_storage<P, u32> arrived;
    queue_storage<P, u32> retired;
    u32* crossings;
    u16* meeting_slots;
    u32* meeting_held;
    u32* meetings_bad;
    u32* sent;
    u32* seen;
    u32* batch;
    u32* counters;
    u32* cause_of;
    task_outcome* outcomes;
    typename P::template cell<task_head>* heads;
    u32* ended;
    u32* unretired;
    u32* told;
    const typename P::template cell<stand_in_list>* lists;

    /// Lanes that look at one channel.
    SLIPSTREAM_BOTH u32 lanes_each() const { return parts <= 2 ? 16 : parts <= 4 ? 8 : 4; }

    SLIPSTREAM_BOTH typename P::template word<u64>& place(u32 from, u32 to, u32 number) const
    {
        return channels[(from * parts + to) * channel_slots + (number & (channel_slots - 1))];
    }

    /// By lane k: what may be the next message but so many from one of the others.
    SLIPSTREAM_BOTH u64 look(u32 k) const
    {
        const u32 from = k / lanes_each();
        if (from >= parts || from == part) return 0;
        return P::load(edge::A19_message, place(from, part, seen[from] + 1 + k % lanes_each()), order::relaxed, scope::device);
    }

    /// By one lane: number `number` to part `to`.
    SLIPSTREAM_BOTH void send(u32 to, u32 number, crossing_message message) const
    {
        // Relaxed: a fence of the step that made it ready, or complete, stands before it.
        P::store(edge::R19_message, place(part, to, number), message.encode(number), order::relaxed, scope::device);
    }

    /// By lane k: did its look bring one?
    SLIPSTREAM_BOTH bool is_message(u32 k, u64 looked) const
    {
        const u32 from = k / lanes_each();
        return from < parts && from != part && crossing_message::is(looked, seen[from] + 1 + k % lanes_each());
    }

    /// Takes the messages that a look brought, by the lanes of `there`: passes stand-ins that are ready on to the linker, and
    /// appends those that are answered to the tasks batch[0..completed). Returns how many these are, and took_bit if it took any.
    /// Retires the tasks that were complete before and have waited for the last of their stand-ins.
    template <class Looked>
    SLIPSTREAM_BOTH u32 take(team_type& team, u32 completed, Looked looked, u32 there) const
    {
        const u32 each = lanes_each();
        const auto run_of = [&](u32 from) { // as there is no gap before them
            return lowest_bit(~(there >> from * each & low_bits(each)));
        };
        there = team.mask32([&](u32 k) { return (there >> k & 1) != 0 && k % each < run_of(k / each); });
        const auto is_answer = [&](u32 k) { return crossing_message::decode(looked.at(0, k)).answers(); };
        u32 news = team.mask32([&](u32 k) { return (there >> k & 1) != 0 && !is_answer(k); });
        arrived_end arrivals(arrived);
        if (const u32 room = arrivals.room(team, popcount(news));
            room < popcount(news)) { // the linker is behind: the others stay where they are
            u32 beyond = news;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < room; ++i) beyond &= beyond - 1;
            there &= low_bits(lowest_bit(beyond));
            news &= there;
            if (there == 0) return completed;
        }
        const u32 answers = there & ~news;
        const u32 bad = team.mask32([&](u32 k) {
            const u32 kind = crossing_message::decode(looked.at(0, k)).kind();
            return (there >> k & 1) != 0 && (kind == crossing_message::cancelled || kind == crossing_message::failed);
        });
        const u32 fresh = team.mask32([&](u32 k) { // first of its task to be cancelled
            if (!(there >> k & 1)) return false;
            const crossing_message message = crossing_message::decode(looked.at(0, k));
            if (answers >> k & 1) {
                batch[completed + popcount(answers & low_bits(k))] = message.slot();
                const u32 mine = 1u << message.slot() % 32;
                if ((told[message.slot() / 32] & mine) != 0) team.clear_bits(told[message.slot() / 32], mine);
                else team.set_bits(unretired[message.slot() / 32], mine); // it is still to be said ready
                if (!(bad >> k & 1)) cause_of[message.slot()] = 0; // it has run, whatever has been poisoned since it was foreseen
                else if (cause_of[message.slot()] == 0) // else it has one in its own part
                    cause_of[message.slot()] = poison_tables<P>::crossing_cause;
                return false;
            }
            arrivals.put_ahead(popcount(news & low_bits(k)), arrival::make(message.meeting(), k / each, message.slot()).word);
            meeting_slots[message.meeting() * parts + k / each] = static_cast<u16>(1 + message.slot());
            team.add(meeting_held[message.meeting()], came_one);
            const u32 bit = 1u << message.meeting() % 32;
            if ((meeting_held[message.meeting()] & held_mask) != 0) return false; // its task, mailed ahead, has run
            return (bad >> k & 1) != 0 && (team.set_bits(meetings_bad[message.meeting() / 32], bit) & bit) == 0;
        });
        completed += popcount(answers);
        // Before any of their tasks is retired: its meeting may come again then (linker).
        arrivals.advance(popcount(news));
        arrivals.publish(team);
        const auto meeting_at = [&](u32 k) { return crossing_message::decode(looked.at(0, k)).meeting(); };
        u32 freed = team.mask32([&](u32 k) { // whose task is done and has waited for this
            if (!(news >> k & 1)) return false;
            const u32 held = meeting_held[meeting_at(k)] & held_mask;
            return held != 0 && all_came(held - 1);
        });
        if (freed != 0) {
            lane_values first, tasks;
            team.match32(freed, meeting_at, first);
            freed = team.mask32([&](u32 k) { return (freed >> k & 1) != 0 && first.at(0, k) == k; });
            const u32 free = team.mask32([&](u32 k) { // to be retired: it was complete before
                if (!(freed >> k & 1)) return false;
                const u32 held = meeting_held[meeting_at(k)];
                const u32 slot = tasks.at(0, k) = (held & held_mask) - 1;
                const bool ends = is_unretired(slot);
                meeting_held[meeting_at(k)] = ends ? 0 : held & ~held_mask;
                return ends;
            });
            freed &= ~free;
            team.each32([&](u32 k) {
                if (freed >> k & 1) batch[completed + popcount(freed & low_bits(k))] = tasks.at(0, k);
                if (!(free >> k & 1)) return;
                batch[completed + popcount(freed) + popcount(free & low_bits(k))] = tasks.at(0, k); // not for long
                team.clear_bits(unretired[tasks.at(0, k) / 32], 1u << tasks.at(0, k) % 32);
                SLIPSTREAM_ONE_COPY
                for (u32 p = 0; p < parts; ++p) meeting_slots[meeting_at(k) * parts + p] = 0;
            });
            completed += popcount(freed);
            retire(team, popcount(free), completed, counters[failures_seen] != 0 ? retired_look : 0);
        }
        team.each32([&](u32 k) {
            if (k < parts && k != part) seen[k] += run_of(k);
        });
        if (bad != 0 && team.leader()) {
            counters[failures_seen] = 1;
            counters[bad_meetings] += popcount(fresh);
        }
        team.sync();
        return completed | took_bit;
    }

    /// Those of the complete tasks batch[first..first + count) that end go into the queue of retired ones, with `flag`.
    SLIPSTREAM_BOTH void retire(team_type& team, u32 count, u32 first, u32 flag) const
    {
        if (count == 0) return;
        team.sync();
        retired_end out(retired);
        u32 crossed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 from = 0; from < count; from += 32) {
            lane_values slots;
            const u32 ending = team.mask32([&](u32 k) {
                if (from + k >= count) return false;
                const u32 slot = slots.at(0, k) = batch[first + from + k];
                if (!is_unretired(slot)) return true;
                if (flag == 0) outcomes[slot] = {}; // it is retired later, when failures may have been seen
                return false;
            });
            crossed += popcount(team.mask32([&](u32 k) {
                return (ending >> k & 1) != 0 && P::get(heads[slots.at(0, k)]).has(abi::flag_crossing);
            }));
            team.each32([&](u32 k) {
                if (ending >> k & 1) out.put_ahead(popcount(ending & low_bits(k)), slots.at(0, k) | flag);
            });
            out.advance(popcount(ending)); // never full: it has room for every slot
        }
        out.publish(team);
        if (crossed != 0 && team.leader()) *ended += crossed;
        team.sync();
    }

    SLIPSTREAM_BOTH bool is_unretired(u32 slot) const { return (unretired[slot / 32] >> slot % 32 & 1) != 0; }

    /// By a lane: have all stand-ins of the task in `slot` said that they are ready?
    SLIPSTREAM_BOTH bool all_came(u32 slot) const
    {
        const abi::crossing_word word{crossings[slot]};
        return meeting_held[word.meeting()] / came_one == word.peer();
    }

    /// Of the tasks batch[0..count) those whose stand-ins have not all said that they are ready (they were foreseen:
    /// crossing_stage.hpp) are kept until these have. Those whose stand-ins are known by a list are complete nevertheless, unless
    /// some task has failed; the others are taken out. Returns how many are left.
    SLIPSTREAM_BOTH u32 hold(team_type& team, u32 count) const
    {
        u32 kept = 0;
        const bool some_bad = counters[bad_meetings] != 0;
        u32 forgiven = 0; // some stand-in was cancelled while its task, mailed ahead, ran
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < count; first += 32) {
            lane_values entries;
            const u32 stay = team.mask32([&](u32 k) {
                if (first + k >= count) return false;
                const u32 entry = entries.at(0, k) = batch[first + k];
                if (entry >> 31 != 0 || !crosses(entry)) return true; // or was skipped
                const abi::crossing_word word{crossings[entry]};
                const u32 bit = 1u << word.meeting() % 32;
                if (some_bad) forgiven += (team.clear_bits(meetings_bad[word.meeting() / 32], bit) & bit) != 0;
                if (all_came(entry)) return true;
                meeting_held[word.meeting()] |= 1 + entry;
                const task_head head = P::get(heads[entry]);
                if (counters[failures_seen] != 0
                    || !abi::counts_for_stand_ins(head.blocks, word.peer(), head.has(abi::flag_clear_failure)))
                    return false;
                team.set_bits(unretired[entry / 32], 1u << entry % 32);
                return true;
            });
            team.each32([&](u32 k) { if (stay >> k & 1) batch[kept + popcount(stay & low_bits(k))] = entries.at(0, k); });
            team.sync();
            kept += popcount(stay);
        }
        if (some_bad) {
            forgiven = team.reduce_add(forgiven);
            if (team.leader()) counters[bad_meetings] -= forgiven;
            team.sync();
        }
        return kept;
    }

    /// The stand-ins in the first `count` of `slots` are ready, or were cancelled: those that `gone` has a bit of. Retires those
    /// that their homes have answered before. Uses `batch`.
    SLIPSTREAM_BOTH void tell_homes(team_type& team, lane_values slots, u32 count, u32 gone) const
    {
        lane_values homes;
        const u32 answered = team.mask32([&](u32 k) {
            if (k >= count) return false;
            homes.at(0, k) = abi::crossing_word{crossings[slots.at(0, k)]}.peer();
            return is_unretired(slots.at(0, k));
        });
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slots.at(0, k), mine = 1u << slot % 32;
            if (answered >> k & 1) team.clear_bits(unretired[slot / 32], mine);
            else team.set_bits(told[slot / 32], mine);
        });
        SLIPSTREAM_ONE_COPY
        for (u32 rest = low_bits(count); rest != 0;) { // most often all have one home
            const u32 home = team.from_lane(homes, lowest_bit(rest));
            const u32 those = team.mask32([&](u32 k) { return (rest >> k & 1) != 0 && homes.at(0, k) == home; });
            const u32 before = sent[home];
            team.each32([&](u32 k) {
                if (!(those >> k & 1)) return;
                const u32 slot = slots.at(0, k);
                send(home, before + popcount(those & low_bits(k)) + 1,
                     crossing_message::make(gone >> k & 1 ? crossing_message::cancelled : crossing_message::ready, slot,
                                            abi::crossing_word{crossings[slot]}.meeting()));
            });
            team.sync();
            if (team.leader()) sent[home] = before + popcount(those);
            rest &= ~those;
        }
        team.sync();
        team.each32([&](u32 k) { if (answered >> k & 1) batch[popcount(answered & low_bits(k))] = slots.at(0, k); });
        retire(team, popcount(answered), 0, counters[failures_seen] != 0 ? retired_look : 0);
    }

    SLIPSTREAM_BOTH bool crosses(u32 slot) const { return P::get(heads[slot]).crosses(); }

    /// The tasks batch[0..count) are complete, and what they wrote is acquired: answers the stand-ins of those that have any.
    /// `outcomes` tell how they ended, if `settled`.
    SLIPSTREAM_BOTH void answer(team_type& team, u32 count, bool settled) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < count; first += 32) {
            u32 some = team.mask32([&](u32 k) { return first + k < count && crosses(batch[first + k]); });
            SLIPSTREAM_ONE_COPY
            for (; some != 0; some &= some - 1) {
                const u32 slot = batch[first + lowest_bit(some)];
                const u32 meeting = abi::crossing_word{crossings[slot]}.meeting();
                const auto kind = settled && outcomes[slot].failure != 0 ? crossing_message::failed : crossing_message::done;
                if (is_unretired(slot)) { // not all of them have come: its list has all
                    const stand_in_list list = P::get(lists[slot]);
                    team.each32([&](u32 k) {
                        const u32 entry = k < stand_in_list::most ? list.at(k) : 0;
                        if (entry == 0) return;
                        const u32 to = stand_in_list::part_of(entry);
                        send(to, ++sent[to], crossing_message::make(kind, stand_in_list::slot_of(entry), meeting));
                    });
                    team.sync();
                    continue;
                }
                team.each32([&](u32 k) {
                    if (k == 0) meeting_held[meeting] = 0;
                    if (k >= parts) return;
                    const u32 stand_in = meeting_slots[meeting * parts + k];
                    meeting_slots[meeting * parts + k] = 0;
                    if (stand_in == 0) return;
                    send(k, ++sent[k], crossing_message::make(kind, stand_in - 1, meeting));
                });
                team.sync();
            }
        }
    }

    /// Was a stand-in of this task cancelled? Once.
    SLIPSTREAM_BOTH bool gives_up(team_type& team, u32 slot) const
    {
        if (!crosses(slot)) return false;
        const u32 meeting = abi::crossing_word{crossings[slot]}.meeting();
        const u32 word = meetings_bad[meeting / 32];
        if ((word >> meeting % 32 & 1) == 0) return false;
        team.sync();
        if (team.leader()) {
            meetings_bad[meeting / 32] = word & ~(1u << meeting % 32);
            --counters[bad_meetings];
        }
        team.sync();
        return true;
    }

    static constexpr u32 took_bit = 1u << 31;
    static constexpr u32 came_one = 1u << 16, held_mask = came_one - 1; ///< of meeting_held
};

/// What the scheduler calls where there are several parts. Out of line is what seldom happens.
template <class P>
class crossing {
public:
    using team_type = typename P::team;
    using looked_type = typename P::template lane_array<u64, 1>;
    using lane_values = typename crossing_tables<P>::lane_values;

    SLIPSTREAM_BOTH crossing(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Once a launch, before the first step: what the functions out of line read lies in fast memory. Handed over at each call it
    /// would take two dozen stores, and registers for what is to be stored all the time.
    SLIPSTREAM_BOTH void begin() const
    {
        team_type::each32([&](u32 k) { if (k == 0) new (s_.crossing_words) crossing_tables<P>(tables()); });
    }
    /// Is a task that crosses, or a stand-in, linked here and not known to have come to its end? All those that were handed
    /// over are counted: relaxed, since the queue of ready tasks orders the linker's count. While there is none nobody sends a
    /// message that is of use yet: it stays in its channel.
    SLIPSTREAM_BOTH bool some(team_type& team) const
    {
        return team.broadcast(team.leader() ? P::load(edge::P7_crossings, *s_.crossings_linked, order::relaxed, scope::block) : 0u)
            != *s_.crossings_ended;
    }
    /// One load a lane, which flies beside the poll of the workers.
    SLIPSTREAM_BOTH void look(team_type& team, looked_type& looked) const
    {
        const crossing_tables<P> t = tables();
        team.each32([&](u32 k) { looked.at(0, k) = t.look(k); });
    }
    /// A bit for each lane whose look brought one: most often none.
    SLIPSTREAM_BOTH u32 came(team_type& team, looked_type& looked) const
    {
        const crossing_tables<P> t = tables();
        return team.mask32([&](u32 k) { return t.is_message(k, looked.at(0, k)); });
    }
    /// Behind a fence: what the linker hears by it must not come before what other linkers have said (crossing_stage.hpp).
    SLIPSTREAM_BOTH u32 take(team_type& team, u32 completed, looked_type looked, u32 there) const
    {
        return take_out(book(), team, completed, looked, there);
    }
    SLIPSTREAM_BOTH u32 hold(team_type& team, u32 count) const
    {
        u32 mine = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) mine |= P::get(s_.heads[s_.batch[k] & 0xffff]).crosses();
        return team.any(mine != 0) ? hold_out(book(), team, count) : count;
    }
    SLIPSTREAM_BOTH void tell_homes(team_type& team, lane_values slots, u32 count, u32 gone) const
    {
        tell_homes_out(book(), team, slots, count, gone);
    }
    SLIPSTREAM_BOTH void answer(team_type& team, u32 count, bool settled) const
    {
        bool mine = false;
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) mine |= P::get(s_.heads[s_.batch[k]]).crosses();
        if (team.any(mine)) answer_out(book(), team, count, settled);
    }
    SLIPSTREAM_BOTH bool is_unretired(u32 slot) const { return (s_.unretired[slot / 32] >> slot % 32 & 1) != 0; }
    /// Puts those of the complete tasks batch[0..count) that end into the queue of retired ones, with `flag`.
    SLIPSTREAM_BOTH void retire(team_type& team, u32 count, u32 flag) const { retire_out(book(), team, count, flag); }
    SLIPSTREAM_BOTH bool gives_up(team_type& team, u32 slot) const { return gives_up_out(book(), team, slot); }
    /// Was some stand-in cancelled whose task has not been looked at yet?
    SLIPSTREAM_BOTH bool bad() const { return s_.counters[bad_meetings] != 0; }

    static constexpr u32 took_bit = crossing_tables<P>::took_bit;

private:
    SLIPSTREAM_BOTH crossing_tables<P>* book() const { return reinterpret_cast<crossing_tables<P>*>(s_.crossing_words); }
    static_assert(sizeof(crossing_tables<P>) <= sizeof(u64) * crossing_words_max);
    SLIPSTREAM_BOTH crossing_tables<P> tables() const
    {
        return {m_.channels, m_.n.parts, m_.n.part, m_.n.channel_slots(), s_.arrived_queue(), s_.retired_queue(),
                s_.crossings, s_.meeting_slots, s_.meeting_held, s_.meetings_bad, s_.channel_sent, s_.channel_seen,
                s_.batch, s_.counters, s_.poison_cause_of, s_.poison_outcomes, s_.heads, s_.crossings_ended,
                s_.unretired, s_.told, s_.stand_in_lists};
    }
    SLIPSTREAM_BOTH_RARE static u32 take_out(const crossing_tables<P>* t, team_type team, u32 completed,
                                             looked_type looked, u32 there)
    {
        return t->take(team, completed, looked, there);
    }
    SLIPSTREAM_BOTH_RARE static u32 hold_out(const crossing_tables<P>* t, team_type team, u32 count)
    {
        return t->hold(team, count);
    }
    SLIPSTREAM_BOTH_RARE static void tell_homes_out(const crossing_tables<P>* t, team_type team, lane_values slots, u32 count,
                                                    u32 gone)
    {
        t->tell_homes(team, slots, count, gone);
    }
    SLIPSTREAM_BOTH_RARE static void answer_out(const crossing_tables<P>* t, team_type team, u32 count, bool settled)
    {
        t->answer(team, count, settled);
    }
    SLIPSTREAM_BOTH_RARE static void retire_out(const crossing_tables<P>* t, team_type team, u32 count, u32 flag)
    {
        t->retire(team, count, 0, flag);
    }
    SLIPSTREAM_BOTH_RARE static bool gives_up_out(const crossing_tables<P>* t, team_type team, u32 slot)
    {
        return t->gives_up(team, slot);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
