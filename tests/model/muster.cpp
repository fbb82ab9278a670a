// How the blocks of a launch meet (device/muster.hpp): all go, or none does, whoever is late, loses patience or is told to leave.
#include "device/muster.hpp"
#include "tests/model/catch.hpp"
#include "tests/model/model_platform.hpp"
#include <algorithm>
#include <array>
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

using P1 = model_platform<1>;
using P4 = model_platform<4>;
constexpr u64 forever_ns = u64{1} << 60;
constexpr u32 workers = 2;
constexpr u32 not_there = ~0u - 1; // as a number of a worker: its block has not ended

/// Everybody settles it.
struct all_claim : P1 {
    template <class T> static T fetch_add(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        P1::fetch_add(e, w, v, o, s);
        return 0;
    }
};
/// The next launch's claim stays as it was.
struct claims_stay : P1 {
    using P1::store;
    template <class T> static void store(edge e, word<T>& w, std::type_identity_t<T> v, order o, scope s)
    {
        if (e != edge::P12_claim) P1::store(e, w, v, o, s);
    }
};

template <class P>
struct launch_words {
    launch_words()
    {
        label(outcome, "outcome");
        label(claims[0], "claim 0");
        label(claims[1], "claim 1");
        for (u32 i = 0; i <= workers; ++i) label(places[i], i == 0 ? "place of the control block" : "place of a worker");
        label(page.void_launch, "void launch");
        label(page.command_word, "command");
    }
    typename P::template word<u64> outcome;
    typename P::template word<u32> claims[2], places[1 + workers];
    device::host_page<P> page;
    const device::muster_memory<P> memory{&outcome, claims, places};
};

struct meeting {
    u32 launches = 1;
    u64 patience_ns = forever_ns;
    bool parked = false;      ///< by the host, at any time; for good
    u32 absent = 0;           ///< block 1 of the workers' grid does not come to this launch
    bool late = false;        ///< or comes when it is void already
    bool watched = false;     ///< the absence is seen by the host's watchdog, while others are there
    bool next_to_control = false; ///< block 1 of that grid runs on the other SM of the control block's TPC
    u32 lanes = 1;            ///< of the control block
};

/// How many launches went, and how many were void, in all executions together.
struct {
    u32 went, was_void;
} seen;

template <class P>
report meet(const meeting& m, options how)
{
    const report r = explore(how, [m](execution& ex) {
        struct state : launch_words<P> {
            std::array<std::array<u32, workers>, 4> numbers{};
            std::array<int, 4> goes{};
            std::array<bool, 4> told_void{};
            typename P::template word<u32> left; ///< blocks, so that the next launch comes behind the last of them
        };
        auto s = std::make_shared<state>();
        for (auto& of_launch : s->numbers) of_launch.fill(not_there);
        s->goes.fill(-1);
        // What a kernel's end and the next launch are: everything before is visible to everything after.
        const auto leave = [s, m](u32 launch) {
            const u32 blocks = launch * (1 + workers) - (m.absent != 0 && m.absent <= launch && !m.late);
            P::fetch_add(by_test, s->left, 1u, order::acq_rel, scope::system);
            for (u32 n = 0; P::load(by_test, s->left, order::acquire, scope::system) < blocks; ++n) P::pause(n);
        };
        ex.spawn_team("control block", device_block(0), m.lanes, [=] {
            typename P::team team;
            for (u32 launch = 1; launch <= m.launches; ++launch) {
                device::muster<P> there(s->memory, s->page, launch, m.patience_ns, workers);
                const bool goes = there.gather(team, 6);
                if (!team.leader()) continue; // tests of several lanes launch once
                s->goes[launch - 1] = goes;
                leave(launch);
                // As the host does, which looks then.
                s->told_void[launch - 1] = P::load(edge::P14_void, s->page.void_launch, order::relaxed, scope::system) == launch;
            }
        });
        for (u32 block = 0; block < workers; ++block)
            ex.spawn("block " + std::to_string(block), device_block(1 + block), [=] {
                for (u32 launch = 1; launch <= m.launches; ++launch) {
                    if (launch == m.absent && block == 1) {
                        if (!m.late) continue;
                        for (u32 n = 0; P::load(edge::P14_void, s->page.void_launch, order::relaxed, scope::system) != launch; ++n)
                            P::pause(n);
                    }
                    device::muster<P> there(s->memory, s->page, launch, m.patience_ns, workers);
                    s->numbers[launch - 1][block] = there.join(block, m.next_to_control && block == 1 ? 7 : 20 + 2 * block);
                    leave(launch);
                }
            });
        if (m.parked)
            ex.spawn("host", host_thread(), [=] {
                P::store(edge::R8_command, s->page.command_word, static_cast<u32>(device::command::park), order::release,
                         scope::system);
            });
        if (m.watched)
            ex.spawn("watchdog", host_thread(), [=] {
                u32 told = 0;
                for (u32 n = 0; told == 0; ++n) {
                    told = P::load(edge::P14_void, s->page.void_launch, order::relaxed, scope::system);
                    P::pause(n);
                }
                check(told == m.absent, "that launch is void");
            });
        ex.at_end([=] {
            for (u32 l = 0; l < m.launches; ++l) {
                const bool goes = s->goes[l] == 1;
                check(!goes || m.absent != l + 1, "no launch goes without all its blocks");
                check(goes != s->told_void[l], "the host is told what is void, and nothing else");
                check(goes || m.parked || m.patience_ns != forever_ns, "a launch is void for a reason");
                for (u32 block = 0; block < workers; ++block) {
                    if (m.absent == l + 1 && block == 1 && !m.late) continue;
                    // Worker 1 is the last one: that beside the control block, else that of the first block.
                    const u32 number = m.next_to_control ? block : 1 - block;
                    check(s->numbers[l][block] == (goes ? number : device::muster<P>::nowhere), "all go, as one each, or none");
                }
                (goes ? seen.went : seen.was_void) += 1;
            }
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

} // namespace

TEST_CASE("a launch whose blocks all come goes, and each is one worker", "[model][muster]")
{
    seen = {};
    for (const bool next_to_control : {false, true}) {
        const report r = meet<P1>({.next_to_control = next_to_control}, {.name = "muster"});
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
    const report lanes = meet<P4>({.lanes = 4}, {.name = "muster, 4 lanes", .search = search::random, .executions_max = 20'000});
    CHECK_FALSE(lanes.failure);
    CHECK(seen.was_void == 0);
    CHECK(seen.went != 0);
}

TEST_CASE("a park while the blocks of a launch come: all go, or none does", "[model][muster]")
{
    seen = {};
    const report r = meet<P1>({.parked = true}, {.name = "muster, parked"});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    CHECK(seen.went != 0);
    CHECK(seen.was_void != 0);
}

TEST_CASE("with a block that does not come the others leave when their patience ends, and so does that one, late",
          "[model][muster]")
{
    for (const bool late : {false, true}) {
        seen = {};
        const report r = meet<P1>({.patience_ns = 5'000'000, .absent = 1, .late = late, .watched = !late},
                                  {.name = late ? "muster, a late block" : "muster, a block that is absent",
                                   .cut_idle_spins = false}); // it comes by such a turn, and so does the watchdog to its end
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK(seen.went == 0);
        CHECK(seen.was_void != 0);
    }
}

TEST_CASE("launches behind one that was void, and behind one that went, are settled anew", "[model][muster]")
{
    for (const u32 absent : {1u, 2u}) {
        seen = {};
        const report r = meet<P1>({.launches = 4, .patience_ns = 5'000'000, .absent = absent, .late = true},
                                  {.name = "muster, four launches", .search = search::random, .executions_max = 20'000});
        CHECK_FALSE(r.failure);
        CHECK(seen.went != 0);
        CHECK(seen.was_void != 0);
    }
}

TEST_CASE("a claim that does not decide, or is not cleared, is found", "[model][muster][mutation]")
{
    const report all = meet<all_claim>({.parked = true}, {.name = "muster, settled by all"});
    CHECK(all.failure);
    const report stay = meet<claims_stay>(
        {.launches = 3}, {.name = "muster, claims that stay", .search = search::random, .executions_max = 1000});
    CHECK(stay.failure);
}

TEST_CASE("the scopes of a launch's words are needed", "[model][muster][mutation]")
{
    for (const edge e : {edge::P11_place, edge::P12_claim, edge::P13_outcome}) {
        mutate narrower(e, mutation::narrow);
        const report r = meet<P1>({.parked = true}, {.name = std::string("muster at block scope: ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
    mutate narrower(edge::P14_void, mutation::narrow);
    const report r = meet<P1>({.patience_ns = 5'000'000, .absent = 1, .watched = true},
                              {.name = "muster at device scope: P14_void", .cut_idle_spins = false});
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("scope too narrow") == 0);
}
