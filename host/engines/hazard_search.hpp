// Walks a program task by task and finds on the host whom each task must wait for: by its accesses and by `after`.
#pragma once
#include "host/engines/declared_accesses.hpp"
#include "host/engines/host_dependency_table.hpp"

namespace slipstream::engines {

class hazard_search {
public:
    /// Starts again with the first task, keeping memory.
    void start_again()
    {
        table_.clear();
        next_ = 0;
    }

    /// Predecessors of the next task, each once, the latest first; valid until the next call. Tasks that others of the list wait
    /// for anyway may be missing. `t`: p.tasks() in order.
    std::span<const u32> next(const program& p, const program_task& t)
    {
        const auto after = p.after(t);
        predecessors_.assign(after.begin(), after.end());
        const bool whole = declared_accesses(p, t, accesses_);
        table_.admit(next_++, accesses_, whole, predecessors_);
        return predecessors_;
    }

private:
    host_dependency_table table_;
    u32 next_ = 0;
    std::vector<u32> predecessors_;
    std::vector<abi::access_entry> accesses_;
};

} // namespace slipstream::engines
