// Words that the host's service thread reads and writes while the kernel runs, not only once a task is complete: failure
// records and the room for them, the heartbeat, the flight recorder.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

using P = model_platform<1>;
constexpr u64 forever_ns = u64{1} << 60;

/// Two tasks fail, and the second one's record lies where the first one's does. The host reads a record as soon as it is there
/// (host/failure_book.hpp, read) and says so. A careless host says it before it has read.
report room_for_a_record(options how, bool careless = false)
{
    const report r = explore(how, [careless](execution& ex) {
        constexpr u32 count = 2;
        auto e = std::make_shared<small_engine<P>>(std::vector<test_task>(count), engine_size{.window_used = count});
        label(e->m.page->failures_read, "failures read");
        label(e->m.page->failures[0], "failure 0");
        reuse_needs_order(e->m.page->failures[0]);
        ex.spawn("scheduler", device_block(0), [=] {
            P::team team;
            device::queue_producer<P, u32, edge::R6_retired, edge::A6_notified> retired(e->s.retired_queue());
            for (u32 i = 0; i < count; ++i) {
                P::set(e->s.task_id[i], i);
                e->s.poison_outcomes[i] = {77 + i, 1 + i * device::failures_kept};
                retired.push(team, i | device::retired_look);
            }
        });
        ex.spawn("notifier", device_block(0), [=] {
            P::team team;
            device::notifier<P> notifier(e->m, e->s, forever_ns);
            for (u32 n = 0; e->s.low_water[0] < count;) {
                n = notifier.step(team) ? 0 : n + 1;
                if (n != 0) P::pause(n);
            }
        });
        ex.spawn("service", host_thread(), [=] {
            u32 n = 0;
            for (u32 i = 0; i < count; ++i) {
                const u32 tag = 1 + i * device::failures_kept;
                if (careless) P::store(edge::R18_failures_read, e->m.page->failures_read, i + 1, order::release, scope::system);
                for (;;) {
                    const auto record = device::failure_record::decode(
                        P::load(edge::A7_failure, e->m.page->failures[0], order::relaxed, scope::system));
                    check(record.tag <= tag, "no record is overwritten before it was read");
                    if (record.tag == tag) {
                        check(record.position == i && record.status == 77 + i && !record.cancelled, "the task's own record");
                        break;
                    }
                    P::pause(n++);
                }
                if (!careless) P::store(edge::R18_failures_read, e->m.page->failures_read, i + 1, order::release, scope::system);
            }
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

/// A worker picks up blocks, the notifier beats, the watchdog looks at both.
report watched(options how)
{
    const report r = explore(how, [](execution& ex) {
        auto e = std::make_shared<small_engine<P>>(std::vector<test_task>(1));
        auto seen = std::make_shared<P::word<u32>>();
        label(e->m.recorder[0], "recorder 0");
        label(*seen, "seen");
        ex.spawn("worker", device_block(1), [=] {
            device::inbox<P> box;
            device::worker_port<P> port(e->m, box, 0, 3);
            for (const u32 i : {5u, 6u}) {
                device::mail letter{};
                letter.identity = i;
                port.record_flight(letter, 10 * i);
            }
        });
        ex.spawn("notifier", device_block(0), [=] {
            P::team team;
            device::notifier<P> notifier(e->m, e->s, forever_ns);
            for (u32 n = 0; P::load(by_test, *seen, order::relaxed, scope::system) == 0; ++n) {
                notifier.step(team);
                P::pause(n);
            }
        });
        ex.spawn("watchdog", host_thread(), [=] {
            u32 n = 0;
            while (P::load(edge::P2_heartbeat, e->m.page->heartbeat, order::relaxed, scope::system) == 0) P::pause(n++);
            u32 last = 0;
            while (last < 6) {
                const auto record = device::flight_record::decode(
                    P::load(edge::P3_recorder, e->m.recorder[0], order::relaxed, scope::system));
                if (record.ring_and_type == 0 || record.position == last) {
                    P::pause(n++);
                    continue;
                }
                check(record.position >= last && record.block == 10 * record.position && record.place == 3u << 16,
                      "a record whole, and none after a later one");
                last = record.position;
            }
            P::store(by_test, *seen, 1u, order::relaxed, scope::system);
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

} // namespace

TEST_CASE("a failure record is kept until the host has read it; the order of its answer is needed, and all scopes",
          "[model][host_words][mutation]")
{
    const report whole = room_for_a_record({.name = "room for a failure record"});
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    for (const edge e : {edge::R18_failures_read, edge::A18_failures_read}) {
        mutate weaker(e);
        const report r = room_for_a_record({.name = std::string("room for a failure record, without ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("reuse without order") == 0);
    }
    for (const edge e : {edge::R7_failure, edge::A7_failure, edge::R18_failures_read, edge::A18_failures_read}) {
        mutate narrower(e, mutation::narrow);
        const report r = room_for_a_record({.name = std::string("room for a failure record, narrower: ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
}

TEST_CASE("canary: a host that says it has read a record before it has loses it", "[model][host_words][canary]")
{
    const report r = room_for_a_record({.name = "careless host"}, true);
    REQUIRE(r.failure);
    INFO(r.failure->what);
    CHECK(r.failure->what.find("reuse without order: notifier") == 0);
}

TEST_CASE("the watchdog sees the heartbeat move and whole flight records; their scopes are needed", "[model][host_words][mutation]")
{
    const report whole = watched({.name = "watchdog"});
    CHECK(whole.exhausted);
    CHECK_FALSE(whole.failure);
    for (const edge e : {edge::P2_heartbeat, edge::P3_recorder}) {
        mutate narrower(e, mutation::narrow);
        const report r = watched({.name = std::string("watchdog, narrower: ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("scope too narrow") == 0);
    }
}
