// Staging: tasks that are mailed before those that they wait for are complete, and wait on their worker (device/worker.hpp, await).
// Linker, scheduler and workers; with a failure in the way; with slots that come again; each edge mutated.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <algorithm>
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

using P1 = without_host<1>;
using P4 = without_host<4>;
using deep1 = deep_mailboxes<1>;
using deep4 = deep_mailboxes<4>;

constexpr u32 all_roles = ingest_role | admission_role | linker_role | scheduler_role | notifier_role;
const engine_size plain{.ring_slots = 32, .window_used = 8, .pool_blocks = 16, .staging = true};
const engine_size lone{.ring_slots = 32, .window_used = 8, .pool_blocks = 16, .lone_workers = true, .staging = true};
const engine_size three_workers{.ring_slots = 32, .window_used = 8, .workers = 3, .pool_blocks = 16, .staging = true};

engine_size window_of(u32 slots, u32 workers = 2)
{
    return {.ring_slots = 32, .window_used = slots, .workers = workers, .pool_blocks = 16, .staging = true};
}

/// How the roles lie on fibers. The search begins with admitted tasks, or, where ingest is among the roles, with submitted ones.
struct arrangement {
    std::vector<u32> fibers = {linker_role | scheduler_role};
    u32 lanes = 1;
    until end{0};
};
const arrangement together;
const arrangement linker_beside{.fibers = {linker_role, scheduler_role}};
/// Slots come again: everything but the workers on one fiber.
const arrangement all_together{.fibers = {all_roles}};

/// What was seen over all executions of a search, at most and at least.
struct {
    u32 staged_most, staged_least, skipped_most, skipped_least, chained_most, chained_least, late_most, went_on_most;
    u32 broadcasts_most, broadcasts_least, sent_to_all_most, awaited_early_most, awaited_aside_most, read_meanwhile_most;
    u32 ran_staged; ///< tasks, a bit each
    bool early;
    bool untainted; ///< at the end
} seen;

template <class P = P1>
report run(const std::vector<test_task>& program, options how, engine_size size = plain, const arrangement& by = together)
{
    seen = {0, ~0u, 0, ~0u, 0, ~0u, 0, 0, 0, ~0u, 0, 0, 0, 0, 0, false, false};
    const report r = explore(how, [&](execution& ex) {
        auto e = std::make_shared<small_engine<P>>(program, size);
        until end = by.end;
        end.count = static_cast<u32>(program.size());
        u32 roles_in_all = 0;
        for (const u32 roles : by.fibers) roles_in_all |= roles;
        if (roles_in_all & ingest_role) {
            for (u32 i = 0; i < end.count && !end.submits; ++i)
                check(e->submit(i, [] { return false; }), "the ring holds every message");
        } else {
            e->admit_all();
        }
        for (u32 i = 0; i < by.fibers.size(); ++i) {
            const u32 roles = by.fibers[i];
            ex.spawn_team("roles " + std::to_string(roles), device_block(0), by.lanes,
                          [e, roles, end] { run_roles(e, roles, end); });
        }
        for (u32 w = 0; w < size.workers; ++w) ex.spawn("worker " + std::to_string(w), device_block(1 + w), [e, w] { e->work(w); });
        ex.at_end([e] {
            e->check_against_oracle();
            for (u32 slot = 0; slot < e->m.n.window_used; ++slot) {
                const device::finished_count count{
                    P::load(edge::P5_self, e->m.records[slot].finished, order::relaxed, scope::device)};
                check(count.blocks() == P::get(e->s.targets[slot]), "a slot's finished count comes to what the linker awaits");
                check(!count.has_failures() || e->s.tainted[0] >> slot % 32 & 1,
                      "the linker knows of failures in a finished count");
            }
            check((e->s.handed[0] | e->s.staged[0] | e->s.early[0] | e->s.in_flight[0]) == 0, "the table is empty");
            check(e->s.counters[device::handed_blocks] == 0 && e->s.counters[device::handed_tasks] == 0,
                  "nothing is with the scheduler");
            seen.staged_most = std::max(seen.staged_most, e->staged);
            seen.staged_least = std::min(seen.staged_least, e->staged);
            seen.skipped_most = std::max(seen.skipped_most, e->skipped);
            seen.skipped_least = std::min(seen.skipped_least, e->skipped);
            seen.chained_most = std::max(seen.chained_most, e->chained);
            seen.chained_least = std::min(seen.chained_least, e->chained);
            seen.late_most = std::max(seen.late_most, e->late);
            seen.went_on_most = std::max(seen.went_on_most, e->went_on);
            seen.broadcasts_most = std::max(seen.broadcasts_most, e->broadcasts);
            seen.broadcasts_least = std::min(seen.broadcasts_least, e->broadcasts);
            seen.sent_to_all_most = std::max(seen.sent_to_all_most, e->s.broadcast->number);
            seen.awaited_early_most = std::max(seen.awaited_early_most, e->awaited_early);
            seen.awaited_aside_most = std::max(seen.awaited_aside_most, e->awaited_aside);
            seen.read_meanwhile_most = std::max(seen.read_meanwhile_most, e->read_meanwhile);
            seen.ran_staged |= e->ran_staged;
            seen.early |= e->early;
            seen.untainted |= e->s.tainted[0] == 0;
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

options walks(const std::string& name, u64 count = 3000, double seconds = 12)
{
    return {.name = name, .search = search::random, .executions_max = count, .seconds_max = seconds};
}

void check_race(const report& r)
{
    REQUIRE(r.failure);
    INFO(r.failure->what);
    CHECK(r.failure->what.find("race on") == 0);
}

const std::vector<test_task> pair = {{{{0, W}}}, {{{0, RW}, {1, W}}}};
const std::vector<test_task> chain = {{{{0, W}}}, {{{0, RW}, {1, W}}}, {{{1, R}, {0, RW}}}};
/// The last one waits for two, which run side by side.
const std::vector<test_task> join = {{{{0, W}}}, {{{1, W}}}, {{{0, R}, {1, R}}}};
/// Two blocks behind two blocks behind two blocks.
const std::vector<test_task> blocks_of_two = {{.accesses = {{0, W}}, .blocks = 2},
                                              {.accesses = {{0, RW}}, .blocks = 2, .reads_blocks_of = 0},
                                              {.accesses = {{0, RW}}, .blocks = 2, .reads_blocks_of = 1}};

} // namespace

TEST_CASE("a staged chain keeps program order in every schedule", "[model][staging]")
{
    for (const engine_size& size : {plain, lone}) {
        CHECK_FALSE(run(pair, {.name = "staged pair"}, size).failure);
        CHECK((seen.staged_least == 1 && seen.staged_most == 1 && seen.skipped_most == 0));
        CHECK((seen.awaited_aside_most == 1) == size.lone_workers);
        CHECK(seen.early);
        const report r = run(chain, {.name = "staged chain of three", .seconds_max = 120}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK((seen.staged_least == 2 && seen.skipped_most == 0));
        CHECK(seen.early); // reported complete before its predecessor
    }
    auto one_worker = plain;
    one_worker.workers = 1; // its mailbox holds the staged mail behind the one it waits for
    const report r = run(chain, {.name = "staged chain, one worker"}, one_worker);
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    CHECK(seen.staged_most >= 1);
}

TEST_CASE("a staged task that waits for two, and two that wait for one", "[model][staging]")
{
    for (const engine_size& size : {plain, lone}) {
        const report r = run(join, {.name = "staged join", .seconds_max = 120}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK(seen.staged_least == 1);
        CHECK((seen.awaited_early_most == 1) == size.lone_workers); // both of them, while the mail before it was answered
    }
    const report fork = run({{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}}, {.name = "staged fork", .seconds_max = 120});
    CHECK(fork.exhausted);
    CHECK_FALSE(fork.failure);
    CHECK(seen.staged_least == 2);
}

TEST_CASE("who waits for two, of which the later one waits for the other, waits for that one alone, and sees what both wrote",
          "[model][staging]")
{
    // The first may be reported last, when those behind it are complete and their slots have come again.
    const std::vector<test_task> three = {{{{0, W}, {2, W}}}, {{{0, R}, {1, W}}}, {{{1, R}, {2, RW}}}};
    for (const engine_size& size : {plain, lone}) {
        const report r = run(three, {.name = "an implied edge", .seconds_max = 120}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK((seen.staged_least == 2 && seen.early));
    }
    std::vector<test_task> seven = three;
    seven.insert(seven.end(), {{{{0, W}, {3, W}}}, {{{0, R}, {1, RW}}}, {{{1, R}, {3, RW}}}, {{{2, R}, {3, R}}}});
    for (const u32 window : {2u, 3u, 8u}) {
        CHECK_FALSE(run(seven, walks("implied edges, slots come again"), window_of(window), all_together).failure);
        const arrangement apart{.fibers = {ingest_role | admission_role, linker_role, scheduler_role | notifier_role}};
        CHECK_FALSE(run(seven, walks("implied edges, slots come again, roles apart"), window_of(window), apart).failure);
    }
    std::vector<test_task> failing = three;
    failing[0].fails = true; // by the chain of what they read
    for (u32 i : {1u, 2u}) failing[i].cancelled = true;
    CHECK_FALSE(run(failing, {.name = "an implied edge from one that fails", .seconds_max = 120}).failure);
    CHECK(seen.skipped_most >= 1);
}

TEST_CASE("each edge from worker to worker is needed, its scope too", "[model][staging][mutation]")
{
    for (const edge e : {edge::R5R12_fence, edge::A12_finished_fence}) {
        for (const mutation how : {mutation::relax, mutation::narrow}) {
            mutate weaker(e, how);
            check_race(run(pair, {.name = std::string("staged without ") + device::edge_name(e)}));
        }
    }
    for (const auto& program : {pair, join}) { // a lone worker's polls acquire by themselves
        for (const edge e : {edge::R5R12_fence, edge::A12_finished}) {
            mutate weaker(e);
            check_race(run(program, {.name = std::string("staged, lone, without ") + device::edge_name(e)}, lone));
        }
        mutate weaker(edge::A12_finished_fence);
        CHECK(run(program, {.name = "staged, lone, without A12_finished_fence"}, lone).weakened == 0);
    }
    for (const edge e : {edge::R12_finished, edge::A12_finished})
        for (const engine_size& size : {plain, lone}) {
            mutate narrower(e, mutation::narrow);
            const report r = run(pair, {.name = std::string("staged at block scope: ") + device::edge_name(e)}, size);
            REQUIRE(r.failure);
            CHECK(r.failure->what.find("scope too narrow") == 0);
        }
    {
        mutate weaker(edge::R12_finished); // relaxed, behind its fence
        CHECK(run(pair, {.name = "staged without R12_finished"}).weakened == 0);
    }
}

TEST_CASE("a staged mail still needs the step fence: the record, and what was complete before it was mailed",
          "[model][staging][mutation]")
{
    // The second is linked while the first runs, or after it.
    const arrangement feed{.fibers = {ingest_role | admission_role | linker_role, scheduler_role},
                           .end = {.count = 0, .slots_come_back = false, .submits = true}};
    CHECK_FALSE(run(pair, walks("staged, records beside"), window_of(2), feed).failure);
    CHECK((seen.staged_most == 1 && seen.staged_least == 0));
    for (const edge e : {edge::R4A5_step_fence, edge::A4_mail_fence, edge::R15_linked}) {
        mutate weaker(e);
        check_race(run(pair, {.name = std::string("staged, records without ") + device::edge_name(e)}, window_of(2), feed));
    }
}

TEST_CASE("tasks of several blocks, staged behind one another", "[model][staging]")
{
    // One block behind two, and two behind one. All schedules of two behind two: [.long].
    for (const auto& program :
         {std::vector<test_task>{{.accesses = {{0, W}}, .blocks = 2}, {.accesses = {{0, RW}}, .reads_blocks_of = 0}},
          std::vector<test_task>{{{{0, W}}}, {.accesses = {{0, R}}, .blocks = 2}}}) {
        const report r = run(program, {.name = "staged blocks, 1 and 2"});
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK(seen.staged_least == program[1].blocks);
    }
    for (const engine_size& size : {plain, lone, three_workers}) {
        CHECK_FALSE(run(blocks_of_two, walks("staged blocks, three tasks"), size).failure);
        CHECK(seen.staged_most >= 2);
        CHECK((seen.read_meanwhile_most >= 1) == size.lone_workers);
    }
    // Tickets are not waited for in this way, nor does a task of tickets wait.
    CHECK_FALSE(run({{.accesses = {{0, W}}, .blocks = 3},
                     {.accesses = {{0, RW}}, .reads_blocks_of = 0},
                     {.accesses = {{0, R}}, .blocks = 3}},
                    walks("tickets among staged tasks")).failure);
    CHECK(seen.staged_most == 0);
}

namespace {

engine_size to_all(engine_size size, u32 copies = 1)
{
    size.broadcast_copies = copies;
    return size;
}
/// Two blocks, one behind them on its own, and two again.
const std::vector<test_task> one_between = {{.accesses = {{0, W}}, .blocks = 2},
                                            {.accesses = {{0, RW}}, .reads_blocks_of = 0},
                                            {.accesses = {{0, RW}}, .blocks = 2}};

} // namespace

TEST_CASE("broadcasts: tasks of several blocks mailed to all workers at once keep program order in every schedule",
          "[model][staging][broadcast]")
{
    const std::vector<test_task> two(blocks_of_two.begin(), blocks_of_two.begin() + 2);
    for (const engine_size& size : {to_all(plain), to_all(lone)}) {
        const report r = run(two, {.name = "two broadcasts", .seconds_max = 4}, size);
        CHECK_FALSE(r.failure);
        CHECK((seen.broadcasts_least == 4 && seen.broadcasts_most == 4 && seen.sent_to_all_most == 2));
        CHECK_FALSE(run(blocks_of_two, walks("three broadcasts"), size).failure);
        CHECK((seen.broadcasts_least == 6 && seen.staged_most == 4));
        CHECK((seen.awaited_early_most >= 1) == size.lone_workers);
        CHECK((seen.awaited_aside_most >= 1) == size.lone_workers);
    }
    // Three workers: of each one has no block, another one each time.
    for (const u32 copies : {1u, 2u}) {
        CHECK_FALSE(run(blocks_of_two, walks("three broadcasts, three workers"), to_all(three_workers, copies)).failure);
        CHECK((seen.broadcasts_least == 6 && seen.sent_to_all_most == 3));
    }
    // The mailbox has two places: each comes again, and who had no block may be late.
    std::vector<test_task> five = blocks_of_two;
    for (int i : {2, 3}) five.push_back({.accesses = {{0, RW}}, .blocks = 2, .reads_blocks_of = i});
    CHECK_FALSE(run(five, walks("five broadcasts, three workers"), to_all(three_workers)).failure);
    CHECK((seen.broadcasts_most == 10 && seen.sent_to_all_most == 5));
    // Of which nobody waits for another.
    CHECK_FALSE(run({{.accesses = {{0, W}}, .blocks = 2}, {.accesses = {{1, W}}, .blocks = 2}, {.accesses = {{2, W}}, .blocks = 2}},
                    walks("broadcasts that do not wait, three workers"), to_all(three_workers)).failure);
    CHECK((seen.broadcasts_least == 6 && seen.sent_to_all_most == 3));
}

TEST_CASE("what goes to one worker behind broadcasts is numbered behind them, in every schedule", "[model][staging][broadcast]")
{
    const std::vector<test_task> pair_of_them(one_between.begin(), one_between.begin() + 2);
    for (const engine_size& size : {to_all(plain), to_all(lone)}) {
        const report r = run(pair_of_them, {.name = "one behind a broadcast", .seconds_max = 60}, size);
        CHECK_FALSE(r.failure);
        CHECK(seen.broadcasts_least == 2);
        CHECK_FALSE(run(one_between, walks("one between two broadcasts"), size).failure);
        CHECK((seen.broadcasts_least == 2 && seen.broadcasts_most == 4)); // the last one, once all others are answered
    }
    CHECK_FALSE(run(one_between, walks("one between two broadcasts, three workers"), to_all(three_workers)).failure);
    CHECK(seen.sent_to_all_most >= 1);
    const engine_size two_slots = to_all(window_of(2));
    CHECK_FALSE(run(one_between, walks("one between two broadcasts, slots come again"), two_slots, all_together).failure);
    CHECK_FALSE(run(one_between, walks("one between two broadcasts, roles apart"), to_all(three_workers), linker_beside).failure);
}

TEST_CASE("a broadcast whose block fails, and what is behind it, become mails like others", "[model][staging][broadcast][failure]")
{
    std::vector<test_task> failing = blocks_of_two;
    failing[0].fails = true;
    for (u32 i : {1u, 2u}) failing[i].cancelled = true;
    for (const int block : {-1, 1}) {
        failing[0].fails_block = block;
        for (const engine_size& size : {to_all(plain), to_all(lone), to_all(three_workers)}) {
            CHECK_FALSE(run(failing, walks("broadcasts behind one that fails"), size).failure);
            CHECK(seen.skipped_most >= 2);
        }
    }
}

TEST_CASE("each edge of a broadcast is needed, its scope too", "[model][staging][broadcast][mutation]")
{
    const std::vector<test_task> two(blocks_of_two.begin(), blocks_of_two.begin() + 2);
    const arrangement feed{.fibers = {ingest_role | admission_role | linker_role, scheduler_role},
                           .end = {.count = 0, .slots_come_back = false, .submits = true}};
    for (const edge e : {edge::R4A5_step_fence, edge::A4_mail_fence, edge::R5R12_fence}) {
        mutate weaker(e);
        const std::string name = std::string("broadcasts without ") + device::edge_name(e);
        check_race(run(two, walks(name, 20000, 20), to_all(window_of(2)), feed));
    }
    {
        mutate narrower(edge::A24_finished, mutation::narrow);
        const report r = run(two, {.name = "broadcasts, A24_finished at block scope"}, to_all(plain));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
}

namespace {

/// A body's block counts twice: who waits for two blocks may go on after one.
struct counts_twice : P1 {
    template <class T> static void add(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        P1::add(e, w, e == edge::R12_finished ? v + 1 : v, o, s);
    }
};
/// Nobody waits.
struct waits_for_nobody : P1 {
    using P1::load;
    template <class T> static T load(edge e, const word<T>& w, order o, scope s)
    {
        const T value = P1::load(e, w, o, s);
        return e == edge::A12_finished ? value + 1 : value;
    }
};
/// Failures are not noted beside the finished count.
struct forgets_failures : P1 {
    template <class T> static void add(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        P1::add(e, w, e == edge::R12_finished ? v & 0xffffffff : v, o, s);
    }
};

} // namespace

TEST_CASE("canary: a worker that does not wait, or not long enough, is found", "[model][staging][canary]")
{
    check_race(run<waits_for_nobody>(pair, {.name = "staged, nobody waits"}));
    CHECK(run<counts_twice>({blocks_of_two[0], blocks_of_two[1]}, {.name = "staged, blocks count twice"}).failure);
}

namespace {

constexpr auto failing_pair(u32 before, u32 behind)
{
    return std::vector<test_task>{{.accesses = {{0, W}}, .blocks = before, .fails = true},
                                  {.accesses = {{0, R}}, .blocks = behind, .cancelled = true}};
}

} // namespace

TEST_CASE("a staged task behind one that fails is skipped, goes back and is cancelled, in every schedule",
          "[model][staging][failure]")
{
    for (const u32 before : {1u, 2u})
        for (const u32 behind : {1u, 2u}) {
            INFO(before << " blocks fail, " << behind << " behind");
            const bool all = before == 1; // all schedules of two failing blocks: [.long]
            const std::string name = "staged behind a failure, " + std::to_string(before) + " and " + std::to_string(behind);
            const report r = run(failing_pair(before, behind), all ? options{.name = name, .seconds_max = 120} : walks(name));
            CHECK(r.exhausted == all);
            CHECK_FALSE(r.failure);
            CHECK((seen.skipped_least == behind && seen.skipped_most == behind));
        }
    CHECK_FALSE(run(failing_pair(1, 1), {.name = "staged behind a failure, lone"}, lone).failure);
    // One of its blocks fails; all blocks behind it are skipped.
    for (const int block : {0, 1}) {
        auto program = failing_pair(2, 2);
        program[0].fails_block = block;
        CHECK_FALSE(run(program, walks("staged behind one failing block of two")).failure);
        CHECK((seen.skipped_least == 2 && seen.skipped_most == 2));
    }
    // Two that it waits for: either fails.
    for (const u32 failing : {0u, 1u}) {
        auto program = join;
        program[failing].fails = true;
        program[2].cancelled = true;
        const report r = run(program, {.name = "staged join, one fails", .seconds_max = 120});
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK((seen.skipped_least <= 1 && seen.skipped_most == 1));
    }
    const report forgotten = run<forgets_failures>(failing_pair(1, 1), {.name = "staged, failures forgotten"});
    REQUIRE(forgotten.failure);
    CHECK(forgotten.failure->what.find("a cancelled task does not run") == 0);
}

TEST_CASE("a staged task that reads nothing of the one that failed runs once, and heals what it writes",
          "[model][staging][failure]")
{
    // WAR, then WAW.
    for (const access_mode mode : {R, W}) {
        std::vector<test_task> program = {{.accesses = {{0, mode}, {1, W}}, .fails = true}, {{{0, W}}}};
        const report r = run(program, {.name = "staged behind a failure, WAR or WAW"});
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK((seen.skipped_least == 1 && seen.skipped_most == 1));
        program.push_back({{{0, R}, {2, W}}});
        CHECK_FALSE(run(program, walks("staged behind a failure, WAR or WAW, and RAW")).failure);
        CHECK(seen.skipped_most == 2);
    }
}

TEST_CASE("a staged chain behind a failure is skipped link by link", "[model][staging][failure]")
{
    const std::vector<test_task> failing_chain = {{.accesses = {{0, W}}, .fails = true},
                                                  {.accesses = {{0, R}, {1, W}}, .cancelled = true},
                                                  {.accesses = {{1, R}, {2, W}}, .cancelled = true}};
    const report first = run(failing_chain, {.name = "staged chain, first fails", .seconds_max = 120});
    CHECK(first.exhausted);
    CHECK_FALSE(first.failure);
    CHECK((seen.skipped_least == 2 && seen.skipped_most == 2)); // both were staged before the first could fail
    CHECK_FALSE(run(failing_chain, walks("staged chain, first fails, three workers"), three_workers).failure);
    auto healed = failing_chain;
    healed.push_back({.accesses = {{0, W}}});
    healed.push_back({.accesses = {{0, R}, {3, RW}}});
    CHECK_FALSE(run(healed, walks("staged chain, first fails, healed")).failure);
    CHECK_FALSE(run(healed, walks("staged chain, first fails, healed, linker beside"), plain, linker_beside).failure);
    CHECK_FALSE(run(healed, walks("staged chain, first fails, healed, window of three"), window_of(3), all_together).failure);
    CHECK(seen.skipped_most >= 1);
    // A failure in the middle: the first was waited for, and succeeded.
    const report middle = run({{{{0, W}}},
                               {.accesses = {{0, R}, {1, W}}, .fails = true},
                               {.accesses = {{1, R}}, .cancelled = true}},
                              walks("staged chain, second fails"));
    CHECK_FALSE(middle.failure);
    CHECK(seen.skipped_most == 1);
}

TEST_CASE("canary: an oracle that expects one cancelled task more is noticed", "[model][staging][failure][canary]")
{
    auto program = failing_pair(1, 1);
    program.push_back({.accesses = {{1, W}}, .cancelled = true});
    CHECK(run(program, {.name = "staged, wrong oracle"}).failure);
}

TEST_CASE("linker beside the scheduler, with staging", "[model][staging]")
{
    const report two = run(pair, {.name = "staged pair, linker beside", .seconds_max = 120}, plain, linker_beside);
    CHECK(two.exhausted);
    CHECK_FALSE(two.failure);
    CHECK((seen.staged_least == 1 && seen.early));
    for (const auto* program : {&chain, &join, &blocks_of_two}) {
        CHECK_FALSE(run(*program, walks("staged, linker beside"), plain, linker_beside).failure);
        CHECK(seen.staged_most >= 1);
    }
    const arrangement four_lanes{.fibers = {linker_role, scheduler_role}, .lanes = 4};
    CHECK_FALSE(run<P4>(chain, walks("staged, 4 lanes", 1500), plain, four_lanes).failure);
    CHECK_FALSE(run<P4>({failing_pair(2, 2)[0], failing_pair(2, 2)[1], {{{0, W}}}},
                        walks("staged behind a failure, 4 lanes", 1500), plain, four_lanes).failure);
    CHECK(seen.skipped_most == 2);
}

TEST_CASE("who waits for more than its own lane looks at is linked and staged by others' lanes", "[model][staging]")
{
    std::vector<test_task> program{{{{0, W}}}};
    program.resize(7, test_task{{{0, R}}});
    program.push_back({{{0, W}, {1, W}}}); // behind six readers
    program.push_back({{{0, R}, {1, R}}});
    const engine_size wide{.ring_slots = 32, .window_used = 10, .workers = 12, .pool_blocks = 16, .staging = true};
    for (const auto& lanes : {arrangement{.fibers = {linker_role, scheduler_role}, .lanes = 4}, linker_beside}) {
        const options how = walks("staged behind six, " + std::to_string(lanes.lanes) + " lanes", 300);
        CHECK_FALSE((lanes.lanes == 4 ? run<P4>(program, how, wide, lanes) : run(program, how, wide, lanes)).failure);
        CHECK(seen.staged_most == 8);
    }
}

namespace {

engine_size chained(engine_size size, bool answers_late = true)
{
    size.chaining = true;
    size.answers_late = answers_late;
    return size;
}
const arrangement beside_of_four{.fibers = {linker_role, scheduler_role}, .lanes = 4};

} // namespace

TEST_CASE("a task may come behind the one that it waits for, on the same worker, and keeps program order in every schedule",
          "[model][staging][chaining]")
{
    for (const engine_size& size : {chained(plain), chained(lone), chained(plain, false)}) {
        const report two = run(pair, {.name = "chained pair"}, size);
        CHECK(two.exhausted);
        CHECK_FALSE(two.failure);
        CHECK(seen.chained_least == 1);
        const report r = run(chain, {.name = "chained chain of three", .seconds_max = 120}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK(seen.chained_least >= 1); // a mailbox has two places
        CHECK((seen.late_most >= 1) == size.answers_late);
        CHECK(seen.went_on_most >= 1);
        const report both = run(join, {.name = "chained join", .seconds_max = 120}, size);
        CHECK(both.exhausted);
        CHECK_FALSE(both.failure);
        CHECK(seen.chained_most == 0); // those that it waits for run on two workers
    }
    const report fork = run({{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}}, {.name = "chained fork", .seconds_max = 120},
                            chained(plain));
    CHECK(fork.exhausted);
    CHECK_FALSE(fork.failure);
    CHECK((seen.chained_least == 1 && seen.chained_most == 1));
    const std::vector<test_task> turns = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{1, R}, {0, W}}}, {{{0, R}, {1, W}}}};
    const std::vector<test_task> two_chains = {{{{0, W}}}, {{{1, W}}}, {{{0, RW}}}, {{{1, RW}}}, {{{0, RW}, {1, R}}}, {{{1, RW}}}};
    for (const auto* program : {&chain, &join, &blocks_of_two, &turns, &two_chains}) {
        CHECK_FALSE(run(*program, walks("chained, linker beside"), chained(plain), linker_beside).failure);
        CHECK_FALSE(run<P4>(*program, walks("chained, 4 lanes", 1500), chained(plain), beside_of_four).failure);
    }
}

TEST_CASE("two that wait for one come behind it, one behind the other, and answers come together, in every schedule",
          "[model][staging][chaining]")
{
    const std::vector<test_task> fork = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}};
    for (const engine_size& size : {chained(plain), chained(lone), chained(plain, false)}) {
        const report r = run<deep1>(fork, {.name = "chained fork, deep mailboxes", .seconds_max = 120}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK((seen.chained_least == 2 && seen.chained_most == 2));
        CHECK((seen.late_most >= 2) == size.answers_late);
    }
    // Who waits for the first of the two alone runs elsewhere, and waits for an answer that comes with the second's.
    const std::vector<test_task> diamonds = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}, {{{1, R}, {2, R}, {0, W}}},
                                             {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}};
    const std::vector<test_task> one_elsewhere = {{{{0, W}}}, {{{0, R}, {1, W}}}, {{{0, R}, {2, W}}}, {{{1, R}, {3, W}}}};
    const report elsewhere = run<deep1>(one_elsewhere, {.name = "chained fork, one waits elsewhere", .seconds_max = 120},
                                        chained(plain));
    CHECK(elsewhere.exhausted);
    CHECK_FALSE(elsewhere.failure);
    for (const auto* program : {&diamonds, &one_elsewhere})
        for (const engine_size& size : {chained(plain), chained(lone)}) {
            CHECK_FALSE(run<deep1>(*program, walks("chained diamonds"), size).failure);
            CHECK((seen.chained_most >= 2 && seen.late_most >= 2));
            CHECK_FALSE(run<deep1>(*program, walks("chained diamonds, linker beside"), size, linker_beside).failure);
            CHECK_FALSE(run<deep4>(*program, walks("chained diamonds, 4 lanes", 1500), size, beside_of_four).failure);
        }
    std::vector<test_task> failing = {{{{0, W}}},
                                      {.accesses = {{0, R}, {1, W}}, .fails = true},
                                      {{{0, R}, {2, W}}},
                                      {.accesses = {{1, R}, {2, R}, {0, W}}, .cancelled = true}};
    CHECK_FALSE(run<deep1>(failing, walks("chained diamond, the first of the two fails"), chained(plain)).failure);
    CHECK(seen.skipped_most >= 1);
    CHECK_FALSE(run<deep4>(failing, walks("chained diamond, the first of the two fails, 4 lanes", 1500), chained(plain),
                           beside_of_four).failure);
}

TEST_CASE("a chained task behind one that fails is skipped, and so are those behind it", "[model][staging][chaining][failure]")
{
    const report two = run(failing_pair(1, 1), {.name = "chained behind a failure", .seconds_max = 120}, chained(plain));
    CHECK(two.exhausted);
    CHECK_FALSE(two.failure);
    CHECK((seen.skipped_least == 1 && seen.skipped_most == 1));
    std::vector<test_task> program = {{.accesses = {{0, W}}, .fails = true},
                                      {.accesses = {{0, R}, {1, W}}, .cancelled = true},
                                      {.accesses = {{1, R}, {2, W}}, .cancelled = true},
                                      {.accesses = {{0, W}}},
                                      {.accesses = {{0, R}, {3, RW}}}};
    for (const u32 window : {3u, 8u})
        CHECK_FALSE(run(program, walks("chained chain, first fails, healed"), chained(window_of(window)), all_together).failure);
    CHECK_FALSE(run(program, walks("chained chain, first fails, healed, linker beside"), chained(plain), linker_beside).failure);
    CHECK_FALSE(run<P4>(program, walks("chained chain, first fails, healed, 4 lanes", 1500), chained(plain),
                        beside_of_four).failure);
}

TEST_CASE("few workers are mailed several brief tasks at a time, and whoever waits for one sees it, in every schedule",
          "[model][staging]")
{
    const auto sized = [](u32 workers, bool lone_workers) {
        engine_size size = window_of(8, workers); // more tasks than two mails a worker
        size.lone_workers = lone_workers;
        return size;
    };
    const std::vector<test_task> four = {{{{0, W}}}, {{{1, W}}}, {{{2, W}}}, {{{3, W}}}};
    const std::vector<test_task> waited_for = {{{{0, W}}}, {{{1, W}}}, {{{2, W}}}, {{{3, W}}}, {{{0, R}, {3, RW}}}, {{{1, RW}}}};
    // One that fails is nobody's business but of those that read what it wrote: those that stand behind it on its worker run.
    const std::vector<test_task> failing = {{{{0, W}}},
                                            {.accesses = {{1, W}}, .fails = true},
                                            {{{2, W}}},
                                            {{{3, W}}},
                                            {.accesses = {{1, R}, {0, RW}}, .cancelled = true},
                                            {{{2, R}, {3, RW}}}};
    for (const u32 workers : {1u, 2u})
        for (const bool lone_workers : {false, true}) {
            const engine_size size = sized(workers, lone_workers);
            if (workers == 1) {
                const report r = run<deep1>(four, {.name = "several at a time, one worker", .seconds_max = 120}, size);
                CHECK(r.exhausted);
                CHECK_FALSE(r.failure);
                CHECK((seen.staged_most == 0 && seen.skipped_most == 0));
            }
            for (const engine_size& by : {size, chained(size)})
                for (const auto* program : {&waited_for, &failing}) {
                    CHECK_FALSE(run<deep1>(*program, walks("several at a time", 1500), by).failure);
                    CHECK_FALSE(run<deep1>(*program, walks("several at a time, linker beside", 1500), by, linker_beside).failure);
                    CHECK_FALSE(run<deep4>(*program, walks("several at a time, 4 lanes", 700), by, beside_of_four).failure);
                }
        }
}

TEST_CASE("slots come again behind chained tasks", "[model][staging][chaining]")
{
    const std::vector<test_task> six = {{{{0, W}}}, {{{0, RW}, {1, W}}}, {{{1, R}, {0, RW}}}, {{{2, W}}}, {{{0, R}, {2, RW}}},
                                        {{{2, RW}}}};
    for (const u32 window : {2u, 3u}) {
        CHECK_FALSE(run(six, walks("chained, slots come again"), chained(window_of(window)), all_together).failure);
        CHECK(seen.chained_most >= 2);
        const arrangement apart{.fibers = {ingest_role | admission_role, linker_role, scheduler_role | notifier_role}};
        CHECK_FALSE(run(six, walks("chained, slots come again, roles apart"), chained(window_of(window)), apart).failure);
        CHECK_FALSE(run(six, walks("chained, slots come again, one worker"), chained(window_of(window, 1)), apart).failure);
    }
}

TEST_CASE("slots come again behind staged tasks, one of them reported before its predecessor", "[model][staging]")
{
    const std::vector<test_task> five = {{{{0, W}}}, {{{0, RW}, {1, W}}}, {{{1, R}, {0, RW}}}, {{{2, W}}}, {{{0, R}, {2, RW}}}};
    for (const u32 window : {2u, 3u}) {
        CHECK_FALSE(run(five, walks("staged, slots come again"), window_of(window), all_together).failure);
        CHECK((seen.staged_most >= 3 && seen.early));
        const arrangement apart{.fibers = {ingest_role | admission_role, linker_role, scheduler_role | notifier_role}};
        CHECK_FALSE(run(five, walks("staged, slots come again, roles apart"), window_of(window), apart).failure);
        CHECK((seen.staged_most >= 3 && seen.early));
    }
}

TEST_CASE("after a failure was cleared slots with failures are set back, and tasks are staged behind their next ones",
          "[model][staging][failure]")
{
    const std::vector<test_task> program = {{.accesses = {{0, W}}, .fails = true},
                                            {.accesses = {{0, R}, {1, W}}, .cancelled = true},
                                            {.accesses = {}, .whole_memory = true, .clears_failure = true},
                                            {{{0, W}}},
                                            {{{0, RW}, {1, W}}},
                                            {.accesses = {{1, R}, {0, RW}}}};
    // While the kernel is idle between two messages nothing is in flight; else the slots stay as they are.
    const arrangement slow_ingest{.fibers = {ingest_role | admission_role, linker_role | scheduler_role | notifier_role}};
    for (const u32 window : {2u, 3u}) {
        for (const arrangement& by : {all_together, slow_ingest}) {
            CHECK_FALSE(run(program, walks("staged, failure cleared", 2000), window_of(window), by).failure);
            CHECK(seen.skipped_most >= 1);
        }
        CHECK(seen.untainted);
        CHECK((seen.ran_staged & (1u << 4 | 1u << 5)) == (1u << 4 | 1u << 5));
    }
    auto twice = program;
    twice[3].fails = true;
    twice[4].cancelled = twice[5].cancelled = true;
    for (const arrangement& by : {all_together, slow_ingest}) {
        CHECK_FALSE(run(twice, walks("staged, failure cleared, another", 2000), window_of(3), by).failure);
        CHECK(seen.skipped_most >= 1);
    }
    CHECK(seen.skipped_most >= 2); // of those behind the second failure one at least
}

TEST_CASE("the next failure in a slot sees that the first was noted: its fence is needed", "[model][staging][failure][mutation]")
{
    // The first fails, the second is staged behind it and slow to look; the third fails in the first one's slot, on two workers.
    const std::vector<test_task> program = {{.accesses = {{0, W}}, .fails = true},
                                            {.accesses = {{0, R}}, .cancelled = true},
                                            {.accesses = {{1, W}}, .blocks = 2, .fails = true}};
        CHECK_FALSE(run(program, walks("staged, two failures in a slot", 8000), window_of(2, 3), all_together).failure);
    CHECK(seen.skipped_most == 1);
    for (const mutation how : {mutation::relax, mutation::narrow}) {
        mutate weaker(edge::R5R12_failure_fence, how);
        const report r = run(program, walks("staged, two failures in a slot, without R5R12_failure_fence", 40000, 20),
                             window_of(2, 3), all_together);
        REQUIRE(r.failure);
        INFO(r.failure->what);
        CHECK(r.failure->what.find("a cancelled task does not run") == 0);
    }
}

TEST_CASE("every schedule of two blocks behind two, of a window fed while it runs", "[.long]")
{
    // Some minutes.
    for (const engine_size& size : {plain, lone}) {
        const report r = run({blocks_of_two[0], blocks_of_two[1]}, {.name = "staged blocks, two tasks", .seconds_max = 200}, size);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
    for (const u32 behind : {1u, 2u})
        for (const int block : {-1, 0, 1}) {
            auto program = failing_pair(2, behind);
            program[0].fails_block = block;
            const report r = run(program, {.name = "staged behind a failure, 2 and " + std::to_string(behind), .seconds_max = 400});
            if (behind == 1 || block >= 0) CHECK(r.exhausted); // both failing, before two: more than 1.6 million
            CHECK_FALSE(r.failure);
            CHECK((seen.skipped_least == behind && seen.skipped_most == behind));
        }
    const arrangement feed{.fibers = {ingest_role | admission_role | linker_role, scheduler_role},
                           .end = {.count = 0, .slots_come_back = false, .submits = true}};
    const report fed = run(pair, {.name = "staged, records beside", .seconds_max = 200}, window_of(2), feed);
    CHECK(fed.exhausted);
    CHECK_FALSE(fed.failure);
    CHECK((seen.staged_most == 1 && seen.staged_least == 0));
}
