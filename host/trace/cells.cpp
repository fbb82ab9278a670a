// cut_into_cells: sort all end points once, number the covered intervals, then translate and merge per task.
#include "cells.hpp"

#include <algorithm>
#include <utility>

namespace slipstream::trace {

namespace {

bool touches(const byte_access& a) { return a.lo < a.hi && (a.reads || a.writes); }

using point = std::pair<std::uint32_t, std::uint64_t>;  // space, byte

}  // namespace

cell_map cut_into_cells(std::span<const std::vector<byte_access>> tasks) {
    std::vector<point> points;
    for (const auto& accesses : tasks)
        for (const byte_access& a : accesses)
            if (touches(a)) {
                points.emplace_back(a.space, a.lo);
                points.emplace_back(a.space, a.hi);
            }
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    const auto index_of = [&](std::uint32_t space, std::uint64_t byte) {
        return static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), point(space, byte)) -
                                        points.begin());
    };

    // Interval i lies between points i and i + 1; it is covered while more ranges have begun than ended.
    std::vector<std::int64_t> begun(points.size(), 0);
    for (const auto& accesses : tasks)
        for (const byte_access& a : accesses)
            if (touches(a)) {
                ++begun[index_of(a.space, a.lo)];
                --begun[index_of(a.space, a.hi)];
            }
    cell_map map;
    std::vector<std::uint64_t> cell_of(points.size());  // of the interval, and where the next covered one starts
    std::int64_t open = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        open += begun[i];
        cell_of[i] = map.cells;
        if (open > 0) ++map.cells;
    }

    struct mode_change {
        std::uint64_t cell;
        int reads, writes;
    };
    std::vector<mode_change> changes;
    map.tasks.reserve(tasks.size());
    for (const auto& accesses : tasks) {
        changes.clear();
        for (const byte_access& a : accesses) {
            if (!touches(a)) continue;
            const std::uint64_t first = cell_of[index_of(a.space, a.lo)];
            const std::uint64_t last = cell_of[index_of(a.space, a.hi)];
            changes.push_back({first, a.reads, a.writes});
            changes.push_back({last, -int{a.reads}, -int{a.writes}});
        }
        std::sort(changes.begin(), changes.end(),
                  [](const mode_change& a, const mode_change& b) { return a.cell < b.cell; });
        std::vector<cell_access>& runs = map.tasks.emplace_back();
        int readers = 0, writers = 0;
        for (std::size_t i = 0; i < changes.size();) {
            const std::uint64_t cell = changes[i].cell;
            for (; i < changes.size() && changes[i].cell == cell; ++i) {
                readers += changes[i].reads;
                writers += changes[i].writes;
            }
            if (i == changes.size() || (readers == 0 && writers == 0)) continue;
            const std::uint64_t count = changes[i].cell - cell;
            map.cell_visits += count;
            if (!runs.empty() && runs.back().cell_first + runs.back().cell_count == cell &&
                runs.back().reads == (readers > 0) && runs.back().writes == (writers > 0))
                runs.back().cell_count += count;
            else
                runs.push_back({cell, count, readers > 0, writers > 0});
        }
    }
    return map;
}

}  // namespace slipstream::trace
