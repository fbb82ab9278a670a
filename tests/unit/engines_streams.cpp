// What the streams engine decides without CUDA: a stream for each task, events to wait for.
#include "trace_catch.hpp"

#include <random>

#include "host/engines/stream_assigner.hpp"

using namespace slipstream;
using namespace slipstream::engines;

namespace {

std::vector<std::vector<u32>> random_graph(std::mt19937& random, u32 count)
{
    std::vector<std::vector<u32>> graph(count);
    for (u32 t = 1; t < count; ++t)
        for (u32 p = t; p-- > 0 && graph[t].size() < random() % 5;)
            if (random() % 3 == 0) graph[t].push_back(p);
    return graph;
}

} // namespace

TEST_CASE("stream order and waits imply every edge, and the open streams imply every task", "[engines][streams]")
{
    for (u32 seed = 1; seed <= 200; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        const u32 count = 1 + static_cast<u32>(random() % 120);
        const u32 streams = 1 + static_cast<u32>(random() % 9);
        const auto graph = random_graph(random, count);
        stream_assigner assigner(streams);
        std::vector<std::vector<bool>> before(count, std::vector<bool>(count)); // t -> done before t starts
        std::vector<u32> tail(streams, ~0u);
        const auto inherit = [&](u32 t, u32 p) {
            before[t][p] = true;
            for (u32 q = 0; q < count; ++q)
                if (before[p][q]) before[t][q] = true;
        };
        for (u32 t = 0; t < count; ++t) {
            const auto placed = assigner.place(graph[t]);
            REQUIRE(placed.stream < streams);
            if (tail[placed.stream] != ~0u) inherit(t, tail[placed.stream]);
            for (const u32 awaited : placed.waits) {
                REQUIRE_FALSE(before[t][awaited]); // a wait for what is implied already would be waste
                inherit(t, awaited);
            }
            for (const u32 p : graph[t]) REQUIRE(before[t][p]);
            tail[placed.stream] = t;
        }
        std::vector<bool> done(count);
        for (const u32 s : assigner.open_streams()) {
            done[tail[s]] = true;
            for (u32 q = 0; q < count; ++q)
                if (before[tail[s]][q]) done[q] = true;
        }
        CHECK(std::find(done.begin(), done.end(), false) == done.end());
    }
}

TEST_CASE("a chain stays in one stream and parallel chains in one each, without an event", "[engines][streams]")
{
    for (const u32 chains : {1u, 2u, 32u}) {
        stream_assigner assigner(32);
        for (u32 t = 0; t < 10 * chains; ++t) {
            const std::vector<u32> predecessors = t < chains ? std::vector<u32>{} : std::vector<u32>{t - chains};
            const auto placed = assigner.place(predecessors);
            CHECK(placed.stream == t % chains);
            CHECK(placed.waits.empty());
        }
        CHECK(assigner.open_streams().size() == chains);
    }
}

TEST_CASE("a fork and join needs one event for each branch but one, and one stream is left open", "[engines][streams]")
{
    stream_assigner assigner(32);
    (void)assigner.place({});
    u32 waits = 0;
    const u32 root = 0;
    for (u32 b = 0; b < 8; ++b) waits += static_cast<u32>(assigner.place({&root, 1}).waits.size());
    CHECK(waits == 7); // the first branch follows the root in its stream
    const std::vector<u32> branches{8, 7, 6, 5, 4, 3, 2, 1};
    CHECK(assigner.place(branches).waits.size() == 7);
    CHECK(assigner.open_streams().size() == 1);
}

TEST_CASE("a second pass makes the same choices", "[engines][streams]")
{
    std::mt19937 random(3);
    const auto graph = random_graph(random, 300);
    stream_assigner assigner(8);
    std::vector<std::pair<u32, std::vector<u32>>> first;
    for (u32 pass = 0; pass < 2; ++pass) {
        assigner.reset();
        for (u32 t = 0; t < graph.size(); ++t) {
            const auto placed = assigner.place(graph[t]);
            const std::pair<u32, std::vector<u32>> choice{placed.stream, {placed.waits.begin(), placed.waits.end()}};
            if (pass == 0)
                first.push_back(choice);
            else
                REQUIRE(choice == first[t]);
        }
    }
}
