// The scheduler role: mails blocks of ready tasks to workers, takes their answers, retires what they completed.
//
// CRITICAL PATH of a dependent hop, in serialised L2 round trips (RT) and fences of this role:
//   completion word polled (1 RT, all workers' words in one go) -> one fence for the whole step; beside it the linker
//   (linker.hpp, a warp of its own) wakes the successors -> mail stored (one way). With the worker's share
//   (device/worker.hpp): release of the completion word, acquire after the mail, record read (1 RT).
//   Per task that is 1 completion store, 1 mail store, 1 step fence shared by everything the step saw.
//   A broadcast task: its finished count polled (1 RT, all that are out in one go) in place of the words, and one mail store by
//   32 lanes, whatever its blocks.
//   A staged task was mailed before its predecessors were done: it starts when its worker sees their finished counts
//   (1 release, 1 RT), and this role is not on the path.
// What is not on it: hazards are found by admission and linked by the linker beside it; retiring is done while the linker works.
//
// DISPATCH
//   no more blocks than workers: each block is one mail; idle workers first, then, when every worker is busy, a second place
//     behind another task. A task of one block that waits for nobody takes such a place only where much is ready; where the
//     window holds more tasks than two mails a worker, brief ones up to six, behind brief ones: this role's round is the bound
//     then, and does more at a time. All groups of workers are looked through together: one after the other, that was a quarter
//     of the round (device/tried.md).
//   staged (a task that waits for running ones): mailed like any other, with the list of what it waits for; of several brief
//     blocks up to six a worker. No deadlock: whatever a mail waits for was mailed before it, and each worker takes its mails
//     in order. (Where there are several parts: is_barred().)
//     Where there are several parts many more wait than there are workers, and each comes to whose turn it is: choose_by_turns().
//   chained (staged, of one block): behind the task that it waits for, if that is the last mail of its worker (or the last but
//     one: below), has one block and the mailbox has room; not if it waits for one on another worker, too, or for more than
//     three. The worker needs no word of anybody for it. Of several that wait for the same task one comes behind it, of brief
//     ones two, one behind the other; of several that a task waits for, that is the one that was linked last, if it is among
//     them. Whole chains go out together, cut where a mailbox ends: hand_out_ones(), cut_chains(). In engines of one part, brief
//     tasks at the head of a parcel that are a chain and nothing else by fewer instructions: hand_out_chain().
//   bypassed (bypass.hpp): ingest has mailed it. Its answer and its turn in the ready queue, whichever is later, complete it.
//   broadcast (broadcast.hpp): of several brief blocks, while nothing but such tasks is out: one mail for all workers, up to twelve
//     tasks ahead. Before any other mail they are taken into each worker's books.
//   more blocks than workers: idle workers are invited with a ticket mail and draw block numbers from the record's counter.
//     An invited worker answers once, when the counter is used up (or a park stops it), and says which; once one has seen it
//     used up nobody else is invited. No completion per block, no task behind a busy worker, but one: if the next ready task
//     draws tickets, too, whoever is invited to the open one is invited to that as well, and goes on with it when this one's
//     tickets are used up, where it took a round of this role, and another one until the last worker was invited. The price: it
//     is not complete before the last block of the open one on each of these workers is.
//
// CROSSING (device/crossing.hpp) where there are several parts: a stand-in is not mailed, its task's home is told; and completed
//   when that one answers. While none is linked here, nothing of it is looked at. The linker hears of what was seen behind the
//   step's fence then, not before. A task that is done before all of its stand-ins were said to be ready is retired only then.
//
// FAILURE (device/poison.hpp) once a body has failed, completed tasks are settled behind the fence and before the linker hears of
//   them; the head of the ready queue is judged before its first mail. A cancelled task is completed by the next step, without
//   mail. A staged task whose predecessor fails is skipped by all its workers: it goes back to the linker, and comes again when
//   its predecessors are complete. While there is poison nothing is mailed staged.
//
// OWNERS  this role alone writes mails, but for those of bypassed tasks, and what they wait for, and the mailboxes of broadcasts.
//         Lane k looks after the workers 32 g + k.
// STATES  of a worker: idle (sent == seen) -> busy -> full (sent - seen = P::mailbox_depth) by mails; back by completions.
//         Broadcasts that are not booked are in neither.
//         outstanding[slot]: answers due. Without tickets: of all blocks, from the start. With tickets: of the invited workers,
//         and one more until the tickets are drawn. Of a bypassed one: its answer, and its turn. 0: complete. Of a broadcast
//         that is not booked nothing is taken off.
// EDGES   A5 (done, relaxed poll) + R4A5 (fences at device scope: acquire, the team's barrier, release) + R4 (mail, relaxed):
//         completion -> successor.
//         Without the fence PTX gives no causality from the completed worker to the mailed one.
//         R13 (completed) goes out before the fence, so that the linker works meanwhile: what it hands back (A14) is mailed after
//         the fence. Nobody else learns of the completion before it: the notifier (R6) is told after.
//         The fence also makes the records that ingest wrote visible to workers, those of the tasks that the linker had taken in
//         when this role last looked (A15) before it; a task linked since waits for the next step's if it is staged, else a
//         further fence stands before its mail.
//         Where there are several parts R28 counts the fences, for workers of other parts (crossing_stage.hpp).
#pragma once
#include "device/broadcast.hpp"
#include "device/bypass.hpp"
#include "device/crossing.hpp"

namespace slipstream::device {

/// Where the scheduler stands, for the notifier.
enum class schedule_phase : u32 { running = 0, finished = 1 };

/// Several: the engine may have several parts. Without it nothing of them is compiled: engines of one part would take 6 to 7 %
/// longer for tasks of 131 blocks and for one by itself (device/tried.md). Broadcasts: likewise what one of several parts does not
/// do: it sends none, and invites nobody to two tasks.
template <class P, u32 Groups = P::worker_groups, bool Several = true, bool Broadcasts = true>
class scheduler {
public:
    using team_type = typename P::team;
    template <class T> using cell = typename P::template cell<T>;

    SLIPSTREAM_BOTH scheduler(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), poison_(memory, state), crossing_(memory, state), broadcasts_(memory, state),
          ready_(state.ready_queue()), reports_(state.report_queue()), retired_(state.retired_queue())
    {
        read_seen();
        if (!several()) return;
        crossing_.begin();
        fences_ = P::load(edge::P5_self, *state.fences_promised, order::relaxed, scope::block);
    }

    /// One round: poll, hand completions to the linker, fence, bookkeeping while the linker works, mail what is ready. True when it
    /// did anything.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        if (fresh_) {
            mails_ = mails_due(team);
            broadcasts_.begin(mails_);
            fence(team); // from here on covered_ is of this launch
        }
        if (broadcasts_.wanted_booked()) book_broadcasts(team);
        const u32 mails_before = mails_;
        const bool parts = several() && crossing_.some(team);
        typename crossing<P>::looked_type looked;
        if (parts) crossing_.look(team, looked);
        u32 completed;
        if (broadcasts_.out() == 0) {
            completed = poll_completions(team);
        } else {
            completed = broadcasts_.poll(team);
        }
        bool answered = mails_ != mails_before || completed != 0;
        if (postponed_ && ready_.known() != 0 && is_answered(ready_.peek(0).slot())) { // its turn completes it
            if (team.leader()) s_.batch[completed] = ready_.peek(0).slot();
            ++completed;
            pass(1);
            team.sync();
        }
        bool told = false; // by another part, that stand-ins are ready
        bool fenced = false;
        if (parts) {
            if (const u32 there = crossing_.came(team, looked); there != 0) {
                fence(team); // before the linker hears of it, too
                fenced = true;
                note_last(team); // those that have waited for this are retired
                const u32 taken = crossing_.take(team, completed, looked, there);
                told = (taken & crossing<P>::took_bit) != 0;
                completed = taken & ~crossing<P>::took_bit;
            }
            completed = crossing_.hold(team, completed);
        }
        poisoned_ = is_poisoned();
        if (poisoned_ && poison_.pending() != 0) {
            completed = poison_.collect(team, completed); // cancelled tasks complete like any other
            answered = true;
        }
        bool more = false;
        if (completed != 0) {
            settled_ = poisoned_ || s_.counters[failures_seen] != 0;
            if (settled_) {
                if (!fenced) fence(team);
                completed = send_back_skipped(team, completed);
                poison_.settle(team, completed);
                poisoned_ = is_poisoned();
                tell_linker(team, completed, [&](u32 slot) { return poison_.kind_of(slot); });
            } else {
                if (parts && !fenced) fence(team); // as for what other parts have said
                if (several() && !parts) promise(team, fences_ + 1);
                tell_linker(team, completed, [](u32) { return report_kind::completed; });
                if (!parts) fence(team);
            }
            if (parts) crossing_.answer(team, completed, settled_);
            retire(team, completed);
            // The linker is nearly done by now: sooner than another poll comes back. Bounded; not waited for, it comes round.
            // Nor where much is out: then other answers come meanwhile. Nor where many tasks are ready for few workers, who
            // have nothing to do meanwhile.
            more = few_workers() && ready_.known() != 0;
            const bool waits = mails_ <= few_mails && broadcasts_.out() == 0;
            SLIPSTREAM_ONE_COPY
            for (u32 i = waits ? 0 : P::wait_for_linker; i < P::wait_for_linker && !more; ++i)
                more = ready_.look(team) || reports_.drained(team);
        } else if (told) { // as for an answer: the task may be handed over at once
            SLIPSTREAM_ONE_COPY
            for (u32 i = mails_ <= few_mails ? 0 : P::wait_for_linker; i < P::wait_for_linker && !more; ++i)
                more = ready_.look(team);
        }
        more |= ready_.look(team);
        // Nothing can be mailed that could not be before.
        if (!answered && !more && !fresh_ && !postponed_) return told || completed != 0;
        if (postponed_ && completed == 0) fence(team);
        fresh_ = postponed_ = false;
        return dispatch(team) || completed != 0;
    }

    /// The park command was seen: no new mails from now on.
    SLIPSTREAM_BOTH void stop_dispatch() { parking_ = true; }

    /// No mail is out, but for a park staged ones that their workers have left for it; and no cancelled task waits for the next
    /// step. While ingest may mail a task itself this says nothing: at a park it goes behind adopt(), when that role has stopped.
    SLIPSTREAM_BOTH bool workers_idle(team_type& team)
    {
        if (poison_.pending() != 0 || !booked()) return false;
        return mails_ == 0 || (parking_ && all_paused(team));
    }

    /// Takes the mails that ingest has sent to worker 0 (bypass.hpp) into its own count. False: not yet, or not all.
    SLIPSTREAM_BOTH bool adopt(team_type& team)
    {
        const u32 last =
            team.broadcast(team.leader() ? P::load(edge::A23_bypassed, *s_.bypass_number, order::acquire, scope::block) : 0u);
        if (last == *s_.bypass_adopted) return true;
        // Not while worker 0 owes answers of broadcasts whose places in `mailed` they would take.
        if (!booked()) return false;
        // As many as `mailed` has places for; one fewer, lest dispatch() take them for more than bypassed ones.
        const u32 wanted = last - s_.sent[0], owed = s_.sent[0] - s_.seen[0];
        const u32 room = owed < P::mailbox_depth ? P::mailbox_depth - 1 - owed : 0;
        const u32 to = s_.sent[0] + (wanted < room ? wanted : room);
        if (room != 0) mails_ += adopt_out(to, team, s_.bypass_slots, s_.bypass_adopted, s_.sent, s_.mailed);
        return wanted <= room;
    }

    /// Tells every idle worker to leave. After workers_idle().
    SLIPSTREAM_BOTH void dismiss_workers(team_type& team)
    {
        team.sync();
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= m_.n.workers) return;
                if (s_.sent[w] != s_.seen[w]) { // it has left; its word is nobody's until it comes back
                    const u32 word = P::load(edge::A5_done, m_.done[w], order::relaxed, scope::device);
                    P::store(edge::P5_self, m_.done[w], word & ~done_word::paused_bit, order::relaxed, scope::device);
                    return;
                }
                const u32 count = s_.sent[w] + 1; // its last answer is not awaited: the kernel's end is
                s_.sent[w] = s_.seen[w] = count;
                if (w == 0) P::set(*s_.first_sent, count);
                slot_of_mail(w, count) = no_slot; // nobody comes behind it
                send(w, mail{mail::leave, 0, 0, tag_of(count)});
            });
        team.sync();
    }

private:
    using lane_values = typename P::template lane_array<u32, 1>;

    SLIPSTREAM_BOTH bool several() const { return Several && m_.n.parts > 1; }

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
                P::set(s_.outstanding[slot], P::get(s_.heads[slot]).blocks);
                P::set(s_.dealt[slot], 0u);
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
        for (u32 g = 0; g < Groups; ++g) team.each32([&](u32 k) { mine += due(g, k); });
        return team.reduce_add(mine);
    }

    /// Has every worker that owes an answer left for the park?
    SLIPSTREAM_BOTH bool all_paused(team_type& team)
    {
        u32 busy = 0;
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            busy |= team.mask32([&](u32 k) {
                if (due(g, k) == 0) return false;
                const done_word word{P::load(edge::A5_done, m_.done[32 * g + k], order::relaxed, scope::device)};
                return word.answered_since(seen_.at(g, k)) != 0 || (word.raw & done_word::paused_bit) == 0;
            });
        return busy == 0;
    }

    /// Worker 32 g + k, or one to look at in its place, without a branch. (What lies beyond the workers is others'.)
    SLIPSTREAM_BOTH u32 worker_or_first(u32 g, u32 k) const { return 32 * g + k < m_.n.workers ? 32 * g + k : 0; }
    /// By lane k: mails that worker 32 g + k has not answered, as far as is known; 0 of one that is none.
    SLIPSTREAM_BOTH u32 due(u32 g, u32 k) { return 32 * g + k < m_.n.workers ? s_.sent[32 * g + k] - seen_.at(g, k) : 0; }
    /// Has worker 32 g + k answered more than was taken? Not what ingest has sent it and is not adopted yet.
    SLIPSTREAM_BOTH bool has_answered(u32 g, u32 k, done_word word)
    {
        const bool more = word.answered_since(seen_.at(g, k)) != 0;
        return g == 0 ? more & ((k != 0) | (seen_.at(g, k) != s_.sent[0])) : more; // g is a constant
    }
    SLIPSTREAM_BOTH u16& slot_of_mail(u32 w, u32 number) const
    {
        return s_.mailed[w * P::mailbox_depth + number % P::mailbox_depth];
    }

    /// Acquires what the polls of this step saw and releases it to whoever is mailed from now on: completions, and the records
    /// of the tasks linked by now.
    SLIPSTREAM_BOTH void fence(team_type& team)
    {
        covered_ = team.broadcast(team.leader() ? P::load(edge::A15_linked, *s_.linked, order::relaxed, scope::block) : 0u);
        fenced_ = ready_.position() + ready_.known();
        // Each lane polled some workers and mails to some: what one acquires, all release.
        P::fence(edge::R4A5_step_fence, order::acquire, scope::device);
        team.sync();
        P::fence(edge::R4A5_step_fence, order::release, scope::device);
        if (!several()) return;
        ++fences_;
        if (team.leader()) // relaxed: behind the fence
            P::store(edge::R28_fences, m_.part_clocks[m_.n.part].fences, u64{fences_}, order::relaxed, scope::device);
        promise(team, fences_);
    }

    /// Where there are several parts: that fence covers what the linker has been told of, or is about to be. It has been made, or
    /// is made in this step.
    SLIPSTREAM_BOTH void promise(team_type& team, u32 number)
    {
        // Relaxed: a report comes behind it, or the task has left the window, which comes behind its fence.
        if (team.leader()) P::store(edge::P15_promised, *s_.fences_promised, number, order::relaxed, scope::block);
    }

    /// Was the task of this entry, so many behind the next one, linked after the last fence? Not if the entry was in the queue
    /// by then: without that a number that was given very long before would say so for ever.
    SLIPSTREAM_BOTH bool is_late(u32 ahead, ready_entry entry) const
    {
        return (static_cast<std::int32_t>(ready_.position() + ahead - fenced_) >= 0) & entry.linked_after(covered_);
    }

    /// Reads the completion words of all workers, all loads in flight together, and takes their answers. Returns how many tasks are
    /// complete by them: batch[0..n).
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
                return 32 * g + k < m_.n.workers && has_answered(g, k, done_word{value});
            });
        u32 any = 0;
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g) any |= changed[g];
        if (any == 0) return 0;
        u32 completed = 0;
        bool drawn = false; // on some lane
        SLIPSTREAM_ONE_COPY
        while (any != 0) { // an answer of each worker, as long as there are many: what they look up flies together
            u32 left = 0; // workers
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) left += popcount(changed[g]);
            if (left <= answering_few) {
                completed = take_of_few(team, left, changed, answers, completed, drawn);
                break;
            }
            typename P::template lane_array<u32, Groups> slots;
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                mails_ -= popcount(changed[g]);
                team.each32([&](u32 k) {
                    seen_.at(g, k) += changed[g] >> k & 1;
                    slots.at(g, k) = slot_of_mail(worker_or_first(g, k), seen_.at(g, k)); // of no use where nothing changed
                });
            }
            u32 complete[Groups];
            team.masks32(
                complete,
                [&](u32 g, u32 k) {
                    if (!(changed[g] >> k & 1)) return 0u;
                    s_.seen[32 * g + k] = seen_.at(g, k);
                    return team.add(s_.outstanding[slots.at(g, k)], ~u32{0});
                },
                [](u32, u32, u32 left) { return left == 1; });
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                team.each32([&](u32 k) {
                    const done_word word{answers.at(g, k)};
                    const bool mine = (changed[g] >> k & 1) != 0;
                    const bool skipped = word.skipped(seen_.at(g, k));
                    if (mine && (skipped || (word.raw & done_word::failed_bit) != 0))
                        s_.counters[failures_seen] = 1; // any lane: they all write the same
                    drawn |= mine && slots.at(g, k) == open_
                        && (word.raw & done_word::drawn_bit) != 0; // if it is said of the next one, then of both
                    if (complete[g] >> k & 1)
                        s_.batch[completed + popcount(complete[g] & ((1u << k) - 1))] =
                            slots.at(g, k) | (skipped ? skipped_flag : 0);
                });
                completed += popcount(complete[g]);
            }
            any = 0;
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                changed[g] = team.mask32([&](u32 k) {
                    return (changed[g] >> k & 1) && has_answered(g, k, done_word{answers.at(g, k)});
                });
                any |= changed[g];
            }
        }
        team.sync();
        if (open_ != no_slot && team.any(drawn)) {
            // The open task has no tickets left: nobody else is invited, its last answer completes it. If the next one has none
            // left either, by answers that were taken with this one's, who is idle is invited to that, and says so.
            const u32 left = P::get(s_.outstanding[open_]) - 1;
            team.sync();
            if (team.leader()) {
                P::set(s_.outstanding[open_], left);
                if (left == 0) s_.batch[completed] = open_;
            }
            if (left == 0) ++completed;
            open_ = next_;
            next_ = no_slot;
            take_out(team, several() ? forward_ : 0);
            team.sync();
        }
        return completed;
    }

    /// The same of the `left` workers that have answered more: of each all at once, a lane an answer. Who has run a chain of brief
    /// tasks gives a mailbox of them together.
    template <class Answers>
    SLIPSTREAM_BOTH u32 take_of_few(team_type& team, u32 left, u32 (&changed)[Groups], Answers& answers, u32 completed, bool& drawn)
    {
        SLIPSTREAM_ONE_COPY
        for (; left != 0; --left) {
            u32 group = 0, mask = 0;
            SLIPSTREAM_UNROLL
            for (u32 g = Groups; g-- > 0;) {
                group = changed[g] != 0 ? g : group;
                mask = changed[g] != 0 ? changed[g] : mask;
            }
            const u32 lane = lowest_bit(mask), w = 32 * group + lane;
            lane_values words, numbers, slots;
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                team.each32([&](u32 k) {
                    if (g != 0 && g != group) return;
                    words.at(0, k) = answers.at(g, k);
                    numbers.at(0, k) = seen_.at(g, k);
                });
                changed[g] &= g == group ? ~(1u << lane) : ~0u;
            }
            const done_word word{team.from_lane(words, lane)};
            const u32 before = team.from_lane(numbers, lane);
            const u32 taken_over = w == 0 ? s_.sent[0] - before : ~0u; // of what ingest has sent it; see has_answered()
            const u32 answered = word.answered_since(before);
            const u32 count = answered < taken_over ? answered : taken_over;
            const u32 complete = team.mask32([&](u32 k) {
                if (k >= count) return false;
                const u32 slot = slots.at(0, k) = slot_of_mail(w, before + 1 + k);
                return team.add(s_.outstanding[slot], ~u32{0}) == 1;
            });
            team.each32([&](u32 k) {
                if (k >= count) return;
                const bool skipped = word.skipped(before + 1 + k);
                if (skipped || (word.raw & done_word::failed_bit) != 0) s_.counters[failures_seen] = 1;
                drawn |= slots.at(0, k) == open_ && (word.raw & done_word::drawn_bit) != 0;
                if (complete >> k & 1)
                    s_.batch[completed + popcount(complete & low_bits(k))] = slots.at(0, k) | (skipped ? skipped_flag : 0);
            });
            completed += popcount(complete);
            mails_ -= count;
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g)
                team.each32([&](u32 k) {
                    if (g != group || k != lane) return;
                    seen_.at(g, k) = before + count;
                    s_.seen[w] = before + count;
                });
        }
        return completed;
    }

    /// Tells the notifier of the completed tasks batch[0..count), but for those that cross and are retired later. Their slots
    /// travel on through admission to ingest.
    SLIPSTREAM_BOTH void retire(team_type& team, u32 count)
    {
        if (count == 0) return;
        note_last(team);
        const u32 flag = settled_ ? retired_look : 0;
        if (several()) {
            crossing_.retire(team, count, flag);
            return;
        }
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) retired_.put_ahead(k, s_.batch[k] | flag);
        retired_.advance(count); // never full: it has room for every slot
        retired_.publish(team);
    }
    /// Before tasks are retired: nothing may be in flight when they are gone.
    SLIPSTREAM_BOTH void note_last(team_type& team)
    {
        if (broadcasts_.may_be_last(mails_) && team.leader()) P::set(*s_.first_sent, s_.sent[0] + broadcasts_.uncounted());
    }

    SLIPSTREAM_BOTH bool is_brief(u32 slot) const { return (s_.brief[slot / 32] >> slot % 32 & 1) != 0; }

    /// Mails blocks of ready tasks, oldest first, while there are workers for them. False: nothing can be done until some worker
    /// has gone by a broadcast.
    SLIPSTREAM_BOTH bool dispatch(team_type& team)
    {
        const bool crossings = several() && crossing_.some(team);
        bool new_places = crossings; // the first 32 are others than those that were looked at
        bool by_itself = false;
        // While more are out, not all that is in flight was bypassed: unless they are of broadcasts, which may be complete.
        bool may_mail = (mails_ >= P::mailbox_depth && !broadcasts_.owed()) || adopt(team);
        SLIPSTREAM_ONE_COPY
        while (may_mail && !parking_ && ready_.known() != 0) {
            if (new_places) {
                new_places = false;
                bring_forward(team);
                continue;
            }
            const ready_entry entry = ready_.peek(0);
            const u32 slot = entry.slot();
            // A clear_failure ends it when its turn comes, here or among the stand-ins. From then on nothing is declined: whoever
            // is staged behind a task before the linker hears that it was declined would be mailed in the next step, before it.
            if (poisoned_) poisoned_ = is_poisoned();
            if (poisoned_ && !P::get(s_.heads[slot]).bypassed()
                && (entry.waits() != 0 ? declines(team, slot) : refuses(team, slot))) {
                if (team.leader()) s_.runs_on[slot] = 0;
                if (slot == open_) open_ = next_ = no_slot; // nobody was idle, so that nobody was invited
                pass(1);
                new_places = crossings;
                continue;
            }
            parcel p{P::get(s_.heads[slot]), 0, 0, 1, places, entry};
            if (p.head.bypassed()) { // its worker has it
                if (is_answered(slot)) {
                    postponed_ = true; // the next step completes it
                    break;
                }
                if (team.leader()) {
                    P::set(s_.outstanding[slot], 1u);
                    s_.runs_on[slot] = 1; // worker 0
                }
                pass(1);
                team.sync();
                new_places = crossings;
                continue;
            }
            if (p.head.blocks == 1) {
                if (!(may_mail = booked())) break;
                // One that was brought before the open task does not come behind a mail of it, which may take long.
                if (entry.waits() == 0) p.depth = !crowded() || open_ != no_slot ? 1 : places;
                else p.depth = several() ? staged_depth : places;
                // Poisoned: the one that was just judged. Those brought forward do not wait for the others to be placed, but where
                // there are many.
                const bool ahead = several() && forward_ != 0 && (open_ != no_slot || !crowded());
                const u32 most = poisoned_ ? 1 : ahead ? forward_ : ready_.known();
                u32 mailed;
                if ((entry.waits() == 0 && most == 1) || by_itself) { // somebody waits for it
                    if (is_late(0, entry)) fence(team);
                    mailed = hand_out(team, p);
                } else {
                    mailed = hand_out_ones(team, most, p.depth);
                    // With few workers each may be kept for one that comes behind its last mail, idle ones, too; and if all are
                    // idle no answer would ever bring this one its turn.
                    by_itself = mailed == 0 && kept_ && !postponed_;
                    if (by_itself) continue;
                }
                by_itself = false;
                if (mailed == 0) break;
                broadcasts_.note(false);
                pass(mailed);
                new_places = crossings;
                continue;
            }
            const bool brief_blocks = Broadcasts && p.head.blocks <= m_.n.workers && !several() && is_brief(slot);
            const bool to_all =
                brief_blocks && !poisoned_ && broadcasts_.takes(slot, mails_) && (mails_ == 0 || only_brief_out(team));
            if (to_all && (mails_ != 0 || broadcasts_.out() == broadcasts_max)) break;
            if (!(may_mail = to_all ? broadcasts_.in_step() : booked())) break;
            const bool late = is_late(0, entry) || (p.head.blocks > m_.n.workers && draws_next() && is_late(1, ready_.peek(1)));
            if (late && entry.waits() != 0) {
                postponed_ = true;
                break;
            }
            if (to_all) {
                // below: nothing is dealt
            } else if (p.head.blocks <= m_.n.workers) {
                p.block = P::get(s_.dealt[slot]);
                p.count = p.head.blocks - p.block;
                if (entry.waits() != 0) p.depth = several() ? staged_depth : is_brief(slot) ? brief_places : places;
            } else {
                // It stays there, inviting workers as they fall idle, until its tickets are drawn: at the head, or behind tasks
                // that cross.
                open_ = slot;
                p.tickets = mail::tickets_bit;
                p.count = m_.n.workers;
                p.depth = 1;
            }
            if (late) fence(team);
            if (to_all) {
                broadcasts_.send(team, p.head, slot, entry.waits(), [&](u32 mailbox, const mail& letter) {
                    if (letter.waits() != 0) send_waits(mailbox, slot, letter.waits(), letter.tag);
                    send(mailbox, letter);
                });
                pass(1);
                continue;
            }
            const u32 mailed = hand_out(team, p);
            if (mailed == p.count && p.tickets == 0) {
                broadcasts_.note(brief_blocks);
                pass(1);
                new_places = crossings;
                continue;
            }
            team.sync();
            if (team.leader()) {
                P::set(s_.dealt[slot], P::get(s_.dealt[slot]) + mailed); // with tickets: invited, ever
                if (p.tickets) P::set(s_.outstanding[slot], P::get(s_.outstanding[slot]) + mailed);
            }
            team.sync();
            if (p.tickets && draws_next()) {
                next_ = ready_.peek(1).slot();
                mails_ += invite_behind({s_.sent, s_.seen, s_.mailed, s_.dealt, s_.outstanding, m_.mailboxes, m_.n.workers}, team,
                                        P::get(s_.heads[next_]), next_, slot);
            }
            break;
        }
        ready_.release(team);
        reports_.publish(team);
        postponed_ |= !may_mail;
        return may_mail || !broadcasts_.late();
    }

    /// Does the second ready task draw tickets, like the first one?
    SLIPSTREAM_BOTH bool draws_next() const
    {
        if (!Broadcasts || several() || poisoned_ || ready_.known() < 2) return false;
        return P::get(s_.heads[ready_.peek(1).slot()]).blocks > m_.n.workers;
    }
    struct invitation_tables {
        u32 *sent, *seen;
        u16* mailed;
        cell<u32>*dealt, *outstanding;
        mailbox<P>* mailboxes;
        u32 workers;
    };
    /// Invites whoever was invited to the task in slot `open`, and has no other mail, to the one in `slot`: he comes to it when
    /// that one's tickets are used up, and not a round of this role later. Returns how many mails that took.
    SLIPSTREAM_BOTH_RARE static u32 invite_behind(const invitation_tables t, team_type team, const task_head head, u32 slot,
                                                  u32 open)
    {
        u32 invited = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; 32 * g < t.workers; ++g)
            invited += popcount(team.mask32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= t.workers || t.sent[w] - t.seen[w] != 1) return false;
                u16* const mailed = t.mailed + w * P::mailbox_depth;
                if (mailed[t.sent[w] % P::mailbox_depth] != open) return false;
                const u32 number = ++t.sent[w], tag = tag_of(number);
                mailed[number % P::mailbox_depth] = static_cast<u16>(slot);
                const mail letter{head.slot_and_type, 0, head.identity | mail::tickets_bit, tag};
                P::store(edge::R4_mail, t.mailboxes[w].mail[tag % P::mailbox_depth], letter.encode(), order::relaxed,
                         scope::device);
                return true;
            }));
        team.sync();
        if (team.leader()) {
            P::set(t.dealt[slot], P::get(t.dealt[slot]) + invited);
            P::set(t.outstanding[slot], P::get(t.outstanding[slot]) + invited);
        }
        team.sync();
        return invited;
    }

    /// Of the task in `slot`, at the head of the ready queue: was it bypassed, and its answer taken? Then its turn is all that it
    /// waits for.
    SLIPSTREAM_BOTH bool is_answered(u32 slot) const
    {
        return P::get(s_.heads[slot]).bypassed() && P::get(s_.outstanding[slot]) == 1;
    }
    /// Is all that is out of brief tasks? Then it is answered soon.
    SLIPSTREAM_BOTH bool only_brief_out(team_type& team) const
    {
        return only_brief_of({s_.sent, s_.seen, s_.mailed, s_.brief, m_.n.workers, m_.n.window}, team);
    }
    struct mails_out {
        const u32 *sent, *seen;
        const u16* mailed;
        const u32* brief;
        u32 workers, window;
    };
    SLIPSTREAM_BOTH_RARE static bool only_brief_of(const mails_out out, team_type team)
    {
        bool lasting = false; // on some worker of this lane's
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; 32 * g < out.workers; ++g)
            team.each32([&](u32 k) {
                const u32 w = 32 * g + k;
                if (w >= out.workers) return;
                SLIPSTREAM_ONE_COPY
                for (u32 number = out.sent[w]; number != out.seen[w]; --number) {
                    const u32 slot = out.mailed[w * P::mailbox_depth + number % P::mailbox_depth];
                    if (slot >= out.window) continue; // a broadcast without a block
                    lasting |= (out.brief[slot / 32] >> slot % 32 & 1) == 0;
                }
            });
        return !team.any(lasting);
    }
    /// Notes the slots of ingest's mails up to number `last`, and returns how many they are. Not in line: rare, and with registers
    /// of its own.
    SLIPSTREAM_BOTH_RARE static u32 adopt_out(u32 last, team_type team, const cell<u32>* slots, u32* adopted, u32* sent,
                                              u16* mailed)
    {
        const u32 before = sent[0], count = last - before;
        team.sync();
        team.each32([&](u32 k) {
            const u32 number = before + 1 + k;
            if (k < count) mailed[number % P::mailbox_depth] = static_cast<u16>(P::get(slots[number % bypassed_max<P>]));
        });
        if (team.leader()) sent[0] = *adopted = last;
        team.sync();
        return count;
    }

    /// Are all broadcasts in the books? If not, the next step takes them in.
    SLIPSTREAM_BOTH bool booked()
    {
        if (!broadcasts_.unbooked()) return true;
        broadcasts_.want_booked();
        return false;
    }
    SLIPSTREAM_BOTH void book_broadcasts(team_type& team)
    {
        const u32 due = broadcasts_.book(team);
        mails_ += due;
        read_seen();
    }
    /// Nothing of a lane that is no worker's: what poll_completions takes for its answer is 0, too.
    SLIPSTREAM_BOTH void read_seen()
    {
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team_type::each32([&](u32 k) { seen_.at(g, k) = 32 * g + k < m_.n.workers ? s_.seen[32 * g + k] : 0; });
    }

    /// A task that waits for nobody is cancelled instead of mailed.
    SLIPSTREAM_BOTH bool refuses(team_type& team, u32 slot)
    {
        if (P::get(s_.dealt[slot]) != 0) return false; // some of it runs: what fails now, and matches all, comes too late
        if (!several() || !crossing_.bad() || !crossing_.gives_up(team, slot)) return poison_.cancels(team, slot);
        poison_.cancel_by_itself(team, slot);
        return true;
    }

    /// Takes the task behind the first so many, 32 at most, out of the ready queue: those before it move up.
    SLIPSTREAM_BOTH void take_out(team_type& team, u32 place)
    {
        ready_.skip(1);
        if (place == 0) return;
        typename P::template lane_array<ready_entry, 1> moved;
        team.each32([&](u32 k) { if (k < place) moved.at(0, k) = ready_.peek(k - 1); });
        team.sync();
        team.each32([&](u32 k) { if (k < place) ready_.replace(k, moved.at(0, k)); });
        team.sync();
    }

    /// Takes `count` tasks from the head of the ready queue.
    SLIPSTREAM_BOTH void pass(u32 count)
    {
        ready_.skip(count);
        if (several()) forward_ -= count < forward_ ? count : forward_;
    }

    /// Brings those of the first 32 ready tasks that cross, are of one block and wait for nobody before the others: other parts
    /// wait for them, and no mail that goes out before another's may be in its way. And takes the stand-ins out: their homes
    /// are told.
    SLIPSTREAM_BOTH void bring_forward(team_type& team)
    {
        enum : u32 { stand_in, crosses, late };
        u32 found[3];
        lane_values facts; // a bit of each
        typename P::template lane_array<ready_entry, 1> entries;
        SLIPSTREAM_ONE_COPY
        do {
            const u32 count = ready_.known() < 32 ? ready_.known() : 32;
            team.each32([&](u32 k) {
                facts.at(0, k) = 0;
                if (k >= count) return;
                const ready_entry entry = entries.at(0, k) = ready_.peek(k);
                const task_head head = P::get(s_.heads[entry.slot()]);
                facts.at(0, k) = static_cast<u32>(head.stands_in()) << stand_in
                    | static_cast<u32>((head.blocks == 1) & (entry.waits() == 0) & head.crosses() & !poisoned_) << crosses
                    | static_cast<u32>(is_late(k, entry)) << late;
            });
            team.masks32(found, [&](u32, u32 k) { return facts.at(0, k); },
                         [](u32 n, u32, u32 value) { return (value >> n & 1) != 0; });
            const u32 first = found[stand_in] | found[crosses];
            const u32 others = low_bits(count) & ~first;
            const u32 stand_ins = popcount(found[stand_in]), forward = popcount(found[crosses]);
            if (!poisoned_) forward_ = forward;
            if (first == low_bits(forward)) return; // in their places
            // Stand-ins, tasks that cross, the others: each in their order.
            team.each32([&](u32 k) {
                if (k >= count) return;
                const u32 before = low_bits(k);
                const u32 place = found[stand_in] >> k & 1  ? popcount(found[stand_in] & before)
                                  : found[crosses] >> k & 1 ? stand_ins + popcount(found[crosses] & before)
                                                            : stand_ins + forward + popcount(others & before);
                ready_.replace(place, entries.at(0, k));
            });
            team.sync();
            if (stand_ins != 0) {
                // What their linker has told the homes of them (crossing_stage.hpp) comes before they are said to be ready.
                if (static_cast<std::int32_t>(ready_.position() + highest_bit(found[stand_in]) - fenced_) >= 0) fence(team);
                u32 gone = 0;
                SLIPSTREAM_ONE_COPY
                for (u32 k = 0; poisoned_ && k < stand_ins; ++k) {
                    const u32 slot = ready_.peek(k).slot();
                    const bool ends = crossing_.is_unretired(slot) || has_counted(team, slot);
                    gone |= static_cast<u32>(!ends && poison_.cancels(team, slot)) << k;
                }
                team.each32([&](u32 k) { if (k < stand_ins) facts.at(0, k) = ready_.peek(k).slot(); });
                note_last(team);
                crossing_.tell_homes(team, facts, stand_ins, gone);
                ready_.skip(stand_ins);
            }
            // By its place alone a task that came forward would seem to be linked before the last fence.
            if ((found[crosses] & found[late]) != 0) fence(team);
            if (stand_ins == 0) return;
        } while (ready_.known() != 0);
    }

    /// Of a stand-in whose turn has come: has its task run, and said so in its finished count? Then who was staged behind it may
    /// have failed by now, of which it reads and heals nothing. (Whoever is known to have failed there has seen that count.)
    SLIPSTREAM_BOTH bool has_counted(team_type& team, u32 slot) const
    {
        if (!P::get(s_.heads[slot]).has(abi::flag_counted)) return false;
        return has_come_to(m_.records[slot].finished, team, P::get(s_.targets[slot]));
    }
    SLIPSTREAM_BOTH_RARE static bool has_come_to(const typename P::template word<u64>& finished, team_type team, u32 target)
    {
        const u64 seen = team.leader() ? P::load(edge::A24_finished, finished, order::relaxed, scope::device) : 0;
        return team.broadcast(static_cast<u32>(finished_count{seen}.reached(target))) != 0;
    }

    /// May a task have to be cancelled that has not been mailed?
    SLIPSTREAM_BOTH bool is_poisoned() const { return poison_.any() || (several() && crossing_.bad()); }

    /// A staged task may not be mailed while there is poison, unless some of it was mailed before: it goes back to the linker.
    SLIPSTREAM_BOTH bool declines(team_type& team, u32 slot)
    {
        if (P::get(s_.dealt[slot]) != 0) return false;
        if (team.leader()) reports_.put_ahead(0, report::make(report_kind::declined, slot));
        reports_.advance(1);
        return true;
    }

    /// One-block tasks from the head of the ready queue on: all staged or none, unless it is crowded. What is asked of each
    /// again and again, by its lane.
    struct ones {
        typename P::template lane_array<ready_entry, 1> entries;
        typename P::template lane_array<task_head, 1> heads;
        u32 count;
        u32 staged; ///< a bit each: it waits for others
        u32 late;   ///< likewise: it was linked after the last fence

        SLIPSTREAM_BOTH u32 slot(u32 k) { return entries.at(0, k).slot(); }
        SLIPSTREAM_BOTH u32 waits(u32 k) { return entries.at(0, k).waits(); }
    };

    /// Of the first `most` ready tasks, 32 at most; the first is one of one block.
    SLIPSTREAM_BOTH ones ones_in_a_row(team_type& team, u32 most)
    {
        ones out;
        const bool together = crowded() && !several(); // else some worker may take the ones and not the others
        const bool first_waits = ready_.peek(0).waits() != 0;
        enum : u32 { alike, waits, late };
        u32 masks[3];
        lane_values facts; // a bit of each
        team.each32([&](u32 k) {
            const bool one = k < most;
            const ready_entry entry = out.entries.at(0, k) = ready_.peek(one ? k : 0); // no branch
            const task_head head = out.heads.at(0, k) = P::get(s_.heads[entry.slot()]);
            const bool waiting = entry.waits() != 0;
            const bool like_first = (head.blocks == 1) & !head.bypassed() & (together | (waiting == first_waits));
            facts.at(0, k) = static_cast<u32>(one & like_first) << alike | static_cast<u32>(waiting) << waits
                | static_cast<u32>(is_late(k, entry)) << late;
        });
        team.masks32(masks, [&](u32, u32 k) { return facts.at(0, k); },
                     [](u32 n, u32, u32 value) { return (value >> n & 1) != 0; });
        out.count = masks[alike] == ~0u ? 32 : lowest_bit(~masks[alike]);
        out.staged = masks[waits] & low_bits(out.count);
        out.late = masks[late] & low_bits(out.count);
        return out;
    }

    /// Is there so much to do that a task may be mailed behind another one? Else it waits for an idle worker, which comes soon:
    /// on its worker it might stand behind a long or a waiting one. A staged task, which waits anyhow, may at any time.
    SLIPSTREAM_BOTH bool crowded() const { return ready_.known() + mails_ > m_.n.workers + m_.n.workers / 4; }

    /// Mails one-block tasks, of the first `most` ready ones, in order: behind one that they wait for, or else to workers with
    /// fewer than `depth` mails due, idle ones first. Returns how many were sent. All is chosen before the first mail goes
    /// out: a task whose place is not there must not be overtaken by those after it, or two workers may end up waiting for
    /// each other's second mail.
    SLIPSTREAM_BOTH u32 hand_out_ones(team_type& team, u32 most, u32 depth)
    {
        ones tasks = ones_in_a_row(team, most);
        if (tasks.late != 0) {
            // Who waits anyhow waits for the fence of the next step, which comes at once: most steps have one by themselves.
            if ((tasks.staged & 1) == 0) {
                fence(team);
            } else {
                postponed_ = true;
                tasks.count = lowest_bit(tasks.late);
                if (tasks.count == 0) return 0;
                tasks.staged &= low_bits(tasks.count);
            }
        }
        const u32 count = tasks.count;
        if (Broadcasts && !several() && m_.n.chaining != 0 && (tasks.staged & low_bits(chain_min)) == low_bits(chain_min)) {
            const u32 length = chain_at_head(team, tasks);
            if (length >= chain_min) return hand_out_chain(team, tasks, length, depth);
        }
        u32 behind = 0; // come behind a task that was mailed before
        u32 within = 0; // come behind one of this parcel
        u32 seconds = 0; // of these, come behind another one that waits for the same task
        if (m_.n.chaining != 0 && tasks.staged != 0) choose_behind(team, tasks, behind, within, seconds);
        if (within != 0) {
            const u32 cut = cut_chains(team, tasks, behind, within);
            within &= ~cut;
            seconds &= ~cut;
        }
        kept_ = behind != 0;

        // Each task comes to the worker of its root: the first of those of the parcel that follow each other.
        const u32 roots = low_bits(count) & ~(behind | within);
        const bool chained = roots != low_bits(count);
        u32 given = 0;
        if (roots != 0) {
            if (chained) {
                team.each32([&](u32 k) { if (roots >> k & 1) s_.parcel_roots[popcount(roots & ((1u << k) - 1))] = k; });
                team.sync();
            }
            const bool deep = depth == places && !chained && tasks.staged == 0 && few_workers() && all_brief(team, tasks);
            const auto place_of = [&](u32 i) { return chained ? s_.parcel_roots[i] : i; };
            if (several() && (tasks.staged & 1) != 0)
                given = choose_by_turns(team, popcount(roots), depth, behind != 0, !chained, place_of);
            else given = choose_idlest(team, popcount(roots), deep ? brief_places : depth, behind != 0, deep, place_of);
            team.sync();
        }
        lane_values workers, numbers;
        const u32 placed = team.mask32([&](u32 k) {
            if (k >= count) return false;
            const u32 link = within != 0 ? s_.parcel_links[k] : k;
            const u32 root = link & link_root;
            if ((roots >> root & 1) && popcount(roots & ((1u << root) - 1)) >= given) return false;
            const u32 w = s_.parcel_workers[root] % parcel_step;
            workers.at(0, k) = w;
            numbers.at(0, k) = s_.sent[w] + 1 + s_.parcel_workers[root] / parcel_step + link / link_step;
            return numbers.at(0, k) - s_.seen[w] <= P::mailbox_depth;
        });
        const u32 mailed = placed == ~0u ? 32 : lowest_bit(~placed);
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 w = workers.at(0, k);
            if (behind >> k & 1) s_.taken[w / 32] = 0;
            if (k >= mailed) return;
            const u32 slot = tasks.slot(k);
            team.add(s_.sent[w], 1);
            if (several()) team.add(s_.turns[w], 1);
            slot_of_mail(w, numbers.at(0, k)) = static_cast<u16>(slot);
            s_.runs_on[slot] = static_cast<u16>(1 + w);
        });
        team.sync(); // who of a parcel runs where
        // Those that follow go first: a worker that finds the first mail of a chain finds the others with it, most often.
        const u32 follow = low_bits(mailed) & ~roots;
        const auto brief_bit = [&](u32 k) {
            return (is_brief(tasks.slot(k)) && !(several() && tasks.heads.at(0, k).crosses())) * mail::brief_bit;
        };
        if (follow != 0)
            team.each32([&](u32 k) {
                if (!(follow >> k & 1)) return;
                const u32 slot = tasks.slot(k), w = workers.at(0, k), tag = tag_of(numbers.at(0, k));
                const task_head head = tasks.heads.at(0, k);
                const u32 others = send_others(w, slot, tasks.waits(k), tag);
                // Does nobody elsewhere wait for the one before it? Behind the first of two: whoever waits for that one waits
                // for the second, too, most often.
                const u32 only = s_.joins[slot / 32] >> slot % 32,
                          both = s_.joins_both[slot / 32] >> slot % 32 & seconds >> 1 >> k,
                          second = seconds >> k;
                const u32 joins = ((only | both | second) & 1) * mail::joins_bit;
                send(w, {head.slot_and_type | mail::follows_bit, brief_bit(k) | joins | others << 28, head.identity, tag});
            });
        const u32 alone = low_bits(mailed) & roots;
        if ((alone & tasks.staged) != 0)
            team.each32([&](u32 k) {
                if (alone >> k & 1) send_waits(workers.at(0, k), tasks.slot(k), tasks.waits(k), tag_of(numbers.at(0, k)));
            });
        if (alone != 0)
            team.each32([&](u32 k) {
                if (!(alone >> k & 1)) return;
                const task_head head = tasks.heads.at(0, k);
                const u32 tag = tag_of(numbers.at(0, k));
                const u32 crossing_bit = send_stand_ins(workers.at(0, k), head, tag);
                // The number of the last one that waits, where a worker gets several.
                if (several() && tasks.waits(k) != 0 && (chained || numbers.at(0, k) == s_.sent[workers.at(0, k)]))
                    s_.waits_sent[workers.at(0, k)] = numbers.at(0, k);
                send(workers.at(0, k),
                     {head.slot_and_type | crossing_bit, brief_bit(k) | tasks.waits(k) << 28, head.identity, tag});
            });
        mails_ += mailed;
        team.sync();
        return mailed;
    }

    /// How many of the tasks, from the first on, are staged, wait for one alone, for which nobody else waits, and which, but of
    /// the first, is the task right before in this parcel?
    SLIPSTREAM_BOTH u32 chain_at_head(team_type& team, ones& tasks)
    {
        const u32 in_row = team.mask32([&](u32 k) {
            const bool one = k < tasks.count;
            const u32 before = ready_.peek(one && k != 0 ? k - 1 : 0).slot();
            const u32 p = P::get(s_.waits_near[tasks.slot(k) * waits_near_max]).slot;
            return one & waits_for_one(tasks, k) & ((k == 0) | (p == before));
        });
        return in_row == ~0u ? 32 : lowest_bit(~in_row);
    }

    /// Mails the first `count` tasks, which are such a chain, as hand_out_ones() would a parcel of them alone, by less than half of
    /// its instructions. What that one would see of those behind them in the parcel is not looked at: where the chain goes on
    /// elsewhere it may take a worker for whose last task another one of them comes; a second task that waits for the chain's last
    /// but one comes with an answer of its own; and a diamond behind the chain may be cut in its midst.
    SLIPSTREAM_BOTH u32 hand_out_chain(team_type& team, ones& tasks, u32 count, u32 depth)
    {
        constexpr u32 places_each = P::mailbox_depth;
        const u32 first_slot = ready_.peek(0).slot();
        const u32 p = P::get(s_.waits_near[first_slot * waits_near_max]).slot, where = s_.runs_on[p];
        // One of a parcel that found no worker: p is complete, and its slot has come again.
        const bool mailed_before = where != 0 && (where & runs_in_parcel) == 0;
        kept_ = mailed_before && has_place_behind(where - 1, p, first_slot);
        // The chain goes on where a mailbox ends with another worker: behind p's so many, and so many mailboxes from empty ones.
        const u32 w = kept_ ? where - 1 : 0;
        const u32 room = kept_ ? places_each - (s_.sent[w] - s_.seen[w]) : 0;
        const u32 pieces = count > room ? (count - room + places_each - 1) / places_each : 0;
        if (kept_ && team.leader()) s_.taken[w / 32] = 1u << w % 32;
        team.sync();
        const u32 given = pieces != 0 ? choose_idlest(team, pieces, depth, kept_, false, [](u32 i) { return i; }) : 0;
        team.sync();
        lane_values workers, numbers;
        const u32 placed = team.mask32([&](u32 k) {
            const bool behind = k < room;
            const u32 piece = (k - room) / places_each; // of no use if behind
            const u32 to = workers.at(0, k) = behind | (piece >= given) ? w : s_.parcel_workers[piece];
            numbers.at(0, k) = s_.sent[to] + 1 + (behind ? k : (k - room) % places_each);
            return (k < count) & (behind | (piece < given)) & (numbers.at(0, k) - s_.seen[to] <= places_each);
        });
        const u32 mailed = placed == ~0u ? 32 : lowest_bit(~placed);
        const auto begins = [&](u32 k) { return (k >= room) & ((k - room) % places_each == 0); };
        if (kept_ && team.leader()) s_.taken[w / 32] = 0;
        team.each32([&](u32 k) {
            if (k >= mailed) return;
            const u32 slot = tasks.slot(k), to = workers.at(0, k), number = numbers.at(0, k), tag = tag_of(number);
            if ((k + 1 == mailed) | begins(k + 1)) s_.sent[to] = number;
            slot_of_mail(to, number) = static_cast<u16>(slot);
            s_.runs_on[slot] = static_cast<u16>(1 + to);
            const bool alone = begins(k);
            if (alone)
                P::store(edge::R4_mail, m_.mailboxes[to].waits[tag % places_each][0],
                         chunk_of(P::get(s_.waits_near[slot * waits_near_max]), tag), order::relaxed, scope::device);
            const task_head head = tasks.heads.at(0, k);
            send(to, {head.slot_and_type | (alone ? 0 : mail::follows_bit),
                      mail::brief_bit | (alone ? 1u << 28 : mail::joins_bit), head.identity, tag});
        });
        mails_ += mailed;
        team.sync();
        return mailed;
    }

    /// Which of the tasks come behind the one that they wait for and that was linked last: one mailed before (`behind`), or one
    /// of this parcel (`within`)? Of two brief ones that wait for the same one both do, one behind the other: the second
    /// (`seconds`, of those within) begins sooner so than on another worker.
    SLIPSTREAM_BOTH void choose_behind(team_type& team, ones& tasks, u32& behind, u32& within, u32& seconds)
    {
        const u32 count = tasks.count;
        team.each32([&](u32 k) { if (k < count) s_.runs_on[tasks.slot(k)] = static_cast<u16>(runs_in_parcel | k); });
        team.sync();
        lane_values before, runs_on; // the slot of that task, and where it is
        typename P::template lane_array<u32, waits_near_max - 1> others, others_run_on;
        u32 able = team.mask32([&](u32 k) {
            if (!(tasks.staged >> k & 1) || (several() && tasks.heads.at(0, k).crosses())) return false;
            const u32 waits = tasks.waits(k);
            if (waits > waits_near_max) return false; // the others lie far
            const u32 slot = tasks.slot(k);
            const awaited_task last = P::get(s_.waits_near[slot * waits_near_max]);
            const u32 p = last.slot, where = runs_on_of(last);
            before.at(0, k) = p;
            runs_on.at(0, k) = where;
            SLIPSTREAM_UNROLL
            for (u32 i = 1; i < waits_near_max; ++i) {
                const awaited_task other = P::get(s_.waits_near[slot * waits_near_max + i]);
                others.at(i - 1, k) = i < waits ? other.slot : no_slot;
                others_run_on.at(i - 1, k) = i < waits ? runs_on_of(other) : where;
            }
            if (where == 0) return false;
            s_.parcel_workers[k] = where;
            // Else the one that it waits for is complete and its slot has come again, for a task behind this one. Before it
            // none was mailed from there.
            if (where & runs_in_parcel) return (where & link_root) < k;
            return has_place_behind(where - 1, p, slot);
        });
        if (able == 0) return;
        // Not those that wait for others elsewhere, too: their worker would begin to wait only when it has answered, and
        // another one waits at once. Of a parcel's chain it is not known where it goes: what the task before comes behind is
        // looked at, and who does so before it. Nor those that wait for any others, once something has failed: the worker skips
        // what comes behind a mailbox of mails at most.
        const bool failed = s_.counters[failures_seen] != 0;
        able = team.mask32([&](u32 k) {
            if (!(able >> k & 1)) return false;
            const u32 where = runs_on.at(0, k);
            const bool in_parcel = (where & runs_in_parcel) != 0;
            const u32 last = in_parcel ? where & link_root : k;
            const u32 before_last = s_.parcel_workers[last]; // of an able one
            const bool second = (able << 1 >> last & 1) != 0 && s_.parcel_workers[last - (last != 0)] == before_last;
            bool alone = true;
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < waits_near_max - 1; ++i) {
                const u32 at = others_run_on.at(i, k);
                const bool near_it = in_parcel ? (able >> last & 1) != 0 && ((at == before_last) | (second & (at + 1 == where)))
                                               : at == where;
                alone &= (others.at(i, k) == no_slot) | (near_it & !failed);
            }
            return alone;
        });
        if (able == 0) return;
        // One for each: the first.
        lane_values first;
        team.match32(able, [&](u32 k) { return runs_on.at(0, k); }, first);
        u32 chosen = team.mask32([&](u32 k) { return (able >> k & 1) && first.at(0, k) == k; });
        u32 second = able & ~chosen & chosen << 1; // perhaps the next one, too
        if (second != 0) {
            const u32 brief = team.mask32([&](u32 k) { return k < count && is_brief(tasks.slot(k)); });
            second = team.mask32([&](u32 k) {
                if (!((second & brief & brief << 1) >> k & 1) || first.at(0, k) + 1 != k) return false;
                const u32 where = runs_on.at(0, k);
                return (where & runs_in_parcel) != 0 || slot_of_mail(where - 1, s_.sent[where - 1]) == before.at(0, k);
            });
            // Nobody else comes behind who has such a one behind him.
            const auto has_second = [&](u32 where) {
                return (where & runs_in_parcel) != 0 && (second >> 1 >> (where & link_root) & 1) != 0;
            };
            if (second != 0) chosen = team.mask32([&](u32 k) { return (chosen >> k & 1) != 0 && !has_second(runs_on.at(0, k)); });
            second &= chosen << 1;
        }
        within = team.mask32([&](u32 k) { return (chosen >> k & 1) && (runs_on.at(0, k) & runs_in_parcel) != 0; });
        behind = chosen & ~within;
        within |= second;
        seconds = second;
        lane_values links; // the task of this parcel that each comes behind, or itself
        const u32 next_to_it = team.mask32([&](u32 k) {
            links.at(0, k) = within >> k & 1 ? (second >> k & 1 ? k - 1 : runs_on.at(0, k) & link_root) : k;
            return (within >> k & 1) != 0 && links.at(0, k) + 1 == k;
        });
        // Most often each comes behind the one right before it: its root is the last one before it that does not.
        const bool rows = next_to_it == within;
        team.each32([&](u32 k) {
            if (k < count) {
                const u32 root = rows ? highest_bit(~within & low_bits(k + 1)) : links.at(0, k);
                s_.parcel_links[k] = root | (rows ? k - root : within >> k & 1) * link_step;
            }
            if (!(behind >> k & 1)) return;
            const u32 w = runs_on.at(0, k) - 1;
            s_.parcel_workers[k] = w;
            team.set_bits(s_.taken[w / 32], 1u << w % 32);
        });
        team.sync();
        if (!rows) follow_links(team, within);
    }

    /// Pointer jumping (Wyllie, 1979): roots and distances in as many rounds as the longest chain's length has binary digits.
    SLIPSTREAM_BOTH void follow_links(team_type& team, u32 within)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 left = within; left != 0;) {
            lane_values next;
            team.each32([&](u32 k) {
                if (!(left >> k & 1)) return;
                const u32 link = s_.parcel_links[k];
                next.at(0, k) = s_.parcel_links[link & link_root] + (link & ~link_root);
            });
            team.sync();
            left = team.mask32([&](u32 k) {
                if (!(left >> k & 1) || s_.parcel_links[k] == next.at(0, k)) return false;
                s_.parcel_links[k] = next.at(0, k);
                return true;
            });
        }
    }

    /// A chain longer than its worker's mailbox has room for goes on elsewhere: a bit for each task that begins such a piece, with
    /// which it waits there. Of one whose worker is not chosen yet: longer than an empty mailbox. A few tasks sooner, if it would
    /// be cut within a diamond (cut_sooner).
    SLIPSTREAM_BOTH u32 cut_chains(team_type& team, ones& tasks, u32 behind, u32 within)
    {
        lane_values rooms, past, pieces, first; // past: the mailbox's end, in tasks
        const auto link_of = [&](u32 k) { return s_.parcel_links[k]; };
        // By a lane: is that task cut off, by a mailbox with room for so many of its chain?
        const auto lies_beyond = [&](u32 k, u32 room) {
            const u32 distance = link_of(k) / link_step - room;
            past.at(0, k) = distance % P::mailbox_depth;
            pieces.at(0, k) = (link_of(k) & link_root) | distance / P::mailbox_depth * link_step;
            return link_of(k) / link_step >= room;
        };
        u32 beyond = team.mask32([&](u32 k) {
            if (!(within >> k & 1)) return false;
            const u32 root = link_of(k) & link_root;
            const u32 w = s_.parcel_workers[root]; // if it comes behind a task there
            rooms.at(0, k) = P::mailbox_depth - (behind >> root & 1 ? s_.sent[w] - s_.seen[w] : 0);
            return lies_beyond(k, rooms.at(0, k));
        });
        if (beyond == 0) return 0;
        const u32 single = team.mask32([&](u32 k) { return (within >> k & 1) != 0 && waits_for_one(tasks, k); });
        const auto cuts = [&](u32 k) { return (beyond >> k & 1) != 0 && link_of(k) / link_step == rooms.at(0, k); };
        if (team.mask32([&](u32 k) { return cuts(k) && !(single >> k & 1); }) != 0)
            beyond = team.mask32([&](u32 k) {
                if (!(within >> k & 1)) return false;
                // Of a chain whose tasks come one right behind the other, as is usual.
                const u32 root = link_of(k) & link_root, room = rooms.at(0, k);
                const auto has = [&](u32 at) { return root + at < 32 && link_of(root + at) == (root | at * link_step); };
                u32 sooner = 0;
                SLIPSTREAM_UNROLL
                for (u32 i = cut_sooner; i > 0; --i)
                    if (i < room && has(room - i) && (single >> (root + room - i) & 1) != 0) sooner = i;
                if (!has(room) || (single >> (root + room) & 1) != 0) sooner = 0;
                return lies_beyond(k, room - sooner);
            });
        team.match32(beyond, [&](u32 k) { return pieces.at(0, k); }, first); // tasks of a chain are in its order
        team.each32([&](u32 k) { if (beyond >> k & 1) s_.parcel_links[k] = first.at(0, k) | past.at(0, k) * link_step; });
        return team.mask32([&](u32 k) { return (beyond >> k & 1) != 0 && first.at(0, k) == k; });
    }
    /// By a lane: does task k wait for one alone, for which nobody else waits?
    SLIPSTREAM_BOTH bool waits_for_one(ones& tasks, u32 k) const
    {
        const u32 slot = tasks.slot(k);
        return tasks.waits(k) == 1 && (s_.joins[slot / 32] >> slot % 32 & 1) != 0;
    }

    /// A stand-in runs nowhere; what is noted there is of the task that had its slot before.
    SLIPSTREAM_BOTH u32 runs_on_of(const awaited_task& task) const
    {
        return several() && task.stands_in() ? 0 : s_.runs_on[task.slot];
    }
    SLIPSTREAM_BOTH abi::chunk chunk_of(const awaited_task& task, u32 tag) const
    {
        return (several() ? task.without_bit() : task).encode(tag);
    }

    /// Is the last mail of worker w of the task p, or of a brief one that waits for p, and was mailed right behind it, where
    /// the one in `slot` is brief, too? And is there room?
    SLIPSTREAM_BOTH bool has_place_behind(u32 w, u32 p, u32 slot) const
    {
        const u32 sent = s_.sent[w], due = sent - s_.seen[w];
        if (due >= P::mailbox_depth) return false;
        const u32 last = slot_of_mail(w, sent);
        if (last == p) return true;
        // Not answered: what is known of the slot is of that task.
        return due != 0 && slot_of_mail(w, sent - 1) == p && P::get(s_.waits_near[last * waits_near_max]).slot == p
            && is_brief(last) && is_brief(slot);
    }

    /// In an engine of several parts a mail may wait for what was not mailed yet (crossing_stage.hpp). So the last worker gets none
    /// that waits, but behind the one that it waits for, and none that does not comes behind one that does.
    SLIPSTREAM_BOTH bool is_barred(u32 w, u32 due, bool waits) const
    {
        return waits ? w + 1 == m_.n.workers : s_.sent[w] - s_.waits_sent[w] < due;
    }

    /// Does the window hold more tasks than two mails a worker?
    SLIPSTREAM_BOTH bool few_workers() const { return places * m_.n.workers < m_.n.window_used; }
    SLIPSTREAM_BOTH bool all_brief(team_type& team, ones& tasks) const
    {
        return team.mask32([&](u32 k) { return k < tasks.count && !is_brief(tasks.slot(k)); }) == 0;
    }
    /// Of a worker that owes so many answers: are they of brief tasks, by the last two? (Before a third one they were looked at
    /// likewise, but for what came as a chain.)
    SLIPSTREAM_BOTH bool owes_brief_ones(u32 w, u32 due) const
    {
        const u32 sent = s_.sent[w];
        return (due < 1 || is_brief(slot_of_mail(w, sent))) && (due < 2 || is_brief(slot_of_mail(w, sent - 1)));
    }

    /// Notes a worker in parcel_workers[place_of(i)] for each i < count, 32 at most, as far as there are workers with fewer
    /// than `depth` mails due: those with the fewest first, each once, and if `some_taken` none of those that are `taken`.
    /// Returns how many were given. `deep`: for brief tasks; a worker may be given several (beside it stands how many it was
    /// given before), more than `places` only if what it has is brief. Where there are several parts: of mails that do not wait.
    template <class PlaceOf>
    SLIPSTREAM_BOTH u32 choose_idlest(team_type& team, u32 count, u32 depth, bool some_taken, bool deep, PlaceOf place_of)
    {
        constexpr u32 full = 0xffff;
        typename P::template lane_array<u32, Groups> dues; // and beside them, those that there were before this parcel
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) { // no branches: there are few of these, one after another
                const u32 due_now = s_.sent[worker_or_first(g, k)] - seen_.at(g, k);
                const u32 taken = some_taken ? s_.taken[32 * g < m_.n.workers ? g : 0] : 0;
                const bool barred = several() && is_barred(worker_or_first(g, k), due_now, false);
                dues.at(g, k) = (32 * g + k < m_.n.workers) & !(taken >> k & 1) & !barred ? due_now * (1 + parcel_step) : full;
            });
        u32 given = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 places_due = 0; places_due < depth && given < count; ++places_due) {
            if (deep && places_due == places) {
                SLIPSTREAM_UNROLL
                for (u32 g = 0; g < Groups; ++g)
                    team.each32([&](u32 k) {
                        if (dues.at(g, k) != full && !owes_brief_ones(32 * g + k, dues.at(g, k) / parcel_step))
                            dues.at(g, k) = full;
                    });
            }
            u32 takers[Groups];
            team.masks32(takers, [&](u32 g, u32 k) { return dues.at(g, k) % parcel_step; },
                         [&](u32, u32, u32 due_now) { return due_now == places_due; });
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                team.each32([&](u32 k) {
                    const u32 i = given + popcount(takers[g] & ((1u << k) - 1));
                    const bool takes = (takers[g] >> k & 1) != 0;
                    if (takes & (i < count))
                        s_.parcel_workers[place_of(i)] = 32 * g + k + (places_due - dues.at(g, k) / parcel_step) * parcel_step;
                    if (deep && takes) ++dues.at(g, k);
                });
                given += popcount(takers[g]);
            }
        }
        return given < count ? given : count;
    }

    /// The same of an engine of several parts, for mails that wait. First who has none due, then who has had fewest turns. By the
    /// dues alone who is done first gets the next one, so that of a stencil's row some get two and others none
    /// (device/tried.md). Who was long at one task does not get all that it has missed: none is more than turns_ahead behind
    /// the first (as by the virtual time of start-time fair queueing: Goyal, Vin and Cheng, 1996). `again`: a worker may be given
    /// several, one in each round of all of them, whatever `depth`; who calls leaves out those that find no place in a mailbox.
    template <class PlaceOf>
    SLIPSTREAM_BOTH u32 choose_by_turns(team_type& team, u32 count, u32 depth, bool some_taken, bool again, PlaceOf place_of)
    {
        constexpr u32 none = turns_ahead + 2; // of places in the order in which they are chosen
        typename P::template lane_array<u32, Groups> due_now, had; // no branches, as above; 0xffff due: it gets none
        u32 behind = ~0u; // the first one's is the least
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                const u32 w = worker_or_first(g, k);
                const u32 due = s_.sent[w] - seen_.at(g, k);
                const u32 taken = some_taken ? s_.taken[32 * g < m_.n.workers ? g : 0] : 0;
                const bool open = (32 * g + k < m_.n.workers) & !(taken >> k & 1) & !is_barred(w, due, true);
                had.at(g, k) = s_.turns[w];
                due_now.at(g, k) = open ? due : 0xffff;
                const u32 mine = open ? ~had.at(g, k) : ~0u; // not of who gets nothing that waits
                behind = mine < behind ? mine : behind;
            });
        const u32 first = ~team.reduce_min(behind);
        const u32 least = first < turns_ahead ? 0 : first - turns_ahead;
        typename P::template lane_array<u32, Groups> order; // the place of each; none: it gets nothing
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                const u32 ahead = had.at(g, k) < least ? 0 : had.at(g, k) - least;
                if (32 * g + k < m_.n.workers) s_.turns[32 * g + k] = ahead; // counted anew each time
                const u32 place = due_now.at(g, k) == 0 ? 0 : 1 + ahead;
                order.at(g, k) = due_now.at(g, k) >= depth ? none : place;
            });
        u32 given = 0;
        typename P::template lane_array<u32, Groups> numbers;
        SLIPSTREAM_UNROLL
        for (u32 place = 0; place < none; ++place) {
            u32 takers[Groups];
            team.masks32(takers, [&](u32 g, u32 k) { return order.at(g, k); },
                         [&](u32, u32, u32 mine) { return mine == place; });
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                team.each32([&](u32 k) {
                    if (order.at(g, k) == place) numbers.at(g, k) = given + popcount(takers[g] & low_bits(k));
                });
                given += popcount(takers[g]);
            }
        }
        SLIPSTREAM_UNROLL
        for (u32 g = 0; g < Groups; ++g)
            team.each32([&](u32 k) {
                if (order.at(g, k) >= none) return;
                SLIPSTREAM_ONE_COPY
                for (u32 i = numbers.at(g, k), mail = 32 * g + k; i < (again ? count : given); i += given, mail += parcel_step)
                    if (i < count) s_.parcel_workers[place_of(i)] = mail;
            });
        return given != 0 && (again || given >= count) ? count : given;
    }

    /// Calls give(i, worker) for each i < count, as far as there are workers with fewer than `depth` mails due: those with the
    /// fewest first; a worker may be given several. Returns how many were given.
    template <class Give>
    SLIPSTREAM_BOTH u32 for_idlest(team_type& team, u32 count, u32 depth, bool waits, Give give)
    {
        // Looked at once, however many places are tried: six bits a group, in one word of a lane on the GPU, where a loop over
        // registers must be unrolled.
        constexpr u32 bits = 6, in_word = 64 / bits, words = (Groups + in_word - 1) / in_word;
        static_assert(P::mailbox_depth < 1u << bits);
        typename P::template lane_array<u64, words> dues;
        team.each32([&](u32 k) {
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < words; ++i) dues.at(i, k) = 0;
            SLIPSTREAM_UNROLL
            for (u32 g = 0; g < Groups; ++g) {
                const u32 w = 32 * g + k;
                const bool open = w < m_.n.workers && !(several() && is_barred(w, due(g, k), waits));
                dues.at(g / in_word, k) |= static_cast<u64>(open ? due(g, k) : depth) << bits * (g % in_word);
            }
        });
        const auto due_of = [&](u32 g, u32 k) {
            return static_cast<u32>(dues.at(words == 1 ? 0 : g / in_word, k) >> bits * (g % in_word)) & low_bits(bits);
        };
        u32 given = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 places_due = 0; places_due < depth && given < count; ++places_due) {
            SLIPSTREAM_ONE_COPY
            for (u32 g = 0; g < Groups && given < count; ++g) {
                const u32 takers = team.mask32([&](u32 k) { return due_of(g, k) == places_due; });
                if (takers == 0) continue;
                team.each32([&](u32 k) {
                    const u32 i = given + popcount(takers & ((1u << k) - 1));
                    if (!(takers >> k & 1) || i >= count) return;
                    dues.at(words == 1 ? 0 : g / in_word, k) += u64{1} << bits * (g % in_word);
                    give(i, 32 * g + k);
                });
                given = given + popcount(takers) < count ? given + popcount(takers) : count;
            }
        }
        return given;
    }

    /// What hand_out() is to mail: `count` mails of the task `head`, to workers with fewer than `depth` mails due.
    struct parcel {
        task_head head;
        u32 block;   ///< of the first mail; the next ones count on
        u32 tickets; ///< 0 or mail::tickets_bit
        u32 count;
        u32 depth;
        ready_entry entry;
    };

    /// Mails to idle workers first. Returns how many were sent.
    SLIPSTREAM_BOTH u32 hand_out(team_type& team, const parcel& p)
    {
        const u32 slot = p.entry.slot();
        const bool lone = p.head.blocks == 1; // else nobody comes behind one of its blocks
        const bool crosses = several() && lone && p.head.crosses();
        const u32 brief = lone && !crosses ? is_brief(slot) * mail::brief_bit : 0; // nobody else may answer for one that crosses
        if (!lone && team.leader()) s_.runs_on[slot] = 0;
        const u32 mailed = for_idlest(team, p.count, p.depth, p.entry.waits() != 0, [&](u32 i, u32 w) {
            const u32 number = ++s_.sent[w];
            if (several()) {
                ++s_.turns[w];
                if (p.entry.waits() != 0) s_.waits_sent[w] = number;
            }
            slot_of_mail(w, number) = static_cast<u16>(slot);
            if (lone) s_.runs_on[slot] = static_cast<u16>(1 + w);
            const u32 waits = p.entry.waits();
            if (waits != 0) send_waits(w, slot, waits, tag_of(number));
            const u32 crossing_bit = crosses ? send_stand_ins(w, p.head, tag_of(number)) : 0;
            send(w, {p.head.slot_and_type | crossing_bit, (p.tickets ? 0 : p.block + i) | brief | waits << 28,
                     p.head.identity | p.tickets, tag_of(number)});
        });
        mails_ += mailed;
        return mailed;
    }

    SLIPSTREAM_BOTH void send(u32 w, const mail& letter)
    {
        // Relaxed: the step's fence stands before it, and the mail itself carries its tag.
        P::store(edge::R4_mail, m_.mailboxes[w].mail[letter.tag % P::mailbox_depth], letter.encode(), order::relaxed,
                 scope::device);
    }

    /// Beside the mail of a task of one block that crosses, for which stand-ins its worker counts. Returns the bit that says so.
    SLIPSTREAM_BOTH u32 send_stand_ins(u32 w, const task_head& head, u32 tag)
    {
        if (!several() || !head.crosses()) return 0;
        const stand_in_list list = P::get(s_.stand_in_lists[head.slot_and_type & 0xffff]);
        P::store(edge::R4_mail, m_.mailboxes[w].waits[tag % P::mailbox_depth][waits_max - 1], list.encode(tag), order::relaxed,
                 scope::device);
        return mail::crosses_bit;
    }

    /// The `count` tasks that the one in `slot` waits for, if any. The first ones without a loop, the others by fours: their loads
    /// fly together.
    SLIPSTREAM_BOTH void send_waits(u32 w, u32 slot, u32 count, u32 tag)
    {
        auto& chunks = m_.mailboxes[w].waits[tag % P::mailbox_depth];
        awaited_task first[waits_near_max];
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            first[i] = P::get(s_.waits_near[slot * waits_near_max + i]); // beyond `count` anything
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < waits_near_max; ++i)
            if (i < count) P::store(edge::R4_mail, chunks[i], chunk_of(first[i], tag), order::relaxed, scope::device);
        constexpr u32 at_once = more_predecessors::at_once; // of those that lie far
        SLIPSTREAM_ONE_COPY
        for (u32 first_far = 0; waits_near_max + first_far < count; first_far += at_once) {
            awaited_task next[at_once];
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < at_once; ++i) next[i] = P::get(s_.waits_far[slot * waits_far_max + first_far + i]);
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < at_once; ++i) {
                const u32 place = waits_near_max + first_far + i;
                if (place < count) P::store(edge::R4_mail, chunks[place], chunk_of(next[i], tag), order::relaxed, scope::device);
            }
        }
    }

    /// Of the `waits` tasks, waits_near_max at most, that a chained one waits for, besides the first, those that run elsewhere:
    /// the worker itself knows of what it was mailed before. (Or else that one is complete and its slot has come again.)
    /// Returns how many they are.
    SLIPSTREAM_BOTH u32 send_others(u32 w, u32 slot, u32 waits, u32 tag)
    {
        auto& chunks = m_.mailboxes[w].waits[tag % P::mailbox_depth];
        u32 count = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 1; i < waits_near_max; ++i) {
            if (i >= waits) continue;
            const awaited_task task = P::get(s_.waits_near[slot * waits_near_max + i]);
            if (runs_on_of(task) == 1 + w) continue;
            P::store(edge::R4_mail, chunks[count++], chunk_of(task, tag), order::relaxed, scope::device);
        }
        return count;
    }

    static constexpr u32 skipped_flag = 1u << 31; ///< in `batch`, beside a slot
    static constexpr u32 places = 2;        ///< mails that a worker may have due when it gets one that does not follow the last
    static constexpr u32 brief_places =
        P::mailbox_depth < 6 ? P::mailbox_depth : 6; ///< the same of a staged task of several brief blocks (the linker bounds
                                                     ///< how many there are), and of brief ones that wait for nobody
    /// Of an engine of several parts, for those that wait: more than there may be for each worker, so that there is a choice.
    static constexpr u32 staged_depth = P::mailbox_depth;
    static_assert(staged_depth >= staged_places<P>(true), "none that waits may have to wait for its place: crossing_stage.hpp");
    static constexpr u32 turns_ahead = 3; ///< of the worker that has had most of them, when turns are compared
    static constexpr u32 few_mails = 8;
    static constexpr u32 chain_min = P::mailbox_depth < 4 ? 2 : 4; ///< tasks: hand_out_chain()
    static constexpr u32 answering_few = Groups == 1 ? 1 : 3; ///< workers: a chain's answers are one's or two's (device/tried.md)
    static constexpr u32 broadcasts_max = P::mailbox_depth < 12 ? P::mailbox_depth : 12; ///< out at a time
    static constexpr u32 runs_in_parcel = 1u << 15; ///< in `runs_on`: task number so many of the parcel in hand
    static constexpr u32 parcel_step = 1u << 16; ///< of `parcel_workers`: so many of the parcel come to that worker before this one
    static constexpr u32 cut_sooner = 3; ///< so many places of a mailbox may stay empty for that
    static constexpr u32 link_root = 31; ///< of `parcel_links`: the task that it comes behind, in the end its root, itself if none
    static constexpr u32 link_step = 32; ///< of `parcel_links`: so many tasks behind it
    static_assert(P::mailbox_depth <= done_word::history && 32 * Groups < runs_in_parcel && runs_in_parcel < parcel_step);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    poison<P> poison_;
    crossing<P> crossing_;
    broadcasts<P, Broadcasts> broadcasts_;
    queue_consumer<P, ready_entry, edge::A14_ready, edge::R14_taken, order::relaxed> ready_; // never full, as the next two
    queue_producer<P, report, edge::R13_report, edge::A13_taken, order::relaxed> reports_;
    queue_producer<P, u32, edge::R6_retired, edge::A6_notified> retired_; // of one part: else crossing_tables::retire has its end
    bool parking_ = false;
    bool poisoned_ = false; ///< is_poisoned(), when this was last asked
    bool settled_ = false;  ///< the batch in hand has outcomes
    bool fresh_ = true;   ///< no step yet since the launch
    bool postponed_ = false; ///< the task at the head of the ready queue is staged and was linked after the last fence,
                             ///< or is bypassed and was answered
    bool kept_ = false;   ///< of the last parcel: some worker is kept for a task that comes behind its last mail
    u32 fences_ = 0;      ///< ever made, where there are several parts; wraps
    u32 fenced_ = 0;      ///< entries of the ready queue, all popped ones included, that were seen when
                          ///< the last fence was made; wraps
    u32 covered_ = 0;     ///< tasks linked when the last fence was made, wrapping; see ready_entry
    u32 mails_ = 0;       ///< mails not yet answered; of broadcasts those that are booked
    typename P::template lane_array<u32, Groups> seen_; ///< of this lane's workers, as in control_state:
                                                        ///< a poll looks at nothing else
    u32 forward_ = 0;     ///< tasks at the head of the ready queue that were brought there: they cross
    u32 open_ = no_slot;  ///< ticket task behind them that workers were invited to
    u32 next_ = no_slot;  ///< the one behind it, if that is one, too: who is invited to the open one is invited to both
};

} // namespace slipstream::device
