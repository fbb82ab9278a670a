// What acs-sw does without CUDA: the window of 32 against all pairs, and its threads over host bodies.
#include "few_threads.hpp"
#include "trace_catch.hpp"

#include "host/engines/acs_scheduler.hpp"
#include "workloads/workload.hpp"

#include <algorithm>
#include <random>

using namespace slipstream;
using namespace slipstream::engines;
using abi::access_entry;

namespace {

access_entry range(access_mode mode, u64 begin, u64 bytes)
{
    return access_entry::range(mode, 0x1000 + begin, bytes);
}

struct planned {
    std::vector<access_entry> accesses;
    bool whole = false;
    std::vector<u32> after;
};

bool must_wait(const planned& next, const planned& earlier, u32 number)
{
    if (next.whole || earlier.whole) return true;
    for (const access_entry& a : next.accesses)
        for (const access_entry& b : earlier.accesses)
            if (abi::conflicts(a, b)) return true;
    return std::find(next.after.begin(), next.after.end(), number) != next.after.end();
}

/// Bodies of the host in place of kernels; each thread has scratch memory of its own.
class host_executor final : public acs_scheduler::executor {
public:
    explicit host_executor(u32 threads) : shared_(threads, std::vector<std::max_align_t>(4096)) {}
    void enter(u32) override {}
    void execute(u32 thread, const program& p, const program_task& t) override
    {
        if (fail_at_ != 0 && --fail_at_ == 0) throw device_error("a made-up fault");
        for (u32 b = 0; b < t.blocks; ++b) {
            host_block block(b, t.blocks, shared_.at(thread).data(), shared_[thread].size() * sizeof(std::max_align_t));
            p.image().host_bodies[t.type](p.arguments(t), block);
        }
    }
    void fail_at(u32 task) { fail_at_ = task; }

private:
    std::vector<std::vector<std::max_align_t>> shared_;
    std::atomic<u32> fail_at_{0}; ///< the n-th task from now on faults; 0: none
};

const workloads::workload_type& random_dag()
{
    for (const auto& w : workloads::all_workloads())
        if (w.name == "random-dag") return w;
    throw std::logic_error("random-dag is not in the list of workloads");
}

} // namespace

TEST_CASE("a task is ready exactly when all earlier tasks it conflicts with are complete", "[engines][acs]")
{
    for (u32 seed = 1; seed <= 200; ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(seed);
        const u32 count = 1 + static_cast<u32>(random() % 300);
        std::vector<planned> plan(count);
        for (u32 t = 0; t < count; ++t) {
            plan[t].whole = random() % 40 == 0;
            for (u32 a = static_cast<u32>(random() % 4); a > 0; --a)
                plan[t].accesses.push_back(range(static_cast<access_mode>(1 + random() % 3), random() % 200, 1 + random() % 20));
            if (t > 0 && random() % 8 == 0) plan[t].after = {t - 1 - static_cast<u32>(random() % std::min(t, 40u))};
        }
        acs_window window;
        std::vector<bool> done(count), taken(count);
        std::vector<u32> executing; // slots
        const auto free_to_go = [&](u32 t) {
            for (u32 p = 0; p < t; ++p)
                if (!done[p] && must_wait(plan[t], plan[p], p)) return false;
            return true;
        };
        u32 entered = 0, completed = 0;
        while (completed < count) {
            const u32 what = static_cast<u32>(random() % 3);
            if (what == 0 && entered < count && !window.full()) {
                window.insert(entered, plan[entered].accesses, plan[entered].whole, plan[entered].after);
                ++entered;
            } else if (what == 1) {
                u32 first = ~0u; // what take_ready() should give
                for (u32 t = 0; t < entered && first == ~0u; ++t)
                    if (!taken[t] && free_to_go(t)) first = t;
                const u32 slot = window.take_ready();
                REQUIRE((slot == acs_window::none) == (first == ~0u));
                if (slot == acs_window::none) continue;
                REQUIRE(window.task(slot) == first);
                taken[first] = true;
                executing.push_back(slot);
            } else if (!executing.empty()) {
                const auto it = executing.begin() + static_cast<std::ptrdiff_t>(random() % executing.size());
                done[window.task(*it)] = true;
                window.complete(*it);
                executing.erase(it);
                ++completed;
            }
            REQUIRE(window.full() == (entered - completed == acs_window::slots));
            REQUIRE(window.empty() == (entered == completed));
        }
    }
}

TEST_CASE("RAW, WAR and WAW each hold a task back, two reads do not", "[engines][acs]")
{
    using m = access_mode;
    struct hazard {
        m first, second;
        bool waits;
    };
    for (const auto& h : {hazard{m::write, m::read, true}, hazard{m::read, m::write, true}, hazard{m::write, m::write, true},
                          hazard{m::read, m::read, false}}) {
        acs_window window;
        const access_entry a = range(h.first, 0, 8), b = range(h.second, 7, 8), c = range(h.second, 8, 8);
        window.insert(0, {&a, 1}, false, {});
        window.insert(1, {&b, 1}, false, {});
        window.insert(2, {&c, 1}, false, {}); // beside the first one, but it meets the second when one of them writes
        CHECK(window.ready() == (h.waits ? (h.second == m::read ? 2u : 1u) : 3u));
        const u32 slot = window.take_ready();
        REQUIRE(window.task(slot) == 0);
        window.complete(slot);
        CHECK(window.task(window.take_ready()) == 1);
    }
}

TEST_CASE("a window of 32 independent tasks is full, and one that leaves makes room for one", "[engines][acs]")
{
    acs_window window;
    for (u32 t = 0; t < acs_window::slots; ++t) {
        REQUIRE_FALSE(window.full());
        window.insert(t, {}, false, {});
    }
    REQUIRE(window.full());
    const u32 slot = window.take_ready();
    CHECK(window.full()); // executing tasks keep their slot
    window.complete(slot);
    CHECK_FALSE(window.full());
    window.insert(32, {}, true, {});
    CHECK(window.full());
    CHECK(window.ready() == 31); // the whole-memory task waits for all others
    window.clear();
    CHECK(window.empty());
}

TEST_CASE("random-dag verifies on ACS-SW's threads over host bodies", "[engines][acs]")
{
    const auto device = open_device("host");
    for (const u32 threads : {1u, 2u, 8u}) {
        host_executor bodies(threads);
        acs_scheduler scheduler(threads, bodies);
        for (u64 seed = 1; seed <= 4; ++seed) {
            INFO(threads << " threads, seed " << seed);
            const auto load =
                random_dag().make(*device, {{"tasks", "400"}, {"work_us", "1"}, {"after", "0.3"}, {"whole", "0.02"}}, seed);
            for (u32 run = 0; run < 2; ++run) {
                load->reset();
                const run_result result = scheduler.run(load->program());
                CHECK(result.makespan_us >= result.submit_us);
                const workloads::verdict v = load->verify();
                INFO(v.detail);
                CHECK(v.verified);
            }
        }
    }
}

TEST_CASE("a missing RAW, WAR or WAW edge turns verified false on ACS-SW's threads", "[engines][acs][broken]")
{
    const auto device = open_device("host");
    host_executor bodies(16);
    acs_scheduler scheduler(16, bodies); // somebody must be idle while one thread is held
    for (const std::string kind : {"RAW", "WAR", "WAW"}) {
        INFO(kind);
        const auto load =
            random_dag().make(*device, {{"tasks", "200"}, {"width", "4"}, {"work_us", "1"}, {"blocks", "2"}, {"break", kind}}, 1);
        load->reset();
        scheduler.run(load->program());
        CHECK_FALSE(load->verify().verified);
    }
}

TEST_CASE("ACS-SW without its threads is an error that says how many there were", "[engines][acs]")
{
    if (!tests::threads_can_be_few) return;
    host_executor bodies(1);
    const tests::few_threads limit(20);
    REQUIRE(limit.set());
    std::string said;
    try {
        const acs_scheduler scheduler(2000, bodies);
    } catch (const device_error& e) {
        said = e.what();
    }
    INFO(said);
    CHECK(said.find("acs-sw: only ") == 0);
    CHECK(said.find(" of 2000 threads") != std::string::npos);
    CHECK(said.find("ask for fewer") != std::string::npos);
}

TEST_CASE("a fault in one thread ends the run, and the next run is a good one", "[engines][acs]")
{
    const auto device = open_device("host");
    const auto load = random_dag().make(*device, {{"tasks", "300"}, {"work_us", "1"}}, 3);
    host_executor bodies(4);
    acs_scheduler scheduler(4, bodies);
    for (const u32 at : {1u, 20u, 300u}) {
        load->reset();
        bodies.fail_at(at);
        CHECK_THROWS_AS(scheduler.run(load->program()), device_error);
        bodies.fail_at(0);
        load->reset();
        scheduler.run(load->program());
        CHECK(load->verify().verified);
    }
    const program nothing(load->program().image());
    CHECK(scheduler.run(nothing).makespan_us >= 0);
}
