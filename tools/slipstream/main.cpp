// slipstream: the one command-line tool. Parses, dispatches, and turns every error into one line and an exit code.
#include "host/trace/import_error.hpp"
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/option_values.hpp"
#include "tools/slipstream/soak/soak_case.hpp"
#include <iostream>
#include <new>
#include <slipstream/status.hpp>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include "slipstream_commit.hpp"

namespace slipstream::cli {
namespace {

constexpr u64 tasks_max = 10'000'000; // of a measured run

// Errors must stay on one line whatever a file name or an argument contains.
std::string one_line(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    return text;
}

int refuse(const std::string& why, int code = exit_bad_input)
{
    spdlog::error("{}", one_line(why));
    return code;
}

void add_json(CLI::App& app, options& o)
{
    app.add_option("--json", o.json, "write the result as JSON to FILE; '-': to stdout, tables go to stderr");
}

/// A flag that turns something off. CLI11's own negation shows in help as --no-x{false}.
void add_without(CLI::App& app, const char* flag, bool& on, const char* what)
{
    app.add_flag_function(flag, [&on](std::int64_t given) { on = given <= 0; }, what);
}

void add_engine_flags(CLI::App& app, options& o)
{
    app.add_option("--device", o.device, "auto, cuda, cuda:N or host")->capture_default_str();
    add_whole(app, "--window", o.window, {16, 4096}, "in-flight tasks of the slipstream engine, 16 to 4096");
    add_whole(app, "--ring", o.ring, {4, 1u << 24}, "slots of the submission ring, 4 or more");
    add_whole(app, "--workers-per-sm", o.workers_per_sm, {1, 2}, "resident thread blocks on each SM, 1 or 2; with --parts 1");
    add_whole(app, "--parts", o.parts, {1, 8},
              "of the slipstream engine, each with a control block, a ring, "
              "and its share of the SMs and of the memory, 1 to 8");
    add_without(app, "--no-staging", o.staging,
                "mail no task before those that it waits for are complete (to measure what that gains)");
    add_without(app, "--no-chaining", o.chaining, "mail no task behind one that it waits for, to the same worker (likewise)");
    add_without(app, "--no-bypass", o.bypass, "send a task that comes alone the way of all others (likewise)");
    add_without(app, "--no-broadcast", o.broadcast, "mail no task of several brief blocks to all workers at once (likewise)");
    add_whole(app, "--repeat", o.repeat, {1, 100'000}, "runs of everything measured; engines alternate");
    add_json(app, o);
}

void add_bench_flags(CLI::App& app, options& o)
{
    app.add_option("BENCHMARK", o.benchmark,
                   "floors, chain, fan, throughput, echo, blocks, window, parts, bus, bodies, large, idle, growth, submit, "
                   "guard, metg or targets");
    add_engine_flags(app, o);
    add_whole(app, "--tasks", o.tasks, {0, tasks_max, "what --seconds allow"},
              "tasks of a run; a slope is taken to a run of twice as many (default: what --seconds allow). metg: of a graph");
    add_number(app, "--seconds", o.seconds, {0, 600, true}, "measuring time of one figure, when --tasks is not given");
    add_whole(app, "--width", o.width, {1, 256}, "fan: readers between producer and joiner");
    app.add_option("--pattern", o.pattern, "metg: a dependence pattern of Task Bench, or all")->capture_default_str();
    add_whole(app, "--buffers", o.buffers, {0, 10'000, "one for each step"},
              "metg: outputs of a point, used in turn; 0: one for each step");
    app.add_option("--engines,--engine", o.bench_engines,
                   "metg: NAME[,NAME...] or all (default: slipstream,streams,graph-replay,graph-rebuild)");
    app.add_flag("--lose-a-task", o.lose_a_task, "leave out one task of every run (for tests: must not verify)")->group("");
    app.add_flag("--slow-streams", o.slow_streams,
                 "guard: a further launch for every task of streams (for tests: must fail)")
        ->group("");
}

void add_engine_choice(CLI::App& app, options& o)
{
    app.add_option("--engine", o.engine, "engines to compare: NAME[,NAME...] or all")->capture_default_str();
    add_whole(app, "--seed", o.seed, {0, ~u64{0}}, "seed of everything random");
}

void add_common_flags(CLI::App& app, options& o)
{
    add_engine_flags(app, o);
    add_engine_choice(app, o);
    app.add_flag("--analyze", o.analyze, "import and analysis only: run nothing");
    app.add_option("--break", o.break_kind, "leave out one RAW, WAR or WAW edge (for tests: must not verify)")->group("");
}

void add_compare_flags(CLI::App& app, options& o)
{
    app.add_option("SUBJECT", o.subjects,
                   "workloads as NAME[:key=value,...], traces as X.kineto.json[.gz] (X.et.json beside it) or KINETO+ET, or demo");
    app.add_flag("--suite", o.suite, "all workloads and traces of the results page (its sweeps: --sweep all)");
    app.add_option("--sweep", o.sweeps,
                   "length, width, fan-in, window or all, AXIS=V,V,... for values of your own: of the workloads named, else "
                   "of a layered DAG")
        ->allow_extra_args(false);
    add_engine_flags(app, o);
    add_engine_choice(app, o);
    app.add_option("--seeds", o.seeds, "several seeds, S,S,...: workloads are made anew for each; overrides --seed");
    add_whole(app, "--tasks", o.tasks, {0, tasks_max, "what keeps a point short"},
              "tasks of each point of a sweep (default: what keeps a point short)");
    app.add_option("--plots", o.plots, "draw plots into this folder, beside compare.json (needs Python 3 with matplotlib)");
}

void add_timeline_flags(CLI::App& app, options& o)
{
    app.add_option("--timeline", o.timeline,
                   "after the measured runs, record one more of each slipstream engine: a Chrome trace for "
                   "https://ui.perfetto.dev; compressed when FILE ends in .gz");
    add_whole(app, "--timeline-entries", o.timeline_entries, {64, 1u << 20},
              "runs of blocks that the record of each worker has room for, 64 to 1048576");
}

void add_soak_flags(CLI::App& app, options& o)
{
    app.add_option("--device", o.device, "auto, cuda, cuda:N or host")->capture_default_str();
    add_whole(app, "--tasks", o.soak_tasks, {0, ~u64{0}, "as many as time allows"},
              "end after so many tasks (with neither this nor --seconds: after 20 s)");
    add_number(app, "--seconds", o.soak_seconds, {0, 1e6, false, "as long as the tasks take"}, "end after so long");
    add_whole(app, "--seed", o.seed, {0, ~u64{0}}, "seed of all cases");
    add_whole(app, "--stream-tasks", o.stream_tasks, {0, soak::stream_tasks_max, "what suits the device"},
              "tasks of a stream, after each of which memory is compared (default: what suits the device)");
    app.add_option("--style", o.style,
                   "what streams are made of: light, dense, tiles, handles, wide, rows, failing or mixed (default: each in turn)");
    add_whole(app, "--start-position", o.start_position, {0, u64{1} << 54},
              "positions and counters of every case begin here, and none has several parts (default: drawn, often "
              "just below where they wrap)")
        ->default_str("");
    app.add_option("--case", o.soak_case, "run this one case again and again: what a failing soak prints");
    app.add_option("--break", o.break_kind, "hide one access that a RAW, WAR or WAW needs, in every stream: must be found");
    add_json(app, o);
}

void check(const options& o)
{
    if (!o.break_kind.empty() && o.break_kind != "RAW" && o.break_kind != "WAR" && o.break_kind != "WAW")
        throw usage_error("--break " + o.break_kind + ": unknown hazard; use RAW, WAR or WAW");
}

int parse_and_run(int argc, char** argv)
{
    options o;
    for (int i = 0; i < argc; ++i) o.command_line += (i ? " " : "") + std::string(i ? argv[i] : "slipstream");

    CLI::App app("Slipstream: an out-of-order task engine that lives on the GPU", "slipstream");
    app.set_version_flag("--version", std::string("slipstream ") + slipstream_version + " (" + slipstream_commit + ")");
    app.require_subcommand(0, 1); // none is refused below: then CLI11 first names an argument that it does not know
    CLI::App* devices = app.add_subcommand("devices", "what is here, what works, what is missing and how to get it");
    add_json(*devices, o);

    CLI::App* replay = app.add_subcommand("replay", "run a recorded PyTorch trace on every engine and compare");
    replay->add_option("KINETO", o.kineto, "Kineto (torch.profiler) trace, .json or .json.gz");
    replay->add_option("--et", o.et, "execution trace of the same run: data dependencies instead of stream order");
    replay->add_option("--mode", o.mode,
                       "when tasks arrive: back-to-back, preloaded (all before the clock starts) or paced (as recorded)")
        ->capture_default_str();
    add_common_flags(*replay, o);
    add_timeline_flags(*replay, o);

    CLI::App* run = app.add_subcommand("run", "run a built-in workload on every engine and compare");
    run->add_option("WORKLOAD", o.workload, "its name, see --list");
    run->add_option("NAME=VALUE", o.parameters, "parameters of the workload, see --list");
    run->add_flag("--list", o.list, "print the workloads and their parameters");
    add_common_flags(*run, o);
    add_timeline_flags(*run, o);

    CLI::App* compare =
        app.add_subcommand("compare", "compare engines on several workloads and traces, with bounds, costs, sweeps and plots");
    add_compare_flags(*compare, o);

    CLI::App* measure = app.add_subcommand("bench", "what tasks cost, beside what the hardware and CUDA need for the same");
    add_bench_flags(*measure, o);

    CLI::App* soaking = app.add_subcommand("soak", "random streams of tasks against a sequential run, for as long as wanted");
    add_soak_flags(*soaking, o);

    for (CLI::App* sub : {devices, replay, run, compare, measure, soaking}) refuse_missing_values(*sub);
    const auto help = [&] {
        std::string at;
        for (const CLI::App* sub : app.get_subcommands()) at = " " + sub->get_name();
        return "see 'slipstream" + at + " --help'";
    };
    const std::string commands = "use devices, replay, run, compare, bench or soak, ";
    try {
        app.parse(argc, argv);
    } catch (const CLI::ExtrasError&) { // whose own text has them in reverse order
        const std::vector<std::string> left = app.remaining(true);
        if (app.get_subcommands().empty() && !left.front().starts_with('-'))
            throw usage_error(left.front() + ": unknown command; " + commands + help());
        std::string text;
        for (const std::string& argument : left) text += " " + argument;
        throw usage_error("not expected:" + text + "; " + help());
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e); // --help, --version
        throw usage_error(e.what() + std::string("; ") + help());
    }
    if (app.get_subcommands().empty()) throw usage_error("no command given; " + commands + help());
    check(o);
    if (devices->parsed()) return run_devices(o);
    if (replay->parsed()) return run_replay(o);
    if (compare->parsed()) return run_compare(o);
    for (const CLI::Option* given : measure->parse_order()) o.bench_given.push_back(given->get_name());
    if (measure->parsed()) return run_bench(o);
    o.start_given = soaking->count("--start-position") != 0;
    if (soaking->parsed()) return run_soak(o);
    return run_workload(o);
}

} // namespace
} // namespace slipstream::cli

int main(int argc, char** argv)
{
    using namespace slipstream;
    // Logs never touch stdout: with --json - it carries JSON and nothing else.
    auto logger = spdlog::stderr_color_st("slipstream");
    logger->set_pattern("%n: %^%l%$: %v");
    spdlog::set_default_logger(logger);
    try {
        const int code = cli::parse_and_run(argc, argv);
        if (std::fflush(stdout) != 0 || std::ferror(stdout))
            return cli::refuse("stdout: could not be written completely; is the disk full, or the other end closed?",
                               cli::exit_run_failed);
        return code;
    } catch (const cli::usage_error& e) {
        return cli::refuse(e.what());
    } catch (const trace::import_error& e) {
        return cli::refuse(e.what());
    } catch (const std::length_error& e) { // an analysis that would exceed its bounds
        return cli::refuse(e.what());
    } catch (const config_error& e) {
        return cli::refuse(e.what());
    } catch (const std::bad_alloc&) {
        return cli::refuse("out of memory; use a smaller input or a machine with more memory", cli::exit_run_failed);
    } catch (const std::exception& e) { // device_error among them
        return cli::refuse(e.what(), cli::exit_run_failed);
    }
}
