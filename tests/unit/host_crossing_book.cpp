// Crossing tasks are found by any of their places, and forgotten when all of these are over and nothing failed.
#include "host/crossing_book.hpp"
#include "trace_catch.hpp"
#include <map>
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
        for (const crossing_entry& e : entries) book.note(e, [](task_handle) -> task_status { return {}; });
        CHECK(book.size() == entries.size());
        check_places(book, entries, [](u32) { return false; });
    }
}

TEST_CASE("the book forgets what is over everywhere, from the oldest on, and keeps what did not succeed", "[host][crossing_book]")
{
    std::mt19937 random(8);
    constexpr u32 turn = crossing_book::prune_turn;
    const std::vector<crossing_entry> entries = some_entries(8 * turn, random);
    std::array<std::map<u64, u32>, parts> index; // of an entry, by each of its places
    for (u32 i = 0; i < entries.size(); ++i)
        for (u32 p = 0; p < parts; ++p)
            if (entries[i].is_in(p)) index[p][entries[i].positions[p]] = i;
    crossing_book book;
    u32 noted = 0, over = 0;
    u32 lasting = ~0u; // one that is not over, though those behind it are
    // Of each seventh task the stand-ins failed.
    const auto status_of = [&](task_handle place) -> task_status {
        const u32 i = index[place.ring].at(place.position);
        if (i >= over || i == lasting) return {};
        const bool failed = i % 7 == 0 && place.ring != entries[i].home;
        return failed ? task_status{task_state::failed, 3, place} : task_status{task_state::complete, 0, {}};
    };
    const auto note = [&](u32 count) {
        for (u32 i = 0; i < count; ++i) book.note(entries[noted++], status_of);
    };
    const auto check = [&](u32 gone) {
        CHECK(book.size() == noted - gone);
        check_places(book, {entries.begin(), entries.begin() + noted}, [&](u32 i) { return i < gone && i % 7 != 0; });
    };

    note(turn - 1);
    over = turn - 1;
    check(0); // nobody looked
    note(1);
    check(over);
    lasting = turn + 3; // the others wait behind it
    over = 2 * turn;
    note(turn);
    check(lasting);
    note(4 * turn);
    over = 6 * turn;
    check(lasting);
    lasting = ~0u;
    note(turn);
    CHECK(book.size() == noted - (turn + 3) - crossing_book::prune_max); // no more than so many at a time
    note(turn);
    check(over);
}
