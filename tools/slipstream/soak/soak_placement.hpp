// Which cells of a soak lie in which part of its engine.
#pragma once
#include "tools/slipstream/soak/soak_stream.hpp"
#include <algorithm>

namespace slipstream::soak {

struct placed_cells {
    u32 first, count, part;
};

/// Pieces, ascending; between them are cells that nobody places, which are part 0's. What is registered lies in one
/// part, as it has to: of a bank's matrix four rows together, whose tiles lie between each other. All else may be cut
/// anywhere: ranges and tiles reach into several.
inline std::vector<placed_cells> draw_placement(u32 parts, u32 placement, u32 cells)
{
    soak_random random(placement);
    const u32 longest = placement == 0 ? 16 : 64u << random.below(4); // no shorter, or a task had more pieces
                                                                      // than there is room for
    constexpr u32 half = bank_cells / 2; // matrix, then ranges
    std::vector<placed_cells> out;
    u32 turn = 0;
    for (u32 at = 0; at < cells;) {
        const bool registered = at < adders_first;
        const u32 unit = !registered ? 1 : at / half % 2 == 0 ? 4 * bank_pitch : 8;
        const u32 length = placement == 0 ? longest : longest / 2 + random.below(longest / 2);
        const u32 end = registered ? (at / half + 1) * half : cells;
        const u32 count = std::min(std::max(length / unit, 1u) * unit, end - at);
        const u32 part = placement == 0 ? turn++ % parts : random.below(parts);
        if (placement == 0 || random.below(8) != 0) out.push_back({at, count, part});
        at += count;
    }
    return out;
}

} // namespace slipstream::soak
