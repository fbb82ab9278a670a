// Overlap and coverage of accesses against sets of bytes.
#include "trace_catch.hpp"
#include <cstdio>
#include <random>
#include <set>
#include <slipstream/abi/access_entry.hpp>

using namespace slipstream;
using abi::access_entry;
using abi::access_mode;
using abi::entry_kind;

namespace {

struct shape {
    u64 address, width, rows, pitch;
    access_entry entry(access_mode mode = access_mode::read_write) const
    {
        return access_entry::rect(mode, address, width, rows, pitch);
    }
    std::set<u64> bytes() const
    {
        std::set<u64> out;
        for (u64 r = 0; r < rows; ++r)
            for (u64 c = 0; c < width; ++c) out.insert(address + r * pitch + c);
        return out;
    }
};

bool share(const std::set<u64>& a, const std::set<u64>& b)
{
    for (u64 x : a)
        if (b.contains(x)) return true;
    return false;
}

bool contains(const std::set<u64>& outer, const std::set<u64>& inner)
{
    for (u64 x : inner)
        if (!outer.contains(x)) return false;
    return true;
}

constexpr u64 base = 0x7f0000001000;

// `exact`: pitches are drawn from one value; else from several.
void compare_random(u64 seed, u32 rounds, bool exact)
{
    std::mt19937_64 random(seed);
    const auto below = [&](u64 n) { return random() % n; };
    u32 overlapping = 0, covering = 0, erred = 0;
    for (u32 i = 0; i < rounds; ++i) {
        const u64 pitch = 1 + below(9);
        const auto draw = [&] {
            shape s{base + below(40), below(12), 1 + below(5), pitch};
            if (!exact) s.pitch = 1 + below(9);
            if (below(3) == 0) s.rows = 1;
            return s;
        };
        const shape a = draw(), b = draw();
        const auto ea = a.entry(), eb = b.entry();
        const auto sa = a.bytes(), sb = b.bytes();
        INFO("seed " << seed << " round " << i << ": a " << a.address - base << " w" << a.width << " r" << a.rows << " p" << a.pitch
                     << "  b " << b.address - base << " w" << b.width << " r" << b.rows << " p" << b.pitch);
        const bool truth = share(sa, sb);
        // An empty access has kind none: the window never asks about it.
        if (!ea.is_memory() || !eb.is_memory()) {
            REQUIRE((sa.empty() || sb.empty()));
            continue;
        }
        const bool said = abi::overlaps(ea, eb);
        REQUIRE(said == abi::overlaps(eb, ea));
        if (truth) REQUIRE(said);
        const bool unequal = ea.kind() == entry_kind::rect && eb.kind() == entry_kind::rect && ea.pitch() != eb.pitch();
        if (!unequal) REQUIRE(said == truth);
        erred += said && !truth;
        overlapping += truth;
        if (abi::covers(ea, eb)) {
            REQUIRE(contains(sa, sb));
            ++covering;
        }
        if (ea.kind() == entry_kind::range && contains(sa, sb)) REQUIRE(abi::covers(ea, eb));
        if (ea.kind() == entry_kind::rect && eb.kind() == entry_kind::rect && !unequal && ea.begin() == eb.begin()
            && ea.width() >= eb.width() && ea.rows() >= eb.rows())
            REQUIRE(abi::covers(ea, eb));
    }
    REQUIRE(overlapping > rounds / 20);
    REQUIRE(covering > rounds / 200);
    if (exact) REQUIRE(erred == 0);
}

} // namespace

TEST_CASE("overlap of ranges and of rectangles of equal pitch is exact, wrapping ones included", "[device][access_entry]")
{
    for (u64 seed = 1; seed <= 4; ++seed) compare_random(seed, 8000, true);
}

TEST_CASE("rectangles of unequal pitch may be said to overlap, never to be apart or covered when they are not",
          "[device][access_entry]")
{
    for (u64 seed = 11; seed <= 14; ++seed) compare_random(seed, 8000, false);
}

TEST_CASE("adjacent half-open ranges do not overlap", "[device][access_entry]")
{
    const auto a = access_entry::range(access_mode::write, base, 16);
    CHECK_FALSE(abi::overlaps(a, access_entry::range(access_mode::write, base + 16, 16)));
    CHECK_FALSE(abi::overlaps(a, access_entry::range(access_mode::write, base - 1, 1)));
    CHECK(abi::overlaps(a, access_entry::range(access_mode::write, base + 15, 1)));
    CHECK(abi::overlaps(a, access_entry::range(access_mode::write, base - 1, 2)));
}

TEST_CASE("an empty range or rectangle is no memory access", "[device][access_entry]")
{
    CHECK_FALSE(access_entry::range(access_mode::write, base, 0).is_memory());
    CHECK_FALSE(access_entry::rect(access_mode::write, base, 0, 4, 8).is_memory());
    CHECK_FALSE(access_entry::rect(access_mode::write, base, 4, 0, 8).is_memory());
    CHECK_FALSE(access_entry::after(3, 4).is_memory());
}

TEST_CASE("two reads never conflict, every pair with a write on shared bytes does", "[device][access_entry]")
{
    const auto on = [](access_mode mode) { return access_entry::range(mode, base, 8); };
    using m = access_mode;
    CHECK_FALSE(abi::conflicts(on(m::read), on(m::read)));
    for (const auto next : {m::read, m::write, m::read_write})
        for (const auto earlier : {m::read, m::write, m::read_write})
            if (next != m::read || earlier != m::read) CHECK(abi::conflicts(on(next), on(earlier)));
}

TEST_CASE("a rectangle whose fields do not fit becomes a bounding range that covers nothing", "[device][access_entry]")
{
    const u64 pitch = (u64{1} << 24) + 64;
    const auto wide = access_entry::rect(access_mode::write, base, 64, 4, pitch);
    CHECK(wide.kind() == entry_kind::loose);
    CHECK(wide.begin() == base);
    CHECK(wide.end() == base + 3 * pitch + 64);
    CHECK(abi::overlaps(wide, access_entry::range(access_mode::read, base + pitch, 1)));
    CHECK_FALSE(abi::covers(wide, access_entry::range(access_mode::read, base, 1)));
    CHECK(abi::covers(access_entry::range(access_mode::write, base, 4 * pitch), wide));
    const auto tall = access_entry::rect(access_mode::write, base, 8, 70000, 16);
    CHECK(tall.kind() == entry_kind::loose);
    CHECK(tall.end() == base + 69999ull * 16 + 8);
}

TEST_CASE("an entry keeps address, mode, sizes and after positions bit for bit", "[device][access_entry]")
{
    std::mt19937_64 random(5);
    for (u32 i = 0; i < 2000; ++i) {
        const u64 address = random() & access_entry::address_mask;
        const auto mode = static_cast<access_mode>(1 + random() % 3);
        const u64 bytes = 1 + random() % (u64{1} << 40);
        const auto r = access_entry::range(mode, address, bytes);
        REQUIRE(r.begin() == address);
        REQUIRE(r.end() == address + bytes);
        REQUIRE(r.mode() == mode);
        const u64 width = 1 + random() % 4000, pitch = width + 1 + random() % 4000, rows = 2 + random() % 60000;
        const auto t = access_entry::rect(mode, address, width, rows, pitch);
        REQUIRE(t.kind() == entry_kind::rect);
        REQUIRE((t.begin() == address && t.width() == width && t.pitch() == pitch && t.rows() == rows));
        REQUIRE(t.end() == address + (rows - 1) * pitch + width);
        const u64 position = random();
        const auto a = access_entry::after(static_cast<u32>(i % 16), position);
        REQUIRE((a.after_ring() == i % 16 && a.after_position() == position && !a.reads() && !a.writes()));
    }
}
