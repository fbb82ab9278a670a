// The search: all pairs within a short stretch of the program, exact conflicts, reachability by hand.
#include "workloads/digest/broken_edge.hpp"
#include "host/engines/declared_accesses.hpp"
#include <algorithm>
#include <vector>

namespace slipstream::workloads {
namespace {

using abi::access_entry;

struct declared_task {
    bool whole = false;
    std::vector<access_entry> entries;
};

access_entry entry_of(const declared_access& a)
{
    return a.rows > 1 ? access_entry::rect(a.mode, a.address, a.bytes, a.rows, a.pitch)
                      : access_entry::range(a.mode, a.address, a.bytes);
}

class search {
public:
    search(const engines::program& p, const std::string& kind) : p_(p), kind_(kind), tasks_(p.tasks().size())
    {
        for (std::size_t i = 0; i < tasks_.size(); ++i)
            tasks_[i].whole = engines::declared_accesses(p, p.tasks()[i], tasks_[i].entries);
    }

    /// A pair whose stretch h..t has at most `span` tasks between its ends.
    bool find(u32 span, broken_edge& found) const
    {
        const u32 last = std::min<u32>(static_cast<u32>(tasks_.size()), 20000);
        for (u32 t = 2; t < last; ++t) {
            const auto declared = p_.accesses(p_.tasks()[t]);
            if (p_.tasks()[t].order != ordering::by_access) continue;
            for (u32 k = 0; k < declared.size(); ++k) {
                const access_entry forgotten = entry_of(declared[k]);
                if (forgotten.kind() != abi::entry_kind::range) continue;
                if (kind_ == "RAW" ? forgotten.writes() : forgotten.reads()) continue;
                declared_task rest = without(t, k);
                for (u32 p = t - 1; p + span > t && p > 0; --p)
                    if (const u32 h = held_for(t, forgotten, rest, p, span); h != t) {
                        found = {kind_, t, k, p, h};
                        return true;
                    }
            }
        }
        return false;
    }

private:
    declared_task without(u32 t, u32 k) const
    {
        // The members' accesses come first in the entries; equal entries are equal for our purpose.
        declared_task rest = tasks_[t];
        const access_entry gone = entry_of(p_.accesses(p_.tasks()[t])[k]);
        for (auto it = rest.entries.begin(); it != rest.entries.end(); ++it)
            if (it->head == gone.head && it->tail == gone.tail) {
                rest.entries.erase(it);
                break;
            }
        return rest;
    }

    static bool conflict(const declared_task& next, const declared_task& earlier)
    {
        if (next.whole || earlier.whole) return true;
        for (const access_entry& a : next.entries)
            for (const access_entry& b : earlier.entries)
                if (abi::conflicts(a, b)) return true;
        return false;
    }

    bool waits_directly(u32 next, u32 earlier) const
    {
        const auto after = p_.after(p_.tasks()[next]);
        return conflict(tasks_[next], tasks_[earlier]) || std::find(after.begin(), after.end(), earlier) != after.end();
    }

    /// The task to hold for (t, p), or t when the pair will not do.
    u32 held_for(u32 t, const access_entry& forgotten, const declared_task& rest, u32 p, u32 span) const
    {
        if (tasks_[p].whole || !right_kind(t, forgotten, p)) return t;
        // Ancestors of t without the forgotten access, within the stretch: a path from h to t lies wholly in it.
        const u32 first = t > span ? t - span : 0;
        std::vector<bool> ancestor(t - first + 1, false);
        const auto after = p_.after(p_.tasks()[t]);
        for (u32 u = t; u-- > first;) {
            bool yes = conflict(rest, tasks_[u]) || std::find(after.begin(), after.end(), u) != after.end();
            for (u32 v = u + 1; v < t && !yes; ++v) yes = ancestor[v - first] && waits_directly(v, u);
            ancestor[u - first] = yes;
        }
        if (ancestor[p - first]) return t;
        for (u32 h = p; h-- > first;) {
            // WAR: a task between that t does not wait for would write the bytes again before p reads them, and hide
            // that t wrote too early.
            if (kind_ == "WAR" && !ancestor[h - first] && writes_over(h, forgotten)) return t;
            if (!ancestor[h - first] && !tasks_[h].whole && waits_directly(p, h)) return h;
        }
        return t;
    }

    bool writes_over(u32 u, const access_entry& bytes) const
    {
        for (const access_entry& b : tasks_[u].entries)
            if (b.writes() && abi::overlaps(bytes, b)) return true;
        return tasks_[u].whole;
    }

    bool right_kind(u32 t, const access_entry& forgotten, u32 p) const
    {
        bool reads = false, writes = false;
        access_entry shared{};
        for (const access_entry& b : tasks_[p].entries) {
            if (!abi::overlaps(forgotten, b)) continue;
            reads |= b.reads();
            writes |= b.writes();
            if (b.writes() && b.kind() == abi::entry_kind::range) {
                const u64 lo = std::max(b.begin(), forgotten.begin()), hi = std::min(b.end(), forgotten.end());
                shared = access_entry::range(abi::access_mode::write, lo, hi - lo);
            }
        }
        if (kind_ == "RAW") return writes && !overwritten_between(t, forgotten, p);
        if (kind_ == "WAR") return reads && !writes && !own_read_hides(t, forgotten);
        return writes && shared.is_memory() && shows_later(t, shared);
    }

    /// RAW: another task between p and t that writes there too would be what t really waits for.
    bool overwritten_between(u32 t, const access_entry& forgotten, u32 p) const
    {
        for (u32 u = p + 1; u < t; ++u)
            for (const access_entry& b : tasks_[u].entries)
                if (b.writes() && abi::overlaps(forgotten, b)) return true;
        return false;
    }

    /// The task writes the same bytes under another declared access too: forgetting this one removes nothing.
    bool own_read_hides(u32 t, const access_entry& forgotten) const
    {
        u32 hits = 0;
        for (const access_entry& b : tasks_[t].entries) hits += abi::overlaps(forgotten, b);
        return hits > 1;
    }

    /// WAW: is the next use of these bytes a read, or is there none?
    bool shows_later(u32 t, const access_entry& shared) const
    {
        if (own_read_hides(t, shared)) return false;
        for (std::size_t u = t + 1; u < tasks_.size(); ++u) {
            if (tasks_[u].whole) return false; // may use anything
            bool reads = false, writes = false;
            for (const access_entry& b : tasks_[u].entries) {
                if (!abi::overlaps(shared, b)) continue;
                reads |= b.reads();
                writes |= b.writes();
            }
            if (reads) return true;
            if (writes) return false;
        }
        return true;
    }

    const engines::program& p_;
    std::string kind_;
    std::vector<declared_task> tasks_;
};

} // namespace

broken_edge find_broken_edge(const engines::program& p, const std::string& kind)
{
    if (kind != "RAW" && kind != "WAR" && kind != "WAW")
        throw config_error("unknown kind of edge '" + kind + "': use RAW, WAR or WAW");
    const search s(p, kind);
    broken_edge found;
    for (const u32 span : {4u, 8u, 12u, 24u, 48u})
        if (s.find(span, found)) return found;
    throw config_error("no " + kind + " edge of this program can be removed so that it shows: every pair close together is ordered "
                       "in other ways too; use more tasks or another seed");
}

} // namespace slipstream::workloads
