#include "tools/slipstream/compare/bounds.hpp"
#include "host/engines/hazard_search.hpp"
#include <cassert>

namespace slipstream::cli {

bounds bounds_of(const engines::program& program, std::span<const task_time> times, u32 workers)
{
    assert(times.size() == program.tasks().size() && workers > 0);
    struct path {
        double us = 0;
        u32 tasks = 0;
    };
    std::vector<path> ending_at; // the longest path that ends with this task
    ending_at.reserve(times.size());
    engines::hazard_search hazards;
    bounds out;
    for (const engines::program_task& t : program.tasks()) {
        path longest;
        for (const u32 p : hazards.next(program, t))
            if (ending_at[p].us > longest.us || longest.tasks == 0) longest = ending_at[p];
        const task_time& own = times[ending_at.size()];
        longest.us += own.span_us;
        ++longest.tasks;
        ending_at.push_back(longest);
        if (longest.us > out.critical_path_us || out.critical_path_tasks == 0) {
            out.critical_path_us = longest.us;
            out.critical_path_tasks = longest.tasks;
        }
        out.area_us += own.work_us / workers;
    }
    return out;
}

} // namespace slipstream::cli
