// slipstream bench: what tasks cost, beside what the hardware and CUDA need for the same.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/device_choice.hpp"
#include <algorithm>

namespace slipstream::cli {
namespace {

const bench::benchmark& find_benchmark(const std::string& name)
{
    std::string known = "floors, ";
    for (const auto& b : bench::all_benchmarks()) {
        if (b.name == name) return b;
        known += b.name + ", ";
    }
    known += "targets";
    if (name.empty()) throw usage_error("bench: nothing given to measure; use one of: " + known);
    throw usage_error("bench " + name + ": unknown benchmark; use one of: " + known);
}

bool all_good(const std::vector<bench::figure>& figures)
{
    return std::all_of(figures.begin(), figures.end(), [](const bench::figure& f) { return f.verified; });
}

} // namespace

int run_bench(const options& o)
{
    const report_target target(o);
    std::FILE* const to = target.tables();
    const bench::benchmark& chosen = find_benchmark(o.benchmark);
    const auto device = open_named_device(o.device);
    const environment e = describe_environment(o, device->name(), device->is_cuda());
    bench::floor_book floors(device->is_cuda() ? bench::all_floors(device->ordinal()) : std::vector<bench::floor_entry>{}, o.repeat);
    const bench::bench_setup setup{engine_configuration(o, *device), {o.repeat, o.tasks, o.seconds}, o.lose_a_task, o.width, floors};

    const std::vector<bench::figure> figures = chosen.run(setup);
    std::fprintf(to, "bench %s: %s\n%s, window %u, ring %u, commit %s:\n", chosen.name.c_str(), chosen.what.c_str(), e.device.c_str(), o.window,
                 o.ring, e.commit.c_str());
    bench::print_figures(to, figures);
    if (!e.is_cuda) std::fprintf(to, "\nThis was a correctness run on the host device: its times are NOT GPU times.\n");

    rapidjson::StringBuffer text;
    json_writer w(text);
    w.StartObject();
    field(w, "command", "bench " + o.benchmark);
    bench::write_figures(w, figures);
    write_environment(w, e, o);
    w.EndObject();
    if (target.wants_json()) target.write(text);
    return all_good(figures) ? exit_good : exit_run_failed;
}

} // namespace slipstream::cli
