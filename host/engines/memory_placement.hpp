// Which part of an engine (config::parts) a program's memory belongs to.
#pragma once
#include "host/engines/program.hpp"

namespace slipstream::engines {

struct placed_memory {
    u64 address = 0, bytes = 0;
    u32 part = 0;
    bool operator==(const placed_memory&) const = default;
};

/// The registered memory of parts 1 and up, ascending; neighbours of one part are one piece. A registration goes where its locality
/// says (program.hpp), those that lie between each other go together, by the mean. What is not in the list is part 0's, and so is
/// all that is not registered.
std::vector<placed_memory> place_registrations(const program& p, u32 parts);

/// Which parts memory [begin, end) touches, a bit for each.
u32 parts_touched(std::span<const placed_memory> placed, u64 begin, u64 end);

/// How many pieces it is in, by part: a range that reaches into several parts is declared piece by piece.
u32 pieces_touched(std::span<const placed_memory> placed, u64 begin, u64 end);

/// Tasks that touch memory of several parts, whole-memory tasks among them.
u64 crossing_tasks(const program& p, std::span<const placed_memory> placed);

} // namespace slipstream::engines
