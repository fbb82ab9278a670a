// Elementary intervals: two ranges share a cell exactly when they share a byte.
#include "trace_catch.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "host/trace/cells.hpp"

using namespace slipstream::trace;

TEST_CASE("end points cut memory into cells, gaps get none", "[trace][cells]") {
    const std::vector<std::vector<byte_access>> tasks{
        {{0, 0, 8, true, false}}, {{0, 4, 12, false, true}}, {{0, 100, 104, false, true}}, {{1, 0, 8, true, true}}, {}};
    const cell_map map = cut_into_cells(tasks);
    CHECK(map.cells == 5);  // [0,4) [4,8) [8,12) [100,104) and one of space 1
    CHECK(map.cell_visits == 6);
    REQUIRE(map.tasks.size() == 5);
    CHECK(map.tasks[0] == std::vector<cell_access>{{0, 2, true, false}});
    CHECK(map.tasks[1] == std::vector<cell_access>{{1, 2, false, true}});
    CHECK(map.tasks[2] == std::vector<cell_access>{{3, 1, false, true}});
    CHECK(map.tasks[3] == std::vector<cell_access>{{4, 1, true, true}});
    CHECK(map.tasks[4].empty());
}

TEST_CASE("overlapping accesses of one task become disjoint runs, split by mode", "[trace][cells]") {
    const std::vector<std::vector<byte_access>> tasks{
        {{0, 0, 12, true, false}, {0, 4, 8, false, true}, {0, 0, 2, true, false}, {0, 20, 20, true, true}}};
    const cell_map map = cut_into_cells(tasks);
    CHECK(map.cells == 4);  // [0,2) [2,4) [4,8) [8,12)
    CHECK(map.tasks[0] == std::vector<cell_access>{{0, 2, true, false}, {2, 1, true, true}, {3, 1, true, false}});
}

TEST_CASE("random ranges: cells agree with bytes", "[trace][cells]") {
    for (std::uint32_t seed = 1; seed <= 200; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        std::vector<std::vector<byte_access>> tasks(1 + random() % 20);
        for (auto& accesses : tasks)
            for (std::uint32_t n = random() % 6; n > 0; --n) {
                const std::uint64_t lo = random() % 64;
                accesses.push_back({static_cast<std::uint32_t>(random() % 2), lo, lo + random() % 20, random() % 2 == 0,
                                    random() % 2 == 0});
            }
        const cell_map map = cut_into_cells(tasks);
        // By byte: who uses it how. Two bytes with one cell must be used alike, and the modes must be the task's.
        using use = std::pair<bool, bool>;
        const auto byte_use = [&](std::size_t t, std::uint32_t space, std::uint64_t byte) {
            use u{false, false};
            for (const byte_access& a : tasks[t])
                if (a.space == space && a.lo <= byte && byte < a.hi) u = {u.first || a.reads, u.second || a.writes};
            return u;
        };
        // Walk all bytes in order; a new cell starts where any end point lies and the byte is touched at all.
        std::vector<std::vector<use>> cell_use;  // by cell, by task
        for (std::uint32_t space = 0; space < 2; ++space) {
            bool fresh = true;
            for (std::uint64_t byte = 0; byte < 100; ++byte) {
                bool touched = false;
                for (const auto& accesses : tasks)
                    for (const byte_access& a : accesses) {
                        if (a.space != space || a.lo >= a.hi || (!a.reads && !a.writes)) continue;
                        if (a.lo == byte || a.hi == byte) fresh = true;
                        touched |= a.lo <= byte && byte < a.hi;
                    }
                if (touched && fresh) {
                    cell_use.emplace_back();
                    for (std::size_t t = 0; t < tasks.size(); ++t) cell_use.back().push_back(byte_use(t, space, byte));
                }
                fresh = !touched;
            }
        }
        REQUIRE(map.cells == cell_use.size());
        for (std::size_t t = 0; t < tasks.size(); ++t) {
            std::vector<use> seen(map.cells, use{false, false});
            std::uint64_t next = 0;
            for (const cell_access& run : map.tasks[t]) {
                REQUIRE(run.cell_first >= next);  // disjoint and ascending
                REQUIRE(run.cell_count > 0);
                next = run.cell_first + run.cell_count;
                REQUIRE(next <= map.cells);
                for (std::uint64_t c = run.cell_first; c < next; ++c) seen[c] = {run.reads, run.writes};
            }
            for (std::uint64_t c = 0; c < map.cells; ++c) REQUIRE(seen[c] == cell_use[c][t]);
        }
    }
}
