// The bypass: a task that comes alone is mailed by ingest, and its worker tells the host.
//
// The roles between them take some 9 us for a task by itself (device/measured.md), and while nothing else is in flight there is
// nothing for them to find out. So a task of one block that comes then goes to worker 0 at once, and to the roles behind it: they
// take it in as any other, and whoever comes after it is ordered behind it as always.
//
// WHEN      nothing is in flight, or nothing but bypassed tasks that worker 0 has answered, all of them, fewer than
//           bypassed_max; and no body has ever failed. So nobody is before the task: no predecessor, no poison, and on its
//           worker no mail, but for broadcasts of which it has no block, which it passes over. Those that were answered lie before
//           it in that worker's own order. And only a message of one ring slot with nothing behind it, as far as was seen: of many
//           tasks together only the first would gain.
// MAILS     two roles mail to worker 0, never at once. Ingest counts on from what the scheduler had sent when nothing was in flight
//           (first_sent). The scheduler has nothing to mail until a task comes that is not bypassed. That one was decoded behind
//           ingest's mails: the scheduler looks for these before it mails, sees them all, and counts on from there (adopt), once
//           all broadcasts are booked: of as many as its list of worker 0's mails has places for, of more when it has taken the
//           answers of those. It takes no answers to others, and does not mail before it has them all.
// COMPLETE  when its answer was taken and it has come to its turn in the ready queue, in either order: `outstanding` begins with
//           two. So the linker has it before it hears of its end.
// HOST      worker 0 stores the ring's early mark, behind a fence of system scope. All tasks before this one are complete, those of
//           other rings, too, and none has failed: the mark says so of all submissions of its ring below it. Completion bits and
//           low-water mark come later, as of any task; of one that fails they alone tell.
// PARK      the scheduler dismisses the workers once ingest has stopped, and what that one sent is adopted and answered. Tasks that
//           lie in the queues come to their turn in the next launch.
// COST      ingest: two fences, one that acquires from the host, a mail, a store to the record and three to
//           fast memory; a look at worker 0's completion word that flies with the look at the rings. The worker: a fence of system
//           scope, in place of its answer's, and a store across the bus. Scheduler: a load from fast memory a round while fewer
//           mails are out than a mailbox has places, and one a poll.
// OWNERS    ingest: bypass_number, bypass_slots, record.position · scheduler: first_sent, bypass_adopted · worker 0: early marks
// EDGES     A0_ring_fence, then R21_bypass_fence -> R21_bypass_mail · A4_mail: the record, and what ingest acquired for the task
//           A2_slot_freed: that nothing is in flight; with it first_sent, and what the tasks before wrote
//           R22_early_fence -> R22_early_mark · A22_early_mark
//           R23_bypassed · A23_bypassed: the slots. Before R3_decoded, and before R9_phase at a park, so that it is seen in time
//           P8_answered: nothing is read through it
#pragma once
#include "device/mail.hpp"

namespace slipstream::device {

/// Ingest's end.
template <class P>
class bypass {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH bypass(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// To be called with each look at all rings, whose loads it flies with: has worker 0 answered?
    SLIPSTREAM_BOTH void look()
    {
        if (going_) done_ = P::load(edge::P8_answered, m_.done[0], order::relaxed, scope::device);
    }

    /// May a task go this way? `in_flight`: window slots that ingest has given away.
    SLIPSTREAM_BOTH bool open(team_type& team, u32 in_flight)
    {
        if (in_flight == 0) {
            going_ = m_.n.bypass != 0 && s_.counters[failures_seen] == 0;
            if (going_) number_ = P::get(*s_.first_sent);
            return going_;
        }
        const done_word done{team.broadcast(done_)}; // each lane has looked by itself
        return going_ && in_flight < bypassed_max<P> && done.answered_since(number_) == 0
            && (done.raw & done_word::failed_bit) == 0;
    }

    /// A task goes the other way.
    SLIPSTREAM_BOTH void close() { going_ = false; }

    /// May one more go this way, behind those that worker 0 has not answered yet (watch.hpp)?
    SLIPSTREAM_BOTH bool goes_on(team_type& team) const
    {
        return (team.broadcast(done_) & done_word::failed_bit) == 0 && going_;
    }
    /// Number of the last mail to worker 0, while going. More may have been mailed (watch.hpp).
    SLIPSTREAM_BOTH u32 number() const { return number_; }
    /// Tells the scheduler of mails up to that number, whose slots are noted.
    SLIPSTREAM_BOTH void publish(team_type& team, u32 number, u32 tasks)
    {
        number_ = number;
        if (team.leader()) {
            P::store(edge::R23_bypassed, *s_.bypass_number, number, order::release, scope::block);
            s_.bus[tasks_bypassed] += tasks;
        }
    }

    /// Mails the task, which lies in its slot, decoded and with all members of its struct.
    SLIPSTREAM_BOTH void send(team_type& team, u32 slot, u32 type, u64 task_id)
    {
        ++number_;
        done_ = done_word::make(number_ - 1, 0, 0); // not answered, as far as is known
        P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        team.sync();
        if (team.leader()) {
            P::set(m_.records[slot].position, task_id & ((u64{1} << 56) - 1));
            P::fence(edge::R21_bypass_fence, order::release, scope::device);
            const mail letter{slot | type << 16, mail::bypass_bit, identity_of(task_id), tag_of(number_)};
            P::store(edge::R21_bypass_mail, m_.mailboxes[0].mail[letter.tag % P::mailbox_depth], letter.encode(), order::relaxed,
                     scope::device);
            P::set(s_.bypass_slots[number_ % bypassed_max<P>], slot);
        }
        publish(team, number_, 1);
        team.sync();
    }

private:
    const engine_memory<P>& m_;
    const control_state<P>& s_;
    bool going_ = false; ///< all that is in flight was bypassed; after a launch: unknown
    u32 number_ = 0;     ///< of the last mail to worker 0, while going
    u32 done_ = 0;       ///< its completion word, as seen last
};

} // namespace slipstream::device
