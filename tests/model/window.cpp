// The window (device/window.hpp) with its scheduler and two workers: small DAGs of all three hazards, checked by digest.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

template <class P>
report run(const std::vector<test_task>& program, options how, u32 lanes = 1, int forget = -1)
{
    const report r = explore(how, [&](execution& ex) {
        auto declared = program;
        if (forget >= 0) declared[static_cast<u32>(forget)].accesses.pop_back(); // what the window is told
        auto e = std::make_shared<small_engine<P>>(declared, engine_size{.ring_slots = 32, .window_used = 8});
        e->decode_all();
        e->tasks = program; // what the bodies do
        ex.spawn_team("scheduler", device_block(0), lanes, [e] {
            typename P::team team;
            device::scheduler<P> scheduler(e->m, e->s);
            for (u32 n = 0;;) {
                n = scheduler.step(team) ? 0 : n + 1;
                if (scheduler.window_empty()) break;
                if (n) P::pause(n);
            }
            scheduler.dismiss_workers(team);
        });
        for (u32 w = 0; w < 2; ++w) ex.spawn("worker " + std::to_string(w), device_block(1 + w), [e, w] { e->work(w); });
        ex.at_end([e] { e->check_against_oracle(); });
    });
    std::cout << r.line() << "\n";
    return r;
}

using P1 = model_platform<1>;
using P4 = model_platform<4>;

// RAW 0->1, 0->2; WAR 1->3, 2->3; WAW 0->3; RAW 3->4 and a second place.
const std::vector<test_task> diamond = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}}}, {{{0, W}}}, {{{0, R}, {1, RW}}}};

} // namespace

TEST_CASE("RAW, WAR and WAW keep program order on two workers", "[model][window]")
{
    const report r = run<P1>(diamond, {.name = "window diamond"});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("whole-memory and `after` order what shares no bytes", "[model][window]")
{
    const report whole = run<P1>({{{{0, W}}}, {{}, 1, 0, true}, {{{1, W}}}}, {.name = "whole memory"});
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
}

namespace {

// 0 fails; 1 reads it and is cancelled, 2 reads that; 3 writes over it and heals; 4 reads what is good again.
const std::vector<test_task> failing = {{.accesses = {{0, W}}, .fails = true},
                                        {.accesses = {{0, R}, {1, W}}, .cancelled = true},
                                        {.accesses = {{1, R}}, .cancelled = true},
                                        {.accesses = {{0, W}}},
                                        {.accesses = {{0, R}, {2, RW}}}};

} // namespace

TEST_CASE("a failure cancels who reads it and nobody else, in every schedule", "[model][window][failure]")
{
    const report r = run<P1>(failing, {.name = "window, failure"});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    const report lanes = run<P4>(failing, {.name = "window, failure, 4 lanes", .search = search::random, .executions_max = 1000, .seconds_max = 6}, 4);
    CHECK_FALSE(lanes.failure);
    auto by_after = failing;
    by_after[2] = {.accesses = {{3, W}}, .after = 1, .cancelled = true};
    CHECK_FALSE(run<P1>(by_after, {.name = "window, failure, after"}).failure);
    // Canary: one cancellation too many or too few is noticed.
    auto wrong = failing;
    wrong[3].cancelled = true;
    CHECK(run<P1>(wrong, {.name = "window, failure, wrong oracle"}).failure);
}

TEST_CASE("a window whose scheduler has four lanes keeps program order", "[model][window]")
{
    const report r = run<P4>({{{{0, W}}}, {{{0, R}}}, {{{0, W}}}},
                             {.name = "window, 4 lanes", .search = search::random, .executions_max = 1500, .seconds_max = 6}, 4);
    CHECK_FALSE(r.failure);
}

TEST_CASE("canary: an access that the window is not told of is found, one for each hazard", "[model][window][canary]")
{
    // The last access of the task is not declared.
    CHECK(run<P1>({{{{0, W}}}, {{{0, R}}}}, {.name = "RAW forgotten"}, 1, 1).failure);
    CHECK(run<P1>({{{{0, R}}}, {{{0, W}}}}, {.name = "WAR forgotten"}, 1, 1).failure);
    CHECK(run<P1>({{{{0, W}}}, {{{0, W}}}}, {.name = "WAW forgotten"}, 1, 1).failure);
}
