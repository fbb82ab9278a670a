// The access index: finds the live accesses that a new one may meet without a look at all of them.
//
// LAYOUT  two hash tables of buckets, for accesses that write and for those that only read. A bucket holds seven accesses: number
//         in the pool + 1 | 16 bits of the hash << 16; 0: none; and counts those it had no room for, which lie in the next ones.
// KEYS    the cell an access begins in, of a grid as coarse as it is long (4 B, 8 B, 16 B ...): what a raw range meets begins in
//         few cells of each grid in use. Handles are pairwise the same memory or disjoint: one meets another in its own cell
//         alone. A tile, or a very long handle: where it begins; raw ranges do not find it.
//         Raw rectangles, loose ranges and very long ones are in no bucket, only counted: while there are any, or where both tiles
//         and raw ranges are live, or raw ranges and accesses of many lengths, or probes_max buckets in a row are full, the index
//         cannot tell and admission compares with everything. What comes then is only counted, too: a program that the index is no
//         use for pays next to nothing for it.
// COST    of a lookup: for each cell a hash (ten instructions) and 32 bytes loaded, twice that of a write; for each hit
//         the access itself.
// OWNERS  admission's crew, while it carries out an order: who clears an access's live bit takes it out, by add and claim where
//         teams meet. One team may clear a place while another looks for a free one: that one sees the old word or 0, and claims.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// What an access is to the index: a grid, of raw ranges; index_handles + a grid; or one of these.
inline constexpr u32 index_grids = 32;
inline constexpr u32 index_handles = index_grids;
inline constexpr u32 index_tiles = 2 * index_grids; ///< and handles longer than any cell
inline constexpr u32 index_other = index_tiles + 1;
static_assert(index_other < index_classes);

template <class P>
class access_index {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH access_index(const engine_memory<P>& memory, const control_state<P>& state)
        : s_(state), buckets_(memory.n.index_buckets), near_(memory.n.pool_near_blocks * pool_block_entries)
    {
    }

    SLIPSTREAM_BOTH static u32 class_of(const table_entry& e)
    {
        const u32 grid = grid_of(e);
        const bool cells = e.kind() == abi::entry_kind::range && grid < index_grids;
        if (e.registered()) return cells ? index_handles + grid : index_tiles;
        return cells ? grid : index_other;
    }

    /// The finest grid whose cells are as long as an access, by its bounding range; index_grids: none.
    SLIPSTREAM_BOTH static u32 grid_of(const table_entry& e)
    {
        const u64 last = e.end() - e.begin() - 1;
        if (last >> shift_of(index_grids - 1) != 0) return index_grids;
        const u32 high = static_cast<u32>(last >> 32), low = static_cast<u32>(last);
        const u32 bits = high != 0 ? 33 + highest_bit(high) : low != 0 ? 1 + highest_bit(low) : 0;
        return bits <= shift_of(0) ? 0 : bits - shift_of(0);
    }

    /// What is live, for all teams of a batch alike.
    struct view {
        u32 raw;     ///< grids that raw ranges are in, a bit each
        u32 handles; ///< and handles
        bool tiles;
        bool useful; ///< can the index tell of anything?
        bool others; ///< accesses that it does not tell of

        SLIPSTREAM_BOTH bool none() const { return (raw | handles) == 0 && !tiles && !others; }
    };

    SLIPSTREAM_BOTH view look_around(team_type& team) const
    {
        static_assert(index_classes <= 96);
        const u32 any = team.mask32([&](u32 k) { // most often nothing is: the handle book has all
            return (s_.index_live[k] | s_.index_live[32 + k] | (64 + k < index_classes ? s_.index_live[64 + k] : 0)) != 0;
        });
        if (any == 0) return {0, 0, false, buckets_ != 0, false};
        const u32 raw = team.mask32([&](u32 k) { return s_.index_live[k] != 0; });
        const u32 handles = team.mask32([&](u32 k) { return s_.index_live[index_handles + k] != 0; });
        const bool tiles = s_.index_live[index_tiles] != 0;
        const bool clear = raw == 0 || (!tiles && popcount(raw | handles) <= grids_max);
        const bool others = s_.index_live[index_other] != 0;
        return {raw, handles, tiles, buckets_ != 0 && !others && clear, others};
    }

    /// By a lane: meet(access, number in the pool) for every live access that shares a byte with `e` where one of the two writes.
    /// False: it cannot tell.
    template <class Meet>
    SLIPSTREAM_BOTH bool find(const table_entry& e, const view& live, Meet meet) const
    {
        const u32 kind = class_of(e);
        bool known = live.useful && kind != index_other;
        u32 rest = live.raw;
        if (e.registered()) {
            known &= kind != index_tiles || rest == 0;
            if (known && (kind == index_tiles || !(rest >> kind % index_grids & 1))) known = look(key(e, kind), e, meet);
        } else {
            rest |= live.handles;
            known &= !live.tiles && popcount(rest) <= grids_max;
        }
        SLIPSTREAM_ONE_COPY
        for (; known && rest != 0; rest &= rest - 1) {
            const u32 grid = lowest_bit(rest);
            const u64 longest = (u64{1} << shift_of(grid)) - 1;
            const u64 last = (e.end() - 1) >> shift_of(grid);
            u64 cell = (e.begin() > longest ? e.begin() - longest : 0) >> shift_of(grid);
            if (last - cell >= cells_max) return false;
            SLIPSTREAM_ONE_COPY
            for (; cell <= last; ++cell) known &= look(hash(cell, grid), e, meet);
        }
        return known;
    }

    /// An access each lane of `lanes`, number numbers.at(0, k) in the pool, is live from now on. `in`: they are to be found, while
    /// the index can tell of anything at all; they are counted else.
    template <class Entries, class Numbers>
    SLIPSTREAM_BOTH void enter_all(team_type& team, u32 lanes, Entries& entries, Numbers& numbers, bool in) const
    {
        lane_values kinds;
        const u32 found = team.mask32([&](u32 k) {
            kinds.at(0, k) = !(lanes >> k & 1) ? index_classes : in ? class_of(entries.at(0, k)) : index_other;
            return kinds.at(0, k) < index_other;
        });
        add_live(team, lanes, kinds, 1);
        team.each32([&](u32 k) {
            if (!(found >> k & 1)) return;
            team.set_bits(s_.indexed[numbers.at(0, k) / 32], 1u << numbers.at(0, k) % 32);
            const table_entry e = entries.at(0, k);
            const u32 number = numbers.at(0, k);
            const u32 h = key(e, kinds.at(0, k));
            if (number < near_) s_.index_at[number] = 0;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < probes_max; ++i) {
                const u32 b = bucket_number(h + i, e.writes());
                index_bucket& bucket = s_.index_buckets[b];
                SLIPSTREAM_ONE_COPY
                for (u32 free = places_with(bucket, 0, ~u32{0}); free != 0; free &= free - 1) {
                    const u32 place = lowest_bit(free);
                    if (!team.claim(bucket.places[place], word_of(h, number))) continue;
                    if (i == 0 && number < near_)
                        s_.index_at[number] = static_cast<u16>(at_known | (kinds.at(0, k) == index_tiles ? at_tile : 0)
                                                               | b << 3 | place);
                    return;
                }
                team.add(bucket.spilled, 1);
            }
        });
    }

    /// The opposite. Their live bits are cleared already. Where an access lies was written down, as a rule: no search.
    template <class Numbers>
    SLIPSTREAM_BOTH void remove_all(team_type& team, u32 lanes, Numbers& numbers) const
    {
        lane_values kinds, places;
        const u32 found = team.mask32([&](u32 k) {
            kinds.at(0, k) = index_classes;
            places.at(0, k) = 0;
            if (!(lanes >> k & 1)) return false;
            const u32 number = numbers.at(0, k);
            const bool in = (s_.indexed[number / 32] >> number % 32 & 1) != 0;
            if (in && number < near_) places.at(0, k) = s_.index_at[number];
            kinds.at(0, k) = !in                                ? index_other
                             : (places.at(0, k) & at_tile) != 0 ? index_tiles
                                                                : class_of(s_.numbered_entry(number));
            return in;
        });
        add_live(team, lanes, kinds, ~u32{0});
        team.each32([&](u32 k) {
            if (!(found >> k & 1)) return;
            const u32 number = numbers.at(0, k);
            const u32 at = places.at(0, k);
            team.clear_bits(s_.indexed[number / 32], 1u << number % 32);
            if ((at & at_known) != 0) s_.index_buckets[(at & at_bucket) >> 3].places[at & 7] = 0;
            else search_and_take_out(team, s_.numbered_entry(number), number, kinds.at(0, k));
        });
    }

    /// Nothing is live any more; `words` words of live bits were in use.
    SLIPSTREAM_BOTH void clear(team_type& team, u32 words) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < 2 * buckets_; i += team.size()) s_.index_buckets[i] = index_bucket{};
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < index_classes; i += team.size()) s_.index_live[i] = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 w = team.rank(); w < words; w += team.size()) s_.indexed[w] = 0;
    }

    SLIPSTREAM_BOTH static constexpr u32 shift_of(u32 grid) { return 2 + grid; }
    /// A cell of a grid in few bits.
    SLIPSTREAM_BOTH static u32 cell_key(u64 cell) { return static_cast<u32>(cell) ^ static_cast<u32>(cell >> 32) * 0x9e3779b1u; }

private:
    using lane_values = typename P::template lane_array<u32, 1>;

    /// Adds `by` for each lane of `lanes` to the count of live accesses of its kind: at once where they are of one kind,
    /// as most are.
    SLIPSTREAM_BOTH void add_live(team_type& team, u32 lanes, lane_values& kinds, u32 by) const
    {
        if (lanes == 0) return;
        const u32 kind = team.from_lane(kinds, lowest_bit(lanes));
        const u32 others = team.mask32([&](u32 k) { return (lanes >> k & 1) && kinds.at(0, k) != kind; });
        if (team.leader()) team.add(s_.index_live[kind], popcount(lanes & ~others) * by);
        if (others == 0) return;
        team.each32([&](u32 k) {
            if (others >> k & 1) team.add(s_.index_live[kinds.at(0, k)], by);
        });
    }

    // Words of index_at: number of a bucket << 3 | place, and
    static constexpr u32 at_known = 1u << 15;      ///< else it must be searched for
    static constexpr u32 at_tile = 1u << 14; ///< of that class: no need to look at it
    static constexpr u32 at_bucket = at_tile - 8;
    static_assert(2 * index_buckets_max * 8 <= at_tile && index_places <= 8);

    SLIPSTREAM_BOTH void search_and_take_out(team_type& team, const table_entry& e, u32 number, u32 kind) const
    {
        const u32 h = key(e, kind);
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < probes_max; ++i) {
            index_bucket& bucket = bucket_of(h + i, e.writes());
            const u32 mine = places_with(bucket, word_of(h, number), ~u32{0});
            if (mine != 0) {
                bucket.places[lowest_bit(mine)] = 0;
                return;
            }
            team.add(bucket.spilled, ~u32{0});
        }
    }

    SLIPSTREAM_BOTH static u32 hash(u64 cell, u32 kind)
    {
        u32 h = (static_cast<u32>(cell) ^ (static_cast<u32>(cell >> 32) + kind) * 0x85ebca77u) * 0x9e3779b1u;
        h = (h ^ h >> 15) * 0xc2b2ae3du;
        return h ^ h >> 16;
    }
    SLIPSTREAM_BOTH static u32 key(const table_entry& e, u32 kind)
    {
        return kind == index_tiles ? hash(e.begin(), kind) : hash(e.begin() >> shift_of(kind % index_grids), kind % index_grids);
    }
    SLIPSTREAM_BOTH static u32 word_of(u32 h, u32 number) { return (h & 0xffff0000u) | (number + 1); }
    SLIPSTREAM_BOTH u32 bucket_number(u32 h, bool writes) const { return (writes ? 0 : buckets_) + (h & (buckets_ - 1)); }
    SLIPSTREAM_BOTH index_bucket& bucket_of(u32 h, bool writes) const { return s_.index_buckets[bucket_number(h, writes)]; }

    /// The places whose bits in `mask` are those of `word`.
    SLIPSTREAM_BOTH static u32 places_with(const index_bucket& bucket, u32 word, u32 mask)
    {
        const index_bucket copy = bucket; // in wide loads
        u32 found = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < index_places; ++i) found |= static_cast<u32>(((copy.places[i] ^ word) & mask) == 0) << i;
        return found;
    }

    template <class Meet>
    SLIPSTREAM_BOTH bool look(u32 h, const table_entry& e, Meet meet) const
    {
        bool known = true;
        SLIPSTREAM_ONE_COPY
        for (u32 table = 0; table <= static_cast<u32>(e.writes()); ++table) {
            bool more = true;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; more && i < probes_max; ++i) {
                const index_bucket& bucket = bucket_of(h + i, table == 0);
                more = bucket.spilled != 0;
                SLIPSTREAM_ONE_COPY
                for (u32 hits = places_with(bucket, h, 0xffff0000u); hits != 0; hits &= hits - 1) {
                    const u32 word = bucket.places[lowest_bit(hits)];
                    if (word == 0) continue;
                    const u32 number = (word & 0xffff) - 1;
                    const table_entry old = s_.numbered_entry(number);
                    if (meets(e, old)) meet(old, number);
                }
            }
            known &= !more;
        }
        return known;
    }

public:
    /// Do two accesses share a byte? Neither is a rectangle, but for two tiles.
    SLIPSTREAM_BOTH static bool meets(const table_entry& a, const table_entry& b)
    {
        return a.registered() && b.registered() ? a.begin() == b.begin() : a.begin() < b.end() && b.begin() < a.end();
    }
    /// Does `outer`, likewise, hold every byte of `inner`?
    SLIPSTREAM_BOTH static bool covers(const table_entry& outer, const table_entry& inner)
    {
        return outer.registered() && inner.registered() ? outer.begin() == inner.begin()
                                                        : outer.begin() <= inner.begin() && inner.end() <= outer.end();
    }

private:
    static constexpr u32 probes_max = 16; ///< buckets: so a hundred readers of one handle find room
    static constexpr u32 cells_max = 10; ///< of one grid: a fan-in of eight lies in nine, and
    static constexpr u32 grids_max = 3; ///< more of either is no gain

    const control_state<P>& s_;
    u32 buckets_;
    u32 near_; ///< accesses of which index_at tells
};

} // namespace slipstream::device
