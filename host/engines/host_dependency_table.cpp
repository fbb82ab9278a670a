// Regions by size class: look-up, superseding, and whole-memory tasks as barriers.
#include "host/engines/host_dependency_table.hpp"
#include <algorithm>
#include <bit>
#include <cassert>

namespace slipstream::engines {

using abi::access_entry;
using abi::access_mode;
using abi::entry_kind;

namespace {

constexpr u64 without_mode = ~(u64{7} << 57);

bool same_shape(const access_entry& a, const access_entry& b)
{
    return ((a.head ^ b.head) & without_mode) == 0 && a.tail == b.tail;
}

void append_unique(std::vector<u32>& list, u32 task)
{
    if (list.empty() || list.back() != task) list.push_back(task);
}

} // namespace

host_dependency_table::host_dependency_table() : cache_(cache_slots)
{
    by_class_.reserve(classes);
    for (u32 c = 0; c < classes; ++c) by_class_.emplace_back(&nodes_);
}

u32 host_dependency_table::class_of(const access_entry& e) { return static_cast<u32>(std::bit_width(e.end() - e.begin())); }

host_dependency_table::key host_dependency_table::key_of(const access_entry& e, u32 serial)
{
    return {e.begin(), e.tail, static_cast<u32>(e.kind()), serial};
}

/// Calls visit(map, position) for each region that shares a byte with `e`; visit returns the position to go on from.
template <class Visit>
void host_dependency_table::visit_overlapping(const access_entry& e, Visit&& visit)
{
    const u64 lo = e.begin();
    const u64 hi = e.end();
    for (u64 left = classes_used_; left != 0; left &= left - 1) {
        const u32 first = static_cast<u32>(std::countr_zero(left));
        for (u32 c = first; c <= (first == 63 ? 64u : first); ++c) {
            // Regions of class c are shorter than 2^c bytes: only those that begin less than that before `lo` can reach it.
            region_map& map = by_class_[c];
            const u64 reach = c >= 63 ? ~u64{0} >> 1 : (u64{1} << c) - 1;
            auto it = map.lower_bound(key{lo > reach ? lo - reach : 0, 0, 0, 0});
            while (it != map.end() && it->first.begin < hi) {
                if (abi::overlaps(e, it->second.shape))
                    it = visit(map, it);
                else
                    ++it;
            }
        }
    }
}

host_dependency_table::region& host_dependency_table::place(const access_entry& shape, u32 serial)
{
    const u32 c = class_of(shape);
    classes_used_ |= u64{1} << std::min(c, 63u);
    region& r = by_class_[c][key_of(shape, serial)];
    r.shape = shape;
    return r;
}

host_dependency_table::region_map::iterator host_dependency_table::erase(region_map& map, region_map::iterator it)
{
    region*& cached = cache_slot(it->second.shape);
    if (cached == &it->second) cached = nullptr;
    return map.erase(it);
}

host_dependency_table::region*& host_dependency_table::cache_slot(const access_entry& e)
{
    const u64 hash = ((e.head & without_mode) ^ e.tail * 0xbf58476d1ce4e5b9u) * 0x9e3779b97f4a7c15u;
    return cache_[hash >> 50];
}

/// The region of this very shape when it is known to be the only one that meets it.
host_dependency_table::region* host_dependency_table::alone(const access_entry& e)
{
    region* const r = cache_slot(e);
    return r != nullptr && r->alone && e.kind() != entry_kind::loose && same_shape(r->shape, e) ? r : nullptr;
}

/// What a write waits for. Readers of a region waited for its writer; a task's own reads were noted before its writes, and
/// waited too.
void host_dependency_table::wait_for_users(u32 task, const region& r, std::vector<u32>& predecessors)
{
    if (r.readers.empty()) {
        if (r.writer != none && r.writer != task) predecessors.push_back(r.writer);
    } else {
        for (const u32 reader : r.readers)
            if (reader != task) predecessors.push_back(reader);
    }
}

void host_dependency_table::read(u32 task, const access_entry& e, std::vector<u32>& predecessors)
{
    region* mine = alone(e);
    if (mine != nullptr) {
        if (mine->writer != none) predecessors.push_back(mine->writer);
    } else {
        bool others = false;
        visit_overlapping(e, [&](region_map&, region_map::iterator it) {
            region& r = it->second;
            if (r.writer != none) predecessors.push_back(r.writer);
            if (it->first.serial == 0 && same_shape(r.shape, e)) {
                mine = &r;
            } else {
                r.alone = false;
                others = true;
            }
            return std::next(it);
        });
        if (mine == nullptr) mine = &place(e, 0);
        mine->alone = !others;
        cache_slot(e) = mine;
    }
    append_unique(mine->readers, task);
}

void host_dependency_table::write(u32 task, const access_entry& e, std::vector<u32>& predecessors)
{
    region* mine = alone(e);
    if (mine != nullptr) {
        wait_for_users(task, *mine, predecessors);
    } else {
        const bool exact = e.kind() != entry_kind::loose;
        bool others = false;
        remainders_.clear();
        visit_overlapping(e, [&](region_map& map, region_map::iterator it) {
            region& r = it->second;
            wait_for_users(task, r, predecessors);
            if (exact && same_shape(r.shape, e)) {
                mine = &r;
                return std::next(it);
            }
            if (abi::covers(e, r.shape)) return erase(map, it);
            if (e.kind() == entry_kind::range && r.shape.kind() == entry_kind::range) {
                const u64 begin = r.shape.begin(), end = r.shape.end();
                const auto keep = [&](u64 lo, u64 hi) {
                    if (lo < hi)
                        remainders_.push_back({access_entry::range(access_mode::none, lo, hi - lo), r.writer, false, r.readers});
                };
                keep(begin, e.begin());
                keep(e.end(), end);
                return erase(map, it);
            }
            r.alone = false;
            others = true;
            return std::next(it);
        });
        for (region& rest : remainders_) {
            // Whatever meets the rest met the whole, so no other region's `alone` changes.
            region& r = place(rest.shape, 0);
            if (r.readers.empty() && r.writer == none) {
                r.writer = rest.writer;
                r.readers = std::move(rest.readers);
                continue;
            }
            // Two live writers of one range cannot be: the later one cut the earlier one's region.
            assert(r.writer == none || rest.writer == none || r.writer == rest.writer);
            if (r.writer == none) r.writer = rest.writer;
            std::vector<u32> both;
            std::set_union(r.readers.begin(), r.readers.end(), rest.readers.begin(), rest.readers.end(), std::back_inserter(both));
            r.readers = std::move(both);
        }
        if (mine == nullptr) mine = &place(e, exact ? 0 : ++loose_serial_);
        mine->alone = exact && !others;
        if (exact) cache_slot(e) = mine;
    }
    mine->readers.clear();
    mine->writer = task;
}

void host_dependency_table::forget_regions()
{
    for (u64 left = classes_used_; left != 0; left &= left - 1) {
        const u32 c = static_cast<u32>(std::countr_zero(left));
        by_class_[c].clear();
        if (c == 63) by_class_[64].clear();
    }
    classes_used_ = 0;
    std::fill(cache_.begin(), cache_.end(), nullptr);
}

void host_dependency_table::admit_whole_memory(u32 task, std::vector<u32>& predecessors)
{
    // Whoever has a successor since the last barrier is waited for by way of it.
    predecessors.clear();
    for (std::size_t i = since_.size(); i-- > 0;)
        if (!has_successor_[i]) predecessors.push_back(since_[i]);
    if (predecessors.empty() && barrier_ != none) predecessors.push_back(barrier_);
    forget_regions();
    since_.clear();
    has_successor_.clear();
    barrier_ = task;
}

void host_dependency_table::admit(u32 task, std::span<const access_entry> accesses, bool whole_memory,
                                  std::vector<u32>& predecessors)
{
    assert((since_.empty() || task > since_.back()) && (barrier_ == none || task > barrier_));
    if (whole_memory) return admit_whole_memory(task, predecessors);

    for (const access_entry& e : accesses)
        if (e.is_memory() && e.reads() && !e.writes()) read(task, e, predecessors);
    for (const access_entry& e : accesses)
        if (e.is_memory() && e.writes()) write(task, e, predecessors);

    if (predecessors.size() > 1) {
        std::sort(predecessors.begin(), predecessors.end(), std::greater<>());
        predecessors.erase(std::unique(predecessors.begin(), predecessors.end()), predecessors.end());
    }
    if (barrier_ != none) {
        // Everything since the barrier waits for it, and it waits for everything before.
        while (!predecessors.empty() && predecessors.back() <= barrier_) predecessors.pop_back();
        if (predecessors.empty()) predecessors.push_back(barrier_);
    }
    for (const u32 p : predecessors) {
        if (p == barrier_) continue;
        const u32 back = since_.back() - p; // numbers are usually consecutive
        std::size_t at = since_.size() - 1 - std::min<std::size_t>(back, since_.size() - 1);
        if (since_[at] != p) at = static_cast<std::size_t>(std::lower_bound(since_.begin(), since_.end(), p) - since_.begin());
        has_successor_[at] = 1;
    }
    since_.push_back(task);
    has_successor_.push_back(0);
}

void host_dependency_table::clear()
{
    forget_regions();
    loose_serial_ = 0;
    barrier_ = none;
    since_.clear();
    has_successor_.clear();
}

u64 host_dependency_table::regions() const
{
    u64 count = 0;
    for (const region_map& map : by_class_) count += map.size();
    return count;
}

} // namespace slipstream::engines
