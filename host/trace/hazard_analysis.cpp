// hazard_analysis: all ranges are known up front, so the live records sit in one static tree instead of a dynamic one.
#include "hazard_analysis.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <tuple>

namespace slipstream::trace {

std::string edge_kind_name(std::uint8_t kinds) {
    static constexpr const char* names[] = {"RAW", "WAR", "WAW", "ORDER"};
    std::string name;
    for (unsigned bit = 0; bit < 4; ++bit) {
        if ((kinds >> bit & 1) == 0) continue;
        if (!name.empty()) name += '+';
        name += names[bit];
    }
    return name;
}

namespace {

// Every range of one mode that will ever be recorded, sorted by (space, lo), with a tree over the largest `hi` among
// the *live* ones. Records overlapping [lo, hi) are then those left of the first with record.lo >= hi whose live
// hi > lo: each is found in O(log n), and switching a record on or off is one path to the root.
class range_records {
public:
    struct record {
        std::uint64_t lo, hi;
        std::uint32_t space, task;
    };

    void add(const byte_access& a, std::uint32_t task) { records_.push_back({a.lo, a.hi, a.space, task}); }

    void build() {
        std::sort(records_.begin(), records_.end(), [](const record& a, const record& b) {
            return std::tie(a.space, a.lo, a.task, a.hi) < std::tie(b.space, b.lo, b.task, b.hi);
        });
        leaves_ = 1;
        while (leaves_ < records_.size()) leaves_ *= 2;
        live_hi_.assign(2 * leaves_, 0);
        covered_.assign(records_.size(), false);
    }

    const record& at(std::size_t index) const { return records_[index]; }

    // The position of one record of `task`; equal ranges of one task collapse into one position.
    std::size_t position(const byte_access& a, std::uint32_t task) const {
        const auto it = std::lower_bound(
            records_.begin(), records_.end(), std::tie(a.space, a.lo, task, a.hi),
            [](const record& r, const auto& key) { return std::tie(r.space, r.lo, r.task, r.hi) < key; });
        return static_cast<std::size_t>(it - records_.begin());
    }

    void set_live(std::size_t index, bool live) {
        std::size_t n = leaves_ + index;
        live_hi_[n] = live ? records_[index].hi : 0;
        for (n /= 2; n >= 1; n /= 2) live_hi_[n] = std::max(live_hi_[2 * n], live_hi_[2 * n + 1]);
    }

    // Covered records stay live until all accesses have met them; each is kept once, however many writes cover it.
    void note_covered(std::size_t index) {
        if (covered_[index]) return;
        covered_[index] = true;
        to_drop_.push_back(index);
    }
    void drop_covered() {
        for (const std::size_t i : to_drop_) {
            set_live(i, false);
            covered_[i] = false;
        }
        to_drop_.clear();
    }

    // Calls visit(index) for every live record that overlaps; `visit` may note it as covered.
    template <class Visit>
    void for_each_overlap(const byte_access& a, Visit visit) {
        if (records_.empty()) return;
        const auto below = [](const record& r, const std::pair<std::uint32_t, std::uint64_t>& key) {
            return std::tie(r.space, r.lo) < std::tie(key.first, key.second);
        };
        const auto begin = records_.begin();
        const auto first = std::lower_bound(begin, records_.end(), std::pair(a.space, std::uint64_t{0}), below) - begin;
        const auto last = std::lower_bound(begin + first, records_.end(), std::pair(a.space, a.hi), below) - begin;
        if (first != last)
            descend(1, 0, leaves_, static_cast<std::size_t>(first), static_cast<std::size_t>(last), a.lo, visit);
    }

private:
    template <class Visit>
    void descend(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last,
                 std::uint64_t lo, Visit& visit) {
        if (end <= first || last <= begin || live_hi_[node] <= lo) return;
        if (end - begin == 1) {
            visit(begin);
            return;
        }
        const std::size_t middle = begin + (end - begin) / 2;
        descend(2 * node, begin, middle, first, last, lo, visit);
        descend(2 * node + 1, middle, end, first, last, lo, visit);
    }

    std::vector<record> records_;
    std::vector<std::uint64_t> live_hi_;  // 0: nothing live below (a record's hi is at least 1)
    std::vector<bool> covered_;           // by index: is it in to_drop_?
    std::vector<std::size_t> to_drop_;
    std::size_t leaves_ = 1;
};

bool covers(const byte_access& a, std::uint64_t lo, std::uint64_t hi) { return a.lo <= lo && hi <= a.hi; }

}  // namespace

std::vector<hazard_edge> find_hazards(std::span<const std::vector<byte_access>> accesses,
                                      std::span<const std::vector<std::uint32_t>> after, std::uint64_t edges_max) {
    const std::size_t tasks = accesses.size();
    if (!after.empty() && after.size() != tasks)
        throw std::invalid_argument("find_hazards: `after` needs one list per task");
    if (tasks > std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("find_hazards: more than 2^32 - 1 tasks");

    range_records reads, writes;
    for (std::uint32_t t = 0; t < tasks; ++t)
        for (const byte_access& a : accesses[t]) {
            if (a.lo >= a.hi) continue;
            if (a.reads) reads.add(a, t);
            if (a.writes) writes.add(a, t);
        }
    reads.build();
    writes.build();

    std::vector<hazard_edge> edges;
    std::vector<std::uint8_t> kinds(tasks, 0);     // of the edges of the current task, by predecessor
    std::vector<std::uint32_t> predecessors;       // those with kinds != 0
    // Thousands of overlapping ranges in each of two tasks meet pair by pair although they make one edge, those of one
    // task meet although they make none.
    constexpr std::uint64_t meetings_per_edge_max = 32;
    std::uint64_t meetings = 0;
    const auto count_meeting = [&] {
        if (++meetings / meetings_per_edge_max > edges_max)
            throw std::length_error("more than " + std::to_string(edges_max * meetings_per_edge_max) +
                                    " overlaps between byte ranges; analyse a shorter recording");
    };
    const auto meet = [&](std::uint32_t predecessor, std::uint8_t kind) {
        count_meeting();
        if (kinds[predecessor] == 0) predecessors.push_back(predecessor);
        kinds[predecessor] |= kind;
    };
    for (std::uint32_t t = 0; t < tasks; ++t) {
        // All meetings first: a write of this task must not hide an old record from its other accesses.
        for (const byte_access& a : accesses[t]) {
            if (a.lo >= a.hi || (!a.reads && !a.writes)) continue;
            writes.for_each_overlap(a, [&](std::size_t i) {
                const auto& old = writes.at(i);
                if (a.reads) meet(old.task, edge_raw);
                if (!a.writes) return;
                meet(old.task, edge_waw);
                if (covers(a, old.lo, old.hi)) writes.note_covered(i);
            });
            if (!a.writes) continue;
            reads.for_each_overlap(a, [&](std::size_t i) {
                const auto& old = reads.at(i);
                meet(old.task, edge_war);
                if (covers(a, old.lo, old.hi)) reads.note_covered(i);
            });
        }
        writes.drop_covered();
        reads.drop_covered();
        for (const byte_access& a : accesses[t]) {
            if (a.lo >= a.hi) continue;
            if (a.reads) reads.set_live(reads.position(a, t), true);
            if (a.writes) writes.set_live(writes.position(a, t), true);
        }
        // Its own reads below its own writes: whoever meets such a read meets the write too, as WAW.
        for (const byte_access& a : accesses[t]) {
            if (a.lo >= a.hi || !a.writes) continue;
            reads.for_each_overlap(a, [&](std::size_t i) {
                count_meeting();
                const auto& own = reads.at(i);
                if (own.task == t && covers(a, own.lo, own.hi)) reads.note_covered(i);
            });
            reads.drop_covered();
        }
        if (!after.empty())
            for (const std::uint32_t p : after[t]) {
                if (p >= t) throw std::invalid_argument("find_hazards: `after` must name earlier tasks only");
                meet(p, edge_order);
            }
        if (edges.size() + predecessors.size() > edges_max)
            throw std::length_error("more than " + std::to_string(edges_max) + " dependency edges at task " +
                                    std::to_string(t) + "; analyse a shorter recording");
        std::sort(predecessors.begin(), predecessors.end());
        for (const std::uint32_t p : predecessors) {
            edges.push_back({t, p, kinds[p]});
            kinds[p] = 0;
        }
        predecessors.clear();
    }
    return edges;
}

hazard_analysis analyze(const recorded_trace& trace, std::uint64_t edges_max) {
    std::vector<std::vector<byte_access>> accesses;
    std::vector<std::vector<std::uint32_t>> after;
    accesses.reserve(trace.tasks.size());
    after.reserve(trace.tasks.size());
    for (const recorded_task& t : trace.tasks) {
        accesses.push_back(t.accesses);
        after.push_back(t.after);
    }
    hazard_analysis result;
    result.edges = find_hazards(accesses, after, edges_max);
    result.durations_known = trace.durations_known;
    const auto duration = [&](std::uint32_t t) { return trace.durations_known ? trace.tasks[t].duration_us : 1.0; };

    std::vector<double> ready(trace.tasks.size(), 0), raw_ready(trace.tasks.size(), 0);
    std::vector<std::uint32_t> in_degree(trace.tasks.size(), 0);
    std::size_t e = 0;
    for (std::uint32_t t = 0; t < trace.tasks.size(); ++t) {
        // Edges point backwards and come sorted by task, so every predecessor is final here.
        for (; e < result.edges.size() && result.edges[e].task == t; ++e) {
            const hazard_edge& edge = result.edges[e];
            ++result.edges_by_kinds[edge.kinds];
            result.in_degree_max = std::max(result.in_degree_max, ++in_degree[t]);
            ready[t] = std::max(ready[t], ready[edge.predecessor]);
            if ((edge.kinds & (edge_raw | edge_order)) != 0)
                raw_ready[t] = std::max(raw_ready[t], raw_ready[edge.predecessor]);
            const recorded_task& before = trace.tasks[edge.predecessor];
            // 1 us is the resolution of older recordings.
            if (trace.tasks[t].duration_known && before.duration_known &&
                trace.tasks[t].start_us < before.start_us + before.duration_us - 1.0)
                ++result.contradicted;
        }
        ready[t] += duration(t);
        raw_ready[t] += duration(t);
        result.work_us += duration(t);
        result.critical_path_us = std::max(result.critical_path_us, ready[t]);
        result.raw_critical_path_us = std::max(result.raw_critical_path_us, raw_ready[t]);
    }
    return result;
}

}  // namespace slipstream::trace
