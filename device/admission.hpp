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
// A task of one pool block (at most four accesses) and no `after` is admitted in a batch with others, a lane an access: its accesses are
// looked up in the access index and compared with the batch's writes. What the index cannot tell, and every other task, is
// compared with all live accesses:
// WORK  The teams of a crew share the words of live bits: 32 old accesses a word, a lane each, against four new ones at a time,
// bounding ranges first; the lanes then look at their hits again, exactly.
// COST  of a batch of up to eight tasks: about 40 instructions and 15 for each write among them, a lookup (access_index.hpp), 40 to enter
//       and hand on. Of a task by itself: two barriers of the crew; for each word of live accesses a 16-byte load and about ten
// instructions a lane and new access, shared by the teams; no L2 access while the pool lies in fast memory.
//
// OWNERS  the leading team (index 0) writes exposed, live and the queues between two scans; during a scan team t alone writes the
//         words w of `live` with w % teams == t. The row of predecessors is shared by set_bits.
// EDGES   A3 (decoded) · R10 (admitted: slot and row) · A11 (finished) · R2 (slot freed). The crew's barrier orders orders,
//         live and row between its teams.
#pragma once
#include "device/access_index.hpp"

namespace slipstream::device {

template <class P>
class admission {
public:
    using team_type = typename P::team;
    using crew_type = typename P::crew;

    SLIPSTREAM_BOTH admission(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), decoded_(state.decoded_queue()), admitted_(state.admitted_queue()),
          finished_(state.finished_queue()), free_(state.free_queue()), index_(memory, state), whole_(state.counters[saved_whole]),
          words_(state.counters[saved_live_words])
    {
    }

    /// The leading team: takes back finished slots, admits what was decoded. True when it did anything.
    SLIPSTREAM_BOTH bool step(crew_type& crew)
    {
        team_type& team = crew.team();
        const bool freed = reclaim(team);
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
                u32 admitted = whole_ == 0 && wary_ == 0 ? admit_batch(team, k, count - k) : 0;
                if (admitted == 0) {
                    admit(crew, decoded_.peek(k));
                    admitted = 1;
                    wary_ -= static_cast<u32>(wary_ != 0);
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
        const access_scan scan{m, s, access_index<P>(m, s)};
        for (;;) {
            crew.sync();
            const u32 slot = s.orders[0];
            if (slot == leave) return;
            scan.run(crew.team(), crew.index(), crew.teams(), slot, s.orders[1], s.orders[2]);
            crew.sync();
        }
    }

    /// The leading team, at the end: lets the others go and saves what lives in registers.
    SLIPSTREAM_BOTH void finish(crew_type& crew)
    {
        if (crew.team().leader()) {
            s_.counters[saved_whole] = whole_;
            s_.counters[saved_live_words] = words_;
            s_.orders[0] = leave;
        }
        crew.sync();
    }

private:
    static constexpr u32 leave = 0xffffffff;
    static constexpr u32 words_alone = 4;

    /// Four accesses of the task being admitted, taken apart once: the loop over old accesses is a few instructions a pair.
    struct probe {
        u64 lo[pool_block_entries];
        u64 hi[pool_block_entries]; ///< 0: takes no part
        u32 write_mask = 0;
        u32 rect_mask = 0;
        u32 tile_mask = 0; ///< of the rectangles, those of handles
        u32 loose_mask = 0;

        SLIPSTREAM_BOTH probe(const control_state<P>& s, u32 block, u32 memory)
        {
            table_entry entry[pool_block_entries];
            for (u32 i = 0; i < pool_block_entries; ++i) entry[i] = s.pool_entry(block, i);
            for (u32 i = 0; i < pool_block_entries; ++i) {
                const bool used = memory >> i & 1; // else what an earlier task left there
                lo[i] = used ? entry[i].begin() : ~u64{0};
                hi[i] = used ? entry[i].end() : 0;
                write_mask |= static_cast<u32>(entry[i].writes()) << i;
                rect_mask |= static_cast<u32>(entry[i].is_rect()) << i;
                tile_mask |= static_cast<u32>(entry[i].is_tile()) << i;
                loose_mask |= static_cast<u32>(entry[i].kind() == abi::entry_kind::loose) << i;
            }
            write_mask &= memory;
            rect_mask &= memory;
            tile_mask &= memory;
        }

        /// Must the task perhaps wait for one that made the access `old`? By bounding ranges; of two tiles, by where they begin.
        SLIPSTREAM_BOTH bool may_conflict(const table_entry& old) const
        {
            const u64 old_lo = old.begin();
            const u64 old_hi = old.end();
            const u64 old_hi_written = old.writes() ? old_hi : 0; // what reads care for
            const u32 tiles = old.is_tile() ? tile_mask : 0;
            bool any = false;
            for (u32 i = 0; i < pool_block_entries; ++i)
                any |= (old_lo < hi[i]) & (lo[i] < (write_mask >> i & 1 ? old_hi : old_hi_written))
                    & (((tiles >> i & 1) == 0) | (lo[i] == old_lo));
            return any;
        }
        /// Is `old`, which is no rectangle, superseded by one of the writes, which are none either?
        SLIPSTREAM_BOTH bool covers(const table_entry& old) const
        {
            const u32 covering = write_mask & ~loose_mask;
            bool any = false;
            for (u32 i = 0; i < pool_block_entries; ++i)
                any |= (lo[i] <= old.begin()) & (old.end() <= hi[i]) & ((covering >> i & 1) != 0);
            return any;
        }
    };

    struct exact_result {
        bool conflicts;
        bool covers;
    };

    /// The same, exactly, where a rectangle takes part.
    SLIPSTREAM_BOTH static exact_result compare_exactly(const control_state<P>& s, u32 block, u32 memory, const table_entry& old, u64 old_shape)
    {
        exact_result out{false, false};
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < pool_block_entries; ++i) {
            if (!(memory >> i & 1)) continue;
            const table_entry mine = s.pool_entry(block, i);
            if (mine.is_tile() && old.is_tile()) {
                const bool same = mine.begin() == old.begin();
                out.conflicts |= same & (mine.writes() | old.writes());
                out.covers |= same & mine.writes();
                continue;
            }
            const u32 r = compare_pair(mine.access(P::get(s.pool_shapes[block * pool_block_entries + i])), old.access(old_shape));
            out.conflicts |= (r & 1) != 0;
            out.covers |= (r & 2) != 0;
        }
        return out;
    }

    /// Bit 0: conflict; bit 1: `old` is covered. Out of line: rare, and long. By value: an object whose address is taken would
    /// lie in local memory.
    SLIPSTREAM_BOTH_RARE static u32 compare_pair(const abi::access_entry mine, const abi::access_entry old)
    {
        return static_cast<u32>(abi::conflicts(mine, old)) | static_cast<u32>(mine.writes() && abi::covers(mine, old)) << 1;
    }

    /// One team's share of comparing a task with the table.
    struct access_scan {
        const engine_memory<P>& m;
        const control_state<P>& s;
        access_index<P> index;

        /// Team `number` of `teams`: marks in row number `row` every task that has a live access in conflict with one of this
        /// task's, and supersedes what they cover. `words`: words of `live` in use.
        SLIPSTREAM_BOTH void run(team_type& team, u32 number, u32 teams, u32 slot, u32 words, u32 row) const
        {
            auto* const found = s.predecessors + row * m.n.groups();
            SLIPSTREAM_ONE_COPY
            for (u32 block = P::get(s.first_block[slot]); block != no_block; block = P::get(s.pool_next[block])) {
                const u32 memory = pool_tag{P::get(s.pool_tags[block])}.memory();
                if (memory == 0) continue;
                const probe mine(s, block, memory);
                // Word j of a turn is this team's j-th.
                SLIPSTREAM_ONE_COPY
                for (u32 first = number; first < words; first += 32 * teams) {
                    const auto word_of = [&](u32 j) { return first + j * teams; };
                    const u32 used = team.mask32([&](u32 k) { return word_of(k) < words && s.live[word_of(k)] != 0; });
                    team.each_hit(
                        used,
                        [&](u32 j, u32 k) {
                            const u32 w = word_of(j);
                            return (s.live[w] >> k & 1) && mine.may_conflict(s.word_entry(w, k));
                        },
                        [&](u32 j, u32 k) {
                            const u32 w = word_of(j);
                            const table_entry old = s.word_entry(w, k);
                            exact_result r{true, mine.covers(old)};
                            if (mine.rect_mask != 0 || old.is_rect())
                                r = compare_exactly(s, block, memory, old, P::get(s.pool_shapes[32 * w + k]));
                            if (!r.conflicts) return;
                            const u32 owner = pool_tag{P::get(s.pool_tags[w * pool_word_blocks + k / pool_block_entries])}.slot();
                            team.set_bits(found[owner / 32], 1u << owner % 32);
                            if (!r.covers) return;
                            team.clear_bits(s.live[w], 1u << k);
                            index.remove(team, old, 32 * w + k);
                        });
                }
            }
        }
    };

    /// Moves finished slots on to ingest, out of the table.
    SLIPSTREAM_BOTH bool reclaim(team_type& team)
    {
        const u32 count = finished_.available(team);
        if (count == 0) return false;
        bool whole_finished = false;
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < count; k += team.size()) {
            const u32 slot = finished_.peek(k);
            whole_finished |= slot + 1 == whole_;
            team.clear_bits(s_.exposed[slot / 32], 1u << slot % 32);
            SLIPSTREAM_ONE_COPY
            for (u32 block = P::get(s_.first_block[slot]); block != no_block; block = P::get(s_.pool_next[block]))
                forget(team, block, team.clear_bits(s_.live[block / pool_word_blocks], 15u << at_of(block)) >> at_of(block) & 15);
            free_.put_ahead(k, slot);
        }
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
                    s_.orders[0] = slot;
                    s_.orders[1] = words_;
                    s_.orders[2] = row;
                }
                crew.sync();
            }
            team.sync();
            access_scan{m_, s_, index_}.run(team, 0, alone ? 1 : crew.teams(), slot, words_, row);
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

    /// By a lane: accesses of a block that were live leave the index.
    SLIPSTREAM_BOTH void forget(team_type& team, u32 block, u32 accesses) const
    {
        SLIPSTREAM_ONE_COPY
        for (; accesses != 0; accesses &= accesses - 1) {
            const u32 i = lowest_bit(accesses);
            index_.remove(team, s_.pool_entry(block, i), block * pool_block_entries + i);
        }
    }

    static constexpr u32 wary_tasks = 16; ///< so many are not looked up when the index could not tell of one
    static constexpr u32 batch_tasks = 32 / pool_block_entries;
    static constexpr u32 no_access = ~0u;

    /// Admits tasks of one pool block together, a lane an access: entries first .. first + count of the decoded queue, as many of
    /// them as can be. Returns how many; 0: the first must be compared with everything. There is no whole-memory task.
    SLIPSTREAM_BOTH u32 admit_batch(team_type& team, u32 first, u32 count)
    {
        const u32 grids = index_.grids(team);
        if (!index_.useful(grids)) return 0;
        const u32 most = count < batch_tasks ? count : batch_tasks;
        const auto slot_of = [&](u32 task) { return decoded_.peek(first + task); };
        const auto task_of = [](u32 k) { return k / pool_block_entries; };
        typename P::template lane_array<u32, 1> numbers; // in the pool
        typename P::template lane_array<table_entry, 1> entries;
        const u32 unable = team.mask32([&](u32 k) {
            numbers.at(0, k) = no_access;
            if (task_of(k) >= most) return true;
            const u32 slot = slot_of(task_of(k));
            if (P::get(s_.heads[slot]).whole_memory()) return true;
            const u32 block = P::get(s_.first_block[slot]);
            if (block == no_block) return false;
            const pool_tag tag{P::get(s_.pool_tags[block])};
            if (tag.after() != 0 || P::get(s_.pool_next[block]) != no_block) return true;
            if (tag.memory() >> k % pool_block_entries & 1) {
                numbers.at(0, k) = block * pool_block_entries + k % pool_block_entries;
                entries.at(0, k) = s_.pool_entry(block, k % pool_block_entries);
                return access_index<P>::class_of(entries.at(0, k)) == index_other;
            }
            return false;
        });
        const u32 registered = team.mask32([&](u32 k) { return numbers.at(0, k) != no_access && entries.at(0, k).registered(); });
        const u32 raw = team.mask32([&](u32 k) { return numbers.at(0, k) != no_access && !entries.at(0, k).registered(); });
        // One kind at a time: two kinds meet only where everything is compared with everything.
        const bool by_handle = registered != 0 && (raw == 0 || lowest_bit(registered) < lowest_bit(raw));
        if ((registered | raw) != 0 && !index_.can_find(by_handle, grids)) return 0;
        const u32 foreign = unable | (by_handle ? raw : registered);
        u32 tasks = foreign == 0 ? batch_tasks : task_of(lowest_bit(foreign));
        u32 dead = 0;
        SLIPSTREAM_ONE_COPY
        for (;;) {
            if (tasks == 0) return 0;
            const u32 able = find_predecessors(team, first, tasks, grids, numbers, entries, dead);
            if (able == tasks) break;
            tasks = able; // the index could not tell of the next one
            wary_ = tasks == 0 ? wary_tasks : 1;
        }
        supersede(team, tasks, grids, numbers, entries);
        u32 words_complement = ~0u; // its minimum is the maximum of what it is the complement of
        team.each32([&](u32 k) {
            if (task_of(k) >= tasks) return;
            if (k % pool_block_entries == 0) {
                const u32 slot = slot_of(task_of(k));
                team.set_bits(s_.exposed[slot / 32], 1u << slot % 32);
                admitted_.put_ahead(task_of(k), slot | ((s_.orders[3] >> task_of(k) & 1) != 0 ? 0 : admitted_free));
            }
            if (numbers.at(0, k) == no_access || (dead >> k & 1)) return;
            team.set_bits(s_.live[numbers.at(0, k) / 32], 1u << numbers.at(0, k) % 32);
            index_.enter(team, entries.at(0, k), numbers.at(0, k), true);
            const u32 words = numbers.at(0, k) / 32 + 1;
            words_complement = ~words < words_complement ? ~words : words_complement;
        });
        const u32 words = ~team.reduce_min(words_complement);
        words_ = words < words_ ? words_ : words;
        admitted_.advance(tasks);
        team.sync();
        return tasks;
    }

    /// Fills the rows of a batch, and orders[3] with the tasks that wait for anybody. `dead`: accesses that a later write of the batch
    /// covers. Returns for how many tasks the index could tell; if not for all, the rows are to be filled again for those.
    template <class Numbers, class Entries>
    SLIPSTREAM_BOTH u32 find_predecessors(team_type& team, u32 first, u32 tasks, u32 grids, Numbers& numbers, Entries& entries, u32& dead)
    {
        const u32 groups = m_.n.groups();
        const auto task_of = [](u32 k) { return k / pool_block_entries; };
        const auto slot_of = [&](u32 task) { return decoded_.peek(first + task); };
        const auto row_of = [&](u32 task) { return s_.predecessors + (admitted_.position() + task) % admitted_max * groups; };
        const auto wait = [&](u32 task, u32 slot) {
            team.set_bits(row_of(task)[slot / 32], 1u << slot % 32);
            team.set_bits(s_.orders[3], 1u << task);
        };
        team.sync();
        team.each32([&](u32 k) {
            if (task_of(k) >= tasks) return;
            SLIPSTREAM_ONE_COPY
            for (u32 g = k % pool_block_entries; g < groups; g += pool_block_entries) P::set(row_of(task_of(k))[g], 0u);
        });
        if (team.leader()) s_.orders[3] = 0;
        team.sync();
        const auto takes_part = [&](u32 k) { return numbers.at(0, k) != no_access && task_of(k) < tasks; };
        typename P::template lane_array<u32, 1> before; // tasks of the batch to wait for; bit 31: covered by a write of one of these
        team.each32([&](u32 k) { before.at(0, k) = 0; });
        dead = 0;
        if (may_meet(team, takes_part, entries)) {
            // Each write against everybody, in program order.
            SLIPSTREAM_ONE_COPY
            for (u32 writes = team.mask32([&](u32 k) { return takes_part(k) && entries.at(0, k).writes(); }); writes != 0; writes &= writes - 1) {
                const u32 writer = task_of(lowest_bit(writes));
                const u32 number = team.from_lane(numbers, lowest_bit(writes));
                const table_entry write = s_.pool_entry(number / pool_block_entries, number % pool_block_entries);
                const u32 met = team.mask32([&](u32 k) {
                    return takes_part(k) && task_of(k) != writer && access_index<P>::meets(write, entries.at(0, k));
                });
                if (met == 0) continue;
                const u32 covers = team.mask32([&](u32 k) { return (met >> k & 1) && access_index<P>::covers(write, entries.at(0, k)); });
                team.each32([&](u32 k) {
                    if (!(met >> k & 1)) return;
                    // Whoever meets this access and came before that write meets the write, too.
                    if (task_of(k) > writer) before.at(0, k) = (covers >> k & 1 ? covered : before.at(0, k)) | 1u << writer;
                    else if (!entries.at(0, k).writes() && !(dead >> k & 1)) wait(writer, slot_of(task_of(k)));
                });
                dead |= covers & ((1u << pool_block_entries * writer) - 1);
            }
        }
        const u32 unknown = team.mask32([&](u32 k) {
            if (!takes_part(k)) return false;
            SLIPSTREAM_ONE_COPY
            for (u32 bits = before.at(0, k) & ~covered; bits != 0; bits &= bits - 1) wait(task_of(k), slot_of(lowest_bit(bits)));
            if (before.at(0, k) & covered) return false;
            return !index_.find(entries.at(0, k), grids, [&](const table_entry&, u32 number) {
                wait(task_of(k), pool_tag{P::get(s_.pool_tags[number / pool_block_entries])}.slot());
            });
        });
        return unknown == 0 ? tasks : task_of(lowest_bit(unknown));
    }

    /// Does perhaps a write of one task meet an access of another? By the cells that they touch of a grid so coarse that each touches two at
    /// most, neighbours: one with an even and one with an odd number.
    template <class TakesPart, class Entries>
    SLIPSTREAM_BOTH bool may_meet(team_type& team, TakesPart takes_part, Entries& entries) const
    {
        u32 finest = ~0u;
        typename P::template lane_array<u32, 1> even, odd;
        team.each32([&](u32 k) {
            if (takes_part(k) && !entries.at(0, k).registered()) {
                const u32 grid = ~access_index<P>::class_of(entries.at(0, k)); // its minimum is that of the coarsest
                finest = grid < finest ? grid : finest;
            }
        });
        const u32 grid = ~team.reduce_min(finest);
        const u32 writes = team.mask32([&](u32 k) {
            even.at(0, k) = odd.at(0, k) = 0xfffff000u | k; // nobody else's
            if (!takes_part(k)) return false;
            const table_entry& e = entries.at(0, k);
            if (e.registered()) {
                even.at(0, k) = access_index<P>::cell_key(e.begin());
            } else {
                const u64 first = e.begin() >> access_index<P>::shift_of(grid);
                const u64 last = (e.end() - 1) >> access_index<P>::shift_of(grid);
                if (first != last || (first & 1) == 0) even.at(0, k) = access_index<P>::cell_key(first + (first & 1));
                if (first != last || (first & 1) != 0) odd.at(0, k) = access_index<P>::cell_key(first | 1);
            }
            return e.writes();
        });
        const auto others = [&](u32 k, u32 alike) { // that share a cell, one of the two writing
            return alike & ~(15u << k / pool_block_entries * pool_block_entries) & (writes >> k & 1 ? ~0u : writes);
        };
        team.alike(even);
        team.alike(odd);
        return team.mask32([&](u32 k) { return others(k, even.at(0, k) | odd.at(0, k)) != 0; }) != 0;
    }

    /// Old accesses that a write of the batch covers are live no more. After all lookups of the batch.
    template <class Numbers, class Entries>
    SLIPSTREAM_BOTH void supersede(team_type& team, u32 tasks, u32 grids, Numbers& numbers, Entries& entries)
    {
        if (s_.orders[3] == 0) return; // nobody met anything
        team.each32([&](u32 k) {
            if (numbers.at(0, k) == no_access || k / pool_block_entries >= tasks || !entries.at(0, k).writes()) return;
            index_.find(entries.at(0, k), grids, [&](const table_entry& old, u32 number) {
                if (!access_index<P>::covers(entries.at(0, k), old)) return;
                if (team.clear_bits(s_.live[number / 32], 1u << number % 32) >> number % 32 & 1) index_.remove(team, old, number);
            });
        });
        team.sync();
    }

    static constexpr u32 covered = 1u << 31;

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u32, edge::A3_decoded, edge::R3_taken> decoded_;
    queue_producer<P, u32, edge::R10_admitted, edge::A10_linked> admitted_;
    queue_consumer<P, u32, edge::A11_finished, edge::R11_taken> finished_;
    queue_producer<P, u32, edge::R2_slot_freed, edge::A2_slot_taken> free_;
    access_index<P> index_;
    // Equal on all lanes.
    u32 whole_; ///< slot + 1 of the exposed whole-memory task; 0: none
    u32 words_; ///< words of `live` in use
    u32 wary_ = 0; ///< tasks that are not to be looked up
};

} // namespace slipstream::device
