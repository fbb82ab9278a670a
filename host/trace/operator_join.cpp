// join_operators: by id first, by per-thread order second.
#include "operator_join.hpp"

#include <algorithm>
#include <map>

#include "id_map.hpp"

namespace slipstream::trace {

namespace {

// Node names in the log's numbering, so that comparing two names is comparing two integers.
std::vector<std::uint32_t> names_in_log(const kineto_log& log, const execution_trace& et) {
    std::vector<std::uint32_t> id(et.names.size(), no_node);
    for (std::uint32_t i = 0; i < et.names.size(); ++i) log.names.find(et.names.text(i), id[i]);
    return id;
}

operator_join join_by_record_function(const kineto_log& log, const execution_trace& et,
                                      const std::vector<std::uint32_t>& name_of) {
    operator_join join;
    join.by_record_function = true;
    join.node_of_op.assign(log.cpu_ops.size(), no_node);
    id_map<std::uint32_t> node_of_rf;
    for (std::uint32_t n = 0; n < et.nodes.size(); ++n)
        if (et.nodes[n].record_function != 0) node_of_rf.emplace(et.nodes[n].record_function, n);
    join.nodes = node_of_rf.size();
    for (std::size_t o = 0; o < log.cpu_ops.size(); ++o) {
        const std::uint64_t rf = log.cpu_ops[o].record_function;
        if (rf == 0 || rf == no_id) continue;
        ++join.ops;
        const auto it = node_of_rf.find(rf);
        if (it == node_of_rf.end() || name_of[et.nodes[it->second].name] != log.cpu_ops[o].name) continue;
        join.node_of_op[o] = it->second;
        ++join.matched;
    }
    return join;
}

struct thread_calls {
    std::vector<std::uint32_t> calls;  // op or node indices in call order
};

// Walks two call sequences in step. After a difference it skips as few calls as possible on either side such that the
// next three agree again; pairs are appended to `pairs`.
void align(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
           std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs, std::uint64_t& search_budget) {
    constexpr std::size_t skip_max = 64, agree = 3;
    std::size_t i = 0, j = 0, lost = 0;
    const auto agrees = [&](std::size_t x, std::size_t y) {
        for (std::size_t k = 0; k < agree; ++k) {
            if (x + k >= a.size() || y + k >= b.size()) return k > 0;
            if (a[x + k] != b[y + k]) return false;
        }
        return true;
    };
    while (i < a.size() && j < b.size()) {
        if (a[i] == b[j]) {
            pairs.emplace_back(static_cast<std::uint32_t>(i++), static_cast<std::uint32_t>(j++));
            continue;
        }
        // Sequences that never agree are not the same thread: stop before the search costs more than it can find.
        if (search_budget == 0 || (++lost > 256 && lost > pairs.size())) return;
        bool found = false;
        for (std::size_t skip = 1; skip <= skip_max && !found; ++skip)
            for (std::size_t x = 0; x <= skip && search_budget != 0 && !found; ++x, --search_budget)
                if (agrees(i + x, j + skip - x)) {
                    i += x;
                    j += skip - x;
                    found = true;
                }
        if (!found) {
            ++i;
            ++j;
        }
    }
}

operator_join join_by_order(const kineto_log& log, const execution_trace& et,
                            const std::vector<std::uint32_t>& name_of) {
    operator_join join;
    join.node_of_op.assign(log.cpu_ops.size(), no_node);

    std::map<std::uint32_t, thread_calls> log_threads;
    for (std::uint32_t o = 0; o < log.cpu_ops.size(); ++o)
        if (log.cpu_ops[o].external != no_id) log_threads[log.cpu_ops[o].thread].calls.push_back(o);
    std::map<std::uint64_t, thread_calls> et_threads;
    for (std::uint32_t n = 0; n < et.nodes.size(); ++n)
        if (et.nodes[n].record_function != 0) et_threads[et.nodes[n].thread].calls.push_back(n);

    std::vector<thread_calls*> left, right;
    for (auto& [tid, t] : log_threads) {
        std::stable_sort(t.calls.begin(), t.calls.end(), [&](std::uint32_t a, std::uint32_t b) {
            return log.cpu_ops[a].external < log.cpu_ops[b].external;
        });
        join.ops += t.calls.size();
        left.push_back(&t);
    }
    for (auto& [tid, t] : et_threads) {
        std::stable_sort(t.calls.begin(), t.calls.end(), [&](std::uint32_t a, std::uint32_t b) {
            return et.nodes[a].record_function < et.nodes[b].record_function;
        });
        join.nodes += t.calls.size();
        right.push_back(&t);
    }
    const auto longer = [](const thread_calls* a, const thread_calls* b) { return a->calls.size() > b->calls.size(); };
    std::stable_sort(left.begin(), left.end(), longer);
    std::stable_sort(right.begin(), right.end(), longer);
    // Thread ids of the two files have nothing in common, so each pair of threads is tried; a run has few threads.
    constexpr std::size_t threads_max = 32;
    if (left.size() > threads_max) left.resize(threads_max);
    if (right.size() > threads_max) right.resize(threads_max);

    // About a second of searching in all: genuine pairs need a small part of it, strangers must not take minutes.
    std::uint64_t search_budget = 200'000'000;
    for (const thread_calls* l : left) {
        std::vector<std::uint32_t> l_names;
        for (const std::uint32_t o : l->calls) l_names.push_back(log.cpu_ops[o].name);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> best, pairs;
        std::size_t best_index = right.size();
        for (std::size_t r = 0; r < right.size(); ++r) {
            if (right[r] == nullptr || right[r]->calls.size() <= best.size()) continue;
            std::vector<std::uint32_t> r_names;
            for (const std::uint32_t n : right[r]->calls) r_names.push_back(name_of[et.nodes[n].name]);
            pairs.clear();
            align(l_names, r_names, pairs, search_budget);
            if (pairs.size() > best.size()) {
                best.swap(pairs);
                best_index = r;
            }
        }
        if (best_index == right.size()) continue;
        for (const auto& [i, j] : best) join.node_of_op[l->calls[i]] = right[best_index]->calls[j];
        join.matched += best.size();
        right[best_index] = nullptr;
    }
    return join;
}

}  // namespace

operator_join join_operators(const kineto_log& log, const execution_trace& et) {
    const std::vector<std::uint32_t> name_of = names_in_log(log, et);
    operator_join by_id = join_by_record_function(log, et, name_of);
    // A few equal small numbers prove nothing; a join by id is believed when nearly all names agree.
    if (by_id.matched_share() > 0.95) return by_id;
    operator_join by_order = join_by_order(log, et, name_of);
    return by_order.matched_share() > by_id.matched_share() ? by_order : by_id;
}

}  // namespace slipstream::trace
