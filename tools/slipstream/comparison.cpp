#include "tools/slipstream/comparison.hpp"
#include "host/nvtx_range.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include <algorithm>
#include <slipstream/status.hpp>

namespace slipstream::cli {

std::vector<std::string> chosen_engines(const std::string& wanted, bool cuda)
{
    const std::vector<std::string> known = engines::engine_names(cuda);
    std::string list;
    for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
    std::vector<std::string> asked;
    for (std::size_t from = 0; from <= wanted.size();) {
        const std::size_t comma = std::min(wanted.find(',', from), wanted.size());
        const std::string name = wanted.substr(from, comma - from);
        from = comma + 1;
        if (name == "all") {
            asked.insert(asked.end(), known.begin(), known.end());
            continue;
        }
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw config_error("--engine " + wanted + ": the " + (cuda ? "cuda" : "host") + " device has no engine '" + name
                               + "'; use " + list + " or all");
        asked.push_back(name);
    }
    std::vector<std::string> out;
    for (const auto& name : known)
        if (std::find(asked.begin(), asked.end(), name) != asked.end()) out.push_back(name);
    return out;
}

std::string sizes_text(const options& o)
{
    return "window " + std::to_string(o.window) + ", ring " + std::to_string(o.ring)
           + (o.parts > 1 ? " of each of " + std::to_string(o.parts) + " parts" : "");
}

config engine_configuration(const options& o, const engines::device_memory& device)
{
    config c;
    // The engines run where the memory is: "auto" was decided when it was opened.
    c.device = device.is_cuda() ? "cuda:" + std::to_string(device.ordinal()) : "host";
    c.window = o.window;
    c.ring_slots = o.ring;
    c.rings = 1; // engines submit from one thread
    c.workers_per_sm = o.workers_per_sm;
    c.parts = o.parts;
    c.staging = o.staging;
    c.chaining = o.chaining;
    c.bypass = o.bypass;
    c.broadcast = o.broadcast;
    return c;
}

std::vector<engine_runs> compare(workloads::workload& work, const std::vector<std::string>& names, const options& o,
                                 engines::device_memory& device, const std::string& title, const engines::arrivals& when)
{
    const engines::program& program = work.program();
    std::vector<engine_runs> out;
    std::vector<std::unique_ptr<engines::engine>> made;
    const config configuration = engine_configuration(o, device);
    for (const std::string& name : names) {
        const host::nvtx_range range("prepare " + name);
        auto one = engines::make_engine(name, configuration, device, program.image());
        one->set_arrivals(when);
        one->prepare(program);
        out.push_back({});
        out.back().engine = name;
        out.back().scheduling_sms = one->scheduling_sms();
        made.push_back(std::move(one));
    }
    progress_bar bar(title.empty() ? "running " + work.name() : title);
    const double total = static_cast<double>(o.repeat) * static_cast<double>(made.size());
    double done = 0;
    bool lost = false;
    const auto trouble = [](engine_runs& r, const std::string& what) {
        r.verified = false;
        if (r.trouble.empty()) r.trouble = what;
    };
    for (u32 repetition = 0; repetition < o.repeat && !lost; ++repetition) {
        for (std::size_t i = 0; i < made.size() && !lost; ++i) {
            if (!made[i]) continue;
            try {
                work.reset();
                const engines::run_result result = [&] {
                    const host::nvtx_range range("run " + out[i].engine);
                    return made[i]->run(program);
                }();
                const workloads::verdict v = [&] {
                    const host::nvtx_range range("verify " + out[i].engine);
                    return work.verify();
                }();
                out[i].makespan_us.push_back(result.makespan_us);
                out[i].submit_us.push_back(result.submit_us);
                out[i].cpu_us.push_back(result.cpu_us);
                out[i].submitter_cpu_us.push_back(result.submitter_cpu_us);
                for (const auto& [name, us] : result.phases) out[i].phases[name].push_back(us);
                for (const auto& [name, count] : result.counts) out[i].counts[name] += count;
                if (!v.verified) trouble(out[i], v.detail.empty() ? "the result differs from a sequential run's" : v.detail);
            } catch (const device_error& e) {
                trouble(out[i], e.what());
                lost = true;
            } catch (const error& e) { // a task failed: this engine's memory of it (poison) would spoil its later runs
                trouble(out[i], e.what());
                made[i].reset();
            }
            bar.at(++done, total);
        }
    }
    for (auto& r : out)
        if (r.makespan_us.size() < o.repeat) trouble(r, "not run: the device was lost before");
    return out;
}

std::vector<run_row> rows_of(const std::vector<engine_runs>& runs)
{
    std::vector<run_row> out;
    for (const auto& r : runs) out.push_back({r.engine, spread_of(r.makespan_us), r.verified});
    return out;
}

bool all_verified(const std::vector<engine_runs>& runs)
{
    return std::all_of(runs.begin(), runs.end(), [](const engine_runs& r) { return r.verified; });
}

} // namespace slipstream::cli
