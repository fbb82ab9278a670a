// Mail and completion words (device/scheduler.hpp, device/worker.hpp): data handed from one worker to another through cells.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

using P = model_platform<1>;
using engine_type = small_engine<P>;
constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

bool drawn_ahead = false; ///< some block, in some execution so far

report run(const std::vector<test_task>& program, options how, engine_size size = {.ring_slots = 16, .window_used = 8})
{
    const report r = explore(how, [&](execution& ex) {
        auto e = std::make_shared<engine_type>(program, size);
        e->link_all();
        const u32 count = static_cast<u32>(program.size());
        ex.spawn("linker and scheduler", device_block(0), [e, count] { run_roles(e, linker_role | scheduler_role, {count}); });
        for (u32 w = 0; w < size.workers; ++w)
            ex.spawn("worker " + std::to_string(w), device_block(1 + w), [e, w] { e->work(w); });
        ex.at_end([e] {
            e->check_against_oracle();
            drawn_ahead |= e->drawn_ahead;
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

// Two independent tasks occupy both workers, so what follows them changes worker in some executions.
const std::vector<test_task> relay = {{{{0, W}}}, {{{1, W}}}, {{{0, R}, {1, RW}}}};

} // namespace

TEST_CASE("a body's writes reach the next worker through completion, scheduler and mail", "[model][mailbox]")
{
    const report r = run(relay, {.name = "mailbox relay"});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("a mailbox of depth 2 is filled twice over and loses nothing", "[model][mailbox]")
{
    const report r = run({{{{0, W}}}, {{{1, W}}}, {{{2, W}}}, {{{3, W}}}, {{{0, W}}}}, {.name = "mailbox wrap, one worker"},
                         {.ring_slots = 16, .window_used = 8, .workers = 1});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("a task of more blocks than workers runs each block once by tickets", "[model][mailbox]")
{
    // Alone, and with a one-block task behind it that goes to whoever is idle once the tickets are drawn.
    for (const auto& program : {std::vector<test_task>{{{}, 3}}, std::vector<test_task>{{{}, 3}, {{{0, W}}}}}) {
        const report r = run(program, {.name = "tickets", .seconds_max = 120});
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
    // Two such tasks: workers are invited to both.
    CHECK_FALSE(run({{{}, 3}, {{}, 3}, {{{0, W}}}}, {.name = "tickets of two tasks", .seconds_max = 20}).failure);
    drawn_ahead = false;
    const report ahead = run({{{}, 4}, {{{0, W}}}}, {.name = "tickets drawn ahead", .seconds_max = 120}, {.workers = 1});
    CHECK(ahead.exhausted);
    CHECK_FALSE(ahead.failure);
    CHECK(drawn_ahead);
}

TEST_CASE("each edge between scheduler and worker is needed", "[model][mailbox][mutation]")
{
    for (const edge e : {edge::R5R12_fence, edge::R4A5_step_fence, edge::A4_mail_fence}) {
        mutate weaker(e);
        const report r = run(relay, {.name = std::string("mailbox without ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("a worker that has its SM to itself polls with acquire loads: they are all it needs, and needed",
          "[model][mailbox][mutation]")
{
    const engine_size lone{.ring_slots = 16, .window_used = 8, .lone_workers = true};
    const report whole = run(relay, {.name = "lone workers"}, lone);
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    {
        mutate weaker(edge::A4_mail_fence); // it makes none
        const report r = run(relay, {.name = "lone workers without A4_mail_fence"}, lone);
        CHECK(r.weakened == 0);
        CHECK_FALSE(r.failure);
    }
    for (const edge e : {edge::A4_mail, edge::R4A5_step_fence, edge::R5R12_fence}) {
        mutate weaker(e);
        const report r = run(relay, {.name = std::string("lone workers without ") + device::edge_name(e)}, lone);
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
    mutate narrower(edge::A4_mail, mutation::narrow);
    CHECK(run(relay, {.name = "lone workers at block scope: A4_mail"}, lone).failure);
}

TEST_CASE("the scopes of mail and completion are needed", "[model][mailbox][mutation]")
{
    for (const edge e : {edge::R5R12_fence, edge::R5_done, edge::A5_done, edge::R4A5_step_fence, edge::R4_mail, edge::A4_mail,
                         edge::A4_mail_fence, edge::P0_ticket}) {
        mutate narrower(e, mutation::narrow);
        const report r = run(e == edge::P0_ticket ? std::vector<test_task>{{{}, 3}} : relay,
                             {.name = std::string("mailbox at block scope: ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        CHECK(r.failure);
    }
}
