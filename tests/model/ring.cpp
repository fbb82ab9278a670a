// The submission ring: host/ring_writer.hpp against device/ingest.hpp, rings of 2 and 4 slots, wrap, long messages, back-pressure.
#include "tests/model/catch.hpp"
#include "tests/model/small_engine.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

constexpr auto RW = access_mode::read_write;

/// Plain messages are decoded at once, others as they arrive; short ones are stored slot by slot. Each test in all forms.
struct form {
    const char* name;
    bool streamed;
    bool by_slots;
};
const form forms[] = {{"plain", false, false}, {"streamed", true, false}, {"plain, stored by slots", false, true}};
std::string named(const std::string& name, const form& f) { return name + ", " + f.name; }

/// Host submits; ingest decodes; a stub of admission takes decoded slots, checks them against `tasks` and frees them.
template <class P>
report pass(const std::vector<test_task>& program, options how, engine_size size, u32 lanes = 1, bool careless = false)
{
    const report r = explore(how, [&](execution& ex) {
        auto e = std::make_shared<small_engine<P>>(program, size);
        auto finished = std::make_shared<typename P::template word<u32>>();
        struct host_memory {
            typename P::template cell<u32> written[16];
        };
        auto payload = std::make_shared<host_memory>(); // written before submit
        ex.spawn("submitter", host_thread(), [=] {
            u32 n = 0;
            for (u32 i = 0; i < e->tasks.size(); ++i) {
                P::set(payload->written[i], 100 + i);
                const bool sent = e->submit(i, [&] {
                    if (careless) { // the planted bug: believes that the ring was consumed
                        P::store(edge::R1_ring_consumed, e->m.ring_pages->consumed, e->writer.position(), order::release,
                                 scope::system);
                        return true;
                    }
                    P::pause(n++);
                    return true;
                });
                check(sent, "submitted");
            }
        });
        ex.spawn_team("ingest", device_block(0), lanes, [=] {
            typename P::team team;
            device::ingest<P> in(e->m, e->s);
            for (u32 n = 0;;) {
                n = in.step(team) ? 0 : n + 1;
                if (n == 0) continue;
                const u32 stop = team.broadcast(
                    team.leader() ? P::load(by_test, *finished, order::relaxed, scope::block) : 0u);
                team.sync();
                if (stop) break;
                P::pause(n);
            }
        });
        ex.spawn("admission", device_block(0), [=] {
            typename P::team team;
            device::queue_consumer<P, u16, edge::A3_decoded, edge::R3_taken> decoded(e->s.decoded_queue());
            device::queue_producer<P, u16, edge::R2_slot_freed, edge::A2_slot_taken> freed(e->s.free_queue());
            for (u32 i = 0; i < e->tasks.size(); ++i) {
                u32 n = 0;
                while (decoded.available(team) == 0) P::pause(n++);
                const u32 slot = decoded.pop();
                const auto& record = e->m.records[slot];
                check(P::get(record.words[0]) == i, "in order, none lost, none twice, the words its own");
                check((P::get(e->s.task_id[slot]) & ((u64{1} << 56) - 1)) == i, "its own position");
                check(P::get(e->s.heads[slot]).entries() == e->tasks[i].accesses.size(), "its own entries");
                u32 block = P::get(e->s.first_block[slot]);
                for (u32 a = 0; a < e->tasks[i].accesses.size(); ++a) {
                    const u32 at = a % device::pool_block_entries;
                    if (a != 0 && at == 0) block = P::get(e->s.pool_next[block]);
                    check(e->s.pool_entry(block, at).begin() == e->place_address + 64 * e->tasks[i].accesses[a].place,
                          "its own accesses");
                    const device::pool_tag tag{P::get(e->s.pool_tags[block])};
                    check(tag.slot() == slot && ((tag.memory() | tag.unresolved()) >> at & 1) && tag.after() == 0, "its own tags");
                }
                check(P::get(payload->written[i]) == 100 + i, "host memory written before submit");
                decoded.release(team);
                freed.push(team, slot);
            }
            P::store(by_test, *finished, 1u, order::relaxed, scope::block);
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

using P1 = model_platform<1>;
using P4 = model_platform<4>;

const std::vector<test_task> short_ones(3, test_task{});
// 1 slot, 2 slots (a continuation), 1 slot.
const std::vector<test_task> mixed = {{{{1, RW}}}, {{{0, RW}, {2, RW}}, 1, 4}, {}};

} // namespace

TEST_CASE("a ring of 2 slots passes messages across its wrap", "[model][ring]")
{
    for (const form& f : forms) {
        const report r = pass<P1>({{}, {}, {}}, {.name = named("ring 2, three roles", f), .seconds_max = 3},
                                  {.ring_slots = 2, .window_used = 2, .streamed = f.streamed, .by_slots = f.by_slots});
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("a ring of 2 slots between submitter and ingest alone, every schedule of two preemptions and one stale load",
          "[model][ring]")
{
    // The window has room for all, so the third message's wait is for the ring only; at the end the slots hold the tasks.
    for (const form& f : forms) {
        const report r = explore({.name = named("ring 2, two roles", f), .seconds_max = 60, .preemptions_max = 2, .stale_max = 1},
                                 [f](execution& ex) {
            auto e = std::make_shared<small_engine<P1>>(
                std::vector<test_task>(3),
                engine_size{.ring_slots = 2, .window_used = 3, .streamed = f.streamed, .by_slots = f.by_slots});
            ex.spawn("submitter", host_thread(), [=] {
                u32 n = 0;
                for (u32 i = 0; i < 3; ++i)
                    check(e->submit(i, [&n] {
                        P1::pause(n++);
                        return true;
                    }), "submitted");
            });
            ex.spawn("ingest", device_block(0), [=] {
                P1::team team;
                device::ingest<P1> in(e->m, e->s);
                for (u32 n = 0; e->s.progress[0].messages < 3;)
                    if (in.step(team)) n = 0;
                    else P1::pause(n++);
            });
            ex.at_end([=] {
                device::queue_consumer<P1, u16, edge::A3_decoded, edge::R3_taken> decoded(e->s.decoded_queue());
                P1::team team;
                check(decoded.available(team) == 3, "three tasks");
                for (u32 i = 0; i < 3; ++i) check(P1::get(e->m.records[decoded.pop()].words[0]) == i, "in order");
            });
        });
        std::cout << r.line() << "\n";
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("a message longer than the ring streams through it", "[model][ring]")
{
    const report r = pass<P1>({{{}, 1, 20}, {}},
                              {.name = "ring 2, streaming", .search = search::random, .executions_max = 20'000, .seconds_max = 16},
                              {.ring_slots = 2, .window_used = 2});
    CHECK_FALSE(r.failure);
}

TEST_CASE("continuation slots, window back-pressure and wrap on a ring of 4 slots", "[model][ring]")
{
    for (const form& f : forms) {
        const report r = pass<P1>({mixed[0], mixed[1], mixed[2], mixed[1], mixed[0]},
                                  {.name = named("ring 4, mixed", f), .search = search::random, .executions_max = 20'000,
                                   .seconds_max = 16},
                                  {.ring_slots = 4, .window_used = 1, .streamed = f.streamed, .by_slots = f.by_slots});
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("an ingest of four lanes takes the same messages", "[model][ring]")
{
    for (const form& f : forms) {
        const report r = pass<P4>(mixed,
                                  {.name = named("ring 2, 4 lanes", f), .search = search::random, .executions_max = 5'000,
                                   .seconds_max = 16},
                                  {.ring_slots = 2, .window_used = 2, .streamed = f.streamed, .by_slots = f.by_slots}, 4);
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("each edge of ring and slot hand-over is needed", "[model][ring][mutation]")
{
    for (const edge e : {edge::R0_ring_publish, edge::A0_ring_fence, edge::R2_slot_freed, edge::A2_slot_freed,
                         edge::R3_decoded, edge::A3_decoded}) {
        mutate weaker(e);
        for (const form& f : forms) {
            const std::string name = std::string("ring without ") + device::edge_name(e);
            const report r = pass<P1>({{}, {}}, {.name = named(name, f)},
                                      {.ring_slots = 2, .window_used = 1, .streamed = f.streamed, .by_slots = f.by_slots});
            INFO(device::edge_name(e));
            CHECK(r.failure);
        }
    }
}

TEST_CASE("a ring slot is written again only after ingest has read it: both ends of the edge are needed", "[model][ring][mutation]")
{
    for (const edge e : {edge::R1_ring_consumed, edge::A1_ring_consumed}) {
        mutate weaker(e);
        for (const form& f : forms) {
            const std::string name = std::string("ring without ") + device::edge_name(e);
            const report r = pass<P1>({{}, {}, {}}, {.name = named(name, f)},
                                      {.ring_slots = 2, .window_used = 2, .streamed = f.streamed, .by_slots = f.by_slots});
            INFO(device::edge_name(e));
            REQUIRE(r.failure);
            CHECK(r.failure->what.find("reuse without order: submitter") == 0);
        }
    }
}

TEST_CASE("the ring's scopes are needed", "[model][ring][mutation]")
{
    for (const edge e : {edge::R0_ring_publish, edge::A0_ring_publish, edge::R1_ring_consumed, edge::A1_ring_consumed}) {
        mutate narrower(e, mutation::narrow);
        const report r = pass<P1>({{}, {}, {}}, {.name = std::string("ring at device scope: ") + device::edge_name(e)},
                                  {.ring_slots = 2, .window_used = 2});
        INFO(device::edge_name(e));
        CHECK(r.failure);
    }
}

TEST_CASE("canary: a submitter that does not wait for room overwrites what was not read", "[model][ring][canary]")
{
    CHECK(pass<P1>({{}, {}, {}}, {.name = "careless submitter", .search = search::random, .executions_max = 20'000},
                   {.ring_slots = 2, .window_used = 1}, 1, true).failure);
}

namespace {

/// A message that joins a CUDA stream: its slot is handed over only when the stream's callback has raised the word. A submitter
/// that asks first and finds the word raised leaves the join out (host/runtime_core.cpp).
report join(options how, bool asks_first = false)
{
    const report r = explore(how, [asks_first](execution& ex) {
        auto e = std::make_shared<small_engine<P1>>(std::vector<test_task>{{{{0, RW}}}, {{{1, RW}}, 1, 0, false, -1, true}},
                                                    engine_size{.ring_slots = 2});
        auto work = std::make_shared<P1::cell<u32>>();
        ex.spawn("submitter", host_thread(), [=] {
            u32 n = 0;
            for (u32 i = 0; i < 2; ++i) {
                if (i == 1 && asks_first)
                    e->tasks[1].joins_stream
                        = P1::load(edge::A16_stream_done, e->m.stream_joins[0], order::acquire, scope::system) != 1;
                check(e->submit(i, [&] {
                    P1::pause(n++);
                    return true;
                }), "submitted");
            }
        });
        ex.spawn("stream", host_thread(), [=] {
            P1::set(*work, 7u);
            P1::store(edge::R16_stream_done, e->m.stream_joins[0], 1u, order::release, scope::system);
        });
        ex.spawn("ingest", device_block(0), [=] {
            P1::team team;
            device::ingest<P1> in(e->m, e->s);
            device::queue_consumer<P1, u16, edge::A3_decoded, edge::R3_taken> decoded(e->s.decoded_queue());
            u32 taken = 0;
            for (u32 n = 0; taken < 2;) {
                n = in.step(team) ? 0 : n + 1;
                while (decoded.available(team)) {
                    const u32 slot = decoded.pop();
                    if (++taken == 2) {
                        check((P1::get(e->s.task_id[slot]) & 0xff) == 1, "in order");
                        check(P1::get(*work) == 7, "the stream's work precedes the task");
                    }
                }
                if (taken < 2 && n) P1::pause(n);
            }
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

} // namespace

TEST_CASE("a task that joined a stream is handed over after the stream's work; both ends of the edge are needed",
          "[model][ring][mutation]")
{
    CHECK_FALSE(join({.name = "stream join", .search = search::random, .executions_max = 3000, .seconds_max = 16}).failure);
    for (const edge e : {edge::R16_stream_done, edge::A0_ring_fence}) {
        mutate weaker(e);
        INFO(device::edge_name(e));
        CHECK(join({.name = "stream join, weakened", .search = search::random, .executions_max = 3000, .seconds_max = 16}).failure);
    }
    const options walks{
        .name = "stream join, asked for first", .search = search::random, .executions_max = 3000, .seconds_max = 16};
    CHECK_FALSE(join(walks, true).failure);
    mutate weaker(edge::A16_stream_done);
    const report r = join(walks, true);
    REQUIRE(r.failure);
    CHECK(r.failure->what.find("race on") == 0);
}
