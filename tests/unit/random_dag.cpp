// random-dag on the host device: every engine verifies, and a missing edge of each kind is seen.
#include "trace_catch.hpp"

#include "workload_run.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

namespace {

const workload_type& random_dag() { return workload_named("random-dag"); }

verdict run(const std::string& engine, const config& configuration, const parameters& values, u64 seed, u32 runs = 1)
{
    return run_workload("random-dag", engine, configuration, values, seed, runs);
}

} // namespace

TEST_CASE("random-dag is not verified before it has run", "[random_dag]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag().make(*device, {}, 1);
    load->reset();
    const verdict v = load->verify();
    CHECK_FALSE(v.verified);
    CHECK(v.detail.find("tasks have a wrong digest, the first is task 0") != std::string::npos);
}

TEST_CASE("random-dag verifies on serial with every kind of parameter", "[random_dag]")
{
    for (const parameters& values : {parameters{}, parameters{{"tasks", "1"}}, parameters{{"width", "1"}, {"depth", "100"}},
                                     parameters{{"handles", "1"}, {"partial", "0"}}, parameters{{"tiles", "1"}, {"partial", "1"}},
                                     parameters{{"whole", "1"}, {"tasks", "50"}}, parameters{{"no_access", "1"}},
                                     parameters{{"fan_in", "40"}, {"tasks", "100"}},
                                     parameters{{"blocks", "300"}, {"tasks", "100"}}})
        for (u64 seed = 1; seed <= 3; ++seed) {
            const verdict v = run("serial", {}, values, seed, 2);
            INFO(v.detail);
            CHECK(v.verified);
        }
}

TEST_CASE("the same seed gives the same tasks, another seed others", "[random_dag]")
{
    const auto device = engines::open_device("host");
    const auto a = random_dag().make(*device, {}, 5), b = random_dag().make(*device, {}, 5), c = random_dag().make(*device, {}, 6);
    const auto accesses = [](const workload& w) {
        std::vector<std::tuple<u32, u32, u64, u64, u32>> list;
        const auto& p = w.program();
        u64 base = ~u64{0};
        for (const auto& t : p.tasks())
            for (const slipstream::declared_access& x : p.accesses(t)) base = std::min(base, x.address);
        for (const auto& t : p.tasks())
            for (const slipstream::declared_access& x : p.accesses(t))
                list.emplace_back(t.blocks, static_cast<u32>(x.mode), x.address - base, x.bytes, x.handle_plus_one);
        return list;
    };
    CHECK(accesses(*a) == accesses(*b));
    CHECK(accesses(*a) != accesses(*c));
}

TEST_CASE("random-dag verifies on slipstream at every window and from rings of four slots", "[random_dag]")
{
    u64 seed = 0;
    for (const u32 window : {16u, 64u, 512u, 1024u})
        for (const u32 ring : {4u, 16u, 1024u}) {
            ++seed;
            INFO("window " << window << ", ring " << ring << ", seed " << seed);
            for (const std::string engine : {"slipstream", "slipstream-hostdep"}) {
                const verdict v = run(engine, small_engine(window, ring), {{"tasks", "600"}, {"work_us", "1"}}, seed, 2);
                INFO(engine << ": " << v.detail);
                CHECK(v.verified);
            }
        }
}

TEST_CASE("random-dag verifies on slipstream with many seeds and shapes", "[random_dag]")
{
    for (u64 seed = 100; seed < 112; ++seed) {
        INFO("seed " << seed);
        const parameters values{{"tasks", "400"},
                                {"width", std::to_string(1 + seed % 5 * 7)},
                                {"fan_in", std::to_string(seed % 4 * 3)},
                                {"blocks", seed % 3 ? "3" : "40"},
                                {"handles", seed % 2 ? "0" : "0.8"},
                                {"whole", "0.02"},
                                {"after", "0.4"},
                                {"work_us", "1"}};
        for (const std::string engine : {"slipstream", "slipstream-hostdep"}) {
            const verdict v = run(engine, small_engine(64, 64), values, seed);
            INFO(engine << ": " << v.detail);
            CHECK(v.verified);
        }
    }
}

TEST_CASE("a missing RAW, WAR or WAW edge turns verified false on slipstream and hostdep, and never on serial",
          "[random_dag][broken]")
{
    for (const std::string kind : {"RAW", "WAR", "WAW"})
        for (u64 seed = 1; seed <= 3; ++seed) {
            INFO(kind << ", seed " << seed);
            const parameters values{{"tasks", "200"}, {"width", "4"}, {"work_us", "1"}, {"blocks", "2"}, {"break", kind}};
            CHECK(run("serial", {}, values, seed).verified);
            config c = small_engine(256, 1024);
            c.host_workers = 16; // somebody must be idle while one worker is held
            for (const std::string engine : {"slipstream", "slipstream-hostdep"}) {
                INFO(engine);
                CHECK_FALSE(run(engine, c, values, seed).verified);
            }
        }
}

TEST_CASE("bad parameters are refused with the known names and bounds", "[random_dag]")
{
    const auto message = [](const parameters& values) { return refusal("random-dag", values); };
    CHECK(message({{"breadth", "3"}}).find("random-dag has no parameter 'breadth': use after, blocks, break, cells") == 0);
    CHECK(message({{"width", "0"}}) == "random-dag: width = '0' must be a whole number from 1 to 65536");
    CHECK(message({{"width", "-1"}}) != "");
    CHECK(message({{"width", "4x"}}) != "");
    CHECK(message({{"partial", "1.5"}}) == "random-dag: partial = '1.5' must be a number from 0 to 1");
    CHECK(message({{"partial", "nan"}}) != "");
    CHECK(message({{"cells", "64"}}).find("use at least 64 a lane, 1024") != std::string::npos);
    CHECK(message({{"break", "RAR"}}) == "unknown kind of edge 'RAR': use RAW, WAR or WAW");
}
