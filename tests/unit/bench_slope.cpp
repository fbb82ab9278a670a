// How many tasks and repetitions a benchmark takes for the time that it is given.
#include "trace_catch.hpp"

#include "tools/slipstream/bench/slope.hpp"

using namespace slipstream;
using namespace slipstream::bench;

namespace {

constexpr u64 tasks_max = 10'000'000;

// A machine that takes so long for each task.
timed_run machine(double seconds_each)
{
    return [=](u64 tasks) { return seconds_each * static_cast<double>(tasks); };
}

} // namespace

TEST_CASE("a slope takes what the seconds afford", "[bench_slope]")
{
    const effort e{5, 0, 30, 0};
    const slope_plan plan = plan_slopes(machine(1e-6), e, tasks_max);
    CHECK(plan.repeats == 5);
    CHECK(plan.tasks >= 1'990'000);
    CHECK(plan.tasks <= 2'010'000); // 30 s / (5 repetitions of N and 2 N)
}

TEST_CASE("repetitions are given up for the tasks wanted, and no more of them than needed", "[bench_slope]")
{
    const effort e{5, 0, 30, 5'000'000};
    const slope_plan fast = plan_slopes(machine(1e-7), e, tasks_max);
    CHECK((fast.repeats == 5 && fast.tasks == 5'000'000));
    const slope_plan fair = plan_slopes(machine(0.9e-6), e, tasks_max);
    CHECK((fair.repeats == 2 && fair.tasks == 5'000'000));
    const slope_plan slow = plan_slopes(machine(4e-6), e, tasks_max);
    CHECK(slow.repeats == 1);
    CHECK((slow.tasks > 2'400'000 && slow.tasks < 2'600'000)); // all of the time in one
}

TEST_CASE("a number of tasks that was given is kept", "[bench_slope]")
{
    const slope_plan plan = plan_slopes(machine(1e-6), {3, 40, 30, 5'000'000}, tasks_max);
    CHECK((plan.repeats == 3 && plan.tasks == 40));
}
