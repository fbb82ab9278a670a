// Bounds of programs whose critical path and work are known, and tasks timed alone on the host device.
#include "trace_catch.hpp"

#include <slipstream/runtime.hpp>

#include "tools/slipstream/compare/bounds.hpp"
#include "tools/slipstream/compare/solo_run.hpp"
#include "tools/slipstream/workload_choice.hpp"
#include <algorithm>

using namespace slipstream;
using namespace slipstream::cli;

namespace {

struct bounds_step {
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const {}
};

kernel_image image()
{
    return detail::image_of<detail::platforms, bounds_step, copy_task, fill_task, marker_task>();
}

/// A task that reads and writes words of an array that nobody touches.
void add(engines::program& p, std::initializer_list<u32> read, std::initializer_list<u32> written)
{
    static u64 words[64];
    std::vector<declared_access> accesses;
    for (const u32 w : read) accesses.push_back(reads(&words[w], 8));
    for (const u32 w : written) accesses.push_back(writes(&words[w], 8));
    const bounds_step none;
    p.add(0, &none, 1, accesses);
}

std::vector<task_time> each(std::size_t tasks, double us)
{
    return std::vector<task_time>(tasks, {us, us});
}

} // namespace

TEST_CASE("the bound of a chain is the sum of its tasks", "[compare]")
{
    engines::program p(image());
    for (u32 i = 0; i < 10; ++i) add(p, {i}, {i + 1});
    std::vector<task_time> times = each(10, 2);
    times[4].span_us = 7;
    const bounds b = bounds_of(p, times, 4);
    CHECK(b.critical_path_us == Approx(9 * 2 + 7));
    CHECK(b.critical_path_tasks == 10);
    CHECK(b.area_us == Approx(20.0 / 4));
    CHECK(b.lowest_us() == Approx(25));
}

TEST_CASE("the bound of independent tasks is their work, shared by the workers", "[compare]")
{
    engines::program p(image());
    for (u32 i = 0; i < 12; ++i) add(p, {}, {i});
    std::vector<task_time> times = each(12, 3);
    times[7] = {4, 10}; // several blocks: more work than time
    const bounds b = bounds_of(p, times, 2);
    CHECK(b.critical_path_us == Approx(4));
    CHECK(b.critical_path_tasks == 1);
    CHECK(b.area_us == Approx((11 * 3 + 10) / 2.0));
    CHECK(b.lowest_us() == b.area_us);
}

TEST_CASE("the critical path of a fork and join goes through its longest branch", "[compare]")
{
    engines::program p(image());
    constexpr u32 width = 5;
    add(p, {}, {0});
    for (u32 i = 0; i < width; ++i) add(p, {0}, {1 + i});
    add(p, {1, 2, 3, 4, 5}, {6});
    std::vector<task_time> times = each(width + 2, 1);
    times[3].span_us = 6;
    const bounds b = bounds_of(p, times, 1);
    CHECK(b.critical_path_us == Approx(1 + 6 + 1));
    CHECK(b.critical_path_tasks == 3);
}

TEST_CASE("anti-dependencies, after edges and whole-memory tasks are on the path too", "[compare]")
{
    engines::program p(image());
    const bounds_step none;
    const u32 first[] = {0};
    add(p, {0}, {});
    p.add(0, &none, 1, {}, first, ordering::no_access); // after the first one only
    add(p, {}, {0});                                    // WAR to the first one
    p.add(0, &none, 1, {}, {}, ordering::whole_memory);
    const bounds b = bounds_of(p, each(4, 1), 8);
    CHECK(b.critical_path_tasks == 3);
    CHECK(b.critical_path_us == Approx(3));
}

TEST_CASE("tasks are timed alone, the long ones longer than the short ones", "[compare]")
{
    const auto device = engines::open_device("host");
    const auto* const type = find_workload("random-dag");
    REQUIRE(type != nullptr);
    const std::vector<std::string> given{"tasks=60", "width=4", "work_us=2000", "work_spread=0"};
    const auto work = type->make(*device, workload_values("test", *type, given), 1);
    config c;
    c.host_workers = 2;
    c.rings = 1;
    const solo_times solo = time_tasks_alone(*work, c, *device);
    REQUIRE(solo.tasks.size() == 60);
    CHECK(solo.workers == 2);
    for (std::size_t i = 0; i < solo.tasks.size(); ++i) {
        const task_time& t = solo.tasks[i];
        CHECK(t.span_us > 0);
        // Each block works a fiftieth of 2000 us on the host; the host's clock may be up to five times off when cores are shared.
        CHECK(t.work_us >= work->program().tasks()[i].blocks * 8.0);
        CHECK(t.work_us <= t.span_us * 2 * 1.001); // two workers
    }
    // By the median: one body that loses its core says nothing of its blocks.
    const auto median_work = [&](u32 blocks) {
        std::vector<double> found;
        for (std::size_t i = 0; i < solo.tasks.size(); ++i)
            if (work->program().tasks()[i].blocks == blocks) found.push_back(solo.tasks[i].work_us);
        REQUIRE(found.size() >= 5);
        std::nth_element(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(found.size() / 2), found.end());
        return found[found.size() / 2];
    };
    CHECK(median_work(4) > median_work(1));
}

TEST_CASE("a program with more tasks than a flight log holds is timed in stretches", "[compare]")
{
    const auto device = engines::open_device("host");
    const auto* const type = find_workload("random-dag");
    const std::vector<std::string> given{"tasks=9000", "blocks=1", "work_us=0"}; // a log holds 8192
    const auto work = type->make(*device, workload_values("test", *type, given), 1);
    config c;
    c.host_workers = 2;
    c.rings = 1;
    const solo_times solo = time_tasks_alone(*work, c, *device); // throws when a task is missing or the result is wrong
    CHECK(solo.tasks.size() == 9000);
    CHECK(std::all_of(solo.tasks.begin(), solo.tasks.end(), [](const task_time& t) { return t.span_us > 0; }));
}

TEST_CASE("tasks that give a wrong result one by one are no missing bound but a defect", "[compare]")
{
    class wrong : public workloads::workload {
    public:
        explicit wrong(std::unique_ptr<workloads::workload> right) : right_(std::move(right)) {}
        std::string name() const override { return right_->name(); }
        const engines::program& program() const override { return right_->program(); }
        void reset() override { right_->reset(); }
        workloads::verdict verify() override { return {false, "word 3"}; }

    private:
        std::unique_ptr<workloads::workload> right_;
    };
    const auto device = engines::open_device("host");
    const auto* const type = find_workload("random-dag");
    const std::vector<std::string> given{"tasks=10", "work_us=0"};
    wrong work(type->make(*device, workload_values("test", *type, given), 1));
    config c;
    c.host_workers = 2;
    c.rings = 1;
    CHECK_THROWS_AS(time_tasks_alone(work, c, *device), wrong_solo_run);
}
