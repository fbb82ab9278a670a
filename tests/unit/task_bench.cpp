// task-bench: the patterns are those of SC'20, every engine of the host device verifies, and what is missing or wrong is seen.
#include "trace_catch.hpp"

#include "workload_run.hpp"
#include "workloads/task_bench/task_bench.hpp"
#include <cmath>
#include <set>

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

namespace {

using points = std::set<u32>;

task_graph graph(pattern kind, u32 width, u32 steps, u32 radix = 5, u32 period = 3, double fraction = 0.25)
{
    return {kind, width, steps, radix, period, static_cast<u32>(fraction * 0x1p31), 1};
}

points row(const task_graph& g, u32 t)
{
    points out;
    for (u32 k = 0; k < g.row_width(t); ++k) out.insert(g.first_point(t) + k);
    return out;
}

points inputs(const task_graph& g, u32 t, u32 p)
{
    points out;
    for (u32 i = 0; i < g.candidates(t); ++i)
        if (const u32 q = g.candidate(t, p, i); q != task_graph::no_point) CHECK(out.insert(q).second); // each once
    return out;
}

/// What the points of row t need, in the order of the points.
std::vector<points> row_inputs(const task_graph& g, u32 t)
{
    std::vector<points> out;
    for (const u32 p : row(g, t)) out.push_back(inputs(g, t, p));
    return out;
}

/// Who may need point p of row t, by the table of reverse dependencies: written down there on its own, not derived.
points dependents(const task_graph& g, u32 t, u32 p)
{
    const int w = static_cast<int>(g.width), r = static_cast<int>(g.radix), at = static_cast<int>(p);
    const int s = static_cast<int>(g.dependence_set(t + 1));
    std::vector<int> candidates;
    const auto from_to = [&](int first, int last) {
        for (int q = std::max(first, 0); q <= std::min(last, w - 1); ++q) candidates.push_back(q);
    };
    switch (g.kind) {
    case pattern::trivial: break;
    case pattern::no_comm: from_to(at, at); break;
    case pattern::stencil_1d_periodic:
        if (at == 0) candidates.push_back(w - 1);
        if (at == w - 1) candidates.push_back(0);
        [[fallthrough]];
    case pattern::stencil_1d: from_to(at - 1, at + 1); break;
    case pattern::dom: from_to(at, at + 1); break;
    case pattern::tree: from_to(2 * at, 2 * at + 1); break;
    case pattern::fft:
        for (const int q : {at - (1 << s), at, at + (1 << s)}) from_to(q, q);
        break;
    case pattern::all_to_all: from_to(0, w - 1); break;
    case pattern::nearest:
    case pattern::random_nearest:
        if (r > 0) from_to(at - (r - 1) / 2, at + r / 2);
        break;
    case pattern::spread:
        for (int i = 0; i < r; ++i) candidates.push_back(((at - i * w / r - (i > 0 ? s : 0)) % w + w) % w);
        break;
    }
    points out;
    for (const u32 q : row(g, t + 1))
        if (std::count(candidates.begin(), candidates.end(), static_cast<int>(q)) != 0) out.insert(q);
    return out;
}

std::vector<std::string> all_patterns() { return {std::begin(pattern_names), std::end(pattern_names)}; }

verdict run(const std::string& engine, const parameters& values, const config& configuration = small_engine(64, 64))
{
    return run_workload("task-bench", engine, configuration, values, 1, 2);
}

config idle_workers()
{
    config c = small_engine(256, 1024);
    c.host_workers = 16; // somebody must be idle while one worker is held
    return c;
}

} // namespace

TEST_CASE("points need what Task Bench says: small graphs written out", "[task_bench]")
{
    using rows = std::vector<points>;
    CHECK(row_inputs(graph(pattern::trivial, 3, 2), 1) == rows{{}, {}, {}});
    CHECK(row_inputs(graph(pattern::no_comm, 3, 2), 1) == rows{{0}, {1}, {2}});
    CHECK(row_inputs(graph(pattern::stencil_1d, 4, 2), 1) == rows{{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}});
    CHECK(row_inputs(graph(pattern::stencil_1d, 4, 2), 0) == rows{{}, {}, {}, {}});
    CHECK(row_inputs(graph(pattern::stencil_1d_periodic, 4, 2), 1) == rows{{0, 1, 3}, {0, 1, 2}, {1, 2, 3}, {0, 2, 3}});

    const task_graph dom = graph(pattern::dom, 3, 5);
    CHECK((row(dom, 0) == points{0} && row(dom, 1) == points{0, 1} && row(dom, 2) == points{0, 1, 2}
           && row(dom, 3) == points{1, 2}));
    CHECK(row_inputs(dom, 1) == rows{{0}, {0}});
    CHECK(row_inputs(dom, 2) == rows{{0}, {0, 1}, {1}});
    CHECK(row_inputs(dom, 3) == rows{{0, 1}, {1, 2}});
    CHECK(row_inputs(dom, 4) == rows{{1, 2}});

    const task_graph tree = graph(pattern::tree, 4, 4);
    CHECK(row_inputs(tree, 1) == rows{{0}, {0}});
    CHECK(row_inputs(tree, 2) == rows{{0}, {0}, {1}, {1}});
    CHECK(row_inputs(tree, 3) == rows{{0}, {0}, {1}, {1}});

    const task_graph fft = graph(pattern::fft, 4, 4);
    CHECK(row_inputs(fft, 1) == rows{{0, 1}, {0, 1, 2}, {1, 2, 3}, {2, 3}});
    CHECK(row_inputs(fft, 2) == rows{{0, 2}, {1, 3}, {0, 2}, {1, 3}});
    CHECK(row_inputs(fft, 3) == row_inputs(fft, 1));

    CHECK(row_inputs(graph(pattern::all_to_all, 3, 2), 1) == rows{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}});
    CHECK(row_inputs(graph(pattern::nearest, 5, 2, 4), 1) == rows{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4}});
    CHECK(row_inputs(graph(pattern::nearest, 2, 2, 0), 1) == rows{{}, {}});

    const task_graph spread = graph(pattern::spread, 6, 3, 3, 2);
    CHECK(row_inputs(spread, 1) == rows{{0, 3, 5}, {1, 4, 0}, {2, 5, 1}, {3, 0, 2}, {4, 1, 3}, {5, 2, 4}});
    CHECK(row_inputs(spread, 2) == rows{{0, 2, 4}, {1, 3, 5}, {2, 4, 0}, {3, 5, 1}, {4, 0, 2}, {5, 1, 3}});
}

TEST_CASE("random_nearest keeps its own point and each neighbour with the given chance, differently in each set", "[task_bench]")
{
    CHECK(row_inputs(graph(pattern::random_nearest, 5, 2, 5, 3, 0), 1) == std::vector<points>{{0}, {1}, {2}, {3}, {4}});
    CHECK(row_inputs(graph(pattern::random_nearest, 5, 2, 4, 3, 1), 1) == row_inputs(graph(pattern::nearest, 5, 2, 4), 1));
    const task_graph g = graph(pattern::random_nearest, 1000, 8, 5, 3, 0.25);
    u64 kept = 0;
    for (const points& p : row_inputs(g, 1)) kept += p.size() - 1;
    CHECK(std::abs(static_cast<double>(kept) / 4000 - 0.25) < 0.03); // four standard deviations
    CHECK(row_inputs(g, 1) != row_inputs(g, 2));
    CHECK(row_inputs(g, 1) == row_inputs(g, 4));
}

TEST_CASE("graphs of 128 x 1000 points have as many tasks and edges as Task Bench counts", "[task_bench]")
{
    const auto count = [](pattern kind) {
        const task_graph g = graph(kind, 128, 1000);
        std::pair<u64, u64> out;
        for (u32 t = 0; t < g.steps; ++t)
            for (u32 p = g.first_point(t); p < g.first_point(t) + g.row_width(t); ++p) {
                ++out.first;
                for (u32 i = 0; i < g.candidates(t); ++i) out.second += g.candidate(t, p, i) != task_graph::no_point;
            }
        return out;
    };
    using counts = std::pair<u64, u64>;
    CHECK(count(pattern::stencil_1d) == counts{128'000, 381'618});
    CHECK(count(pattern::fft) == counts{128'000, 347'486});
    CHECK(count(pattern::nearest) == counts{128'000, 633'366});
    CHECK(count(pattern::spread) == counts{128'000, 639'360});
    CHECK(count(pattern::dom) == counts{111'744, 222'487});
    CHECK(count(pattern::tree) == counts{127'231, 127'230});
    CHECK(count(pattern::all_to_all) == counts{128'000, 999 * 128 * 128});
    // Other random numbers than Task Bench's, which make 256 410; three sets of random edges deviate by 5 600.
    CHECK(std::abs(static_cast<double>(count(pattern::random_nearest).second) - 256'410) < 20'000);
}

TEST_CASE("forward and reverse dependencies agree", "[task_bench]")
{
    for (u32 kind = 0; kind < std::size(pattern_names); ++kind)
        for (const u32 width : {3u, 4u, 7u, 16u, 33u})
            for (u32 radix = 1; radix <= 3; ++radix) {
                const task_graph g = graph(static_cast<pattern>(kind), width, 9, radix, 1 + (width - 1) / radix, 1);
                for (u32 t = 0; t + 1 < g.steps; ++t) {
                    INFO(pattern_names[kind] << ", width " << width << ", radix " << radix << ", row " << t);
                    std::map<u32, points> found;
                    for (const u32 p : row(g, t + 1))
                        for (const u32 q : inputs(g, t + 1, p)) found[q].insert(p);
                    for (const u32 q : row(g, t)) {
                        CHECK(found[q] == dependents(g, t, q));
                        found.erase(q);
                    }
                    CHECK(found.empty()); // nobody needs a point that is not there
                }
            }
}

TEST_CASE("the chains never settle: every number of iterations comes to something else", "[task_bench]")
{
    std::set<u32> seen;
    for (u32 i = 0; i <= 2000; ++i) seen.insert(busy_chains(i));
    CHECK(seen.size() == 2001);
}

TEST_CASE("a point whose chains come to something else than they should has another result", "[task_bench]")
{
    struct {
        point_header header{};
        point_output output{};
        u64 result = 0;
    } board;
    static_assert(offsetof(decltype(board), output) == sizeof(point_header));
    board.header.graph = graph(pattern::stencil_1d, 1, 1);
    board.header.buffers = 1;
    board.header.held = 1; // none
    const u64 at = reinterpret_cast<u64>(&board);
    const point_task task{static_cast<u32>(at), static_cast<u32>(at >> 32), 0};
    const auto result_of = [&](u32 iterations, u32 come_to) {
        board.header.iterations = iterations;
        board.header.chains_come_to = come_to;
        board.result = 0;
        host_block block(0, 1, nullptr, 0);
        task(block);
        return board.result;
    };
    const u64 right = result_of(7, busy_chains(7));
    CHECK(right == board.output.digest);
    CHECK(result_of(8, busy_chains(8)) == right);
    CHECK(result_of(7, busy_chains(8)) != right);
    CHECK(result_of(6, busy_chains(7)) != right); // one turn of the loop is left out
}

TEST_CASE("every pattern verifies on every engine of the host device", "[task_bench]")
{
    for (const std::string& name : all_patterns())
        for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"})
            for (const parameters& shape :
                 {parameters{}, parameters{{"buffers", "0"}, {"handles", "0"}}, parameters{{"rows", "1"}}}) {
                parameters values = shape;
                values.insert({{"pattern", name}, {"width", "13"}, {"steps", "12"}, {"work_us", "1"}});
                const verdict v = run(engine, values);
                INFO(name << " on " << engine << ": " << v.detail);
                CHECK(v.verified);
            }
}

TEST_CASE("task-bench verifies through the smallest ring and window, and with more inputs than a task may declare", "[task_bench]")
{
    for (const std::string& name : all_patterns()) {
        const verdict v = run("slipstream", {{"pattern", name}, {"width", "20"}, {"steps", "6"}, {"work_us", "0"}},
                              small_engine(16, 4));
        INFO(name << ": " << v.detail);
        CHECK(v.verified);
    }
    config c = small_engine(32, 64);
    c.accesses_max = 16;
    CHECK(run("slipstream", {{"pattern", "all_to_all"}, {"width", "20"}, {"steps", "4"}}, c).verified);
}

TEST_CASE("an input from before its time is found where the task runs", "[task_bench][broken]")
{
    const parameters values{{"width", "6"}, {"steps", "20"}, {"buffers", "4"}, {"work_us", "1"}, {"break", "RAW"}};
    CHECK(run("serial", values).verified);
    for (const std::string engine : {"slipstream", "slipstream-hostdep"}) {
        const verdict v = run(engine, values, idle_workers());
        INFO(engine << ": " << v.detail);
        CHECK_FALSE(v.verified);
        CHECK(v.detail.find("wrong inputs: ") == 0);
        CHECK(v.detail.find(" was due") != std::string::npos);
    }
}

TEST_CASE("a missing WAR or WAW edge turns verified false", "[task_bench][broken]")
{
    for (const parameters& values : {parameters{{"break", "WAR"}, {"pattern", "nearest"}, {"radix", "4"}},
                                     parameters{{"break", "WAW"}, {"pattern", "trivial"}}}) {
        parameters all{{"width", "6"}, {"steps", "20"}, {"work_us", "1"}};
        all.insert(values.begin(), values.end());
        const verdict v = run("slipstream", all, idle_workers());
        INFO(v.detail);
        CHECK_FALSE(v.verified);
    }
}

TEST_CASE("a lost task, a task that did not work, and a run that never was do not verify", "[task_bench]")
{
    const auto device = engines::open_device("host");
    for (const std::string& name : all_patterns()) {
        INFO(name);
        const auto load = make_task_bench(*device, {{"pattern", name}, {"width", "13"}, {"steps", "6"}, {"work_us", "0"}}, 1, true);
        const auto engine = engines::make_engine("serial", {}, *device, load->program().image());
        engine->prepare(load->program());
        load->reset();
        CHECK_FALSE(load->verify().verified);
        engine->run(load->program());
        CHECK_FALSE(load->verify().verified);
    }
    const auto load = make_task_bench(*device, {{"width", "8"}, {"steps", "6"}, {"work_us", "0"}}, 1);
    const auto engine = engines::make_engine("serial", {}, *device, load->program().image());
    engine->prepare(load->program());
    const auto verified = [&](u32 iterations_run) {
        load->set_iterations(10);
        load->reset();
        point_task task;
        std::memcpy(static_cast<void*>(&task), load->program().arguments(load->program().tasks()[0]), sizeof task);
        reinterpret_cast<point_header*>(task.board_low | static_cast<u64>(task.board_high) << 32)->iterations = iterations_run;
        engine->run(load->program());
        return load->verify().verified;
    };
    CHECK(verified(10));
    CHECK_FALSE(verified(9));
}

TEST_CASE("shapes that cannot work are refused with the remedy", "[task_bench]")
{
    const auto message = [](const parameters& values) { return refusal("task-bench", values); };
    CHECK(message({{"pattern", "stencil_2d"}}).find("unknown pattern 'stencil_2d': use trivial, no_comm") != std::string::npos);
    CHECK(message({{"pattern", "stencil_1d_periodic"}, {"width", "2"}}).find("width of at least 3") != std::string::npos);
    CHECK(message({{"pattern", "fft"}, {"width", "1"}}).find("width of at least 2") != std::string::npos);
    CHECK(message({{"pattern", "spread"}, {"radix", "0"}}).find("radix from 1") != std::string::npos);
    CHECK(message({{"pattern", "spread"}, {"width", "10"}, {"period", "3"}}).find("period of at most") != std::string::npos);
    CHECK(message({{"pattern", "random_nearest"}, {"radix", "0"}}).find("radix of at least 1") != std::string::npos);
    CHECK(message({{"buffers", "1"}}).find("at least 2") != std::string::npos);
    CHECK(message({{"pattern", "all_to_all"}, {"width", "4096"}}).find("fewer steps") != std::string::npos);
    CHECK(message({{"width", "65536"}, {"steps", "1000"}}).find("width x steps") != std::string::npos);
    CHECK(message({{"width", "65536"}, {"steps", "100"}, {"buffers", "0"}}).find("width x buffers") != std::string::npos);
    CHECK(message({{"radix", "-1"}}) != "");
}
