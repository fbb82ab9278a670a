#include "tools/slipstream/compare/measurement.hpp"
#include "host/trace/trace_import.hpp"
#include "tools/slipstream/compare/solo_run.hpp"
#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include "workloads/replay/replay.hpp"
#include <slipstream/status.hpp>

namespace slipstream::cli {
namespace {

std::unique_ptr<workloads::workload> make_replay(const subject& what, const options& o, engines::device_memory& device,
                                                 const std::string& progress, std::vector<std::string>& notes)
{
    progress_bar bar(progress + ", calibrating");
    workloads::replay_options how;
    how.resident = engine_configuration(o, device);
    how.resident.parts = 1; // a body alone may have all workers
    how.progress = [&](double done, double total) { bar.at(done, total); };
    auto out = std::make_unique<workloads::replay>(device, trace::import_trace(what.kineto, what.et), how);
    notes = out->notes();
    return out;
}

} // namespace

measurement measure(const subject& what, u64 seed, const std::vector<std::string>& engines, const options& o,
                    const std::string& progress)
{
    const auto device = open_named_device(o.device);
    measurement out;
    out.what = what;
    out.seed = seed;
    out.window = o.window;
    const auto work =
        what.workload ? what.workload->make(*device, what.values, seed) : make_replay(what, o, *device, progress, out.notes);
    out.tasks = work->program().tasks().size();
    out.runs = compare(*work, engines, o, *device, progress);
    try {
        const solo_times solo = time_tasks_alone(*work, engine_configuration(o, *device), *device);
        out.limits = bounds_of(work->program(), solo.tasks, solo.workers);
        out.workers = solo.workers;
    } catch (const error& e) {
        out.notes.push_back(std::string("no bounds: ") + e.what());
        out.solo_good = dynamic_cast<const wrong_solo_run*>(&e) == nullptr;
        if (dynamic_cast<const device_error*>(&e) != nullptr) out.ended_by = std::current_exception();
    }
    return out;
}

comparison_figures figures_of(const measurement& m)
{
    return figures_of(m.runs, m.tasks, m.limits ? &*m.limits : nullptr);
}

} // namespace slipstream::cli
