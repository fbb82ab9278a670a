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
