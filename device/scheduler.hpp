// The scheduler role: mails blocks of ready tasks to workers, takes their answers, retires what they completed.
//
// CRITICAL PATH of a dependent hop, in serialised L2 round trips (RT) and fences of this role:
//   completion word polled (1 RT, all workers' words in one go) -> one fence for the whole step; beside it the table
//   (dependency_table.hpp, a warp of its own) wakes the successors -> mail stored (one way). With the worker's share
//   (device/worker.hpp): release of the completion word, acquire after the mail, record read (1 RT).
//   Per task that is 1 completion store, 1 mail store, 1 step fence shared by everything the step saw.
// What is not on it: hazards are found by admission and linked by the table beside it; retiring comes after the mails.
//
// DISPATCH
//   no more blocks than workers: each block is one mail; idle workers first, then, when every worker is busy, mailboxes with
//     room.
//   more blocks than workers: idle workers are invited with a ticket mail and draw block numbers from the record's counter.
//     An invited worker answers once, when the counter is used up (or a park stops it), and says which; once one has seen it
//     used up nobody else is invited. No completion per block, no task behind a busy worker.
//
// FAILURE (device/poison.hpp) once a body has failed, completed tasks are settled behind the fence and before the linker hears of
//   them; the head of the ready queue is judged before its first mail. A cancelled task is completed by the next step, without mail.
//
// OWNERS  this role alone writes the mailboxes. What it knows of the workers (mails sent, answers seen, slots of the mails due)
//         lies in the lanes' registers: lane k of group g has worker 32 g + k.
// STATES  of a worker: idle (sent == seen) -> busy (sent - seen = 1) -> staged (2) by mails; back by completions.
//         outstanding[slot]: answers due. Without tickets: of all blocks, from the start. With tickets: of the invited workers,
//         and one more until the tickets are drawn. 0: complete.
// EDGES   A5 (done, relaxed poll) + R4A5 (one acq_rel fence at device scope) + R4 (mail, relaxed): completion -> successor.
//         Without the fence PTX gives no causality from the completed worker to the mailed one.
//         R13 (completed) goes out before the fence, so that the table works meanwhile: what it hands back (A14) is mailed after
//         the fence. Nobody else learns of the completion before it: the notifier (R6) is told last.
//         The fence also makes the records that ingest wrote visible to workers, those of the tasks that the table had linked
//         when this role last looked (A15) before it; for a task linked since, a further fence stands before its mail.
#pragma once
#include "device/poison.hpp"

namespace slipstream::device {

inline constexpr u32 number_mask = 0x3fffffff; ///< mails and answers are counted in 30 bits
/// Never 0, also when the count wraps.
SLIPSTREAM_BOTH u32 tag_of(u32 number) { return (number & number_mask) | 1u << 31; }

/// A mail: what a worker is asked to do. 16 bytes, one store. It names the submission too, so that the flight recorder needs
/// no look at the record.
struct mail {
    u32 slot_and_type; ///< window slot | type << 16, or leave
    u32 block;
    u32 identity;      ///< identity_of(task id) | tickets_bit
    u32 tag;           ///< tag_of(mails ever sent to this worker, this one included); 0: no mail

    SLIPSTREAM_BOTH u32 slot() const { return slot_and_type & 0xffff; }
    SLIPSTREAM_BOTH u32 type() const { return slot_and_type >> 16; }
    SLIPSTREAM_BOTH bool tickets() const { return identity >> 31; }
    SLIPSTREAM_BOTH bool leaves() const { return slot_and_type == leave; }
    SLIPSTREAM_BOTH abi::chunk encode() const { return {{slot_and_type, block, identity, tag}}; }
    SLIPSTREAM_BOTH static mail decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }

    static constexpr u32 leave = 0xffffffff;
    static constexpr u32 tickets_bit = 1u << 31;
};
static_assert(rings_max <= 16 && window_slots_max <= 0x10000);

/// Where the scheduler stands, for the notifier.
enum class schedule_phase : u32 { running = 0, finished = 1 };

/// The completion word: mails answered, and what is to be said of the last one.
struct done_word {
    u32 raw;
    static constexpr u32 failed_bit = 1; ///< a body on this worker has failed since the engine was made
    static constexpr u32 drawn_bit = 2;  ///< the last mail was a ticket mail and no ticket is left

    SLIPSTREAM_BOTH static u32 make(u32 count, u32 bits) { return count << 2 | bits; } ///< the count's upper bits fall off
    SLIPSTREAM_BOTH u32 count() const { return raw >> 2; }
};

template <class P, u32 Groups = P::worker_groups>
class scheduler {
public:
    using team_type = typename P::team;
    static constexpr u32 workers_max = 32 * Groups;

    SLIPSTREAM_BOTH scheduler(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), poison_(memory, state), ready_(state.ready_queue()), completed_(state.completed_queue()), retired_(state.retired_queue())
    {
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team_type::each32([&](u32 k) {
                const u32 w = 32 * g + k;
                const u32 count = w < m_.n.workers ? s_.sent[w] : 0;
                sent_.at(g, k) = count;
                seen_.at(g, k) = count;
                mailed_.at(g, k) = 0;
            });
    }

    /// One round: poll, hand completions to the table, fence, mail what is ready, and only then the bookkeeping. True when it
    /// did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        if (fresh_) fence(team); // from here on covered_ is of this launch
        const u32 mails_before = mails_;
        u32 completed = poll_completions(team);
        bool answered = mails_ != mails_before;
        poisoned_ = poison_.any();
        if (poisoned_ && poison_.pending() != 0) {
            completed = poison_.collect(team, completed); // cancelled tasks complete like any other
            answered = true;
        }
        bool more = false;
        if (completed != 0) {
            settled_ = poisoned_ || s_.counters[failures_seen] != 0;
            if (settled_) {
                fence(team);
                poison_.settle(team, completed);
                poisoned_ = poison_.any();
                tell_linker(team, completed);
            } else {
                tell_linker(team, completed);
                fence(team);
            }
            // The linker is nearly done by now: sooner than another poll comes back. Bounded; not waited for, it comes round.
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < P::wait_for_table && !more; ++i) more = ready_.look(team) || completed_.drained(team);
        }
        more |= ready_.look(team);
        // Nothing can be mailed that could not be before.
        if (!answered && !more && !fresh_) return false;
        fresh_ = false;
        dispatch(team);
        retire(team, completed);
        return true;
    }

    /// The park command was seen: no new mails from now on.
    SLIPSTREAM_BOTH void stop_dispatch() { parking_ = true; }

    /// No mail is out, and no cancelled task waits for the next step.
    SLIPSTREAM_BOTH bool workers_idle() const { return mails_ == 0 && poison_.pending() == 0; }

    /// Tells every worker to leave, and saves what lives in registers. All workers must be idle.
    SLIPSTREAM_BOTH void dismiss_workers(team_type& team)
    {
        team.sync();
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= m_.n.workers) return;
                const u32 count = sent_.at(g, k) + 1; // a worker's last answer is not awaited: the kernel's end is
                s_.sent[w] = count;
                send(w, mail{mail::leave, 0, 0, tag_of(count)});
            });
        team.sync();
    }

private:
    SLIPSTREAM_BOTH void tell_linker(team_type& team, u32 completed)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < completed; k += team.size()) completed_.put_ahead(k, s_.batch[k]);
        completed_.advance(completed); // never full: it has room for every slot
        completed_.publish(team);
    }

    /// Acquires what the polls of this step saw and releases it to whoever is mailed from now on: completions, and the records
    /// of the tasks linked by now.
    SLIPSTREAM_BOTH void fence(team_type& team)
    {
        covered_ = team.broadcast(team.leader() ? P::load(edge::A15_linked, *s_.linked, order::acquire, scope::block) : 0u);
        team.sync();
        if (team.leader()) P::fence(edge::R4A5_step_fence, order::acq_rel, scope::device);
        team.sync();
    }

    /// Reads the completion words of all workers, all loads in flight together, and takes one answer of each worker that
    /// answered (a second one comes round with the next step). Returns how many tasks are complete by them: batch[0..n).
    /// Touches no data that the answers released: the fence comes after.
    SLIPSTREAM_BOTH u32 poll_completions(team_type& team)
    {
        if (mails_ == 0) return 0;
        typename P::template lane_array<u32, Groups> answers;
        u32 changed[Groups];
        team.masks32(
            changed,
            [&](u32 g, u32 k) {
                const u32 w = 32 * g + k;
                return w < m_.n.workers ? P::load(edge::A5_done, m_.done[w], order::relaxed, scope::device) : 0u;
            },
            [&](u32 g, u32 k, u32 value) {
                answers.at(g, k) = value;
                return 32 * g + k < m_.n.workers && done_word{value}.count() != (seen_.at(g, k) & number_mask);
            });
        u32 any = 0;
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g) any |= changed[g];
        if (any == 0) return 0;
        u32 completed = 0;
        bool drawn = false; // on some lane
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g) {
            if (changed[g] == 0) continue;
            mails_ -= popcount(changed[g]);
            const u32 complete = team.mask32([&](u32 k) {
                if (!(changed[g] >> k & 1)) return false;
                const u32 value = answers.at(g, k);
                const u32 slot = mailed_.at(g, k) & 0xffff;
                mailed_.at(g, k) >>= 16;
                ++seen_.at(g, k);
                if (value & done_word::failed_bit) s_.counters[failures_seen] = 1; // any lane: they all write the same
                drawn |= slot == open_ && (value & done_word::drawn_bit) != 0;
                answers.at(g, k) = slot;
                return team.add(s_.outstanding[slot], ~u32{0}) == 1;
            });
            team.each32([&](u32 k) { if (complete >> k & 1) s_.batch[completed + popcount(complete & ((1u << k) - 1))] = answers.at(g, k); });
            completed += popcount(complete);
        }
        team.sync();
        if (open_ != no_slot && team.any(drawn)) {
            // The task at the head of the ready queue has no tickets left: nobody else is invited, its last answer completes it.
            const u32 left = s_.outstanding[open_] - 1;
            team.sync();
            if (team.leader()) {
                s_.outstanding[open_] = left;
                if (left == 0) s_.batch[completed] = open_;
            }
            if (left == 0) ++completed;
            open_ = no_slot;
            ready_.skip(1);
            team.sync();
        }
        return completed;
    }

    /// Tells the notifier of the completed tasks batch[0..count). Their slots travel on through admission to ingest.
    SLIPSTREAM_BOTH void retire(team_type& team, u32 count)
    {
        if (count == 0) return;
        const u32 flag = settled_ ? retired_look : 0;
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) retired_.put_ahead(k, s_.batch[k] | flag);
        retired_.advance(count); // never full: it has room for every slot
        retired_.publish(team);
    }

    SLIPSTREAM_BOTH u32 ready_slot(u32 ahead) const { return ready_.peek(ahead).slot(); }

    /// Mails blocks of ready tasks, oldest first, while there are workers for them.
    SLIPSTREAM_BOTH void dispatch(team_type& team)
    {
        SLIPSTREAM_ONE_COPY
        while (!parking_ && ready_.known() != 0) {
            const ready_entry entry = ready_.peek(0);
            const u32 slot = entry.slot();
            if (poisoned_ && poison_.cancels(team, slot)) {
                ready_.skip(1);
                continue;
            }
            parcel p{P::get(s_.heads[slot]), 0, 0, 1, mailbox_depth, false};
            bool late = entry.linked_after(covered_);
            if (p.head.blocks == 1) {
                if (ready_.known() > 1 && !poisoned_) { // else only the one that was just judged
                    p.count = ones_in_a_row(team);
                    p.ones = true;
                    late = team.mask32([&](u32 k) { return k < p.count && ready_.peek(k).linked_after(covered_); }) != 0;
                }
            } else if (p.head.blocks <= m_.n.workers) {
                p.block = s_.dealt[slot];
                p.count = p.head.blocks - p.block;
            } else {
                // It stays at the head, inviting workers as they fall idle, until its tickets are drawn.
                open_ = slot;
                p.tickets = mail::tickets_bit;
                p.count = m_.n.workers;
                p.depth = 1;
            }
            if (late) fence(team);
            const u32 mailed = hand_out(team, p);
            if (p.ones || (mailed == p.count && p.tickets == 0)) {
                ready_.skip(p.ones ? mailed : 1);
                if (mailed == 0) break;
                continue;
            }
            team.sync();
            if (team.leader()) {
                s_.dealt[slot] = p.block + mailed;
                if (p.tickets) s_.outstanding[slot] += mailed;
            }
            team.sync();
            break;
        }
        ready_.release(team);
    }

    /// One-block tasks from the head of the ready queue on, 32 at most; the first is one.
    SLIPSTREAM_BOTH u32 ones_in_a_row(team_type& team)
    {
        const u32 ready_count = ready_.known();
        const u32 ones = team.mask32([&](u32 k) { return k < ready_count && P::get(s_.heads[ready_slot(k)]).blocks == 1; });
        return ones == ~0u ? 32 : lowest_bit(~ones);
    }

    /// What hand_out() is to mail: `count` mails, to workers with fewer than `depth` mails due.
    struct parcel {
        task_head head;
        u32 block;   ///< of the first mail; the next ones count on
        u32 tickets; ///< 0 or mail::tickets_bit
        u32 count;
        u32 depth;
        bool ones;   ///< mail i is the i-th ready task, of one block; else all are of the task `head`
    };

    /// Mails to idle workers first. Returns how many were sent. One copy: it is the largest piece of this role's code.
    SLIPSTREAM_BOTH u32 hand_out(team_type& team, const parcel& p)
    {
        u32 mailed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 due = 0; due < p.depth && mailed < p.count; ++due) {
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                if (mailed >= p.count) continue;
                const u32 takers = team.mask32(
                    [&](u32 k) { return 32 * g + k < m_.n.workers && sent_.at(g, k) - seen_.at(g, k) == due; });
                team.each32([&](u32 k) {
                    const u32 i = mailed + popcount(takers & ((1u << k) - 1));
                    if (!(takers >> k & 1) || i >= p.count) return;
                    const task_head head = p.ones ? P::get(s_.heads[ready_slot(i)]) : p.head;
                    const u32 number = ++sent_.at(g, k);
                    mailed_.at(g, k) |= (head.slot_and_type & 0xffff) << 16 * due;
                    send(32 * g + k, {head.slot_and_type, p.ones || p.tickets ? 0 : p.block + i, head.identity | p.tickets, tag_of(number)});
                });
                const u32 taken = popcount(takers);
                mailed = taken < p.count - mailed ? mailed + taken : p.count;
            }
        }
        mails_ += mailed;
        return mailed;
    }

    SLIPSTREAM_BOTH void send(u32 w, const mail& letter)
    {
        // Relaxed: the step's fence stands before it, and the mail itself carries its tag.
        P::store(edge::R4_mail, m_.mailboxes[w].mail[letter.tag % mailbox_depth], letter.encode(), order::relaxed,
                 scope::device);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    poison<P> poison_;
    queue_consumer<P, ready_entry, edge::A14_ready, edge::R14_taken> ready_;
    queue_producer<P, u32, edge::R13_completed, edge::A13_taken> completed_;
    queue_producer<P, u32, edge::R6_retired, edge::A6_notified> retired_;
    // Workers, in the lanes' registers.
    typename P::template lane_array<u32, Groups> sent_;   ///< mails ever sent
    typename P::template lane_array<u32, Groups> seen_;   ///< answers ever taken
    typename P::template lane_array<u32, Groups> mailed_; ///< slots of the mails due: the older one in the low half
    bool parking_ = false;
    bool poisoned_ = false; ///< poison_.any(), for this step
    bool settled_ = false;  ///< the batch in hand has outcomes
    bool fresh_ = true;   ///< no step yet since the launch
    u32 covered_ = 0;     ///< tasks linked when the last fence was made, wrapping; see ready_entry
    u32 mails_ = 0;       ///< mails not yet answered
    u32 open_ = no_slot;  ///< ticket task at the head of the ready queue that workers were invited to
};

} // namespace slipstream::device
