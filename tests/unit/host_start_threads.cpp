// Threads that are started together: all of them, or none, and what a runtime says that gets none.
#include "api_tasks.hpp"
#include "few_threads.hpp"
#include "host/start_threads.hpp"

using namespace slipstream;
using namespace slipstream::tests;

TEST_CASE("threads begin when all are there; where one cannot be had the others leave, have begun nothing, and the error says so",
          "[host][start_threads]")
{
    in_time(20, [] {
        for (const u32 had : {0u, 1u, 5u, 8u}) {
            INFO(had << " of 8");
            std::atomic<u32> made{0}, begun{0}, early{0};
            const auto make = [&](auto&& run) {
                if (made == had) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
                std::thread t(run);
                ++made;
                return t;
            };
            std::vector<std::atomic<u32>> runs(8);
            const auto body = [&](u32 i) {
                early += made != 8;
                ++begun;
                ++runs[i];
            };
            std::vector<std::thread> threads;
            const std::string said
                = thrown<device_error>([&] { threads = host::start_threads("knights = 8", 8, "ask for fewer", body, make); });
            INFO(said);
            for (auto& t : threads) t.join();
            CHECK(early == 0);
            CHECK(begun == (had == 8 ? 8 : 0));
            for (const auto& r : runs) CHECK(r == (had == 8 ? 1 : 0));
            CHECK(said.empty() == (had == 8));
            if (had == 8) continue;
            CHECK(threads.empty());
            CHECK(said.find("knights = 8: only " + std::to_string(had) + " of 8 threads") == 0);
            CHECK(said.find("ask for fewer") != std::string::npos);
        }
    });
}

TEST_CASE("a host device that cannot have its threads says how many it wanted and what to do, and the runtime ends",
          "[host][start_threads][fault]")
{
    if (!threads_can_be_few) return;
    in_time(30, [] {
        auto c = host_config();
        c.host_workers = 600;
        std::string said;
        {
            engine rt(c);
            const few_threads limit(40);
            REQUIRE(limit.set());
            const auto h = rt.submit(marker_task{});
            said = thrown<device_error>([&] { rt.wait(h); });
        }
        INFO(said);
        CHECK(said.find("host_workers = 600") != std::string::npos);
        CHECK(said.find("lower config::host_workers") != std::string::npos);
        engine again(host_config()); // nothing is left of them
        CHECK(again.wait(again.submit(marker_task{})).ok());
    });
}
