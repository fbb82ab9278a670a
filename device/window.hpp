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
// test for each new access; no L2 access unless a task has more than four accesses. Of retire: one row of the successor
// bitmap (W/32 words).
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class window {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH window(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// Takes a decoded task in. Returns the number of tasks it waits for.
    SLIPSTREAM_BOTH u32 admit(team_type& team, u32 slot)
    {
        const u32 counts = P::get(s_.counts[slot]);
        const u32 entries = counts & 0xffff;
        const bool whole = (counts >> 16 & abi::flag_whole_memory) != 0;
        const u32 groups = m_.n.groups();
        team.sync();
        // An earlier whole-memory task still in flight is in the way of everybody; a new one waits for all exposed tasks.
        for (u32 g = team.rank(); g < groups; g += team.size()) s_.found[g] = whole ? s_.exposed[g] : s_.whole[g];
        team.sync();
        if (!whole) {
            const u32 inline_count = entries < inline_accesses ? entries : inline_accesses;
            abi::access_entry mine[inline_accesses];
            for (u32 i = 0; i < inline_count; ++i) mine[i] = P::get(s_.accesses[i * m_.n.window + slot]);
            compare(team, mine, inline_count);
            u32 block = P::get(s_.first_block[slot]);
            for (u32 done = inline_accesses; done < entries; block = P::get(m_.pool[block].next)) {
                for (u32 e = 0; e < pool_block_entries && done < entries; e += inline_accesses) {
                    const u32 left = entries - done;
                    const u32 count = left < inline_accesses ? left : inline_accesses;
                    for (u32 i = 0; i < count; ++i) mine[i] = P::get(m_.pool[block].entries[e + i]);
                    compare(team, mine, count);
                    done += count;
                }
            }
        }
        const u32 pending = link(team, slot);
        insert(team, slot, entries, whole);
        return pending;
    }

    /// Removes a finished task. visit(slot) is called by all lanes for each task that became ready.
    template <class Visit>
    SLIPSTREAM_BOTH void retire(team_type& team, u32 slot, Visit visit)
    {
        const u32 groups = m_.n.groups();
        const u32 g = slot / 32;
        const u32 keep = ~(1u << slot % 32);
        team.sync();
        if (team.leader()) {
            s_.in_flight[g] &= keep;
            s_.exposed[g] &= keep;
            s_.whole[g] &= keep;
            s_.pooled[g] &= keep;
            for (u32 i = 0; i < inline_accesses; ++i) s_.live[i * groups + g] &= keep;
        }
        u32* const row = s_.successors + slot * groups;
        for (u32 first = 0; first < groups; first += 32) {
            // Each lane walks one word of the row; no two words name the same task.
            const u32 words = team.mask32([&](u32 k) { return first + k < groups && row[first + k] != 0; });
            for (u32 rest = words; rest; rest &= rest - 1) {
                const u32 w = first + lowest_bit(rest);
                const u32 waiting = row[w];
                const u32 freed = team.mask32([&](u32 k) {
                    if (!(waiting >> k & 1)) return false;
                    return --s_.pending[32 * w + k] == 0;
                });
                if (team.leader()) row[w] = 0;
                for (u32 bits = freed; bits; bits &= bits - 1) visit(32 * w + lowest_bit(bits));
            }
        }
        team.sync();
    }

private:
    /// Marks in found[] every in-flight task that conflicts with one of `count` accesses, and supersedes what they cover.
    SLIPSTREAM_BOTH void compare(team_type& team, const abi::access_entry (&mine)[inline_accesses], u32 count)
    {
        const u32 groups = m_.n.groups();
        bool memory = false;
        for (u32 e = 0; e < count; ++e) {
            if (mine[e].kind() == abi::entry_kind::after) find_id(team, mine[e]);
            memory |= mine[e].is_memory();
        }
        if (!memory) return;
        for (u32 g = 0; g < groups; ++g) {
            for (u32 i = 0; i < inline_accesses; ++i) {
                const u32 live = s_.live[i * groups + g];
                if (live == 0) continue;
                const test_result r = test(team, live, mine, count, [&](u32 k) {
                    return P::get(s_.accesses[i * m_.n.window + 32 * g + k]);
                });
                if (r.hit == 0) continue;
                team.sync();
                if (team.leader()) {
                    s_.found[g] |= r.hit;
                    s_.live[i * groups + g] = live & ~r.covered;
                }
                team.sync();
            }
            for (u32 bits = s_.pooled[g]; bits; bits &= bits - 1) compare_pool(team, 32 * g + lowest_bit(bits), mine, count);
        }
    }

    SLIPSTREAM_BOTH void compare_pool(team_type& team, u32 old, const abi::access_entry (&mine)[inline_accesses], u32 count)
    {
        for (u32 block = P::get(s_.first_block[old]); block != no_block; block = P::get(m_.pool[block].next)) {
            const u32 live = s_.pool_live[block];
            if (live == 0) continue;
            const test_result r = test(team, live, mine, count, [&](u32 k) { return P::get(m_.pool[block].entries[k]); });
            if (r.hit == 0) continue;
            team.sync();
            if (team.leader()) {
                s_.found[old / 32] |= 1u << old % 32;
                s_.pool_live[block] = live & ~r.covered;
            }
            team.sync();
        }
    }

    struct test_result {
        u32 hit;
        u32 covered;
    };

    /// 32 old accesses against `count` new ones.
    template <class Load>
    SLIPSTREAM_BOTH test_result test(team_type& team, u32 live, const abi::access_entry (&mine)[inline_accesses], u32 count,
                                     Load load)
    {
        u32 hit = 0;
        u32 covered = 0;
        hit = team.mask32([&](u32 k) {
            if (!(live >> k & 1)) return false;
            const abi::access_entry old = load(k);
            bool any = false;
            for (u32 e = 0; e < inline_accesses; ++e)
                if (e < count && mine[e].is_memory()) any |= abi::conflicts(mine[e], old);
            return any;
        });
        if (hit != 0)
            covered = team.mask32([&](u32 k) {
                if (!(hit >> k & 1)) return false;
                const abi::access_entry old = load(k);
                bool any = false;
                for (u32 e = 0; e < inline_accesses; ++e)
                    if (e < count && mine[e].is_memory() && mine[e].writes()) any |= abi::covers(mine[e], old);
                return any;
            });
        return {hit, covered};
    }

    /// The in-flight task with this id, if it is still in flight; ingest's gate made sure that it was admitted.
    SLIPSTREAM_BOTH void find_id(team_type& team, const abi::access_entry& after)
    {
        const u64 id = static_cast<u64>(after.after_ring()) << 56 | after.after_position();
        for (u32 g = 0; g < m_.n.groups(); ++g) {
            const u32 candidates = s_.in_flight[g];
            if (candidates == 0) continue;
            const u32 hit
                = team.mask32([&](u32 k) { return (candidates >> k & 1) && P::get(s_.task_id[32 * g + k]) == id; });
            if (hit == 0) continue;
            team.sync();
            if (team.leader()) s_.found[g] |= hit;
            team.sync();
            return;
        }
    }

    /// Enters the new task into the successor row of each task in found[].
    SLIPSTREAM_BOTH u32 link(team_type& team, u32 slot)
    {
        const u32 groups = m_.n.groups();
        const u32 bit = 1u << slot % 32;
        u32 pending = 0;
        team.sync();
        for (u32 g = 0; g < groups; ++g) {
            const u32 mask = s_.found[g];
            pending += popcount(mask);
            for (u32 k = team.rank(); k < 32 && mask != 0; k += team.size())
                if (mask >> k & 1) s_.successors[(32 * g + k) * groups + slot / 32] |= bit;
        }
        team.sync();
        if (team.leader()) s_.pending[slot] = pending;
        return pending;
    }

    SLIPSTREAM_BOTH void insert(team_type& team, u32 slot, u32 entries, bool whole)
    {
        const u32 groups = m_.n.groups();
        const u32 g = slot / 32;
        const u32 bit = 1u << slot % 32;
        team.sync();
        if (whole) {
            for (u32 k = team.rank(); k < groups; k += team.size()) {
                s_.exposed[k] = 0;
                s_.whole[k] = 0;
                s_.pooled[k] = 0;
            }
            for (u32 k = team.rank(); k < inline_accesses * groups; k += team.size()) s_.live[k] = 0;
            team.sync();
        }
        if (team.leader()) {
            s_.in_flight[g] |= bit;
            s_.exposed[g] |= bit;
            if (whole) s_.whole[g] |= bit;
            const u32 inline_count = entries < inline_accesses ? entries : inline_accesses;
            for (u32 i = 0; i < inline_count && !whole; ++i)
                if (P::get(s_.accesses[i * m_.n.window + slot]).is_memory()) s_.live[i * groups + g] |= bit;
        }
        u32 block = whole ? no_block : P::get(s_.first_block[slot]);
        if (block != no_block && team.leader()) s_.pooled[g] |= bit;
        for (u32 done = inline_accesses; done < entries && block != no_block; done += pool_block_entries) {
            const u32 left = entries - done;
            const u32 live = team.mask32([&](u32 k) { return k < left && P::get(m_.pool[block].entries[k]).is_memory(); });
            if (team.leader()) s_.pool_live[block] = live;
            block = P::get(m_.pool[block].next);
        }
        team.sync();
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
