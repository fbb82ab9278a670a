#include "tools/slipstream/trace_report.hpp"
#include "tools/slipstream/text_table.hpp"

namespace slipstream::cli {
namespace {

u64 ranges_of(const trace::recorded_trace& t)
{
    u64 n = 0;
    for (const auto& task : t.tasks) n += task.accesses.size();
    return n;
}

} // namespace

void print_edges(std::FILE* to, const trace::hazard_analysis& a)
{
    std::fprintf(to, "  edges         %zu", a.edges.size());
    const char* separator = ": ";
    for (std::size_t kinds = 1; kinds < a.edges_by_kinds.size(); ++kinds) {
        if (a.edges_by_kinds[kinds] == 0) continue;
        std::fprintf(to, "%s%s %llu", separator, trace::edge_kind_name(static_cast<std::uint8_t>(kinds)).c_str(),
                     static_cast<unsigned long long>(a.edges_by_kinds[kinds]));
        separator = ", ";
    }
    std::fputc('\n', to);
}

void print_trace(std::FILE* to, const options& o, const trace::recorded_trace& t, const trace::hazard_analysis& a)
{
    const bool data = t.dependencies == trace::dependency_source::data;
    std::fprintf(to, "Trace %s%s%s\n", o.kineto.c_str(), !o.kineto.empty() && !o.et.empty() ? " with " : "", o.et.c_str());
    std::fprintf(to, "  tasks         %zu (matched %llu, unmatched %llu, dropped %llu), %llu byte ranges in %zu storages\n",
                 t.tasks.size(), static_cast<unsigned long long>(t.matched), static_cast<unsigned long long>(t.unmatched),
                 static_cast<unsigned long long>(t.dropped), static_cast<unsigned long long>(ranges_of(t)), t.spaces.size());
    for (const auto& reason : t.drop_reasons)
        std::fprintf(to, "  dropped       %llu: %s\n", static_cast<unsigned long long>(reason.count), reason.reason.c_str());
    std::fprintf(to, "  dependencies  %s\n",
                 data ? "data: hazards between byte ranges"
                      : "stream order: what streams and synchronisation imposed, NOT data dependencies");
    print_edges(to, a);
    std::fprintf(to, "  contradicted  %llu (the recorded run did not keep these)\n",
                 static_cast<unsigned long long>(a.contradicted));
    std::fprintf(to, "  work          %s us%s, critical path %s us: at most %.2fx over serial; without address reuse %s us\n",
                 microseconds(a.work_us).c_str(), a.durations_known ? "" : " (durations not recorded: 1 us each)",
                 microseconds(a.critical_path_us).c_str(), a.speedup_unlimited(), microseconds(a.raw_critical_path_us).c_str());
    for (const auto& note : t.notes) std::fprintf(to, "  note          %s\n", note.c_str());
}

void write_edges(json_writer& w, const trace::hazard_analysis& a)
{
    w.Key("edges");
    w.StartObject();
    field(w, "total", static_cast<u64>(a.edges.size()));
    for (std::size_t kinds = 1; kinds < a.edges_by_kinds.size(); ++kinds)
        if (kinds < trace::edge_order || a.edges_by_kinds[kinds] != 0)
            field(w, trace::edge_kind_name(static_cast<std::uint8_t>(kinds)).c_str(), static_cast<u64>(a.edges_by_kinds[kinds]));
    w.EndObject();
}

void write_trace(json_writer& w, const options& o, const trace::recorded_trace& t, const trace::hazard_analysis& a)
{
    w.Key("trace");
    w.StartObject();
    field(w, "kineto", o.kineto);
    field(w, "et", o.et);
    field(w, "tasks", static_cast<u64>(t.tasks.size()));
    field(w, "dependencies", t.dependencies == trace::dependency_source::data ? "data" : "stream_order");
    write_edges(w, a);
    field(w, "contradicted", static_cast<u64>(a.contradicted));
    field(w, "matched", static_cast<u64>(t.matched));
    field(w, "unmatched", static_cast<u64>(t.unmatched));
    field(w, "dropped", static_cast<u64>(t.dropped));
    w.Key("drop_reasons");
    w.StartArray();
    for (const auto& reason : t.drop_reasons) {
        w.StartObject();
        field(w, "reason", reason.reason);
        field(w, "count", static_cast<u64>(reason.count));
        w.EndObject();
    }
    w.EndArray();
    field(w, "byte_ranges", ranges_of(t));
    field(w, "storages", static_cast<u64>(t.spaces.size()));
    field(w, "in_degree_max", a.in_degree_max);
    field(w, "durations_known", a.durations_known);
    field(w, "work_us", a.work_us);
    field(w, "critical_path_us", a.critical_path_us);
    field(w, "raw_critical_path_us", a.raw_critical_path_us);
    w.Key("notes");
    w.StartArray();
    for (const auto& note : t.notes) put(w, note);
    w.EndArray();
    w.EndObject();
}

} // namespace slipstream::cli
