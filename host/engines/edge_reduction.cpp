// Ancestors as bits, shifted from a predecessor's frame into the task's.
#include "host/engines/edge_reduction.hpp"
#include <cassert>

namespace slipstream::engines {

std::span<const u32> edge_reduction::next(std::span<const u32> predecessors)
{
    const u32 task = next_++;
    record mine{};
    kept_.clear();
    for (const u32 p : predecessors) {
        assert(p < task && (kept_.empty() || p < kept_.back()));
        const u32 back = task - p; // 1: the task just before
        if (back > reach) {
            kept_.push_back(p);
            continue;
        }
        const u32 bit = back - 1;
        if (mine[bit / 64] >> bit % 64 & 1) continue; // a later predecessor waits for p
        kept_.push_back(p);
        mine[bit / 64] |= u64{1} << bit % 64;
        // p - 1 - k is task - 1 - (k + back): the record of p, `back` bits farther up; what leaves at the top is forgotten.
        const record& theirs = records_[p % reach];
        const u32 whole = back / 64, part = back % 64;
        for (u32 w = whole; w < words; ++w) {
            u64 moved = theirs[w - whole] << part;
            if (part != 0 && w > whole) moved |= theirs[w - whole - 1] >> (64 - part);
            mine[w] |= moved;
        }
    }
    records_[task % reach] = mine; // only now: the record it replaces is that of task - reach, the farthest p
    return kept_;
}

} // namespace slipstream::engines
