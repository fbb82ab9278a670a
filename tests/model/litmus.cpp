// The explorer tested by itself: classic litmus programs, all their outcomes named ACCEPTABLE (must be found) or FORBIDDEN
// (must not), and printed so.
#include "tests/model/catch.hpp"
#include "tests/model/model_platform.hpp"
#include <algorithm>
#include <iostream>
#include <set>

using namespace slipstream;
using namespace slipstream::model;
using P = model_platform<1>;

namespace {

constexpr edge R = edge::R3_decoded;
constexpr edge A = edge::A3_decoded;
constexpr edge RF = edge::R7_complete_fence;
constexpr edge AF = edge::A4_mail_fence;

struct words {
    P::word<u32> x, y;
    u32 r0 = 0, r1 = 0, r2 = 0, r3 = 0;
    P::cell<u32> data;
};

using outcomes = std::set<std::vector<u32>>;

report run(const char* name, const std::function<void(execution&)>& body, options how = {})
{
    how.name = name;
    const report r = explore(how, body);
    std::cout << r.line() << "\n";
    return r;
}

/// What a program may and may not end with. The lists are whole: an outcome in neither fails, as does an ACCEPTABLE one that no
/// execution found. Prints one line for each outcome of (r0, r1 ...), `values` of them.
void judge(const char* name, u32 values, const outcomes& seen, const outcomes& acceptable, const outcomes& forbidden)
{
    const auto text = [values](const std::vector<u32>& o) {
        std::string out;
        for (u32 i = 0; i < values; ++i) out += (i ? ", " : "(") + std::to_string(o[i]);
        return out + ")";
    };
    INFO(name);
    const auto say = [&](const outcomes& list, const char* verdict, bool wanted) {
        for (const auto& o : list) {
            const bool found = seen.count(o) != 0;
            std::cout << "[model]   " << name << ": " << text(o) << " " << verdict << (found ? ", found" : ", not found") << "\n";
            INFO(text(o) << " " << verdict);
            CHECK(found == wanted);
        }
    };
    say(acceptable, "ACCEPTABLE", true);
    say(forbidden, "FORBIDDEN", false);
    for (const auto& o : seen) {
        INFO(text(o) << " is in neither list");
        CHECK((acceptable.count(o) || forbidden.count(o)));
    }
}

outcomes both(outcomes a, const outcomes& b)
{
    a.insert(b.begin(), b.end());
    return a;
}

/// Two device threads in different blocks over one `words`; collects (r0, r1, r2, r3).
template <class First, class Second>
report two(const char* name, outcomes& seen, First first, Second second, placement at_first = device_block(0),
           placement at_second = device_block(1))
{
    seen.clear();
    return run(name, [&](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("first", at_first, [w, first] { first(*w); });
        ex.spawn("second", at_second, [w, second] { second(*w); });
        ex.at_end([w, &seen] { seen.insert({w->r0, w->r1, w->r2, w->r3}); });
    });
}

} // namespace

TEST_CASE("message passing: release and acquire order, relaxed does not", "[model][litmus]")
{
    auto program = [](order release, order acquire) {
        outcomes seen;
        const report r = two(
            "message passing", seen,
            [release](words& w) {
                P::store(R, w.x, 1u, order::relaxed, scope::device);
                P::store(R, w.y, 1u, release, scope::device);
            },
            [acquire](words& w) {
                w.r0 = P::load(A, w.y, acquire, scope::device);
                w.r1 = P::load(A, w.x, order::relaxed, scope::device);
            });
        REQUIRE(r.exhausted);
        REQUIRE_FALSE(r.failure);
        return seen;
    };
    const outcomes acceptable{{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}}, forbidden{{1, 0, 0, 0}};
    judge("message passing", 2, program(order::release, order::acquire), acceptable, forbidden);
    judge("message passing, relaxed store", 2, program(order::relaxed, order::acquire), both(acceptable, forbidden), {});
    judge("message passing, relaxed load", 2, program(order::release, order::relaxed), both(acceptable, forbidden), {});
    {
        mutate weaker(R);
        judge("message passing, release mutated", 2, program(order::release, order::acquire), both(acceptable, forbidden), {});
    }
    {
        mutate weaker(A);
        judge("message passing, acquire mutated", 2, program(order::release, order::acquire), both(acceptable, forbidden), {});
    }
    judge("message passing, mutations over", 2, program(order::release, order::acquire), acceptable, forbidden);
}

TEST_CASE("message passing by fences: dropping either fence lets the stale value through", "[model][litmus]")
{
    auto program = [] {
        outcomes seen;
        const report r = two(
            "fences", seen,
            [](words& w) {
                P::store(R, w.x, 1u, order::relaxed, scope::device);
                P::fence(RF, order::release, scope::device);
                P::store(R, w.y, 1u, order::relaxed, scope::device);
            },
            [](words& w) {
                w.r0 = P::load(A, w.y, order::relaxed, scope::device);
                P::fence(AF, order::acquire, scope::device);
                w.r1 = P::load(A, w.x, order::relaxed, scope::device);
            });
        REQUIRE(r.exhausted);
        return seen;
    };
    const outcomes acceptable{{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}}, forbidden{{1, 0, 0, 0}};
    judge("fences", 2, program(), acceptable, forbidden);
    {
        mutate weaker(RF);
        judge("fences, release dropped", 2, program(), both(acceptable, forbidden), {});
    }
    {
        mutate weaker(AF);
        judge("fences, acquire dropped", 2, program(), both(acceptable, forbidden), {});
    }
}

TEST_CASE("store buffering: both may read 0, in exactly four executions", "[model][litmus]")
{
    outcomes seen;
    const report r = two(
        "store buffering", seen,
        [](words& w) {
            P::store(R, w.x, 1u, order::release, scope::device);
            w.r0 = P::load(A, w.y, order::acquire, scope::device);
        },
        [](words& w) {
            P::store(R, w.y, 1u, order::release, scope::device);
            w.r1 = P::load(A, w.x, order::acquire, scope::device);
        });
    CHECK(r.exhausted);
    judge("store buffering", 2, seen, {{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}, {1, 1, 0, 0}}, {}); // no SC
    CHECK(r.executions == 4);
}

TEST_CASE("load buffering is left out: values do not come out of thin air, nor from later stores", "[model][litmus]")
{
    outcomes seen;
    const report r = two(
        "load buffering", seen,
        [](words& w) {
            w.r0 = P::load(A, w.x, order::relaxed, scope::device);
            P::store(R, w.y, 1u, order::relaxed, scope::device);
        },
        [](words& w) {
            w.r1 = P::load(A, w.y, order::relaxed, scope::device);
            P::store(R, w.x, 1u, order::relaxed, scope::device);
        });
    CHECK(r.exhausted);
    judge("load buffering (PTX allows it, this model does not)", 2, seen, {{0, 0, 0, 0}, {0, 1, 0, 0}, {1, 0, 0, 0}},
          {{1, 1, 0, 0}});
    CHECK(r.executions == 3);
}

TEST_CASE("coherence: two loads of one word never go backwards", "[model][litmus]")
{
    outcomes seen;
    const report r = two(
        "coherence", seen,
        [](words& w) {
            P::store(R, w.x, 1u, order::relaxed, scope::device);
            P::store(R, w.x, 2u, order::relaxed, scope::device);
        },
        [](words& w) {
            w.r0 = P::load(A, w.x, order::relaxed, scope::device);
            w.r1 = P::load(A, w.x, order::relaxed, scope::device);
        });
    CHECK(r.exhausted);
    judge("coherence", 2, seen, {{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 2, 0, 0}, {1, 1, 0, 0}, {1, 2, 0, 0}, {2, 2, 0, 0}},
          {{1, 0, 0, 0}, {2, 0, 0, 0}, {2, 1, 0, 0}});
    CHECK(r.executions == 6);
}

TEST_CASE("independent reads of independent writes may disagree even with acquire", "[model][litmus]")
{
    outcomes seen;
    const report r = run("iriw", [&seen](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("x", device_block(0), [w] { P::store(R, w->x, 1u, order::release, scope::device); });
        ex.spawn("y", device_block(1), [w] { P::store(R, w->y, 1u, order::release, scope::device); });
        ex.spawn("xy", device_block(2), [w] {
            w->r0 = P::load(A, w->x, order::acquire, scope::device);
            w->r1 = P::load(A, w->y, order::acquire, scope::device);
        });
        ex.spawn("yx", device_block(3), [w] {
            w->r2 = P::load(A, w->y, order::acquire, scope::device);
            w->r3 = P::load(A, w->x, order::acquire, scope::device);
        });
        ex.at_end([w, &seen] { seen.insert({w->r0, w->r1, w->r2, w->r3}); });
    });
    CHECK(r.exhausted);
    outcomes all;
    for (u32 i = 0; i < 16; ++i) all.insert({i >> 3 & 1, i >> 2 & 1, i >> 1 & 1, i & 1});
    judge("iriw", 4, seen, all, {});
    CHECK(r.executions == 16);
}

TEST_CASE("a read-modify-write continues the release sequence, a plain store breaks it", "[model][litmus]")
{
    for (const bool add : {true, false}) {
        outcomes seen; // what the last one read of y and, where that was 2, of x
        const char* const name = add ? "release sequence" : "broken release sequence";
        const report r = run(name, [&, add](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("releases", device_block(0), [w] {
                P::store(R, w->x, 1u, order::relaxed, scope::device);
                P::store(R, w->y, 1u, order::release, scope::device);
            });
            ex.spawn("passes on", device_block(1), [w, add] {
                if (P::load(A, w->y, order::relaxed, scope::device) != 1) return;
                if (add) P::fetch_add(A, w->y, 1u, order::relaxed, scope::device);
                else P::store(A, w->y, 2u, order::relaxed, scope::device);
            });
            ex.spawn("acquires", device_block(2), [w] {
                w->r0 = P::load(A, w->y, order::acquire, scope::device);
                if (w->r0 == 2) w->r1 = P::load(A, w->x, order::relaxed, scope::device);
            });
            ex.at_end([w, &seen] { seen.insert({w->r0, w->r1, 0, 0}); });
        });
        CHECK(r.exhausted);
        const outcomes acceptable{{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 1, 0, 0}}, stale{{2, 0, 0, 0}};
        if (add) judge(name, 2, seen, acceptable, stale);
        else judge(name, 2, seen, both(acceptable, stale), {});
    }
}

TEST_CASE("concurrent additions lose nothing, in as many executions as there are orders", "[model][litmus]")
{
    const report r = run("additions", [](execution& ex) {
        auto w = std::make_shared<words>();
        for (u32 i = 0; i < 3; ++i)
            ex.spawn("adder", device_block(i), [w] { P::fetch_add(R, w->x, 1u, order::relaxed, scope::device); });
        ex.at_end([w] { check(P::load(A, w->x, order::relaxed, scope::device) == 3, "three additions"); });
    });
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    CHECK(r.executions == 6);
}

TEST_CASE("a release reaches only those in its scope", "[model][litmus]")
{
    struct pair {
        const char* name;
        scope writes, reads;
        placement writer, reader;
        bool orders;
    };
    for (const pair& p :
         {pair{"scopes: system to system, device to host", scope::system, scope::system, device_block(0), host_thread(), true},
          pair{"scopes: device to system, device to host", scope::device, scope::system, device_block(0), host_thread(), false},
          pair{"scopes: system to device, host to device", scope::system, scope::device, host_thread(), device_block(0), false},
          pair{"scopes: device to device, two blocks", scope::device, scope::device, device_block(0), device_block(1), true},
          pair{"scopes: block to device, two blocks", scope::block, scope::device, device_block(0), device_block(1), false},
          pair{"scopes: block to block, one block", scope::block, scope::block, device_block(1), device_block(1), true}}) {
        outcomes seen; // y, and where that was 1, x
        const report r = run(p.name, [&](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("writer", p.writer, [w, p] {
                P::store(R, w->x, 1u, order::relaxed, scope::system);
                P::fence(RF, order::release, p.writes);
                P::store(R, w->y, 1u, order::relaxed, scope::system);
            });
            ex.spawn("reader", p.reader, [w, p] {
                w->r0 = P::load(A, w->y, order::relaxed, scope::system);
                if (w->r0 == 0) return;
                P::fence(AF, order::acquire, p.reads);
                w->r1 = P::load(A, w->x, order::relaxed, scope::system);
            });
            ex.at_end([w, &seen] { seen.insert({w->r0, w->r1, 0, 0}); });
        });
        CHECK(r.exhausted);
        const outcomes acceptable{{0, 0, 0, 0}, {1, 1, 0, 0}}, stale{{1, 0, 0, 0}};
        if (p.orders) judge(p.name, 2, seen, acceptable, stale);
        else judge(p.name, 2, seen, both(acceptable, stale), {});
    }
}

TEST_CASE("a device-scope store that the host reads is a failure of its own", "[model][litmus]")
{
    auto program = [](scope s) {
        return [s](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("device", device_block(0), [w, s] { P::store(R, w->x, 1u, order::release, s); });
            ex.spawn("host", host_thread(), [w] { w->r0 = P::load(A, w->x, order::acquire, scope::system); });
        };
    };
    CHECK_FALSE(run("scope wide", program(scope::system)).failure);
    const report narrow = run("scope narrow", program(scope::device));
    REQUIRE(narrow.failure);
    CHECK(narrow.failure->what.find("scope too narrow") == 0);
    mutate weaker(R, mutation::narrow);
    CHECK(run("scope mutated", program(scope::system)).failure);
}

TEST_CASE("plain cells: an unordered pair is a race, an ordered one is not", "[model][litmus]")
{
    auto program = [](execution& ex) {
        auto w = std::make_shared<words>();
        label(w->data, "data");
        ex.spawn("writer", device_block(0), [w] {
            P::set(w->data, 7u);
            P::store(R, w->x, 1u, order::release, scope::device);
        });
        ex.spawn("reader", device_block(1), [w] {
            if (P::load(A, w->x, order::acquire, scope::device) == 1) check(P::get(w->data) == 7, "the data");
        });
    };
    CHECK_FALSE(run("ordered cell", program).failure);
    mutate weaker(R);
    const report r = run("cell race", program);
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("race on data") == 0);
    CHECK(r.failure->what.find("reader") != std::string::npos);
    CHECK(r.failure->what.find("writer") != std::string::npos);
    CHECK(r.failure->what.find("A3_decoded") != std::string::npos);
}

TEST_CASE("write after read without an edge back is a race", "[model][litmus]")
{
    auto program = [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("reader", device_block(0), [w] {
            (void)P::get(w->data);
            P::store(R, w->x, 1u, order::release, scope::device);
        });
        ex.spawn("writer", device_block(1), [w] {
            for (u32 n = 0; P::load(A, w->x, order::acquire, scope::device) != 1; ++n) P::pause(n);
            P::set(w->data, 1u);
        });
    };
    CHECK_FALSE(run("read before write", program).failure);
    mutate weaker(A);
    CHECK(run("write after read race", program).failure);
}

TEST_CASE("a place is written again only after its message was read: the answer's order is needed at both ends", "[model][litmus]")
{
    auto program = [](order release, order acquire, bool reads) {
        return [=](execution& ex) {
            struct state {
                P::chunk_word place;
                P::word<u32> answer;
            };
            auto st = std::make_shared<state>();
            reuse_needs_order(st->place);
            ex.spawn("writer", device_block(0), [=] {
                P::store(R, st->place, abi::chunk{{1, 0, 0, 0}}, order::release, scope::device);
                for (u32 n = 0; P::load(A, st->answer, acquire, scope::device) == 0; ++n) P::pause(n);
                P::store(R, st->place, abi::chunk{{2, 0, 0, 0}}, order::release, scope::device);
            });
            ex.spawn("reader", device_block(1), [=] {
                for (u32 n = 0; reads && P::load(A, st->place, order::relaxed, scope::device).w[0] == 0; ++n) P::pause(n);
                P::store(R, st->answer, 1u, release, scope::device);
                (void)P::load(A, st->place, order::relaxed, scope::device); // a poll for the next: may see the one before again
            });
        };
    };
    const report whole = run("reuse", program(order::release, order::acquire, true));
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    for (const report& r : {run("reuse, relaxed answer", program(order::relaxed, order::acquire, true)),
                            run("reuse, answer read relaxed", program(order::release, order::relaxed, true)),
                            run("reuse, answered without reading", program(order::release, order::acquire, false))}) {
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("reuse without order") == 0);
    }
}

TEST_CASE("a waiting loop sees the store in the end, and costs one execution", "[model][litmus]")
{
    const report r = run("spin", [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("setter", device_block(0), [w] { P::store(R, w->x, 1u, order::relaxed, scope::device); });
        ex.spawn("waiter", device_block(1), [w] {
            for (u32 n = 0; P::load(A, w->x, order::relaxed, scope::device) == 0; ++n) P::pause(n);
        });
    });
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
    CHECK(r.executions == 1);
}

TEST_CASE("with fruitless turns kept the same waiting loop is still finite", "[model][litmus]")
{
    const report r = run(
        "spin, all turns", [](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("setter", device_block(0), [w] {
                P::store(R, w->x, 1u, order::relaxed, scope::device);
                P::store(R, w->y, 1u, order::relaxed, scope::device);
            });
            ex.spawn("waiter", device_block(1), [w] {
                for (u32 n = 0;; ++n) {
                    const u32 x = P::load(A, w->x, order::relaxed, scope::device);
                    const u32 y = P::load(A, w->y, order::relaxed, scope::device);
                    if (x && y) break;
                    P::pause(n);
                }
            });
        },
        {.cut_idle_spins = false});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("after a pause a loop may still see one word fresh and another stale", "[model][litmus]")
{
    // The last item is queued before the stop word is set; a loop that sees stop before the item must look once more.
    auto program = [](order o, bool look_again) {
        return [o, look_again](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("service", device_block(0), [w, o] {
                P::store(R, w->x, 1u, order::relaxed, scope::device);
                P::store(R, w->y, 1u, o, scope::device);
            });
            ex.spawn("loop", device_block(1), [w, look_again] {
                u32 items = 0;
                for (u32 n = 0;; ++n) {
                    items = P::load(A, w->x, order::relaxed, scope::device);
                    const u32 stop = P::load(A, w->y, order::acquire, scope::device);
                    if (stop && look_again) items = P::load(A, w->x, order::relaxed, scope::device);
                    if (stop) break;
                    P::pause(n);
                }
                check(items == 1, "the last item is not lost");
            });
        };
    };
    CHECK_FALSE(run("stop after item", program(order::release, true)).failure);
    CHECK(run("stop after item, relaxed", program(order::relaxed, true)).failure);
    CHECK(run("stop after item, not looked again", program(order::release, false)).failure);
}

TEST_CASE("a deadlock is reported with who waits where", "[model][litmus]")
{
    const report r = run("deadlock", [](execution& ex) {
        auto w = std::make_shared<words>();
        label(w->x, "left");
        label(w->y, "right");
        ex.spawn("one", device_block(0), [w] {
            for (u32 n = 0; P::load(A, w->x, order::acquire, scope::device) == 0; ++n) P::pause(n);
            P::store(R, w->y, 1u, order::release, scope::device);
        });
        ex.spawn("two", device_block(1), [w] {
            for (u32 n = 0; P::load(A, w->y, order::acquire, scope::device) == 0; ++n) P::pause(n);
            P::store(R, w->x, 1u, order::release, scope::device);
        });
    });
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("deadlock") == 0);
    CHECK(r.failure->what.find("one after A3_decoded, watching left") != std::string::npos);
    CHECK(r.failure->what.find("two after A3_decoded, watching right") != std::string::npos);
}

TEST_CASE("a lost wake-up is found", "[model][litmus]")
{
    // Submit publishes x and relaunches if it sees the kernel gone (y = 1); the kernel looks at x, then says it is gone.
    // Both relaxed or acquire/release: store buffering loses the wake-up. FORBIDDEN: published, gone, nobody relaunches.
    const report r = run("lost wake-up", [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("submit", host_thread(), [w] {
            P::store(R, w->x, 1u, order::release, scope::system);
            w->r0 = P::load(A, w->y, order::acquire, scope::system); // gone? then relaunch
        });
        ex.spawn("kernel", device_block(0), [w] {
            P::store(R, w->y, 1u, order::release, scope::system); // leaving
            w->r1 = P::load(A, w->x, order::acquire, scope::system); // anything published? then stay
        });
        ex.at_end([w] { check(w->r0 || w->r1, "somebody notices"); });
    });
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("somebody notices") == 0);
}

TEST_CASE("a loop that never pauses is a livelock", "[model][litmus]")
{
    const report r = run(
        "livelock", [](execution& ex) {
            auto w = std::make_shared<words>();
            ex.spawn("naked", device_block(0), [w] {
                while (P::load(A, w->x, order::relaxed, scope::device) == 0) {}
            });
        },
        {.steps_max = 100});
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("livelock") == 0);
}

TEST_CASE("a deadline passes when everybody waits", "[model][litmus]")
{
    const report r = run("deadline", [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("waiter", host_thread(), [w] {
            const u64 end = P::clock_ns() + 200'000'000;
            for (u32 n = 0; P::load(A, w->x, order::acquire, scope::system) == 0 && P::clock_ns() < end; ++n) P::pause(n);
        });
    });
    CHECK_FALSE(r.failure);
    CHECK(r.exhausted);
}

TEST_CASE("a word that a waiting loop read before it waited, and never again, cuts no execution", "[model][litmus]")
{
    struct handshake {
        P::word<u32> x, y, started, middle;
    };
    const auto wait_for = [](const P::word<u32>& w) {
        for (u32 n = 0; P::load(A, w, order::acquire, scope::device) == 0;) P::pause(n++);
    };
    const report r = run("read once", [wait_for](execution& ex) {
        auto w = std::make_shared<handshake>();
        ex.spawn("loop", device_block(0), [w, wait_for] {
            P::load(A, w->x, order::acquire, scope::device);
            P::store(R, w->started, 1u, order::release, scope::device);
            wait_for(w->y); // x becomes newer while it waits
        });
        ex.spawn("writer", device_block(1), [w, wait_for] {
            wait_for(w->started);
            P::store(R, w->x, 1u, order::release, scope::device);
            wait_for(w->middle);
            P::store(R, w->y, 1u, order::release, scope::device);
        });
        ex.spawn("middle", device_block(2), [w, wait_for] {
            wait_for(w->x);
            P::store(R, w->middle, 1u, order::release, scope::device);
        });
    });
    CHECK(r.exhausted);
    CHECK(r.executions > 0);
    CHECK_FALSE(r.failure);
}

TEST_CASE("a loop that acts on its count of idle turns gets them", "[model][litmus]")
{
    const report r = run("idle turns", [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("coalescer", device_block(0), [w] {
            for (u32 n = 0; n < 3; ++n) {
                if (P::load(A, w->x, order::relaxed, scope::device) == 2) break;
                P::pause(n);
            }
            P::store(R, w->y, 1u, order::relaxed, scope::device);
        });
        ex.spawn("waiter", device_block(1), [w] {
            P::store(R, w->x, 1u, order::relaxed, scope::device);
            for (u32 n = 0; P::load(A, w->y, order::relaxed, scope::device) == 0; ++n) P::pause(n);
        });
    });
    CHECK_FALSE(r.failure);
}

TEST_CASE("a replay reproduces the failure, with its trace", "[model][litmus]")
{
    auto program = [](execution& ex) {
        auto w = std::make_shared<words>();
        for (u32 i = 0; i < 3; ++i)
            ex.spawn("adder", device_block(i), [w] { // the planted bug: two accesses instead of one
                const u32 before = P::load(A, w->x, order::relaxed, scope::device);
                P::store(R, w->x, before + 1, order::relaxed, scope::device);
            });
        ex.at_end([w] { check(P::load(A, w->x, order::relaxed, scope::device) == 3, "three additions"); });
    };
    for (const search s : {search::exhaustive, search::random}) {
        const report r = run("canary", program, {.search = s, .executions_max = 10'000});
        REQUIRE(r.failure);
        const replayed again = replay(r.failure->schedule, program);
        REQUIRE(again.what);
        CHECK(*again.what == r.failure->what);
        CHECK(again.trace == r.failure->trace);
        CHECK(again.trace.find("adder  store relaxed.device  R3_decoded  word 0 = 0x1") != std::string::npos);
        CHECK(r.text().find("replay: ") != std::string::npos);
    }
}

TEST_CASE("the bounds: preemptions and stale loads shrink the space and say so", "[model][litmus]")
{
    auto program = [](execution& ex) {
        auto w = std::make_shared<words>();
        for (u32 i = 0; i < 2; ++i)
            ex.spawn("adder", device_block(i), [w] {
                const u32 before = P::load(A, w->x, order::relaxed, scope::device);
                P::store(R, w->x, before + 1, order::relaxed, scope::device);
            });
        ex.at_end([w] { check(P::load(A, w->x, order::relaxed, scope::device) == 2, "both additions"); });
    };
    const report calm = run("no preemption, nothing stale", program, {.preemptions_max = 0, .stale_max = 0});
    CHECK(calm.exhausted);
    CHECK_FALSE(calm.failure);
    CHECK(calm.executions == 2);
    CHECK(calm.bound == "preemptions <= 0, stale loads <= 0");
    CHECK(run("no preemption", program, {.preemptions_max = 0}).failure);
    CHECK(run("one preemption, nothing stale", program, {.preemptions_max = 1, .stale_max = 0}).failure);
}

TEST_CASE("sleep sets leave out only equivalent executions", "[model][litmus]")
{
    // The same outcomes with the reduction and without it (a bound that never binds switches it off).
    auto outcomes_of = [](int preemptions, u64* executions) {
        outcomes seen;
        const report r = run(
            "reduction", [&seen](execution& ex) {
                auto w = std::make_shared<words>();
                ex.spawn("a", device_block(0), [w] {
                    P::store(R, w->x, 1u, order::relaxed, scope::device);
                    w->r0 = P::fetch_add(R, w->y, 1u, order::acq_rel, scope::device);
                });
                ex.spawn("b", device_block(1), [w] {
                    w->r1 = P::load(A, w->y, order::acquire, scope::device);
                    w->r2 = P::load(A, w->x, order::relaxed, scope::device);
                    P::store(R, w->x, 2u, order::relaxed, scope::device);
                });
                ex.spawn("c", device_block(2), [w] {
                    P::store(R, w->y, 5u, order::release, scope::device);
                    w->r3 = P::load(A, w->x, order::acquire, scope::device);
                });
                ex.at_end([w, &seen] {
                    seen.insert({w->r0, w->r1, w->r2, w->r3, P::load(A, w->x, order::relaxed, scope::device),
                                 P::load(A, w->y, order::relaxed, scope::device)});
                });
            },
            {.preemptions_max = preemptions});
        CHECK(r.exhausted);
        *executions = r.executions;
        return seen;
    };
    u64 reduced = 0, full = 0;
    CHECK(outcomes_of(-1, &reduced) == outcomes_of(1000, &full));
    CHECK(reduced * 3 < full);
}

TEST_CASE("on random programs the reductions leave out no outcome", "[model][litmus]")
{
    // Three threads, a few operations each on two or three words, some of them waiting loops; compared with the search that
    // leaves nothing out. A waiting loop that is never satisfied ends both as a deadlock.
    struct instruction {
        u32 op, word, amount;
        order ord;
    };
    auto xorshift = [state = u64{88172645463325252u}]() mutable {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<u32>(state >> 32);
    };
    struct shared {
        P::word<u32> words[3];
        std::vector<u32> seen[3];
    };
    u64 reduced = 0, full = 0, programs = 0, deadlocks = 0;
    for (u32 round = 0; round < 200; ++round) {
        std::vector<std::vector<instruction>> threads(2 + xorshift() % 2);
        const u32 words_used = 1 + xorshift() % 3;
        for (auto& t : threads)
            for (u32 n = threads.size() == 2 ? 4 : 3; n--;)
                t.push_back({xorshift() % 7, xorshift() % words_used, 1 + xorshift() % 2,
                             xorshift() % 2 ? order::relaxed : order::acq_rel});
        auto outcomes_of = [&](int preemptions, bool cut, u64& executions, bool& dead) {
            std::set<std::vector<std::vector<u32>>> seen;
            const report r = explore(
                {.preemptions_max = preemptions, .cut_idle_spins = cut}, [&](execution& ex) {
                    auto s = std::make_shared<shared>();
                    for (u32 t = 0; t < threads.size(); ++t)
                        ex.spawn("thread", device_block(t), [s, t, &threads] {
                            for (const instruction& i : threads[t]) {
                                auto& w = s->words[i.word];
                                const order load = i.ord == order::relaxed ? order::relaxed : order::acquire;
                                const order store = i.ord == order::relaxed ? order::relaxed : order::release;
                                switch (i.op) {
                                case 0: case 1: P::store(R, w, t * 4 + i.amount, store, scope::device); break;
                                case 2: case 3: s->seen[t].push_back(P::load(A, w, load, scope::device)); break;
                                case 4: s->seen[t].push_back(P::fetch_add(A, w, 16u, i.ord, scope::device)); break;
                                case 5: P::fence(RF, order::acq_rel, scope::device); break;
                                default:
                                    for (u32 n = 0; n < 100 && P::load(A, w, load, scope::device) == 0; ++n) P::pause(n);
                                }
                            }
                        });
                    ex.at_end([s, &seen] {
                        std::vector<std::vector<u32>> all(s->seen, s->seen + 3);
                        all.emplace_back();
                        for (auto& w : s->words) all.back().push_back(P::load(A, w, order::relaxed, scope::device));
                        seen.insert(all);
                    });
                });
            CHECK((r.exhausted || r.failure));
            executions += r.executions;
            dead = r.failure.has_value();
            return seen;
        };
        bool dead_reduced = false, dead_full = false;
        const auto few = outcomes_of(-1, true, reduced, dead_reduced);
        const auto all = outcomes_of(1000, false, full, dead_full);
        CHECK(dead_reduced == dead_full);
        if (!dead_full) CHECK(few == all);
        deadlocks += dead_full;
        ++programs;
    }
    std::cout << "[model] random programs: " << programs << ", executions " << reduced << " instead of " << full << ", "
              << deadlocks << " deadlocks\n";
}

TEST_CASE("a team of four computes what one lane computes, and its barrier orders plain cells", "[model][litmus]")
{
    using Q = model_platform<4>;
    auto program = [](u32 lanes, bool with_sync) {
        return [lanes, with_sync](execution& ex) {
            struct state {
                Q::word<u32> words[32];
                Q::cell<u32> scratch[4];
            };
            auto st = std::make_shared<state>();
            for (u32 i = 0; i < 32; i += 3) Q::store(R, st->words[i], i + 1, order::relaxed, scope::device);
            ex.spawn_team("team", device_block(0), lanes, [st, with_sync] {
                const u32 mask = Q::team::mask32(
                    [&](u32 k) { return Q::load(A, st->words[k], order::relaxed, scope::device) != 0; });
                check(mask == 0x49249249u, "mask32");
                u32 masks[2];
                Q::team::masks32(
                    masks, [&](u32 n, u32 k) { return n + k; },
                    [&](u32 n, u32 k, u32 v) { return v == n + k && (32 * n + k) % 3 == 0; });
                check(masks[0] == 0x49249249u && masks[1] == 0x92492492u, "masks32");
                const u32 rank = Q::team::rank(), size = Q::team::size();
                u32 hits = 0;
                Q::team::each32([&](u32 k) { hits += k; });
                check(Q::team::reduce_add(hits) == 496, "each32");
                hits = 0;
                Q::team::each_hit(0x80000101u, [&](u32 j, u32 k) { return j == k; }, [&](u32 j, u32 k) { hits += 1000 + j + k; });
                check(Q::team::reduce_add(hits) == 3000 + 2 * (31 + 8), "each_hit");
                Q::lane_array<u32, 1> squares;
                Q::team::each32([&](u32 k) { squares.at(0, k) = k * k; });
                check(Q::team::from_lane(squares, 0) == 0 && Q::team::from_lane(squares, 30) == 900, "from_lane");
                check(Q::team::broadcast(rank + 40) == 40, "broadcast");
                check(Q::team::any(rank == size - 1) && !Q::team::any(false), "any");
                check(Q::team::reduce_min(10 - rank) == 11 - size, "reduce_min");
                check(Q::team::reduce_add(1) == size, "reduce_add");
                Q::set(st->scratch[rank], rank);
                if (with_sync) Q::team::sync();
                check(Q::get(st->scratch[(rank + 1) % size]) == (rank + 1) % size || !with_sync, "scratch");
            });
        };
    };
    for (const u32 lanes : {1u, 4u}) {
        const report r = run("team", program(lanes, true));
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
        CHECK(r.executions == 1);
    }
    const report r = run("team without sync", program(4, false));
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("race on cell") == 0);
}

TEST_CASE("lanes may set bits of one cell together; reading it needs their order", "[model][litmus]")
{
    using Q = model_platform<4>;
    for (const bool with_sync : {true, false}) {
        const report r = run("set bits", [with_sync](execution& ex) {
            auto bits = std::make_shared<Q::cell<u32>>();
            ex.spawn_team("team", device_block(0), 4, [bits, with_sync] {
                Q::team::set_bits(*bits, 1u << Q::team::rank());
                if (with_sync) Q::team::sync();
                check(Q::get(*bits) == 15 || !with_sync, "all bits");
            });
        });
        CHECK(r.failure.has_value() == !with_sync);
    }
}

TEST_CASE("a team waits together, and diverging lanes are a failure", "[model][litmus]")
{
    using Q = model_platform<4>;
    const report waits = run("team waits", [](execution& ex) {
        auto w = std::make_shared<words>();
        ex.spawn("setter", device_block(1), [w] {
            P::set(w->data, 5u);
            P::store(R, w->x, 1u, order::release, scope::device);
        });
        ex.spawn_team("team", device_block(0), 4, [w] {
            for (u32 n = 0;; ++n) {
                u32 x = 0;
                if (Q::team::leader()) x = Q::load(A, w->x, order::acquire, scope::device);
                if (Q::team::broadcast(x)) break;
                Q::pause(n);
            }
            check(Q::get(w->data) == 5, "the leader's acquire counts for all");
        });
    });
    CHECK(waits.exhausted);
    CHECK_FALSE(waits.failure);
    const report diverges = run("team diverges", [](execution& ex) {
        ex.spawn_team("team", device_block(0), 4, [] {
            if (Q::team::rank() == 2) Q::team::sync();
            else (void)Q::team::any(true);
        });
    });
    REQUIRE(diverges.failure);
    CHECK(diverges.failure->what.find("diverge") != std::string::npos);
}
