// Edges that others imply are dropped, and no order is lost.
#include "trace_catch.hpp"

#include "host/engines/edge_reduction.hpp"

#include <algorithm>
#include <random>

using namespace slipstream;
using namespace slipstream::engines;

namespace {

std::vector<u32> list(std::span<const u32> s)
{
    return {s.begin(), s.end()};
}

/// Up to `fan_in` predecessors at most `far` tasks back, the latest first.
std::vector<std::vector<u32>> random_graph(std::mt19937& random, u32 count, u32 fan_in, u32 far)
{
    std::vector<std::vector<u32>> graph(count);
    for (u32 t = 1; t < count; ++t) {
        for (u32 n = static_cast<u32>(random() % (fan_in + 1)); n > 0; --n)
            graph[t].push_back(t - 1 - static_cast<u32>(random() % std::min(t, far)));
        std::sort(graph[t].begin(), graph[t].end(), std::greater<>());
        graph[t].erase(std::unique(graph[t].begin(), graph[t].end()), graph[t].end());
    }
    return graph;
}

using reachable = std::vector<std::vector<bool>>;

reachable closure(const std::vector<std::vector<u32>>& graph)
{
    reachable before(graph.size(), std::vector<bool>(graph.size()));
    for (u32 t = 0; t < graph.size(); ++t)
        for (const u32 p : graph[t]) {
            before[t][p] = true;
            for (u32 q = 0; q < p; ++q)
                if (before[p][q]) before[t][q] = true;
        }
    return before;
}

} // namespace

TEST_CASE("a reduced graph orders what the graph orders, and within the reach no edge of it is implied by others",
          "[engines][reduction]")
{
    for (u32 seed = 1; seed <= 60; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        const u32 count = 1 + static_cast<u32>(random() % 1500);
        const u32 far = seed % 3 == 0 ? 2000 : 1 + static_cast<u32>(random() % 100);
        const auto graph = random_graph(random, count, 1 + seed % 6, far);
        edge_reduction reduction;
        std::vector<std::vector<u32>> reduced;
        for (const auto& predecessors : graph) reduced.push_back(list(reduction.next(predecessors)));
        const reachable before = closure(graph);
        REQUIRE(closure(reduced) == before);
        u32 wrong = 0;
        for (u32 t = 0; t < count; ++t)
            for (const u32 p : reduced[t])
                for (const u32 q : reduced[t])
                    if (q > p && before[q][p] && count <= edge_reduction::reach) ++wrong;
        CHECK(wrong == 0);
    }
}

TEST_CASE("an edge is dropped up to the reach exactly, and stays beyond it", "[engines][reduction]")
{
    for (const u32 length : {2u, 63u, 64u, 65u, 128u, 511u, 512u, 513u, 600u}) {
        INFO("length " << length);
        edge_reduction reduction;
        (void)reduction.next({});
        for (u32 t = 1; t < length; ++t) {
            const u32 p = t - 1;
            REQUIRE(list(reduction.next({&p, 1})) == std::vector<u32>{p});
        }
        const std::vector<u32> both{length - 1, 0}; // the end of the chain, and its beginning
        const auto kept = list(reduction.next(both));
        CHECK(kept == (length <= edge_reduction::reach ? std::vector<u32>{length - 1} : both));
    }
}

TEST_CASE("a reduction that starts again forgets the first pass", "[engines][reduction]")
{
    edge_reduction reduction;
    const std::vector<u32> none, first{0}, both{1, 0};
    (void)reduction.next(none);
    (void)reduction.next(first);
    CHECK(list(reduction.next(both)) == std::vector<u32>{1});
    reduction.start_again();
    (void)reduction.next(none);
    (void)reduction.next(none);
    CHECK(list(reduction.next(both)) == both);
}
