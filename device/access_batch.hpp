// A batch of tasks that admission takes at once: who waits for whom, among them and among the live accesses.
//
// One lane has one access. A team takes the accesses of team_blocks pool blocks, the teams of a crew take a batch of up to
// batch_max blocks together, in steps with a barrier between them; a batch that one team can take by itself is spared the crew's.
//
// STEPS   1 every access is marked in the cells of a small table that it touches, with the bit of its task; not so where
//           the batch is one task
//         2 by the handle book (handle_book.hpp), if it is open and all accesses are by handle: a cell is a handle then, its
//           masks say which tasks of the batch come before, the page of the handle says who else, and steps 3 and 4 have next to
//           nothing to do. While it is open a batch is taken in as if it were so; where some access is not, that is known behind
//           step 1, which begins anew.
//           Otherwise an access looks at the tasks before it that share a cell, the last one first, up to one that covers it; who
//           is covered by a write of the batch has no need to look further. The others are looked up in the access index.
//         3 those of which the index cannot tell are compared with all live accesses: 32 old ones a word, a lane each,
//           against four new ones at a time, bounding ranges first; the lanes then look at their hits again, exactly. The
//           teams share the words.
//         4 old accesses that a write covers are superseded; what is left of the batch's own becomes live and enters the index.
// COST    without the book, in cycles of a batch of 22 tasks of a stencil, four handles each, three teams (H200, a build with
//         clock reads): 7300 where nothing they meet is live any more, 12 900 where all of it is; of a batch by four teams step 1
//         took 3000 (750 of it to resolve the handles), looking 2300, entering 1600. Forgetting the accesses of 24 finished tasks
//         2000. Four accesses that the index cannot tell of: 45 instructions for each word. Barriers: two by the book; three
//         without, four with step 3, two more where the batch closes the book.
// OWNERS  who carries out an order of the leading team, which lays out the next one in the other half meanwhile. Words of rows,
//         masks and the index are shared by set_bits, clear_bits, add and claim.
#pragma once
#include "device/access_index.hpp"
#include "device/entry_resolver.hpp"
#include "device/handle_book.hpp"

namespace slipstream::device {

template <class P>
class access_batch {
public:
    using team_type = typename P::team;

    static constexpr u32 team_blocks = 32 / pool_block_entries;

    SLIPSTREAM_BOTH access_batch(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), index_(memory, state), book_(memory, state), resolver_(memory, state)
    {
    }

    /// What the leading team has put into a half of batch_slots, batch_blocks and batch_spans, and where it belongs.
    struct extent {
        u32 tasks;
        u32 blocks; ///< of all of them
        u32 row;    ///< place of the first task in the admitted queue
        u32 words;  ///< of `live` in use, without what this batch brings
        u32 before; ///< window slot of a task that all wait for, or no_slot
        u32 goes_on; ///< 1: the task, it is one, has more blocks
        u32 half;
    };

    /// Task k of the batch: its window slot. Entry k of its pool blocks: the block.
    SLIPSTREAM_BOTH u32 slot(const extent& batch, u32 k) const { return s_.batch_slots[batch.half * batch_max + k]; }
    SLIPSTREAM_BOTH u32 block(const extent& batch, u32 k) const { return s_.batch_blocks[batch.half * batch_max + k] & block_mask; }
    /// Finished task k of those that the order in `half` forgets: by a lane.
    SLIPSTREAM_BOTH void set_finished(u32 half, u32 k, u32 slot, u32 first_block) const
    {
        s_.finished_slots[half * batch_max + k] = slot;
        s_.finished_blocks[half * batch_max + k] = first_block;
    }
    SLIPSTREAM_BOTH u32 finished_slot(u32 half, u32 k) const { return s_.finished_slots[half * batch_max + k]; }
    /// The tasks of the batch that wait for anybody, a bit each.
    SLIPSTREAM_BOTH u32 waiting(const extent& batch) const { return mark_of(batch.half, waiting_tasks); }

    /// By the leading team: lays out slot_of(0), slot_of(1), ... as many as there are up to `count` <= 32 and as take their turn
    /// in a batch of at most `most` blocks. Whole-memory tasks do not, and one with `after` entries only as the first and last. Of
    /// a first one with more blocks so many, behind `taken` ones; `rest`: the block to begin with, or no_block. Row, words and
    /// before are the caller's to set.
    template <class SlotOf>
    SLIPSTREAM_BOTH extent lay_out(team_type& team, u32 count, u32 most, u32 rest, u32 taken, u32 half, SlotOf slot_of) const
    {
        lane_values slots, blocks, before;
        const u32 several = team.mask32([&](u32 k) {
            blocks.at(0, k) = slots.at(0, k) = 0;
            if (k >= count) return false;
            slots.at(0, k) = slot_of(k);
            const task_head head = P::get(s_.heads[slots.at(0, k)]);
            blocks.at(0, k) = (head.entries() + pool_block_entries - 1) / pool_block_entries;
            if (k == 0) blocks.at(0, k) -= taken;
            if (head.whole_memory()) blocks.at(0, k) = unable;
            return blocks.at(0, k) > 1;
        });
        if (several == 0) {
            const u32 ones = team.mask32([&](u32 k) { return blocks.at(0, k) != 0; });
            team.each32([&](u32 k) { before.at(0, k) = popcount(ones & low_bits(k)); });
        } else {
            team.each32([&](u32 k) { before.at(0, k) = blocks.at(0, k); });
            team.sums_before(before);
        }
        bool alone = false; // of the first lane
        const u32 able = team.mask32([&](u32 k) {
            if (k >= count || (k != 0 && before.at(0, k) + blocks.at(0, k) > most)) return false;
            const u32 slot = slots.at(0, k);
            const u32 mine = blocks.at(0, k) < most ? blocks.at(0, k) : most;
            s_.batch_slots[half * batch_max + k] = slot;
            s_.batch_spans[half * batch_max + k] = before.at(0, k) | mine << 8 | (k == 0 ? taken << 16 : 0);
            u32 block = k == 0 && rest != no_block ? rest : P::get(s_.first_block[slot]);
            if (block != no_block && pool_tag{P::get(s_.pool_tags[block])}.after() != 0) { // they come first
                if (k != 0) return false;
                alone = true;
            }
            SLIPSTREAM_ONE_COPY
            for (u32 j = 0; j < mine; ++j, block = P::get(s_.pool_next[block]))
                s_.batch_blocks[half * batch_max + before.at(0, k) + j] = block | k << task_shift;
            return true;
        });
        if (team.leader())
            mark_of(half, waiting_tasks) = mark_of(half, scans_due) =
                mark_of(half, covered_count) = mark_of(half, not_by_handle) = 0;
        const u32 first_blocks = team.from_lane(blocks, 0);
        const bool goes_on = first_blocks > most;
        const u32 tasks = team.any(alone) || taken != 0 || goes_on ? 1 : able == ~0u ? 32 : lowest_bit(~able);
        const u32 all = team.from_lane(before, tasks - 1) + team.from_lane(blocks, tasks - 1);
        return {tasks, goes_on ? most : all, 0, 0, 0, static_cast<u32>(goes_on), half};
    }

    /// By each team `number` of `teams`, of a batch that lies ready: fills its rows and brings its accesses into the table. sync()
    /// is a barrier of all teams that take part.
    template <class Sync>
    SLIPSTREAM_BOTH void run(team_type& team, u32 number, u32 teams, const extent batch, Sync sync)
    {
        half_ = batch.half;
        live_ = index_.look_around(team); // before the first barrier: nobody changes it till the last
        const bool whole_tasks = batch.goes_on == 0 && span_of(0) >> 16 == 0;
        const bool open = book_.open(), worn = book_.worn();
        access_lanes mine;
        if (span_of(0) >> 16 == 0) begin_rows(team, number, teams, batch);
        if (team.leader()) s_.batch_dead[number] = 0;
        const bool booked = open && whole_tasks && take_in(team, number, batch, mine, sync);
        const bool several = batch.tasks > 1 || booked; // else nothing of the batch comes before any access
        if (!booked) {
            const u32 grid = prepare(team, number, teams, batch, mine, sync);
            leave_book(team, number, teams, open, worn, grid == by_begin ? batch.tasks : 0, sync);
            if (several) mark_cells(team, grid, mine);
            sync();
        }
        look(team, number, batch, several, booked, mine);
        sync();
        if (several) clear_cells(team, mine);
        if (mark(scans_due) != 0) {
            compare_with_all(team, number, teams, batch);
            sync();
        }
        if (mark(covered_count) != 0) supersede(team, number, teams);
        if (booked && number == 0)
            team.each32([&](u32 k) {
                if (k < batch.tasks && (span_of(k) >> 8 & 0xff) != 0) // who has no access is nowhere
                    book_.set_booked(team, batch_slot(k));
            });
        enter(team, number, live_.useful, booked, mine);
    }

    /// By a lane: the task at `place` of the admitted queue waits for the one in `slot`. Its row has each once; the first ones it
    /// names stand beside it.
    SLIPSTREAM_BOTH void set_wait(team_type& team, u32 place, u32 slot) const
    {
        const u32 bit = 1u << slot % 32;
        const u32 before = team.set_bits(s_.predecessors[place * m_.n.groups() + slot / 32], bit);
        if ((before & bit) != 0) return;
        const u32 nth = team.add(s_.named_count[place], 1);
        if (nth < waits_max) P::set(s_.named[place * waits_max + nth], static_cast<u16>(slot));
    }

    /// By each team, of so many finished `tasks` in `half`: their accesses are live no more, and the book forgets them.
    SLIPSTREAM_BOTH void forget(team_type& team, u32 number, u32 teams, u32 half, u32 tasks)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = number * team_blocks; first < tasks; first += teams * team_blocks) {
            lane_values block, numbers, slot;
            const u32 with_accesses = team.mask32([&](u32 k) {
                const u32 task = first + k / pool_block_entries;
                block.at(0, k) = task < tasks ? s_.finished_blocks[half * batch_max + task] : no_block;
                slot.at(0, k) = task < tasks ? finished_slot(half, task) : 0;
                return block.at(0, k) != no_block;
            });
            if (with_accesses == 0) continue;
            const u32 booked = with_accesses & team.mask32([&](u32 k) { return book_.is_booked(slot.at(0, k)); });
            if (booked != 0) {
                const u32 spilled = team.mask32([&](u32 k) { return book_.is_spilled(slot.at(0, k)); });
                team.sync(); // all have looked
                team.each32([&](u32 k) {
                    if (!(booked >> k & 1)) return;
                    if (!(spilled >> k & 1)) block.at(0, k) = no_block;
                    if (k % pool_block_entries == 0) book_.take_out(team, slot.at(0, k));
                });
            }
            SLIPSTREAM_ONE_COPY
            while (team.mask32([&](u32 k) { return block.at(0, k) != no_block; }) != 0) {
                const u32 lanes = team.mask32([&](u32 k) {
                    if (block.at(0, k) == no_block) return false;
                    const u32 at = numbers.at(0, k) = block.at(0, k) * pool_block_entries + k % pool_block_entries;
                    block.at(0, k) = P::get(s_.pool_next[block.at(0, k)]);
                    return (s_.live[at / 32] >> at % 32 & 1) != 0;
                });
                if (lanes != 0) remove(team, lanes, numbers);
            }
        }
    }

private:
    using lane_values = typename P::template lane_array<u32, 1>;
    static constexpr u32 unable = 0x400; ///< blocks of a task that takes no part
    static constexpr u32 task_shift = 24;
    static constexpr u32 block_mask = (1u << task_shift) - 1;
    static constexpr u32 no_access = ~0u;
    static constexpr u32 every_byte = index_grids; ///< a grid of one cell
    static constexpr u32 some_raw = 1u << 31;
    static constexpr u32 by_begin = ~0u; ///< in place of a grid: handles are the same memory or disjoint,
                                         ///< where they begin is enough

    /// Words of batch_marks.
    enum mark_word : u32 {
        waiting_tasks, ///< a bit a task: it waits for somebody
        scans_due,     ///< entries of batch_scans
        covered_count, ///< bits ever set in `covered`
        not_by_handle, ///< the book cannot tell of this batch
    };

    static_assert(not_by_handle < batch_marks_max);

    SLIPSTREAM_BOTH u32& mark_of(u32 half, mark_word m) const { return s_.batch_marks[half * batch_marks_max + m]; }
    // Of the half in hand.
    SLIPSTREAM_BOTH u32& mark(mark_word m) const { return mark_of(half_, m); }
    SLIPSTREAM_BOTH u32 batch_slot(u32 task) const { return s_.batch_slots[half_ * batch_max + task]; }
    SLIPSTREAM_BOTH u32 span_of(u32 task) const { return s_.batch_spans[half_ * batch_max + task]; }
    SLIPSTREAM_BOTH u32 batch_block(u32 b) const { return s_.batch_blocks[half_ * batch_max + b]; }

    /// An access a lane.
    struct access_lanes {
        typename P::template lane_array<table_entry, 1> entries;
        lane_values numbers; ///< in the pool, or no_access
        lane_values tasks;   ///< of the batch
        lane_values cells;   ///< two, 16 bits each
        lane_values handles; ///< in the book
        typename P::template lane_array<handle_page, 1> pages; ///< likewise
        lane_values spilled; ///< the book has no room for it

        SLIPSTREAM_BOTH bool there(u32 k) { return numbers.at(0, k) != no_access; }
    };

    /// Four accesses of a task, taken apart once: the loop over old accesses is a few instructions a pair.
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

    /// By each team: compares accesses `memory` of a pool block with its share of the live ones, in words of `live` in use.
    /// met(slot of the task it belongs to, word, bit, covered), by lanes, for each in conflict.
    template <class Met>
    SLIPSTREAM_BOTH void compare(team_type& team, u32 number, u32 teams, u32 block, u32 memory, u32 words, Met met) const
    {
        if (memory == 0) return;
        const probe mine(s_, block, memory);
        // Word j of a turn is this team's j-th.
        SLIPSTREAM_ONE_COPY
        for (u32 first = number; first < words; first += 32 * teams) {
            const auto word_of = [&](u32 j) { return first + j * teams; };
            const u32 used = team.mask32([&](u32 k) { return word_of(k) < words && s_.live[word_of(k)] != 0; });
            team.each_hit(
                used,
                [&](u32 j, u32 k) {
                    const u32 w = word_of(j);
                    return (s_.live[w] >> k & 1) && mine.may_conflict(s_.word_entry(w, k));
                },
                [&](u32 j, u32 k) {
                    const u32 w = word_of(j);
                    const table_entry old = s_.word_entry(w, k);
                    exact_result r{true, mine.covers(old)};
                    if (mine.rect_mask != 0 || old.is_rect())
                        r = compare_exactly(block, memory, old, P::get(s_.pool_shapes[32 * w + k]));
                    if (r.conflicts)
                        met(pool_tag{P::get(s_.pool_tags[w * pool_word_blocks + k / pool_block_entries])}.slot(), w, k, r.covers);
                });
        }
    }

    /// The accesses of these lanes are live no more.
    SLIPSTREAM_BOTH void remove(team_type& team, u32 lanes, lane_values& numbers) const
    {
        team.each32([&](u32 k) {
            if (lanes >> k & 1) team.clear_bits(s_.live[numbers.at(0, k) / 32], 1u << numbers.at(0, k) % 32);
        });
        index_.remove_all(team, lanes, numbers);
    }

    struct exact_result {
        bool conflicts;
        bool covers;
    };

    /// The same, exactly, where a rectangle takes part.
    SLIPSTREAM_BOTH exact_result compare_exactly(u32 block, u32 memory, const table_entry& old, u64 old_shape) const
    {
        exact_result out{false, false};
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < pool_block_entries; ++i) {
            if (!(memory >> i & 1)) continue;
            const u32 r = compare_two(s_.pool_entry(block, i), P::get(s_.pool_shapes[block * pool_block_entries + i]),
                                      old, old_shape);
            out.conflicts |= (r & 1) != 0;
            out.covers |= (r & 2) != 0;
        }
        return out;
    }

    /// How two accesses lie, of which one is a rectangle, when the second comes before the first. Bit 0: conflict; 1: the first
    /// covers the second; 2: the other way round; a write covers. Out of line: rare, and long. By value: an object whose address
    /// is taken would lie in local memory.
    SLIPSTREAM_BOTH_RARE static u32 compare_two(const table_entry mine, u64 shape, const table_entry old, u64 old_shape)
    {
        if (mine.is_tile() && old.is_tile())
            return mine.begin() != old.begin()
                ? 0
                : static_cast<u32>(mine.writes() || old.writes()) | mine.writes() << 1 | old.writes() << 2;
        const abi::access_entry a = mine.access(shape), b = old.access(old_shape);
        return static_cast<u32>(abi::conflicts(a, b)) | (mine.writes() && abi::covers(a, b)) << 1
            | (old.writes() && abi::covers(b, a)) << 2;
    }

    /// By each team, of a batch of whole tasks while the book is open: takes its accesses in as if all of the batch were by
    /// handle, with their pages, and marks each in the cell of its handle: of a cell it alone is. True if so it is; else the batch
    /// is to be prepared anew. Pages, and what the handles name, are on their way meanwhile.
    template <class Sync>
    SLIPSTREAM_BOTH bool take_in(team_type& team, u32 number, const extent& batch, access_lanes& mine, Sync sync) const
    {
        typename P::template lane_array<known_handle, 1> named;
        lane_values left; // to be resolved, 1; of a block with such, 2
        const u32 others = team.mask32([&](u32 k) {
            mine.numbers.at(0, k) = no_access;
            mine.tasks.at(0, k) = mine.cells.at(0, k) = mine.handles.at(0, k) = mine.spilled.at(0, k) = left.at(0, k) = 0;
            mine.pages.at(0, k) = {}; // or the compiler carries along what was there before
            named.at(0, k) = {};
            const u32 b = number * team_blocks + k / pool_block_entries;
            if (b >= batch.blocks) return false;
            const u32 i = k % pool_block_entries;
            const u32 block = batch_block(b) & block_mask;
            const u32 at = block * pool_block_entries + i;
            const pool_tag tag{P::get(s_.pool_tags[block])};
            const table_entry entry = mine.entries.at(0, k) = s_.pool_entry(block, i);
            mine.tasks.at(0, k) = batch_block(b) >> task_shift;
            if (tag.unresolved() != 0) {
                left.at(0, k) = 2;
                if (!(tag.unresolved() >> i & 1)) return false;
                left.at(0, k) = 3;
                if (!unresolved_entry::is_handle(entry)) return entry_resolver<P>::is_memory(entry);
                mine.handles.at(0, k) = unresolved_entry::handle_of(entry);
                named.at(0, k) = resolver_.of_handle(mine.handles.at(0, k));
            } else {
                if (!(tag.memory() >> i & 1)) return false;
                if (!entry.registered()) return true;
                mine.handles.at(0, k) = P::get(s_.pool_handles[at]);
            }
            mine.pages.at(0, k) = book_.page(mine.handles.at(0, k));
            mine.numbers.at(0, k) = at;
            return false;
        });
        team.each32([&](u32 k) {
            if (!mine.there(k)) return;
            const bool writes = left.at(0, k) != 0 ? unresolved_entry::writes(mine.entries.at(0, k))
                                                   : mine.entries.at(0, k).writes();
            const u32 at = mark_cell(team, mine.handles.at(0, k) + 1, mine.tasks.at(0, k), writes);
            mine.cells.at(0, k) = at | at << 16;
        });
        if (others != 0 && team.leader()) team.set_bits(mark(not_by_handle), 1);
        const u32 there = team.mask32([&](u32 k) {
            if (!(left.at(0, k) & 1)) return false;
            const u32 b = number * team_blocks + k / pool_block_entries;
            mine.entries.at(0, k) = resolve(b, k, mine.tasks.at(0, k), mine.entries.at(0, k), named.at(0, k));
            return entry_resolver<P>::is_memory(mine.entries.at(0, k));
        });
        team.each32([&](u32 k) {
            if (left.at(0, k) != 0 && k % pool_block_entries == 0)
                set_resolved(number * team_blocks + k / pool_block_entries, there >> k);
        });
        sync();
        if (mark(not_by_handle) == 0) return true;
        clear_cells(team, mine);
        return false;
    }

    /// By a lane: resolves `entry` of block b of the batch, of the task numbered so. `h`: see entry_resolver::named_by().
    SLIPSTREAM_BOTH table_entry resolve(u32 b, u32 k, u32 task, const table_entry& entry, const known_handle& h) const
    {
        const u32 i = k % pool_block_entries;
        const u32 slot = batch_slot(task), span = span_of(task);
        const u32 member = (b - (span & 0xff) + (span >> 16)) * pool_block_entries + i;
        return resolver_.resolve(entry, h, slot, P::get(s_.heads[slot]).slot_and_type >> 16,
                                 batch_block(b) & block_mask, i, member);
    }
    /// By a lane: no entry of that block is left to be resolved; `memory`: in its lowest bits, those that are accesses.
    SLIPSTREAM_BOTH void set_resolved(u32 b, u32 memory) const
    {
        const u32 block = batch_block(b);
        P::set(s_.pool_tags[block & block_mask],
               pool_tag::make(batch_slot(block >> task_shift), memory & ((1u << pool_block_entries) - 1), 0).word);
    }

    /// Takes the accesses in. Returns a grid on which each touches two cells at most; by_begin: all of them are by handles.
    template <class Sync>
    SLIPSTREAM_BOTH u32 prepare(team_type& team, u32 number, u32 teams, const extent& batch, access_lanes& mine, Sync sync) const
    {
        lane_values complements; // of grids: their minimum is that of the coarsest
        lane_values tags;        // to be written; 0: none
        const u32 there = team.mask32([&](u32 k) {
            mine.numbers.at(0, k) = no_access;
            mine.tasks.at(0, k) = mine.cells.at(0, k) = mine.spilled.at(0, k) = tags.at(0, k) = 0;
            complements.at(0, k) = ~0u;
            const u32 b = number * team_blocks + k / pool_block_entries;
            if (b >= batch.blocks) return false;
            const u32 i = k % pool_block_entries;
            const u32 block = batch_block(b) & block_mask;
            const u32 task = batch_block(b) >> task_shift;
            const pool_tag tag{P::get(s_.pool_tags[block])};
            mine.tasks.at(0, k) = task;
            mine.numbers.at(0, k) = block * pool_block_entries + i;
            const table_entry entry = s_.pool_entry(block, i);
            if (tag.unresolved() == 0) {
                mine.entries.at(0, k) = entry;
                return (tag.memory() >> i & 1) != 0;
            }
            tags.at(0, k) = 1;
            if (!(tag.unresolved() >> i & 1)) return false;
            mine.entries.at(0, k) = resolve(b, k, task, entry, resolver_.named_by(entry));
            return entry_resolver<P>::is_memory(mine.entries.at(0, k));
        });
        const u32 raw = team.mask32([&](u32 k) {
            if (tags.at(0, k) != 0 && k % pool_block_entries == 0)
                set_resolved(number * team_blocks + k / pool_block_entries, there >> k);
            if (!(there >> k & 1)) {
                mine.numbers.at(0, k) = no_access;
                return false;
            }
            complements.at(0, k) = ~access_index<P>::grid_of(mine.entries.at(0, k));
            return !mine.entries.at(0, k).registered();
        });
        u32 lowest_complement = ~0u;
        team.each32([&](u32 k) {
            if (complements.at(0, k) < lowest_complement) lowest_complement = complements.at(0, k);
        });
        lowest_complement = team.reduce_min(lowest_complement);
        if (team.leader()) s_.batch_grids[number] = ~lowest_complement | (raw != 0 ? some_raw : 0);
        sync();
        u32 grid = 0;
        bool all_registered = true;
        SLIPSTREAM_ONE_COPY
        for (u32 t = 0; t < teams; ++t) {
            const u32 of_team = s_.batch_grids[t];
            all_registered &= (of_team & some_raw) == 0;
            grid = (of_team & ~some_raw) > grid ? of_team & ~some_raw : grid;
        }
        return all_registered ? by_begin : grid;
    }

    /// The first or last cell that an access touches, of a grid so coarse that each touches two at most, neighbours; in
    /// few bits, not 0.
    SLIPSTREAM_BOTH static u32 cell_of(const table_entry& e, u32 grid, bool last)
    {
        if (grid != by_begin && grid >= every_byte) return 1;
        const u64 at = last ? e.end() - 1 : e.begin();
        const u32 key = access_index<P>::cell_key(grid == by_begin ? e.begin() : at >> access_index<P>::shift_of(grid));
        return key != 0 ? key : 1;
    }

    /// Each access takes places in the table of cells, and marks them with its task. Open addressing: a place has one cell only.
    SLIPSTREAM_BOTH void mark_cells(team_type& team, u32 grid, access_lanes& mine) const
    {
        team.each32([&](u32 k) {
            if (!mine.there(k)) return;
            const table_entry e = mine.entries.at(0, k);
            const u32 first = cell_of(e, grid, false);
            const u32 last = cell_of(e, grid, true);
            const u32 at = mark_cell(team, first, mine.tasks.at(0, k), e.writes());
            mine.cells.at(0, k) = at | (last == first ? at : mark_cell(team, last, mine.tasks.at(0, k), e.writes())) << 16;
        });
    }
    SLIPSTREAM_BOTH u32 mark_cell(team_type& team, u32 key, u32 task, bool writes) const
    {
        constexpr u32 cells = 1u << batch_cells_bits;
        u32 at = (key * 0x9e3779b1u) >> (32 - batch_cells_bits);
        SLIPSTREAM_ONE_COPY
        while (!team.join(s_.batch_cells[at].key, key)) at = (at + 1) & (cells - 1);
        team.set_bits(writes ? s_.batch_cells[at].writers : s_.batch_cells[at].readers, 1u << task);
        return at;
    }
    static_assert(1u << batch_cells_bits >= 2 * 2 * batch_max * pool_block_entries, "never half full");

    SLIPSTREAM_BOTH void clear_cells(team_type& team, access_lanes& mine) const
    {
        team.each32([&](u32 k) {
            if (!mine.there(k)) return;
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < 2; ++i) s_.batch_cells[mine.cells.at(0, k) >> 16 * i & 0xffff] = batch_cell{};
        });
    }

    SLIPSTREAM_BOTH static u32 place_of(const extent& batch, u32 task) { return (batch.row + task) % admitted_max; }
    SLIPSTREAM_BOTH auto* row_of(const extent& batch, u32 task) const
    {
        return s_.predecessors + place_of(batch, task) * m_.n.groups();
    }

    SLIPSTREAM_BOTH void begin_rows(team_type& team, u32 number, u32 teams, const extent& batch) const
    {
        const u32 groups = m_.n.groups();
        team.each32([&](u32 k) {
            SLIPSTREAM_ONE_COPY
            for (u32 task = number * team_blocks + k / pool_block_entries; task < batch.tasks; task += teams * team_blocks) {
                SLIPSTREAM_ONE_COPY
                for (u32 g = k % pool_block_entries; g < groups; g += pool_block_entries)
                    P::set(row_of(batch, task)[g], batch.before / 32 == g ? 1u << batch.before % 32 : 0u);
                if (k % pool_block_entries != 0) continue;
                const u32 place = place_of(batch, task);
                P::set(s_.named_count[place], batch.before != no_slot ? 1u : 0u);
                P::set(s_.named[place * waits_max], static_cast<u16>(batch.before)); // read if it counts
            }
        });
        if (batch.before != no_slot && number == 0 && team.leader()) mark(waiting_tasks) = low_bits(batch.tasks);
    }

    SLIPSTREAM_BOTH void set_wait(team_type& team, const extent& batch, u32 task, u32 slot) const
    {
        set_wait(team, place_of(batch, task), slot);
    }
    /// The same of several, slots.slots[i] for each bit i of `which`, First <= i < End. Step after step for all of them: what the
    /// atomics return is not waited for one by one.
    template <u32 First, u32 End, class Slots>
    SLIPSTREAM_BOTH void set_waits(team_type& team, u32 place, const Slots& slots, u32 which) const
    {
        u32 anew = 0; // a bit for each that the row has not named before
        SLIPSTREAM_UNROLL
        for (u32 i = First; i < End; ++i) {
            const bool mine = (which >> i & 1) != 0;
            const u32 slot = mine ? slots.slots[i] : 0, bit = static_cast<u32>(mine) << slot % 32;
            anew |= static_cast<u32>((team.set_bits(s_.predecessors[place * m_.n.groups() + slot / 32], bit) & bit) != bit) << i;
        }
        if (anew == 0) return;
        const u32 first = team.add(s_.named_count[place], popcount(anew));
        SLIPSTREAM_UNROLL
        for (u32 i = First; i < End; ++i) {
            const u32 nth = first + popcount(anew & low_bits(i));
            if (!(anew >> i & 1) || nth >= waits_max) continue;
            P::set(s_.named[place * waits_max + nth], static_cast<u16>(slots.slots[i]));
        }
    }
    SLIPSTREAM_BOTH void note_covered(team_type& team, u32 number) const
    {
        const u32 bit = 1u << number % 32;
        if ((team.set_bits(s_.covered[number / 32], bit) & bit) != 0) return;
        const u32 at = team.add(mark(covered_count), 1);
        if (at < covered_max) s_.covered_list[at] = number;
        else team.clear_bits(s_.covered[number / 32], bit);
    }

    /// Step 2.
    SLIPSTREAM_BOTH void look(team_type& team, u32 number, const extent& batch, bool several, bool booked, access_lanes& mine) const
    {
        lane_values waiting;
        const bool nothing_live = live_.none();
        const bool few = booked && team.mask32([&](u32 k) { return handle_book<P>::has_many(mine.pages.at(0, k)); }) == 0;
        const u32 unknown = team.mask32([&](u32 k) {
            waiting.at(0, k) = 0;
            if (!mine.there(k)) return false;
            const auto wait = [&](u32 slot) {
                set_wait(team, batch, mine.tasks.at(0, k), slot);
                waiting.at(0, k) = 1;
            };
            const table_entry e = mine.entries.at(0, k);
            const u32 task = mine.tasks.at(0, k);
            if (booked) {
                const auto wait_for_all = [&](const auto& readers, u32 which) {
                    constexpr u32 first = handle_book<P>::few_readers;
                    set_waits<0, first>(team, place_of(batch, task), readers, which);
                    if (!few) set_waits<first, handle_page::readers_max>(team, place_of(batch, task), readers, which);
                    waiting.at(0, k) = 1;
                };
                const bool covered = look_up(team, k, mine, few, wait, wait_for_all);
                if (covered || nothing_live) return false;
            } else {
                u32 before = 0;
                SLIPSTREAM_UNROLL
                for (u32 i = 0; several && i < 2; ++i) {
                    const batch_cell cell = s_.batch_cells[mine.cells.at(0, k) >> 16 * i & 0xffff];
                    before |= cell.writers | (e.writes() ? cell.readers : 0);
                }
                // Whoever meets this access and came before a task that covers it meets that task, too.
                SLIPSTREAM_ONE_COPY
                for (before &= low_bits(task); before != 0; before &= ~(1u << highest_bit(before)))
                    if (meet(team, e, mine.numbers.at(0, k), highest_bit(before), wait)) return false;
            }
            return !index_.find(e, live_, [&](const table_entry& old, u32 at) {
                const u32 owner = pool_tag{P::get(s_.pool_tags[at / pool_block_entries])}.slot();
                if (owner != batch_slot(task)) wait(owner); // else it has more blocks than a batch
                if (e.writes() && access_index<P>::covers(e, old)) note_covered(team, at);
            });
        });
        note_waiting(team, mine, team.mask32([&](u32 k) { return waiting.at(0, k) != 0; }));
        if (unknown == 0) return;
        team.each32([&](u32 k) {
            const u32 of_block = unknown >> k & ((1u << pool_block_entries) - 1);
            if (k % pool_block_entries == 0 && of_block != 0)
                s_.batch_scans[team.add(mark(scans_due), 1)] = (number * team_blocks + k / pool_block_entries) | of_block << 8;
        });
    }

    /// By a lane, of an access that is booked: wait(slot), or of readers in the book wait_for_all(reader_slots, a bit for each), of
    /// whom it waits for by the batch and by the book; `few`: see standing_readers. True if a task of the batch before it writes
    /// the handle. One lane of those that use a handle enters who is to be found there from now on: any of them knows it.
    template <class Wait, class WaitForAll>
    SLIPSTREAM_BOTH bool look_up(team_type& team, u32 k, access_lanes& mine, bool few, Wait wait, WaitForAll wait_for_all) const
    {
        const bool writes = mine.entries.at(0, k).writes();
        const u32 task = mine.tasks.at(0, k);
        batch_cell& cell = s_.batch_cells[mine.cells.at(0, k) & 0xffff];
        const u32 writers = cell.writers, readers = cell.readers;
        handle_page page = mine.pages.at(0, k);
        // Of the batch: the last writer before this task, and who reads between the two.
        const u32 writers_before = writers & low_bits(task);
        const u32 since = readers & low_bits(task) & (writers_before != 0 ? ~low_bits(highest_bit(writers_before) + 1) : ~0u);
        const u32 standing = writers_before != 0 ? 0 : book_.standing_readers(page, few);
        if (writes && (since | standing) != 0) { // they wait for the writer
            SLIPSTREAM_ONE_COPY
            for (u32 bits = since; bits != 0; bits &= bits - 1) wait(batch_slot(lowest_bit(bits)));
            if (standing != 0) wait_for_all(book_.slots_of(page), standing);
        } else if (writers_before != 0) {
            wait(batch_slot(highest_bit(writers_before)));
        } else if (book_.stands(page.writer)) {
            wait(book_.slot_of(page.writer));
        }
        const u32 from_here = ~low_bits(task);
        if (!writes && (writers & from_here) == 0 && popcount(since) + popcount(standing) >= handle_page::readers_max) {
            mine.spilled.at(0, k) = 1;
            book_.set_spilled(team, batch_slot(task));
        }
        if (team.add(cell.entered, 1) != 0) return writers_before != 0;
        u32 kept = standing, further = readers;
        if (writers != 0) {
            const u32 last = highest_bit(writers);
            page.writer = book_.stamp(batch_slot(last));
            kept = 0;
            further &= ~low_bits(last + 1);
        }
        const auto enter_reader = [&](u32 i) {
            if (kept >> i & 1) return;
            page.readers[i] = further != 0 ? book_.stamp(batch_slot(lowest_bit(further))) : 0;
            further &= further - 1;
        };
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < handle_book<P>::few_readers; ++i) enter_reader(i);
        if (further != 0 || !few) {
            SLIPSTREAM_UNROLL
            for (u32 i = handle_book<P>::few_readers; i < handle_page::readers_max; ++i) enter_reader(i);
        }
        book_.set_page(mine.handles.at(0, k), page);
        return writers_before != 0;
    }

    /// By each team, of a batch that the book does not take in: what the book holds becomes live. Of the batch `by_handle` tasks
    /// name handles alone, all or none.
    template <class Sync>
    SLIPSTREAM_BOTH void leave_book(team_type& team, u32 number, u32 teams, bool open, bool worn, u32 by_handle, Sync sync)
    {
        if (open || worn) {
            make_live(team, number, teams);
            // Beside a team that is not through with the book yet: what that one still counts up is wiped with its page, or says
            // once more that the book is worn, and it is wiped again.
            if (worn) book_.wipe(team, number, teams);
            sync();
            live_ = index_.look_around(team);
        }
        if (number == 0 && team.leader()) book_.passed(by_handle);
    }

    /// By each team: the accesses of booked tasks become live.
    SLIPSTREAM_BOTH void make_live(team_type& team, u32 number, u32 teams) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = number * team_blocks; first < m_.n.window; first += teams * team_blocks) {
            lane_values block, numbers;
            typename P::template lane_array<table_entry, 1> entries;
            const auto slot_of = [&](u32 k) { return first + k / pool_block_entries; };
            const u32 any = team.mask32([&](u32 k) {
                block.at(0, k) = book_.is_booked(slot_of(k)) ? P::get(s_.first_block[slot_of(k)]) : no_block;
                return block.at(0, k) != no_block;
            });
            if (any == 0) continue;
            SLIPSTREAM_ONE_COPY
            while (team.mask32([&](u32 k) { return block.at(0, k) != no_block; }) != 0) {
                const u32 lanes = team.mask32([&](u32 k) {
                    if (block.at(0, k) == no_block) return false;
                    const u32 i = k % pool_block_entries;
                    const u32 at = numbers.at(0, k) = block.at(0, k) * pool_block_entries + i;
                    const u32 memory = pool_tag{P::get(s_.pool_tags[block.at(0, k)])}.memory();
                    entries.at(0, k) = s_.pool_entry(block.at(0, k), i);
                    block.at(0, k) = P::get(s_.pool_next[block.at(0, k)]);
                    // those that the book had no room for are live
                    return (memory >> i & 1) != 0 && !(s_.live[at / 32] >> at % 32 & 1);
                });
                bring_in(team, lanes, entries, numbers, live_.useful);
            }
            team.each32([&](u32 k) {
                if (k % pool_block_entries == 0 && book_.is_booked(slot_of(k))) book_.take_out(team, slot_of(k));
            });
        }
    }

    /// The tasks of these lanes wait for somebody. A word for all tasks: four lanes at a time, or the teams would stand in line.
    SLIPSTREAM_BOTH void note_waiting(team_type& team, access_lanes& mine, u32 lanes) const
    {
        if (lanes == 0) return;
        team.each32([&](u32 k) {
            if (k % pool_block_entries == 0 && (lanes >> k & ((1u << pool_block_entries) - 1)) != 0)
                team.set_bits(mark(waiting_tasks), 1u << mine.tasks.at(0, k));
        });
    }

    /// By a lane: wait(slot) of an earlier task of the batch if access `e`, number `at` in the pool, meets one of its; true if a
    /// write of it covers `e`. Of that task's accesses those that `e` covers are marked in batch_dead.
    template <class Wait>
    SLIPSTREAM_BOTH bool meet(team_type& team, const table_entry& e, u32 at, u32 earlier, Wait wait) const
    {
        bool covered = false;
        const u32 span = span_of(earlier);
        const u32 end = (span & 0xff) + (span >> 8 & 0xff);
        SLIPSTREAM_ONE_COPY
        for (u32 b = span & 0xff; b < end; ++b) {
            const u32 block = batch_block(b) & block_mask;
            u32 met = 0; // entries, by bounding ranges: the four loads fly together
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < pool_block_entries; ++i) {
                const table_entry old = s_.pool_entry(block, i);
                met |= static_cast<u32>((e.writes() | old.writes()) & (e.begin() < old.end()) & (old.begin() < e.end())) << i;
            }
            SLIPSTREAM_ONE_COPY
            for (met &= pool_tag{P::get(s_.pool_tags[block])}.memory(); met != 0; met &= met - 1) {
                const u32 i = lowest_bit(met);
                const table_entry old = s_.pool_entry(block, i);
                u32 r = 1 | (e.writes() && holds(e, old)) << 1 | (old.writes() && holds(old, e)) << 2;
                if (e.is_rect() || old.is_rect())
                    r = compare_two(e, P::get(s_.pool_shapes[at]), old, P::get(s_.pool_shapes[block * pool_block_entries + i]));
                if (!(r & 1)) continue;
                wait(batch_slot(earlier));
                covered |= (r & 4) != 0;
                const u32 place = b * pool_block_entries + i;
                if (r & 2) team.set_bits(s_.batch_dead[place / 32], 1u << place % 32);
            }
        }
        return covered;
    }

    /// Does `outer` hold every byte of `inner`? Neither is a rectangle.
    SLIPSTREAM_BOTH static bool holds(const table_entry& outer, const table_entry& inner)
    {
        return outer.kind() != abi::entry_kind::loose && outer.begin() <= inner.begin() && inner.end() <= outer.end();
    }

    /// Step 3.
    SLIPSTREAM_BOTH void compare_with_all(team_type& team, u32 number, u32 teams, const extent& batch) const
    {
        const u32 due = mark(scans_due);
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < due; ++i) {
            const u32 scan = s_.batch_scans[i];
            const u32 block = batch_block(scan & 0xff);
            compare(team, number, teams, block & block_mask, scan >> 8, batch.words, [&](u32 slot, u32 w, u32 k, bool covers) {
                if (slot != batch_slot(block >> task_shift)) {
                    set_wait(team, batch, block >> task_shift, slot);
                    team.set_bits(mark(waiting_tasks), 1u << (block >> task_shift));
                }
                if (covers) note_covered(team, 32 * w + k);
            });
        }
    }

    /// Old accesses that a write of the batch covers are live no more. An access a lane.
    SLIPSTREAM_BOTH void supersede(team_type& team, u32 number, u32 teams) const
    {
        const u32 count = mark(covered_count) < covered_max ? mark(covered_count) : covered_max;
        SLIPSTREAM_ONE_COPY
        for (u32 first = 32 * number; first < count; first += 32 * teams) {
            lane_values numbers;
            const u32 lanes = team.mask32([&](u32 k) {
                if (first + k >= count) return false;
                const u32 at = numbers.at(0, k) = s_.covered_list[first + k];
                team.clear_bits(s_.covered[at / 32], 1u << at % 32);
                return true;
            });
            remove(team, lanes, numbers);
        }
    }

    /// What no later task of the batch covers becomes live; what is booked, only where the book had no room.
    SLIPSTREAM_BOTH void enter(team_type& team, u32 number, bool in, bool booked, access_lanes& mine) const
    {
        const u32 lanes = team.mask32([&](u32 k) { return mine.there(k) && (!booked || mine.spilled.at(0, k) != 0); })
            & ~s_.batch_dead[number];
        if (lanes != 0) bring_in(team, lanes, mine.entries, mine.numbers, in);
    }
    template <class Entries>
    SLIPSTREAM_BOTH void bring_in(team_type& team, u32 lanes, Entries& entries, lane_values& numbers, bool in) const
    {
        team.each32([&](u32 k) {
            if (lanes >> k & 1) team.set_bits(s_.live[numbers.at(0, k) / 32], 1u << numbers.at(0, k) % 32);
        });
        index_.enter_all(team, lanes, entries, numbers, in);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    access_index<P> index_;
    handle_book<P> book_;
    entry_resolver<P> resolver_;
    // Equal on all lanes and teams, of the batch in hand.
    u32 half_ = 0;
    typename access_index<P>::view live_{};
};

} // namespace slipstream::device
