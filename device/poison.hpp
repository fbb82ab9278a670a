// What failed tasks leave behind: which memory is poisoned, which tasks failed, and who is cancelled for it.
//
// A task that fails, and one that is cancelled, poisons what it writes. A task that reads poison, or that names a failed or
// cancelled task by `after`, is cancelled: it waits for its predecessors like any other, then completes with an empty body. A
// pure write that succeeds behind the failure heals the bytes it covers. Every poison carries its root cause: the number of the
// failure that it goes back to. A whole-memory task reads and writes everything.
//
// WHEN  judged once, when all predecessors are complete and nothing is mailed: whoever could change the answer either is a
//       predecessor (done, its poison entered before its successors were woken) or waits for the task. (A predecessor's
//       predecessor may be done and not yet seen; had it failed, the predecessor would have been skipped.) Only who was
//       judged heals: who was mailed before there was poison comes before the task that failed, if they meet, and may be
//       seen to be complete after it. Who is staged behind a stand-in runs when its task has counted (crossing_stage.hpp), so
//       that a stand-in that may run heals at once, not at its end, and one whose task has counted is not judged. Failure
//       numbers are given in the order in which the notifier is told, so that the host finds record n at place n.
// BOUND poison_entries_max ranges and failed_runs_max runs of failed tasks; one more, and everything is poisoned: every task that
//       reads or has an `after` is cancelled until a clear_failure task gets its turn.
// COST  while nothing failed: one flag, read once a step. After that: a look at the tables for each task that becomes ready or
//       completes. The tables lie in device memory, the functions out of line: they are for the rare case.
// OWNERS  the scheduler role alone.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// The tables and what they are compared with, as a value: an object with an address would lie in local memory, so what the
/// scheduler hands to the functions out of line are copies of pointers.
template <class P>
struct poison_tables {
    using team_type = typename P::team;
    template <class T> using cell = typename P::template cell<T>;

    u32* state; ///< see enum poison_word
    abi::access_entry* entries;
    u32* causes;
    failed_run* runs;
    u64* judged;
    u32* cause_of;
    task_outcome* outcomes;
    u32* pending;
    u32* batch;
    u32* counters;
    task_record<P>* records;
    cell<table_entry>* pool_near;
    cell<table_entry>* pool_far;
    cell<u64>* pool_shapes;
    cell<u32>* pool_next;
    cell<u32>* pool_tags;
    cell<u32>* first_block;
    cell<task_head>* heads;
    cell<u64>* task_id;
    u32 pool_near_blocks;

    /// visit(entry) for each entry of a task; the same on all lanes.
    template <class Visit>
    SLIPSTREAM_BOTH void for_each_entry(u32 slot, Visit visit) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 block = P::get(first_block[slot]); block != no_block; block = P::get(pool_next[block])) {
            const pool_tag tag{P::get(pool_tags[block])};
            SLIPSTREAM_ONE_COPY
            for (u32 at = 0; at < pool_block_entries; ++at) {
                if (!((tag.memory() | tag.after()) >> at & 1)) continue;
                const u32 i = block * pool_block_entries + at;
                const table_entry entry = block < pool_near_blocks ? P::get(pool_near[i])
                                                                   : P::get(pool_far[i - pool_near_blocks * pool_block_entries]);
                abi::access_entry e = entry.access(entry.is_rect() ? P::get(pool_shapes[i]) : 0);
                if (entry.registered()) e.head |= registered_bit;
                visit(e);
            }
        }
    }

    // Entries of handles are marked. Of a tile that is too large for an access_entry (loose) only the bounding range is known here;
    // but the memory of another handle is the same, or disjoint.
    static constexpr u64 registered_bit = u64{1} << 63;
    SLIPSTREAM_BOTH static bool is_loose(const abi::access_entry& e) { return e.kind() == abi::entry_kind::loose; }
    SLIPSTREAM_BOTH static bool go_by_handle(const abi::access_entry& a, const abi::access_entry& b)
    {
        return (a.head & b.head & registered_bit) != 0 && (is_loose(a) || is_loose(b));
    }
    SLIPSTREAM_BOTH static bool is_same(const abi::access_entry& a, const abi::access_entry& b)
    {
        return a.begin() == b.begin() && a.end() == b.end();
    }
    SLIPSTREAM_BOTH static bool meets(const abi::access_entry& a, const abi::access_entry& b)
    {
        return go_by_handle(a, b) ? is_same(a, b) : abi::overlaps(a, b);
    }
    SLIPSTREAM_BOTH static bool holds(const abi::access_entry& outer, const abi::access_entry& inner)
    {
        return go_by_handle(outer, inner) ? is_same(outer, inner) : abi::covers(outer, inner);
    }
    /// Does whoever meets `e` meet `old`, too?
    SLIPSTREAM_BOTH static bool tells_all_of(const abi::access_entry& old, const abi::access_entry& e)
    {
        const bool raw_loose = is_loose(old) && (old.head & registered_bit) == 0; // met by its bounding range
        return raw_loose ? old.begin() <= e.begin() && e.end() <= old.end() : holds(old, e);
    }

    SLIPSTREAM_BOTH bool flagged(u32 slot, u32 flag) const { return P::get(heads[slot]).has(flag); }

    /// The oldest cause for which the task has to be cancelled; no_cause: none.
    SLIPSTREAM_BOTH u32 find_cause(team_type& team, u32 slot) const
    {
        const u32 everything = state[poison_everything];
        const u32 count = state[poison_entry_count];
        const u32 run_count = state[poison_run_count];
        u32 mine = no_cause; // of this lane's share of the tables
        const auto blame = [&](u32 cause) { mine = cause < mine ? cause : mine; };
        if (flagged(slot, abi::flag_whole_memory)) {
            if (everything != 0) blame(everything);
            for (u32 i = team.rank(); i < count; i += team.size()) blame(causes[i]);
        }
        for_each_entry(slot, [&](const abi::access_entry& e) {
            if (e.kind() == abi::entry_kind::after) {
                if (e.after_ring() == abi::after_stream_ring) return;
                if (everything != 0) blame(everything);
                const u64 id = static_cast<u64>(e.after_ring()) << 56 | e.after_position();
                for (u32 i = team.rank(); i < run_count; i += team.size())
                    if (id - runs[i].first < runs[i].count) blame(runs[i].cause_of(id));
            } else if (e.is_memory() && e.reads() && !flagged(slot, abi::flag_whole_memory)) {
                if (everything != 0) blame(everything);
                for (u32 i = team.rank(); i < count; i += team.size())
                    if (meets(e, entries[i])) blame(causes[i]);
            }
        });
        return team.reduce_min(mine);
    }

    SLIPSTREAM_BOTH bool judge(team_type& team, u32 slot) const
    {
        const u64 id = P::get(task_id[slot]);
        if (judged[slot] == id + 1) return false; // a task of many blocks, some of them dealt
        if (flagged(slot, abi::flag_clear_failure)) {
            clear(team);
            return false;
        }
        const u32 cause = find_cause(team, slot);
        const bool stands_in = P::get(heads[slot]).stands_in();
        team.sync();
        if (team.leader()) {
            if (cause != no_cause) {
                cause_of[slot] = cause;
                if (!stands_in) pending[counters[cancelled_pending]++] = slot;
            } else if (!stands_in) {
                judged[slot] = id + 1;
            }
        }
        team.sync();
        if (stands_in && cause == no_cause) heal_all(team, slot); // if its task fails, it poisons that memory anew
        return cause != no_cause;
    }

    /// Cancels a task for what happened in another part: for the oldest cause in this one, if there is any, too; else it is its
    /// own.
    SLIPSTREAM_BOTH void cancel_by_itself(team_type& team, u32 slot) const
    {
        const u32 cause = find_cause(team, slot);
        team.sync();
        if (team.leader()) {
            cause_of[slot] = cause == no_cause ? crossing_cause : cause;
            pending[counters[cancelled_pending]++] = slot;
            counters[poison_active] = 1; // collect() is called while there is poison; there will be
        }
        team.sync();
    }

    SLIPSTREAM_BOTH void clear(team_type& team) const
    {
        team.sync();
        if (team.leader()) {
            state[poison_entry_count] = 0;
            state[poison_run_count] = 0;
            state[poison_everything] = 0;
            counters[poison_active] = 0;
        }
        team.sync();
    }

    SLIPSTREAM_BOTH u32 collect(team_type& team, u32 completed) const
    {
        const u32 count = counters[cancelled_pending];
        for (u32 i = team.rank(); i < count; i += team.size()) batch[completed + i] = pending[i];
        team.sync();
        if (team.leader()) counters[cancelled_pending] = 0;
        team.sync();
        return completed + count;
    }

    SLIPSTREAM_BOTH void settle(team_type& team, u32 count) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < count; first += 32) {
            const u32 bad = team.mask32([&](u32 k) {
                if (first + k >= count) return false;
                const u32 slot = batch[first + k];
                // Relaxed: the step's fence stands between the worker's answer and this.
                const u32 code = P::load(edge::P4_status, records[slot].status, order::relaxed, scope::device);
                const u32 cause = cause_of[slot];
                outcomes[slot] = {cause != 0 ? cause : code, 0};
                return code != 0 || cause != 0;
            });
            team.sync();
            SLIPSTREAM_ONE_COPY
            for (u32 k = 0; k < 32 && first + k < count; ++k) {
                const u32 slot = batch[first + k];
                if (bad >> k & 1)
                    enter(team, slot);
                else if (judged[slot] == P::get(task_id[slot]) + 1)
                    heal_all(team, slot);
            }
        }
    }

    /// What the task purely writes is no longer poisoned.
    SLIPSTREAM_BOTH void heal_all(team_type& team, u32 slot) const
    {
        if (state[poison_entry_count] == 0 || flagged(slot, abi::flag_whole_memory)) return;
        for_each_entry(slot, [&](const abi::access_entry& e) {
            if (e.is_memory() && e.mode() == abi::access_mode::write) heal(team, e);
        });
    }

    /// Numbers a failed or cancelled task and poisons what it writes.
    SLIPSTREAM_BOTH void enter(team_type& team, u32 slot) const
    {
        const u32 cancelled = cause_of[slot];
        const u32 number = state[poison_failures] + 1;
        const bool by_itself = cancelled == 0 || cancelled == crossing_cause;
        const u32 cause = by_itself ? number : cancelled;
        team.sync();
        if (team.leader()) {
            state[poison_failures] = number;
            if (cancelled != 0) outcomes[slot].status = cause;
            outcomes[slot].failure = number | (cancelled != 0 ? outcome_cancelled : 0);
            cause_of[slot] = 0;
            counters[poison_active] = 1;
            if (flagged(slot, abi::flag_whole_memory) && state[poison_everything] == 0) state[poison_everything] = cause;
        }
        team.sync();
        if (!flagged(slot, abi::flag_whole_memory))
            for_each_entry(slot, [&](const abi::access_entry& e) {
                if (!e.is_memory() || !e.writes()) return;
                if (e.mode() == abi::access_mode::write) heal(team, e); // what lies under it is no longer there to be read
                add(team, e, cause);
            });
        add_task(team, P::get(task_id[slot]), cause, cancelled == crossing_cause);
    }

    SLIPSTREAM_BOTH void add(team_type& team, const abi::access_entry& e, u32 cause) const
    {
        const u32 count = state[poison_entry_count];
        bool mine = false;
        for (u32 i = team.rank(); i < count; i += team.size())
            mine |= causes[i] <= cause && tells_all_of(entries[i], e); // the oldest is blamed
        if (team.any(mine)) return;
        team.sync();
        if (team.leader()) {
            if (count == poison_entries_max) {
                if (state[poison_everything] == 0) state[poison_everything] = cause;
            } else {
                entries[count] = e;
                causes[count] = cause;
                state[poison_entry_count] = count + 1;
            }
        }
        team.sync();
    }

    /// each: every task of the run is its own cause, and they have consecutive numbers.
    SLIPSTREAM_BOTH void add_task(team_type& team, u64 id, u32 cause, bool each) const
    {
        const u32 count = state[poison_run_count];
        team.sync();
        if (team.leader()) {
            // Tasks of one ring that are cancelled one after another make one run.
            if (count != 0 && runs[count - 1].first + runs[count - 1].count == id && runs[count - 1].each == each
                && runs[count - 1].cause_of(id) == cause) {
                ++runs[count - 1].count;
            } else if (count == failed_runs_max) {
                if (state[poison_everything] == 0) state[poison_everything] = cause;
            } else {
                runs[count] = {id, 1, each, cause};
                state[poison_run_count] = count + 1;
            }
        }
        team.sync();
    }

    /// Takes the bytes of a successful pure write out of the poison. What cannot be cut out exactly stays poisoned.
    SLIPSTREAM_BOTH void heal(team_type& team, const abi::access_entry& write) const
    {
        // From the last entry down: an entry that moves into a gap has been looked at.
        SLIPSTREAM_ONE_COPY
        for (u32 group = (state[poison_entry_count] + 31) / 32; group-- > 0;) {
            const u32 count = state[poison_entry_count];
            u32 hit = team.mask32(
                [&](u32 k) { return 32 * group + k < count && meets(write, entries[32 * group + k]); });
            team.sync();
            if (team.leader())
                for (u32 k = 32; k-- > 0;)
                    if (hit >> k & 1) cut(32 * group + k, write);
            team.sync();
        }
    }

    /// By the leader.
    SLIPSTREAM_BOTH void cut(u32 i, const abi::access_entry& write) const
    {
        const abi::access_entry old = entries[i];
        u32 count = state[poison_entry_count];
        if (holds(write, old)) {
            --count;
            entries[i] = entries[count];
            causes[i] = causes[count];
        } else if (write.kind() == abi::entry_kind::range && old.kind() != abi::entry_kind::rect) {
            const bool left = old.begin() < write.begin();
            const bool right = write.end() < old.end();
            if (left && right && count == poison_entries_max) return;
            const auto piece = [&](u64 lo, u64 hi) { return abi::access_entry::make(old.kind(), old.mode(), lo, hi - lo); };
            if (left && right) {
                entries[count] = piece(write.end(), old.end());
                causes[count] = causes[i];
                ++count;
            }
            entries[i] = left ? piece(old.begin(), write.begin()) : piece(write.end(), old.end());
        }
        state[poison_entry_count] = count;
    }

    static constexpr u32 no_cause = ~0u;
    static constexpr u32 crossing_cause = no_cause - 1; ///< in cause_of: cancelled for what happened in another part
                                                        ///< (crossing.hpp): its own number is its cause
};

/// The scheduler's end: one flag to look at, and calls out of line once it is set.
template <class P>
class poison {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH poison(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Has a task failed since the last clear_failure? While not, nobody need be judged.
    SLIPSTREAM_BOTH bool any() const { return s_.counters[poison_active] != 0; }
    /// Cancelled tasks that wait for collect().
    SLIPSTREAM_BOTH u32 pending() const { return s_.counters[cancelled_pending]; }

    /// A task has become ready and nothing of it was mailed: true when it is cancelled. It must not be mailed then, and comes
    /// back by collect(); but a stand-in, which stays until its task has come to its end. A clear_failure task is never cancelled
    /// and clears here. May be asked again about the same task.
    SLIPSTREAM_BOTH bool cancels(team_type& team, u32 slot) { return judge(tables(), team, slot); }

    /// The same for a task of which a stand-in was cancelled (crossing.hpp): always.
    SLIPSTREAM_BOTH void cancel_by_itself(team_type& team, u32 slot) { cancel_out(tables(), team, slot); }

    /// Appends the cancelled tasks to the completed ones, batch[0..completed); returns their number.
    SLIPSTREAM_BOTH u32 collect(team_type& team, u32 completed) { return collect_out(tables(), team, completed); }

    /// The tasks batch[0..count) are complete, their successors not yet woken: numbers failures, poisons and heals. To be called
    /// for every batch once a body has failed (counters[failures_seen]) or any() is true, behind the step's fence.
    SLIPSTREAM_BOTH void settle(team_type& team, u32 count) { settle_out(tables(), team, count); }

    /// What became of a task that settle() saw.
    SLIPSTREAM_BOTH task_outcome outcome(u32 slot) const { return s_.poison_outcomes[slot]; }
    /// The same, for the linker.
    SLIPSTREAM_BOTH report_kind kind_of(u32 slot) const
    {
        const task_outcome o = outcome(slot);
        return o.status == 0                          ? report_kind::completed
               : (o.failure & outcome_cancelled) != 0 ? report_kind::cancelled
                                                      : report_kind::failed;
    }

private:
    SLIPSTREAM_BOTH poison_tables<P> tables() const
    {
        return {s_.poison_state,   s_.poison_entries, s_.poison_causes, s_.poison_runs, s_.poison_judged,
                s_.poison_cause_of, s_.poison_outcomes, s_.poison_pending, s_.batch,      s_.counters,
                m_.records,        s_.pool_near,      s_.pool_far,      s_.pool_shapes, s_.pool_next,
                s_.pool_tags,      s_.first_block,    s_.heads,         s_.task_id,     s_.pool_near_blocks};
    }
    SLIPSTREAM_BOTH_RARE static bool judge(const poison_tables<P> t, team_type team, u32 slot) { return t.judge(team, slot); }
    SLIPSTREAM_BOTH_RARE static void cancel_out(const poison_tables<P> t, team_type team, u32 slot)
    {
        t.cancel_by_itself(team, slot);
    }
    SLIPSTREAM_BOTH_RARE static u32 collect_out(const poison_tables<P> t, team_type team, u32 completed)
    {
        return t.collect(team, completed);
    }
    SLIPSTREAM_BOTH_RARE static void settle_out(const poison_tables<P> t, team_type team, u32 count) { t.settle(team, count); }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
