// What a comparison derives from runs: ratios, costs of a task, who is faster; and the curves of a sweep.
#include "trace_catch.hpp"

#include <cmath>

#include "tools/slipstream/compare/crossover.hpp"
#include "tools/slipstream/compare/figures.hpp"
#include "tools/slipstream/compare/sweep_run.hpp"

using namespace slipstream;
using namespace slipstream::cli;

namespace {

engine_runs run_of(const char* engine, std::vector<double> makespans)
{
    engine_runs r;
    r.engine = engine;
    r.makespan_us = std::move(makespans);
    r.submit_us.assign(r.makespan_us.size(), 50);
    r.cpu_us.assign(r.makespan_us.size(), 200);
    r.submitter_cpu_us.assign(r.makespan_us.size(), 60);
    return r;
}

} // namespace

TEST_CASE("percentiles lie between the values they fall between", "[compare]")
{
    std::vector<double> values;
    for (int i = 100; i >= 0; --i) values.push_back(i);
    const spread s = spread_of(values);
    CHECK(s.median == Approx(50));
    CHECK(s.p10 == Approx(10));
    CHECK(s.p90 == Approx(90));
    CHECK(s.p99 == Approx(99));
    CHECK(spread_of({1, 2}).median == Approx(1.5));
    CHECK(std::isnan(spread_of({}).p99));
}

TEST_CASE("figures compare with serial, with the best alternative that verified, and with the bound", "[compare]")
{
    std::vector<engine_runs> runs{run_of("serial", {400, 400, 400}), run_of("streams", {200, 200, 200}),
                                  run_of("acs-sw", {90, 90, 90}), run_of("graph-replay", {40, 40, 40}),
                                  run_of("slipstream", {100, 90, 110})};
    runs[2].verified = false; // the fastest alternative was wrong
    runs[3].phases["build_and_replay_us"] = {500, 500, 500};
    runs[4].counts = {{"bus_bytes_to_gpu", 3 * 6400}};
    runs[4].scheduling_sms = 1;
    bounds limits;
    limits.critical_path_us = 30;
    limits.area_us = 20;
    const comparison_figures all = figures_of(runs, 100, &limits);
    CHECK(all.best_alternative == "streams");
    REQUIRE(all.engines.size() == 6);
    CHECK(all.engines[4].engine == replay_with_build);
    CHECK(all.engines[4].over_serial == Approx(0.8));
    CHECK(std::isnan(all.engines[4].cpu_us));
    const engine_figures& ours = all.engines[5];
    CHECK(ours.over_serial == Approx(4));
    CHECK(ours.over_alternative == Approx(2));
    CHECK(ours.bound_share == Approx(0.3));
    CHECK(ours.submit_us == Approx(0.5));
    CHECK(ours.cpu_us == Approx(2));
    CHECK(ours.submitter_cpu_us == Approx(0.6));
    CHECK(ours.bytes_to_gpu == Approx(64)); // counts are sums over the runs
    CHECK(std::isnan(ours.bytes_to_host));  // not counted
    CHECK(ours.scheduling_sms == 1);
    const auto faster = faster_than(all, "slipstream");
    REQUIRE(faster.size() == 1);
    CHECK(faster[0]->engine == "graph-replay");
}

TEST_CASE("figures that nothing is known for are not numbers", "[compare]")
{
    const comparison_figures all = figures_of({run_of("slipstream", {100})}, 10, nullptr);
    REQUIRE(all.engines.size() == 1);
    CHECK(std::isnan(all.engines[0].over_serial));
    CHECK(std::isnan(all.engines[0].over_alternative));
    CHECK(std::isnan(all.engines[0].bound_share));
    CHECK(all.best_alternative.empty());
    CHECK(faster_than(all, "slipstream").empty());
    CHECK(faster_than(all, "streams").empty());
}

TEST_CASE("a crossover lies where the ratio is one, straight on logarithmic scales", "[compare]")
{
    const std::vector<double> x{1, 10, 100}, ours{4, 10, 100};
    // 4 times faster at 1, 4 times slower at 10: half way between them, at the root of 10.
    const auto found = crossovers(x, ours, std::vector<double>{1, 40, 400});
    REQUIRE(found.size() == 1);
    CHECK(found[0].at == Approx(std::sqrt(10.0)));
    CHECK(found[0].wins_above);
}

TEST_CASE("curves may cross several times, touch, or never meet", "[compare]")
{
    const std::vector<double> x{1, 2, 4, 8}, ours{10, 10, 10, 10};
    CHECK(crossovers(x, ours, std::vector<double>{11, 12, 13, 14}).empty());
    const auto twice = crossovers(x, ours, std::vector<double>{5, 20, 20, 5});
    REQUIRE(twice.size() == 2);
    CHECK(twice[0].wins_above);
    CHECK(!twice[1].wins_above);
    CHECK(twice[0].at == Approx(std::sqrt(2.0)));
    CHECK(crossovers(x, ours, std::vector<double>{5, 10, 5, 5}).empty()); // touched, not crossed
    CHECK(crossovers(x, ours, std::vector<double>{5, 10, 20, 20}).size() == 1);
    // A point that was not measured is bridged.
    const auto bridged = crossovers(x, ours, std::vector<double>{5, std::nan(""), 20, 20});
    REQUIRE(bridged.size() == 1);
    CHECK(bridged[0].at == Approx(2));
    CHECK(crossovers(std::vector<double>{}, std::vector<double>{}, std::vector<double>{}).empty());
}

TEST_CASE("an axis that begins with 0 is interpolated linearly there", "[compare]")
{
    const auto found = crossovers(std::vector<double>{0, 2}, std::vector<double>{10, 10}, std::vector<double>{5, 20});
    REQUIRE(found.size() == 1);
    CHECK(found[0].at == Approx(1));
}

TEST_CASE("a share is kept from where it never falls below the level again", "[compare]")
{
    const std::vector<double> x{1, 10, 100};
    CHECK(*keeps_from(x, std::vector<double>{0.2, 0.6, 0.95}, 0.4) == Approx(std::sqrt(10.0)));
    CHECK(*keeps_from(x, std::vector<double>{0.6, 0.4, 0.6}, 0.5) == Approx(10 * std::sqrt(10.0)));
    CHECK(*keeps_from(x, std::vector<double>{0.6, 0.7, 0.8}, 0.5) == Approx(1));
    CHECK(!keeps_from(x, std::vector<double>{0.6, 0.7, 0.8}, 0.9));
    CHECK(*keeps_from(x, std::vector<double>{0.2, std::nan(""), 0.6}, 0.5) == Approx(100)); // what was not measured says nothing
    CHECK(!keeps_from(x, std::vector<double>{0.6, 0.7, std::nan("")}, 0.5));
}

TEST_CASE("a sweep says who is faster from the first point that has both, and nothing where there is none", "[compare]")
{
    const auto point = [](double ours, double serial, double streams) {
        measurement m;
        m.tasks = 10;
        for (const auto& [engine, us] : {std::pair{"slipstream", ours}, {"serial", serial}, {"streams", streams}}) {
            m.runs.push_back(run_of(engine, {std::abs(us)}));
            m.runs.back().verified = us > 0;
        }
        return m;
    };
    sweep_run s;
    s.axis.values = {1, 10};
    s.points = {point(100, -200, -50), point(100, 200, -50)}; // below 0: not verified
    const std::vector<sweep_curve> curves = curves_of(s);
    REQUIRE(curves.size() == 3);
    CHECK(!curves[0].slipstream_wins_first);
    CHECK(curves[1].slipstream_wins_first == true);
    CHECK(!curves[2].slipstream_wins_first);
    CHECK(all_verified(s) == false);
    s.points = {point(300, 200, 50), point(100, 200, 50)};
    CHECK(curves_of(s)[1].slipstream_wins_first == false);
    CHECK(all_verified(s));
    s.points[1].solo_good = false;
    CHECK(!all_verified(s));
}
