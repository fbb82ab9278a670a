// device/queue.hpp under the explorer: capacity 2, across the wrap, nothing lost, nothing twice; its four EDGES, each mutated.
#include "device/layout.hpp"
#include "tests/model/catch.hpp"
#include "tests/model/model_platform.hpp"
#include <iostream>

using namespace slipstream;
using namespace slipstream::model;

namespace {

template <class P>
struct queue_state {
    using storage = device::queue_storage<P, u32>;
    queue_state()
    {
        q.capacity = 2;
        q.tail = &tail;
        q.head = &head;
        q.entries = entries;
        label(tail, "tail");
        label(head, "head");
        label(entries[0], "entry 0");
        label(entries[1], "entry 1");
    }
    typename P::template word<u32> tail, head;
    typename P::template cell<u32> entries[2];
    storage q{};
};

template <class P> using producer = device::queue_producer<P, u32, edge::R3_decoded, edge::A3_taken>;
template <class P> using consumer = device::queue_consumer<P, u32, edge::A3_decoded, edge::R3_taken>;

/// `items` numbers through the queue; a careless producer does not look for room.
template <class P>
report pass(u32 lanes, u32 items, options how, bool careless = false, u32 wrap_from = 0)
{
    how.name += lanes == 1 ? "" : ", 4 lanes";
    const report r = explore(how, [=](execution& ex) {
        auto st = std::make_shared<queue_state<P>>();
        P::store(edge::P5_self, st->tail, wrap_from, order::relaxed, scope::block);
        P::store(edge::P5_self, st->head, wrap_from, order::relaxed, scope::block);
        ex.spawn_team("producer", device_block(0), lanes, [=] {
            typename P::team team;
            producer<P> out(st->q);
            for (u32 i = 1; i <= items; ++i) {
                for (u32 n = 0; !careless && out.room(team) == 0; ++n) P::pause(n);
                out.push(team, i);
            }
        });
        ex.spawn_team("consumer", device_block(0), lanes, [=] {
            typename P::team team;
            consumer<P> in(st->q);
            for (u32 next = 1; next <= items;) {
                u32 n = 0;
                while (in.available(team) == 0) P::pause(n++);
                for (u32 k = in.available(team); k--;) check(in.pop() == next++, "in order, none lost, none twice");
                in.release(team);
            }
        });
    });
    std::cout << r.line() << "\n";
    return r;
}

} // namespace

TEST_CASE("a queue of capacity 2 passes five entries in order, across its wrap and across 2^32", "[model][queue]")
{
    for (const u32 from : {0u, 0xfffffffeu}) {
        const report r = pass<model_platform<1>>(1, 5, {.name = "queue"}, false, from);
        CHECK(r.exhausted);
        CHECK_FALSE(r.failure);
    }
}

TEST_CASE("the queue between two teams of four lanes", "[model][queue]")
{
    const report r = pass<model_platform<4>>(4, 4, {.name = "queue", .seconds_max = 30});
    CHECK(r.exhausted);
    CHECK_FALSE(r.failure);
}

TEST_CASE("each edge of the queue is needed", "[model][queue][mutation]")
{
    for (const edge e : {edge::R3_decoded, edge::A3_decoded, edge::R3_taken, edge::A3_taken}) {
        mutate weaker(e);
        const report r = pass<model_platform<1>>(1, 3, {.name = std::string("queue without ") + device::edge_name(e)});
        INFO(device::edge_name(e));
        REQUIRE(r.failure);
        CHECK(r.failure->what.find("race on entry") == 0);
    }
}

TEST_CASE("canary: a producer that does not look for room overwrites", "[model][queue][canary]")
{
    CHECK(pass<model_platform<1>>(1, 3, {.name = "careless producer"}, true).failure);
}
