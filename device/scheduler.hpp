// The scheduler role: admits decoded tasks into the window, mails ready blocks to workers, retires what they completed.
//
// CRITICAL PATH of a dependent hop, in serialised L2 round trips (RT) and fences of this role:
//   completion word polled (1 RT, all workers' words in one go) -> one fence for the whole step -> successor row, pending
//   counts, ready queue (fast memory) -> mail stored (one way). With the worker's share (device/worker.hpp): release of the
//   completion word, acquire after the mail, record read (1 RT).
//   Per task that is 1 completion store, 1 mail store, 1 step fence shared by everything the step saw.
//
// DISPATCH
//   one block, or no more blocks than workers: each block is one mail; idle workers first, then, when every
//     worker is busy, mailboxes with room.
//   more blocks than workers: idle workers are invited with a ticket mail and draw block numbers from the record's counter.
//     An invited worker answers once, when the counter is used up (or a park stops it); then nobody else is invited, and
//     the task is complete when all invited workers have answered. No completion per block, no task behind a busy worker.
//
// FAILURE (device/poison.hpp) tasks are settled behind the fence and before their successors are woken; the head of the ready
//   queue is judged before its first mail. A cancelled task is completed by the next step, without mail.
//
// OWNERS  this role alone writes the window, the mailboxes, sent/seen/mailed.
// STATES  of a worker: idle (sent == seen) -> busy (sent - seen = 1) -> staged (2) by mails; back by completions.
// EDGES   A5 (done, relaxed poll) + R4A5 (one acq_rel fence at device scope) + R4 (mail, relaxed): completion -> successor.
//         The fence also makes the records that ingest wrote (A3, block scope) visible to the workers: it stands after the
//         last acquire of the step and before its first mail. No plain data is written for workers after it.
//         Without it PTX gives no causality from the completed worker to the mailed one.
#pragma once
#include "device/poison.hpp"
#include "device/window.hpp"

namespace slipstream::device {

/// A mail: what a worker is asked to do. 16 bytes, one store. It names the submission too, so that the flight recorder needs
/// no look at the record.
struct mail {
    u32 slot_and_type; ///< window slot | type << 16, or leave
    u32 block;
    u32 identity;      ///< low 27 bits of the position | ring << 27 (4 bits) | tickets << 31
    u32 tag;           ///< number_bit | mails ever sent to this worker, this one included (31 bits); 0: no mail

    SLIPSTREAM_BOTH static mail make(u32 slot, u32 type, u64 task_id, u32 block, bool tickets, u32 tag)
    {
        return {slot | type << 16, block,
                (static_cast<u32>(task_id) & 0x7ffffffu) | static_cast<u32>(task_id >> 56) << 27 | (tickets ? 1u << 31 : 0u), tag};
    }
    SLIPSTREAM_BOTH u32 slot() const { return slot_and_type & 0xffff; }
    SLIPSTREAM_BOTH u32 type() const { return slot_and_type >> 16; }
    SLIPSTREAM_BOTH bool tickets() const { return identity >> 31; }
    SLIPSTREAM_BOTH bool leaves() const { return slot_and_type == leave; }
    SLIPSTREAM_BOTH abi::chunk encode() const { return {{slot_and_type, block, identity, tag}}; }
    SLIPSTREAM_BOTH static mail decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }

    static constexpr u32 leave = 0xffffffff;
    static constexpr u32 number_bit = 1u << 31; ///< keeps a tag from being 0 when the count wraps
};
static_assert(rings_max <= 16 && window_slots_max <= 0x10000);

/// Where ingest stands, for the scheduler.
enum class ingest_phase : u32 { running = 0, stopped = 1, dry = 2 };
/// Where the scheduler stands, for the notifier.
enum class schedule_phase : u32 { running = 0, finished = 1 };

/// The completion word: mails answered (31 bits) << 1 | a body on this worker has failed since the engine was made.
inline constexpr u32 done_failed_bit = 1;

template <class P>
class scheduler {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH scheduler(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), window_(memory, state), poison_(memory, state), free_(state.free_queue()), decoded_(state.decoded_queue()),
          retired_(state.retired_queue()), ready_head_(state.counters[saved_ready_head]),
          ready_tail_(state.counters[saved_ready_tail]), in_flight_(state.counters[saved_in_flight])
    {
    }

    /// One round: poll, fence, wake and mail what became ready, and only then the bookkeeping. True when it did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        const u32 mails_before = mails_;
        u32 completed = poll_completions(team);
        poisoned_ = poison_.any();
        bool answered = mails_ != mails_before;
        if (poisoned_ && poison_.pending() != 0) {
            completed = poison_.collect(team, completed); // cancelled tasks complete like any other
            answered = true;
        }
        const u32 arrived = decoded_.available(team);
        if (completed == 0 && arrived == 0 && ready_head_ == ready_tail_) return answered;
        if (completed != 0) {
            fence(team);
            settled_ = poisoned_ || s_.counters[failures_seen] != 0;
            if (settled_) {
                poison_.settle(team, completed);
                poisoned_ = poison_.any();
            }
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < completed; ++i)
                window_.wake(team, s_.batch[i], [&](u32 first, u32 mask) { make_ready(team, first, mask); });
        }
        // Woken tasks are mailed before anything else is done, newly admitted ones after; one copy of the code serves both.
        SLIPSTREAM_ONE_COPY
        for (u32 turn = 0; turn < 2; ++turn) {
            if (turn == 1) {
                retire(team, completed);
                if (arrived == 0) break;
                admit(team, arrived);
                // Tasks that wait are covered by the fence of the step that wakes them.
                if (completed == 0 && ready_head_ != ready_tail_) fence(team);
            }
            dispatch(team);
        }
        return answered || arrived != 0 || (poisoned_ && poison_.pending() != 0);
    }

    /// The park command was seen: no new mails from now on.
    SLIPSTREAM_BOTH void stop_dispatch() { parking_ = true; }

    /// No mail is out, and no cancelled task waits for the next step.
    SLIPSTREAM_BOTH bool workers_idle() const { return mails_ == 0 && poison_.pending() == 0; }
    SLIPSTREAM_BOTH bool window_empty() const { return in_flight_ == 0; }

    /// Tells every worker to leave, and saves what lives in registers. All workers must be idle.
    SLIPSTREAM_BOTH void dismiss_workers(team_type& team)
    {
        team.sync();
        for (u32 w = team.rank(); w < m_.n.workers; w += team.size()) {
            const u32 tag = ++s_.sent[w];
            s_.seen[w] = tag; // a worker's last answer is not awaited: the kernel's end is
            send(w, mail{mail::leave, 0, 0, mail::number_bit | tag});
        }
        team.sync();
        if (team.leader()) {
            s_.counters[saved_ready_head] = ready_head_;
            s_.counters[saved_ready_tail] = ready_tail_;
            s_.counters[saved_in_flight] = in_flight_;
        }
        window_.save(team);
    }

private:
    static constexpr u32 poll_groups = 5; ///< 160 workers: one worker per SM of the largest chip in one go
    static constexpr u32 admit_batch = 32;

    /// Acquires what the polls of this step saw and releases it to whoever is mailed from now on: completions, and the
    /// records of tasks that ingest has handed over. Stands before the first mail that relies on either.
    SLIPSTREAM_BOTH void fence(team_type& team)
    {
        team.sync();
        if (team.leader()) P::fence(edge::R4A5_step_fence, order::acq_rel, scope::device);
        team.sync();
    }

    /// Reads the completion words of all workers, all loads in flight together, and takes the answers found. Returns how many
    /// tasks are complete by them: batch[0..n). Touches no data that the answers released: the fence comes after.
    SLIPSTREAM_BOTH u32 poll_completions(team_type& team)
    {
        if (mails_ == 0) return 0;
        u32 completed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < m_.n.worker_groups(); first += poll_groups) {
            u32 changed[poll_groups];
            team.masks32(
                changed,
                [&](u32 k) {
                    const u32 w = 32 * first + k;
                    return w < m_.n.workers ? P::load(edge::A5_done, m_.done[w], order::relaxed, scope::device) : 0u;
                },
                [&](u32 k, u32 value) {
                    const u32 w = 32 * first + k;
                    if (w >= m_.n.workers || (value >> 1) == (s_.seen[w] & 0x7fffffffu)) return false;
                    s_.answered[w] = value;
                    if (value & done_failed_bit) s_.counters[failures_seen] = 1; // any lane: they all write the same
                    return true;
                });
            u32 any = 0;
            for (u32 i = 0; i < poll_groups; ++i) any |= changed[i];
            if (any == 0) continue;
            team.sync();
            if (team.leader())
                for (u32 i = 0; i < poll_groups; ++i)
                    if (first + i < m_.n.worker_groups()) s_.changed[first + i] = changed[i];
            team.sync();
            SLIPSTREAM_ONE_COPY
            for (u32 g = first; g < first + poll_groups && g < m_.n.worker_groups(); ++g)
                if (const u32 bits = s_.changed[g]; bits != 0) completed = take_completions(team, g, bits, completed);
        }
        return completed;
    }

    /// Takes the answers of the workers `bits` of group g; appends to batch[] the tasks that are complete by them.
    SLIPSTREAM_BOTH u32 take_completions(team_type& team, u32 g, u32 bits, u32 completed)
    {
        SLIPSTREAM_ONE_COPY
        while (bits != 0) {
            // One-block tasks: a lane each. Otherwise all workers that answered a mail of the same task, together.
            u32 taken = team.mask32([&](u32 k) { return (bits >> k & 1) && P::get(s_.blocks[answered_slot(32 * g + k)]) == 1; });
            if (taken != 0) {
                for (u32 k = team.rank(); k < 32; k += team.size())
                    if (taken >> k & 1) s_.batch[completed + popcount(taken & ((1u << k) - 1))] = answered_slot(32 * g + k);
                completed += popcount(taken);
                last_worker_ = 32 * g + lowest_bit(taken);
            } else {
                const u32 first = 32 * g + lowest_bit(bits);
                const u32 slot = answered_slot(first);
                taken = team.mask32([&](u32 k) { return (bits >> k & 1) && answered_slot(32 * g + k) == slot; });
                last_worker_ = first;
                if (take_answers(team, slot, popcount(taken))) {
                    if (team.leader()) s_.batch[completed] = slot;
                    ++completed;
                }
            }
            mails_ -= popcount(taken);
            // A worker that answered two mails since the last look comes round again.
            const u32 more = team.mask32([&](u32 k) {
                const u32 w = 32 * g + k;
                return (taken >> k & 1) && (s_.answered[w] >> 1) != (++s_.seen[w] & 0x7fffffffu);
            });
            bits = (bits & ~taken) | more;
        }
        team.sync();
        return completed;
    }

    /// The slot of the oldest mail that worker w has not been seen to answer.
    SLIPSTREAM_BOTH u32 answered_slot(u32 w) const { return s_.mailed[w * mailbox_depth + s_.seen[w] % mailbox_depth]; }

    /// `count` workers answered mails of a task of several blocks. Returns true when it is complete.
    SLIPSTREAM_BOTH bool take_answers(team_type& team, u32 slot, u32 count)
    {
        const u32 left = s_.outstanding[slot] - count;
        const u32 blocks = P::get(s_.blocks[slot]);
        const bool tickets = blocks > m_.n.workers;
        // A ticket worker answers when the counter is used up, or early because of a park: only the counter tells.
        const bool all_drawn = s_.next_block[slot] == blocks || (tickets && tickets_drawn(team, slot) >= blocks);
        const bool close = all_drawn && s_.next_block[slot] != blocks;
        team.sync();
        if (team.leader()) {
            s_.outstanding[slot] = left;
            if (close) s_.next_block[slot] = blocks; // nobody else is invited
        }
        if (close) ++ready_head_; // a task that still invites is always the head of the ready queue (dispatch)
        team.sync();
        return left == 0 && all_drawn;
    }

    SLIPSTREAM_BOTH u32 tickets_drawn(team_type& team, u32 slot)
    {
        return team.broadcast(
            team.leader() ? P::load(edge::P0_ticket, m_.records[slot].next_block, order::relaxed, scope::device) : 0u);
    }

    /// Takes the completed tasks batch[0..count) out of the window and tells notifier and ingest.
    SLIPSTREAM_BOTH void retire(team_type& team, u32 count)
    {
        if (count == 0) return;
        window_.remove(team, count, [&](u32 k) { return s_.batch[k]; });
        SLIPSTREAM_ONE_COPY
        for (u32 done = 0; done < count;) {
            // The notifier takes entries without waiting for anybody; where it shares our thread, it empties the queue after
            // each step, and one step retires at most a window, which fits.
            const u32 room = retired_.room(team);
            const u32 now = room < count - done ? room : count - done;
            for (u32 k = team.rank(); k < now; k += team.size()) {
                const u32 slot = s_.batch[done + k];
                const u64 id = P::get(s_.task_id[slot]);
                const task_outcome outcome = settled_ ? poison_.outcome(slot) : task_outcome{0, 0};
                retired_.put_ahead(k, retired_entry{id & ((u64{1} << 56) - 1), id >> 56, outcome.status, outcome.failure});
            }
            retired_.advance(now);
            retired_.publish(team);
            done += now;
            if (now == 0) P::pause(0);
        }
        for (u32 k = team.rank(); k < count; k += team.size()) free_.put_ahead(k, s_.batch[k]);
        free_.advance(count); // never full: it has room for every slot
        free_.publish(team);
        in_flight_ -= count;
    }

    /// Appends the slots first + bits of mask to the ready queue.
    SLIPSTREAM_BOTH void make_ready(team_type& team, u32 first, u32 mask)
    {
        for (u32 k = team.rank(); k < 32; k += team.size())
            if (mask >> k & 1) s_.ready[(ready_tail_ + popcount(mask & ((1u << k) - 1))) & (s_.queue_slots - 1)] = first + k;
        ready_tail_ += popcount(mask);
        team.sync();
    }

    /// Admits up to 32 decoded tasks in order. Runs of tasks without accesses are taken in together.
    SLIPSTREAM_BOTH void admit(team_type& team, u32 arrived)
    {
        const u32 count = arrived < admit_batch ? arrived : admit_batch;
        const auto slot_of = [&](u32 k) { return decoded_.peek(k); };
        const u32 accessing = team.mask32([&](u32 k) {
            if (k >= count) return false;
            const u32 slot = slot_of(k);
            s_.outstanding[slot] = 0;
            s_.next_block[slot] = 0;
            return P::get(s_.counts[slot]) != 0; // entries or flags
        });
        u32 waiting = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count;) {
            const u32 rest = accessing >> k;
            u32 run = rest == 0 ? count - k : lowest_bit(rest);
            if (run != 0 && window_.nothing_whole()) {
                window_.admit_free(team, run, [&](u32 i) { return slot_of(k + i); });
                k += run;
            } else {
                if (window_.admit(team, slot_of(k)) != 0) waiting |= 1u << k;
                ++k;
            }
        }
        const u32 ready = (count == 32 ? ~0u : (1u << count) - 1) & ~waiting;
        for (u32 k = team.rank(); k < 32; k += team.size())
            if (ready >> k & 1) s_.ready[(ready_tail_ + popcount(ready & ((1u << k) - 1))) & (s_.queue_slots - 1)] = slot_of(k);
        ready_tail_ += popcount(ready);
        in_flight_ += count;
        decoded_.skip(count);
        decoded_.release(team);
        team.sync();
    }

    /// Mails blocks of ready tasks, oldest first, while there are workers for them.
    SLIPSTREAM_BOTH void dispatch(team_type& team)
    {
        SLIPSTREAM_ONE_COPY
        while (!parking_ && ready_head_ != ready_tail_) {
            const u32 slot = s_.ready[ready_head_ & (s_.queue_slots - 1)];
            if (poisoned_ && poison_.cancels(team, slot)) {
                ++ready_head_;
                continue;
            }
            const u32 blocks = P::get(s_.blocks[slot]);
            if (blocks == 1) {
                if (deal_singles(team) == 0) break;
                continue;
            }
            const u32 dealt = s_.next_block[slot];
            if (blocks > m_.n.workers) {
                // A ticket task stays at the head, inviting workers as they fall idle, until its tickets are drawn.
                if (dealt == 0) invite(team, slot);
                break;
            }
            if (dealt + deal(team, slot, dealt, blocks) != blocks) break;
            ++ready_head_;
        }
    }

    /// Mails the one-block tasks at the head of the ready queue, a lane a task. Returns how many.
    SLIPSTREAM_BOTH u32 deal_singles(team_type& team)
    {
        const u32 head = ready_head_;
        const u32 ready_count = ready_tail_ - head;
        const u32 ones = team.mask32([&](u32 k) {
            return k < ready_count && P::get(s_.blocks[s_.ready[(head + k) & (s_.queue_slots - 1)]]) == 1;
        });
        // One-block tasks in a row; while there is poison, only the one that dispatch() has just judged.
        const u32 run = poisoned_ ? 1 : ones == ~0u ? 32 : lowest_bit(~ones);
        u32 mailed = 0;
        // A lone task goes to the worker that completed last if it is idle: its L1 and instruction cache are warm.
        if (run == 1 && last_worker_ < m_.n.workers && s_.sent[last_worker_] == s_.seen[last_worker_]) {
            team.sync();
            if (team.leader()) post_single(last_worker_, head);
            team.sync();
            mailed = 1;
        }
        SLIPSTREAM_ONE_COPY
        for (u32 depth = 0; depth < mailbox_depth && mailed < run; ++depth)
            SLIPSTREAM_ONE_COPY
            for (u32 g = 0; g < m_.n.worker_groups() && mailed < run; ++g) {
                const u32 takers = lowest_bits(team, team.mask32([&](u32 k) {
                    const u32 w = 32 * g + k;
                    return w < m_.n.workers && s_.sent[w] - s_.seen[w] == depth;
                }), run - mailed);
                for (u32 k = team.rank(); k < 32; k += team.size())
                    if (takers >> k & 1) post_single(32 * g + k, head + mailed + popcount(takers & ((1u << k) - 1)));
                team.sync();
                mailed += popcount(takers);
            }
        ready_head_ = head + mailed;
        mails_ += mailed;
        return mailed;
    }

    SLIPSTREAM_BOTH void post_single(u32 w, u32 at)
    {
        const u32 slot = s_.ready[at & (s_.queue_slots - 1)];
        s_.next_block[slot] = 1;
        s_.outstanding[slot] = 1;
        post(w, slot, 0, false);
    }

    /// Mails blocks [dealt, blocks) of one task: to idle workers, then (nobody idle) to mailboxes with room. Returns how many.
    SLIPSTREAM_BOTH u32 deal(team_type& team, u32 slot, u32 dealt, u32 blocks)
    {
        u32 mailed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 depth = 0; depth < mailbox_depth; ++depth) {
            SLIPSTREAM_ONE_COPY
            for (u32 g = 0; g < m_.n.worker_groups() && dealt + mailed < blocks; ++g) {
                const u32 first = dealt + mailed;
                const u32 takers = lowest_bits(team, team.mask32([&](u32 k) {
                    const u32 w = 32 * g + k;
                    return w < m_.n.workers && s_.sent[w] - s_.seen[w] == depth;
                }), blocks - first);
                for (u32 k = team.rank(); k < 32; k += team.size())
                    if (takers >> k & 1) post(32 * g + k, slot, first + popcount(takers & ((1u << k) - 1)), false);
                team.sync();
                mailed += popcount(takers);
            }
        }
        if (mailed != 0) {
            if (team.leader()) {
                s_.next_block[slot] = dealt + mailed;
                s_.outstanding[slot] += mailed;
            }
            mails_ += mailed;
            team.sync();
        }
        return mailed;
    }

    /// The lowest `count` set bits of a mask.
    SLIPSTREAM_BOTH static u32 lowest_bits(team_type& team, u32 mask, u32 count)
    {
        if (popcount(mask) <= count) return mask;
        if (count == 1) return mask & (~mask + 1);
        return team.mask32([&](u32 k) { return (mask >> k & 1) && popcount(mask & ((1u << k) - 1)) < count; });
    }

    /// Invites idle workers to draw tickets.
    SLIPSTREAM_BOTH void invite(team_type& team, u32 slot)
    {
        u32 mailed = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < m_.n.worker_groups(); ++g) {
            const u32 takers = team.mask32([&](u32 k) {
                const u32 w = 32 * g + k;
                return w < m_.n.workers && s_.sent[w] == s_.seen[w];
            });
            for (u32 k = team.rank(); k < 32; k += team.size())
                if (takers >> k & 1) post(32 * g + k, slot, 0, true);
            team.sync();
            mailed += popcount(takers);
        }
        if (mailed == 0) return;
        if (team.leader()) s_.outstanding[slot] += mailed;
        mails_ += mailed;
        team.sync();
    }

    /// One lane mails one worker.
    SLIPSTREAM_BOTH void post(u32 w, u32 slot, u32 block, bool tickets)
    {
        const u32 before = s_.sent[w];
        s_.mailed[w * mailbox_depth + before % mailbox_depth] = slot;
        s_.sent[w] = before + 1;
        send(w, mail::make(slot, P::get(s_.type[slot]), P::get(s_.task_id[slot]), block, tickets, mail::number_bit | (before + 1)));
    }

    SLIPSTREAM_BOTH void send(u32 w, const mail& letter)
    {
        // Relaxed: the step's fence stands before it, and the mail itself carries its tag.
        P::store(edge::R4_mail, m_.mailboxes[w].mail[letter.tag % mailbox_depth], letter.encode(), order::relaxed,
                 scope::device);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    window<P> window_;
    poison<P> poison_;
    queue_producer<P, u32, edge::R2_slot_freed, edge::A2_slot_taken> free_;
    queue_consumer<P, u32, edge::A3_decoded, edge::R3_admitted> decoded_;
    queue_producer<P, retired_entry, edge::R6_retired, edge::A6_notified> retired_;
    u32 last_worker_ = ~0u;
    bool parking_ = false;
    bool poisoned_ = false; ///< poison_.any(), for this step
    bool settled_ = false;  ///< the batch in hand has outcomes
    // Equal on all lanes; kept in registers while the role runs, saved at park (when no mail is out).
    u32 ready_head_;
    u32 ready_tail_;
    u32 in_flight_;
    u32 mails_ = 0; ///< mails not yet answered
};

} // namespace slipstream::device
