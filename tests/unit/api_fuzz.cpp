// Random streams against the sequential run, on the host device: windows, rings, threads, parks and blocks of every kind.
// SLIPSTREAM_SEED=n replays the streams of one seed.
#include "tests/stress/digest_stream.hpp"
#include "tests/stress/in_time.hpp"

using namespace slipstream;
using namespace slipstream::tests;

namespace {

using engine = runtime<listed_task, member_task, row_task>;

std::string run(u64 seed, const config& c, const stream_shape& shape)
{
    engine rt(c);
    const digest_stream stream(seed, shape);
    return run_stream(rt, stream, [](u32) {});
}

void fuzz(u64 first_seed, u32 seeds, stream_shape shape, config c)
{
    const u64 given = number_from_env("SLIPSTREAM_SEED", 0);
    if (given != 0) {
        first_seed = given;
        seeds = 1;
    }
    c.device = "host";
    c.memory_bytes = 1u << 20;
    c.staging_bytes = 1u << 18;
    for (u64 seed = first_seed; seed < first_seed + seeds; ++seed) {
        std::mt19937_64 random(seed);
        c.window = std::vector<u32>{16, 32, 64, 96, 256, 512, 1024}[random() % 7];
        c.ring_slots = std::vector<u32>{4, 8, 16, 64, 1024}[random() % 5];
        c.rings = std::max(shape.threads, 1 + static_cast<u32>(random() % 4));
        c.host_workers = 1 + static_cast<u32>(random() % 6);
        shape.blocks_max = 1 + static_cast<u32>(random() % 12);
        std::printf("seed %llu: window %u ring %u rings %u workers %u blocks %u residency %lld ms\n",
                    static_cast<unsigned long long>(seed), c.window, c.ring_slots, c.rings, c.host_workers, shape.blocks_max,
                    static_cast<long long>(c.residency.count()));
        const std::string verdict = run(seed, c, shape);
        INFO(verdict);
        REQUIRE(verdict.empty());
    }
}

} // namespace

TEST_CASE("random streams of one thread equal the sequential run", "[api][fuzz]")
{
    in_time(60, [] { fuzz(100, 12, {.tasks = 1500}, {}); });
}

TEST_CASE("random streams of three threads, ordered by after, equal the sequential run", "[api][fuzz]")
{
    in_time(60, [] { fuzz(200, 8, {.tasks = 1200, .threads = 3}, {}); });
}

TEST_CASE("random streams equal the sequential run while the kernel leaves every millisecond", "[api][fuzz]")
{
    in_time(60, [] {
        config c;
        c.residency = std::chrono::milliseconds(1);
        fuzz(300, 6, {.tasks = 1200, .threads = 2}, c);
    });
}

TEST_CASE("a removed RAW, WAR or WAW access is noticed by the digest", "[api][fuzz]")
{
    // The oracle itself must be able to fail: a long first task, and a second one that hides its access.
    struct edge_case {
        const char* name;
        u16 first, second;
    };
    for (const auto& e : {edge_case{"RAW", 2, 1}, edge_case{"WAR", 1, 2}, edge_case{"WAW", 2, 2}})
        in_time(20, [e] {
            INFO(e.name);
            for (const bool hidden : {false, true}) {
#if defined(__SANITIZE_THREAD__)
                if (hidden) continue; // a race on purpose
#endif
                digest_stream stream(7, {.tasks = 2, .whole_per_mille = 0});
                for (u32 t = 0; t < 2; ++t) {
                    planned_task p;
                    p.ops = {{40, 1, 8, 0, t == 0 ? e.first : e.second}};
                    p.handles = {0};
                    p.declared = 1;
                    p.at_ring = t;
                    stream.plan()[t] = p;
                }
                // WAW: the long task writes last; WAR: it reads at its start, so the reader itself must start late.
                stream.plan()[0].spin = 20'000'000;
                stream.rebuild();
                if (hidden) {
                    stream.plan()[1].declared = 0;
                    stream.plan()[1].order = ordering::no_access;
                }
                config c;
                c.device = "host";
                c.host_workers = 2;
                engine rt(c);
                const std::string verdict = run_stream(rt, stream, [](u32) {});
                INFO((hidden ? "hidden: " : "declared: ") << verdict);
                CHECK(verdict.empty() != hidden);
            }
        });
}
