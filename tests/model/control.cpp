// The whole engine (device/control.hpp): host, ingest, admission, linker, scheduler, notifier and two workers, through drain and
// through a park and relaunch. Too large to exhaust: random walks, seed printed; each EDGE of completion and command mutated.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

using P1 = model_platform<1>;
using crew_of_two = model_platform<1, 2>;
using with_aborts = model_platform<1, 1, true>;

/// Its mailboxes have four places: three blanks may be out.
struct deep_with_aborts : with_aborts {
    static constexpr u32 mailbox_depth = 4;
};

/// Lanes of ingest; all other roles have one.
template <class P> inline constexpr u32 ingest_lanes = 1;
using P4 = model_platform<4>;
template <> inline constexpr u32 ingest_lanes<P4> = 4;

/// A worker that waits with a staged mail leaves for a park without saying so.
struct leaves_silently : with_aborts {
    using with_aborts::store;
    template <class T> static void store(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        if (e == edge::R5_done && (v & device::done_word::paused_bit) != 0) return;
        with_aborts::store(e, w, v, o, s);
    }
};
/// The stop word is not taken back at the end of a parked launch.
struct stays_stopped : with_aborts {
    using with_aborts::store;
    template <class T> static void store(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        if (e == edge::P1_stop && v == 0) return;
        with_aborts::store(e, w, v, o, s);
    }
};
struct deep_stays_stopped : stays_stopped {
    static constexpr u32 mailbox_depth = 4;
};
constexpr u64 forever_ns = u64{1} << 60;

/// each_task: for every task before the next one is submitted, by the early mark or else the low-water mark.
enum class host_waits { low_water, bits, each_task };

/// What is done before the walk begins.
enum class begin { submitted, linked };

/// At most, in an execution since the last reset.
struct {
    u32 staged, paused, skipped, bypassed, sent_to_all, taken_from_ring, past_stop;
    bool drawn_ahead;
} seen;

/// The service side of a park: all roles of the kernel meet here, as at a kernel boundary, before they start again.
struct launches {
    P1::word<u32> left, round;
};

template <class P, class Role> void run(Role role)
{
    typename P::team team;
    device::run_role<P>(role, team);
}

template <class P> void run_admission(const small_engine<P>& e)
{
    typename P::crew crew;
    device::admission_role<P> role(e.m, e.s);
    device::run_role<P>(role, crew);
}

template <class P = P1>
report engine_run(const std::vector<test_task>& program, options how, bool park, host_waits by,
                  engine_size size = {.ring_slots = 2, .window_used = 2}, begin from = begin::submitted)
{
    const report r = explore(how, [&, park, by](execution& ex) {
        auto e = std::make_shared<small_engine<P>>(program, size);
        if (from == begin::linked) e->link_all();
        auto boundary = std::make_shared<launches>();
        label(boundary->left, "left");
        label(boundary->round, "round");
        const u32 roles = 3 + ingest_lanes<P> + P::crew::teams() + size.workers; // each lane and team reports by itself
        const u32 kernels = park ? 2 : 1;
        // A role in every launch of the kernel; the service prepares the next launch when all have left.
        auto resident = [=](auto body) {
            return [=] {
                for (u32 launch = 0; launch < kernels; ++launch) {
                    u32 n = 0;
                    while (P::load(by_test, boundary->round, order::acquire, scope::system) < launch) P::pause(n++);
                    body();
                    P::fetch_add(by_test, boundary->left, 1u, order::acq_rel, scope::system);
                }
            };
        };
        ex.spawn("submitter", host_thread(), [=] {
            const u32 count = static_cast<u32>(e->tasks.size());
            u32 n = 0;
            for (u32 i = 0; from == begin::submitted && i < count; ++i) {
                check(e->submit(i, [&n] {
                    P::pause(n++);
                    return true;
                }), "submitted");
                if (by != host_waits::each_task) continue;
                while (P::load(edge::A22_early_mark, e->m.ring_pages->early_mark, order::acquire, scope::system) <= i
                       && P::load(edge::A7_low_water, e->m.ring_pages->low_water, order::acquire, scope::system) <= i)
                    P::pause(n++);
                for (u32 before = 0; before <= i; ++before) // a mark says so of all before it
                    if (!e->tasks[before].cancelled && e->tasks[before].blocks == 1)
                        check(P::get(e->results[before]) != 0, "the host sees what a task wrote that is complete");
            }
            if (!park)
                P::store(edge::R8_command, e->m.page->command_word, static_cast<u32>(device::command::drain), order::release,
                         scope::system);
            if (by != host_waits::bits) {
                while (P::load(edge::A7_low_water, e->m.ring_pages->low_water, order::acquire, scope::system) < count)
                    P::pause(n++);
            } else {
                while (P::load(edge::A7_complete, e->m.complete_bits[0], order::acquire, scope::system) != (1u << count) - 1)
                    P::pause(n++);
            }
            e->check_against_oracle(); // the host may read what the tasks wrote
        });
        if (park)
            ex.spawn("service", host_thread(), [=] {
                P::store(edge::R8_command, e->m.page->command_word, static_cast<u32>(device::command::park), order::release,
                         scope::system);
                u32 n = 0;
                while (P::load(by_test, boundary->left, order::acquire, scope::system) < roles) P::pause(n++);
                P::store(edge::R8_command, e->m.page->command_word, static_cast<u32>(device::command::run), order::release,
                         scope::system);
                device::reset_phases<P>(e->s);
                P::store(by_test, boundary->round, 1u, order::release, scope::system);
                while (P::load(edge::A7_low_water, e->m.ring_pages->low_water, order::acquire, scope::system) < e->tasks.size())
                    P::pause(n++);
                P::store(edge::R8_command, e->m.page->command_word, static_cast<u32>(device::command::drain), order::release,
                         scope::system);
            });
        ex.spawn_team("ingest", device_block(0), ingest_lanes<P>, resident([=] { run<P>(device::ingest_role<P>(e->m, e->s)); }));
        ex.spawn_team("admission", device_block(0), P::crew::teams(), resident([=] { run_admission(*e); }));
        ex.spawn("linker", device_block(0), resident([=] { run<P>(device::linker_role<P>(e->m, e->s)); }));
        ex.spawn("scheduler", device_block(0), resident([=] { run<P>(device::scheduler_role<P>(e->m, e->s)); }));
        ex.spawn("notifier", device_block(0), resident([=] { run<P>(device::notifier_role<P>(e->m, e->s, forever_ns)); }));
        for (u32 w = 0; w < size.workers; ++w)
            ex.spawn("worker " + std::to_string(w), device_block(1 + w), resident([=] { e->work(w); }));
        ex.at_end([e] {
            e->check_against_oracle();
            seen = {std::max(seen.staged, e->staged), std::max(seen.paused, e->paused), std::max(seen.skipped, e->skipped),
                    std::max(seen.bypassed, e->bypassed), std::max(seen.sent_to_all, e->s.broadcast->number),
                    std::max(seen.taken_from_ring, e->taken_from_ring), std::max(seen.past_stop, e->past_stop),
                    seen.drawn_ahead || e->drawn_ahead};
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

const std::vector<test_task> chain = {{{{0, W}}}, {{{0, RW}, {1, W}}}, {{{1, R}, {0, W}}}, {{{0, R}}}};

options walks(const char* name, u64 count = 6000, double seconds = 16)
{
    return {.name = name, .search = search::random, .executions_max = count, .seconds_max = seconds};
}

} // namespace

TEST_CASE("submit to host notification, then drain: program order, nothing lost, nothing twice", "[model][control]")
{
    CHECK_FALSE(engine_run(chain, walks("engine, drain, low-water mark"), false, host_waits::low_water).failure);
    CHECK_FALSE(engine_run(chain, walks("engine, drain, bits"), false, host_waits::bits).failure);
}

TEST_CASE("a park at any time and a relaunch lose nothing", "[model][control]")
{
    CHECK_FALSE(engine_run(chain, walks("engine, park"), true, host_waits::low_water).failure);
    CHECK_FALSE(engine_run({{{{0, W}}}, {{}, 3}, {{{0, R}}}}, walks("engine, park, tickets"), true, host_waits::low_water).failure);
    CHECK_FALSE(engine_run({{{}, 3}, {{}, 4}, {{{0, W}}}}, walks("engine, park, tickets of two tasks"), true,
                           host_waits::low_water, {.ring_slots = 4, .window_used = 4}).failure);
    // One worker, and so many blocks that it draws the next ones while it runs some.
    seen = {};
    const engine_size lone{.ring_slots = 2, .window_used = 2, .workers = 1};
    CHECK_FALSE(engine_run({{{{0, W}}}, {{}, 4}, {{{0, R}}}}, walks("engine, park, tickets drawn ahead"), true,
                           host_waits::low_water, lone).failure);
    CHECK(seen.drawn_ahead);
}

TEST_CASE("staging, through drain and through a park: who waits with a staged mail leaves and takes it up again",
          "[model][control][staging]")
{
    const std::vector<test_task> blocks = {{{{0, W}}},
                                           {.accesses = {{0, R}, {1, W}}, .blocks = 2},
                                           {.accesses = {{1, RW}, {0, W}}, .reads_blocks_of = 1},
                                           {{{0, R}}}};
    const std::vector<test_task> failing = {{{{0, W}}},
                                            {.accesses = {{0, R}, {1, W}}, .fails = true},
                                            {.accesses = {{1, R}, {2, W}}, .cancelled = true},
                                            {.accesses = {{2, R}}, .cancelled = true},
                                            {{{2, W}}}};
    const engine_size size{.ring_slots = 8, .window_used = 4, .pool_blocks = 16, .staging = true};
    for (const auto* program : {&chain, &blocks, &failing}) {
        seen = {};
        CHECK_FALSE(engine_run<with_aborts>(*program, walks("engine, staged, park", 3000), true,
                                            host_waits::low_water, size).failure);
        CHECK((seen.staged >= 2 && seen.paused >= 1));
        if (program == &failing) CHECK(seen.skipped >= 1);
        // Behind each other on a worker. What told the workers to stop must not be there any more in the next launch.
        auto chained = size;
        chained.chaining = chained.answers_late = true;
        seen = {};
        CHECK_FALSE(engine_run<with_aborts>(*program, walks("engine, chained, park", 3000), true,
                                            host_waits::low_water, chained).failure);
        CHECK((seen.staged >= 2 && seen.paused >= 1));
        if (program == &chain)
            CHECK(engine_run<stays_stopped>(*program, walks("engine, chained, told to stop for ever", 3000), true,
                                            host_waits::low_water, chained).failure);
    }
    auto lone = size;
    lone.lone_workers = true;
    CHECK_FALSE(engine_run<with_aborts>(blocks, walks("engine, staged, lone, park", 2000), true,
                                        host_waits::low_water, lone).failure);
    // Canary: the scheduler waits for it.
    CHECK(engine_run<leaves_silently>(chain, walks("engine, staged, a worker leaves silently", 3000), true,
                                      host_waits::low_water, size).failure);
    const engine_size small{.ring_slots = 2, .window_used = 2, .staging = true};
    CHECK_FALSE(engine_run<with_aborts>(chain, walks("engine, staged, window of two, park", 3000), true,
                                        host_waits::bits, small).failure);
    CHECK_FALSE(engine_run(chain, walks("engine, staged, drain", 3000), false, host_waits::low_water, small).failure);
    CHECK_FALSE(engine_run(chain, walks("engine, staged, drain, bits", 3000), false, host_waits::bits, small).failure);
}

TEST_CASE("rows of types that never fail go on to their end past a park, and what is behind them is taken up again",
          "[model][control][staging]")
{
    const std::vector<test_task> row = {{{{0, W}}},         {{{1, W}}},  {{{0, R}, {1, R}, {2, W}}},
                                        {{{0, R}, {3, W}}}, {{{3, RW}}}, {{{3, RW}}}};
    std::vector<test_task> failing = row;
    failing[4].fails = failing[5].cancelled = true;
    const engine_size size{.ring_slots = 16, .window_used = 8, .pool_blocks = 24, .staging = true, .chaining = true,
                           .answers_late = true, .never_fails = true};
    for (const auto& program : {row, failing}) {
        seen = {};
        CHECK_FALSE(engine_run<deep_with_aborts>(program, walks("engine, a row, park", 3000), true, host_waits::low_water, size,
                                                 begin::linked).failure);
        CHECK((seen.past_stop >= 1 && seen.paused >= 1));
        auto failing_types = size; // as before: who may fail stops in front of the next one
        failing_types.never_fails = false;
        seen = {};
        CHECK_FALSE(engine_run<deep_with_aborts>(program, walks("engine, a row that may fail, park", 1000), true,
                                                 host_waits::low_water, failing_types, begin::linked).failure);
        CHECK((seen.past_stop == 0 && seen.paused >= 1));
    }
    CHECK(engine_run<deep_stays_stopped>(row, walks("engine, a row, told to stop for ever", 3000), true, host_waits::low_water,
                                         size, begin::linked).failure);
}

TEST_CASE("the engine with a crew of two teams, through drain and through park", "[model][control]")
{
    test_task wide; // fills five words of the access table, too many for the leader alone; what follows lies in the helper's
    wide.accesses.assign(160, {1, R});
    const std::vector<test_task> program = {wide, {{{0, W}}}, {{{0, RW}, {1, W}}}};
    const engine_size size{.ring_slots = 2, .window_used = 3, .pool_blocks = 48};
    for (const bool park : {false, true})
        CHECK_FALSE(engine_run<crew_of_two>(program, walks(park ? "engine, crew of two, park" : "engine, crew of two", 4000), park,
                                            host_waits::low_water, size).failure);
}

TEST_CASE("an abort at any time ends all roles; nothing ran twice, and what ran was in order", "[model][control]")
{
    struct aborted {
        std::vector<test_task> program;
        bool staging;
    };
    for (const auto& [program, staging] : {aborted{chain, false}, aborted{{{{{0, W}}}, {{}, 3}, {{{0, R}}}}, false},
                                           aborted{chain, true}}) {
        const report r = explore(walks(staging ? "engine, staged, abort" : "engine, abort"), [&](execution& ex) {
            using P = with_aborts;
            auto e = std::make_shared<small_engine<P>>(
                program, engine_size{.ring_slots = 8, .window_used = staging ? 4u : 2u, .staging = staging});
            for (u32 i = 0; i < program.size(); ++i) check(e->submit(i, [] { return false; }), "the ring holds every message");
            ex.spawn("service", host_thread(), [=] {
                P::store(edge::R8_command, e->m.page->command_word, static_cast<u32>(device::command::abort), order::release,
                         scope::system);
            });
            ex.spawn("ingest", device_block(0), [=] { run<P>(device::ingest_role<P>(e->m, e->s)); });
            ex.spawn("admission", device_block(0), [=] { run_admission(*e); });
            ex.spawn("linker", device_block(0), [=] { run<P>(device::linker_role<P>(e->m, e->s)); });
            ex.spawn("scheduler", device_block(0), [=] { run<P>(device::scheduler_role<P>(e->m, e->s)); });
            ex.spawn("notifier", device_block(0), [=] { run<P>(device::notifier_role<P>(e->m, e->s, forever_ns)); });
            for (u32 w = 0; w < 2; ++w) ex.spawn("worker " + std::to_string(w), device_block(1 + w), [=] { e->work(w); });
        });
        std::cout << r.line() << "\n";
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("tasks that come alone are mailed by ingest and told of by their worker, others between them; drain and park",
          "[model][control][bypass]")
{
    const std::vector<test_task> mixed = {{{{0, W}}},
                                          {{{0, RW}, {1, W}}},
                                          {.accesses = {{1, R}}, .blocks = 3}, // draws tickets
                                          {{{1, RW}, {0, RW}}},
                                          {{{0, R}}}};
    const std::vector<test_task> failing = {{{{0, W}}},
                                            {.accesses = {{0, R}, {1, W}}, .fails = true},
                                            {.accesses = {{1, R}, {2, W}}, .cancelled = true},
                                            {{{0, R}}}};
    engine_size size{.ring_slots = 8, .window_used = 4, .pool_blocks = 16, .bypass = true};
    for (const auto* program : {&chain, &mixed, &failing})
        for (const bool park : {false, true})
            for (const bool staging : {false, true})
                for (const host_waits by : {host_waits::each_task, host_waits::low_water}) {
                    size.staging = size.chaining = size.answers_late = staging;
                    seen = {};
                    CHECK_FALSE(engine_run<with_aborts>(*program, walks("engine, bypass", 2000, 8), park, by, size).failure);
                    // One after the other all of them may be; of all together the first, and what comes when nothing is left.
                    const u32 least = by == host_waits::low_water ? 1 : program == &chain ? 3 : program == &mixed ? 2 : 1;
                    CHECK(seen.bypassed >= least);
                }
    for (const edge e : {edge::R21_bypass_fence, edge::R22_early_fence, edge::A22_early_mark}) {
        mutate weaker(e);
        const std::string name = std::string("engine, bypass, without ") + device::edge_name(e);
        INFO(name);
        CHECK(engine_run(chain, walks(name.c_str(), 3000, 12), false, host_waits::each_task, size).failure);
    }
}

TEST_CASE("worker 0 takes tasks from the ring itself while they come one by one, others between them; drain and park",
          "[model][control][watch]")
{
    const std::vector<test_task> lone = {{{{0, W}}}, {{{0, RW}, {1, W}}}, {{{1, RW}}}, {{{1, R}, {0, RW}}}, {{{0, RW}}}};
    const std::vector<test_task> mixed = {{{{0, W}}},
                                          {{{0, RW}, {1, W}}},
                                          {.accesses = {{1, R}}, .blocks = 3}, // not a worker's, nor ingest's: it draws tickets
                                          {{{1, RW}, {0, RW}}},
                                          {{{0, RW}}},
                                          {{{0, R}}}};
    const std::vector<test_task> failing = {{{{0, W}}},
                                            {{{0, RW}}},
                                            {.accesses = {{0, R}, {1, W}}, .fails = true},
                                            {.accesses = {{1, R}, {2, W}}, .cancelled = true},
                                            {{{0, R}}}};
    engine_size size{.ring_slots = 8, .window_used = 4, .pool_blocks = 24, .bypass = true, .watch_after = 1};
    for (const auto* program : {&lone, &mixed, &failing})
        for (const bool park : {false, true})
            for (const bool staging : {false, true})
                for (const host_waits by : {host_waits::each_task, host_waits::low_water}) {
                    size.staging = size.chaining = size.answers_late = staging;
                    seen = {};
                    // Two of them are taken in one of some thousand walks.
                    const u32 most = program == &lone && by == host_waits::each_task ? 8000 : 2000;
                    CHECK_FALSE(engine_run<with_aborts>(*program, walks("engine, watch", most, 8), park, by, size).failure);
                    // Of tasks that are submitted together some come by themselves all the same.
                    CHECK(seen.taken_from_ring >= (by == host_waits::low_water ? 0 : program == &lone ? 2 : 1));
                }
    // Three blanks out at once: one that was read, and withdrawn before it was begun, may name a slot that is a later blank's by
    // the time that worker 0 comes to it.
    const std::vector<test_task> twice = {{{{0, W}}}, {.accesses = {{0, R}}, .blocks = 2}, {{{0, RW}}}, {{{1, W}}}, {{{1, RW}}}};
    const engine_size deep{.ring_slots = 8, .window_used = 6, .pool_blocks = 48, .bypass = true, .watch_after = 1};
    seen = {};
    const options of_deep = walks("engine, watch, three blanks", 8000, 12);
    CHECK_FALSE(engine_run<deep_with_aborts>(twice, of_deep, false, host_waits::each_task, deep).failure);
    CHECK(seen.taken_from_ring >= 1);
    // Ingest's lanes look at worker 0's words each by itself, and go the same way.
    for (const auto* program : {&lone, &mixed}) {
        seen = {};
        const options of_lanes = walks("engine, watch, ingest of four lanes", 1500);
        CHECK_FALSE(engine_run<P4>(*program, of_lanes, false, host_waits::each_task, size).failure);
        CHECK(seen.bypassed >= 1);
    }
    // A blank that was declined, and the mails that get its number, in its place.
    const std::vector<test_task> wide = {{{{0, W}}}, {.accesses = {{0, R}}, .blocks = 2}, {{{0, RW}}}};
    size.staging = size.chaining = size.answers_late = false;
    CHECK_FALSE(engine_run(wide, walks("engine, watch, declined", 3000, 12), false, host_waits::each_task, size).failure);
    for (const edge e : {edge::R25_declined_fence, edge::A25_declined_fence}) {
        mutate weaker(e);
        const std::string name = std::string("engine, watch, without ") + device::edge_name(e);
        INFO(name);
        CHECK(engine_run(wide, walks(name.c_str(), 20000, 20), false, host_waits::each_task, size).failure);
    }
}

TEST_CASE("tasks of several blocks are mailed to all workers at once, others between them go alone; drain and park",
          "[model][control][broadcast]")
{
    const std::vector<test_task> row = {{.accesses = {{0, W}}, .blocks = 2},
                                        {.accesses = {{0, RW}}, .blocks = 2, .reads_blocks_of = 0},
                                        {.accesses = {{0, RW}}, .blocks = 2, .reads_blocks_of = 1},
                                        {.accesses = {{0, RW}}, .reads_blocks_of = 2}};
    const std::vector<test_task> mixed = {{.accesses = {{0, W}}, .blocks = 2},
                                          {.accesses = {{0, RW}}, .reads_blocks_of = 0},
                                          {.accesses = {{0, R}}, .blocks = 4}, // draws tickets
                                          {.accesses = {{0, W}}, .blocks = 2},
                                          {{{0, R}}}};
    std::vector<test_task> failing = row;
    failing[1].fails = true;
    failing[2].cancelled = failing[3].cancelled = true;
    engine_size size{.ring_slots = 8, .window_used = 4, .workers = 3, .pool_blocks = 16, .staging = true, .bypass = true};
    size.broadcast_copies = 2;
    for (const auto* program : std::initializer_list<const std::vector<test_task>*>{&row, &mixed, &failing})
        for (const bool park : {false, true})
            for (const host_waits by : {host_waits::each_task, host_waits::low_water}) {
                seen = {};
                CHECK_FALSE(engine_run<with_aborts>(*program, walks("engine, broadcasts", 2000, 8), park, by, size).failure);
                CHECK(seen.sent_to_all >= (program == &row ? 3 : program == &mixed ? 1 : 2));
                if (by == host_waits::each_task && program == &mixed) CHECK((seen.sent_to_all == 2 && seen.bypassed >= 2));
            }
    // A park between a broadcast that is not booked and what ingest has mailed behind it.
    const std::vector<test_task> lone_behind = {{.accesses = {{0, W}}, .blocks = 2}, {.accesses = {{0, RW}}, .reads_blocks_of = 0}};
    size.workers = 2;
    seen = {};
    CHECK_FALSE(engine_run<with_aborts>(lone_behind, walks("engine, a broadcast and a bypassed task, park", 20000), true,
                                        host_waits::each_task, size).failure);
    CHECK((seen.sent_to_all == 1 && seen.bypassed == 1));
}

namespace {

/// A notifier of four lanes between a stub of the scheduler and the host: four tasks whose bits lie in two words, out of order.
/// The third one has failed. `by`: what the host waits for before it reads what the tasks wrote.
report notify(options how, host_waits by)
{
    const report r = explore(how, [by](execution& ex) {
        using P = model_platform<4>;
        constexpr u32 first = 30, count = 4;
        auto e = std::make_shared<small_engine<P>>(std::vector<test_task>(count), engine_size{.window_used = count});
        e->s.low_water[0] = first; // what a run before has left
        e->m.complete_mirror[0] = (1u << first) - 1;
        struct written_words {
            P::cell<u32> by_task[count];
        };
        auto written = std::make_shared<written_words>();
        ex.spawn("scheduler", device_block(0), [=] {
            P::team team;
            device::queue_producer<P, u32, edge::R6_retired, edge::A6_notified> retired(e->s.retired_queue());
            for (const u32 i : {3u, 0u, 2u, 1u}) {
                P::set(written->by_task[i], 100 + i);
                P::set(e->s.task_id[i], first + i);
                e->s.poison_outcomes[i] = {77, 1};
                retired.push(team, i | (i == 2 ? device::retired_look : 0));
            }
        });
        ex.spawn_team("notifier", device_block(0), 4, [=] {
            P::team team;
            device::notifier<P> notifier(e->m, e->s, forever_ns);
            for (u32 n = 0; e->s.low_water[0] < first + count;) {
                n = notifier.step(team) ? 0 : n + 1;
                if (n != 0) P::pause(n);
            }
        });
        ex.spawn("host", host_thread(), [=] {
            u32 n = 0;
            if (by == host_waits::low_water) {
                while (P::load(edge::A7_low_water, e->m.ring_pages->low_water, order::acquire, scope::system) < first + count)
                    P::pause(n++);
            } else {
                for (const u32 word : {0u, 1u})
                    while (P::load(edge::A7_complete, e->m.complete_bits[word], order::acquire, scope::system)
                           != (word == 0 ? ~0u : 3u))
                        P::pause(n++);
            }
            for (u32 i = 0; i < count; ++i) check(P::get(written->by_task[i]) == 100 + i, "what the task wrote");
            const auto record = device::failure_record::decode(
                P::load(edge::A7_failure, e->m.page->failures[0], order::relaxed, scope::system));
            check(record.position == first + 2 && record.status == 77 && record.tag == 1, "a failed task does not look complete");
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

} // namespace

TEST_CASE("a notifier of four lanes tells the host of tasks in several words; its fence is needed in each lane",
          "[model][control][mutation]")
{
    for (const host_waits by : {host_waits::low_water, host_waits::bits}) {
        CHECK_FALSE(notify(walks("notifier, 4 lanes", 4000), by).failure);
        for (const edge e : {edge::R6_retired, edge::A6_retired, edge::R7_complete_fence}) {
            mutate weaker(e);
            const std::string name = std::string("notifier, 4 lanes, without ") + device::edge_name(e);
            INFO(name);
            CHECK(notify(walks(name.c_str(), 3000, 12), by).failure);
        }
    }
}

TEST_CASE("each edge of completion and notification is needed", "[model][control][mutation]")
{
    struct mutant {
        edge e;
        host_waits by;
    };
    for (const mutant& m : {mutant{edge::R6_retired, host_waits::low_water}, mutant{edge::A6_retired, host_waits::low_water},
                            mutant{edge::R7_complete_fence, host_waits::low_water},
                            mutant{edge::A7_low_water, host_waits::low_water}, mutant{edge::A7_complete, host_waits::bits}}) {
        mutate weaker(m.e);
        const std::string name = std::string("engine without ") + device::edge_name(m.e);
        const report r = engine_run(chain, walks(name.c_str(), 3000, 12), false, m.by);
        INFO(device::edge_name(m.e));
        CHECK(r.failure);
    }
}

TEST_CASE("one slot and queues of one entry: each edge of a slot's way round is needed, through parks too",
          "[model][control][mutation]")
{
    const engine_size small{.ring_slots = 2, .window_used = 1, .queue_slots = 1};
    CHECK_FALSE(engine_run(chain, walks("engine, one slot, park"), true, host_waits::low_water, small).failure);
    for (const edge e : {edge::R2_slot_freed, edge::A2_slot_freed, edge::R3_decoded, edge::A3_decoded, edge::R10_admitted,
                         edge::A10_admitted, edge::R14_ready, edge::A14_ready, edge::R13_report, edge::A13_report,
                         edge::R6_retired, edge::A6_retired, edge::R11_finished, edge::A11_finished}) {
        mutate weaker(e);
        const std::string name = std::string("engine without ") + device::edge_name(e);
        INFO(name);
        for (const bool park : {false, true})
            CHECK(engine_run(chain, walks(name.c_str(), 3000, 12), park, host_waits::low_water, small).failure);
    }
}

TEST_CASE("the phases and commands of park and drain need their edges", "[model][control][mutation]")
{
    for (const edge e : {edge::R8_command, edge::A8_command, edge::R9_phase, edge::A9_phase}) {
        mutate weaker(e);
        const std::string name = std::string("engine without ") + device::edge_name(e);
        bool killed = false;
        for (const bool park : {false, true})
            killed = killed || engine_run(chain, walks(name.c_str(), 6000, 12), park, host_waits::low_water).failure;
        INFO(name);
        CHECK(killed);
    }
}
