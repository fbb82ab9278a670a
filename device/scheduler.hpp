// The scheduler role: mails blocks of ready tasks to workers, takes their answers, retires what they completed.
//
// CRITICAL PATH of a dependent hop, in serialised L2 round trips (RT) and fences of this role:
//   completion word polled (1 RT, all workers' words in one go) -> one fence for the whole step; beside it the linker
//   (linker.hpp, a warp of its own) wakes the successors -> mail stored (one way). With the worker's share
//   (device/worker.hpp): release of the completion word, acquire after the mail, record read (1 RT).
//   Per task that is 1 completion store, 1 mail store, 1 step fence shared by everything the step saw.
//   A staged task was mailed before its predecessors were done: it starts when its worker sees their finished counts (1 release, 1 RT),
//   and this role is not on the path.
// What is not on it: hazards are found by admission and linked by the linker beside it; retiring is done while the linker works.
//
// DISPATCH
//   no more blocks than workers: each block is one mail; idle workers first, then, when every worker is busy, mailboxes with
//     room. A task of one block that waits for nobody takes such a second place only where much is ready.
//   staged (a task that waits for running ones): mailed like any other, with the list of what it waits for. No deadlock: whatever a
//     mail waits for was mailed before it, and each worker takes its mails in order.
//   more blocks than workers: idle workers are invited with a ticket mail and draw block numbers from the record's counter.
//     An invited worker answers once, when the counter is used up (or a park stops it), and says which; once one has seen it
//     used up nobody else is invited. No completion per block, no task behind a busy worker.
//
// FAILURE (device/poison.hpp) once a body has failed, completed tasks are settled behind the fence and before the linker hears of
//   them; the head of the ready queue is judged before its first mail. A cancelled task is completed by the next step, without mail.
//   A staged task whose predecessor fails is skipped by all its workers: it goes back to the linker, and comes again when its
//   predecessors are complete. While there is poison nothing is mailed staged.
//
// OWNERS  this role alone writes the mailboxes. What it knows of the workers (mails sent, answers seen, slots of the mails due)
//         lies in the lanes' registers: lane k of group g has worker 32 g + k.
// STATES  of a worker: idle (sent == seen) -> busy (sent - seen = 1) -> full (2) by mails; back by completions.
//         outstanding[slot]: answers due. Without tickets: of all blocks, from the start. With tickets: of the invited workers,
//         and one more until the tickets are drawn. 0: complete.
// EDGES   A5 (done, relaxed poll) + R4A5 (one acq_rel fence at device scope) + R4 (mail, relaxed): completion -> successor.
//         Without the fence PTX gives no causality from the completed worker to the mailed one.
//         R13 (completed) goes out before the fence, so that the linker works meanwhile: what it hands back (A14) is mailed after
//         the fence. Nobody else learns of the completion before it: the notifier (R6) is told after.
//         The fence also makes the records that ingest wrote visible to workers, those of the tasks that the linker had taken in
//         when this role last looked (A15) before it; for a task linked since, a further fence stands before its mail.
#pragma once
#include "device/poison.hpp"

namespace slipstream::device {

inline constexpr u32 number_mask = 0x07ffffff; ///< mails and answers are counted in 27 bits
/// Never 0, also when the count wraps.
SLIPSTREAM_BOTH u32 tag_of(u32 number) { return (number & number_mask) | 1u << 31; }

/// A mail: what a worker is asked to do. 16 bytes, one store. It names the submission too, so that the flight recorder needs
/// no look at the record.
struct mail {
    u32 slot_and_type; ///< window slot | type << 16, or leave
    u32 block_and_waits; ///< block | number of tasks to wait for << 28
    u32 identity;      ///< identity_of(task id) | tickets_bit
    u32 tag;           ///< tag_of(mails ever sent to this worker, this one included); 0: no mail

    SLIPSTREAM_BOTH u32 slot() const { return slot_and_type & 0xffff; }
    SLIPSTREAM_BOTH u32 type() const { return slot_and_type >> 16; }
    SLIPSTREAM_BOTH u32 block() const { return block_and_waits & 0x0fffffff; }
    SLIPSTREAM_BOTH u32 waits() const { return block_and_waits >> 28; }
    SLIPSTREAM_BOTH u32 task() const { return identity & ~tickets_bit; }
    SLIPSTREAM_BOTH bool tickets() const { return identity >> 31; }
    SLIPSTREAM_BOTH bool leaves() const { return slot_and_type == leave; }
    SLIPSTREAM_BOTH abi::chunk encode() const { return {{slot_and_type, block_and_waits, identity, tag}}; }
    SLIPSTREAM_BOTH static mail decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }

    static constexpr u32 leave = 0xffffffff;
    static constexpr u32 tickets_bit = 1u << 31;
};
static_assert(rings_max <= 16 && window_slots_max <= 0x10000 && waits_max < 16);

/// Where the scheduler stands, for the notifier.
enum class schedule_phase : u32 { running = 0, finished = 1 };

/// The completion word: mails answered, and what is to be said of the last one.
struct done_word {
    u32 raw;
    static constexpr u32 failed_bit = 1; ///< a body on this worker has failed since the engine was made
    static constexpr u32 drawn_bit = 2;  ///< the last mail was a ticket mail and no ticket is left
    static constexpr u32 skipped_bit = 4; ///< the last mail was staged, and not run since one before it failed
    static constexpr u32 skipped_before_bit = 8; ///< the mail before the last one likewise: two may be answered between two polls

    static constexpr u32 paused_bit = 16; ///< the next mail is staged; the worker left for a park and comes back to it

    SLIPSTREAM_BOTH static u32 make(u32 count, u32 bits) { return count << 5 | bits; } ///< the count's upper bits fall off
    SLIPSTREAM_BOTH u32 count() const { return raw >> 5; }
    /// Was mail `number` skipped? One of the last two.
    SLIPSTREAM_BOTH bool skipped(u32 number) const
    {
        return (raw & ((number & number_mask) == count() ? skipped_bit : skipped_before_bit)) != 0;
    }
};

template <class P, u32 Groups = P::worker_groups>
class scheduler {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH scheduler(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), poison_(memory, state), ready_(state.ready_queue()), reports_(state.report_queue()), retired_(state.retired_queue())
    {
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team_type::each32([&](u32 k) {
                const u32 w = 32 * g + k;
                const bool real = w < m_.n.workers;
                sent_.at(g, k) = real ? s_.sent[w] : 0;
                seen_.at(g, k) = real ? s_.seen[w] : 0;
                mailed_.at(g, k) = real ? s_.mailed[w] : 0;
            });
    }

    /// One round: poll, hand completions to the linker, fence, bookkeeping while the linker works, mail what is ready. True when it
    /// did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        if (fresh_) {
            mails_ = mails_due(team);
            fence(team); // from here on covered_ is of this launch
        }
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
                completed = send_back_skipped(team, completed);
                poison_.settle(team, completed);
                poisoned_ = poison_.any();
                tell_linker(team, completed, [&](u32 slot) { return poison_.kind_of(slot); });
            } else {
                tell_linker(team, completed, [](u32) { return report_kind::completed; });
                fence(team);
            }
            retire(team, completed);
            // The linker is nearly done by now: sooner than another poll comes back. Bounded; not waited for, it comes round.
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < P::wait_for_linker && !more; ++i) more = ready_.look(team) || reports_.drained(team);
        }
        more |= ready_.look(team);
        // Nothing can be mailed that could not be before.
        if (!answered && !more && !fresh_) return false;
        fresh_ = false;
        dispatch(team);
        return true;
    }

    /// The park command was seen: no new mails from now on.
    SLIPSTREAM_BOTH void stop_dispatch() { parking_ = true; }

    /// No mail is out, but for a park staged ones that their workers have left for it; and no cancelled task waits for the next step.
    SLIPSTREAM_BOTH bool workers_idle(team_type& team)
    {
        if (poison_.pending() != 0) return false;
        return mails_ == 0 || (parking_ && all_paused(team));
    }

    /// Tells every idle worker to leave, and saves what lives in registers. After workers_idle().
    SLIPSTREAM_BOTH void dismiss_workers(team_type& team)
    {
        team.sync();
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= m_.n.workers) return;
                s_.mailed[w] = mailed_.at(g, k);
                s_.sent[w] = sent_.at(g, k);
                s_.seen[w] = seen_.at(g, k);
                if (sent_.at(g, k) != seen_.at(g, k)) { // it has left; its word is nobody's until it comes back
                    const u32 word = P::load(edge::A5_done, m_.done[w], order::relaxed, scope::device);
                    P::store(edge::P5_self, m_.done[w], word & ~done_word::paused_bit, order::relaxed, scope::device);
                    return;
                }
                const u32 count = sent_.at(g, k) + 1; // its last answer is not awaited: the kernel's end is
                s_.sent[w] = s_.seen[w] = count;
                send(w, mail{mail::leave, 0, 0, tag_of(count)});
            });
        team.sync();
    }

private:
    template <class KindOf>
    SLIPSTREAM_BOTH void tell_linker(team_type& team, u32 completed, KindOf kind_of)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < completed; k += team.size())
            reports_.put_ahead(k, report::make(kind_of(s_.batch[k]), s_.batch[k]));
        reports_.advance(completed); // never full: it has room for every slot
        reports_.publish(team);
    }

    /// Takes the skipped tasks out of the batch. All their blocks were skipped: they begin anew.
    SLIPSTREAM_BOTH u32 send_back_skipped(team_type& team, u32 count)
    {
        u32 kept = 0, skipped = 0;
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < count; ++i) {
            const u32 entry = s_.batch[i];
            team.sync();
            if (!(entry & skipped_flag)) {
                if (team.leader()) s_.batch[kept] = entry;
                ++kept;
                continue;
            }
            if (team.leader()) {
                const u32 slot = entry & ~skipped_flag;
                s_.outstanding[slot] = P::get(s_.heads[slot]).blocks;
                s_.dealt[slot] = 0;
                reports_.put_ahead(skipped, report::make(report_kind::skipped, slot));
            }
            ++skipped;
        }
        reports_.advance(skipped);
        team.sync();
        return kept;
    }

    SLIPSTREAM_BOTH u32 mails_due(team_type& team)
    {
        u32 mine = 0;
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g) team.each32([&](u32 k) { mine += sent_.at(g, k) - seen_.at(g, k); });
        return team.reduce_add(mine);
    }

    /// Has every worker that owes an answer left for the park?
    SLIPSTREAM_BOTH bool all_paused(team_type& team)
    {
        u32 busy = 0;
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            busy |= team.mask32([&](u32 k) {
                if (sent_.at(g, k) == seen_.at(g, k)) return false;
                const done_word word{P::load(edge::A5_done, m_.done[32 * g + k], order::relaxed, scope::device)};
                return word.count() != (seen_.at(g, k) & number_mask) || (word.raw & done_word::paused_bit) == 0;
            });
        return busy == 0;
    }

    /// Acquires what the polls of this step saw and releases it to whoever is mailed from now on: completions, and the records
    /// of the tasks linked by now.
    SLIPSTREAM_BOTH void fence(team_type& team)
    {
        covered_ = team.broadcast(team.leader() ? P::load(edge::A15_linked, *s_.linked, order::acquire, scope::block) : 0u);
        // Each lane polled some workers and mails to some: what one acquires, all release.
        P::fence(edge::R4A5_step_fence, order::acquire, scope::device);
        team.sync();
        P::fence(edge::R4A5_step_fence, order::release, scope::device);
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
                const bool skipped = done_word{value}.skipped(seen_.at(g, k));
                if (skipped || (value & done_word::failed_bit) != 0) s_.counters[failures_seen] = 1; // any lane: they all write the same
                drawn |= slot == open_ && (value & done_word::drawn_bit) != 0;
                answers.at(g, k) = slot | (skipped ? skipped_flag : 0);
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
            if (poisoned_ && (entry.waits() != 0 ? declines(team, slot) : poison_.cancels(team, slot))) {
                ready_.skip(1);
                continue;
            }
            parcel p{P::get(s_.heads[slot]), 0, 0, 1, mailbox_depth, entry, false};
            bool late = entry.linked_after(covered_);
            if (p.head.blocks == 1) {
                if (ready_.known() > 1 && !poisoned_) { // else only the one that was just judged
                    p.count = ones_in_a_row(team);
                    p.ones = true;
                    late = team.mask32([&](u32 k) { return k < p.count && ready_.peek(k).linked_after(covered_); }) != 0;
                }
                if (entry.waits() == 0 && !crowded()) p.depth = 1;
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
        reports_.publish(team);
    }

    /// A staged task may not be mailed while there is poison, unless some of it was mailed before: it goes back to the linker.
    SLIPSTREAM_BOTH bool declines(team_type& team, u32 slot)
    {
        if (s_.dealt[slot] != 0) return false;
        if (team.leader()) reports_.put_ahead(0, report::make(report_kind::declined, slot));
        reports_.advance(1);
        return true;
    }

    /// One-block tasks from the head of the ready queue on, 32 at most; the first is one. All staged or none, unless it is crowded.
    SLIPSTREAM_BOTH u32 ones_in_a_row(team_type& team)
    {
        const u32 ready_count = ready_.known();
        const bool together = crowded();
        const bool staged = ready_.peek(0).waits() != 0;
        const u32 ones = team.mask32([&](u32 k) {
            if (k >= ready_count || P::get(s_.heads[ready_slot(k)]).blocks != 1) return false;
            return together || (ready_.peek(k).waits() != 0) == staged;
        });
        return ones == ~0u ? 32 : lowest_bit(~ones);
    }

    /// Is there so much to do that a task may be mailed behind another one? Else it waits for an idle worker, which comes soon: on its
    /// worker it might stand behind a long or a waiting one. A staged task, which waits anyhow, may at any time.
    SLIPSTREAM_BOTH bool crowded() const { return ready_.known() + mails_ > m_.n.workers + m_.n.workers / 4; }

    /// What hand_out() is to mail: `count` mails, to workers with fewer than `depth` mails due.
    struct parcel {
        task_head head;
        u32 block;   ///< of the first mail; the next ones count on
        u32 tickets; ///< 0 or mail::tickets_bit
        u32 count;
        u32 depth;
        ready_entry entry;
        bool ones;   ///< mail i is the i-th ready task, of one block; else all are of the task `head`
    };

    /// Mails to idle workers first. Returns how many were sent. One copy: it is the largest piece of this role's code.
    SLIPSTREAM_BOTH u32 hand_out(team_type& team, const parcel& p)
    {
        u32 mailed = 0;
        const awaited_task first = P::get(s_.waits_near[p.entry.slot() * waits_near_max]); // of what is staged
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
                    const ready_entry entry = p.ones ? ready_.peek(i) : p.entry;
                    const task_head head = p.ones ? P::get(s_.heads[entry.slot()]) : p.head;
                    const u32 number = ++sent_.at(g, k);
                    mailed_.at(g, k) |= (head.slot_and_type & 0xffff) << 16 * due;
                    const u32 waits = entry.waits();
                    if (waits != 0)
                        send_waits(32 * g + k, entry.slot(), p.ones ? P::get(s_.waits_near[entry.slot() * waits_near_max]) : first, waits, tag_of(number));
                    const u32 block = p.ones || p.tickets ? 0 : p.block + i;
                    send(32 * g + k, {head.slot_and_type, block | waits << 28, head.identity | p.tickets, tag_of(number)});
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

    /// `first` and the others of the `count` tasks that the staged one in `slot` waits for.
    SLIPSTREAM_BOTH void send_waits(u32 w, u32 slot, const awaited_task& first, u32 count, u32 tag)
    {
        auto& places = m_.mailboxes[w].waits[tag % mailbox_depth];
        P::store(edge::R4_mail, places[0], first.encode(tag), order::relaxed, scope::device);
        SLIPSTREAM_ONE_COPY
        for (u32 i = 1; i < count; ++i) P::store(edge::R4_mail, places[i], s_.awaited_by(slot, i).encode(tag), order::relaxed, scope::device);
    }

    static constexpr u32 skipped_flag = 1u << 31; ///< in `batch`, beside a slot

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    poison<P> poison_;
    queue_consumer<P, ready_entry, edge::A14_ready, edge::R14_taken> ready_;
    queue_producer<P, report, edge::R13_report, edge::A13_taken> reports_;
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
