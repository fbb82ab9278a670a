// By locality, in equal steps: of registrations without one, consecutive runs of equal number.
#include "host/engines/memory_placement.hpp"
#include "host/engines/declared_accesses.hpp"
#include <algorithm>
#include <bit>

namespace slipstream::engines {
namespace {

/// Registrations that lie between each other, as tiles of one row of tiles do: what is registered has to lie in one part, gaps
/// between its rows and all.
struct cluster {
    u64 begin = 0, end = 0;
    double localities = 0; ///< of all members together
    u32 members = 0;
};

std::vector<cluster> clusters_of(const program& p)
{
    std::vector<cluster> all;
    for (std::size_t i = 0; i < p.registrations().size(); ++i) {
        const data_handle& h = p.registrations()[i];
        const u64 gaps = h.rows > 1 ? u64{h.rows - 1} * h.pitch : 0;
        all.push_back({h.address, h.address + gaps + h.bytes, p.locality(i), 1});
    }
    std::stable_sort(all.begin(), all.end(), [](const cluster& a, const cluster& b) { return a.begin < b.begin; });
    std::vector<cluster> out;
    for (const cluster& c : all) {
        if (out.empty() || c.begin >= out.back().end) {
            out.push_back(c);
            continue;
        }
        out.back().end = std::max(out.back().end, c.end);
        out.back().localities += c.localities;
        out.back().members += c.members;
    }
    return out;
}

/// Calls visit(part) for one run of bytes after another.
template <class Visit>
void for_each_piece(std::span<const placed_memory> placed, u64 begin, u64 end, const Visit& visit)
{
    auto piece =
        std::upper_bound(placed.begin(), placed.end(), begin, [](u64 at, const placed_memory& m) { return at < m.address; });
    if (piece != placed.begin() && (piece - 1)->address + (piece - 1)->bytes > begin) --piece;
    for (; piece != placed.end() && piece->address < end; ++piece) {
        if (begin < piece->address) visit(0); // what lies between the pieces is part 0's
        visit(piece->part);
        begin = piece->address + piece->bytes;
    }
    if (begin < end) visit(0);
}

} // namespace

std::vector<placed_memory> place_registrations(const program& p, u32 parts)
{
    std::vector<placed_memory> out;
    for (const cluster& c : clusters_of(p)) {
        // The little more takes back what rounding has taken from i * parts / n.
        const u32 part = std::min(parts - 1, static_cast<u32>(c.localities / c.members * parts + 1e-9));
        if (part == 0) continue;
        if (!out.empty() && out.back().part == part && out.back().address + out.back().bytes == c.begin)
            out.back().bytes += c.end - c.begin;
        else
            out.push_back({c.begin, c.end - c.begin, part});
    }
    return out;
}

u32 parts_touched(std::span<const placed_memory> placed, u64 begin, u64 end)
{
    u32 out = 0;
    for_each_piece(placed, begin, end, [&](u32 part) { out |= 1u << part; });
    return out;
}

u32 pieces_touched(std::span<const placed_memory> placed, u64 begin, u64 end)
{
    u32 out = 0;
    for_each_piece(placed, begin, end, [&](u32) { ++out; });
    return out;
}

u64 crossing_tasks(const program& p, std::span<const placed_memory> placed)
{
    u64 out = 0;
    std::vector<abi::access_entry> accesses;
    for (const program_task& t : p.tasks()) {
        if (declared_accesses(p, t, accesses)) {
            ++out;
            continue;
        }
        if (t.order == ordering::no_access) continue;
        u32 touched = 0;
        for (const abi::access_entry& a : accesses)
            touched |= parts_touched(placed, a.begin(), a.end()); // of tiles the gaps too, as for the runtime
        out += std::popcount(touched) > 1;
    }
    return out;
}

} // namespace slipstream::engines
