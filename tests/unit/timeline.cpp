// Recorded runs on the host device: the flight log with its samples, the alignment of clocks, and the Chrome trace.
#include "api_tasks.hpp"
#include "trace_catch.hpp"

#include "host/timeline/chrome_trace.hpp"
#include "host/timeline/gz_file.hpp"
#include "workloads/workload.hpp"
#include <filesystem>
#include <fstream>
#include <map>
#include <rapidjson/document.h>
#include <set>
#include <zlib.h>

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::timeline;

namespace {

std::unique_ptr<workloads::workload> random_dag(engines::device_memory& device, const workloads::parameters& values)
{
    for (const auto& w : workloads::all_workloads())
        if (w.name == "random-dag") return w.make(device, values, 3);
    throw std::logic_error("random-dag is not in the list of workloads");
}

config small()
{
    config c;
    c.window = 32;
    c.ring_slots = 64;
    c.rings = 1;
    c.memory_bytes = 1 << 20;
    c.staging_bytes = 1 << 20;
    return c;
}

/// A file name that no other test uses; the file goes with it.
class scratch_file {
public:
    explicit scratch_file(const std::string& ending)
        : path_((std::filesystem::temp_directory_path()
                 / ("slipstream-timeline-" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + ending))
                    .string())
    {
    }
    ~scratch_file()
    {
        std::error_code ignored;
        std::filesystem::remove(path_, ignored);
    }
    const std::string& path() const { return path_; }
    /// Decompressed, when it is compressed.
    std::string text() const
    {
        std::string out;
        const gzFile file = gzopen(path_.c_str(), "rb");
        REQUIRE(file != nullptr);
        char piece[4096];
        for (int n; (n = gzread(file, piece, sizeof piece)) > 0;) out.append(piece, static_cast<std::size_t>(n));
        REQUIRE(gzclose(file) == Z_OK);
        return out;
    }

private:
    std::string path_;
};

template <class F>
std::string message_of(F&& f)
{
    try {
        f();
    } catch (const std::runtime_error& e) {
        return e.what();
    }
    return "";
}

rapidjson::Document parsed(const std::string& text)
{
    rapidjson::Document d;
    d.Parse<rapidjson::kParseValidateEncodingFlag>(text.c_str());
    REQUIRE_FALSE(d.HasParseError());
    return d;
}

} // namespace

TEST_CASE("a recorded run shows every block once, in spans that do not overlap on a worker, and the run still verifies",
          "[timeline]")
{
    for (const std::string name : {"slipstream", "slipstream-hostdep"})
        for (const workloads::parameters& values : {workloads::parameters{{"tasks", "300"}},
                                                    workloads::parameters{{"tasks", "60"}, {"blocks", "300"}}}) {
            const auto device = engines::open_device("host");
            const auto load = random_dag(*device, values);
            load->reset();
            const recorded_run r = record_run(name, small(), *device, load->program(), 8192);
            CHECK(load->verify().verified);
            CHECK(r.engine == name);
            CHECK(r.lost_runs == 0);
            CHECK(r.lost_samples == 0);
            std::map<std::pair<u32, u32>, u32> times; // of a block
            std::map<u32, std::int64_t> worker_free;  // until when its last span lasted
            for (const task_run& run : r.runs) {
                REQUIRE(run.task < load->program().tasks().size());
                REQUIRE(run.worker < r.workers);
                for (u32 b = 0; b < run.blocks; ++b) ++times[{run.task, run.first_block + b}];
                const std::int64_t from = run.waited ? run.wait_ns : run.start_ns;
                if (worker_free.contains(run.worker)) REQUIRE(worker_free[run.worker] <= from);
                REQUIRE(from <= run.start_ns);
                REQUIRE(run.start_ns <= run.end_ns);
                worker_free[run.worker] = run.end_ns;
            }
            std::size_t blocks = 0;
            for (const auto& task : load->program().tasks()) blocks += task.blocks;
            CHECK(times.size() == blocks);
            for (const auto& [block, count] : times) {
                REQUIRE(block.second < load->program().tasks()[block.first].blocks);
                REQUIRE(count == 1);
            }
        }
}

TEST_CASE("the window is never fuller than it is, the ring neither, and both are empty in the end", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "300"}});
    load->reset();
    const recorded_run r = record_run("slipstream", small(), *device, load->program(), 8192);
    REQUIRE_FALSE(r.occupied.empty());
    REQUIRE_FALSE(r.ring_fill.empty());
    u64 most = 0;
    for (const level& l : r.occupied) most = std::max(most, l.value);
    CHECK(most >= 1);
    CHECK(most <= 32);
    for (const level& l : r.ring_fill) REQUIRE(l.value <= 64);
    CHECK(r.ring_fill.back().value == 0);
    for (std::size_t i = 1; i < r.occupied.size(); ++i) REQUIRE(r.occupied[i - 1].time_ns <= r.occupied[i].time_ns);
}

TEST_CASE("the rings of several parts are full by what is in all of them, and empty in the end", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "300"}});
    config c = small();
    c.parts = 3;
    c.host_workers = 3;
    load->reset();
    const recorded_run r =
        record_run("slipstream", c, *device, load->program(), 8192, {engines::arrival_mode::preloaded, {}});
    CHECK(load->verify().verified);
    REQUIRE_FALSE(r.ring_fill.empty());
    u64 last = 0;
    for (const level& l : r.ring_fill) {
        if (l.time_ns >= 0) break; // till then nothing is taken, whichever ring is written
        REQUIRE(l.value >= last);
        last = l.value;
    }
    CHECK(last >= 300);
    CHECK(r.ring_fill.back().value == 0);
}

TEST_CASE("by one clock, a ring never holds more than it has room for, and no slot is taken twice", "[timeline][api]")
{
    in_time(60, [] {
        constexpr u32 tasks = 2000;
        auto c = host_config(); // its device reads the host's clock
        c.ring_slots = 16;
        c.flight_log = tasks;
        engine rt(c);
        std::vector<u64> x(1, 1);
        for (u32 i = 0; i < tasks; ++i) rt.submit(step_task{{x.data(), 1}});
        REQUIRE(rt.wait_all());
        rt.pause();
        const flight_samples s = rt.flight_samples();
        REQUIRE(s.written.size() == tasks);
        REQUIRE_FALSE(s.taken.empty());
        for (std::size_t i = 1; i < s.taken.size(); ++i) REQUIRE(s.taken[i - 1].slots < s.taken[i].slots);
        CHECK(s.written.back().slots == s.taken.back().slots);
        // Each side notes its step where the other cannot have answered it yet.
        std::size_t k = 0;
        for (const auto& w : s.written) {
            while (k < s.taken.size() && s.taken[k].time_ns <= w.time_ns) ++k;
            REQUIRE(w.slots <= c.ring_slots + (k == 0 ? 0 : s.taken[k - 1].slots));
        }
    });
}

TEST_CASE("a task mailed behind a running one shows since when its worker has waited", "[timeline][api]")
{
    in_time(60, [] {
        // How long the second worker needs to take up its mail is not ours to say: the gate stays shut longer and longer.
        for (auto patience = 10ms;; patience *= 2) {
            auto c = host_config();
            c.host_workers = 2;
            c.flight_log = 16;
            c.chaining = false;
            engine rt(c);
            u64 x = 1;
            gate g;
            const declared_access behind = writes(&x, sizeof x);
            submit_options first;
            first.accesses = list_view<declared_access>(behind);
            rt.submit(g.task(), first);
            const task_handle second = rt.submit(step_task{{&x, 1}});
            std::this_thread::sleep_for(patience);
            g.open();
            REQUIRE(rt.wait(second).ok());
            rt.pause();
            u64 gate_end = 0, waited_since = 0, start = 0;
            for (const flight_entry& e : rt.flight_log()) {
                if (e.task == second) {
                    waited_since = e.wait_ns;
                    start = e.start_ns;
                } else {
                    CHECK(e.wait_ns == 0);
                    gate_end = e.end_ns;
                }
            }
            REQUIRE(start >= gate_end);
            if (waited_since == 0) continue; // it was not taken up in time
            CHECK(waited_since < gate_end);
            CHECK(waited_since <= start);
            return;
        }
    });
}

TEST_CASE("with too little room the record is cut short, says by how much, and the run is none the worse", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "2000"}, {"blocks", "1"}, {"work_us", "0.1"}});
    load->reset();
    const recorded_run r = record_run("slipstream", small(), *device, load->program(), history_entries_min);
    CHECK(load->verify().verified);
    CHECK(r.lost_runs > 0);
    CHECK(r.runs.size() <= u64{r.workers} * history_entries_min);
    CHECK(r.runs.size() + r.lost_runs >= 2000);
    CHECK(r.lost_samples >= 2000 - 8 * history_entries_min); // the submitting thread takes one a task
    const scratch_file file(".json");
    write_chrome_trace(file.path(), {r}, load->program(), {});
    const auto d = parsed(file.text());
    CHECK(d["otherData"]["slipstream.lost_runs"].GetString() == std::to_string(r.lost_runs));
    const auto& events = d["traceEvents"];
    u32 notes = 0;
    for (const auto& e : events.GetArray())
        if (std::string(e["ph"].GetString()) == "i") {
            ++notes;
            CHECK(e["args"]["lost_runs"].GetUint64() == r.lost_runs);
            CHECK(e["args"]["lost_samples"].GetUint64() == r.lost_samples);
        }
    CHECK(notes == 1);
}

TEST_CASE("the trace has a process for each engine, a track for each worker and the host, spans, waits and counters", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "200"}});
    std::vector<recorded_run> runs;
    for (const std::string name : {"slipstream", "slipstream-hostdep"}) {
        load->reset();
        runs.push_back(record_run(name, small(), *device, load->program(), 8192));
    }
    const scratch_file file(".json");
    write_chrome_trace(file.path(), runs, load->program(), {{"commit", "0123"}, {"gpu", "none\xff"}});
    const auto d = parsed(file.text());
    CHECK(d["otherData"]["commit"].GetString() == std::string("0123"));
    CHECK(d["otherData"]["gpu"].GetString() == std::string("none?"));
    CHECK(d["otherData"].HasMember("slipstream-hostdep.clock_error_us"));
    std::map<u64, std::string> processes;
    std::map<std::pair<u64, u64>, std::string> tracks;
    std::map<u64, std::size_t> spans;
    std::map<std::pair<u64, u64>, int> open_waits; // by process and id
    std::size_t waits = 0;
    std::set<std::string> host_ranges, counters;
    for (const auto& e : d["traceEvents"].GetArray()) {
        const std::string phase = e["ph"].GetString(), name = e["name"].GetString();
        const u64 pid = e["pid"].GetUint64(), tid = e["tid"].GetUint64();
        REQUIRE(e["ts"].IsNumber());
        if (phase == "M" && name == "process_name") processes[pid] = e["args"]["name"].GetString();
        if (phase == "M" && name == "thread_name") tracks[{pid, tid}] = e["args"]["name"].GetString();
        if (phase == "C") counters.insert(name);
        if (phase == "X") {
            REQUIRE(tracks.contains({pid, tid}));
            REQUIRE(e["dur"].GetDouble() >= 0);
            if (tid == 0)
                host_ranges.insert(name);
            else
                ++spans[pid];
        }
        if (phase == "b") {
            ++waits;
            REQUIRE(++open_waits[{pid, e["id"].GetUint64()}] == 1);
        }
        if (phase == "e") REQUIRE(--open_waits[{pid, e["id"].GetUint64()}] == 0);
    }
    CHECK(processes == std::map<u64, std::string>{{1, "slipstream"}, {2, "slipstream-hostdep"}});
    for (const u64 process : {1u, 2u}) {
        const recorded_run& r = runs[process - 1];
        CHECK(tracks[{process, 0}] == "host: submitting thread");
        CHECK(spans[process] == r.runs.size());
        for (const task_run& run : r.runs)
            REQUIRE(tracks[{process, run.worker + 1}] == "SM " + std::to_string(run.sm) + ", worker " + std::to_string(run.worker));
    }
    std::size_t waited = 0;
    for (const recorded_run& r : runs)
        for (const task_run& run : r.runs) waited += run.waited;
    CHECK(waits == waited);
    CHECK(host_ranges == std::set<std::string>{"submit", "wait for the last task"});
    CHECK(counters == std::set<std::string>{"ring", "window"});
}

TEST_CASE("preloaded tasks are submitted before the run: submit ends where it begins, and nothing lies before zero", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "200"}});
    load->reset();
    const engines::arrivals when{engines::arrival_mode::preloaded};
    const recorded_run as_run = record_run("slipstream", small(), *device, load->program(), 8192, when);
    CHECK(load->verify().verified);
    CHECK(as_run.submit_begin_ns < 0);
    // The ring fills before the run begins.
    REQUIRE_FALSE(as_run.ring_fill.empty());
    CHECK(as_run.ring_fill.front().time_ns < 0);
    CHECK(as_run.ring_fill.back().value == 0);
    recorded_run loads_longer = as_run; // than it runs
    loads_longer.result.submit_us = 2 * as_run.result.makespan_us;
    loads_longer.submit_begin_ns = -static_cast<std::int64_t>(loads_longer.result.submit_us * 1e3);
    for (const recorded_run& r : {as_run, loads_longer}) {
        const scratch_file file(".json");
        write_chrome_trace(file.path(), {r}, load->program(), {});
        const auto d = parsed(file.text());
        std::map<std::string, std::pair<double, double>> phases; // of the host: from, to
        for (const auto& e : d["traceEvents"].GetArray()) {
            REQUIRE(e["ts"].GetDouble() >= 0);
            if (std::string(e["ph"].GetString()) != "X") continue;
            REQUIRE(e["dur"].GetDouble() >= 0);
            if (e["tid"].GetUint64() == 0)
                phases[e["name"].GetString()] = {e["ts"].GetDouble(), e["ts"].GetDouble() + e["dur"].GetDouble()};
        }
        REQUIRE(phases.size() == 2);
        const auto [submit_from, submit_to] = phases["submit"];
        const auto [run_from, run_to] = phases["wait for the last task"];
        const double begin = std::stod(d["otherData"]["slipstream.run_begins_us"].GetString());
        constexpr double rounding = 0.002; // us
        CHECK(submit_to == Approx(run_from).margin(rounding));
        CHECK(run_from == Approx(begin).margin(rounding));
        CHECK(submit_to - submit_from == Approx(r.result.submit_us).margin(rounding));
        CHECK(run_to - run_from == Approx(r.result.makespan_us).margin(rounding));
    }
}

TEST_CASE("device times before the run, by the error of the clocks, move all runs of the file and not each other", "[timeline]")
{
    const auto device = engines::open_device("host");
    const auto load = random_dag(*device, {{"tasks", "10"}});
    recorded_run early, other;
    early.engine = "slipstream";
    other.engine = "slipstream-hostdep";
    for (recorded_run* const r : {&early, &other}) {
        r->result.submit_us = 5;
        r->result.makespan_us = 20;
    }
    early.runs.push_back({0, {}, 0, 0, 0, 1, true, -3500, -2000, 1000});
    other.runs.push_back({0, {}, 0, 0, 0, 1, false, 0, 1000, 2000});
    const scratch_file file(".json");
    write_chrome_trace(file.path(), {early, other}, load->program(), {});
    const auto d = parsed(file.text());
    CHECK(std::stod(d["otherData"]["slipstream-hostdep.run_begins_us"].GetString()) == 3.5);
    for (const auto& e : d["traceEvents"].GetArray()) {
        REQUIRE(e["ts"].GetDouble() >= 0);
        if (std::string(e["name"].GetString()) == "submit") CHECK(e["ts"].GetDouble() == 3.5);
        if (std::string(e["ph"].GetString()) == "X" && e["tid"].GetUint64() == 1)
            CHECK(e["ts"].GetDouble() == (e["pid"].GetUint64() == 1 ? 1.5 : 4.5));
    }
}

TEST_CASE("a name that ends in .gz compresses, any other does not, and the text is the same", "[timeline]")
{
    const scratch_file plain(".json"), packed(".json.gz");
    const std::string text(200000, 'x');
    for (const scratch_file* f : {&plain, &packed}) {
        gz_file out(f->path());
        for (const char c : text) out.Put(c);
        out.close();
        CHECK(f->text() == text);
    }
    CHECK(std::filesystem::file_size(plain.path()) == text.size());
    CHECK(std::filesystem::file_size(packed.path()) < text.size() / 100);
    CHECK(message_of([] { gz_file("/no/such/folder/t.json"); })
          == "/no/such/folder/t.json: cannot be written (No such file or directory)");
    if (std::filesystem::exists("/dev/full")) {
        gz_file out("/dev/full");
        out.Put('x');
        CHECK(message_of([&] { out.close(); }) == "/dev/full: could not be written completely; is the disk full?");
    }
}

TEST_CASE("clocks are aligned by the tightest bounds of all brackets", "[timeline]")
{
    CHECK(align_clocks({}).offset_ns == 0);
    // The device's clock is 1000000 ahead. The first task took long to arrive, the second one's end was seen late.
    const clock_bracket brackets[] = {{5000, 1009000, 1009100, 9300}, {20000, 1020400, 1020500, 90000}};
    const clock_alignment a = align_clocks(brackets);
    // The second says: at most 1020400 - 20000; the first: at least 1009100 - 9300.
    CHECK(a.offset_ns == (1000400 + 999800) / 2);
    CHECK(a.error_ns == 300);
    CHECK(std::abs(a.offset_ns - 1000000) <= static_cast<std::int64_t>(a.error_ns));
    CHECK(a.host_ns(1000100) == 0);
    // A device clock behind the host's, and bounds that cross by the steps of the clock.
    const clock_bracket behind[] = {{1000000, 400, 500, 1000090}};
    const clock_alignment b = align_clocks(behind);
    CHECK(b.offset_ns < 0);
    CHECK(std::abs(b.offset_ns + 999595) <= static_cast<std::int64_t>(b.error_ns));
}

TEST_CASE("the history of a runtime that was asked for none is empty and loses nothing", "[timeline][api]")
{
    in_time(20, [] {
        engine rt(host_config());
        std::vector<u64> x(1, 1);
        for (u32 i = 0; i < 100; ++i) rt.submit(step_task{{x.data(), 1}});
        REQUIRE(rt.wait_all());
        rt.pause();
        CHECK(rt.flight_log().empty());
        const flight_samples s = rt.flight_samples();
        CHECK((s.window.empty() && s.taken.empty() && s.written.empty()));
        CHECK(s.lost_runs + s.lost_samples + s.lost_writes == 0);
    });
}
