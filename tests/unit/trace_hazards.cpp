// The reported edges: the one rule on small cases, against a brute-force oracle, and at size.
#include "trace_catch.hpp"

#include <sys/resource.h>

#include <chrono>
#include <map>
#include <random>

#include "host/trace/hazard_analysis.hpp"

using namespace slipstream::trace;

namespace {

using task_accesses = std::vector<std::vector<byte_access>>;

byte_access r(std::uint64_t lo, std::uint64_t hi, std::uint32_t space = 0) { return {space, lo, hi, true, false}; }
byte_access w(std::uint64_t lo, std::uint64_t hi, std::uint32_t space = 0) { return {space, lo, hi, false, true}; }
byte_access rw(std::uint64_t lo, std::uint64_t hi, std::uint32_t space = 0) { return {space, lo, hi, true, true}; }

// The rule as it is worded, all records in one list.
std::vector<hazard_edge> oracle(const task_accesses& tasks) {
    struct record {
        std::uint32_t task, space;
        std::uint64_t lo, hi;
        bool write;
    };
    std::vector<record> records;
    std::vector<hazard_edge> edges;
    for (std::uint32_t t = 0; t < tasks.size(); ++t) {
        std::map<std::uint32_t, std::uint8_t> kinds;
        for (const byte_access& a : tasks[t])
            for (const record& old : records) {
                if (a.lo >= a.hi || old.space != a.space || old.lo >= a.hi || a.lo >= old.hi) continue;
                if (a.reads && old.write) kinds[old.task] |= edge_raw;
                if (a.writes) kinds[old.task] |= old.write ? edge_waw : edge_war;
            }
        for (const auto& [p, k] : kinds) edges.push_back({t, p, k});
        for (const byte_access& a : tasks[t])
            if (a.reads && a.lo < a.hi) records.push_back({t, a.space, a.lo, a.hi, false});
        for (const byte_access& a : tasks[t])
            if (a.writes)
                std::erase_if(records, [&](const record& old) {
                    return old.space == a.space && a.lo <= old.lo && old.hi <= a.hi;
                });
        for (const byte_access& a : tasks[t])
            if (a.writes && a.lo < a.hi) records.push_back({t, a.space, a.lo, a.hi, true});
    }
    return edges;
}

}  // namespace

TEST_CASE("each hazard is found and named", "[trace][hazards]") {
    using edges = std::vector<hazard_edge>;
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {r(0, 8)}}) == edges{{1, 0, edge_raw}});
    CHECK(find_hazards(task_accesses{{r(0, 8)}, {w(0, 8)}}) == edges{{1, 0, edge_war}});
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {w(0, 8)}}) == edges{{1, 0, edge_waw}});
    CHECK(find_hazards(task_accesses{{r(0, 8)}, {r(0, 8)}}).empty());
    CHECK(find_hazards(task_accesses{{rw(0, 8)}, {rw(0, 8)}}) == edges{{1, 0, edge_raw | edge_waw}});
    CHECK(find_hazards(task_accesses{{w(0, 8), r(20, 28)}, {r(0, 8), w(20, 28)}}) == edges{{1, 0, edge_raw | edge_war}});
}

TEST_CASE("ranges are half-open, partial overlaps count, other spaces and empty ranges do not", "[trace][hazards]") {
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {r(8, 16)}}).empty());
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {r(7, 16)}}).size() == 1);
    CHECK(find_hazards(task_accesses{{w(0, 8, 0)}, {r(0, 8, 1)}}).empty());
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {r(4, 4)}}).empty());
    CHECK(find_hazards(task_accesses{{w(4, 4)}, {r(0, 8)}}).empty());
}

TEST_CASE("a record is dropped whole once one later write covers all of it, not before", "[trace][hazards]") {
    using edges = std::vector<hazard_edge>;
    // Covered: the reader meets only the last writer.
    CHECK(find_hazards(task_accesses{{w(2, 6)}, {w(0, 8)}, {r(0, 8)}}) == edges{{1, 0, edge_waw}, {2, 1, edge_raw}});
    // Two halves together cover it, but no single write does: the record stays.
    CHECK(find_hazards(task_accesses{{w(0, 8)}, {w(0, 4)}, {w(4, 8)}, {r(0, 8)}}) ==
          edges{{1, 0, edge_waw}, {2, 0, edge_waw}, {3, 0, edge_raw}, {3, 1, edge_raw}, {3, 2, edge_raw}});
    // A read-write drops its own read: a later writer meets it as WAW only.
    CHECK(find_hazards(task_accesses{{rw(0, 8)}, {w(0, 8)}}) == edges{{1, 0, edge_waw}});
    // An own read that reaches beyond the own write stays.
    CHECK(find_hazards(task_accesses{{r(0, 8), w(0, 4)}, {w(0, 8)}}) == edges{{1, 0, edge_war | edge_waw}});
}

TEST_CASE("explicit predecessors are ORDER edges and unite with hazards", "[trace][hazards]") {
    const task_accesses tasks{{w(0, 8)}, {r(0, 8)}, {}};
    const std::vector<std::vector<std::uint32_t>> after{{}, {0}, {0, 1}};
    CHECK(find_hazards(tasks, after) ==
          std::vector<hazard_edge>{{1, 0, edge_raw | edge_order}, {2, 0, edge_order}, {2, 1, edge_order}});
    CHECK_THROWS_AS(find_hazards(tasks, std::vector<std::vector<std::uint32_t>>{{}, {1}, {}}), std::invalid_argument);
    CHECK_THROWS_AS(find_hazards(tasks, std::vector<std::vector<std::uint32_t>>{{}}), std::invalid_argument);
    CHECK_THROWS_AS(find_hazards(tasks, after, 2), std::length_error);
    CHECK(edge_kind_name(edge_raw | edge_war | edge_waw) == "RAW+WAR+WAW");
    CHECK(edge_kind_name(edge_order) == "ORDER");
}

TEST_CASE("random ranges give the edges of the oracle", "[trace][hazards]") {
    for (std::uint32_t seed = 1; seed <= 300; ++seed) {
        std::mt19937 random(seed);
        const std::uint64_t bytes = 4 + random() % 60;
        const std::uint32_t spaces = 1 + random() % 3;
        task_accesses tasks(5 + random() % 60);
        for (auto& accesses : tasks)
            for (std::uint32_t n = random() % 6; n > 0; --n) {
                const std::uint64_t lo = random() % bytes;
                const std::uint64_t hi = lo + random() % (bytes - lo + 1);
                accesses.push_back({static_cast<std::uint32_t>(random() % spaces), lo, hi, random() % 2 == 0,
                                    random() % 3 == 0});
            }
        INFO("seed " << seed);
        REQUIRE(find_hazards(tasks) == oracle(tasks));
    }
}

TEST_CASE("a hundred thousand tasks are analysed in seconds", "[trace][hazards]") {
    std::mt19937 random(7);
    task_accesses tasks(100'000);
    for (auto& accesses : tasks) {
        for (int i = 0; i < 2; ++i) {
            const std::uint64_t lo = random() % 100'000 * 256;
            accesses.push_back(r(lo, lo + 256 + random() % 512));
        }
        const std::uint64_t lo = random() % 100'000 * 256;
        accesses.push_back(w(lo, lo + 512));
    }
    const auto start = std::chrono::steady_clock::now();
    const auto edges = find_hazards(tasks);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    CHECK(edges.size() > 100'000);
    // All pairs would be 5*10^9 comparisons; the bound leaves room for slow, shared and instrumented machines.
    CHECK(seconds < 20.0);
}

TEST_CASE("overlaps within one task count against the bound, though they make no edge", "[trace][hazards]") {
    // Each read overlaps each write and none covers it: none is dropped, and the task has no predecessor to meet.
    const auto one_task = [](std::uint64_t n) {
        task_accesses tasks(1);
        for (std::uint64_t i = 0; i < n; ++i) tasks[0].push_back(r(i, 1000 + i));
        for (std::uint64_t i = 0; i < n; ++i) tasks[0].push_back(w(400 + i, 600 + i));
        return tasks;
    };
    constexpr std::uint64_t edges_max = 100;  // 3200 overlaps
    CHECK(find_hazards(one_task(50), {}, edges_max).empty());
    std::string said;
    try {
        find_hazards(one_task(60), {}, edges_max);
    } catch (const std::length_error& e) {
        said = e.what();
    }
    CHECK(said == "more than 3200 overlaps between byte ranges; analyse a shorter recording");
}

TEST_CASE("a record that many writes of one task cover takes memory once", "[trace][hazards]") {
    // The second task's writes grow: each covers all of the first one's, and no two of them are alike.
    constexpr std::uint64_t n = 4000;
    task_accesses tasks(2);
    for (std::uint64_t i = 0; i < n; ++i) tasks[0].push_back(w(i, i + 1));
    for (std::uint64_t i = 0; i < n; ++i) tasks[1].push_back(w(0, n + i));
    const auto most_kib = [] {
        rusage use{};
        getrusage(RUSAGE_SELF, &use);
        return use.ru_maxrss;
    };
    const long before = most_kib();
    CHECK(find_hazards(tasks) == std::vector<hazard_edge>{{1, 0, edge_waw}});
    CHECK(most_kib() - before < 64 << 10);  // a number for each of n * n meetings would take 128 MiB
}

TEST_CASE("work, critical path, in-degree and contradictions follow from edges and times", "[trace][hazards]") {
    recorded_trace t;
    t.durations_known = true;
    const auto add = [&](double start, double duration, std::vector<byte_access> accesses) {
        recorded_task task;
        task.start_us = start;
        task.duration_us = duration;
        task.duration_known = true;
        task.accesses = std::move(accesses);
        t.tasks.push_back(task);
    };
    add(0, 10, {w(0, 8)});
    add(9, 5, {r(0, 8), w(8, 16)});     // starts 1 us early: within the clock's resolution
    add(8.5, 20, {r(0, 8), w(16, 24)}); // starts 1.5 us early: contradicted
    add(30, 1, {r(8, 24), w(0, 8)});
    const hazard_analysis a = analyze(t);
    CHECK(a.contradicted == 1);
    CHECK(a.in_degree_max == 3);
    CHECK(a.work_us == Approx(36));
    CHECK(a.critical_path_us == Approx(31));
    CHECK(a.speedup_unlimited() == Approx(36.0 / 31.0));
    CHECK(a.edges_by_kinds[edge_raw] == 2);
    CHECK(a.edges_by_kinds[edge_raw | edge_war] == 2);
    CHECK(a.edges_by_kinds[edge_waw] == 1);
}
