// Peak, then for each pattern all engines in turns, length after length.
#include "tools/slipstream/bench/metg.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include "workloads/digest/digest_image.hpp"
#include <algorithm>
#include <cmath>
#include <slipstream/runtime.hpp>

namespace slipstream::bench {
namespace {

using workloads::pattern;
using workloads::task_bench;

constexpr double shortest_us = 0.5;
constexpr double longest_us_cuda = 16384; // 95 % of the peak with 800 us of overhead a task
constexpr double longest_us_host = 1024;  // enough to see that it works
constexpr double enough = 0.97;           // an engine that has reached this share of the peak has nothing more to show
constexpr double run_longest_us = 2e6;    // no longer tasks after such a run: of dom, whose shape keeps everybody from the peak
constexpr u32 repeats_min = 3;
constexpr double time_share = 0.25; // of --seconds, at each length of each engine
constexpr u32 solo_waves = 32;      // blocks a place
constexpr double solo_block_us = 100;
constexpr u32 steps_usual = 100;
constexpr u64 inputs_usual = 200'000; // of all_to_all: a graph with more edges takes seconds to make
constexpr u32 width_min = 16;         // spread has room for its radix and its sets from 11 points on

/// Rows of a graph, from --tasks where it is given.
u32 steps_of(pattern kind, u32 width, u64 tasks, u32 wanted)
{
    if (tasks != 0) return static_cast<u32>(std::max<u64>(2, tasks / width));
    if (wanted != 0) return wanted;
    if (kind == pattern::dom) return 4 * width; // rows grow and shrink by a point a step: three quarters of the machine at best
    if (kind == pattern::all_to_all) return static_cast<u32>(std::clamp<u64>(inputs_usual / (u64{width} * width), 8, steps_usual));
    return steps_usual;
}

/// An engine of one pattern's contest.
struct contestant {
    std::unique_ptr<engines::engine> engine; ///< null: nothing more to measure
    std::vector<double> wall_us;             ///< at the length in hand
    u32 repeats = 0;                         ///< wanted at this length
};

class contest {
public:
    contest(const bench_setup& s, const metg_peak& peak, task_bench& work, const std::vector<std::string>& names)
        : setup_(s), work_(work), highest_rate_(peak.solo_rate)
    {
        graph_.plan = work.plan();
        graph_.tasks = work.points();
        graph_.inputs = work.inputs();
        for (const std::string& name : names) {
            graph_.curves.push_back({name, {}, true, {}});
            contestants_.push_back({});
            try {
                auto engine = engines::make_engine(name, s.configuration, s.device, work.program().image());
                engine->prepare(work.program());
                contestants_.back().engine = std::move(engine);
            } catch (const error& e) { // the others may well take this graph
                trouble(graph_.curves.back(), e.what());
            }
        }
    }

    bool over() const
    {
        return std::none_of(contestants_.begin(), contestants_.end(), [](const contestant& c) { return c.engine != nullptr; });
    }
    metg_graph take() { return std::move(graph_); }

    /// Everybody once, then everybody in turns as often as there is time for.
    void measure(u32 iterations)
    {
        work_.set_iterations(iterations);
        u32 turns = 0;
        for (std::size_t i = 0; i < contestants_.size(); ++i) {
            contestant& c = contestants_[i];
            c.wall_us.clear();
            run(i);
            if (c.wall_us.empty()) continue;
            const double first_us = c.wall_us.front(), allowed_us = time_share * setup_.how_long.seconds * 1e6;
            c.repeats = static_cast<u32>(std::clamp(allowed_us / first_us, std::min<double>(repeats_min, setup_.how_long.repeats),
                                                    1.0 * setup_.how_long.repeats));
            if (first_us < allowed_us) c.wall_us.clear(); // it warmed up; a long run has no need to
            turns = std::max(turns, c.repeats);
        }
        for (u32 turn = 0; turn < turns; ++turn)
            for (std::size_t i = 0; i < contestants_.size(); ++i)
                if (contestants_[i].engine && contestants_[i].wall_us.size() < contestants_[i].repeats) run(i);
        for (std::size_t i = 0; i < contestants_.size(); ++i) keep(i, iterations);
    }

private:
    static void trouble(metg_curve& curve, const std::string& what)
    {
        curve.verified = false;
        if (curve.trouble.empty()) curve.trouble = what;
    }

    void run(std::size_t i)
    {
        contestant& c = contestants_[i];
        if (!c.engine) return;
        metg_curve& curve = graph_.curves[i];
        try {
            work_.reset();
            c.wall_us.push_back(c.engine->run(work_.program()).makespan_us);
            if (const workloads::verdict v = work_.verify(); !v.verified) trouble(curve, v.detail);
        } catch (const device_error& e) {
            trouble(curve, e.what());
            for (std::size_t k = 0; k < contestants_.size(); ++k) {
                if (contestants_[k].engine && k != i) trouble(graph_.curves[k], "not measured to the end: the device was lost");
                contestants_[k].engine.reset();
            }
        } catch (const error& e) {
            trouble(curve, e.what());
            c.engine.reset();
        }
    }

    void keep(std::size_t i, u32 iterations)
    {
        contestant& c = contestants_[i];
        if (!c.engine) return;
        const metg_point p{iterations, spread_of(c.wall_us), static_cast<u32>(c.wall_us.size()), graph_.curves[i].verified};
        graph_.curves[i].points.push_back(p);
        const double rate = static_cast<double>(graph_.tasks) * iterations / p.wall_us.median;
        highest_rate_ = std::max(highest_rate_, rate);
        if (rate >= enough * highest_rate_ || p.wall_us.median >= run_longest_us || !p.verified) c.engine.reset();
    }

    const bench_setup& setup_;
    task_bench& work_;
    double highest_rate_;
    metg_graph graph_;
    std::vector<contestant> contestants_;
};

/// The body on all places at once and nothing else: points without inputs, launched as one task.
void measure_peak(const bench_setup& s, metg_result& r)
{
    r.peak.block_rate = workloads::chain_iterations_per_us(s.device);
    const u32 width = solo_waves * r.places;
    task_bench work(s.device, {{pattern::trivial, width, 1, 0, 1, 0, 0}, 1, false, true}, false);
    const u32 iterations = static_cast<u32>(std::max(1.0, solo_block_us * r.peak.block_rate));
    work.set_iterations(iterations);
    const auto engine = engines::make_engine("serial", s.configuration, s.device, work.program().image());
    engine->prepare(work.program());
    std::vector<double> wall_us;
    r.peak.verified = true;
    for (u32 i = 0; i <= repeats_min; ++i) {
        work.reset();
        wall_us.push_back(engine->run(work.program()).makespan_us);
        r.peak.verified = r.peak.verified && work.verify().verified;
    }
    wall_us.erase(wall_us.begin()); // warmed up
    r.peak.solo_rate = static_cast<double>(width) * iterations / spread_of(wall_us).median;
    if (!s.device.is_cuda()) r.peak.solo_rate *= r.workers;
    r.peak.rate = r.peak.solo_rate;
    r.peak.from = s.device.is_cuda() ? "the body alone, in one launch" : "the body on one thread, times the workers";
}

/// Nobody may be better than the peak.
void raise_peak(metg_result& r)
{
    for (const metg_graph& g : r.graphs)
        for (const metg_curve& c : g.curves)
            for (const metg_point& p : c.points) {
                const double rate = static_cast<double>(g.tasks) * p.iterations / p.wall_us.median;
                if (!c.verified || rate <= r.peak.rate) continue;
                r.peak.rate = rate;
                r.peak.from = c.engine + ", " + workloads::pattern_names[static_cast<u32>(g.plan.graph.kind)];
            }
}

} // namespace

std::vector<std::string> metg_engines(bool cuda)
{
    const std::vector<std::string> known = engines::engine_names(cuda);
    std::vector<std::string> out;
    for (const char* name : {"slipstream", "streams", "graph-replay", "graph-rebuild"})
        if (std::find(known.begin(), known.end(), name) != known.end()) out.push_back(name);
    return out;
}

metg_result measure_metg(const bench_setup& s, const metg_request& wanted)
{
    metg_result r;
    const kernel_image image = workloads::digest_image();
    {
        const runtime_base runtime(s.configuration, image);
        r.workers = runtime.workers();
        // A block that schedules has an SM to itself on a GPU; threads of the host have no place.
        r.places = r.workers + (s.device.is_cuda() ? runtime.control_blocks() * s.configuration.workers_per_sm : 0);
    }
    r.threads = image.cuda != nullptr && s.device.is_cuda() ? image.cuda->threads : 1;
    r.longest_us = s.device.is_cuda() ? longest_us_cuda : longest_us_host;
    measure_peak(s, r);

    const u32 width = std::max(r.workers, width_min);
    const double lengths = 1 + std::log2(r.longest_us / shortest_us);
    cli::progress_bar bar("measuring METG");
    for (std::size_t i = 0; i < wanted.patterns.size(); ++i) {
        const std::string& name = wanted.patterns[i];
        const auto kind =
            static_cast<pattern>(std::find(std::begin(workloads::pattern_names), std::end(workloads::pattern_names), name)
                                 - std::begin(workloads::pattern_names));
        const u32 steps = steps_of(kind, width, s.how_long.tasks, wanted.steps);
        const auto work = workloads::make_task_bench(s.device,
                                                     {{"pattern", name},
                                                      {"width", std::to_string(width)},
                                                      {"steps", std::to_string(steps)},
                                                      {"buffers", std::to_string(wanted.buffers)},
                                                      {"work_us", "0"}},
                                                     1, s.lose_a_task);
        contest all(s, r.peak, *work, wanted.engines);
        u32 before = 0;
        double done = static_cast<double>(i) * lengths;
        for (double us = shortest_us; us <= r.longest_us && !all.over(); us *= 2) {
            bar.at(done++, lengths * static_cast<double>(wanted.patterns.size()));
            const u32 iterations = static_cast<u32>(std::max(1.0, std::round(us * r.peak.block_rate)));
            if (iterations != before) all.measure(iterations);
            before = iterations;
        }
        r.graphs.push_back(all.take());
    }
    raise_peak(r);
    return r;
}

} // namespace slipstream::bench
