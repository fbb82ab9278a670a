// Admission, linker with its dependency table, scheduler, notifier and two workers: small DAGs of all three hazards, checked by
// digest. Each search has the roles of which it looks at the edges between on fibers of their own, the others together.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

/// What has happened before the threads start.
enum class begin : u8 { submitted, decoded, admitted, linked };

/// How the roles lie on fibers: a mask of model::role each.
struct arrangement {
    std::vector<u32> fibers;
    begin from = begin::decoded;
    u32 workers = 2;
    u32 lanes = 1;
    until end{0}; ///< its count is set by run()
};

std::string name_of(u32 roles)
{
    static constexpr const char* names[] = {"ingest", "admission", "linker", "scheduler", "notifier"};
    std::string out;
    for (u32 i = 0; i < 5; ++i)
        if (roles >> i & 1) out += (out.empty() ? "" : " + ") + std::string(names[i]);
    return out;
}

constexpr u32 behind_admission = linker_role | scheduler_role | notifier_role;
const arrangement admission_before{.fibers = {linker_role | scheduler_role}, .from = begin::admitted};
const arrangement admission_beside{.fibers = {admission_role, behind_admission}, .from = begin::decoded};
/// Nobody needs the slots back here.
const arrangement linker_beside{.fibers = {linker_role, scheduler_role}, .from = begin::admitted};
const arrangement notifier_beside{.fibers = {linker_role | scheduler_role, notifier_role}, .from = begin::linked};

template <class P>
report run(const std::vector<test_task>& program, options how, const arrangement& by, int forget = -1,
           engine_size size = {.ring_slots = 32, .window_used = 8, .pool_blocks = 16}, u32 linked_before = 0)
{
    const report r = explore(how, [&](execution& ex) {
        auto declared = program;
        if (forget >= 0) declared[static_cast<u32>(forget)].accesses.pop_back(); // what the window is told
        size.workers = by.workers;
        auto e = std::make_shared<small_engine<P>>(declared, size);
        e->begin_after(linked_before);
        const u32 count = static_cast<u32>(program.size());
        switch (by.from) {
        case begin::submitted:
            for (u32 i = 0; i < count && !by.end.submits; ++i)
                check(e->submit(i, [] { return false; }), "the ring holds every message");
            break;
        case begin::decoded: e->decode_all(); break;
        case begin::admitted: e->admit_all(); break;
        case begin::linked: e->link_all(); break;
        }
        e->tasks = program; // what the bodies do
        until end = by.end;
        end.count = count;
        for (const u32 roles : by.fibers) {
            const u32 lanes = by.lanes * (roles & admission_role ? P::crew::teams() : 1);
            ex.spawn_team(name_of(roles), device_block(0), lanes, [e, roles, end] { run_roles(e, roles, end); });
        }
        for (u32 w = 0; w < by.workers; ++w) ex.spawn("worker " + std::to_string(w), device_block(1 + w), [e, w] { e->work(w); });
        ex.at_end([e] { e->check_against_oracle(); });
    });
    std::cout << r.line() << "\n";
    return r;
}

using P1 = without_host<1>;
using P4 = without_host<4>;
using crew_of_two = without_host<1, 2>;
using crew_of_three = without_host<1, 3>;
/// Its scheduler gives the linker some looks' time, as on the GPU.
struct with_waits : P1 {
    static constexpr u32 wait_for_linker = 2;
};
/// A scheduler's bug: it takes the count of linked tasks for one more than it is.
struct counts_ahead : P1 {
    using P1::load;
    template <class T> static T load(edge e, const word<T>& w, order o, scope s)
    {
        const T value = P1::load(e, w, o, s);
        return e == edge::A15_linked ? value + 1 : value;
    }
};

/// A window of one slot and queues of one entry: each task meets every place that the one before it used.
report one_slot(const std::vector<test_task>& program, options how, const std::vector<u32>& fibers)
{
    return run<P1>(program, how, {.fibers = fibers, .from = begin::submitted, .workers = 1}, -1,
                   {.ring_slots = 8, .window_used = 1, .queue_slots = 1});
}

/// The admitted queue is full of tasks that wait for nobody when the threads start; two with rows must find room.
report full_admitted_queue(options how)
{
    const report r = explore(how, [&](execution& ex) {
        std::vector<test_task> program(device::admitted_max);
        program.push_back({{{0, W}}});
        program.push_back({{{0, RW}}});
        const u32 count = static_cast<u32>(program.size());
        auto e = std::make_shared<small_engine<P1>>(program, engine_size{.ring_slots = 128, .window_used = count, .window = 96});
        e->decode_all();
        {
            P1::crew crew;
            device::admission<P1> admission(e->m, e->s);
            while (admission.step(crew)) {}
            check(!admission.decoded_empty(crew.team()), "two find no room");
            admission.finish(crew);
        }
        ex.spawn("admission", device_block(0), [e, count] { run_roles(e, admission_role, {count, false}); });
        ex.spawn("linker", device_block(0), [e, count] { run_roles(e, linker_role, {count, false, false}); });
        ex.at_end([e, count] {
            check((e->s.pending[count - 2] & 0xffff) == 0 && (e->s.pending[count - 1] & 0xffff) == 1,
                  "the last waits for the one before");
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

// RAW 0->1, 0->2; WAR 1->3, 2->3; WAW 0->3; RAW 3->4 and a second place.
const std::vector<test_task> diamond = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}}}, {{{0, W}}}, {{{0, R}, {1, RW}}}};

} // namespace

TEST_CASE("RAW, WAR and WAW keep program order on two workers", "[model][window]")
{
    const report r = run<P1>(diamond, {.name = "window diamond"}, admission_before);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("whole-memory and `after` order what shares no bytes", "[model][window]")
{
    for (const auto& program : {std::vector<test_task>{{{{0, W}}}, {{}, 1, 0, true}, {{{1, W}}}},
                                std::vector<test_task>{{{{0, W}}}, {{{1, W}}}, {{{2, W}}, 1, 0, false, 0}}}) {
        const report r = run<P1>(program, {.name = "whole memory, after"}, admission_before);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("admission beside the other roles: every schedule of small programs keeps program order", "[model][window]")
{
    for (const auto& program : {std::vector<test_task>{{{{0, W}}}, {{{0, R}}}}, std::vector<test_task>{{{{0, R}}}, {{{0, W}}}},
                                std::vector<test_task>{{}, {{{0, W}}}}, std::vector<test_task>{{{{0, W}}}, {{}, 1, 0, true}}}) {
        const report r = run<P1>(program, {.name = "admission beside, two tasks"}, admission_beside);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
    const report r = run<P1>({{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, W}}}},
                             {.name = "admission beside, RAW and WAR", .seconds_max = 40}, admission_beside);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("admission beside the other roles: random walks of a diamond", "[model][window]")
{
    const report r = run<P1>(diamond,
                             {.name = "admission beside, diamond", .search = search::random, .executions_max = 20'000,
                              .seconds_max = 4},
                             admission_beside);
    CHECK_FALSE(r.failure);
}

TEST_CASE("four roles of four lanes each keep program order", "[model][window]")
{
    const arrangement four_lanes{.fibers = {admission_role, linker_role, scheduler_role, notifier_role}, .lanes = 4};
    const report r = run<P4>({{{{0, W}}}, {{{0, R}}}, {{{0, W}}}},
                             {.name = "window, 4 lanes", .search = search::random, .executions_max = 1500, .seconds_max = 6},
                             four_lanes);
    CHECK_FALSE(r.failure);
}

TEST_CASE("each edge between admission and the roles behind it is needed", "[model][window][mutation]")
{
    for (const edge e : {edge::R10_admitted, edge::A10_admitted, edge::R11_finished, edge::A11_finished}) {
        mutate weaker(e);
        const report r = run<P1>({{{{0, W}}}, {{{0, R}}}}, {.name = std::string("admission without ") + device::edge_name(e)},
                                 admission_beside);
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("a full admitted queue holds admission back; its edges are needed", "[model][window][mutation]")
{
    const report whole = full_admitted_queue({.name = "admitted queue full"});
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    for (const edge e : {edge::R10_linked, edge::A10_linked, edge::R10_admitted, edge::A10_admitted}) {
        mutate weaker(e);
        const report r = full_admitted_queue({.name = std::string("admitted queue full, without ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("one slot and queues of one entry: nobody needs to look for room, and each edge of a slot's way round is needed",
          "[model][window][mutation]")
{
    const std::vector<test_task> two = {{{{0, W}}}, {{{0, RW}}}};
    struct split {
        std::vector<u32> fibers;
        std::vector<edge> needed;
    };
    const std::vector<split> splits = {
        {{ingest_role, admission_role, behind_admission},
         {edge::R2_slot_freed, edge::A2_slot_freed, edge::R3_decoded, edge::A3_decoded, edge::R10_admitted, edge::A10_admitted,
          edge::R11_finished, edge::A11_finished}},
        {{ingest_role | admission_role | linker_role, scheduler_role, notifier_role},
         {edge::R14_ready, edge::A14_ready, edge::R13_report, edge::A13_report, edge::R6_retired, edge::A6_retired,
          edge::R11_finished, edge::A11_finished}}};
    for (const split& s : splits) {
        const report whole = one_slot(two, {.name = "one slot", .seconds_max = 20}, s.fibers);
        CHECK(whole.exhausted);
        CHECK_FALSE(whole.failure);
        for (const edge e : s.needed) {
            mutate weaker(e);
            const report r = one_slot(two, {.name = std::string("one slot without ") + device::edge_name(e)}, s.fibers);
            INFO(device::edge_name(e));
            REQUIRE(r.failure);
            CHECK(r.failure->what.find("race on") == 0);
        }
    }
}

TEST_CASE("linker beside the scheduler: every schedule of small programs keeps program order", "[model][window]")
{
    const std::vector<std::vector<test_task>> programs = {
        {{{{0, W}}}, {{{0, R}}}}, {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{1, R}}}}, {{{{0, W}}}, {{{1, W}}}, {{{0, R}, {1, R}}}}};
    for (const auto& program : programs) {
        // The longer ones are linked before: what goes between the two then is reports and ready tasks.
        arrangement by = linker_beside;
        if (program.size() > 2) by.from = begin::linked;
        const report r = run<P1>(program, {.name = "linker beside", .seconds_max = 30}, by);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
    const report r = run<with_waits>(programs[0], {.name = "linker beside, the scheduler gives it time"}, linker_beside);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("each edge between linker and scheduler is needed", "[model][window][mutation]")
{
    const std::vector<test_task> pair = {{{{0, W}}}, {{{0, R}}}};
    const std::vector<test_task> relay = {{{{0, W}}}, {{{1, W}}}, {{{0, R}, {1, RW}}}}; // the last one changes worker
    for (const edge e : {edge::R13_report, edge::A13_report, edge::R14_ready, edge::A14_ready, edge::R4A5_step_fence}) {
        mutate weaker(e);
        const report r = run<P1>(e == edge::R4A5_step_fence ? relay : pair,
                                 {.name = std::string("linker without ") + device::edge_name(e)}, linker_beside);
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("each edge between scheduler, notifier and admission is needed", "[model][window][mutation]")
{
    const std::vector<test_task> pair = {{{{0, W}}}, {{{0, R}}}};
    const report whole = run<P1>(pair, {.name = "notifier beside"}, notifier_beside);
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    for (const edge e : {edge::R6_retired, edge::A6_retired}) {
        mutate weaker(e);
        const report r = run<P1>(pair, {.name = std::string("notifier without ") + device::edge_name(e)}, notifier_beside);
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
    const arrangement apart{.fibers = {admission_role, linker_role | scheduler_role, notifier_role}, .workers = 1};
    for (const edge e : {edge::R11_finished, edge::A11_finished}) {
        mutate weaker(e);
        const report r = run<P1>(pair, {.name = std::string("notifier without ") + device::edge_name(e)}, apart);
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("a record written while the scheduler runs reaches the worker, whenever its task was linked", "[model][window][mutation]")
{
    // Ingest, admission and linker take in two tasks that wait for nobody. The second may be linked before the fence of the step
    // that saw the first complete (which then covers it), or after that step's look (a fence of its own stands before its mail).
    const std::vector<test_task> two = {{}, {}};
    const arrangement feed{.fibers = {ingest_role | admission_role | linker_role, scheduler_role}, .from = begin::submitted,
                           .workers = 1, .end = {.count = 0, .slots_come_back = false, .completions = false, .submits = true}};
    // One more task was linked by launches before, up to where its number's sign changes: entries are compared by it.
    for (const u32 linked : {0u, 0x7fffu, 0x8000u, 0xfffeu, 0xffffffffu}) {
        INFO("linked before " << linked);
        for (const u32 count : {1u, 2u}) {
            const report r = run<P1>({two.begin(), two.begin() + count}, {.name = "records beside"}, feed, -1,
                                     {.ring_slots = 8}, linked);
            CHECK(r.exhausted);
            CHECK_FALSE(r.failure);
        }
    }
    for (const edge e : {edge::R15_linked, edge::R4A5_step_fence}) {
        mutate weaker(e);
        const report r = run<P1>(two, {.name = std::string("records without ") + device::edge_name(e)}, feed, -1,
                                 {.ring_slots = 8});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
    {
        mutate narrower(edge::R4A5_step_fence, mutation::narrow);
        CHECK(run<P1>(two, {.name = "records, fence at block scope"}, feed, -1, {.ring_slots = 8}).failure);
    }
    // Without the late fence: the task looks as if it had been linked when the fence before was made.
    const report r = run<counts_ahead>(two, {.name = "records without the late fence"}, feed, -1, {.ring_slots = 8});
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("race on") == 0);
}

TEST_CASE("a crew's helpers share a batch while its leader lays out the next; every predecessor is found, "
          "and all barriers are needed",
          "[model][window][mutation]")
{
    // The first task's 160 accesses are more than a batch holds. Of the last one's the write lies in the ninth pool
    // block, a second helper's.
    test_task wide, last;
    wide.accesses.assign(160, {1, R});
    last.accesses.assign(35, {0, R});
    last.accesses.push_back({1, W});
    const engine_size size{.ring_slots = 64, .window_used = 4, .pool_blocks = 56};
    const std::vector<test_task> program = {wide, {{{0, W}}}, last};
    const auto walks = [](const char* name) {
        return options{.name = name, .search = search::random, .executions_max = 5'000, .seconds_max = 4};
    };
    const auto walk = [&](const char* name) { return run<crew_of_three>(program, walks(name), admission_beside, -1, size); };
    CHECK_FALSE(walk("crew of three").failure);
    CHECK_FALSE(run<crew_of_two>(program, walks("crew of two"), admission_beside, -1, size).failure);
    for (const crew_bug bug : {crew_bug::no_order, crew_bug::no_helpers_order, crew_bug::no_wait}) {
        planted_crew_bug = bug;
        const report r = walk(bug == crew_bug::no_order ? "crew whose barrier orders nothing"
                              : bug == crew_bug::no_wait ? "crew that leaves out every second barrier"
                                                         : "crew whose helpers' barrier orders nothing");
        planted_crew_bug = crew_bug::none;
        REQUIRE(r.failure);
        // Teams that leave one out meet at different ones, and wait.
        CHECK((bug == crew_bug::no_wait || r.failure->what.find("race on") == 0));
    }
    const report r = run<crew_of_two>({wide, last}, {.name = "crew of two, all schedules", .seconds_max = 20},
                                      admission_beside, -1, size);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("tasks by handle, and raw ranges between them: every schedule keeps program order", "[model][window][handles]")
{
    const engine_size by_handle{.ring_slots = 32, .window_used = 8, .pool_blocks = 16, .by_handle = true};
    std::vector<test_task> mixed = diamond;
    mixed.insert(mixed.begin() + 2, {{{0, R}, {1, R}}}); // meets what is in the book, and closes it
    mixed[2].raw = true;
    const std::vector<test_task> twice = {{{{0, W}}}, {{{0, R}, {0, W}}}, {{{0, R}, {0, R}}}, {{{0, RW}}}}; // a handle named twice
    for (const auto& [name, program] : {std::pair{"diamond by handle", diamond}, std::pair{"diamond by handle, one range", mixed},
                                        std::pair{"handles named twice", twice}}) {
        const report r = run<P1>(program, {.name = name, .seconds_max = 20}, admission_before, -1, by_handle);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK_FALSE(run<P1>(program,
                            {.name = std::string(name) + ", admission beside", .search = search::random, .executions_max = 3'000,
                             .seconds_max = 4},
                            admission_beside, -1, by_handle).failure);
        CHECK_FALSE(run<P4>(program,
                            {.name = std::string(name) + ", four lanes", .search = search::random, .executions_max = 500,
                             .seconds_max = 4},
                            {.fibers = {admission_role, linker_role, scheduler_role, notifier_role}, .lanes = 4},
                            -1, by_handle).failure);
    }
    for (const int task : {2, 3}) { // the last access of the task is not declared
        const report r = run<P1>(diamond, {.name = "diamond by handle, one forgotten"}, admission_before, task, by_handle);
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on") == 0);
    }
}

TEST_CASE("a crew's helpers share a batch by handle; all barriers between them are needed, also where the book is closed",
          "[model][window][handles][mutation]")
{
    // More readers than a page has room for, in two helpers' pool blocks; then a raw range over all of it.
    std::vector<test_task> program(1, {{{0, W}}});
    for (u32 k = 0; k < device::handle_page::readers_max + 2; ++k) program.push_back({{{0, R}}});
    program.push_back({{{0, RW}}});
    program.push_back({{{0, R}, {1, W}}});
    program.back().raw = true;
    program.push_back({{{1, RW}}});
    const engine_size size{.ring_slots = 64, .window_used = static_cast<u32>(program.size()),
                           .pool_blocks = 24, .by_handle = true}; // a block a task, and more
    const auto walk = [&]<class P>(const char* name, std::type_identity<P>) {
        return run<P>(program, {.name = name, .search = search::random, .executions_max = 3'000, .seconds_max = 6},
                      admission_beside, -1, size);
    };
    CHECK_FALSE(walk("crew of three by handle", std::type_identity<crew_of_three>{}).failure);
    CHECK_FALSE(walk("crew of two by handle", std::type_identity<crew_of_two>{}).failure);
    for (const crew_bug bug : {crew_bug::no_order, crew_bug::no_helpers_order, crew_bug::no_wait}) {
        planted_crew_bug = bug;
        const report r = walk("crew by handle, a barrier left out or without order", std::type_identity<crew_of_three>{});
        planted_crew_bug = crew_bug::none;
        REQUIRE(r.failure);
        CHECK((bug == crew_bug::no_wait || r.failure->what.find("race on") == 0));
    }
}

TEST_CASE("canary: an access that the window is not told of is found, one for each hazard", "[model][window][canary]")
{
    // The last access of the task is not declared.
    CHECK(run<P1>({{{{0, W}}}, {{{0, R}}}}, {.name = "RAW forgotten"}, admission_beside, 1).failure);
    CHECK(run<P1>({{{{0, R}}}, {{{0, W}}}}, {.name = "WAR forgotten"}, admission_beside, 1).failure);
    CHECK(run<P1>({{{{0, W}}}, {{{0, W}}}}, {.name = "WAW forgotten"}, admission_beside, 1).failure);
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
    const report r = run<P1>(failing, {.name = "window, failure"}, admission_before);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    const report beside = run<P1>(failing,
                                  {.name = "window, failure, linker beside", .search = search::random, .executions_max = 5000,
                                   .seconds_max = 4},
                                  linker_beside);
    CHECK_FALSE(beside.failure);
    auto by_after = failing;
    by_after[2] = {.accesses = {{3, W}}, .after = 1, .cancelled = true};
    CHECK_FALSE(run<P1>(by_after, {.name = "window, failure, after"}, admission_before).failure);
    // Canary: one cancellation too many or too few is noticed.
    auto wrong = failing;
    wrong[3].cancelled = true;
    CHECK(run<P1>(wrong, {.name = "window, failure, wrong oracle"}, admission_before).failure);
}
