// Every engine of the GPU over every workload: verified, counted, and wrong when an edge is missing.
#include "host/engines/engine.hpp"
#include "tests/stress/in_time.hpp"
#include "workloads/workload.hpp"

using namespace slipstream;
using namespace slipstream::workloads;
using slipstream::tests::in_time;

namespace {

const workload_type& named(const std::string& name)
{
    for (const workload_type& w : all_workloads())
        if (w.name == name) return w;
    throw std::logic_error(name + " is not in the list of workloads");
}

const workload_type& random_dag() { return named("random-dag"); }

u64 count_of(const engines::run_result& r, const std::string& what)
{
    for (const auto& [name, count] : r.counts)
        if (name == what) return count;
    return ~u64{0};
}

double phase_of(const engines::run_result& r, const std::string& what)
{
    for (const auto& [name, us] : r.phases)
        if (name == what) return us;
    return -1;
}

config small()
{
    config c;
    c.memory_bytes = 1 << 20;
    c.staging_bytes = 1 << 20;
    return c;
}

bool verified_once(const workload_type& type, const std::string& name, const parameters& values, u64 seed)
{
    const auto device = engines::open_device("cuda");
    const auto load = type.make(*device, values, seed);
    const auto engine = engines::make_engine(name, small(), *device, load->program().image());
    engine->prepare(load->program());
    load->reset();
    engine->run(load->program());
    return load->verify().verified;
}

// Runs each set of parameters with two seeds, three times each, on every engine; all must verify. What a check compares with
// is made once for all engines.
void check_on_every_engine(const std::string& workload, const std::vector<parameters>& shapes)
{
    for (const parameters& values : shapes)
        for (u64 seed = 1; seed <= 2; ++seed)
            in_time(60, [workload, values, seed] {
                const auto device = engines::open_device("cuda");
                const auto load = named(workload).make(*device, values, seed);
                for (const std::string& name : engines::engine_names(true)) {
                    const auto engine = engines::make_engine(name, small(), *device, load->program().image());
                    engine->prepare(load->program());
                    CHECK(engine->scheduling_sms() == (name.starts_with("slipstream") ? 1 : 0));
                    for (u32 run = 0; run < 3; ++run) {
                        load->reset();
                        const engines::run_result result = engine->run(load->program());
                        const verdict v = load->verify();
                        INFO(workload << " on " << name << ", seed " << seed << ", run " << run << ": " << v.detail);
                        REQUIRE(v.verified);
                        CHECK(result.makespan_us >= result.submit_us);
                        CHECK(result.cpu_us > 0);
                        CHECK(result.submitter_cpu_us > 0);
                    }
                }
            });
}

} // namespace

TEST_CASE("random-dag verifies on every engine of the GPU, run after run", "[gpu][engines]")
{
    check_on_every_engine("random-dag",
                          {{},
                           {{"width", "200"}, {"tasks", "3000"}, {"work_us", "2"}, {"cells", "12800"}},
                           {{"tasks", "400"}, {"whole", "0.05"}, {"after", "0.4"}, {"blocks", "40"}},
                           {{"tasks", "1"}}});
}

TEST_CASE("fork-join verifies on every engine of the GPU", "[gpu][engines]")
{
    check_on_every_engine("fork-join", {{{"work_us", "2"}}, {{"depth", "3"}, {"width", "700"}, {"blocks", "3"}, {"work_us", "1"}}});
}

TEST_CASE("pipeline verifies on every engine of the GPU, with one slot and several", "[gpu][engines]")
{
    check_on_every_engine("pipeline", {{{"work_us", "2"}},
                                       {{"slots", "1"}, {"items", "40"}, {"work_us", "1"}},
                                       {{"slots", "3"}, {"stages", "30"}, {"items", "30"}, {"handles", "0"}, {"blocks", "2"}}});
}

TEST_CASE("task-bench verifies on every engine of the GPU: points by handle and by range, whole rows, rows of growing width",
          "[gpu][engines]")
{
    check_on_every_engine("task-bench", {{{"pattern", "stencil_1d"}, {"width", "150"}, {"steps", "20"}, {"work_us", "1"}},
                                         {{"pattern", "fft"}, {"rows", "1"}, {"width", "300"}, {"work_us", "1"}},
                                         {{"pattern", "spread"}, {"handles", "0"}, {"buffers", "3"}, {"work_us", "1"}},
                                         {{"pattern", "all_to_all"}, {"width", "40"}, {"steps", "12"}, {"work_us", "1"}},
                                         {{"pattern", "dom"}, {"width", "30"}, {"work_us", "0"}},
                                         {{"pattern", "random_nearest"}, {"buffers", "0"}, {"work_us", "0"}}});
}

TEST_CASE("cholesky verifies on every engine of the GPU, in both precisions, with tiles of one block and of several",
          "[gpu][engines]")
{
    for (const std::string precision : {"fp32", "fp64"})
        check_on_every_engine("cholesky", {{{"precision", precision}},
                                           {{"precision", precision}, {"tiles", "6"}, {"tile", "16"}, {"handles", "0"}},
                                           {{"precision", precision}, {"tiles", "5"}, {"tile", "48"}},
                                           {{"precision", precision}, {"tiles", "4"}, {"tile", "144"}},
                                           {{"precision", precision}, {"tiles", "4"}, {"tile", "256"}, {"handles", "0"}}});
}

TEST_CASE("qr verifies on every engine of the GPU, in both precisions, with tiles of one block and of several", "[gpu][engines]")
{
    for (const std::string precision : {"fp32", "fp64"})
        check_on_every_engine("qr", {{{"precision", precision}},
                                     {{"precision", precision}, {"tiles", "6"}, {"tile", "16"}, {"handles", "0"}},
                                     {{"precision", precision}, {"tiles", "5"}, {"tile", "48"}},
                                     {{"precision", precision}, {"tiles", "4"}, {"tile", "144"}},
                                     {{"precision", precision}, {"tiles", "4"}, {"tile", "256"}, {"handles", "0"}}});
}

TEST_CASE("graph-update instantiates once for a program, updates from then on, and rebuilds for another shape", "[gpu][engines]")
{
    in_time(30, [] {
        const auto device = engines::open_device("cuda");
        const auto first = random_dag().make(*device, {{"tasks", "300"}}, 1),
                   second = random_dag().make(*device, {{"tasks", "200"}}, 2);
        const auto engine = engines::make_engine("graph-update", small(), *device, first->program().image());
        for (auto* const load : {first.get(), second.get(), first.get()}) {
            engine->prepare(load->program());
            for (u32 run = 0; run < 3; ++run) {
                load->reset();
                const auto result = engine->run(load->program());
                CHECK(count_of(result, "rebuilt") == (run == 0 ? 1 : 0));
                CHECK(count_of(result, "updated") == (run == 0 ? 0 : 1));
                CHECK(phase_of(result, "build_us") > 0);
                const verdict v = load->verify();
                INFO(v.detail);
                CHECK(v.verified);
            }
        }
    });
}

TEST_CASE("graph engines tell their phases: in the makespan or beside it", "[gpu][engines]")
{
    in_time(30, [] {
        const auto device = engines::open_device("cuda");
        const auto load = random_dag().make(*device, {}, 1);
        for (const std::string name : {"graph-rebuild", "graph-replay"}) {
            const auto engine = engines::make_engine(name, small(), *device, load->program().image());
            engine->prepare(load->program());
            load->reset();
            const auto result = engine->run(load->program());
            const double made = phase_of(result, "build_us") + phase_of(result, "instantiate_us");
            CHECK(phase_of(result, "build_us") > 0);
            CHECK(phase_of(result, "instantiate_us") > 0);
            if (name == "graph-rebuild") {
                CHECK(result.makespan_us > made);
            } else {
                CHECK(phase_of(result, "upload_us") > 0);
                CHECK(phase_of(result, "build_and_replay_us") > made + result.makespan_us);
            }
        }
    });
}

// Where the hardware happens to serialise two free tasks a missing edge does not show: one seed of three has to.
TEST_CASE("a missing RAW, WAR or WAW edge turns verified false on every engine but serial", "[gpu][engines][broken]")
{
    for (const std::string& name : engines::engine_names(true))
        in_time(60, [name] {
            for (const std::string kind : {"RAW", "WAR", "WAW"}) {
                u32 noticed = 0;
                for (u64 seed = 1; seed <= 3; ++seed)
                    noticed += !verified_once(
                        random_dag(), name,
                        {{"tasks", "200"}, {"width", "4"}, {"work_us", "1"}, {"blocks", "2"}, {"break", kind}}, seed);
                INFO(name << ", " << kind << ": noticed with " << noticed << " seeds of 3");
                CHECK((noticed > 0) == (name != "serial"));
            }
        });
}

TEST_CASE("a task-bench without a RAW edge finds a wrong input where the task runs", "[gpu][engines][broken]")
{
    in_time(30, [] {
        for (const std::string name : {"slipstream", "slipstream-hostdep"}) {
            INFO(name);
            CHECK_FALSE(verified_once(named("task-bench"), name,
                                      {{"width", "6"}, {"steps", "20"}, {"buffers", "4"}, {"break", "RAW"}}, 1));
        }
    });
}

TEST_CASE("a fork-join without a RAW edge and a pipeline without a RAW or WAR edge do not verify on slipstream",
          "[gpu][engines][broken]")
{
    in_time(30, [] {
        for (const std::string name : {"slipstream", "slipstream-hostdep"}) {
            INFO(name);
            CHECK_FALSE(verified_once(named("fork-join"), name, {{"depth", "4"}, {"width", "6"}, {"break", "RAW"}}, 1));
            for (const std::string kind : {"RAW", "WAR"}) {
                INFO(kind);
                CHECK_FALSE(verified_once(named("pipeline"), name, {{"stages", "5"}, {"items", "12"}, {"break", kind}}, 1));
            }
        }
    });
}
