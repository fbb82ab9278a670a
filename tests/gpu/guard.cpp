// The baselines are as good as hand-written CUDA, and the guard that says so can fail.
#include "tests/stress/in_time.hpp"
#include "tools/slipstream/bench/guard/guard.hpp"

using namespace slipstream;
using slipstream::tests::in_time;

namespace {

std::vector<bench::target> rows(bool slow_streams)
{
    const auto device = engines::open_device("cuda");
    return bench::measure_guard(*device, 11, slow_streams);
}

} // namespace

TEST_CASE("serial, streams and graph-replay stay within 15 % of hand-written CUDA", "[gpu][guard]")
{
    in_time(60, [] {
        for (const bench::target& t : rows(false)) {
            INFO(t.row << ": " << t.measured->value.median << " us, wanted " << t.wanted << " of "
                       << t.measured->alternatives.front().value << " us");
            CHECK(t.measured->verified);
            CHECK(t.outcome == bench::verdict::met);
        }
    });
}

TEST_CASE("streams slowed on purpose do not pass the guard", "[gpu][guard]")
{
    in_time(60, [] {
        u32 fallen = 0, of_streams = 0;
        for (const bench::target& t : rows(true)) {
            if (t.row.rfind("streams,", 0) != 0) continue;
            ++of_streams;
            fallen += t.measured->verified && t.outcome == bench::verdict::falls_short ? 1 : 0;
        }
        CHECK(of_streams == 6);
        CHECK(fallen == of_streams);
    });
}
