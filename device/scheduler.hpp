// The scheduler role: admits decoded tasks into the window, mails ready blocks to workers, retires what they completed.
//
// CRITICAL PATH of a dependent hop, in serialised L2 round trips (RT) and fences of this role:
//   completion word polled (1 RT, all workers' words in one go) -> one fence for the whole step -> successor row, pending
//   counts, ready queue (fast memory) -> mail stored (one way). With the worker's share (device/worker.hpp): release of the
//   completion word, acquire after the mail, record read (1 RT).
//   Per task that is 1 completion store, 1 mail store, 1 step fence shared by everything the step saw.
//
// DISPATCH
//   one block, or no more blocks than workers: each block is one mail {slot, block, 1}; idle workers first, then, when every
//     worker is busy, mailboxes with room.
//   more blocks than workers: idle workers are invited with a ticket mail and draw block numbers from the record's counter.
//     An invited worker answers once, when the counter is used up (or a park stops it); then nobody else is invited, and
//     the task is complete when all invited workers have answered. No completion per block, no task behind a busy worker.
//
// OWNERS  this role alone writes the window, the mailboxes, sent/seen/mailed.
// STATES  of a worker: idle (sent == seen) -> busy (sent - seen = 1) -> staged (2) by mails; back by completions.
// EDGES   A5 (done, relaxed poll) + R4A5 (one acq_rel fence at device scope) + R4 (mail, relaxed): completion -> successor.
//         The fence also makes the records that ingest wrote (A3, block scope) visible to the workers: it stands after the
//         last acquire of the step and before its first mail. No plain data is written for workers after it.
//         Without it PTX gives no causality from the completed worker to the mailed one.
#pragma once
#include "device/window.hpp"

namespace slipstream::device {

/// A mail: what a worker is asked to do. 16 bytes, one store.
struct mail {
    u32 slot;  ///< window slot, or mail_leave
    u32 block; ///< first block
    u32 count; ///< blocks, or mail_tickets
    u32 tag;   ///< mails ever sent to this worker, this one included

    SLIPSTREAM_BOTH abi::chunk encode() const { return {{slot, block, count, tag}}; }
    SLIPSTREAM_BOTH static mail decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }
};
inline constexpr u32 mail_leave = 0xffffffff;
inline constexpr u32 mail_tickets = 0;

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
        : m_(memory), s_(state), window_(memory, state), free_(state.free_queue), decoded_(state.decoded_queue),
          retired_(state.retired_queue)
    {
    }

    /// One round: poll completions, take decoded tasks, fence, retire, admit, dispatch. Returns true when it did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        const u32 answered_groups = poll_completions(team);
        const u32 arrived = decoded_.available(team);
        if (answered_groups == 0 && arrived == 0) return resume_dispatch(team);
        team.sync();
        if (team.leader()) P::fence(edge::R4A5_step_fence, order::acq_rel, scope::device);
        team.sync();
        if (answered_groups != 0) take_completions(team);
        admit(team, arrived);
        dispatch(team);
        return true;
    }

    /// The park command was seen: no new mails from now on.
    SLIPSTREAM_BOTH void stop_dispatch() { parking_ = true; }

    SLIPSTREAM_BOTH bool workers_idle() const { return s_.counters[mails_outstanding] == 0; }
    SLIPSTREAM_BOTH bool window_empty() const { return s_.counters[in_flight_count] == 0; }

    /// Tells every worker to leave. All must be idle.
    SLIPSTREAM_BOTH void dismiss_workers(team_type& team)
    {
        team.sync();
        for (u32 w = team.rank(); w < m_.n.workers; w += team.size()) {
            const u32 tag = ++s_.sent[w];
            s_.seen[w] = tag; // a worker's last answer is not awaited: the kernel's end is
            send(w, mail{mail_leave, 0, 0, tag});
        }
        team.sync();
    }

private:
    static constexpr u32 poll_groups = 5; ///< 160 workers: one worker per SM of the largest chip in one go
    static constexpr u32 admit_batch = 32;

    SLIPSTREAM_BOTH u32& counter(scheduler_counter c) { return s_.counters[c]; }

    /// Reads the completion words of all workers; leaves in answered[w] what was read. Returns 0 when nothing changed.
    SLIPSTREAM_BOTH u32 poll_completions(team_type& team)
    {
        if (counter(mails_outstanding) == 0) return 0;
        u32 changed = 0;
        for (u32 first = 0; first < m_.n.worker_groups(); first += poll_groups) {
            u32 masks[poll_groups];
            team.masks32(
                masks,
                [&](u32 k) {
                    const u32 w = 32 * first + k;
                    return w < m_.n.workers ? P::load(edge::A5_done, m_.done[w], order::relaxed, scope::device) : 0u;
                },
                [&](u32 k, u32 value) {
                    const u32 w = 32 * first + k;
                    if (w >= m_.n.workers) return false;
                    s_.answered[w] = value;
                    return (value >> 1) != (s_.seen[w] & 0x7fffffffu);
                });
            for (u32 i = 0; i < poll_groups && first + i < m_.n.worker_groups(); ++i) {
                if (team.leader()) s_.changed[first + i] = masks[i];
                changed |= masks[i];
            }
        }
        return changed;
    }

    SLIPSTREAM_BOTH void take_completions(team_type& team)
    {
        for (u32 g = 0; g < m_.n.worker_groups(); ++g)
            for (u32 bits = s_.changed[g]; bits; bits &= bits - 1) {
                const u32 w = 32 * g + lowest_bit(bits);
                const u32 value = s_.answered[w];
                if (value & done_failed_bit) {
                    team.sync();
                    if (team.leader()) counter(failures_seen) = 1;
                    team.sync();
                }
                const u32 count = ((value >> 1) - s_.seen[w]) & 0x7fffffffu;
                for (u32 i = 0; i < count; ++i) take_completion(team, w);
            }
        free_.publish(team);
        retired_.publish(team);
    }

    SLIPSTREAM_BOTH void take_completion(team_type& team, u32 w)
    {
        const u32 seen = s_.seen[w];
        const u32 slot = s_.mailed[w * mailbox_depth + seen % mailbox_depth];
        const u32 left = s_.outstanding[slot] - 1;
        const u32 blocks = P::get(s_.blocks[slot]);
        const bool tickets = blocks > m_.n.workers;
        // A ticket worker answers when the counter is used up, or early because of a park: only the counter tells.
        const bool all_drawn = tickets ? tickets_drawn(team, slot) >= blocks : s_.next_block[slot] == blocks;
        team.sync();
        if (team.leader()) {
            s_.seen[w] = seen + 1;
            s_.outstanding[slot] = left;
            --counter(mails_outstanding);
            if (tickets && all_drawn && s_.next_block[slot] != blocks) {
                // Nobody else is invited. A task that still invites is always the head of the ready queue (dispatch).
                s_.next_block[slot] = blocks;
                ++counter(ready_head);
            }
        }
        team.sync();
        last_worker_ = w;
        if (left == 0 && all_drawn) retire(team, slot);
    }

    SLIPSTREAM_BOTH u32 tickets_drawn(team_type& team, u32 slot)
    {
        return team.broadcast(
            team.leader() ? P::load(edge::P0_ticket, m_.records[slot].next_block, order::relaxed, scope::device) : 0u);
    }

    SLIPSTREAM_BOTH void retire(team_type& team, u32 slot)
    {
        u32 status = 0;
        if (counter(failures_seen))
            status = team.broadcast(
                team.leader() ? P::load(edge::P4_status, m_.records[slot].status, order::relaxed, scope::device) : 0u);
        window_.retire(team, slot, [&](u32 freed) { make_ready(team, freed); });
        const u64 id = P::get(s_.task_id[slot]);
        // The notifier takes entries without waiting for anybody; one step retires at most a window, which fits.
        while (retired_.room(team) == 0) {
            retired_.publish(team);
            P::pause(0);
        }
        retired_.put(team, retired_entry{id & ((u64{1} << 56) - 1), static_cast<u32>(id >> 56), status});
        team.sync();
        if (team.leader()) --counter(in_flight_count);
        free_.put(team, slot); // never full: it has room for every slot
    }

    SLIPSTREAM_BOTH void make_ready(team_type& team, u32 slot)
    {
        team.sync();
        if (team.leader()) {
            s_.ready[counter(ready_tail) % m_.n.window] = slot;
            ++counter(ready_tail);
        }
        team.sync();
    }

    SLIPSTREAM_BOTH void admit(team_type& team, u32 arrived)
    {
        const u32 count = arrived < admit_batch ? arrived : admit_batch;
        for (u32 i = 0; i < count; ++i) {
            const u32 slot = decoded_.pop();
            team.sync();
            if (team.leader()) {
                s_.outstanding[slot] = 0;
                s_.next_block[slot] = 0;
                ++counter(in_flight_count);
            }
            if (window_.admit(team, slot) == 0) make_ready(team, slot);
        }
        decoded_.release(team);
    }

    SLIPSTREAM_BOTH bool resume_dispatch(team_type& team)
    {
        if (counter(ready_head) == counter(ready_tail)) return false;
        return dispatch(team);
    }

    /// Mails blocks of ready tasks, oldest first, while there are workers for them.
    SLIPSTREAM_BOTH bool dispatch(team_type& team)
    {
        bool any = false;
        while (!parking_ && counter(ready_head) != counter(ready_tail)) {
            const u32 slot = s_.ready[counter(ready_head) % m_.n.window];
            const u32 blocks = P::get(s_.blocks[slot]);
            const u32 mailed = blocks > m_.n.workers ? invite(team, slot) : deal(team, slot, blocks);
            any |= mailed != 0;
            // A ticket task stays at the head, inviting workers as they fall idle, until its tickets are drawn.
            if (s_.next_block[slot] != blocks) break;
            team.sync();
            if (team.leader()) ++counter(ready_head);
            team.sync();
        }
        return any;
    }

    /// Mails single blocks: to idle workers, then (nobody idle) to mailboxes with room. Returns how many.
    SLIPSTREAM_BOTH u32 deal(team_type& team, u32 slot, u32 blocks)
    {
        u32 mailed = 0;
        // A lone block goes to the worker that completed last if it is idle: its L1 and instruction cache are warm.
        if (blocks == 1 && last_worker_ < m_.n.workers && s_.sent[last_worker_] == s_.seen[last_worker_]) {
            const u32 w = last_worker_;
            team.sync();
            if (team.leader()) post(w, slot, 0, 1);
            mailed = 1;
        }
        for (u32 depth = 0; depth < mailbox_depth; ++depth) {
            for (u32 g = 0; g < m_.n.worker_groups() && s_next(slot, mailed) < blocks; ++g) {
                const u32 first = s_next(slot, mailed);
                const u32 left = blocks - first;
                u32 takers = team.mask32([&](u32 k) {
                    const u32 w = 32 * g + k;
                    return w < m_.n.workers && s_.sent[w] - s_.seen[w] == depth;
                });
                while (popcount(takers) > left) takers &= ~(1u << (31 - leading_zeros(takers)));
                if (takers == 0) continue;
                for (u32 k = team.rank(); k < 32; k += team.size())
                    if (takers >> k & 1) post(32 * g + k, slot, first + popcount(takers & ((1u << k) - 1)), 1);
                team.sync();
                mailed += popcount(takers);
            }
        }
        account(team, slot, mailed);
        return mailed;
    }

    SLIPSTREAM_BOTH u32 s_next(u32 slot, u32 mailed) const { return s_.next_block[slot] + mailed; }

    /// Invites idle workers to draw tickets; at most one for each block.
    SLIPSTREAM_BOTH u32 invite(team_type& team, u32 slot)
    {
        if (s_.next_block[slot] != 0) return 0; // all tickets are drawn
        u32 mailed = 0;
        for (u32 g = 0; g < m_.n.worker_groups(); ++g) {
            const u32 takers = team.mask32([&](u32 k) {
                const u32 w = 32 * g + k;
                return w < m_.n.workers && s_.sent[w] == s_.seen[w];
            });
            for (u32 k = team.rank(); k < 32; k += team.size())
                if (takers >> k & 1) post(32 * g + k, slot, 0, mail_tickets);
            team.sync();
            mailed += popcount(takers);
        }
        if (mailed != 0) {
            team.sync();
            if (team.leader()) {
                s_.outstanding[slot] += mailed;
                counter(mails_outstanding) += mailed;
            }
            team.sync();
        }
        return mailed;
    }

    SLIPSTREAM_BOTH void account(team_type& team, u32 slot, u32 mailed)
    {
        if (mailed == 0) return;
        team.sync();
        if (team.leader()) {
            s_.next_block[slot] += mailed;
            s_.outstanding[slot] += mailed;
            counter(mails_outstanding) += mailed;
        }
        team.sync();
    }

    /// One lane mails one worker.
    SLIPSTREAM_BOTH void post(u32 w, u32 slot, u32 block, u32 count)
    {
        const u32 before = s_.sent[w];
        s_.mailed[w * mailbox_depth + before % mailbox_depth] = slot;
        s_.sent[w] = before + 1;
        send(w, mail{slot, block, count, before + 1});
    }

    SLIPSTREAM_BOTH void send(u32 w, const mail& letter)
    {
        // Relaxed: the step's fence stands before it, and the mail itself carries its tag.
        P::store(edge::R4_mail, m_.mailboxes[w].mail[letter.tag % mailbox_depth], letter.encode(), order::relaxed,
                 scope::device);
    }

    SLIPSTREAM_BOTH static u32 leading_zeros(u32 mask)
    {
#if defined(__CUDA_ARCH__)
        return static_cast<u32>(__clz(static_cast<int>(mask)));
#else
        return static_cast<u32>(__builtin_clz(mask));
#endif
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    window<P> window_;
    queue_producer<P, u32, edge::R2_slot_freed, edge::A2_slot_taken> free_;
    queue_consumer<P, u32, edge::A3_decoded, edge::R3_admitted> decoded_;
    queue_producer<P, retired_entry, edge::R6_retired, edge::A6_notified> retired_;
    u32 last_worker_ = ~0u;
    bool parking_ = false;
};

} // namespace slipstream::device
