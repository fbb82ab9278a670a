// fork-join on the host device: the critical path it claims, and the check.
#include "trace_catch.hpp"

#include "workload_run.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

TEST_CASE("the critical path that fork-join claims is the longest one of its hazards", "[fork_join]")
{
    const auto device = engines::open_device("host");
    for (const u32 depth : {1u, 2u, 3u, 17u})
        for (const u32 width : {1u, 2u, 40u}) {
            const auto load = workload_named("fork-join")
                                  .make(*device,
                                        {{"depth", std::to_string(depth)},
                                         {"width", std::to_string(width)},
                                         {"work_us", "50"},
                                         {"serial_us", "25"}},
                                        1);
            INFO("depth " << depth << ", width " << width);
            CHECK(load->program().tasks().size() == depth * (width + 2));
            REQUIRE(load->known_critical_path());
            CHECK(load->known_critical_path()->tasks == longest_path(load->program()));
            CHECK(load->known_critical_path()->tasks == 3 * depth);
            CHECK(load->known_critical_path()->work_us == Approx(depth * 2.)); // a fiftieth of 25 + 50 + 25
        }
}

TEST_CASE("fork-join verifies on every host engine, with small windows and rings, many blocks and few cells", "[fork_join]")
{
    for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"})
        for (const parameters& values : {parameters{{"work_us", "1"}}, parameters{{"depth", "1"}, {"width", "1"}},
                                         parameters{{"depth", "4"}, {"width", "300"}, {"work_us", "1"}},
                                         parameters{{"depth", "30"}, {"width", "3"}, {"blocks", "7"}, {"cells", "1"}}})
            for (const u32 window : {16u, 256u}) {
                const verdict v = run_workload("fork-join", engine, small_engine(window, window / 4), values, 1, 2);
                INFO(engine << ", window " << window << ": " << v.detail);
                CHECK(v.verified);
            }
}

TEST_CASE("a fork-join without one RAW edge does not verify on an engine that reorders", "[fork_join][broken]")
{
    config c = small_engine(256, 1024);
    c.host_workers = 16; // somebody must be idle while one worker is held
    const parameters values{{"depth", "4"}, {"width", "6"}, {"work_us", "1"}, {"break", "RAW"}};
    CHECK(run_workload("fork-join", "serial", {}, values, 1).verified);
    for (const std::string engine : {"slipstream", "slipstream-hostdep"}) {
        INFO(engine);
        CHECK_FALSE(run_workload("fork-join", engine, c, values, 1).verified);
    }
}

TEST_CASE("fork-join refuses bad parameters with bounds", "[fork_join]")
{
    CHECK(refusal("fork-join", {{"depth", "0"}}) == "fork-join: depth = '0' must be a whole number from 1 to 1000000");
    CHECK(refusal("fork-join", {{"height", "3"}}).find("fork-join has no parameter 'height': use blocks, break, cells, depth")
          == 0);
    CHECK(refusal("fork-join", {{"work_us", "-1"}}) == "fork-join: work_us = '-1' must be a number from 0 to 1e+06");
    CHECK(refusal("fork-join", {{"depth", "1000000"}}) == "fork-join: depth x (width + 2) must be at most 10000000 tasks");
    CHECK(refusal("fork-join", {{"width", "65536"}, {"cells", "4096"}}) == "fork-join: width x cells must be at most 67108864");
    CHECK(refusal("fork-join", {{"break", "WAR"}}).find("no WAR edge of this program can be removed so that it shows") == 0);
}
