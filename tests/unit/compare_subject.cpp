// Subjects and sweeps as the command line names them.
#include "trace_catch.hpp"

#include <filesystem>
#include <fstream>

#include "tools/slipstream/compare/suite.hpp"
#include "tools/slipstream/compare/sweep.hpp"
#include "tools/slipstream/usage_error.hpp"

using namespace slipstream;
using namespace slipstream::cli;

namespace {

template <class F> std::string message_of(F&& f)
{
    try {
        f();
    } catch (const usage_error& e) {
        return e.what();
    }
    return "";
}

class folder {
public:
    folder() : path_(std::filesystem::temp_directory_path() / ("slipstream-subject-" + std::to_string(getpid())))
    {
        std::filesystem::create_directories(path_);
    }
    ~folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const
    {
        std::ofstream(path_ / name) << "{}";
        return (path_ / name).string();
    }
    std::string path(const std::string& name) const { return (path_ / name).string(); }

private:
    std::filesystem::path path_;
};

} // namespace

TEST_CASE("a workload is named with the parameters that differ from its defaults", "[compare]")
{
    const subject s = parse_subject("random-dag:width=64,work_us=7");
    REQUIRE(s.workload != nullptr);
    CHECK(s.workload->name == "random-dag");
    CHECK(s.values.at("width") == "64");
    CHECK(s.values.at("work_us") == "7");
    CHECK(s.values.at("fan_in") == s.workload->defaults.at("fan_in"));
    CHECK(parse_subject("random-dag").values == s.workload->defaults);
}

TEST_CASE("a trace is found with the execution trace beside it", "[compare]")
{
    const folder here;
    const std::string kineto = here.file("run.kineto.json.gz");
    CHECK(message_of([&] { parse_subject(kineto); }).find("no execution trace") != std::string::npos);
    const std::string plain = here.file("run.et.json");
    CHECK(parse_subject(kineto).et == plain);
    const std::string packed = here.file("run.et.json.gz");
    const subject s = parse_subject(kineto);
    CHECK(s.workload == nullptr);
    CHECK(s.kineto == kineto);
    CHECK(s.et == packed); // the usual one first
    CHECK(s.title == "run");
    const std::string other = here.file("other.json");
    CHECK(parse_subject(kineto + "+" + other).et == other);
}

TEST_CASE("what is neither is refused with what would do", "[compare]")
{
    const folder here;
    CHECK(message_of([] { parse_subject("random-dags"); }).find("random-dag,") != std::string::npos);
    CHECK(message_of([] { parse_subject(""); }).find("neither") != std::string::npos);
    CHECK(message_of([] { parse_subject("random-dag:wide=1"); }).find("'wide'") != std::string::npos);
    CHECK(message_of([] { parse_subject("random-dag:"); }).find("NAME=VALUE") != std::string::npos);
    CHECK(message_of([&] { parse_subject(here.path("absent.kineto.json")); }).find("absent.kineto.json") != std::string::npos);
    const std::string odd = here.file("odd.json");
    CHECK(message_of([&] { parse_subject(odd); }).find(odd + "+ET") != std::string::npos);
    CHECK(message_of([&] { parse_subject(odd + "+" + odd + "+" + odd); }).find("more than two") != std::string::npos);
    CHECK(message_of([&] { parse_subject(odd + "+nofile"); }).find(": nofile: no such file") != std::string::npos);
    CHECK(message_of([&] { parse_subject("nofile+" + odd); }).find(": nofile: no such file") != std::string::npos);
    for (const std::string& nameless : {"+" + odd, odd + "+", std::string("+")})
        CHECK(message_of([&] { parse_subject(nameless); }).find("a file has no name") != std::string::npos);
}

TEST_CASE("every line of the results page names something that exists, under a title of its own", "[compare]")
{
    std::vector<std::string> titles;
    for (const suite_entry& entry : results_suite()) {
        CHECK_NOTHROW(parse_subject(entry.text));
        CHECK(std::find(titles.begin(), titles.end(), entry.title) == titles.end());
        titles.push_back(entry.title);
    }
    CHECK(titles.size() >= 3);
}

TEST_CASE("every committed trace is on the results page", "[compare]")
{
    u32 traces = 0;
    for (const auto& entry : std::filesystem::directory_iterator("traces")) {
        const std::string name = entry.path().string();
        if (!name.ends_with(".kineto.json.gz")) continue;
        ++traces;
        const auto suite = results_suite();
        CHECK(std::any_of(suite.begin(), suite.end(), [&](const suite_entry& e) { return name == e.text; }));
    }
    CHECK(traces >= 2);
}

TEST_CASE("a sweep has its own values or those given", "[compare]")
{
    CHECK(parse_sweep("all").size() == sweep_axes().size());
    CHECK(parse_sweep("length")[0].values.front() == 1);
    CHECK(parse_sweep("length")[0].values.back() == 500);
    CHECK(parse_sweep("fan-in=0,2.5,9")[0].values == std::vector<double>{0, 2.5, 9});
    for (const char* bad : {"", "depth", "length=", "length=a", "length=2,1", "length=1,1", "length=-1", "length=nan", "window=8",
                            "window=16.5", "all=1"})
        CHECK(!message_of([&] { parse_sweep(bad); }).empty());
}

TEST_CASE("a point changes its parameter, and the tasks follow unless they were given", "[compare]")
{
    const subject base = layered_dag();
    const sweep_axis length = parse_sweep("length")[0], width = parse_sweep("width")[0], window = parse_sweep("window")[0];
    const auto tasks = [](const sweep_point& p) { return std::stoul(p.values.at("tasks")); };
    const sweep_point shortest = point_of(base, length, 1, 256, 0), longest = point_of(base, length, 500, 256, 0);
    CHECK(longest.values.at("work_us") == "500");
    CHECK(tasks(shortest) > tasks(longest));
    CHECK(tasks(longest) >= 320); // ten layers of 32
    CHECK(tasks(point_of(base, length, 500, 256, 40)) == 40);
    CHECK(point_of(base, width, 128, 256, 0).values.at("cells") == "16384"); // every task reads as much at any width
    CHECK(point_of(base, width, 1, 256, 0).values.at("cells") == "128");
    CHECK(point_of(base, window, 64, 256, 0).window == 64);
    CHECK(point_of(base, window, 64, 256, 0).values.at("width") == "32");
    CHECK(point_of(base, length, 1, 256, 0).window == 256);
    const subject fixed = parse_subject("random-dag:tasks=77,cells=9000");
    CHECK(tasks(point_of(fixed, length, 1, 256, 0)) == 77);
    CHECK(point_of(fixed, length, 1, 256, 0).values.at("cells") == "9000");
}

TEST_CASE("a sweep over what a workload lacks is refused", "[compare]")
{
    subject s = layered_dag();
    s.values.erase("fan_in");
    CHECK(message_of([&] { (void)point_of(s, parse_sweep("fan-in")[0], 1, 256, 0); }).find("fan_in") != std::string::npos);
}
