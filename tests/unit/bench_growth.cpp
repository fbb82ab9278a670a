// What a sweep over sizes says about growth.
#include "trace_catch.hpp"

#include "tools/slipstream/bench/growth.hpp"
#include <cmath>

using namespace slipstream;
using namespace slipstream::bench;

namespace {

bool near(double a, double b)
{
    return std::abs(a - b) < 1e-9 * b;
}

} // namespace

TEST_CASE("the worst doubling is found wherever it is", "[bench_growth]")
{
    CHECK(near(worst_doubling({{16, 3}, {32, 6}, {64, 21}, {128, 40}}), 3.5));
    CHECK(near(worst_doubling({{16, 9}, {32, 6}, {64, 3}}), 2.0 / 3));
}

TEST_CASE("growth over several doublings is spread over them", "[bench_growth]")
{
    CHECK(near(worst_doubling({{1, 1}, {8, 64}}), 4));
    CHECK(near(worst_doubling({{1000, 10}, {2000, 20}, {5000, 50}, {10000, 100}}), 2)); // as much as the size
}

TEST_CASE("a cost that is noise makes no figure", "[bench_growth]")
{
    CHECK(std::isnan(worst_doubling({{16, 1}, {32, -1}, {64, 1}})));
    CHECK(std::isnan(worst_doubling({{16, 1}, {32, 2}, {64, std::nan("")}})));
    CHECK(std::isnan(worst_doubling({{16, 1}})));
}

TEST_CASE("a task of the longest run is held against one of a hundredth of it", "[bench_growth]")
{
    CHECK(near(long_run_factor({{1000, 1}, {100'000, 10}, {1'000'000, 105}, {10'000'000, 1200}}), 1.2));
    CHECK(std::isnan(long_run_factor({{1000, 1}, {50'000, 10}})));
    CHECK(std::isnan(long_run_factor({})));
}

TEST_CASE("run lengths go from a thousand to ten million, and lower when few are asked for", "[bench_growth]")
{
    const std::vector<u64> all = run_lengths(10'000'000);
    REQUIRE(all.size() == 13);
    CHECK((all.front() == 1000 && all[6] == 100'000 && all.back() == 10'000'000));
    CHECK(run_lengths(40) == std::vector<u64>{1, 2, 5, 10, 20});
}
