#include "tests/fuzz/trace_claims.hpp"
#include "host/trace/cells.hpp"
#include "host/trace/hazard_analysis.hpp"
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <tuple>

namespace slipstream::fuzz {
namespace {

using trace::byte_access;

constexpr std::size_t tasks_searched_max = 64; // the search is quadratic

void claim_tasks(const trace::recorded_trace& t, const trace::import_limits& limits)
{
    claim(!t.tasks.empty() && t.tasks.size() <= limits.tasks_max, "a trace has tasks, and not too many");
    claim(t.spaces.size() <= limits.spaces_max, "storages are bounded");
    std::set<std::string_view> names;
    std::uint64_t accesses = 0, edges = 0;
    double submitted_us = -INFINITY;
    for (std::size_t i = 0; i < t.tasks.size(); ++i) {
        const trace::recorded_task& task = t.tasks[i];
        claim(task.name.size() <= limits.name_bytes_max, "names are cut");
        names.insert(task.name);
        accesses += task.accesses.size();
        edges += task.after.size();
        claim(std::isfinite(task.submit_us) && std::isfinite(task.start_us), "times are numbers");
        claim(task.submit_us >= submitted_us, "tasks come in the order of their submission");
        submitted_us = task.submit_us;
        claim(task.duration_us >= 0 && task.duration_us <= limits.task_us_max, "durations are bounded");
        claim(task.moved_bytes <= trace::task_bytes_max, "bytes are bounded");
        claim(task.accesses_known != task.accesses.empty(), "known accesses are some, unknown ones none");
        for (std::size_t a = 0; a < task.accesses.size(); ++a) {
            const byte_access& access = task.accesses[a];
            claim(access.lo < access.hi && access.hi <= trace::tensor_end_max, "ranges hold bytes that there can be");
            claim(access.space < t.spaces.size() && access.hi <= t.spaces[access.space].bytes, "ranges lie in their storage");
            claim(access.reads || access.writes, "an access reads or writes");
            const auto key = [](const byte_access& b) { return std::tie(b.space, b.lo, b.hi); };
            claim(a == 0 || key(task.accesses[a - 1]) < key(access), "ranges are sorted, each there once");
        }
        for (std::size_t a = 0; a < task.after.size(); ++a)
            claim(task.after[a] < i && (a == 0 || task.after[a - 1] < task.after[a]), "`after` names earlier tasks, ascending");
    }
    std::uint64_t names_bytes = 0;
    for (const std::string_view name : names) names_bytes += name.size();
    claim(names_bytes <= limits.names_bytes_max, "the text of different names is bounded");
    claim(accesses <= limits.accesses_max, "ranges are bounded");
    claim(t.dependencies == trace::dependency_source::data || edges <= limits.order_edges_max, "edges of stream order are bounded");
    std::uint64_t dropped = 0;
    for (const auto& reason : t.drop_reasons) dropped += reason.count;
    claim(dropped == t.dropped, "every dropped record has a reason");
    claim(t.matched + t.unmatched == t.tasks.size(), "every task is matched or unmatched");
    for (const std::string& note : t.notes) claim_one_line(note);
}

/// The rule of hazard_analysis.hpp, in its own words: all records that live, one after the other.
std::vector<trace::hazard_edge> edges_by_search(const trace::recorded_trace& t)
{
    struct record {
        byte_access range;
        std::uint32_t task;
    };
    std::vector<record> reads, writes;
    std::vector<trace::hazard_edge> out;
    for (std::uint32_t i = 0; i < t.tasks.size(); ++i) {
        std::map<std::uint32_t, std::uint8_t> kinds;
        const auto meet = [&](const std::vector<record>& old, const byte_access& a, std::uint8_t kind) {
            for (const record& r : old)
                if (r.range.space == a.space && r.range.lo < a.hi && a.lo < r.range.hi) kinds[r.task] |= kind;
        };
        for (const byte_access& a : t.tasks[i].accesses) {
            if (a.reads) meet(writes, a, trace::edge_raw);
            if (a.writes) meet(reads, a, trace::edge_war);
            if (a.writes) meet(writes, a, trace::edge_waw);
        }
        for (const std::uint32_t p : t.tasks[i].after) kinds[p] |= trace::edge_order;
        const auto drop_covered = [](std::vector<record>& old, const byte_access& a) {
            std::erase_if(old, [&](const record& r) {
                return r.range.space == a.space && a.lo <= r.range.lo && r.range.hi <= a.hi;
            });
        };
        for (const byte_access& a : t.tasks[i].accesses)
            if (a.reads) reads.push_back({a, i});
        for (const byte_access& a : t.tasks[i].accesses)
            if (a.writes) {
                drop_covered(reads, a);
                drop_covered(writes, a);
            }
        for (const byte_access& a : t.tasks[i].accesses)
            if (a.writes) writes.push_back({a, i});
        for (const auto& [predecessor, mask] : kinds) out.push_back({i, predecessor, mask});
    }
    return out;
}

void claim_hazards(const trace::recorded_trace& t)
{
    const trace::hazard_analysis a = trace::analyze(t);
    if (t.tasks.size() <= tasks_searched_max) claim(a.edges == edges_by_search(t), "the edges are those that a search finds");
    const double slack = 1e-9 * a.work_us;
    claim(a.critical_path_us >= 0 && a.critical_path_us <= a.work_us + slack, "the critical path is part of the work");
    claim(a.raw_critical_path_us <= a.critical_path_us + slack, "fewer edges make no longer path");
    claim(std::isfinite(a.speedup_unlimited()), "the speed-up is a number");
}

void claim_cells(const trace::recorded_trace& t)
{
    std::vector<std::vector<byte_access>> ranges;
    std::size_t count = 0;
    for (const auto& task : t.tasks) {
        ranges.push_back(task.accesses);
        count += task.accesses.size();
    }
    const trace::cell_map map = trace::cut_into_cells(ranges);
    claim(map.tasks.size() == t.tasks.size() && map.cells <= 2 * count, "two ends a range cut memory into that many cells at most");
    std::uint64_t visits = 0;
    for (std::size_t i = 0; i < map.tasks.size(); ++i) {
        claim(map.tasks[i].empty() == ranges[i].empty(), "a task with ranges has cells");
        std::uint64_t end = 0;
        for (const trace::cell_access& c : map.tasks[i]) {
            claim(c.cell_count > 0 && c.cell_first >= end && c.cell_first + c.cell_count <= map.cells,
                  "runs of cells are disjoint and inside");
            claim(c.reads || c.writes, "a cell that is used is read or written");
            end = c.cell_first + c.cell_count;
            visits += c.cell_count;
        }
    }
    claim(visits == map.cell_visits, "the visits are the sum of the runs");
}

} // namespace

void claim_sound(const trace::recorded_trace& t, const trace::import_limits& limits)
{
    claim_tasks(t, limits);
    claim_hazards(t);
    claim_cells(t);
}

} // namespace slipstream::fuzz
