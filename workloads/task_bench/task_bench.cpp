// The generator, the reference and the check.
#include "workloads/task_bench/task_bench.hpp"
#include "workloads/digest/broken_edge.hpp"
#include "workloads/digest/digest_image.hpp"
#include "workloads/digest/work_rate.hpp"
#include "workloads/parameters.hpp"
#include <algorithm>

namespace slipstream::workloads {
namespace {

using abi::access_mode;

constexpr u32 tasks_max = 10'000'000;
constexpr u64 inputs_max = 10'000'000; // 48 bytes of host memory each
constexpr u32 outputs_max = 1u << 20;
constexpr u32 fraction_one = 1u << 31;

const parameters& defaults()
{
    static const parameters values{
        {"pattern", "stencil_1d"}, {"width", "64"},  {"steps", "50"}, {"radix", "5"},   {"period", "3"}, {"fraction", "0.25"},
        {"buffers", "2"},          {"handles", "1"}, {"rows", "0"},   {"work_us", "5"}, {"break", ""}};
    return values;
}

pattern pattern_of(const std::string& name)
{
    std::string known;
    for (u32 i = 0; i < std::size(pattern_names); ++i) {
        if (name == pattern_names[i]) return static_cast<pattern>(i);
        if (i != 0) known += ", ";
        known += pattern_names[i];
    }
    throw config_error("task-bench: unknown pattern '" + name + "': use " + known);
}

/// Shapes whose dependencies would meet in one point, or that Task Bench leaves undefined.
void refuse_degenerate(const task_graph& g)
{
    const auto refuse = [&](const std::string& what) {
        throw config_error(std::string("task-bench: ") + pattern_names[static_cast<u32>(g.kind)] + " needs " + what);
    };
    if (g.kind == pattern::stencil_1d_periodic && g.width < 3)
        refuse("width of at least 3: the neighbours to both sides must differ");
    if (g.kind == pattern::fft && g.width < 2) refuse("width of at least 2");
    if (g.kind == pattern::spread && (g.radix == 0 || g.radix > g.width)) refuse("radix from 1 to width");
    if (g.kind == pattern::spread && g.period > (g.width + g.radix - 1) / g.radix)
        refuse("period of at most width / radix, rounded up: later sets would name a point twice");
    if (g.kind == pattern::random_nearest && g.radix == 0) refuse("radix of at least 1");
}

task_bench_plan read_plan(const parameter_reader& values, u64 seed)
{
    task_bench_plan plan{};
    task_graph& g = plan.graph;
    g.kind = pattern_of(values.text("pattern"));
    g.width = values.whole("width", 1, 65536);
    g.steps = values.whole("steps", 1, tasks_max);
    g.radix = values.whole("radix", 0, 1024);
    g.period = values.whole("period", 1, 65536);
    g.keep_below = static_cast<u32>(values.number("fraction", 0, 1) * fraction_one);
    g.seed = static_cast<u32>(digest_mix(seed, 0x7b));
    refuse_degenerate(g);
    plan.buffers = values.whole("buffers", 0, tasks_max);
    if (plan.buffers == 0) plan.buffers = g.steps;
    if (plan.buffers == 1 && g.steps > 1)
        throw config_error(
            "task-bench: buffers = '1' must be 0, one for each step, or at least 2: a row would write over what it reads");
    plan.handles = values.whole("handles", 0, 1) == 1;
    plan.rows = values.whole("rows", 0, 1) == 1;
    if (u64{g.steps} * g.width > tasks_max)
        throw config_error("task-bench: width x steps must be at most " + std::to_string(tasks_max));
    if (u64{plan.buffers} * g.width > outputs_max)
        throw config_error("task-bench: width x buffers must be at most " + std::to_string(outputs_max));
    if (u64{g.steps} * g.width * g.candidates(1) > inputs_max)
        throw config_error("task-bench: at most " + std::to_string(inputs_max)
                           + " inputs of all tasks; use fewer steps, or less width or radix");
    return plan;
}

/// Calls visit(q) for each point of row t - 1 that point p of row t needs.
template <class Visit> void for_each_input(const task_graph& g, u32 t, u32 p, Visit&& visit)
{
    for (u32 i = 0; i < g.candidates(t); ++i)
        if (const u32 q = g.candidate(t, p, i); q != task_graph::no_point) visit(q);
}

template <class Visit> void for_each_point(const task_graph& g, u32 t, Visit&& visit)
{
    for (u32 k = 0; k < g.row_width(t); ++k) visit(g.first_point(t) + k);
}

std::string point_text(u32 t, u32 p)
{
    return std::string("(") + std::to_string(t) + ", " + std::to_string(p) + ")";
}

std::string stamp_text(u32 t, u32 p)
{
    return t == ~0u ? "nothing" : point_text(t, p);
}

} // namespace

task_bench::task_bench(engines::device_memory& device, const task_bench_plan& plan, bool lose_a_task)
    : device_(device), plan_(plan), program_(digest_image())
{
    const u64 outputs = u64{plan.buffers} * plan.graph.width, results = u64{plan.graph.steps} * plan.graph.width;
    board_ = static_cast<char*>(device.take(sizeof(point_header) + outputs * sizeof(point_output) + results * 8));
    expected_outputs_.resize(outputs);
    expected_results_.resize(results);
    if (plan.handles && !plan.rows)
        for (u64 i = 0; i < outputs; ++i)
            handles_.push_back(program_.register_range(board_ + sizeof(point_header) + i * sizeof(point_output),
                                                       sizeof(point_output),
                                                       // a point's are one part's
                                                       static_cast<double>(i % plan.graph.width) / plan.graph.width));
    header_.graph = plan.graph;
    header_.buffers = plan.buffers;
    header_.held = ~0u;
    add_tasks(lose_a_task);
    compute_reference();
    set_iterations(0);
}

/// The outputs of `points` points from p on, of row t.
declared_access task_bench::access_to(access_mode mode, u32 t, u32 p, u32 points)
{
    const u64 first = u64{t % plan_.buffers} * plan_.graph.width + p;
    if (!handles_.empty()) return on(mode, handles_[first]);
    return raw_access(mode, board_ + sizeof(point_header) + first * sizeof(point_output), points * sizeof(point_output));
}

void task_bench::add_tasks(bool lose_a_task)
{
    const task_graph& g = plan_.graph;
    std::vector<declared_access> accesses;
    const auto board = reinterpret_cast<u64>(board_);
    point_task task{static_cast<u32>(board), static_cast<u32>(board >> 32), 0};
    const u32 lost_row = lose_a_task ? g.steps / 2 : g.steps;
    const auto add = [&](u32 t, u32 p, u32 blocks) {
        accesses.push_back(access_to(access_mode::write, t, p, blocks));
        task.first = t * g.width + p;
        if (t != lost_row || p != g.first_point(t))
            program_.add(point_task_type, &task, blocks, accesses, {}, ordering::by_access, point_task::name);
        accesses.clear();
    };
    for (u32 t = 0; t < g.steps; ++t) {
        points_ += g.row_width(t);
        for_each_point(g, t, [&](u32 p) {
            for_each_input(g, t, p, [&](u32 q) {
                ++inputs_;
                if (!plan_.rows) accesses.push_back(access_to(access_mode::read, t - 1, q));
            });
            if (!plan_.rows) add(t, p, 1);
        });
        if (!plan_.rows) continue;
        if (g.candidates(t) != 0) accesses.push_back(access_to(access_mode::read, t - 1, g.first_point(t - 1), g.row_width(t - 1)));
        add(t, g.first_point(t), g.row_width(t));
    }
}

void task_bench::compute_reference()
{
    const task_graph& g = plan_.graph;
    std::fill(expected_outputs_.begin(), expected_outputs_.end(), point_output{~0u, ~0u, ~u64{0}});
    const auto output = [&](u32 t, u32 p) -> point_output& { return expected_outputs_[u64{t % plan_.buffers} * g.width + p]; };
    for (u32 t = 0; t < g.steps; ++t)
        for_each_point(g, t, [&](u32 p) {
            const u32 number = t * g.width + p;
            u64 digest = digest_begin(number, 0);
            for_each_input(g, t, p, [&](u32 q) { digest += digest_term(q, output(t - 1, q).digest); });
            output(t, p) = {t, p, digest};
            expected_results_[number] = digest;
        });
}

void task_bench::set_iterations(u32 iterations)
{
    header_.iterations = iterations;
    header_.chains_come_to = busy_chains(iterations);
}

void task_bench::break_edge(const std::string& kind)
{
    const broken_edge edge = find_broken_edge(program_, kind);
    program_.forget_access(edge.task, edge.access);
    const double hold_us = device_.is_cuda() ? 5'000 : 100'000; // threads of a busy machine may have to wait for their turn
    const double rate = iterations_per_us(device_, digest_image(), digest_task_type);
    header_.held = static_cast<const point_task*>(program_.arguments(edge.held))->first;
    header_.hold = static_cast<u32>(hold_us * rate);
}

void task_bench::reset()
{
    device_.write(board_, &header_, sizeof header_);
    device_.fill(board_ + sizeof header_, 0xff, outputs_bytes()); // stamps of nobody
    device_.fill(board_ + sizeof header_ + outputs_bytes(), 0, expected_results_.size() * 8);
}

verdict task_bench::verify()
{
    point_header header;
    std::vector<point_output> outputs(expected_outputs_.size());
    std::vector<u64> results(expected_results_.size());
    device_.read(&header, board_, sizeof header);
    device_.read(outputs.data(), board_ + sizeof header, outputs_bytes());
    device_.read(results.data(), board_ + sizeof header + outputs_bytes(), results.size() * 8);
    std::string text;
    const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
    if (header.mismatches != 0)
        add("wrong inputs: " + std::to_string(header.mismatches) + "; task " + point_text(header.timestep, header.point) + " found "
            + stamp_text(header.found_timestep, header.found_point) + " where " + point_text(header.timestep - 1, header.from)
            + " was due");
    u64 wrong = 0, first = 0;
    for (u64 i = results.size(); i-- > 0;)
        if (results[i] != expected_results_[i]) {
            first = i;
            ++wrong;
        }
    const auto place = [&](u64 i) {
        return point_text(static_cast<u32>(i / plan_.graph.width), static_cast<u32>(i % plan_.graph.width));
    };
    if (wrong != 0)
        add(std::to_string(wrong) + " of " + std::to_string(points_) + " tasks have a wrong digest, the first is " + place(first));
    for (u64 i = 0; i < outputs.size(); ++i) {
        const point_output &got = outputs[i], &expected = expected_outputs_[i];
        if (got.timestep == expected.timestep && got.point == expected.point && got.digest == expected.digest) continue;
        add("buffer " + std::to_string(i / plan_.graph.width) + " of point " + std::to_string(i % plan_.graph.width) + " holds "
            + stamp_text(got.timestep, got.point) + " in the end, or a wrong digest");
        break;
    }
    return {text.empty(), text};
}

double chain_iterations_per_us(engines::device_memory& device)
{
    task_bench one(device, {{pattern::trivial, 1, 1, 0, 1, 0, 0}, 1, false, false}, false);
    const auto engine = engines::make_engine("serial", {}, device, one.program().image());
    engine->prepare(one.program());
    const auto run_us = [&](u32 iterations) {
        one.set_iterations(iterations);
        one.reset();
        engine->run(one.program()); // clocks rise, code is loaded
        double best = engine->run(one.program()).makespan_us;
        for (u32 i = 0; i < 2; ++i) best = std::min(best, engine->run(one.program()).makespan_us);
        return best;
    };
    // On a GPU about 0.2 ms and 0.8 ms: far above the noise of a launch.
    constexpr u32 few = 3'000, many = 12'000;
    const double slope = (run_us(many) - run_us(few)) / (many - few);
    return slope > 0 ? std::clamp(1 / slope, 0.1, 1'000.0) : 10.0;
}

std::unique_ptr<task_bench> make_task_bench(engines::device_memory& device, const parameters& given, u64 seed, bool lose_a_task)
{
    const parameter_reader values("task-bench", defaults(), given);
    const double work_us = values.number("work_us", 0, 1e5);
    auto out = std::make_unique<task_bench>(device, read_plan(values, seed), lose_a_task);
    // Host runs are about correctness: a fiftieth of the work is enough to mix the order of tasks.
    if (work_us > 0)
        out->set_iterations(
            std::max(1u, static_cast<u32>(work_us * chain_iterations_per_us(device) * (device.is_cuda() ? 1 : 1 / 50.))));
    if (!values.text("break").empty()) out->break_edge(values.text("break"));
    return out;
}

workload_type task_bench_type()
{
    return {"task-bench", "the dependence patterns of Task Bench (SC'20); inputs checked on the device, all digests afterwards",
            defaults(), [](engines::device_memory& device, const parameters& values, u64 seed) -> std::unique_ptr<workload> {
                return make_task_bench(device, values, seed);
            }};
}

} // namespace slipstream::workloads
