// pipeline on the host device: the critical path it claims, with few slots and many, and the check.
#include "trace_catch.hpp"

#include "workload_run.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

TEST_CASE("the critical path that pipeline claims is the longest one of its hazards", "[pipeline]")
{
    const auto device = engines::open_device("host");
    for (const u32 stages : {1u, 2u, 3u, 8u})
        for (const u32 items : {1u, 2u, 5u, 30u})
            for (const u32 slots : {1u, 2u, 3u, 50u})
                for (const char* const handles : {"0", "1"}) {
                    const auto load = workload_named("pipeline")
                                          .make(*device,
                                                {{"stages", std::to_string(stages)},
                                                 {"items", std::to_string(items)},
                                                 {"slots", std::to_string(slots)},
                                                 {"handles", handles},
                                                 {"work_us", "50"}},
                                                1);
                    INFO(stages << " stages, " << items << " items, " << slots << " slots, handles " << handles);
                    CHECK(load->program().tasks().size() == stages * items);
                    REQUIRE(load->known_critical_path());
                    const u64 tasks = load->known_critical_path()->tasks;
                    CHECK(tasks == longest_path(load->program()));
                    CHECK(load->known_critical_path()->work_us == Approx(tasks * 1.)); // a fiftieth of 50
                }
}

TEST_CASE("pipeline verifies on every host engine, with small windows and rings, one slot and many blocks", "[pipeline]")
{
    for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"})
        for (const parameters& values :
             {parameters{{"work_us", "1"}}, parameters{{"stages", "1"}, {"items", "40"}},
              parameters{{"slots", "1"}, {"items", "30"}},
              parameters{{"handles", "0"}, {"slots", "3"}, {"blocks", "5"}, {"cells", "3"}, {"items", "40"}}})
            for (const u32 window : {16u, 256u}) {
                const verdict v = run_workload("pipeline", engine, small_engine(window, window / 4), values, 1, 2);
                INFO(engine << ", window " << window << ": " << v.detail);
                CHECK(v.verified);
            }
}

TEST_CASE("a pipeline without one RAW or WAR edge does not verify on an engine that reorders", "[pipeline][broken]")
{
    config c = small_engine(256, 1024);
    c.host_workers = 16; // somebody must be idle while one worker is held
    for (const std::string kind : {"RAW", "WAR"})
        for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"}) {
            INFO(kind << ", " << engine);
            const parameters values{{"stages", "5"}, {"items", "12"}, {"work_us", "1"}, {"break", kind}};
            CHECK(run_workload("pipeline", engine, c, values, 1).verified == (engine == "serial"));
        }
}

TEST_CASE("pipeline refuses bad parameters with bounds", "[pipeline]")
{
    CHECK(refusal("pipeline", {{"stages", "0"}}) == "pipeline: stages = '0' must be a whole number from 1 to 4096");
    CHECK(refusal("pipeline", {{"depth", "3"}}).find("pipeline has no parameter 'depth': use blocks, break, cells, handles") == 0);
    CHECK(refusal("pipeline", {{"handles", "2"}}) == "pipeline: handles = '2' must be a whole number from 0 to 1");
    CHECK(refusal("pipeline", {{"stages", "4096"}, {"items", "1000000"}})
          == "pipeline: stages x items must be at most 10000000 tasks");
    CHECK(refusal("pipeline", {{"stages", "4096"}, {"slots", "4096"}}).find("pipeline: stages x (slots + 1) x cells") == 0);
    CHECK(refusal("pipeline", {{"break", "WAW"}}).find("no WAW edge of this program can be removed so that it shows") == 0);
}
