// Finds a dependency whose removal must show: for tests that want to see `verified` turn false.
//
// Wanted are a task t with a declared range that makes it wait for an earlier task p, and a task h that p waits for, such that
// without that range t waits neither for p nor for h, directly or by way of others. If then h is made to take long, t has come
// and gone before p starts:
//   RAW  t reads what p has not written yet
//   WAR  t has overwritten what p was to read
//   WAW  p overwrites what t has written; only taken when somebody reads it next, or nobody uses it any more
// The search prefers pairs that lie close together and early in the program: both must fit into a small window.
#pragma once
#include "host/engines/program.hpp"
#include <string>

namespace slipstream::workloads {

struct broken_edge {
    std::string kind;
    u32 task = 0;        ///< t
    u32 access = 0;      ///< which of its declared accesses to forget: program::forget_access(task, access)
    u32 predecessor = 0; ///< p
    u32 held = 0;        ///< h: its block 0 must take some milliseconds more
};

/// kind: "RAW", "WAR" or "WAW". Throws config_error for another kind, or when the program has no such edge.
broken_edge find_broken_edge(const engines::program& p, const std::string& kind);

} // namespace slipstream::workloads
