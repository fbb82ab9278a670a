// Crossing tasks are found by any of their places, and forgotten when all of these are over and nothing failed.
#include "host/crossing_book.hpp"
#include "trace_catch.hpp"
#include <random>
#include <set>
#include <vector>

using namespace slipstream;
using host::crossing_book;
using host::crossing_entry;

namespace {

constexpr u32 parts = 4;

bool same(const crossing_entry& a, const crossing_entry& b)
{
    bool good = a.home == b.home && a.parts == b.parts;
    for (u32 p = 0; p < parts; ++p)
        if (a.is_in(p)) good &= a.positions[p] == b.positions[p];
    return good;
}

/// Entries as an engine of four parts makes them: in each part positions ascend, and most of its tasks do not cross.
std::vector<crossing_entry> some_entries(u32 count, std::mt19937& random)
{
    std::array<u64, parts> next{};
    std::vector<crossing_entry> out;
    for (u32 i = 0; i < count; ++i) {
        crossing_entry e;
        while ((e.parts & (e.parts - 1)) == 0) e.parts = random() % (1u << parts);
        do e.home = random() % parts;
        while (!e.is_in(e.home));
        for (u32 p = 0; p < parts; ++p)
            if (e.is_in(p)) {
                next[p] += random() % 3;
                e.positions[p] = next[p]++;
            }
        out.push_back(e);
    }
    return out;
}

/// Is each entry found by each of its places, and nothing by any other? gone(i): entry i has been forgotten.
template <class Gone>
void check_places(crossing_book& book, const std::vector<crossing_entry>& entries, const Gone& gone)
{
    std::array<std::set<u64>, parts> taken;
    for (u32 i = 0; i < entries.size(); ++i)
        for (u32 p = 0; p < parts; ++p) {
            if (!entries[i].is_in(p)) continue;
            const auto found = book.find({p, entries[i].positions[p]});
            REQUIRE(found.has_value() != gone(i));
            if (found) REQUIRE(same(*found, entries[i]));
            taken[p].insert(entries[i].positions[p]);
        }
    for (u32 p = 0; p < parts; ++p)
        for (u64 position = 0; position < 4 * entries.size(); ++position)
            if (!taken[p].contains(position)) REQUIRE(!book.find({p, position}));
}

} // namespace

TEST_CASE("a crossing task is found by its place and by each stand-in's, and nothing by any other", "[host][crossing_book]")
{
    std::mt19937 random(7);
    for (u32 round = 0; round < 20; ++round) {
        const std::vector<crossing_entry> entries = some_entries(60, random);
        crossing_book book;
        for (u32 i = 0; i < entries.size(); ++i) REQUIRE(book.note(entries[i]) == i + 1);
        check_places(book, entries, [](u32) { return false; });
    }
}

TEST_CASE("the book forgets what is over everywhere, in order, and keeps what did not succeed", "[host][crossing_book]")
{
    std::mt19937 random(8);
    const std::vector<crossing_entry> entries = some_entries(90, random);
    crossing_book book;
    for (const crossing_entry& e : entries) book.note(e);
    u32 over = 0; // as many of the first ones
    const auto index_of = [&](task_handle place) {
        for (u32 i = 0; i < entries.size(); ++i)
            if (entries[i].is_in(place.ring) && entries[i].positions[place.ring] == place.position) return i;
        FAIL("asked for a place that nobody noted");
        return 0u;
    };
    // Of each seventh task one stand-in failed.
    const auto status_of = [&](task_handle place) -> task_status {
        const u32 i = index_of(place);
        if (i >= over) return {};
        const bool failed = i % 7 == 0 && place.ring != entries[i].home;
        return failed ? task_status{task_state::failed, 3, place} : task_status{task_state::complete, 0, {}};
    };
    for (over = 0; over <= entries.size(); over += 30) {
        book.prune(status_of);
        check_places(book, entries, [&](u32 i) { return i < over && i % 7 != 0; });
    }
}
