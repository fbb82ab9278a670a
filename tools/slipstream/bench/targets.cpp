#include "tools/slipstream/bench/targets.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/independent_tasks.hpp"
#include "tools/slipstream/bench/metg.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/bench/target_list.hpp"
#include "tools/slipstream/bench/wide_shape.hpp"
#include <algorithm>
#include <cmath>
#include <spdlog/spdlog.h>

namespace slipstream::bench {
namespace {

/// Of several parts an SM has one worker.
bench_setup divided_into(bench_setup s, u32 parts)
{
    s.configuration.parts = parts;
    if (parts > 1) s.configuration.workers_per_sm = 1;
    return s;
}

using namespace floor_names;

// Rates are asked for over ten million tasks: more time, and fewer repetitions where that is not enough.
bench_setup long_runs(const bench_setup& s)
{
    bench_setup out = s;
    out.how_long.repeats = std::min(s.how_long.repeats, 5u);
    out.how_long.seconds = 15 * s.how_long.seconds;
    out.how_long.tasks_wanted = 5'000'000;
    return out;
}

/// The figure of an engine of several parts, beside that of one control block.
figure beside_one(figure several, const figure& one)
{
    several.further.emplace_back("one_control_block", one.value.median);
    if (several.verified && !one.verified) {
        several.verified = false;
        several.note = "with one control block " + one.note;
    }
    return several;
}

/// `parts`: of the engine of these rows.
void add_rate_rows(target_list& list, const bench_setup& s, u32 parts)
{
    const bench_setup many = long_runs(s);
    const bench_setup divided = divided_into(many, parts);
    const std::string of_parts = parts > 1 ? ", " + std::to_string(parts) + " parts" : "";
    const auto measured = [&](declared what, const figure& one) {
        return parts == 1 ? one : beside_one(throughput_figure(divided, what, 256), one);
    };
    const auto as_asked = [&](const figure& f) {
        list.add("tasks of the larger run", 2.0 * static_cast<double>(f.tasks), 1e7, true);
        list.further("ring_slots", "slots of the ring, of each part", 4096);
    };

    const figure handles = measured(declared::handles, throughput_figure(many, declared::handles, 256));
    list.row("independent tasks that write 4 B, handles (2 in, 1 out), window 256" + of_parts, ">= 25 M tasks/s over 10^7 tasks",
             handles);
    list.limit(">= 25 M/s", 25, true);
    as_asked(handles);

    const figure one_ranges = throughput_figure(many, declared::four_ranges, 256);
    const figure ranges = measured(declared::four_ranges, one_ranges);
    list.row("the same with 4 raw ranges, disjoint, unaligned, interleaved in 1 MB"
                 + (parts > 1 ? " of each of " + std::to_string(parts) + " parts" : ""),
             ">= 10 M tasks/s over 10^7 tasks", ranges);
    list.limit(">= 10 M/s", 10, true);
    as_asked(ranges);

    list.row("that row at window 1024, both with one control block", ">= 50 % of window 256",
             throughput_figure(s, declared::four_ranges, 1024));
    list.limit_by(one_ranges, 0.5, ">= 50 % of window 256", true);
}

void add_dependency_rows(target_list& list, const bench_setup& s)
{
    list.row("dependent chain, 4 KB, scheduler's choice of worker", "<= 1.4 x same-CTA hop, <= 1/3 of graph replay",
             chain_figure(s, 4096, named::by_handle));
    list.limit_by(same_cta_hop(4096), 1.4, "<= 1.4 x same-CTA hop");
    const auto of_either = [](auto name_of, auto... args) {
        return std::vector{name_of(args..., edge_kind::full), name_of(args..., edge_kind::early)};
    };
    list.limit_by(of_either(graph_chain, 4096u), 1.0 / 3, "<= 1/3 of graph replay, by full or programmatic edges");

    const figure moved = moved_chain_figure(s);
    list.row("the same chain, successor on another SM", "<= 1.3 x release hop", moved);
    list.limit_by(release_hop(4096), 1.3, "<= 1.3 x release hop");
    list.further("hops_looked_at", "hops of which the SMs are known", 1000, true);
    list.further("hops_that_stayed_on_their_sm", "of these, hops that stayed on their SM", 4);

    for (const u32 width : {2u, 8u}) {
        list.row(width == 2 ? "diamonds, 4 KB" : "fan-out and fan-in of 8, 4 KB",
                 "<= 0.9 x graph replay, <= 1/3 of streams and events", fan_figure(s, width, fan_parts::handles));
        list.limit_by(of_either(graph_fan, width), 0.9, "<= 0.9 x graph replay, by full or programmatic edges");
        list.limit_by(streams_fan(width), 1.0 / 3, "<= 1/3 of streams and events");
    }

    list.row("task as wide as the workers -> the same, 4 KB a block", "<= 1.3 x grid barrier", wide_chain_figure(s));
    list.limit_by(grid_barrier(4096), 1.3, "<= 1.3 x grid barrier");
}

/// `parts`: of the engine. Slipstream runs as many rows as Task Bench's own runs have (SC'20), since an engine begins but once. A
/// graph begins in one launch: a hundred show as much, and are sooner made. On the host device a thousand would take too long.
void add_metg_row(target_list& list, const bench_setup& s, u32 parts)
{
    const std::string row = "METG(50 %), stencil_1d, as wide as the workers"
                            + (parts > 1 ? ", " + std::to_string(parts) + " parts" : ""),
                      wanted = "<= 8 us, <= 1/2 of graph replay's";
    const bench_setup divided = divided_into(s, parts);
    const metg_request wanted_of{{"stencil_1d"}, {"slipstream"}, 2, s.device.is_cuda() ? 1000u : 0u};
    metg_result ours = measure_metg(divided, wanted_of);
    figure replay{"METG(50 %), stencil_1d, graph-replay", "us", {}};
    if (s.device.is_cuda()) {
        metg_result theirs = measure_metg(divided, {{"stencil_1d"}, {"graph-replay"}, 2});
        ours.peak.rate = theirs.peak.rate = std::max(ours.peak.rate, theirs.peak.rate); // nobody may be better than the peak
        replay = metg_figure(theirs, "graph-replay");
    }
    figure f = metg_figure(ours, "slipstream");
    f.further.emplace_back("control_blocks", parts);
    if (parts > 1) f = beside_one(std::move(f), metg_figure(measure_metg(s, wanted_of), "slipstream"));
    const bool comparable = replay.verified && std::isfinite(replay.value.median);
    if (comparable) f.alternatives = {{replay.name, replay.value.median}};
    list.row(row, wanted, f);
    list.limit("<= 8 us", 8);
    if (comparable)
        list.limit("<= 1/2 of graph replay's", 0.5 * replay.value.median);
    else
        list.missing(replay.name);
}

void add_wide_rows(target_list& list, const bench_setup& s)
{
    for (const wide_kind kind : {wide_kind::even, wide_kind::skewed}) {
        list.row("one task of 10^6 blocks, " + std::string(wide_name(kind)), ">= 1.0 x the same body launched",
                 large_figure(s, kind));
        list.share_of(launched(kind), 1, "rate, of the same body launched");
    }
    const std::string trouble = bodies_trouble(s);
    for (const wide_kind kind : body_kinds) {
        const bool streams = kind == wide_kind::copy || kind == wide_kind::reduction;
        const std::string name = "bodies alone with the others registered: " + std::string(wide_name(kind));
        const std::string wanted = std::string(streams ? ">= 95 %" : ">= 90 %") + " of launched in its best configuration";
        if (!trouble.empty()) {
            list.no_row(name, wanted, trouble);
            continue;
        }
        list.row(name, wanted, body_figure(s, kind));
        list.share_of(launched(kind), streams ? 0.95 : 0.9, "rate, of launched");
        list.further("launched_waves", "waves of the launch", 100, true);
    }
    const std::string name = "bodies mixed: all four at once", wanted = ">= 90 % of the launched total";
    if (!trouble.empty()) return list.no_row(name, wanted, trouble);
    list.row(name, wanted, mixed_bodies_figure(s));
    list.share_of(launched_total, 0.9, "rate, of the launched total");
}

void add_growth_row(target_list& list, const bench_setup& s)
{
    list.row("as work grows: 10^3 to 10^7 tasks, windows 16 to 1024, 1 to 64 accesses",
             "10^7 tasks <= 1.1 x 10^5 per task, no doubling > 2.5 x", bench_growth(s).back());
    list.limit("10^7 tasks <= 1.1 x 10^5, a task", 1.1);
    list.further("longest_run_tasks", "tasks of the longest run", 1e7, true);
    for (const char* what : {"tasks", "windows", "chains", "accesses"}) // chains: by window
        list.further("worst_doubling_of_" + std::string(what), "worst doubling of " + std::string(what), 2.5);
}

std::string verdict_text(verdict v)
{
    return v == verdict::met ? "met" : v == verdict::falls_short ? "short" : "not measured";
}

} // namespace

std::vector<target> measure_targets(const bench_setup& wanted, bool on_cuda)
{
    spdlog::info("minutes: each figure is told as soon as it is there; the table with floors and verdicts comes last");
    bench_setup s = wanted; // one control block, but where a row says otherwise
    s.configuration.parts = 1;
    target_list list(wanted.floors, on_cuda);
    list.row("host cost of submit, one thread, one slot", "<= 20 ns", bench_submit(s).front());
    list.limit("<= 20 ns", 20);
    list.row("bus payload per task of one slot, both ways, ring full", "<= 96 B", bus_figure(s, declared::handles));
    list.limit("<= 96 B", 96);
    list.row("the same, of two slots", "<= 160 B", bus_figure(s, declared::four_ranges));
    list.limit("<= 160 B", 160);
    const u32 parts = wanted.parts_given ? wanted.configuration.parts : parts_usual;
    add_rate_rows(list, s, parts);
    add_dependency_rows(list, s);
    list.row("submit to seen complete, idle GPU", "<= 1.5 x host-GPU-host flag echo", bench_echo(s).front());
    list.limit_by(flag_echo, 1.5, "<= 1.5 x flag echo");
    add_wide_rows(list, s);
    add_metg_row(list, s, parts);
    list.row("idle scheduler's cost to a memory-bound kernel on the other SMs", "<= 2 %", idle_figure(s));
    list.limit("<= 2 %", 2);
    add_growth_row(list, s);
    return list.take();
}

void print_targets(std::FILE* to, const std::vector<target>& targets)
{
    for (const target& t : targets) {
        std::fprintf(to, "  %-12s  %s: wanted %s\n", verdict_text(t.outcome).c_str(), t.row.c_str(), t.wanted.c_str());
        if (t.measured)
            std::fprintf(to, "                %s %s (p10 %s, p90 %s)\n", number_text(t.measured->value.median).c_str(),
                         t.measured->unit.c_str(), number_text(t.measured->value.p10).c_str(),
                         number_text(t.measured->value.p90).c_str());
        if (t.measured)
            for (const auto& [key, value] : t.measured->further)
                std::fprintf(to, "                with %s %s\n", key.c_str(), number_text(value).c_str());
        for (const condition& c : t.conditions)
            std::fprintf(to, "                %s: %s, limit %s: %s\n", c.what.c_str(), number_text(c.value).c_str(),
                         number_text(c.limit).c_str(), c.holds() ? "holds" : "does not hold");
        if (t.measured)
            for (const reference& r : t.measured->alternatives)
                std::fprintf(to, "                alternative: %s %s %s\n", r.name.c_str(), number_text(r.value).c_str(),
                             t.measured->unit.c_str());
        if (!t.why.empty()) std::fprintf(to, "                %s\n", t.why.c_str());
    }
}

void write_targets(cli::json_writer& w, const std::vector<target>& targets)
{
    w.Key("targets");
    w.StartArray();
    for (const target& t : targets) {
        w.StartObject();
        cli::field(w, "row", t.row);
        cli::field(w, "wanted", t.wanted);
        cli::field(w, "verdict", verdict_text(t.outcome));
        if (!t.why.empty()) cli::field(w, "why", t.why);
        if (t.measured) {
            w.Key("figure");
            w.StartObject();
            write_figure(w, *t.measured);
            w.EndObject();
        }
        w.Key("conditions");
        w.StartArray();
        for (const condition& c : t.conditions) {
            w.StartObject();
            cli::field(w, "what", c.what);
            cli::field(w, "value", c.value);
            cli::field(w, "limit", c.limit);
            cli::field(w, "holds", c.holds());
            w.EndObject();
        }
        w.EndArray();
        w.EndObject();
    }
    w.EndArray();
}

} // namespace slipstream::bench
