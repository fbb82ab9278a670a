// The host's dependency table against all pairs.
#include "trace_catch.hpp"

#include <chrono>
#include <random>
#include <set>

#include "host/engines/host_dependency_table.hpp"

using namespace slipstream;
using namespace slipstream::engines;
using abi::access_entry;
using abi::access_mode;

namespace {

struct declared {
    bool whole = false;
    bool barred = true; ///< ordered by accesses; false: by `after` and whole-memory tasks only
    std::vector<access_entry> entries;
    std::vector<u32> after;
};

bool must_wait(const std::vector<declared>& tasks, u32 next, u32 earlier)
{
    if (tasks[next].whole || tasks[earlier].whole) return true;
    for (const u32 a : tasks[next].after)
        if (a == earlier) return true;
    for (const auto& a : tasks[next].entries)
        for (const auto& b : tasks[earlier].entries)
            if (abi::conflicts(a, b)) return true;
    return false;
}

std::vector<declared> random_tasks(std::mt19937& random, u32 count)
{
    const auto below = [&](u32 n) { return static_cast<u32>(random() % n); };
    const u64 scale = below(4) == 0 ? u64{1} << 23 : 1; // large ones: rectangles too wide for their fields are kept as loose ranges
    const u32 memory = 16 + below(200);
    std::vector<declared> tasks(count);
    for (u32 t = 0; t < count; ++t) {
        tasks[t].whole = below(40) == 0;
        if (!tasks[t].whole)
            for (u32 n = below(5); n > 0; --n) {
                const auto mode = static_cast<access_mode>(1 + below(3));
                const u64 address = (1 + below(memory)) * scale;
                switch (below(3)) {
                case 0: {
                    static constexpr u32 pitches[] = {4, 8, 8, 16};
                    tasks[t].entries.push_back(access_entry::rect(mode, address, (1 + below(6)) * scale, 1 + below(6),
                                                                  pitches[below(4)] * scale));
                    break;
                }
                case 1: tasks[t].entries.push_back(access_entry::range(mode, address / 8 * 8, 8 * scale)); break; // often equal
                default: tasks[t].entries.push_back(access_entry::range(mode, address, below(30) * scale)); break;
                }
            }
        if (t > 0 && below(8) == 0) tasks[t].after.push_back(below(t));
    }
    return tasks;
}

} // namespace

TEST_CASE("random accesses: the table's edges are real hazards and order exactly what all pairs order", "[engines][table]")
{
    host_dependency_table table;
    for (u32 seed = 1; seed <= 400; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        const u32 count = 2 + static_cast<u32>(random() % 80);
        const auto tasks = random_tasks(random, count);
        table.clear();
        std::vector<std::vector<bool>> found(count, std::vector<bool>(count)), expected = found;
        std::vector<u32> predecessors;
        const auto inherit = [](std::vector<std::vector<bool>>& closure, u32 t, u32 p) {
            closure[t][p] = true;
            for (u32 q = 0; q < p; ++q)
                if (closure[p][q]) closure[t][q] = true;
        };
        for (u32 t = 0; t < count; ++t) {
            predecessors = tasks[t].after;
            table.admit(t, tasks[t].entries, tasks[t].whole, predecessors);
            REQUIRE(std::is_sorted(predecessors.rbegin(), predecessors.rend()));
            REQUIRE(std::set<u32>(predecessors.begin(), predecessors.end()).size() == predecessors.size());
            for (const u32 p : predecessors) {
                INFO("task " << t << " waits for " << p);
                REQUIRE(p < t);
                REQUIRE(must_wait(tasks, t, p));
                inherit(found, t, p);
            }
            for (u32 p = 0; p < t; ++p)
                if (must_wait(tasks, t, p)) inherit(expected, t, p);
            INFO("task " << t);
            REQUIRE(found[t] == expected[t]);
        }
    }
}

TEST_CASE("a chain of equal writes costs one edge a task", "[engines][table]")
{
    host_dependency_table table;
    std::vector<u32> predecessors;
    const std::vector<access_entry> entries{access_entry::range(access_mode::read_write, 4096, 256)};
    for (u32 t = 0; t < 1000; ++t) {
        predecessors.clear();
        table.admit(t, entries, false, predecessors);
        REQUIRE(predecessors == (t ? std::vector<u32>{t - 1} : std::vector<u32>{}));
    }
    CHECK(table.regions() == 1);
}

TEST_CASE("a hundred thousand readers of one range share a region and wait for its writer alone", "[engines][table]")
{
    host_dependency_table table;
    std::vector<u32> predecessors;
    const std::vector<access_entry> write{access_entry::range(access_mode::write, 64, 64)};
    const std::vector<access_entry> read{access_entry::range(access_mode::read, 64, 64)};
    table.admit(0, write, false, predecessors);
    for (u32 t = 1; t <= 100'000; ++t) {
        predecessors.clear();
        table.admit(t, read, false, predecessors);
        REQUIRE(predecessors == std::vector<u32>{0});
    }
    CHECK(table.regions() == 1);
    predecessors.clear();
    table.admit(100'001, write, false, predecessors);
    CHECK(predecessors.size() == 100'000);
    CHECK(predecessors.front() == 100'000);
}

TEST_CASE("partial overwrites leave no more regions than pieces of memory", "[engines][table]")
{
    host_dependency_table table;
    std::mt19937 random(7);
    std::vector<u32> predecessors;
    u64 edges = 0;
    for (u32 t = 0; t < 100'000; ++t) {
        predecessors.clear();
        const u64 at = random() % 4096, length = 1 + random() % 64;
        const access_entry entry = access_entry::range(access_mode::write, 8 * at, 8 * length);
        table.admit(t, {&entry, 1}, false, predecessors);
        edges += predecessors.size();
    }
    CHECK(table.regions() <= 4096 + 64);
    CHECK(edges < 100'000 * 8);
}

TEST_CASE("a whole-memory task waits for the loose ends only, later tasks for it", "[engines][table]")
{
    host_dependency_table table;
    const auto entry = [](access_mode mode, u64 address) {
        return std::vector<access_entry>{access_entry::range(mode, address, 8)};
    };
    const auto admit = [&](u32 t, const std::vector<access_entry>& e, bool whole) {
        std::vector<u32> predecessors;
        table.admit(t, e, whole, predecessors);
        return predecessors;
    };
    CHECK(admit(0, entry(access_mode::write, 8), false).empty());
    CHECK(admit(1, entry(access_mode::read, 8), false) == std::vector<u32>{0});
    CHECK(admit(2, {}, false).empty()); // no_access
    CHECK(admit(3, {}, true) == std::vector<u32>{2, 1});
    CHECK(admit(4, entry(access_mode::read, 8), false) == std::vector<u32>{3});
    CHECK(admit(5, {}, false) == std::vector<u32>{3});
    CHECK(admit(6, {}, true) == std::vector<u32>{5, 4});
    CHECK(admit(7, {}, true) == std::vector<u32>{6});
}
