// Tasks timed alone on the GPU: what the bounds of comparisons are made of.
#include "tests/stress/in_time.hpp"
#include "tools/slipstream/compare/solo_run.hpp"
#include "tools/slipstream/workload_choice.hpp"

using namespace slipstream;
using namespace slipstream::cli;
using slipstream::tests::in_time;

TEST_CASE("tasks timed alone take what they work, and independent blocks take it at once", "[gpu][compare]")
{
    in_time(30, [] {
        const auto device = engines::open_device("cuda");
        const auto* const type = find_workload("random-dag");
        REQUIRE(type != nullptr);
        for (const char* blocks : {"1", "8"}) {
            const std::vector<std::string> given{"tasks=200", "work_us=40", "work_spread=0", "partial=0",
                                                 std::string("blocks=") + blocks};
            const auto work = type->make(*device, workload_values("test", *type, given), 1);
            config c;
            c.rings = 1;
            const solo_times solo = time_tasks_alone(*work, c, *device);
            REQUIRE(solo.tasks.size() == 200);
            CHECK(solo.workers > 16);
            for (std::size_t i = 0; i < solo.tasks.size(); ++i) {
                const u32 own_blocks = work->program().tasks()[i].blocks;
                INFO("task " << i << " of " << own_blocks << " blocks: " << solo.tasks[i].span_us << " us");
                // The digest and the dispatch of several blocks come on top of the work; the clock may have changed since it was
                // calibrated.
                CHECK(solo.tasks[i].span_us > 25);
                CHECK(solo.tasks[i].span_us < 80);
                CHECK(solo.tasks[i].work_us > 25.0 * own_blocks);
                CHECK(solo.tasks[i].work_us < 80.0 * own_blocks);
            }
        }
    });
}
