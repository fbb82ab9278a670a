// Elementary intervals: cuts memory at the end points of all ranges, one 64-bit cell each, for verification by digest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recorded_trace.hpp"

namespace slipstream::trace {

// A run of cells that one task uses in one way.
struct cell_access {
    std::uint64_t cell_first = 0;
    std::uint64_t cell_count = 0;
    bool reads = false;
    bool writes = false;

    friend bool operator==(const cell_access&, const cell_access&) = default;
};

struct cell_map {
    std::vector<std::vector<cell_access>> tasks;  // per task disjoint, ascending; neighbours differ in mode or have a gap
    std::uint64_t cells = 0;                      // size of the one array that serves as memory
    std::uint64_t cell_visits = 0;                // sum of all cell_count: what one replay touches
};

// Two ranges share a cell exactly when they share a byte. Bytes that nobody touches get no cell, so the cells of a
// range are contiguous. Empty ranges and ranges without a mode are ignored. O(n log n) for n ranges, plus the output.
cell_map cut_into_cells(std::span<const std::vector<byte_access>> tasks);

}  // namespace slipstream::trace
