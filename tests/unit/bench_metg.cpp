// METG as `slipstream bench targets` has it: a number only where 50 % is crossed.
#include "trace_catch.hpp"

#include "tools/slipstream/bench/metg.hpp"
#include <cmath>

using namespace slipstream;
using namespace slipstream::bench;

namespace {

/// A hundred tasks on one place whose peak is one iteration a microsecond: an efficiency is 100 x iterations / wall time.
metg_result result_of(const spread& short_tasks_us, const spread& long_tasks_us)
{
    metg_result r;
    r.places = r.workers = 1;
    r.peak.rate = r.peak.block_rate = 1;
    r.peak.verified = true;
    metg_graph g{};
    g.tasks = 100;
    g.curves.push_back({"slipstream", {{10, short_tasks_us, 3, true}, {100, long_tasks_us, 3, true}}, true, {}});
    r.graphs.push_back(std::move(g));
    return r;
}

} // namespace

TEST_CASE("METG and its percentiles are numbers where 50 % is crossed", "[bench]")
{
    const figure f = metg_figure(result_of({4000, 3000, 5000}, {12500, 11000, 14000}), "slipstream");
    CHECK((f.verified && f.note.empty()));
    CHECK((f.value.p10 > 30 && f.value.p10 < f.value.median && f.value.median < f.value.p90 && f.value.p90 < 140));
}

TEST_CASE("a percentile at which 50 % is not reached, or kept by the shortest tasks, is no number", "[bench]")
{
    const figure slow = metg_figure(result_of({4000, 3000, 5000}, {12500, 11000, 25000}), "slipstream");
    CHECK(slow.value.median > 0);
    CHECK(slow.value.p10 > 0);
    CHECK(std::isnan(slow.value.p90)); // 0 once: below any limit
    const figure fast = metg_figure(result_of({4000, 1900, 5000}, {12500, 11000, 14000}), "slipstream");
    CHECK(fast.value.median > 0);
    CHECK(std::isnan(fast.value.p10));
    CHECK(fast.value.p90 > 0);
}

TEST_CASE("METG that is not reached, or at most something, is no number and says so", "[bench]")
{
    const figure slow = metg_figure(result_of({4000, 4000, 4000}, {25000, 11000, 26000}), "slipstream");
    CHECK((std::isnan(slow.value.median) && std::isnan(slow.value.p10) && std::isnan(slow.value.p90)));
    CHECK(slow.note.find("not reached") != std::string::npos);
    const figure fast = metg_figure(result_of({1500, 1400, 1600}, {12500, 11000, 14000}), "slipstream");
    CHECK(std::isnan(fast.value.median));
    CHECK(fast.note.find("shortest") != std::string::npos);
}
