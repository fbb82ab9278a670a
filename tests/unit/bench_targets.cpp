// What counts as met in `slipstream bench targets`: noise and what did not verify never do.
#include "trace_catch.hpp"

#include "tools/slipstream/bench/target_list.hpp"
#include <cmath>

using namespace slipstream;
using namespace slipstream::bench;

namespace {

figure of(double value, const char* unit, bool verified = true)
{
    figure f{"the figure", unit, {value, value, value}};
    f.verified = verified;
    if (!verified) f.note = "wrong data";
    return f;
}

floor_entry floor_of(const char* name, double us)
{
    return {name, "us", floor_kind::limit, [=](u32) { return floor_result{{us}, true}; }};
}

/// The row that `judge` makes of this figure, on a GPU where two floors take 2 and 1.5 us and another came out as noise.
template <class Judge> target judged(const figure& f, Judge judge)
{
    floor_book floors({floor_of("floor", 2), floor_of("faster", 1.5), floor_of("noise", -1)}, 1);
    floors.prepare({"floor", "faster", "noise"});
    target_list list(floors, true);
    list.row("a row", "few", f);
    judge(list);
    return list.take().front();
}

} // namespace

TEST_CASE("a time of 0 or less is noise: not measured, whatever the limit", "[bench]")
{
    for (const char* unit : {"us", "ns", "B", "x"}) {
        for (const double value : {-3.0, 0.0, std::nan("")}) {
            INFO(unit << " " << value);
            const target t = judged(of(value, unit), [](target_list& list) { list.limit("<= 20", 20); });
            CHECK(t.outcome == verdict::not_measured);
            CHECK(t.why.find("noise") != std::string::npos);
        }
        CHECK(judged(of(19, unit), [](target_list& list) { list.limit("<= 20", 20); }).outcome == verdict::met);
        CHECK(judged(of(21, unit), [](target_list& list) { list.limit("<= 20", 20); }).outcome == verdict::falls_short);
    }
    const auto by_floor = [](target_list& list) { list.limit_by("floor", 1.5, "<= 1.5 x floor"); };
    CHECK(judged(of(-1, "us"), by_floor).outcome == verdict::not_measured);
    CHECK(judged(of(3, "us"), by_floor).outcome == verdict::met);
    CHECK(judged(of(3100, "ns"), by_floor).outcome == verdict::falls_short);
    const auto by_noise = [](target_list& list) { list.limit_by("noise", 1.5, "<= 1.5 x floor"); };
    CHECK(judged(of(3, "us"), by_noise).outcome == verdict::not_measured);
}

TEST_CASE("of several alternatives the fastest decides, and one without a figure leaves no verdict", "[bench]")
{
    const auto by = [](std::vector<std::string> names) {
        return [=](target_list& list) { list.limit_by(names, 1, "<= the faster of them"); };
    };
    for (const auto& names : {std::vector<std::string>{"floor", "faster"}, {"faster", "floor"}}) {
        CHECK(judged(of(1.4, "us"), by(names)).outcome == verdict::met);
        CHECK(judged(of(1.6, "us"), by(names)).outcome == verdict::falls_short);
    }
    for (const auto& names : {std::vector<std::string>{"floor", "noise"}, {"noise", "floor"}, {"floor", "nobody"}})
        CHECK(judged(of(1, "us"), by(names)).outcome == verdict::not_measured);
}

TEST_CASE("the note of a figure that is noise is not taken for the reason", "[bench]")
{
    figure f = of(-1, "us");
    f.note = "on one thread";
    CHECK(judged(f, [](target_list& list) { list.limit("<= 20", 20); }).why.find("noise") != std::string::npos);
    f.value.median = std::nan("");
    CHECK(judged(f, [](target_list& list) { list.limit("<= 20", 20); }).why.find("on one thread") != std::string::npos);
}

TEST_CASE("what a floor does not check is said beside it, unless it is wrong", "[bench]")
{
    floor_result empty{{1}, true};
    empty.note = "no data are checked";
    floor_result wrong = empty;
    wrong.verified = false;
    floor_book floors({{"empty", "us", floor_kind::limit, [=](u32) { return empty; }},
                       {"wrong", "us", floor_kind::limit, [=](u32) { return wrong; }}},
                      1);
    CHECK(floors.measure(floors.entries()[0]).note == "no data are checked");
    CHECK(floors.measure(floors.entries()[1]).note.find("wrong data") == 0);
}

TEST_CASE("a cost in per cent may be negative", "[bench]")
{
    CHECK(judged(of(-0.3, "%"), [](target_list& list) { list.limit("<= 2 %", 2); }).outcome == verdict::met);
}

TEST_CASE("a share of an alternative is one of two times", "[bench]")
{
    const auto share = [](target_list& list) { list.share_of("launched", 0.9, "rate, of launched"); };
    figure f = of(10, "us");
    f.alternatives = {{"launched", 9.5}};
    CHECK(judged(f, share).outcome == verdict::met);
    f.alternatives = {{"launched", -9.5}};
    CHECK(judged(f, share).outcome == verdict::not_measured);
    f.alternatives.clear();
    CHECK(judged(f, share).outcome == verdict::not_measured);
}

TEST_CASE("a figure that did not verify is no limit for another", "[bench]")
{
    const auto half_of = [](const figure& other) {
        return [=](target_list& list) { list.limit_by(other, 0.5, ">= 50 % of window 256", true); };
    };
    CHECK(judged(of(6, "M/s"), half_of(of(10, "M/s"))).outcome == verdict::met);
    CHECK(judged(of(4, "M/s"), half_of(of(10, "M/s"))).outcome == verdict::falls_short);
    const target t = judged(of(6, "M/s"), half_of(of(10, "M/s", false)));
    CHECK(t.outcome == verdict::not_measured);
    CHECK(t.why == "'the figure' was not measured in this run");
    CHECK(judged(of(6, "M/s"), half_of(of(std::nan(""), "M/s"))).outcome == verdict::not_measured);
}
