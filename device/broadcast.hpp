// Broadcasts: a task of several brief blocks is mailed to all workers at once.
//
// A mail to each worker, and an answer of each, are what bounds a row of such tasks (device/tried.md): the scheduler's round
// takes longer than the tasks. So one mail is stored for all, in a few copies (sizes::broadcast_copies), and the scheduler reads
// one finished count a task, not the completion words of all workers.
//
// MAILS     lie in mailboxes behind those of the workers, and have numbers of their own. In each worker's own row of mails a
//           broadcast takes a number too, the next one: the scheduler sends it only when all mails to single workers are answered,
//           so whatever a worker finds unread there comes behind the broadcasts that it finds. It answers them like others.
// BLOCKS    are counted on from the worker where the last broadcast ended, round about. A worker that has none passes the mail over
//           (mail::idle), waits for nobody, and may be late: it finds a later broadcast in the place, or its own again.
// BOOKS     while nothing but broadcasts is out, `sent` and `seen` stand still. Before a mail to a single worker, a park, or
//           where a block has failed, the broadcasts are booked (book): those that are out become mails like others, whose answers
//           are taken one by one. Not before all workers have gone by those that are complete, or their words would seem to be
//           ahead. Likewise before ingest's mails to worker 0 are adopted (bypass.hpp), and before completion words could not tell
//           any more how far behind a worker is.
// TAGS      a worker's own places keep what was mailed there last, while its numbers go on: before one of 31 bits comes again,
//           all places are emptied (renew_at).
// WHEN      all blocks fit on the workers, the type promises to be brief, no body has ever failed, the engine has one part; and
//           nothing but broadcasts is out. In a row of such tasks whose first ones came beside others the fourth waits until that
//           is so: once, where each of a few that come singly would have to. Not where anything that may last is out: it would hold
//           up all behind.
// COST      a store of each copy, and of each copy of what it waits for: a lane each; a load a task that is out, all together.
// OWNERS    the scheduler alone, all of it but mailbox::heard (the worker).
// EDGES     R4A5_step_fence -> R4_mail · A4_mail, A4_mail_fence: as any mail
//           R5R12_fence, R12_finished -> A24_finished, R4A5_step_fence: completion -> successor, as A12 between workers
#pragma once
#include "device/mail.hpp"

namespace slipstream::device {

/// What booking works on, by value: a function that is called would else have all of engine_memory and control_state in memory.
template <class P>
struct broadcast_books {
    using team_type = typename P::team;

    typename P::template word<u32>* done;
    broadcast_book* book;
    const broadcast_entry* entries;
    u32 *sent, *seen;
    u16* mailed;
    typename P::template cell<u32>* outstanding;
    const typename P::template cell<task_head>* heads;
    u32 workers, window;

    /// See broadcasts::book().
    SLIPSTREAM_BOTH bool enter(team_type& team, u32 out) const
    {
        const u32 count = book->unbooked, number = book->number;
        const u32 groups = (workers + 31) / 32;
        bool behind = false; // some worker of this lane's
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= workers) return;
                const done_word answers{P::load(edge::A5_done, done[w], order::relaxed, scope::device)};
                behind |= answers.answered_since(sent[w] + count - out) > ~0u >> (done_word::count_at + 1);
            });
        if (team.any(behind)) return false;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= workers) return;
                const u32 now = sent[w] + count;
                u16* const slots = mailed + w * P::mailbox_depth;
                if (out < P::mailbox_depth) slots[(now - out) % P::mailbox_depth] = no_slot; // nobody comes behind it
                SLIPSTREAM_ONE_COPY
                for (u32 i = 0; i < out; ++i) {
                    const broadcast_entry e = entries[(number - i) % P::mailbox_depth];
                    const broadcast_mail to_all{e.first, P::get(heads[e.slot]).blocks};
                    slots[(now - i) % P::mailbox_depth] =
                        static_cast<u16>(to_all.block_of(w, workers) < to_all.blocks ? e.slot : window);
                }
                sent[w] = now;
                seen[w] = now - out;
            });
        team.sync();
        if (team.leader()) {
            P::set(outstanding[window], 0u); // of answers that are no block's: never 1
            book->unbooked = 0;
        }
        team.sync();
        return true;
    }
};

/// The scheduler's end. Not enabled: none is ever sent, and nothing of it is compiled.
template <class P, bool Enabled = true>
class broadcasts {
public:
    using team_type = typename P::team;

    /// Each so many broadcasts the workers' own places are emptied. A number comes to look like an old one 2^31 numbers later, if
    /// all that had its place in between, one in mailbox_depth, were broadcasts: half as many as that.
    static constexpr u32 renew_at = (1u << 31) / P::mailbox_depth / 2;

    SLIPSTREAM_BOTH broadcasts(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// How many are out, none of them booked.
    SLIPSTREAM_BOTH u32 out() const { return Enabled ? state_ & out_mask : 0; }
    /// Were some sent that are not in the books, complete or not?
    SLIPSTREAM_BOTH bool unbooked() const { return Enabled && (state_ & unbooked_bit) != 0; }
    /// So many that `sent` does not count.
    SLIPSTREAM_BOTH u32 uncounted() const { return Enabled ? s_.broadcast->unbooked : 0; }

    /// Reads the finished counts of the tasks that are out, and takes those that are complete, in order: batch[0..n). Returns n.
    /// Whose blocks failed is not taken: its answers are to be looked at.
    SLIPSTREAM_BOTH u32 poll(team_type& team)
    {
        const u32 found =
            poll_out({m_.records, s_.broadcast_entries, s_.targets, s_.batch, s_.broadcast->number, out()}, team);
        if ((found >> 31) != 0) want_booked();
        const u32 taken = found & 0xff;
        state_ -= taken;
        return taken;
    }

    /// Should a task of several brief blocks, at the head of the ready queue, be mailed to all workers, if need be when so many
    /// other `mails` are answered?
    SLIPSTREAM_BOTH bool takes(u32 slot, u32 mails) const
    {
        return Enabled && m_.n.broadcast_copies != 0 && (mails == 0 || (state_ & row_mask) == row_mask)
            && s_.counters[failures_seen] == 0 && P::get(s_.dealt[slot]) == 0;
    }
    /// May one more be sent? Completion words count modulo 2^13: before a worker may be further behind, all are booked.
    SLIPSTREAM_BOTH bool in_step()
    {
        if (s_.broadcast->unbooked < unbooked_max) return true;
        want_booked();
        return false;
    }
    /// Answers of workers without a block may be due, of tasks that are complete: it is not known that there are none.
    SLIPSTREAM_BOTH bool owed() const { return Enabled && (state_ & owed_bit) != 0; }
    /// After a launch all are booked. `mails`: how many answers are due.
    SLIPSTREAM_BOTH void begin(u32 mails)
    {
        if (Enabled && mails != 0) state_ |= owed_bit;
    }
    /// One was mailed in the other way, or a task that never is.
    SLIPSTREAM_BOTH void note(bool fit)
    {
        if (!Enabled) return;
        if (!fit) state_ &= owed_bit; // none is out
        else if ((state_ & row_mask) != row_mask) state_ += row_step;
    }

    /// Nothing but broadcasts may be out, and fewer of them than a mailbox has places. put(mailbox, mail) stores the mail and what
    /// it waits for.
    template <class Put>
    SLIPSTREAM_BOTH void send(team_type& team, const task_head& head, u32 slot, u32 waits, Put put)
    {
        const broadcast_book now = *s_.broadcast;
        const u32 number = now.number + 1;
        if (number % renew_at == 0) empty_places(m_.mailboxes, m_.n.workers, team);
        const mail letter{head.slot_and_type, broadcast_mail{now.first, head.blocks}.encode() | mail::brief_bit | waits << 28,
                          head.identity, tag_of(number)};
        team.each32([&](u32 k) { if (k < m_.n.broadcast_copies) put(m_.n.workers + k, letter); });
        team.sync();
        if (team.leader()) {
            const u32 end = now.first + head.blocks;
            *s_.broadcast = {number, now.unbooked + 1, end < m_.n.workers ? end : end - m_.n.workers};
            s_.broadcast_entries[number % P::mailbox_depth] = {static_cast<u16>(slot), static_cast<u16>(now.first)};
            s_.runs_on[slot] = 0; // nobody comes behind one of its blocks
        }
        team.sync();
        state_ = (state_ + 1) | unbooked_bit;
    }

    /// They are to be booked, by the next step. Unless there are none.
    SLIPSTREAM_BOTH void want_booked() { state_ |= wanted_bit; }
    SLIPSTREAM_BOTH bool wanted_booked() const { return Enabled && (state_ & wanted_bit) != 0; }
    /// It was tried in vain: some worker has not gone by one that is complete.
    SLIPSTREAM_BOTH bool late() const { return Enabled && (state_ & late_bit) != 0; }
    /// Takes them into the books of each worker: those that are out are mails like others from now on. Returns how many answers are
    /// due by that; seen[] has changed. Or, if it is late, 0.
    SLIPSTREAM_BOTH u32 book(team_type& team)
    {
        const u32 due = out() * m_.n.workers;
        const broadcast_books<P> books{m_.done, s_.broadcast, s_.broadcast_entries, s_.sent, s_.seen, s_.mailed, s_.outstanding,
                                       s_.heads, m_.n.workers, m_.n.window};
        const bool entered = enter_out(books, team, out());
        state_ = entered ? (state_ & row_mask) | owed_bit : state_ | late_bit;
        return entered ? due : 0;
    }

    /// With so many mails out, may what completes now be the last in flight? Once some were booked, answers of workers without a
    /// block may be due then.
    SLIPSTREAM_BOTH bool may_be_last(u32 mails)
    {
        if (!Enabled) return mails == 0;
        if (mails == 0) state_ &= ~owed_bit;
        return mails == 0 || (state_ & owed_bit) != 0;
    }

private:
    struct looked_at {
        task_record<P>* records;
        const broadcast_entry* entries;
        const typename P::template cell<u32>* targets;
        u32* batch;
        u32 number, out;
    };
    // Called, not in line: what is in line costs programs without broadcasts, too.
    SLIPSTREAM_BOTH_RARE static u32 poll_out(const looked_at a, team_type team)
    {
        const u32 first = a.number + 1 - a.out;
        typename P::template lane_array<u32, 1> slots, facts;
        const u32 complete = team.mask32([&](u32 k) {
            const u32 slot = slots.at(0, k) = a.entries[(first + k) % P::mailbox_depth].slot;
            facts.at(0, k) = 0;
            if (k >= a.out) return false;
            const u32 target = P::get(a.targets[slot]);
            const finished_count count{P::load(edge::A24_finished, a.records[slot].finished, order::relaxed, scope::device)};
            facts.at(0, k) = count.has_failures();
            return count.reached(target) && !count.has_failures();
        });
        const bool failed = team.mask32([&](u32 k) { return facts.at(0, k) != 0; }) != 0;
        const u32 taken = lowest_bit(~complete);
        team.each32([&](u32 k) { if (k < taken) a.batch[k] = slots.at(0, k); });
        team.sync();
        return taken | static_cast<u32>(failed) << 31;
    }
    /// The workers' own places: they hold nothing that is not answered, and nobody else mails while the task in hand is in flight.
    SLIPSTREAM_BOTH_RARE static void empty_places(mailbox<P>* mailboxes, u32 workers, team_type team)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < workers * P::mailbox_depth; i += team.size())
            P::store(edge::R4_mail, mailboxes[i / P::mailbox_depth].mail[i % P::mailbox_depth], abi::chunk{}, order::relaxed,
                     scope::device);
    }
    SLIPSTREAM_BOTH_RARE static bool enter_out(const broadcast_books<P> books, team_type team, u32 out)
    {
        return books.enter(team, out);
    }

    static constexpr u32 unbooked_max = 1u << (31 - done_word::count_at - 1);
    static constexpr u32 out_mask = 0xff, row_step = 1u << 8, row_mask = 3u << 8, owed_bit = 1u << 28, late_bit = 1u << 29,
                         wanted_bit = 1u << 30, unbooked_bit = 1u << 31; ///< of `state_`

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    u32 state_ = 0; ///< so many are out | tasks that fit and were mailed in the other way, one after the other, at most 3 << 8
                    ///< | flags. After a launch all are booked
};

} // namespace slipstream::device
