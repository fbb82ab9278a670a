// Tasks that cross (device/crossing.hpp): two or three parts of an engine, each with its linker, its scheduler and a worker. In
// every order; with failures on either side; with slots and meetings that come again; each edge between them mutated.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <algorithm>
#include <array>
#include <iostream>
#include <random>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto R = access_mode::read;
constexpr auto W = access_mode::write;
constexpr auto RW = access_mode::read_write;

using P1 = without_host<1>;
using P4 = without_host<4>;

/// A linker's bug: it counts a task that crosses, or a stand-in, only with the next one.
struct counts_behind : P1 {
    using P1::load;
    template <class T> static T load(edge e, const word<T>& w, order o, scope s)
    {
        const T value = P1::load(e, w, o, s);
        return e == edge::P7_crossings && value != 0 ? value - 1 : value;
    }
};

/// A linker's bug: it names the fence before the one that covers what it knows.
struct names_a_fence_before : P1 {
    using P1::load;
    template <class T> static T load(edge e, const word<T>& w, order o, scope s)
    {
        const T value = P1::load(e, w, o, s);
        return e == edge::P15_promised ? value - 1 : value;
    }
};

/// Counts the tasks that are complete, so that their stand-ins are answered, before those are said to be ready. All of one home,
/// each with one stand-in. Lost: a scheduler's bug, it does not say that of a stand-in that is answered by then.
template <bool Lost>
struct watches_answers : P1 {
    using P1::store;
    static inline u64 early = 0;
    static inline std::array<int, abi::meetings_max> said{}; ///< of each meeting; 0 where both were said

    template <class T> static void store(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        if (e == edge::R19_message) {
            const device::crossing_message message = device::crossing_message::decode(v);
            int& balance = said[message.meeting()];
            if (message.answers()) early += --balance < 0;
            else if (++balance <= 0 && Lost) return;
        }
        P1::store(e, w, v, o, s);
    }
};

constexpr u32 all_roles = ingest_role | admission_role | linker_role | scheduler_role | notifier_role;

/// Who has which place: the first two the first part, the others one each of the others, as far as there are parts.
u32 owner(u32 place, u32 parts) { return place < 2 ? 0 : std::min(place - 1, parts - 1); }

/// A program, and what each part is told of it.
struct divided {
    std::vector<test_task> program;
    std::vector<std::vector<test_task>> told; ///< of each part
    std::vector<std::pair<u32, u32>> homes;   ///< of each task: the part it runs in, and its number there

    divided(std::vector<test_task> whole, u32 parts, u32 meetings) : program(std::move(whole)), told(parts)
    {
        std::array<u32, abi::parts_max> met{};
        for (const test_task& t : program) {
            u32 touched = 0, home = 0;
            bool writes = false;
            for (const place_access& a : t.accesses) {
                touched |= 1u << owner(a.place, parts);
                if (!writes && (static_cast<u32>(a.mode) & 2) != 0) {
                    home = owner(a.place, parts);
                    writes = true;
                }
            }
            if (t.whole_memory) touched = (1u << parts) - 1;
            touched |= 1u << home;
            const u32 others = device::popcount(touched) - 1;
            const u32 meeting = others != 0 ? met[home]++ % meetings : 0;
            homes.emplace_back(home, static_cast<u32>(told[home].size()));
            for (u32 p = 0; p < parts; ++p) {
                if (!(touched >> p & 1)) continue;
                test_task mine = t;
                mine.crosses = others != 0;
                mine.crossing = abi::crossing_word::make(meeting, p == home ? others : home);
                if (p != home) {
                    mine.counted = abi::counts_for_stand_ins(t.blocks, others, t.clears_failure);
                    mine.blocks = 0;
                    mine.fails = false;
                    std::erase_if(mine.accesses, [&](const place_access& a) { return owner(a.place, parts) != p; });
                }
                told[p].push_back(mine);
            }
        }
    }
};

struct plan {
    u32 parts = 2;
    u32 meetings = 8;
    u32 lanes = 1;
    u32 window_used = 8;
    bool staging = false;
    bool linker_beside = false; ///< on a fiber of its own
    u32 arrived_slots = 0;      ///< of the queue from scheduler to linker; 0: as the engine has it
    bool everything = false;    ///< all roles, and slots that come again; else from admitted tasks on
    bool lone = false;          ///< workers have their SMs to themselves
    u64* staged = nullptr;      ///< tasks that cross and were mailed staged, all executions together, are added there
    u64* early = nullptr;       ///< likewise those of them that were awaited while the mail before them was answered
};

template <class P = P1>
report run(const std::vector<test_task>& program, options how, const plan& by = {})
{
    const auto tasks = std::make_shared<divided>(program, by.parts, by.meetings);
    const u32 workers = by.staging ? 2 : 1; // one of a part gets nothing that waits
    const report r = explore(how, [&](execution& ex) {
        std::vector<std::shared_ptr<small_engine<P>>> parts;
        for (u32 p = 0; p < by.parts; ++p) {
            parts.push_back(std::make_shared<small_engine<P>>(
                tasks->told[p],
                engine_size{.ring_slots = 32, .window_used = by.window_used, .workers = workers, .pool_blocks = 16,
                            .lone_workers = by.lone, .staging = by.staging, .chaining = by.staging, .parts = by.parts, .part = p}));
            parts[p]->m.channels = parts[0]->m.channels;
            parts[p]->m.staging_channels = parts[0]->m.staging_channels;
            parts[p]->m.part_records = parts[0]->m.part_records;
            parts[p]->m.part_records[p] = parts[p]->m.records;
            parts[p]->m.part_clocks = parts[0]->m.part_clocks;
            parts[p]->shared_places = parts[0]->places;
            if (by.arrived_slots) parts[p]->s.arrived_slots = by.arrived_slots;
        }
        for (u32 p = 0; p < by.parts; ++p) {
            const auto& e = parts[p];
            until end{static_cast<u32>(tasks->told[p].size())};
            if (by.everything) {
                for (u32 i = 0; i < end.count; ++i) check(e->submit(i, [] { return false; }), "the ring holds every message");
            } else {
                e->admit_all();
            }
            const u32 block = 16 * p;
            const auto fiber = [&](u32 roles, const char* what) {
                ex.spawn_team(what + std::to_string(p), device_block(block), by.lanes,
                              [e, roles, end] { run_roles(e, roles, end); });
            };
            if (by.everything && by.linker_beside) { // slots come again before it has taken in what became of them
                fiber(linker_role, "linker ");
                fiber(all_roles & ~linker_role, "part ");
            } else if (by.everything) {
                fiber(all_roles, "part ");
            } else if (by.linker_beside) {
                fiber(linker_role, "linker ");
                fiber(scheduler_role, "scheduler ");
            } else {
                fiber(linker_role | scheduler_role, "part ");
            }
            for (u32 w = 0; w < workers; ++w)
                ex.spawn("worker " + std::to_string(p) + "." + std::to_string(w), device_block(block + 1 + w),
                         [e, w] { e->work(w); });
        }
        ex.at_end([parts, tasks, staged = by.staged, early = by.early] {
            for (const auto& e : parts) {
                if (staged) *staged += e->far_staged;
                if (early) *early += e->far_early;
            }
            u64 expected[small_engine<P>::places_max] = {};
            for (u32 i = 0; i < tasks->program.size(); ++i) {
                const auto [home, number] = tasks->homes[i];
                const test_task& t = tasks->program[i];
                if (t.cancelled) continue; // that none ran run_block() has checked
                u64 digest = number + 1;
                for (const place_access& a : t.accesses)
                    if (static_cast<u32>(a.mode) & 1) digest = mix(digest, expected[a.place]);
                for (const place_access& a : t.accesses)
                    if (static_cast<u32>(a.mode) & 2) expected[a.place] = digest;
                check(P::get(parts[home]->results[number]) == digest, "each task read what program order says");
            }
            for (u32 p = 0; p < small_engine<P>::places_max; ++p)
                check(P::get(parts[0]->places[p]) == expected[p], "the places hold what program order says");
            for (const auto& e : parts) {
                check((e->s.handed[0] | e->s.staged[0] | e->s.early[0] | e->s.in_flight[0]) == 0, "the table is empty");
                for (u32 i = 0; i < abi::meetings_max; ++i) check(e->s.meetings[i] == 0, "no meeting is left");
                for (u32 i = 0; i < abi::meetings_max; ++i) check(e->s.meeting_held[i] == 0, "no task is kept");
                check((e->s.unretired[0] | e->s.told[0]) == 0, "all that is complete is retired, each stand-in told of answered");
                check((e->s.counted[0] | e->s.pointed_at[0]) == 0, "no stand-in is left, and none points at a task");
                for (u32 slot = 0; slot < e->m.n.window; ++slot)
                    check(device::finished_count{P::load(edge::P5_self, e->m.records[slot].finished, order::relaxed, scope::device)}
                              .blocks() == P::get(e->s.targets[slot]), "each slot's count has come to what was reckoned with");
                for (u32 i = 0; i < abi::meetings_max * e->m.n.parts; ++i)
                    check(e->s.meeting_slots[i] == 0, "no stand-in is left without an answer");
                check(e->s.counters[device::bad_meetings] == 0 && e->s.meetings_bad[0] == 0,
                      "no cancelled stand-in is left to be looked at");
                check(e->s.counters[device::cancelled_pending] == 0, "no cancelled task is left");
                check(P::load(edge::P5_self, *e->s.crossings_linked, order::relaxed, scope::block) == *e->s.crossings_ended,
                      "every task that crosses, and every stand-in, is counted twice");
            }
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

options walks(const std::string& name, u64 count = 3000, double seconds = 16)
{
    return {.name = name, .search = search::random, .executions_max = count, .seconds_max = seconds};
}

void check_race(const report& r)
{
    REQUIRE(r.failure);
    INFO(r.failure->what);
    CHECK(r.failure->what.find("race on") == 0);
}

/// One writes in the second part, one of the first reads it, one of the second writes it anew.
const std::vector<test_task> there = {{{{2, W}}}, {{{2, R}, {0, W}}}};
const std::vector<test_task> and_back = {{{{2, W}}}, {{{2, R}, {0, W}}}, {{{2, RW}}}};
/// Each part reads what the other one wrote: two that cross, either way.
const std::vector<test_task> both_ways = {{{{0, W}}}, {{{2, W}}}, {{{0, RW}, {2, R}}}, {{{2, RW}, {0, R}}}};
/// Two columns, one of each part, in two places each, by turns: rows of a stencil.
const std::vector<test_task> stencil = {{{{0, W}}}, {{{2, W}}}, {{{0, R}, {2, R}, {1, W}}}, {{{2, R}, {0, R}, {3, W}}},
                                        {{{1, R}, {3, R}, {0, W}}}, {{{3, R}, {1, R}, {2, W}}}};

/// Whom a program's failures cancel: who reads what a failed or cancelled task would have written, until another one writes it.
void mark_cancelled(std::vector<test_task>& program)
{
    bool bad[4] = {};
    for (test_task& t : program) {
        for (const place_access& a : t.accesses) t.cancelled |= (static_cast<u32>(a.mode) & 1) != 0 && bad[a.place];
        if (t.cancelled) t.fails = false;
        for (const place_access& a : t.accesses)
            if (static_cast<u32>(a.mode) & 2) bad[a.place] = t.cancelled || t.fails;
    }
}

std::vector<test_task> rows(u32 count)
{
    std::vector<test_task> out(stencil.begin(), stencil.begin() + 2);
    for (u32 row = 0; row < count; ++row) {
        const auto first = stencil.begin() + (row % 2 == 0 ? 2 : 4);
        out.insert(out.end(), first, first + 2);
    }
    return out;
}

} // namespace

TEST_CASE("a task of one part that reads another one's memory keeps program order in every schedule", "[model][crossing]")
{
    const report r = run(there, {.name = "crossing, there", .seconds_max = 120});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    const report back = run(and_back, {.name = "crossing, there and back", .seconds_max = 120});
    CHECK_FALSE(back.failure);
    CHECK_FALSE(run(and_back, walks("crossing, there and back, walks")).failure);
    CHECK_FALSE(run(and_back, walks("crossing, there and back, linker beside"), {.linker_beside = true}).failure);
    CHECK_FALSE(run(both_ways, walks("crossing, both ways")).failure);
    CHECK_FALSE(run(both_ways, walks("crossing, both ways, linker beside"), {.linker_beside = true}).failure);
    CHECK_FALSE(run<P4>(both_ways, walks("crossing, both ways, four lanes", 500), {.lanes = 4}).failure);
}

TEST_CASE("crossing tasks among staged ones", "[model][crossing]")
{
    // Two behind each other before and behind the one that crosses, in both parts.
    const std::vector<test_task> program = {{{{2, W}}}, {{{2, RW}}}, {{{2, R}, {0, W}}}, {{{0, RW}}}, {{{0, RW}, {1, W}}},
                                            {{{2, RW}}}, {{{2, RW}}}};
    CHECK_FALSE(run(and_back, {.name = "crossing, staged, there and back", .seconds_max = 6}, {.staging = true}).failure);
    CHECK_FALSE(run(program, walks("crossing, chains before and behind"), {.staging = true}).failure);
    CHECK_FALSE(run(program, walks("crossing, chains before and behind, linker beside"),
                    {.staging = true, .linker_beside = true}).failure);
    CHECK_FALSE(run<P4>(program, walks("crossing, chains before and behind, four lanes", 500),
                        {.lanes = 4, .staging = true}).failure);
}

TEST_CASE("tasks that cross are staged behind those of other parts, and others behind their stand-ins",
          "[model][crossing][staging]")
{
    u64 staged = 0;
    const plan by{.staging = true, .staged = &staged};
    CHECK_FALSE(run(stencil, walks("crossing, stencil"), by).failure);
    CHECK(staged != 0);
    for (const u32 window : {3u, 4u, 8u}) {
        staged = 0;
        plan all = by;
        all.window_used = window;
        all.everything = true;
        CHECK_FALSE(run(stencil, walks("crossing, stencil, slots come again"), all).failure);
        if (window > 4) CHECK(staged != 0);
        all.linker_beside = true;
        CHECK_FALSE(run(rows(6), walks("crossing, stencil, slots come again, linker beside"), all).failure);
    }
    // Workers that have their SMs to themselves: polls acquire, and while one mail is answered the next is awaited.
    u64 early = 0;
    for (const bool beside : {false, true})
        CHECK_FALSE(run(rows(6), walks("crossing, stencil, lone workers"),
                        {.staging = true, .linker_beside = beside, .everything = true, .lone = true, .early = &early}).failure);
    CHECK(early != 0);
    plan beside = by;
    beside.linker_beside = true;
    staged = 0;
    CHECK_FALSE(run(stencil, walks("crossing, stencil, linker beside"), beside).failure);
    CHECK(staged != 0);
    beside.lanes = 4;
    CHECK_FALSE(run<P4>(stencil, walks("crossing, stencil, linker beside, four lanes", 500), beside).failure);
    beside.lanes = 1;
    // Of two stand-ins one is foreseen, or both; and one behind each of them.
    const std::vector<test_task> three = {{{{2, W}}}, {{{3, W}}}, {{{2, RW}}}, {{{2, R}, {3, R}, {0, W}}}, {{{2, RW}, {0, R}}},
                                          {{{3, RW}, {0, R}}}};
    staged = 0;
    beside.parts = 3;
    CHECK_FALSE(run(three, walks("crossing, staged behind two other parts"), beside).failure);
    CHECK(staged != 0);
    plan together = by;
    together.parts = 3;
    CHECK_FALSE(run(three, walks("crossing, staged behind two other parts, linker and scheduler in turns"), together).failure);
}

TEST_CASE("a task that crosses is complete before its stand-in is said to be ready, and both are retired then",
          "[model][crossing][staging]")
{
    // All that cross have their home in the first part.
    const std::vector<test_task> program = {{{{2, W}}}, {{{2, R}, {0, W}}}, {{{2, RW}}}, {{{2, R}, {0, RW}}}, {{{2, RW}}},
                                            {{{2, R}, {0, RW}}}, {{{0, RW}}}};
    for (const bool everything : {false, true})
        for (const bool beside : {false, true}) {
            const plan by{.window_used = everything ? 4u : 8u, .staging = true, .linker_beside = beside, .everything = everything};
            watches_answers<false>::early = 0;
            CHECK_FALSE(run<watches_answers<false>>(program, walks("crossing, answered before"), by).failure);
            CHECK(watches_answers<false>::early != 0);
            CHECK(watches_answers<false>::said == std::array<int, abi::meetings_max>{}); // each as often ready as answered
            watches_answers<true>::said = {};
            CHECK(run<watches_answers<true>>(program, walks("crossing, answered before and not said to be ready"), by).failure);
        }
}

TEST_CASE("a failure before, within and behind tasks that cross and are staged", "[model][crossing][staging]")
{
    for (u32 failing = 0; failing < stencil.size(); ++failing) {
        std::vector<test_task> program = stencil;
        program[failing].fails = true;
        mark_cancelled(program);
        for (const bool beside : {false, true}) {
            const plan by{.staging = true, .linker_beside = beside};
            CHECK_FALSE(run(program, walks("crossing, stencil with a failure", 2000, 12), by).failure);
        }
        CHECK_FALSE(run<P4>(program, walks("crossing, stencil with a failure, four lanes", 300, 12),
                            {.lanes = 4, .staging = true, .linker_beside = true}).failure);
        for (const bool beside : {false, true})
            CHECK_FALSE(run(program, walks("crossing, stencil with a failure, slots come again", 1000, 12),
                            {.window_used = 4, .staging = true, .linker_beside = beside, .everything = true}).failure);
    }
}

TEST_CASE("what linkers tell each other needs its scope, and its fence", "[model][crossing][staging][mutation]")
{
    for (const bool lone : {false, true}) { // what a worker sees of another part's
        const edge e = lone ? edge::A12_finished : edge::A12_finished_fence;
        mutate weaker(e);
        check_race(run(stencil, walks(std::string("staged across parts without ") + device::edge_name(e)),
                       {.staging = true, .lone = lone}));
    }
    for (const edge e : {edge::R26_staging, edge::A26_staging, edge::R28_fences}) {
        mutate narrower(e, mutation::narrow);
        const options how = walks(std::string("staging across parts at block scope: ") + device::edge_name(e));
        const report r = run(stencil, how, {.staging = true});
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
}

TEST_CASE("three parts: stand-ins in two, a task with the whole memory, and slots that come again", "[model][crossing]")
{
    const std::vector<test_task> program = {{{{2, W}}}, {{{3, W}}}, {{{2, R}, {3, R}, {0, W}}}, {{{2, RW}}}, {{{3, RW}, {0, R}}},
                                            {.accesses = {}, .whole_memory = true}, {{{0, RW}, {2, R}}}, {{{3, RW}, {2, R}}}};
    CHECK_FALSE(run(program, walks("crossing, three parts"), {.parts = 3}).failure);
    CHECK_FALSE(run(program, walks("crossing, three parts, staged"), {.parts = 3, .staging = true}).failure);
    for (const u32 window : {2u, 3u}) {
        CHECK_FALSE(run(program, walks("crossing, three parts, slots come again"),
                        {.parts = 3, .window_used = window, .everything = true}).failure);
        CHECK_FALSE(run(both_ways, walks("crossing, slots come again"),
                        {.window_used = window, .staging = true, .everything = true}).failure);
    }
}

TEST_CASE("a failure passes from part to part, both ways, and nothing else is cancelled for it", "[model][crossing]")
{
    // In the other part: the stand-in is cancelled, the task therefore, and who reads what it would have written, here and there.
    std::vector<test_task> other = {{{{2, W}}}, {{{2, R}, {0, W}, {3, W}}}, {{{0, R}, {1, W}}}, {{{3, R}, {2, W}}}, {{{3, W}}},
                                    {{{0, W}}}};
    other[0].fails = true;
    for (const u32 i : {1u, 2u, 3u}) other[i].cancelled = true;
    // Here: who reads what the task has written there.
    std::vector<test_task> here = {{{{0, W}}}, {{{0, RW}, {3, W}}}, {{{3, R}, {2, W}}}, {{{2, R}, {1, W}}}, {{{2, W}}}};
    here[1].fails = true;
    for (const u32 i : {2u, 3u}) here[i].cancelled = true;
    for (const bool staging : {false, true})
        for (const bool beside : {false, true}) {
            const plan by{.staging = staging, .linker_beside = beside};
            CHECK_FALSE(run(other, walks("crossing, a failure in the other part"), by).failure);
            CHECK_FALSE(run(here, walks("crossing, a failure in the home"), by).failure);
        }
    // Who waits for a stand-in alone learns of its task's failure by the count that its linker breaks. (The first task of a part
    // has identity 0, as a slot where nobody has failed.)
    std::vector<test_task> behind = {{{{2, W}}}, {{{0, W}, {3, W}}}, {{{3, RW}}}};
    behind[1].fails = behind[2].cancelled = true;
    for (const bool beside : {false, true})
        CHECK_FALSE(run(behind, walks("crossing, a failure in the home, who waits for its stand-in alone"),
                        {.staging = true, .linker_beside = beside}).failure);
    CHECK_FALSE(run<P4>(other, walks("crossing, a failure in the other part, four lanes", 500), {.lanes = 4}).failure);
    // Of two stand-ins both are cancelled, or one, or the task by itself, too.
    std::vector<test_task> three = {{{{2, W}}}, {{{3, W}}}, {{{2, R}, {3, R}, {0, W}}}, {{{0, R}, {2, W}}}, {{{3, R}, {1, W}}}};
    three[0].fails = three[1].fails = true;
    for (const u32 i : {2u, 3u, 4u}) three[i].cancelled = true;
    CHECK_FALSE(run(three, walks("crossing, failures in two other parts"), {.parts = 3}).failure);
    three[1].fails = three[4].cancelled = false;
    CHECK_FALSE(run(three, walks("crossing, a failure in one of two other parts"), {.parts = 3}).failure);
    // Forgotten by all parts.
    std::vector<test_task> cleared = {{{{2, W}}},
                                      {{{2, R}, {0, W}}},
                                      {.accesses = {}, .whole_memory = true, .clears_failure = true},
                                      {{{2, R}, {0, W}}},
                                      {{{0, R}, {2, W}}}};
    cleared[0].fails = true;
    cleared[1].cancelled = true;
    CHECK_FALSE(run(cleared, walks("crossing, failures forgotten")).failure);
    CHECK_FALSE(run(cleared, walks("crossing, failures forgotten, slots come again"),
                    {.window_used = 3, .everything = true}).failure);
}

TEST_CASE("a foreseen task comes behind all that were complete when its stand-in was linked, by the fences of their part",
          "[model][crossing][staging]")
{
    // The first is complete when the stand-in of the third is linked, which then waits for that of the second alone.
    const std::vector<test_task> program = {{{{1, W}}}, {{{3, RW}, {0, R}}}, {{{2, W}, {0, W}, {1, W}}}, {{{3, R}, {2, R}}}};
    // The same by a task that was mailed before.
    const std::vector<test_task> plain = {{{{1, W}}}, {{{0, W}}}, {{{2, W}, {0, W}, {1, R}}}};
    for (const bool beside : {false, true})
        for (const bool lone : {false, true}) {
            plan by{.parts = 3, .window_used = 3, .staging = true, .linker_beside = beside, .everything = true, .lone = lone};
            CHECK_FALSE(run(program, walks("crossing, behind a complete one"), by).failure);
            check_race(run<names_a_fence_before>(program, walks("crossing, the fence before"), by));
            by.window_used = 2;
            CHECK_FALSE(run(plain, walks("crossing, behind a complete one, mailed before"), by).failure);
            check_race(run<names_a_fence_before>(plain, walks("crossing, the fence before, mailed before"), by));
        }
}

TEST_CASE("small random programs of tasks that cross", "[model][crossing][staging]")
{
    for (u32 seed = 1; seed <= 80; ++seed) {
        std::mt19937 random(seed);
        const auto one_of = [&](u32 count) { return static_cast<u32>(random() % count); };
        plan by{.parts = 2 + one_of(2)};
        std::vector<test_task> program(3 + one_of(4));
        std::array<u32, 4> places = {0, 1, 2, 3};
        for (test_task& t : program) {
            for (u32 i = 0; i < 4; ++i) std::swap(places[i], places[i + one_of(4 - i)]);
            for (u32 i = 0, accesses = 1 + one_of(3); i < accesses; ++i)
                t.accesses.push_back({places[i], std::array{R, W, RW}[one_of(3)]});
            t.fails = seed % 2 == 0 && one_of(4) == 0;
        }
        mark_cancelled(program);
        by.staging = one_of(4) != 0;
        by.linker_beside = one_of(2) != 0;
        by.everything = one_of(2) != 0;
        if (by.everything) by.window_used = 2 + one_of(4);
        by.lone = one_of(2) != 0;
        CHECK_FALSE(run(program, walks("crossing, random program " + std::to_string(seed), 100, 4), by).failure);
    }
}

TEST_CASE("what a task reads of one that fails is found out past a stand-in that is ready all the same",
          "[model][crossing][staging][failure]")
{
    // The stand-in of the second waits for the first, and reads nothing of it; the third reads what both write.
    std::vector<test_task> past = {{{{3, R}, {2, W}}}, {{{0, W}, {3, W}}}, {{{2, R}, {3, RW}}}};
    past[0].fails = past[2].cancelled = true;
    for (const bool beside : {false, true})
        CHECK_FALSE(run(past, walks("crossing, a failure past a stand-in"), {.staging = true, .linker_beside = beside}).failure);
}

TEST_CASE("who is staged behind a stand-in and fails before its turn is neither healed by it nor read by it",
          "[model][crossing][staging][failure]")
{
    // The third is staged behind the stand-in of the second, which writes or reads the same; it may have failed before that
    // stand-in is known to be ready.
    for (const auto mode : {W, R}) {
        std::vector<test_task> behind = {{{{2, W}}}, {{{0, W}, {2, mode}}}, {{{2, RW}}}, {{{2, R}, {3, W}}}, {{{0, R}, {1, W}}}};
        behind[2].fails = behind[3].cancelled = true;
        for (const bool beside : {false, true})
            CHECK_FALSE(run(behind, walks("crossing, a failure behind a stand-in"),
                            {.staging = true, .linker_beside = beside}).failure);
    }
}

TEST_CASE("each edge between parts is needed, its scope too", "[model][crossing][mutation]")
{
    {
        mutate weaker(edge::R4A5_step_fence);
        check_race(run(there, {.name = "crossing without R4A5_step_fence"}));
    }
    for (const edge e : {edge::R19_message, edge::A19_message}) {
        mutate narrower(e, mutation::narrow);
        const report r = run(there, {.name = std::string("crossing at block scope: ") + device::edge_name(e)});
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
    for (const edge e : {edge::R20_arrived, edge::A20_arrived}) {
        mutate weaker(e);
        check_race(run(there, {.name = std::string("crossing without ") + device::edge_name(e)}, {.linker_beside = true}));
    }
    // Three stand-ins that are ready at the same time, and one place in the queue for what the linker is told of them.
    const std::vector<test_task> three = {{{{2, R}, {0, W}}}, {{{2, R}, {1, W}}}, {{{2, R}, {0, W}}}};
    const plan narrow{.linker_beside = true, .arrived_slots = 1};
    CHECK_FALSE(run(three, walks("crossing, one place for arrivals"), narrow).failure);
    for (const edge e : {edge::R20_taken, edge::A20_room}) {
        mutate weaker(e);
        check_race(run(three, walks(std::string("crossing without ") + device::edge_name(e)), narrow));
    }
}

TEST_CASE("the scheduler is told of a task that crosses before it is handed over", "[model][crossing]")
{
    CHECK(run<counts_behind>(there, {.name = "crossing, counted too late"}).failure);
    CHECK(run<counts_behind>(there, {.name = "crossing, counted too late, linker beside"}, {.linker_beside = true}).failure);
}
