// Which part of an engine memory belongs to: the parts' pools, what was placed, and all the rest, which is part 0's.
#pragma once
#include <algorithm>
#include <slipstream/abi/message.hpp>
#include <slipstream/status.hpp>
#include <string>
#include <vector>

namespace slipstream::host {

/// Not thread-safe: the owner locks.
class memory_map {
public:
    void add_pool(u64 address, u64 bytes, u32 part) { insert({address, address + bytes, part, true}); }

    /// config_error, and nothing is changed, when a piece of it belongs to somebody already; to `part` itself it may.
    void place(u64 address, u64 bytes, u32 part)
    {
        piece mine{address, address + bytes, part, false};
        auto first = first_behind(mine.begin), last = first;
        for (; last != pieces_.end() && last->begin < mine.end; ++last) {
            if (last->pool)
                throw config_error("cannot place this memory: some of it lies in the pool of part " + std::to_string(last->part)
                                   + ", where it stays");
            if (last->part != part)
                throw config_error("cannot place this memory: some of it was placed in part " + std::to_string(last->part)
                                   + "; what was placed stays where it is");
        }
        // With its neighbours of the same part it becomes one piece.
        const auto joins = [&](const piece& p) { return !p.pool && p.part == part; };
        if (first != pieces_.begin() && joins(first[-1]) && first[-1].end == mine.begin) --first;
        if (last != pieces_.end() && joins(*last) && last->begin == mine.end) ++last;
        if (first != last) {
            mine.begin = std::min(mine.begin, first->begin);
            mine.end = std::max(mine.end, last[-1].end);
        }
        pieces_.erase(first, last);
        insert(mine);
    }

    u32 part_of(u64 address) const
    {
        const auto at = first_behind(address);
        return at != pieces_.end() && at->begin <= address ? at->part : 0;
    }

    /// Does all of a range lie in one pool, or was it placed in one go or side by side?
    bool holds(u64 address, u64 bytes) const
    {
        const auto at = first_behind(address);
        return at != pieces_.end() && at->begin <= address && address + bytes <= at->end;
    }

    /// Bits: the parts that some byte of a range belongs to. None: it is empty.
    u32 parts_of(u64 address, u64 bytes) const
    {
        u32 parts = 0;
        for_each_piece(address, bytes, [&](u64, u64, u32 part) { parts |= 1u << part; });
        return parts;
    }

    /// Calls visit(begin, end, part) for one run of bytes of a range after another.
    template <class Visit>
    void for_each_piece(u64 address, u64 bytes, const Visit& visit) const
    {
        const u64 end = address + bytes;
        for (auto at = first_behind(address); address < end; ++at) {
            const u64 next = at == pieces_.end() ? end : std::clamp(at->begin, address, end);
            if (address < next) visit(address, next, 0);
            if (next == end) return;
            address = std::min(at->end, end);
            visit(next, address, at->part);
        }
    }

private:
    struct piece {
        u64 begin;
        u64 end;
        u32 part;
        bool pool;
    };

    /// The first piece with something at or behind the address.
    std::vector<piece>::const_iterator first_behind(u64 address) const
    {
        return std::ranges::upper_bound(pieces_, address, {}, &piece::end);
    }
    void insert(const piece& p)
    {
        if (p.begin != p.end) pieces_.insert(first_behind(p.begin), p);
    }

    std::vector<piece> pieces_; ///< disjoint, ascending
};

} // namespace slipstream::host
