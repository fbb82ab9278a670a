// Which part each registration of a program goes to, what of it a range touches, and which tasks cross.
#include "trace_catch.hpp"

#include "host/engines/memory_placement.hpp"

#include <random>
#include <slipstream/runtime.hpp>

using namespace slipstream;
using namespace slipstream::engines;

namespace {

struct pair_task {
    static constexpr const char* name = "pair";
    in<u64> from;
    out<u64> to;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const {}
};

constexpr u64 base = u64{1} << 40; // nobody looks there
void* at(u64 offset) { return reinterpret_cast<void*>(base + offset); }

program empty_program()
{
    return program(detail::image_of<detail::host_only, pair_task, marker_task>());
}

/// n registrations of so many bytes side by side, without a locality.
program row_of(u32 n, u64 bytes = 64)
{
    program p = empty_program();
    for (u32 i = 0; i < n; ++i) p.register_range(at(i * bytes), bytes);
    return p;
}

u32 part_of(const std::vector<placed_memory>& placed, u64 offset)
{
    for (const placed_memory& m : placed)
        if (base + offset >= m.address && base + offset < m.address + m.bytes) return m.part;
    return 0;
}

} // namespace

TEST_CASE("with one part nothing is placed", "[engines][parts]")
{
    CHECK(place_registrations(row_of(100), 1).empty());
    CHECK(place_registrations(empty_program(), 4).empty());
}

TEST_CASE("registrations without a locality go in consecutive runs of equal number, and neighbours are one piece",
          "[engines][parts]")
{
    for (const u32 parts : {2u, 3u, 5u, 8u})
        for (const u32 n : {parts, 7 * parts, 49 * parts, 1000 * parts}) {
            INFO(n << " registrations, " << parts << " parts");
            const auto placed = place_registrations(row_of(n), parts);
            REQUIRE(placed.size() == parts - 1);
            for (u32 part = 1; part < parts; ++part)
                CHECK(placed[part - 1] == placed_memory{base + 64ull * part * (n / parts), 64ull * (n / parts), part});
        }
}

TEST_CASE("runs differ by one where the number does not divide, and with fewer registrations than parts some are empty",
          "[engines][parts]")
{
    for (const u32 parts : {2u, 3u, 5u, 8u})
        for (u32 n = 1; n < 60; ++n) {
            INFO(n << " registrations, " << parts << " parts");
            const auto placed = place_registrations(row_of(n), parts);
            std::vector<u32> count(parts);
            u32 before = 0;
            for (u32 i = 0; i < n; ++i) {
                const u32 part = part_of(placed, 64 * i);
                REQUIRE((part >= before && part < parts));
                before = part;
                ++count[part];
            }
            for (const u32 c : count) CHECK((c == n / parts || c == (n + parts - 1) / parts));
        }
}

TEST_CASE("a locality decides, whatever the order and the addresses; the last step is no part beyond the last", "[engines][parts]")
{
    program p = empty_program();
    const double localities[] = {0.75, 0, 0.5, 0.25, 0.999999999999, 0.249, 0.7499};
    for (u32 i = 0; i < 7; ++i) p.register_range(at(1000 * i), 64, localities[i]);
    const auto placed = place_registrations(p, 4);
    const u32 expected[] = {3, 0, 2, 1, 3, 0, 2};
    for (u32 i = 0; i < 7; ++i) CHECK(part_of(placed, 1000 * i) == expected[i]);
    for (std::size_t i = 1; i < placed.size(); ++i) CHECK(placed[i - 1].address + placed[i - 1].bytes <= placed[i].address);

    // What rounding takes away from i * parts / n comes back: step i is part i's.
    for (u32 parts = 2; parts <= 8; ++parts) {
        program steps = empty_program();
        for (u32 i = 0; i < parts; ++i) steps.register_range(at(100 * i), 64, static_cast<double>(i) / parts);
        for (u32 i = 0; i < parts; ++i) CHECK(part_of(place_registrations(steps, parts), 100 * i) == i);
    }
}

TEST_CASE("tiles that lie between each other go together, gaps and all, by the mean of their localities", "[engines][parts]")
{
    program p = empty_program();
    // A matrix of 8 rows of 256 bytes: two rows of four tiles each, 4 rows of 64 bytes.
    const double localities[2][4] = {{0.1, 0.9, 0.1, 0.1}, {0.6, 0.6, 0.9, 0.3}}; // mean 0.3 and 0.6
    for (u32 row = 0; row < 2; ++row)
        for (u32 column = 0; column < 4; ++column)
            p.register_tile(at(row * 1024 + column * 64), 64, 4, 256, localities[row][column]);
    CHECK(place_registrations(p, 2) == std::vector<placed_memory>{{base + 1024, 1024, 1}});
    CHECK(place_registrations(p, 5) == std::vector<placed_memory>{{base, 1024, 1}, {base + 1024, 1024, 3}});

    // One that begins where the last row of the others ends is none of them; one in a gap is.
    program q = empty_program();
    q.register_tile(at(0), 64, 4, 256, 0.9);
    q.register_range(at(3 * 256 + 64), 64, 0);
    q.register_range(at(100), 8, 0.2); // mean with the tile: 0.55
    CHECK(place_registrations(q, 2) == std::vector<placed_memory>{{base, 3 * 256 + 64, 1}});
}

TEST_CASE("the parts and pieces that a range touches: each piece's, and part 0 for what lies between them", "[engines][parts]")
{
    const std::vector<placed_memory> placed{{base + 100, 100, 2}, {base + 200, 50, 1}, {base + 300, 100, 3}};
    const auto touched = [&](u64 begin, u64 end) { return parts_touched(placed, base + begin, base + end); };
    CHECK(touched(0, 100) == 1);
    CHECK(touched(99, 101) == (1 | 4));
    CHECK(touched(100, 200) == 4);
    CHECK(touched(199, 201) == (4 | 2));
    CHECK(touched(249, 251) == (2 | 1));
    CHECK(touched(250, 300) == 1);
    CHECK(touched(299, 301) == (1 | 8));
    CHECK(touched(399, 500) == (8 | 1));
    CHECK(touched(0, 1000) == 15);
    CHECK(touched(500, 600) == 1);
    CHECK(parts_touched({}, 5, 6) == 1);

    std::mt19937 random(1);
    for (u32 i = 0; i < 2000; ++i) {
        const u64 begin = random() % 450, end = begin + 1 + random() % 100;
        u32 expected = 0, pieces = 0;
        for (u64 b = begin; b < end; ++b) {
            expected |= 1u << part_of(placed, b);
            pieces += b == begin || part_of(placed, b) != part_of(placed, b - 1); // neighbours are of unequal parts here
        }
        REQUIRE(touched(begin, end) == expected);
        REQUIRE(pieces_touched(placed, base + begin, base + end) == pieces);
    }
}

TEST_CASE("tasks cross that touch several parts, by member or by declared access, or all memory; those without order do not",
          "[engines][parts]")
{
    program p = row_of(4);
    const auto placed = place_registrations(p, 2); // registrations 0 and 1, 2 and 3
    const auto add = [&](u32 from, u32 to, std::span<const declared_access> more = {}, ordering order = ordering::by_access) {
        const pair_task task{p.registrations()[from], p.registrations()[to]};
        const u64 before = crossing_tasks(p, placed);
        p.add(0, &task, 1, more, {}, order);
        return crossing_tasks(p, placed) - before;
    };
    CHECK(add(0, 1) == 0);
    CHECK(add(3, 2) == 0);
    CHECK(add(1, 2) == 1);
    const declared_access there = reads(at(3 * 64), 8), unregistered = reads(at(5000), 8),
                          over_the_border = writes(at(2 * 64 - 1), 2);
    CHECK(add(0, 1, std::span(&there, 1)) == 1);
    CHECK(add(2, 3, std::span(&there, 1)) == 0);
    CHECK(add(2, 3, std::span(&unregistered, 1)) == 1); // part 0's
    CHECK(add(0, 1, std::span(&unregistered, 1)) == 0);
    CHECK(add(0, 1, std::span(&over_the_border, 1)) == 1);
    CHECK(add(0, 1, {}, ordering::whole_memory) == 1);
    CHECK(add(1, 2, {}, ordering::no_access) == 0);
    CHECK(crossing_tasks(p, {}) == 1); // of one part, as they say: those that order all memory
}
