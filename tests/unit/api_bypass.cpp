// Tasks that come one by one, on the host device: most of them bypass the roles between ring and worker (device/bypass.hpp).
#include "api_tasks.hpp"

using namespace slipstream;
using namespace slipstream::tests;

TEST_CASE("tasks submitted one after the other: what is seen complete is written, and the next one reads it", "[api][bypass]")
{
    in_time(60, [] {
        for (const bool bypass : {true, false})
            for (const auto residency : {std::chrono::milliseconds{200}, std::chrono::milliseconds{2}}) { // parks between them
                auto c = host_config();
                c.bypass = bypass;
                c.residency = residency;
                engine rt(c);
                std::vector<u64> x{1};
                u64 expected = 1;
                for (u32 i = 0; i < 2000; ++i) {
                    // The host changes what the next one reads: only what is complete may be touched.
                    x[0] += i;
                    expected += i;
                    const auto h = rt.submit(step_task{x});
                    REQUIRE(rt.wait(h).ok());
                    expected = 3 * expected + 1;
                    REQUIRE(x[0] == expected);
                    REQUIRE(rt.query(h).state == task_state::complete); // and stays so
                    if (i % 64 == 63) { // several together, behind it and before the next one
                        for (u32 k = 0; k < 5; ++k) (void)rt.submit(step_task{x});
                        if (i % 128 == 127) REQUIRE(rt.wait_all());
                        else REQUIRE(rt.wait(rt.submit(step_task{x})).ok());
                        const u32 more = i % 128 == 127 ? 5 : 6;
                        for (u32 k = 0; k < more; ++k) expected = 3 * expected + 1;
                        REQUIRE(x[0] == expected);
                    }
                }
            }
    });
}

TEST_CASE("of tasks one by one, one that fails is told of, and those that read what it wrote are cancelled", "[api][bypass]")
{
    in_time(30, [] {
        engine rt(host_config());
        std::vector<u64> x{1}, y{1};
        REQUIRE(rt.wait(rt.submit(step_task{y})).ok());
        const std::vector<declared_access> writes_x{writes(x.data(), sizeof(u64))};
        submit_options what;
        what.accesses = list_view<declared_access>(writes_x);
        const auto failed = rt.submit(fail_task{5, 0}, what);
        const auto status = rt.wait(failed);
        CHECK(status.state == task_state::failed);
        CHECK(status.code == 5);
        CHECK(rt.wait(rt.submit(step_task{x})).state == task_state::cancelled);
        CHECK(rt.wait(rt.submit(step_task{y})).ok());
    });
}
