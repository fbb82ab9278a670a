#include "tools/slipstream/timeline.hpp"
#include "host/nvtx_range.hpp"
#include "host/timeline/chrome_trace.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/json_report.hpp"
#include <slipstream/status.hpp>
#include <spdlog/spdlog.h>

namespace slipstream::cli {

timeline_request::timeline_request(const options& o, const std::vector<std::string>& names)
    : file_(o.timeline), entries_(o.timeline_entries)
{
    if (file_.empty()) return;
    if (o.analyze)
        throw usage_error("--timeline " + file_ + ": --analyze runs nothing that could be recorded; leave one of the two out");
    for (const std::string& name : names)
        if (engines::runs_on_runtime(name)) engines_.push_back(name);
    if (engines_.empty())
        throw usage_error("--timeline " + file_ + ": none of the engines chosen (--engine " + o.engine
                          + ") can be recorded; add slipstream or slipstream-hostdep");
    if (file_ == "-") throw usage_error("--timeline -: goes to a file; name one");
    refuse_unwritable("--timeline", file_);
}

bool timeline_request::carry_out(workloads::workload& work, const config& configuration, engines::device_memory& device,
                                 const environment& e, std::FILE* to, const engines::arrivals& when) const
{
    if (file_.empty()) return true;
    bool good = true;
    std::vector<timeline::recorded_run> runs;
    for (const std::string& name : engines_) {
        try {
            const host::nvtx_range range("record " + name);
            work.reset();
            runs.push_back(timeline::record_run(name, configuration, device, work.program(), entries_, when));
        } catch (const error& what) {
            spdlog::error("timeline of {}: {}", name, what.what());
            good = false;
            continue;
        }
        if (const workloads::verdict v = work.verify(); !v.verified) {
            spdlog::error("timeline of {}: {}", name, v.detail.empty() ? "the result differs from a sequential run's" : v.detail);
            good = false;
        }
        const timeline::recorded_run& run = runs.back();
        if (run.lost_runs + run.lost_samples != 0)
            spdlog::warn("timeline of {}: {} runs of blocks and {} samples found no room; raise --timeline-entries (now {})", name,
                         run.lost_runs, run.lost_samples, entries_);
    }
    try {
        timeline::write_chrome_trace(file_, runs, work.program(),
                                     {{"workload", work.name()},
                                      {"device", e.device},
                                      {"gpu", e.gpu},
                                      {"driver", e.driver},
                                      {"cuda_driver", e.cuda_driver},
                                      {"cuda_runtime", e.cuda_runtime},
                                      {"cpu", e.cpu},
                                      {"commit", e.commit},
                                      {"command", e.command},
                                      {"date", e.date}});
    } catch (const std::runtime_error& what) {
        throw std::runtime_error(std::string("--timeline ") + what.what());
    }
    std::fprintf(to, "\nTimeline: %s, one more run of each, recorded; open it in https://ui.perfetto.dev\n", file_.c_str());
    for (const timeline::recorded_run& run : runs)
        std::fprintf(to, "  %s: %zu runs of blocks in %.1f us, clocks aligned to %.1f us\n", run.engine.c_str(), run.runs.size(),
                     run.result.makespan_us, static_cast<double>(run.clock.error_ns) / 1e3);
    return good;
}

} // namespace slipstream::cli
