#include "tools/slipstream/program_analysis.hpp"
#include "host/engines/declared_accesses.hpp"

namespace slipstream::cli {
namespace {

// A rectangle becomes its rows, so that the analysis is exact.
void add_ranges(const abi::access_entry& a, std::vector<trace::byte_access>& out)
{
    if (a.kind() != abi::entry_kind::rect) {
        out.push_back({0, a.begin(), a.end(), a.reads(), a.writes()});
        return;
    }
    for (u64 row = 0; row < a.rows(); ++row) {
        const u64 lo = a.begin() + row * a.pitch();
        out.push_back({0, lo, lo + a.width(), a.reads(), a.writes()});
    }
}

} // namespace

trace::hazard_analysis analyze(const engines::program& program)
{
    trace::recorded_trace recorded;
    recorded.dependencies = trace::dependency_source::data;
    recorded.spaces.resize(1);
    std::vector<abi::access_entry> declared;
    for (const auto& task : program.tasks()) {
        trace::recorded_task& out = recorded.tasks.emplace_back();
        out.accesses_known = true;
        if (engines::declared_accesses(program, task, declared)) {
            out.accesses.push_back({0, 0, ~u64{0}, true, true});
        } else {
            for (const abi::access_entry& a : declared) add_ranges(a, out.accesses);
        }
        const auto after = program.after(task);
        out.after.assign(after.begin(), after.end());
    }
    return trace::analyze(recorded);
}

} // namespace slipstream::cli
