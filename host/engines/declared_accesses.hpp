// What a task of a program declares, in the form in which hazards are found.
#pragma once
#include "host/engines/program.hpp"
#include <slipstream/abi/access_entry.hpp>
#include <vector>

namespace slipstream::engines {

/// Replaces `out` by the accesses of task `t`: members first, then the further ones, handles as the memory they stand for.
/// Returns true when the task is ordered against everything (a whole-memory task); `out` then does not matter.
bool declared_accesses(const program& p, const program_task& t, std::vector<abi::access_entry>& out);

} // namespace slipstream::engines
