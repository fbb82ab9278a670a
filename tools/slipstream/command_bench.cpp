// slipstream bench: what tasks cost, beside what the hardware and CUDA need for the same.
#include "tools/slipstream/bench/guard/guard.hpp"
#include "tools/slipstream/bench/metg.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/bench/targets.hpp"
#include "tools/slipstream/bench/time_limit.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/gpu_inventory.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include <algorithm>

namespace slipstream::cli {
namespace {

constexpr std::chrono::seconds time_allowed{8 * 60};

bool given(const options& o, const char* flag)
{
    return std::find(o.bench_given.begin(), o.bench_given.end(), flag) != o.bench_given.end();
}

// Null for floors, guard, metg and targets, whose results are no plain figures of this engine.
const bench::benchmark* find_benchmark(const std::string& name)
{
    if (name == "floors" || name == "guard" || name == "metg" || name == "targets") return nullptr;
    std::string known = "floors, guard, metg, ";
    for (const auto& b : bench::all_benchmarks()) {
        if (b.name == name) return &b;
        known += b.name + ", ";
    }
    known += "targets";
    if (name.empty()) throw usage_error("bench: nothing given to measure; use one of: " + known);
    throw usage_error("bench " + name + ": unknown benchmark; use one of: " + known);
}

using names = std::initializer_list<std::string_view>;

bool among(names all, std::string_view name) { return std::find(all.begin(), all.end(), name) != all.end(); }

// A flag without effect would look as if it had one.
void refuse_flags_of_others(const options& o)
{
    const auto refuse = [&](const char* flag, const std::string& instead) {
        throw usage_error("bench " + o.benchmark + ": takes no " + flag + "; leave it out" + instead);
    };
    const struct {
        const char* flag;
        names takers;
    } of_few[] = {
        {"--width", {"fan"}},
        {"--pattern", {"metg"}},
        {"--buffers", {"metg"}},
        {"--engines", {"metg"}},
        // Of the others, the memory lies in one part, so that the rest of the engine would stand idle; `parts` goes through its
        // own numbers.
        {"--parts", {"throughput", "window", "echo", "bus", "submit", "metg", "targets"}},
    };
    for (const auto& [flag, takers] : of_few) {
        if (!given(o, flag) || among(takers, o.benchmark)) continue;
        std::string instead;
        for (const std::string_view name : takers) instead += (instead.empty() ? "" : ", ") + std::string(name);
        refuse(flag, takers.size() == 1 ? ", or use 'bench " + instead + "', which does"
                                        : ", or use one of these, which do: " + instead);
    }
    const struct {
        const char* flag;
        names others; ///< all else takes it
    } of_most[] = {
        {"--tasks", {"floors", "guard", "idle"}},
        {"--seconds", {"floors", "guard", "idle", "echo", "submit", "bus"}},
        {"--window", {"floors", "guard", "window"}}, // which goes through its own numbers
        {"--ring", {"floors", "guard"}},
        {"--workers-per-sm", {"floors", "guard", "idle", "bodies", "large"}}, // which are for one worker an SM
        {"--no-staging", {"floors", "guard"}},
        {"--no-chaining", {"floors", "guard"}},
        {"--no-bypass", {"floors", "guard"}},
        {"--no-broadcast", {"floors", "guard"}},
    };
    for (const auto& [flag, others] : of_most)
        if (given(o, flag) && among(others, o.benchmark)) refuse(flag, "");
}

bool all_good(const std::vector<bench::figure>& figures)
{
    return std::all_of(figures.begin(), figures.end(), [](const bench::figure& f) { return f.verified; });
}

bench::metg_request metg_request_of(const options& o, bool cuda)
{
    using workloads::pattern_names;
    bench::metg_request out{{}, o.bench_engines.empty() ? bench::metg_engines(cuda) : chosen_engines(o.bench_engines, cuda),
                            o.buffers};
    if (o.pattern == "all")
        out.patterns.assign(std::begin(pattern_names), std::end(pattern_names));
    else
        out.patterns = {o.pattern};
    if (std::find(std::begin(pattern_names), std::end(pattern_names), out.patterns.front()) == std::end(pattern_names)) {
        std::string known;
        for (const char* name : pattern_names) known += std::string(name) + ", ";
        throw usage_error("--pattern " + o.pattern + ": unknown pattern; use one of: " + known + "all");
    }
    if (o.buffers == 1)
        throw usage_error("--buffers 1: a row of tasks would write over what it reads; give 2 or more, or 0 for one each step");
    return out;
}

std::vector<bench::figure> measure_floors(bench::floor_book& floors)
{
    progress_bar bar("measuring floors");
    std::vector<bench::figure> out;
    for (const auto& entry : floors.entries()) {
        out.push_back(floors.measure(entry));
        bar.at(static_cast<double>(out.size()), static_cast<double>(floors.entries().size()));
    }
    return out;
}

// One command in progress: measures, prints, writes.
int measure_and_report(const options& o, const bench::benchmark* chosen, const report_target& target, const environment& e,
                       engines::device_memory& device, const bench::bench_setup& setup)
{
    std::FILE* const to = target.tables();
    rapidjson::StringBuffer text;
    json_writer w(text);
    w.StartObject();
    field(w, "command", "bench " + o.benchmark);
    bool good = true;
    const auto head = [&](const char* what) {
        const bool of_engine = o.benchmark != "floors" && o.benchmark != "guard"; // which have no engine of ours, and no window
        std::fprintf(to, "bench %s: %s\n%s%s, commit %s:\n", o.benchmark.c_str(), what, e.device.c_str(),
                     of_engine ? (", " + sizes_text(o)).c_str() : "", e.commit.c_str());
    };
    const auto list_targets = [&](const char* what, const std::vector<bench::target>& targets) {
        head(what);
        bench::print_targets(to, targets);
        bench::write_targets(w, targets);
    };
    if (o.benchmark == "guard") {
        const std::vector<bench::target> rows = bench::measure_guard(device, o.repeat, o.slow_streams);
        good = std::all_of(rows.begin(), rows.end(), [](const bench::target& t) { return t.outcome == bench::verdict::met; });
        list_targets("engines against hand-written CUDA", rows);
    } else if (o.benchmark == "metg") {
        const bench::metg_result result = bench::measure_metg(setup, metg_request_of(o, e.is_cuda));
        good = result.verified();
        head("how short tasks may get before an engine loses half of the machine");
        bench::print_metg(to, result);
        bench::write_metg(w, result);
    } else if (o.benchmark == "targets") {
        const std::vector<bench::target> targets = bench::measure_targets(setup, e.is_cuda);
        good =
            std::all_of(targets.begin(), targets.end(), [](const bench::target& t) { return !t.measured || t.measured->verified; });
        list_targets("what was wanted, what came out", targets);
    } else {
        const std::vector<bench::figure> figures = chosen != nullptr ? chosen->run(setup) : measure_floors(setup.floors);
        good = all_good(figures);
        head(chosen != nullptr ? chosen->what.c_str() : "what the hardware and CUDA need");
        bench::print_figures(to, figures);
        bench::write_figures(w, figures);
    }
    good = good && setup.floors.all_verified(); // each that did not has been told in the log
    if (!e.is_cuda) std::fprintf(to, "\nThis was a correctness run on the host device: its times are NOT GPU times.\n");
    write_environment(w, e, o);
    w.EndObject();
    if (target.wants_json()) target.write(text);
    return good ? exit_good : exit_run_failed;
}

u64 gpu_memory_bytes(const engines::device_memory& device)
{
    if (!device.is_cuda()) return 0;
    for (const gpu& g : take_inventory().gpus)
        if (g.ordinal == static_cast<int>(device.ordinal())) return g.memory_bytes;
    return 0;
}

} // namespace

int run_bench(const options& o)
{
    const report_target target(o);
    const bench::benchmark* const chosen = find_benchmark(o.benchmark);
    refuse_flags_of_others(o);
    const auto device = open_named_device(o.device);
    if ((o.benchmark == "floors" || o.benchmark == "guard") && !device->is_cuda())
        throw usage_error("bench " + o.benchmark + ": measures a GPU, and the device is the host; use --device cuda on a machine "
                          "with one (see 'slipstream devices')");
    const environment e = describe_environment(o, device->name(), device->is_cuda());
    // A benchmark of one figure may be given hours (--seconds); these are bounded.
    std::unique_ptr<bench::time_limit> limit;
    const u32 graphs = o.benchmark == "metg" && o.pattern == "all" ? std::size(workloads::pattern_names) : 1;
    if (chosen == nullptr) limit = std::make_unique<bench::time_limit>("bench " + o.benchmark, graphs * time_allowed);
    bench::floor_book floors(device->is_cuda() ? bench::all_floors(device->ordinal()) : std::vector<bench::floor_entry>{},
                             o.repeat);
    return measure_and_report(o, chosen, target, e, *device,
                              {engine_configuration(o, *device), {o.repeat, o.tasks, o.seconds}, given(o, "--parts"), o.lose_a_task,
                               o.width, e.is_cuda, gpu_memory_bytes(*device), floors, *device});
}

} // namespace slipstream::cli
