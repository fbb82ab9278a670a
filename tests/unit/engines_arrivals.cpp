// How tasks arrive: paced ones not before their time, preloaded ones before the clock starts.
#include "device/layout.hpp"
#include "tests/stress/in_time.hpp"

#include <slipstream/engines.hpp>

using namespace slipstream;
using namespace slipstream::engines;

namespace {

/// y = 3 y + number: not commutative, so that order shows.
struct arriving_step {
    inout<u32> y;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.global_rank() == 0) y[0] = 3 * y[0] + number;
    }
};

struct arriving {
    std::unique_ptr<device_memory> device = open_device("host");
    u32* y = static_cast<u32*>(device->take(4));
    typed_program<arriving_step> program;
    u32 wanted = 0;

    explicit arriving(u32 tasks)
    {
        for (u32 i = 1; i <= tasks; ++i) {
            program.add(arriving_step{{y, 1}, i});
            wanted = 3 * wanted + i;
        }
    }
    run_result run(const std::string& name, arrivals when, const config& configuration = {})
    {
        const auto e = make_engine(name, configuration, *device, program.image());
        e->set_arrivals(std::move(when));
        e->prepare(program);
        device->fill(y, 0, 4);
        return e->run(program);
    }
};

} // namespace

TEST_CASE("paced tasks do not start before they arrive", "[engines][arrivals]")
{
    arriving test(20);
    arrivals when{arrival_mode::paced};
    for (u32 i = 0; i < 20; ++i) when.at_us.push_back(500.0 * i);
    for (const std::string& name : engine_names(false)) {
        const run_result r = test.run(name, when);
        CHECK(r.submit_us >= 500.0 * 19);
        CHECK(r.makespan_us >= r.submit_us);
        CHECK(*test.y == test.wanted);
    }
}

TEST_CASE("paced tasks need a time each: a run that has too few says so, and ends", "[engines][arrivals]")
{
    arriving test(20);
    for (const std::string& name : engine_names(false))
        for (const u32 times : {0u, 5u, 19u}) {
            INFO(name << ", " << times << " times");
            std::string said;
            try {
                (void)test.run(name, {arrival_mode::paced, std::vector<double>(times)});
            } catch (const config_error& e) {
                said = e.what();
            }
            CHECK(said.find("at_us has no times left") != std::string::npos);
        }
}

TEST_CASE("preloaded tasks are all in the ring before the kernel comes, however small a ring was asked for", "[engines][arrivals]")
{
    arriving test(300);
    config small;
    small.ring_slots = 4;
    small.window = 16;
    small.rings = 1;
    const run_result r = test.run("slipstream", {arrival_mode::preloaded}, small);
    CHECK(r.makespan_us > 0);
    CHECK(*test.y == test.wanted);
}

TEST_CASE("preloaded tasks are all in the rings, too, whose ranges reach into many pieces of several parts", "[engines][arrivals]")
{
    tests::in_time(20, [] {
        constexpr u32 pieces = 64, bytes = 256, tasks = 200;
        arriving test(0);
        auto* const data = static_cast<unsigned char*>(test.device->take(pieces * bytes));
        for (u32 i = 0; i < pieces; ++i) // every other one is part 1's
            (void)test.program.register_range(data + i * bytes, bytes, i % 2 == 0 ? 0 : 0.9);
        for (u32 i = 1; i <= tasks; ++i) {
            const declared_access all = reads_and_writes(data, pieces * bytes);
            test.program.add(arriving_step{{test.y, 1}, i}, {.accesses = {&all, 1}});
            test.wanted = 3 * test.wanted + i;
        }
        config two;
        two.parts = 2;
        two.host_workers = 4;
        two.ring_slots = 4;
        (void)test.run("slipstream", {arrival_mode::preloaded}, two);
        CHECK(*test.y == test.wanted);
    });
}

TEST_CASE("as many tasks can be preloaded as a thread may be ahead of its oldest unfinished one; more are refused beforehand",
          "[engines][arrivals]")
{
    constexpr u32 most = device::submissions_ahead_max;
    constexpr int patience = 120; // 3 s; but a hop of the chain is a turn of threads, and a busy machine gives turns seldom
    tests::in_time(patience, [] {
        arriving test(most);
        const auto e = make_engine("slipstream", {}, *test.device, test.program.image());
        e->set_arrivals({arrival_mode::preloaded});
        e->prepare(test.program);
        for (u32 run = 0; run < 2; ++run) { // the second one begins at another position
            test.device->fill(test.y, 0, 4);
            (void)e->run(test.program);
            CHECK(*test.y == test.wanted);
        }
    });
    tests::in_time(patience, [] {
        arriving test(most + 1);
        std::string said = "accepted";
        try {
            (void)test.run("slipstream", {arrival_mode::preloaded});
        } catch (const config_error& e) {
            said = e.what();
        }
        INFO(said);
        CHECK(said.find(std::to_string(most + 1) + " tasks") != std::string::npos);
        CHECK(said.find("at most " + std::to_string(most)) != std::string::npos);
        CHECK(said.find("--mode back-to-back") != std::string::npos);
        CHECK(*test.y == 0); // none ran
        (void)test.run("slipstream", {arrival_mode::back_to_back});
        CHECK(*test.y == test.wanted);
    });
}

TEST_CASE("engines refuse arrivals that make no sense for them, by name", "[engines][arrivals]")
{
    arriving test(1);
    for (const char* const name : {"serial", "slipstream-hostdep"}) {
        const auto e = make_engine(name, {}, *test.device, test.program.image());
        CHECK_FALSE(e->takes(arrival_mode::preloaded));
        CHECK(e->takes(arrival_mode::paced));
        CHECK_THROWS_AS(e->set_arrivals({arrival_mode::preloaded}), config_error);
    }
}
