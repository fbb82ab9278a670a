// The admission role: finds out which unfinished tasks a decoded task must wait for, and hands both to the linker.
//
// One owner of the access table, no locks. For each access the table keeps one bit, whether it is still live: an access that
// one later write covers whole is superseded and not compared again, because every later task that meets it also meets that
// write. A chain of tasks on one buffer so keeps one live access, not W.
//
// Hazards: new writes against old reads and writes, new reads against old writes (design brief, section 2), exact half-open
// byte ranges and 2-D rectangles (abi/access_entry.hpp). A whole-memory task waits for all exposed tasks and then is the only
// exposed one: everything later waits for it, access-less tasks included, and its own `after` entries are implied.
//
// What this role knows of finished tasks may be old: it may name a predecessor that is complete. The linker drops those: it
// knows, and a slot cannot have been given to a later task, because slots go back to ingest through this role, behind the
// rows that name them (both queues are first in, first out).
//
// Tasks are admitted in batches, a lane an access, by all teams of a crew (access_batch.hpp). Whole-memory tasks, those with `after` entries and those with
// more accesses than a batch has lanes are compared with all live accesses one by one.
//
// COST  of a batch of up to 32 tasks: see access_batch.hpp, and 60 instructions to hand it on. Of a task by itself: two barriers of the crew; for each word of live
//       accesses a 16-byte load and about ten instructions a lane and new access, shared by the teams; no L2 access while the pool lies in fast memory.
//
// OWNERS  the leading team (index 0) writes exposed, live and the queues between two scans; during a scan team t alone writes the
//         words w of `live` with w % teams == t. The row of predecessors is shared by set_bits.
// EDGES   A3 (decoded) · R10 (admitted: slot and row) · A11 (finished) · R2 (slot freed). The crew's barrier orders orders,
//         live and row between its teams.
#pragma once
#include "device/access_batch.hpp"

namespace slipstream::device {

/// What the leading team of the crew asks of the others, in orders[0]; in the words behind it:
enum class admission_order : u32 {
    compare, ///< slot, words of `live` in use, row
    batch,   ///< access_batch::extent
    forget,  ///< blocks in batch_blocks
    leave,
};

template <class P>
class admission {
public:
    using team_type = typename P::team;
    using crew_type = typename P::crew;

    SLIPSTREAM_BOTH admission(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), decoded_(state.decoded_queue()), admitted_(state.admitted_queue()),
          finished_(state.finished_queue()), free_(state.free_queue()), index_(memory, state), batch_(memory, state), whole_(state.counters[saved_whole]),
          words_(state.counters[saved_live_words])
    {
    }

    /// The leading team: takes back finished slots, admits what was decoded. True when it did anything.
    SLIPSTREAM_BOTH bool step(crew_type& crew)
    {
        team_type& team = crew.team();
        const bool freed = reclaim(crew);
        const u32 arrived = decoded_.available(team);
        if (arrived == 0) return freed;
        const u32 room = admitted_.room(team);
        const u32 most = arrived < room ? arrived : room;
        const u32 count = most < 32 ? most : 32;
        if (count == 0) return freed;
        const u32 declaring
            = team.mask32([&](u32 k) { return k < count && P::get(s_.heads[decoded_.peek(k)]).entries_and_flags != 0; });
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count;) {
            const u32 rest = declaring >> k;
            const u32 run = rest == 0 ? count - k : lowest_bit(rest);
            if (run != 0 && whole_ == 0) {
                admit_free(team, k, run);
                k += run;
            } else {
                u32 admitted = whole_ == 0 ? admit_batch(crew, k, count - k) : 0;
                if (admitted == 0) {
                    admit(crew, decoded_.peek(k));
                    admitted = 1;
                }
                k += admitted;
            }
            admitted_.publish(team);
        }
        decoded_.skip(count);
        decoded_.release(team);
        return true;
    }

    /// Everything decoded so far was handed on.
    SLIPSTREAM_BOTH bool decoded_empty(team_type& team) { return decoded_.available(team) == 0; }

    /// The other teams: help the leading one until it leaves.
    SLIPSTREAM_BOTH static void assist(const engine_memory<P>& m, const control_state<P>& s, crew_type& crew)
    {
        const access_batch<P> batch{m, s};
        for (;;) {
            crew.sync();
            const u32* const o = s.orders;
            switch (static_cast<admission_order>(o[0])) {
            case admission_order::compare: batch.compare_task(crew.team(), crew.index(), crew.teams(), o[1], o[2], o[3]); break;
            case admission_order::batch:
                batch.run(crew.team(), crew.index(), crew.teams(), {o[1], o[2], o[3], o[4], o[5]}, [&] { crew.sync(); });
                break;
            case admission_order::forget: batch.forget(crew.team(), crew.index(), crew.teams(), o[1]); break;
            case admission_order::leave: return;
            }
            crew.sync();
        }
    }

    /// The leading team, at the end: lets the others go and saves what lives in registers.
    SLIPSTREAM_BOTH void finish(crew_type& crew)
    {
        if (crew.team().leader()) {
            s_.counters[saved_whole] = whole_;
            s_.counters[saved_live_words] = words_;
        }
        call(crew, admission_order::leave);
    }

private:
    static constexpr u32 words_alone = 4;

    /// The other teams begin with an order; the leading one has written what belongs to it. Ends with a barrier of the crew.
    SLIPSTREAM_BOTH void call(crew_type& crew, admission_order order)
    {
        if (crew.team().leader()) s_.orders[0] = static_cast<u32>(order);
        crew.sync();
    }

    /// Moves finished slots on to ingest, out of the table.
    SLIPSTREAM_BOTH bool reclaim(crew_type& crew)
    {
        team_type& team = crew.team();
        const u32 available = finished_.available(team);
        if (available == 0) return false;
        const u32 count = available < batch_max ? available : batch_max;
        bool whole_finished = false;
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = finished_.peek(k);
            whole_finished |= slot + 1 == whole_;
            team.clear_bits(s_.exposed[slot / 32], 1u << slot % 32);
            s_.batch_blocks[k] = P::get(s_.first_block[slot]);
            free_.put_ahead(k, slot);
        });
        const bool together = count > access_batch<P>::team_blocks;
        if (together && team.leader()) s_.orders[1] = count;
        if (together) call(crew, admission_order::forget);
        else team.sync();
        batch_.forget(team, 0, together ? crew.teams() : 1, count);
        if (together) crew.sync();
        if (team.any(whole_finished)) whole_ = 0;
        finished_.skip(count);
        finished_.release(team);
        free_.advance(count); // never full: it has room for every slot
        free_.publish(team);
        return true;
    }

    /// Tasks that declare nothing, while no whole-memory task is exposed: entries k .. k + run of the decoded queue.
    SLIPSTREAM_BOTH void admit_free(team_type& team, u32 k, u32 run)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < run; i += team.size()) {
            const u32 slot = decoded_.peek(k + i);
            team.set_bits(s_.exposed[slot / 32], 1u << slot % 32);
            admitted_.put_ahead(i, slot | admitted_free);
        }
        admitted_.advance(run);
        team.sync();
    }

    SLIPSTREAM_BOTH void admit(crew_type& crew, u32 slot)
    {
        team_type& team = crew.team();
        const task_head head = P::get(s_.heads[slot]);
        const bool whole = head.whole_memory();
        const u32 groups = m_.n.groups();
        const u32 row = admitted_.position() % admitted_max;
        auto* const found = s_.predecessors + row * groups;
        const u32 before = whole_ == 0 ? no_slot : whole_ - 1;
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < groups; g += team.size())
            P::set(found[g], whole ? s_.exposed[g] : before / 32 == g ? 1u << before % 32 : 0u);
        u32 memory = 0;
        bool after = false;
        const u32 first = P::get(s_.first_block[slot]);
        if (!whole)
            for (u32 block = first; block != no_block; block = P::get(s_.pool_next[block])) {
                const pool_tag tag{P::get(s_.pool_tags[block])};
                memory |= tag.memory();
                after |= tag.after() != 0;
            }
        if (after) find_after(team, first, found);
        if (memory != 0 && words_ != 0) {
            // A small table is searched sooner than the others are called.
            const bool alone = words_ <= words_alone || crew.teams() == 1;
            if (!alone) {
                if (team.leader()) {
                    s_.orders[1] = slot;
                    s_.orders[2] = words_;
                    s_.orders[3] = row;
                }
                call(crew, admission_order::compare);
            }
            team.sync();
            batch_.compare_task(team, 0, alone ? 1 : crew.teams(), slot, words_, row);
            if (!alone) crew.sync();
        }
        if (whole) hide_all(team, slot);
        insert(team, slot, whole ? no_block : first);
        admitted_.put(team, slot);
    }

    /// Marks the exposed tasks that `after` entries name; ingest's gate made sure that they were admitted. One that a
    /// whole-memory task hides is waited for through it.
    template <class Row>
    SLIPSTREAM_BOTH void find_after(team_type& team, u32 first, Row* found)
    {
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 block = first; block != no_block; block = P::get(s_.pool_next[block]))
            SLIPSTREAM_ONE_COPY
            for (u32 bits = pool_tag{P::get(s_.pool_tags[block])}.after(); bits != 0; bits &= bits - 1) {
                const table_entry entry = s_.pool_entry(block, lowest_bit(bits));
                const u64 id = static_cast<u64>(entry.after_ring()) << 56 | entry.after_position();
                SLIPSTREAM_ONE_COPY
                for (u32 slot = team.rank(); slot < m_.n.window; slot += team.size())
                    if ((s_.exposed[slot / 32] >> slot % 32 & 1) && P::get(s_.task_id[slot]) == id)
                        team.set_bits(found[slot / 32], 1u << slot % 32);
            }
        team.sync();
    }

    /// A whole-memory task hides everything before it: only it is exposed, and no access before it is live.
    SLIPSTREAM_BOTH void hide_all(team_type& team, u32 slot)
    {
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) s_.exposed[g] = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 w = team.rank(); w < words_; w += team.size()) s_.live[w] = 0;
        index_.clear(team, words_);
        whole_ = slot + 1;
        words_ = 0;
    }

    SLIPSTREAM_BOTH void insert(team_type& team, u32 slot, u32 first)
    {
        team.sync();
        if (team.leader()) s_.exposed[slot / 32] |= 1u << slot % 32;
        if (first == no_block) {
            team.sync();
            return;
        }
        const bool in = index_.useful(index_.grids(team));
        SLIPSTREAM_ONE_COPY
        for (u32 block = first; block != no_block; block = P::get(s_.pool_next[block])) {
            const u32 w = block / pool_word_blocks;
            const u32 memory = pool_tag{P::get(s_.pool_tags[block])}.memory();
            if (team.leader()) s_.live[w] |= memory << at_of(block);
            team.each32([&](u32 k) { if (memory >> k & 1) index_.enter(team, s_.pool_entry(block, k), block * pool_block_entries + k, in); });
            words_ = w < words_ ? words_ : w + 1;
        }
        team.sync();
    }

    /// Where a block's accesses begin in its word of live bits.
    SLIPSTREAM_BOTH static u32 at_of(u32 block) { return block % pool_word_blocks * pool_block_entries; }

    /// Admits tasks together: entries first .. first + count of the decoded queue, as many of them as can be; there is room for all in the
    /// admitted queue. Returns how many; 0: the first must be admitted by itself. There is no whole-memory task.
    SLIPSTREAM_BOTH u32 admit_batch(crew_type& crew, u32 first, u32 count)
    {
        team_type& team = crew.team();
        const u32 most = crew.teams() * access_batch<P>::team_blocks;
        auto batch = batch_.lay_out(team, count, most < batch_max ? most : batch_max, [&](u32 k) { return decoded_.peek(first + k); });
        if (batch.tasks == 0) return 0;
        const u32 grids = index_.grids(team);
        batch.row = admitted_.position() % admitted_max;
        batch.words = words_;
        batch.grids = index_.useful(grids) ? grids : access_batch<P>::nothing_found;
        const bool together = batch.blocks > access_batch<P>::team_blocks; // else one team is enough
        if (together) {
            if (team.leader()) {
                s_.orders[1] = batch.tasks;
                s_.orders[2] = batch.blocks;
                s_.orders[3] = batch.row;
                s_.orders[4] = batch.words;
                s_.orders[5] = batch.grids;
            }
            call(crew, admission_order::batch);
        }
        const auto sync = [&] {
            if (together) crew.sync();
            else team.sync();
        };
        if (!together) team.sync();
        batch_.run(team, 0, together ? crew.teams() : 1, batch, sync);
        sync();
        u32 complement = ~0u; // its minimum is the maximum of what it is the complement of
        team.each32([&](u32 k) {
            if (k < batch.blocks) {
                const u32 words = access_batch<P>::block_of(s_.batch_blocks[k]) / pool_word_blocks + 1;
                complement = ~words < complement ? ~words : complement;
            }
            if (k >= batch.tasks) return;
            const u32 slot = s_.batch_slots[k];
            team.set_bits(s_.exposed[slot / 32], 1u << slot % 32);
            admitted_.put_ahead(k, slot | (batch_.waits(k) ? 0 : admitted_free));
        });
        const u32 words = ~team.reduce_min(complement);
        words_ = words < words_ ? words_ : words;
        admitted_.advance(batch.tasks);
        team.sync();
        return batch.tasks;
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u32, edge::A3_decoded, edge::R3_taken> decoded_;
    queue_producer<P, u32, edge::R10_admitted, edge::A10_linked> admitted_;
    queue_consumer<P, u32, edge::A11_finished, edge::R11_taken> finished_;
    queue_producer<P, u32, edge::R2_slot_freed, edge::A2_slot_taken> free_;
    access_index<P> index_;
    access_batch<P> batch_;
    // Equal on all lanes.
    u32 whole_; ///< slot + 1 of the exposed whole-memory task; 0: none
    u32 words_; ///< words of `live` in use
};

} // namespace slipstream::device
