// trace_import: turns the logs into tasks in submission order and gives each its ranges or its explicit order.
#include "trace_import.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <vector>

#include "execution_trace.hpp"
#include "id_map.hpp"
#include "kineto_log.hpp"
#include "operator_join.hpp"
#include "stream_order.hpp"

namespace slipstream::trace {

namespace {

std::string count_of(std::uint64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

void drop(recorded_trace& trace, const char* reason, std::uint64_t count) {
    if (count == 0) return;
    trace.drop_reasons.push_back({reason, count});
    trace.dropped += count;
}

// The launch call of each correlation id. Several calls may share one (runtime over driver): the outer starts first.
id_map<std::uint32_t> launch_calls(const kineto_log& log) {
    id_map<std::uint32_t> call_of;
    call_of.reserve(log.runtime_calls.size());
    for (std::uint32_t c = 0; c < log.runtime_calls.size(); ++c) {
        const auto [it, fresh] = call_of.emplace(log.runtime_calls[c].correlation, c);
        if (!fresh && log.runtime_calls[c].start_us < log.runtime_calls[it->second].start_us) it->second = c;
    }
    return call_of;
}

struct submitted_events {
    std::vector<std::uint32_t> order;  // indices into kineto_log::gpu_events, in submission order, without duplicates
    std::vector<std::uint32_t> call;   // by gpu event: index into runtime_calls, or no_node
};

// Creates the tasks (without accesses and order) in submission order.
submitted_events make_tasks(const kineto_log& log, recorded_trace& trace) {
    submitted_events s;
    const auto call_of = launch_calls(log);
    s.call.assign(log.gpu_events.size(), no_node);
    std::vector<double> submit_us(log.gpu_events.size());
    for (std::uint32_t g = 0; g < log.gpu_events.size(); ++g) {
        const auto it = call_of.find(log.gpu_events[g].correlation);
        if (it != call_of.end()) s.call[g] = it->second;
        submit_us[g] = it != call_of.end() ? log.runtime_calls[it->second].start_us : log.gpu_events[g].start_us;
    }
    s.order.resize(log.gpu_events.size());
    std::iota(s.order.begin(), s.order.end(), 0u);
    std::sort(s.order.begin(), s.order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple(submit_us[a], log.gpu_events[a].start_us, a) <
               std::tuple(submit_us[b], log.gpu_events[b].start_us, b);
    });

    // Kernels of one graph launch share a correlation id, so only a record equal in everything is a duplicate. Others may lie
    // between the two in the order of tasks; in this one none does.
    const auto facts = [&](std::uint32_t g) {
        const kineto_log::gpu_event& e = log.gpu_events[g];
        return std::tuple(e.correlation, e.name, e.kind, e.start_us, e.duration_us, e.stream, e.device);
    };
    std::vector<std::uint32_t> alike = s.order;
    std::sort(alike.begin(), alike.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tuple_cat(facts(a), std::tuple(a)) < std::tuple_cat(facts(b), std::tuple(b));
    });
    std::vector<bool> duplicate(log.gpu_events.size());
    for (std::size_t i = 1; i < alike.size(); ++i)
        duplicate[alike[i]] = log.gpu_events[alike[i]].correlation != no_id && facts(alike[i - 1]) == facts(alike[i]);
    drop(trace, "duplicate record", std::erase_if(s.order, [&](std::uint32_t g) { return duplicate[g]; }));

    std::uint64_t no_launch = 0, no_grid = 0;
    trace.tasks.reserve(s.order.size());
    for (const std::uint32_t g : s.order) {
        const kineto_log::gpu_event& e = log.gpu_events[g];
        recorded_task t;
        t.name = log.names.text(e.name);
        t.kind = e.kind;
        t.submit_us = submit_us[g];
        t.start_us = e.start_us;
        t.duration_us = e.duration_us;
        t.duration_known = true;
        t.launch_recorded = s.call[g] != no_node;
        t.device = e.device;
        t.stream = e.stream;
        t.grid = e.grid;
        t.block = e.block;
        t.shared_bytes = e.shared_bytes;
        t.moved_bytes = e.bytes;
        t.bytes_known = e.has_bytes;
        no_launch += !t.launch_recorded;
        no_grid += e.kind == task_kind::kernel && !e.has_grid;
        trace.tasks.push_back(std::move(t));
    }
    trace.durations_known = true;
    if (no_launch != 0)
        trace.notes.push_back(count_of(no_launch, "GPU task") +
                              " without a launch record (launched before the recorded window): kept, ordered by GPU start");
    if (no_grid != 0)
        trace.notes.push_back(count_of(no_grid, "kernel") + " without a recorded grid: one block of one thread assumed");
    return s;
}

std::vector<sync_point> resolve_syncs(const kineto_log& log) {
    const auto call_of = launch_calls(log);
    const auto call_us = [&](std::uint64_t correlation, double fall_back) {
        const auto it = call_of.find(correlation);
        return it == call_of.end() ? fall_back : log.runtime_calls[it->second].start_us;
    };
    std::vector<sync_point> points;
    points.reserve(log.sync_events.size());
    for (const auto& e : log.sync_events) {
        sync_point p;
        p.kind = e.kind;
        p.device = e.device;
        p.stream = e.stream;
        p.wait_on_stream = e.wait_on_stream;
        p.submit_us = call_us(e.correlation, e.start_us);
        p.recorded_us = call_us(e.record_correlation, p.submit_us);
        points.push_back(p);
    }
    std::stable_sort(points.begin(), points.end(),
                     [](const sync_point& a, const sync_point& b) { return a.submit_us < b.submit_us; });
    return points;
}

struct call_sites {
    std::vector<std::uint32_t> parent_of_op;  // by op: the enclosing op of the same thread, or no_node
    std::vector<std::uint32_t> op_of_call;    // by runtime call: the innermost enclosing op, or no_node
};

// Operators of a thread nest, so one sweep per thread with a stack answers for every launch call.
call_sites find_call_sites(const kineto_log& log) {
    call_sites sites;
    sites.parent_of_op.assign(log.cpu_ops.size(), no_node);
    sites.op_of_call.assign(log.runtime_calls.size(), no_node);
    struct item {
        std::uint32_t thread;
        double us;
        bool is_call;
        std::uint64_t order;   // ops of one start: outer before inner
        double minus_duration;
        std::uint32_t index;
    };
    std::vector<item> items;
    items.reserve(log.cpu_ops.size() + log.runtime_calls.size());
    for (std::uint32_t o = 0; o < log.cpu_ops.size(); ++o) {
        const auto& op = log.cpu_ops[o];
        items.push_back({op.thread, op.start_us, false, op.external, -op.duration_us, o});
    }
    for (std::uint32_t c = 0; c < log.runtime_calls.size(); ++c)
        items.push_back({log.runtime_calls[c].thread, log.runtime_calls[c].start_us, true, 0, 0, c});
    std::sort(items.begin(), items.end(), [](const item& a, const item& b) {
        // External ids count up with the calls; they decide where whole microseconds cannot.
        return std::tie(a.thread, a.us, a.is_call, a.order, a.minus_duration, a.index) <
               std::tie(b.thread, b.us, b.is_call, b.order, b.minus_duration, b.index);
    });
    std::vector<std::uint32_t> open;
    std::uint32_t thread = no_node;
    for (const item& it : items) {
        if (it.thread != thread) {
            open.clear();
            thread = it.thread;
        }
        const auto ended = [&](std::uint32_t o) {
            return log.cpu_ops[o].start_us + log.cpu_ops[o].duration_us < it.us;
        };
        while (!open.empty() && ended(open.back())) open.pop_back();
        const std::uint32_t innermost = open.empty() ? no_node : open.back();
        if (it.is_call) {
            sites.op_of_call[it.index] = innermost;
        } else {
            sites.parent_of_op[it.index] = innermost;
            open.push_back(it.index);
        }
    }
    return sites;
}

void set_accesses(recorded_task& task, const execution_trace& et, const execution_trace::node& node) {
    const auto first = et.accesses.begin() + static_cast<std::ptrdiff_t>(node.access_first);
    task.accesses.assign(first, first + node.access_count);
    task.accesses_known = true;
    if (task.bytes_known) return;
    for (const byte_access& a : task.accesses)
        task.moved_bytes = std::min(
            task.moved_bytes + (a.hi - a.lo) * (std::uint64_t{a.reads} + std::uint64_t{a.writes}), task_bytes_max);
}

// The nearest node from `n` outwards that touches device memory: a launch below an operator without tensors (a
// backward function, a wrapper) belongs to the operator around it. Parent links come from a file: bound the walk.
std::uint32_t node_with_accesses(const execution_trace& et, std::uint32_t n) {
    for (int steps = 0; n != no_node && steps < 64; ++steps, n = et.nodes[n].parent)
        if (et.nodes[n].access_count != 0) return n;
    return no_node;
}

void note_contiguity(recorded_trace& trace, const execution_trace& et) {
    if (et.assumed_contiguous != 0 && et.strided_tensors == 0)
        trace.notes.push_back("the execution trace (schema " + (et.schema.empty() ? "unknown" : et.schema) +
                              ") has no strides: tensors are taken as contiguous");
    else if (et.assumed_contiguous != 0)
        trace.notes.push_back(count_of(et.assumed_contiguous, "tensor") + " without strides taken as contiguous");
}

// Operators that have tensors but launch nothing, beyond those whose schema says that they are views.
bool launches_nothing(std::string_view name) {
    static constexpr std::string_view exact[] = {
        "aten::empty",        "aten::empty_like",      "aten::empty_strided",     "aten::new_empty",
        "aten::new_empty_strided", "aten::result_type", "aten::resize_",          "aten::set_",
        "aten::record_stream", "aten::detach_",        "aten::is_pinned",         "aten::requires_grad_",
        "aten::retain_grad",  "aten::_has_compatible_shallow_copy_type", "aten::squeeze_", "aten::unsqueeze_",
        "aten::t_",           "aten::transpose_",      "aten::as_strided_",       "aten::lift_fresh",
    };
    return std::find(std::begin(exact), std::end(exact), name) != std::end(exact);
}

// Without launch records, an operator counts as a task when it touches device memory, can launch, and no operator
// inside it is one: composite operators leave the work to their children.
bool may_be_task(const execution_trace& et, const execution_trace::node& n) {
    const std::string& name = et.names.text(n.name);
    if (n.record_function == 0 || n.access_count == 0 || n.is_view || launches_nothing(name)) return false;
    // Collectives appear as annotations with tensors, other annotations only frame what a user named.
    if (name.starts_with("nccl:")) return true;
    if (n.is_annotation) return false;
    return n.has_schema || n.writes_device;
}

}  // namespace

recorded_trace import_kineto(const std::string& kineto_path, const import_limits& limits) {
    const kineto_log log = read_kineto_log(kineto_path, limits, false);
    recorded_trace trace;
    trace.dependencies = dependency_source::stream_order;
    trace.notes.push_back(
        "Kineto alone: dependencies are stream order (per-stream chains and recorded synchronisation), "
        "not data dependencies; add the execution trace of the same run for those");
    make_tasks(log, trace);
    try {
        chain_streams(trace.tasks, resolve_syncs(log), limits.order_edges_max);
    } catch (const std::length_error& e) {
        throw import_error(kineto_path, "cuda_sync events", e.what(), "record fewer steps");
    }
    for (const recorded_task& t : trace.tasks) ++(t.launch_recorded ? trace.matched : trace.unmatched);
    if (log.sync_events.empty())
        trace.notes.push_back(
            "no usable cuda_sync event in the file: order between streams is not known and none is assumed");
    if (log.sync_events_without_ids != 0)
        trace.notes.push_back(count_of(log.sync_events_without_ids, "cuda_sync event") +
                              " without stream ids or of unknown kind: ignored");
    return trace;
}

recorded_trace import_kineto_with_et(const std::string& kineto_path, const std::string& et_path,
                                     const import_limits& limits) {
    const kineto_log log = read_kineto_log(kineto_path, limits, true);
    const execution_trace et = read_execution_trace(et_path, limits);
    const operator_join join = join_operators(log, et);
    const char* pair_remedy = "give the execution trace and the Kineto trace of the same steps of one run";
    // Genuine pairs match all but a few operators at the edges of the recording.
    constexpr double share_min = 0.8;
    if (join.matched_share() < share_min)
        throw import_error(et_path, "nodes",
                           "does not belong to " + kineto_path + ": only " + std::to_string(join.matched) + " of " +
                               count_of(std::min(join.ops, join.nodes), "operator") + " match",
                           pair_remedy);

    recorded_trace trace;
    trace.dependencies = dependency_source::data;
    trace.spaces = et.spaces;
    const submitted_events events = make_tasks(log, trace);
    const call_sites sites = find_call_sites(log);

    id_map<std::uint32_t> op_of_external;
    bool externals_are_correlations = true;  // 2023 and older
    for (const std::uint32_t g : events.order)
        externals_are_correlations &= log.gpu_events[g].external == no_id ||
                                      log.gpu_events[g].external == log.gpu_events[g].correlation;
    if (!externals_are_correlations)
        for (std::uint32_t o = 0; o < log.cpu_ops.size(); ++o)
            if (log.cpu_ops[o].external != no_id) op_of_external.emplace(log.cpu_ops[o].external, o);

    std::vector<std::uint32_t> kernels_of_node(et.nodes.size(), 0);
    std::vector<std::uint32_t> node_of_task(trace.tasks.size(), no_node);
    std::uint64_t accesses = 0, inherited = 0;
    for (std::size_t i = 0; i < trace.tasks.size(); ++i) {
        const std::uint32_t g = events.order[i];
        std::uint32_t op = no_node;
        if (events.call[g] != no_node) op = sites.op_of_call[events.call[g]];
        if (op == no_node && !externals_are_correlations) {
            const auto it = op_of_external.find(log.gpu_events[g].external);
            if (it != op_of_external.end()) op = it->second;
        }
        // An operator that only one of the files knows lends its place to the one around it, if that was still open.
        const double submit_us = trace.tasks[i].submit_us;
        for (int steps = 0; op != no_node && join.node_of_op[op] == no_node; ++steps) {
            op = steps < 256 ? sites.parent_of_op[op] : no_node;
            if (op != no_node && log.cpu_ops[op].start_us + log.cpu_ops[op].duration_us < submit_us) op = no_node;
        }
        if (op == no_node) continue;
        const std::uint32_t own = join.node_of_op[op];
        const std::uint32_t node = node_with_accesses(et, own);
        if (node == no_node) continue;
        inherited += node != own;
        node_of_task[i] = node;
        ++kernels_of_node[node];
        accesses += et.nodes[node].access_count;
        if (accesses > limits.accesses_max)
            throw import_error(et_path, "nodes",
                               "more than " + std::to_string(limits.accesses_max) + " byte ranges in all tasks",
                               "record fewer steps");
        set_accesses(trace.tasks[i], et, et.nodes[node]);
    }
    std::uint64_t shared = 0, launched = 0;
    for (std::size_t i = 0; i < trace.tasks.size(); ++i) {
        recorded_task& t = trace.tasks[i];
        ++(t.accesses_known ? trace.matched : trace.unmatched);
        launched += t.launch_recorded;
        if (!t.accesses_known) continue;
        // Which part of an operator's ranges each of several kernels moved is not recorded.
        const bool alone = kernels_of_node[node_of_task[i]] == 1;
        shared += !alone;
        if (alone) t.bytes_known = true;
    }
    // A short execution trace can match in full and still say nothing about most of the run.
    if (trace.matched == 0 || 2 * trace.matched < launched)
        throw import_error(et_path, "nodes",
                           "has ranges for only " + std::to_string(trace.matched) + " of " +
                               count_of(launched, "GPU task") + " launched in " + kineto_path,
                           pair_remedy);
    fence_unknown_tasks(trace.tasks);

    trace.notes.push_back("operators joined by " +
                          std::string(join.by_record_function ? "record function id" : "order in each thread") + ": " +
                          std::to_string(join.matched) + " of " + std::to_string(join.ops) + " in the Kineto trace, of " +
                          std::to_string(join.nodes) + " in the execution trace");
    if (trace.unmatched != 0)
        trace.notes.push_back(count_of(trace.unmatched, "GPU task") +
                              " without known ranges: each keeps its place in its stream (ORDER edges)");
    if (shared != 0)
        trace.notes.push_back(count_of(shared, "GPU task") +
                              " share an operator with others: each inherits all of its ranges, so they serialise");
    if (inherited != 0)
        trace.notes.push_back(count_of(inherited, "GPU task") +
                              " take the ranges of an enclosing operator, their own has none");
    if (log.process != no_id && et.process != no_id && log.process != et.process)
        trace.notes.push_back("the process ids of the two files differ (" + std::to_string(log.process) + " and " +
                              std::to_string(et.process) + "): check that they are of one run and rank");
    note_contiguity(trace, et);
    return trace;
}

recorded_trace import_execution_trace(const std::string& et_path, const import_limits& limits) {
    const execution_trace et = read_execution_trace(et_path, limits);
    std::vector<bool> candidate(et.nodes.size()), holds_candidate(et.nodes.size());
    for (std::uint32_t n = 0; n < et.nodes.size(); ++n) candidate[n] = may_be_task(et, et.nodes[n]);
    for (std::uint32_t n = 0; n < et.nodes.size(); ++n) {
        if (!candidate[n]) continue;
        // Stops at the first marked ancestor, which makes this linear and ends on cyclic parent links too.
        for (std::uint32_t p = et.nodes[n].parent; p != no_node && p != n && !holds_candidate[p]; p = et.nodes[p].parent)
            holds_candidate[p] = true;
    }
    std::vector<std::uint32_t> order;
    std::uint64_t composite = 0, with_ranges = 0;
    for (std::uint32_t n = 0; n < et.nodes.size(); ++n) {
        with_ranges += et.nodes[n].access_count != 0;
        if (candidate[n] && !holds_candidate[n]) order.push_back(n);
        if (candidate[n] && holds_candidate[n]) ++composite;
    }
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::tie(et.nodes[a].record_function, et.nodes[a].id) <
               std::tie(et.nodes[b].record_function, et.nodes[b].id);
    });
    if (order.empty())
        throw import_error(et_path, "nodes", "no operator touches device memory",
                           "record a run that uses the GPU, with ExecutionTraceObserver started before it");
    if (order.size() > limits.tasks_max)
        throw import_error(et_path, "nodes", "more than " + std::to_string(limits.tasks_max) + " tasks",
                           "record fewer steps");
    recorded_trace trace;
    trace.dependencies = dependency_source::data;
    trace.spaces = et.spaces;
    trace.tasks.reserve(order.size());
    for (const std::uint32_t n : order) {
        recorded_task t;
        t.name = et.names.text(et.nodes[n].name);
        t.kind = task_kind::op;
        t.bytes_known = false;
        set_accesses(t, et, et.nodes[n]);
        t.bytes_known = true;
        trace.tasks.push_back(std::move(t));
    }
    trace.matched = trace.tasks.size();
    drop(trace, "composite operator, its children are the tasks", composite);
    drop(trace, "view, allocation or annotation, launches nothing", with_ranges - composite - order.size());
    trace.notes.push_back(
        "execution trace alone: hazards without durations, streams or grids; one task per launching operator, times are "
        "synthetic");
    note_contiguity(trace, et);
    return trace;
}

recorded_trace import_trace(const std::string& kineto_path, const std::string& et_path, const import_limits& limits) {
    if (kineto_path.empty() && et_path.empty())
        throw import_error("replay", "arguments", "neither a Kineto nor an execution trace was given",
                           "name a Kineto file, or an execution trace with --et");
    if (et_path.empty()) return import_kineto(kineto_path, limits);
    if (kineto_path.empty()) return import_execution_trace(et_path, limits);
    return import_kineto_with_et(kineto_path, et_path, limits);
}

}  // namespace slipstream::trace
