// The development traces, where they are at hand: their edges are known kind by kind.
#include "trace_catch.hpp"

#include <cstdlib>

#include "host/trace/cells.hpp"
#include "host/trace/hazard_analysis.hpp"
#include "host/trace/trace_import.hpp"
#include "trace_files.hpp"

using namespace slipstream::trace;
using namespace trace_test;

TEST_CASE("the development traces give their known tasks and edges", "[trace][recorded]") {
    const char* dir = std::getenv("SLIPSTREAM_TRACES");
    if (dir == nullptr || *dir == '\0') {
        WARN("skipped: SLIPSTREAM_TRACES not set");
        return;
    }
    const std::string base = dir;
    SECTION("dlrm_v100_rank0 by data") {
        const recorded_trace t =
            import_trace(base + "/dlrm_v100_rank0.kineto.json.gz", base + "/dlrm_v100_rank0.et.json.gz");
        CHECK(t.tasks.size() == 261);
        CHECK(t.matched == 261);
        CHECK(t.unmatched == 0);
        CHECK(t.dropped == 0);
        const hazard_analysis a = analyze(t);
        CHECK(a.edges.size() == 784);
        CHECK(a.edges_by_kinds[edge_raw] == 326);
        CHECK(a.edges_by_kinds[edge_raw | edge_waw] == 76);
        CHECK(a.edges_by_kinds[edge_raw | edge_war] == 23);
        CHECK(a.edges_by_kinds[edge_war] == 242);
        CHECK(a.edges_by_kinds[edge_waw] == 117);
        CHECK(a.contradicted == 1);
        CHECK(a.in_degree_max == 15);
        CHECK(a.speedup_unlimited() == Approx(2.00).margin(0.01));
        CHECK(a.work_us / a.raw_critical_path_us == Approx(3.16).margin(0.01));
    }
    SECTION("dlrm_v100_rank0 from its execution trace alone") {
        const recorded_trace t = import_trace("", base + "/dlrm_v100_rank0.et.json.gz");
        CHECK(t.tasks.size() == 216);
        CHECK_FALSE(t.durations_known);
    }
    SECTION("bert_small_h100 alone is stream order") {
        const recorded_trace t = import_trace(base + "/bert_small_h100.kineto.json.gz", "");
        CHECK(t.dependencies == dependency_source::stream_order);
        CHECK(t.tasks.size() == 61);
        const hazard_analysis a = analyze(t);
        CHECK(a.edges_by_kinds[edge_order] == 60);
        CHECK(a.edges.size() == 60);
    }
    SECTION("the execution trace of another run is refused") {
        CHECK(has(error_of([&] {
                      import_trace(base + "/bert_small_h100.kineto.json.gz", base + "/dlrm_v100_rank0.et.json.gz");
                  }),
                  "does not belong to"));
    }
}
