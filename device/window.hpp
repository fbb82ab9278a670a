// The window and its dependency table: which in-flight tasks must a new task wait for, and who waits for a finished one.
//
// One owner (the scheduler role), no locks: lanes compare in parallel, 32 window slots at a time. For each access the table
// keeps whether it is still live: an access that one later write covers whole is superseded and not compared again, because
// every later task that meets it also meets that write. A chain of tasks on one buffer so keeps one live access, not W.
//
// Hazards: new writes against old reads and writes, new reads against old writes (design brief, section 2), exact half-open
// byte ranges and 2-D rectangles (abi/access_entry.hpp). A whole-memory task waits for all exposed tasks and then is the only
// exposed one: everything later waits for it, access-less tasks included, and its own `after` entries are implied.
//
// COST  of admit, per group of 32 slots that has live accesses: up to four 16-byte fast-memory loads a lane, plus one pair
// test for each new access; no L2 access unless a task has more than four accesses. Of wake and remove: one row of the
// successor bitmap (W/32 words) when somebody waits, and one read-modify-write, a lane a mark.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class window {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH window(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), whole_(state.counters[saved_whole]),
          pool_live_(state.counters[saved_pool_live])
    {
    }

    /// Saves what lives in registers, before a park.
    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (team.leader()) {
            s_.counters[saved_whole] = whole_;
            s_.counters[saved_pool_live] = pool_live_;
        }
        team.sync();
    }

    /// True when a task without accesses need not be compared: nothing exposed orders it.
    SLIPSTREAM_BOTH bool nothing_whole() const { return whole_ == 0; }

    /// Takes in tasks that declare no access while nothing_whole(): slot_of(k), k < count. None of them waits.
    template <class SlotOf>
    SLIPSTREAM_BOTH void admit_free(team_type& team, u32 count, SlotOf slot_of)
    {
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count; ++k) {
            const u32 slot = slot_of(k);
            for (u32 m = team.rank(); m <= mark_exposed; m += team.size())
                s_.marks[m * m_.n.groups() + slot / 32] |= 1u << slot % 32;
        }
        team.sync();
    }

    /// Takes a decoded task in. Returns the number of tasks it waits for.
    SLIPSTREAM_BOTH u32 admit(team_type& team, u32 slot)
    {
        const u32 counts = P::get(s_.counts[slot]);
        const u32 entries = counts & 0xffff;
        const bool whole = (counts >> 16 & abi::flag_whole_memory) != 0;
        const u32 groups = m_.n.groups();
        bool waits = false;
        u32 inline_live = 0;
        // found[] is all zero between admissions (link() clears it). An earlier whole-memory task still in flight is in the
        // way of everybody; a new one waits for all exposed tasks.
        if (whole || whole_ != 0) {
            team.sync();
            for (u32 g = team.rank(); g < groups; g += team.size()) s_.found[g] = mark_word(whole ? mark_exposed : mark_whole, g);
            team.sync();
            waits = true;
        }
        if (!whole) {
            // Four accesses at a time: first the inline ones, then those in pool blocks.
            u32 block = no_block;
            SLIPSTREAM_ONE_COPY
            for (u32 done = 0; done < entries; done += inline_accesses) {
                const u32 at = (done - inline_accesses) % pool_block_entries;
                if (done == inline_accesses) block = P::get(s_.first_block[slot]);
                else if (done > inline_accesses && at == 0) block = P::get(s_.pool_next[block]);
                probe mine;
                for (u32 i = 0; i < inline_accesses; ++i)
                    if (done + i < entries)
                        mine.add(i, done == 0 ? P::get(s_.accesses[i * m_.n.window + slot]) : P::get(pool_entries(block)[at + i]));
                if (done == 0) inline_live = mine.memory_mask;
                if (mine.after) waits |= find_after(team, mine);
                if (mine.memory_mask) waits |= compare(team, mine);
            }
        }
        const u32 pending = waits ? link(team, slot) : 0;
        insert(team, slot, entries, whole, inline_live);
        return pending;
    }

    /// Wakes the tasks that wait for a finished one: ready(first, mask) is called by all lanes with slots first + bits of mask.
    template <class Ready>
    SLIPSTREAM_BOTH void wake(team_type& team, u32 slot, Ready ready)
    {
        if (!(mark_word(mark_awaited, slot / 32) >> slot % 32 & 1)) return;
        const u32 groups = m_.n.groups();
        u32* const row = s_.successors + slot * groups;
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < groups; first += 32)
            SLIPSTREAM_ONE_COPY
            for (u32 words = team.mask32([&](u32 k) { return first + k < groups && row[first + k] != 0; }); words;
                 words &= words - 1) {
                const u32 w = first + lowest_bit(words);
                const u32 waiting = row[w];
                const u32 freed = team.mask32([&](u32 k) { return (waiting >> k & 1) && --s_.pending[32 * w + k] == 0; });
                if (team.leader()) row[w] = 0;
                if (freed) ready(32 * w, freed);
            }
    }

    /// Removes finished tasks whose successors were woken: slot_of(k), k < count.
    template <class SlotOf>
    SLIPSTREAM_BOTH void remove(team_type& team, u32 count, SlotOf slot_of)
    {
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < count; ++k) {
            const u32 slot = slot_of(k);
            const u32 bit = 1u << slot % 32;
            if (whole_ != 0 && (mark_word(mark_whole, slot / 32) & bit)) whole_ = 0;
            if (whole_ != 0 || k == 0) team.sync(); // the word just read may be changed below
            for (u32 m = team.rank(); m < mark_count; m += team.size()) s_.marks[m * m_.n.groups() + slot / 32] &= ~bit;
            for (u32 block = P::get(s_.first_block[slot]); block != no_block; block = P::get(s_.pool_next[block])) {
                if (s_.pool_live[block] == 0) continue;
                --pool_live_;
                team.sync();
                if (team.leader()) s_.pool_live[block] = 0;
            }
        }
        team.sync();
    }

private:
    /// Four accesses of the task being admitted, taken apart once: the loop over old accesses is a dozen instructions a pair,
    /// and instructions are what a single warp is short of (about five cycles each).
    struct probe {
        abi::access_entry entry[inline_accesses] = {};
        u64 lo[inline_accesses] = {};
        u64 hi[inline_accesses] = {}; ///< 0: takes no part
        access_box box = access_box::nothing(); ///< all four lie in it
        u32 memory_mask = 0;          ///< bit i: entry i is memory
        u32 write_mask = 0;
        bool after = false;
        bool rects = false;

        SLIPSTREAM_BOTH void add(u32 i, const abi::access_entry& e)
        {
            entry[i] = e;
            if (!e.is_memory()) {
                after |= e.kind() == abi::entry_kind::after;
                return;
            }
            lo[i] = e.begin();
            hi[i] = e.end();
            box.add(e);
            memory_mask |= 1u << i;
            if (e.writes()) write_mask |= 1u << i;
            rects |= e.kind() == abi::entry_kind::rect;
        }

        /// Must the task wait for one that made the access `old`?
        SLIPSTREAM_BOTH bool conflicts(const abi::access_entry& old) const
        {
            const u64 old_lo = old.begin();
            const u64 old_hi = old.end();
            const bool near = (old_lo < box.write_hi && box.write_lo < old_hi)
                || (old.writes() && old_lo < box.read_hi && box.read_lo < old_hi);
            if (!near) return false;
            if (rects || old.kind() == abi::entry_kind::rect) return conflicts_exactly(old);
            const u32 relevant = old.writes() ? memory_mask : write_mask;
            bool any = false;
            for (u32 i = 0; i < inline_accesses; ++i)
                if (memory_mask >> i) any |= (relevant >> i & 1) && old_lo < hi[i] && lo[i] < old_hi;
            return any;
        }
        SLIPSTREAM_BOTH bool conflicts_exactly(const abi::access_entry& old) const
        {
            bool any = false;
            for (u32 i = 0; i < inline_accesses; ++i) any |= hi[i] != 0 && pair_conflicts(entry[i], old);
            return any;
        }
        // By value and out of line: an object whose address is taken would lie in local memory.
        SLIPSTREAM_BOTH_RARE static bool pair_conflicts(const abi::access_entry next, const abi::access_entry earlier)
        {
            return abi::conflicts(next, earlier);
        }
        /// Is `old` superseded by one of the writes?
        SLIPSTREAM_BOTH bool covers(const abi::access_entry& old) const
        {
            bool any = false;
            for (u32 i = 0; i < inline_accesses; ++i)
                if (write_mask >> i) any |= (write_mask >> i & 1) && abi::covers(entry[i], old);
            return any;
        }
    };

    /// Marks in found[] every in-flight task that conflicts with one of the accesses, and supersedes what they cover. False:
    /// there was none.
    SLIPSTREAM_BOTH bool compare(team_type& team, const probe& mine)
    {
        const u32 groups = m_.n.groups();
        bool found = false;
        // The live words of all four inline accesses lie one behind the other: one look finds those that are not 0.
        u32* const live_words = s_.marks + mark_live * groups;
        // Of those, only words whose box meets the new accesses' box are looked into.
        for_each_word(team, inline_accesses * groups, [&](u32 word) {
            return live_words[word] != 0 && s_.live_box[word].may_conflict(mine.box);
        }, [&](u32 word) {
            const u32 i = word / groups;
            const u32 g = word - i * groups;
            const u32 live = live_words[word];
            const test_result r = test(team, live, mine, [&](u32 k) {
                return P::get(s_.accesses[i * m_.n.window + 32 * g + k]);
            });
            if (r.hit == 0) return;
            found = true;
            team.sync();
            if (team.leader()) {
                s_.found[g] |= r.hit;
                live_words[word] = live & ~r.covered;
            }
            team.sync();
        });
        // Pool blocks, 32 at a time: a block is looked into only when its box meets the box of the new accesses.
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; pool_live_ != 0 && first < m_.n.pool_blocks; first += 32)
            SLIPSTREAM_ONE_COPY
            for (u32 bits = team.mask32([&](u32 k) {
                     if (first + k >= m_.n.pool_blocks || s_.pool_live[first + k] == 0) return false;
                     return P::get(s_.pool_box[first + k]).may_conflict(mine.box);
                 });
                 bits; bits &= bits - 1)
                found |= compare_block(team, first + lowest_bit(bits), mine);
        return found;
    }

    SLIPSTREAM_BOTH u32 mark_word(u32 m, u32 g) const { return s_.marks[m * m_.n.groups() + g]; }

    /// visit(i) for each i < count for which wanted(i); the lanes look at 32 at a time.
    template <class Wanted, class Visit>
    SLIPSTREAM_BOTH void for_each_word(team_type& team, u32 count, Wanted wanted, Visit visit)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < count; first += 32)
            SLIPSTREAM_ONE_COPY
            for (u32 bits = team.mask32([&](u32 k) { return first + k < count && wanted(first + k); }); bits; bits &= bits - 1)
                visit(first + lowest_bit(bits));
    }

    /// visit(i) for each word that is not 0.
    template <class Visit>
    SLIPSTREAM_BOTH void for_each_set(team_type& team, const u32* words, u32 count, Visit visit)
    {
        for_each_word(team, count, [&](u32 i) { return words[i] != 0; }, visit);
    }

    SLIPSTREAM_BOTH bool compare_block(team_type& team, u32 block, const probe& mine)
    {
        const u32 live = s_.pool_live[block];
        const auto* const entries = pool_entries(block);
        const test_result r = test(team, live, mine, [&](u32 k) { return P::get(entries[k]); });
        if (r.hit == 0) return false;
        const u32 owner = P::get(s_.pool_owner[block]);
        team.sync();
        if (team.leader()) {
            s_.found[owner / 32] |= 1u << owner % 32;
            s_.pool_live[block] = live & ~r.covered;
        }
        if ((live & ~r.covered) == 0) --pool_live_;
        team.sync();
        return true;
    }

    SLIPSTREAM_BOTH auto* pool_entries(u32 block) const { return s_.pool_entries(block); }

    struct test_result {
        u32 hit;
        u32 covered;
    };

    /// 32 old accesses against four new ones (those that are no memory take no part).
    template <class Load>
    SLIPSTREAM_BOTH test_result test(team_type& team, u32 live, const probe& mine, Load load)
    {
        const u32 hit = team.mask32([&](u32 k) { return (live >> k & 1) && mine.conflicts(load(k)); });
        u32 covered = 0;
        if (hit != 0) covered = team.mask32([&](u32 k) { return (hit >> k & 1) && mine.covers(load(k)); });
        return {hit, covered};
    }

    SLIPSTREAM_BOTH bool find_after(team_type& team, const probe& mine)
    {
        bool found = false;
        for (u32 i = 0; i < inline_accesses; ++i)
            if (mine.entry[i].kind() == abi::entry_kind::after) found |= find_id(team, mine.entry[i]);
        return found;
    }

    /// The in-flight task with this id, if it is still in flight; ingest's gate made sure that it was admitted.
    SLIPSTREAM_BOTH bool find_id(team_type& team, const abi::access_entry& after)
    {
        bool found = false;
        const u64 id = static_cast<u64>(after.after_ring()) << 56 | after.after_position();
        for_each_set(team, s_.marks + mark_in_flight * m_.n.groups(), m_.n.groups(), [&](u32 g) {
            const u32 candidates = mark_word(mark_in_flight, g);
            const u32 hit
                = team.mask32([&](u32 k) { return (candidates >> k & 1) && P::get(s_.task_id[32 * g + k]) == id; });
            if (hit == 0) return;
            found = true;
            team.sync();
            if (team.leader()) s_.found[g] |= hit;
            team.sync();
        });
        return found;
    }

    /// Enters the new task into the successor row of each task in found[], and clears found[].
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 slot)
    {
        const u32 groups = m_.n.groups();
        const u32 bit = 1u << slot % 32;
        u32 pending = 0;
        for_each_set(team, s_.found, groups, [&](u32 g) {
            const u32 mask = s_.found[g];
            pending += popcount(mask);
            for (u32 k = team.rank(); k < 32; k += team.size())
                if (mask >> k & 1) s_.successors[(32 * g + k) * groups + slot / 32] |= bit;
            team.sync();
            if (team.leader()) {
                s_.found[g] = 0;
                s_.marks[mark_awaited * groups + g] |= mask;
            }
        });
        if (team.leader()) s_.pending[slot] = pending;
        return pending;
    }

    SLIPSTREAM_BOTH void insert(team_type& team, u32 slot, u32 entries, bool whole, u32 inline_live)
    {
        const u32 groups = m_.n.groups();
        const u32 g = slot / 32;
        const u32 bit = 1u << slot % 32;
        team.sync();
        if (whole) {
            // The new task hides everything before it: only it is exposed, and no access before it is live.
            for (u32 k = team.rank(); k < mark_count * groups; k += team.size()) {
                const u32 m = k / groups;
                if (m != mark_in_flight && m != mark_awaited) s_.marks[k] = 0;
            }
            for (u32 b = team.rank(); b < m_.n.pool_blocks; b += team.size()) s_.pool_live[b] = 0;
            team.sync();
            pool_live_ = 0;
            whole_ = 1;
        }
        const u32 set = 1u << mark_in_flight | 1u << mark_exposed | (whole ? 1u << mark_whole : inline_live << mark_live);
        for (u32 m = team.rank(); m < mark_count; m += team.size()) {
            if (!(set >> m & 1)) continue;
            u32& word = s_.marks[m * groups + g];
            if (m >= mark_live) {
                // The box of a word grows with what is added, and starts anew when nothing in it was live.
                access_box& box = s_.live_box[(m - mark_live) * groups + g];
                if (word == 0) box = access_box::nothing();
                box.add(P::get(s_.accesses[(m - mark_live) * m_.n.window + slot]));
            }
            word |= bit;
        }
        u32 block = whole || entries <= inline_accesses ? no_block : P::get(s_.first_block[slot]);
        for (u32 done = inline_accesses; done < entries && block != no_block; done += pool_block_entries) {
            const u32 left = entries - done;
            const auto* const held = pool_entries(block);
            const u32 live = team.mask32([&](u32 k) { return k < left && P::get(held[k]).is_memory(); });
            if (team.leader()) s_.pool_live[block] = live;
            if (live != 0) ++pool_live_;
            block = P::get(s_.pool_next[block]);
        }
        team.sync();
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    // Equal on all lanes.
    u32 whole_;     ///< exposed whole-memory tasks: at most one
    u32 pool_live_; ///< pool blocks with live accesses
};

} // namespace slipstream::device
