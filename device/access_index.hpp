// The access index: finds the live accesses that a new one may meet without a look at all of them.
//
// LAYOUT  two hash tables of buckets, for accesses that write and for those that only read. A bucket holds three accesses: number in the
//         pool + 1 | 16 bits of the hash << 16; 0: none; and counts those it had no room for.
// KEYS    a registered handle: where it begins (handles are pairwise the same memory or disjoint). A raw range: the cell it begins in, of a
//         grid as coarse as the range is long (64 B, 4 KB, 256 KB, 16 MB, 1 GB): what it meets begins in few cells of each grid in use.
//         Raw rectangles, loose ranges and longer ones are in no bucket, only counted: while there are any, or where both handles and
//         raw ranges are live, or a bucket has spilled, the index cannot tell and admission compares with everything.
// COST    of a lookup: for each cell a hash (ten instructions) and a 16-byte load, two of a write; for each hit the access itself.
// OWNERS  admission: any team that clears an access's live bit takes it out; only the leading team enters any.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// What an access is to the index: a grid, or one of these.
inline constexpr u32 index_grids = 5;
inline constexpr u32 index_registered = index_grids;
inline constexpr u32 index_other = index_grids + 1;
inline constexpr u32 index_none = index_grids + 2; ///< no access
static_assert(index_none < index_classes);

template <class P>
class access_index {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH access_index(const engine_memory<P>& memory, const control_state<P>& state)
        : s_(state), buckets_(memory.n.index_buckets())
    {
    }

    SLIPSTREAM_BOTH static u32 class_of(const table_entry& e)
    {
        if (e.registered()) return index_registered;
        const u64 bytes = e.end() - e.begin();
        if (e.kind() != abi::entry_kind::range || bytes > u64{1} << shift_of(index_grids - 1)) return index_other;
        u32 grid = 0;
        for (u32 g = 0; g + 1 < index_grids; ++g) grid += static_cast<u32>(bytes > u64{1} << shift_of(g));
        return grid;
    }

    /// Can it tell of anything now?
    SLIPSTREAM_BOTH bool useful() const { return s_.index_live[index_other] == 0; }

    /// May accesses of this kind be looked up, with what is live now?
    SLIPSTREAM_BOTH bool can_find(bool registered) const
    {
        if (!useful()) return false;
        if (!registered) return s_.index_live[index_registered] == 0;
        u32 raw = 0;
        for (u32 g = 0; g < index_grids; ++g) raw |= s_.index_live[g];
        return raw == 0;
    }

    /// By a lane: meet(access, number in the pool) for every live access that shares a byte with `e` where one of the two writes.
    /// False: it cannot tell.
    template <class Meet>
    SLIPSTREAM_BOTH bool find(const table_entry& e, Meet meet) const
    {
        if (e.registered()) return look(hash(e.begin(), index_registered), e, meet);
        bool known = true;
        SLIPSTREAM_ONE_COPY
        for (u32 grid = 0; grid < index_grids; ++grid) {
            if (s_.index_live[grid] == 0) continue;
            const u32 shift = shift_of(grid);
            const u64 longest = (u64{1} << shift) - 1;
            const u64 last = (e.end() - 1) >> shift;
            u64 cell = (e.begin() > longest ? e.begin() - longest : 0) >> shift;
            if (last - cell >= cells_max) return false;
            SLIPSTREAM_ONE_COPY
            for (; cell <= last; ++cell) known &= look(hash(cell, grid), e, meet);
        }
        return known;
    }

    /// By a lane: enters an access whose live bit is set.
    SLIPSTREAM_BOTH void enter(team_type& team, const table_entry& e, u32 number) const
    {
        const u32 kind = class_of(e);
        team.add(s_.index_live[kind], 1);
        if (kind == index_other) return;
        const u32 h = key(e, kind);
        index_bucket& bucket = bucket_of(h, e.writes());
        for (u32 i = 0; i < index_places; ++i)
            if (bucket.places[i] == 0 && team.claim(bucket.places[i], word_of(h, number))) return;
        team.add(bucket.spilled, 1);
    }

    /// By the lane that cleared its live bit.
    SLIPSTREAM_BOTH void remove(team_type& team, const table_entry& e, u32 number) const
    {
        const u32 kind = class_of(e);
        team.add(s_.index_live[kind], ~u32{0});
        if (kind == index_other) return;
        const u32 h = key(e, kind);
        index_bucket& bucket = bucket_of(h, e.writes());
        for (u32 i = 0; i < index_places; ++i)
            if (bucket.places[i] == word_of(h, number)) {
                bucket.places[i] = 0;
                return;
            }
        team.add(bucket.spilled, ~u32{0});
    }

    /// Nothing is live any more.
    SLIPSTREAM_BOTH void clear(team_type& team) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < 2 * buckets_; i += team.size()) s_.index_buckets[i] = index_bucket{};
        SLIPSTREAM_ONE_COPY
        for (u32 i = team.rank(); i < index_classes; i += team.size()) s_.index_live[i] = 0;
    }

private:
    SLIPSTREAM_BOTH static constexpr u32 shift_of(u32 grid) { return 6 + 6 * grid; }
    SLIPSTREAM_BOTH static u32 hash(u64 cell, u32 kind)
    {
        u32 h = (static_cast<u32>(cell) ^ (static_cast<u32>(cell >> 32) + kind) * 0x85ebca77u) * 0x9e3779b1u;
        h = (h ^ h >> 15) * 0xc2b2ae3du;
        return h ^ h >> 16;
    }
    SLIPSTREAM_BOTH static u32 key(const table_entry& e, u32 kind)
    {
        return hash(kind == index_registered ? e.begin() : e.begin() >> shift_of(kind), kind);
    }
    SLIPSTREAM_BOTH static u32 word_of(u32 h, u32 number) { return (h & 0xffff0000u) | (number + 1); }
    SLIPSTREAM_BOTH index_bucket& bucket_of(u32 h, bool writes) const
    {
        return s_.index_buckets[(writes ? 0 : buckets_) + (h & (buckets_ - 1))];
    }

    template <class Meet>
    SLIPSTREAM_BOTH bool look(u32 h, const table_entry& e, Meet meet) const
    {
        bool known = true;
        SLIPSTREAM_ONE_COPY
        for (u32 table = 0; table <= static_cast<u32>(e.writes()); ++table) {
            const index_bucket bucket = bucket_of(h, table == 0);
            known &= bucket.spilled == 0;
            if ((bucket.places[0] | bucket.places[1] | bucket.places[2]) == 0) continue;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < index_places; ++i) {
                const u32 word = i == 0 ? bucket.places[0] : i == 1 ? bucket.places[1] : bucket.places[2];
                if (word == 0 || (word ^ h) >> 16 != 0) continue;
                const u32 number = (word & 0xffff) - 1;
                const table_entry old = s_.pool_entry(number / pool_block_entries, number % pool_block_entries);
                if (meets(e, old)) meet(old, number);
            }
        }
        return known;
    }

public:
    /// Do two accesses of one kind, both registered or both raw ranges, share a byte?
    SLIPSTREAM_BOTH static bool meets(const table_entry& a, const table_entry& b)
    {
        return a.registered() ? a.begin() == b.begin() : a.begin() < b.end() && b.begin() < a.end();
    }
    /// Does `outer`, likewise, hold every byte of `inner`?
    SLIPSTREAM_BOTH static bool covers(const table_entry& outer, const table_entry& inner)
    {
        return outer.registered() ? outer.begin() == inner.begin() : outer.begin() <= inner.begin() && inner.end() <= outer.end();
    }

private:
    static constexpr u32 cells_max = 6; ///< a lookup of more is no gain

    const control_state<P>& s_;
    u32 buckets_;
};

} // namespace slipstream::device
