// The worker's part in staging tasks that cross (crossing_stage.hpp): it waits for tasks of other parts, too, and counts a block
// for each of its own task's stand-ins when it is done. So a lone worker waits for several tasks of its own part, too
// (worker_port::await_several_aside()).
//
// COST    of a mail that crosses, beside what others cost: one load of the chunk with its stand-ins, and an addition for each of
//         them. The clocks of other parts are polled with the finished counts, in one load.
// EDGES   A12 (R12 and R28), A12_finished_fence · R12, behind R5R12_fence: as of a worker's own part
#pragma once
#include "device/crossing_stage.hpp"

namespace slipstream::device {

/// What is to be done with a staged mail. To leave: at once, the engine is aborted or parks. To wait: await() was to
/// give up after some time.
enum class verdict : u32 { run, skip, leave, wait };

/// A poll of a finished count, or of a part's clock. A lone worker acquires by it; others by a fence behind their last poll.
template <class P>
SLIPSTREAM_BOTH u64 load_finished(const typename P::template word<u64>& count, bool lone)
{
    if (lone) return P::load(edge::A12_finished, count, order::acquire, scope::device);
    return P::load(edge::A12_finished, count, order::relaxed, scope::device);
}

/// What became of a mail that is awaited aside (worker_port::await_aside()).
enum class awaited : u32 {
    not_yet,
    runs,
    more, ///< not yet, and there is more mail to be read
    look, ///< what it waits for is complete, but a block in one of those slots has failed; or there is word to stop: ask await()
};

/// A staged mail as its worker has read it: of a task that crosses, which has one block, or of another that is awaited aside.
/// A value, for functions out of line.
template <class P>
struct staged_mail {
    using team_type = typename P::team;

    const typename P::chunk_word* chunks; ///< what it waits for, and the last one its stand-ins
    u32 tag;
    u32 waits;
    task_record<P>* records;
    task_record<P>* const* part_records;
    const part_clock<P>* part_clocks;
    const typename P::template word<u32>* stop;
    typename P::template word<u32>* done;
    bool lone;

    // Lanes 0 to 15 look at the finished counts of what is waited for, lane 16 + k at the clock of the part of the k-th, if it is
    // another one: in one go.
    static constexpr u32 clock_lanes = 16;
    static_assert(waits_max < clock_lanes);
    SLIPSTREAM_BOTH u32 all_lanes() const { return low_bits(waits) | low_bits(waits) << clock_lanes; }

    /// By a lane: has that come? `failed`: a block in that slot has failed.
    SLIPSTREAM_BOTH bool has_come(u32 k, const awaited_task& task, bool& failed) const
    {
        const bool far = is_far(task.slot), clock = k >= clock_lanes;
        if (clock && !far) return true;
        const typename P::template word<u64>& at = !far ? records[task.slot].finished
            : clock ? part_clocks[part_of(task.slot)].fences
                    : part_records[part_of(task.slot)][task.slot & 0xfff].finished;
        const finished_count count{load_finished<P>(at, lone)};
        if (!count.reached(clock ? task.identity : task.target)) return false;
        failed |= count.has_failures();
        return true;
    }

    /// As worker_port::await(); of a task of another part any failure in its slot is enough to be skipped for.
    SLIPSTREAM_BOTH verdict await(team_type& team, u32 polls_max, u32 done_now) const
    {
        typename P::template lane_array<awaited_task, 1> before;
        u32 left = all_lanes();
        for (u32 attempt = 0; left != 0; ++attempt) {
            if (attempt != 0) {
                if (stopped(team, attempt - 1, done_now)) return verdict::leave;
                P::pause(attempt - 1);
            }
            left &= ~team.mask32([&](u32 k) { return (left >> k & 1) != 0 && read(k, before.at(0, k)); });
        }
        left = all_lanes();
        u32 suspects = 0;
        for (u32 attempt = 0;; ++attempt) {
            u32 failures = 0;
            const u32 reached = team.mask32([&](u32 k) {
                bool failed = false;
                const bool here = (left >> k & 1) != 0 && has_come(k, before.at(0, k), failed);
                failures |= static_cast<u32>(failed) << k;
                return here;
            });
            suspects |= team.mask32([&](u32 k) { return (failures >> k & 1) != 0; });
            left &= ~reached;
            if (left == 0) break;
            if (stopped(team, attempt == polls_max ? P::look_for_stop - 1 : attempt, done_now)) return verdict::leave;
            if (attempt == polls_max) return verdict::wait;
            P::pause(attempt);
        }
        if (!lone) P::fence(edge::A12_finished_fence, order::acquire, scope::device);
        if (suspects == 0) return verdict::run;
        const u32 failed = team.mask32([&](u32 k) {
            if (!(suspects >> k & 1)) return false;
            const awaited_task task = before.at(0, k);
            return is_far(task.slot)
                || P::load(edge::P4_status, records[task.slot].failed_by, order::relaxed, scope::device) == task.identity;
        });
        return failed != 0 ? verdict::skip : verdict::run;
    }

    /// As worker_port::await_aside().
    template <class MoreMail>
    SLIPSTREAM_BOTH awaited await_aside(team_type& team, u32 polls, bool once, MoreMail more_mail) const
    {
        typename P::template lane_array<awaited_task, 1> before;
        u32 unread = all_lanes(), left = unread;
        bool failures = false;
        for (u32 attempt = 0;;) {
            if (unread != 0)
                unread &= ~team.mask32([&](u32 k) { return (unread >> k & 1) != 0 && read(k, before.at(0, k)); });
            left &= ~team.mask32([&](u32 k) {
                return ((left & ~unread) >> k & 1) != 0 && has_come(k, before.at(0, k), failures);
            });
            if (left == 0) return team.any(failures) ? awaited::look : awaited::runs;
            P::pause(attempt);
            if (++attempt != polls) continue;
            if (once) return awaited::not_yet;
            const u32 came = team.leader() ? static_cast<u32>(more_mail()) : 0u;
            const auto what = static_cast<awaited>(team.broadcast(came));
            if (what != awaited::not_yet) return what;
            attempt = 0;
        }
    }

    /// Behind the fence of its answer, by the one that answers.
    SLIPSTREAM_BOTH void count_for_stand_ins() const
    {
        abi::chunk list;
        for (u32 attempt = 0;; ++attempt) { // no stop check: it was stored before the mail, and has only to arrive
            list = P::load(edge::A4_mail, chunks[waits_max - 1], order::relaxed, scope::device);
            if (awaited_task::tag_in(list) == tag) break;
            P::pause(attempt);
        }
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < stand_in_list::most; ++i) {
            const u32 entry = stand_in_list::entry_in(list, i);
            if (entry == 0) return;
            P::add(edge::R12_finished, part_records[stand_in_list::part_of(entry)][stand_in_list::slot_of(entry)].finished,
                   finished_count::block, order::relaxed, scope::device);
        }
    }

private:
    /// By a lane: what it is to look at; false while it is not there: written before the mail, but perhaps seen
    /// after it.
    SLIPSTREAM_BOTH bool read(u32 k, awaited_task& out) const
    {
        const abi::chunk chunk = P::load(edge::A4_mail, chunks[k % clock_lanes], order::relaxed, scope::device);
        out = awaited_task::decode(chunk);
        return awaited_task::tag_in(chunk) == tag;
    }

    SLIPSTREAM_BOTH bool stopped(team_type& team, u32 attempt, u32 done_now) const
    {
        if (attempt % P::look_for_stop != P::look_for_stop - 1) return false;
        const auto level = static_cast<stop_level>(
            team.broadcast(team.leader() ? P::load(edge::P1_stop, *stop, order::relaxed, scope::device) : 0u));
        if (level == stop_level::park && team.leader())
            P::store(edge::R5_done, *done, done_now | done_word::paused_bit, order::relaxed, scope::device);
        return level != stop_level::none;
    }
};

} // namespace slipstream::device
