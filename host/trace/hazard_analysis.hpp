// Derives the hazards between recorded tasks and what they allow: the reported edges, critical path and work.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "recorded_trace.hpp"

namespace slipstream::trace {

inline constexpr std::uint8_t edge_raw = 1;
inline constexpr std::uint8_t edge_war = 2;
inline constexpr std::uint8_t edge_waw = 4;
inline constexpr std::uint8_t edge_order = 8;  // explicit: `after`
inline constexpr std::size_t edge_kind_masks = 16;

// One (task, predecessor) pair with the union of its kinds.
struct hazard_edge {
    std::uint32_t task = 0;
    std::uint32_t predecessor = 0;  // < task
    std::uint8_t kinds = 0;

    friend bool operator==(const hazard_edge&, const hazard_edge&) = default;
};

// "RAW", "WAR", "RAW+WAW", "ORDER", ...: the kinds in the order RAW, WAR, WAW, ORDER.
std::string edge_kind_name(std::uint8_t kinds);

// More edges than the bound, or more than 32 times as many overlaps looked at, those within a task included: the graph is
// denser than can be reported. std::length_error, what() is one line.
inline constexpr std::uint64_t edges_max_default = std::uint64_t{1} << 25;

// The rule (one for all reports, independent of what an engine keeps): unlimited window; program order is the order of
// `accesses`; a task's reads meet older writes (RAW), its writes meet older reads (WAR) and writes (WAW); an older
// record is dropped whole once one later write covers all of it; a task's own write also drops its own covered reads.
// `after` may be empty or have one list per task, whose entries must be smaller than the task's index
// (std::invalid_argument otherwise). Result sorted by (task, predecessor).
// Cost: O((accesses + met records) * log accesses); met records are the edges before they are united, and a task's own reads
// and those only partly covered, once more for each of its writes that overlaps them.
std::vector<hazard_edge> find_hazards(std::span<const std::vector<byte_access>> accesses,
                                      std::span<const std::vector<std::uint32_t>> after = {},
                                      std::uint64_t edges_max = edges_max_default);

struct hazard_analysis {
    std::vector<hazard_edge> edges;                          // sorted by (task, predecessor)
    std::array<std::uint64_t, edge_kind_masks> edges_by_kinds{};  // index: mask of edge_* bits
    std::uint64_t contradicted = 0;  // edges whose successor starts more than 1 us before its predecessor ends
    std::uint32_t in_degree_max = 0;
    bool durations_known = false;    // false: every duration counted as 1 us
    double work_us = 0;              // sum of durations
    double critical_path_us = 0;     // longest path, execution only
    double raw_critical_path_us = 0; // the same over RAW and ORDER edges: what renaming every buffer would leave

    // Speed-up over serial with unlimited SMs and no overhead; 0 when there is no work.
    double speedup_unlimited() const { return critical_path_us > 0 ? work_us / critical_path_us : 0; }
};

hazard_analysis analyze(const recorded_trace& trace, std::uint64_t edges_max = edges_max_default);

}  // namespace slipstream::trace
