#include "tests/model/memory.hpp"
#include <algorithm>

namespace slipstream::model {

void memory::clear()
{
    for (u32 i = 0; i < locations_used_; ++i) locations_[i].clear();
    locations_used_ = 0;
    cells_used_ = 0;
    page_ = 0;
    page_used_ = 0;
    attachments_used_ = 0;
    for (thread_state& t : threads_) {
        t.now.clear();
        for (view& v : t.pending) v.clear();
        t.released = {};
    }
    threads_[0].now.assign(threads_max, 0);
    threads_[0].now[0] = 1;
}

void memory::place(u32 thread, placement where) { threads_[thread].where = where; }

void memory::start_thread(u32 thread)
{
    threads_[thread].now = threads_[0].now;
    threads_[thread].now[thread] = 1;
}

u32 memory::add_location()
{
    if (locations_used_ == locations_.size()) locations_.emplace_back();
    locations_[locations_used_].push_back({value{}, 0, 0, scope::system, edge::count, nullptr});
    return locations_used_++;
}

u32 memory::add_cell()
{
    if (cells_used_ == cells_.size()) cells_.emplace_back();
    cells_[cells_used_].write = {0, 0, edge::count};
    cells_[cells_used_].reads.clear();
    cells_[cells_used_].updates.clear();
    return cells_used_++;
}

void memory::raise(view& v, u32 location, u32 index)
{
    if (v.size() <= threads_max + location) v.resize(threads_max + location + 1, 0);
    u32& slot = v[threads_max + location];
    slot = std::max(slot, index);
}

void memory::join(view& v, const u32* at, u32 size)
{
    if (v.size() < size) v.resize(size, 0);
    for (u32 i = 0; i < size; ++i) v[i] = std::max(v[i], at[i]);
}

u32* memory::take(u32 words)
{
    if (page_used_ + words > page_words) {
        ++page_;
        page_used_ = 0;
    }
    if (page_ == pages_.size()) pages_.push_back(std::make_unique<u32[]>(page_words));
    u32* out = pages_[page_].get() + page_used_;
    page_used_ += words;
    return out;
}

frozen_view memory::freeze(const view& v)
{
    u32* at = take(static_cast<u32>(v.size()));
    std::copy(v.begin(), v.end(), at);
    return {at, static_cast<u32>(v.size())};
}

const attachment* memory::attach(frozen_view v, scope reach, u32 owner, const attachment* next)
{
    if (attachments_used_ == attachments_.size()) attachments_.emplace_back();
    attachment& a = attachments_[attachments_used_++];
    a = {v, reach, owner, next};
    return &a;
}

scope memory::needed(u32 a, u32 b) const
{
    if (a == b || a == 0 || b == 0) return scope::block; // thread 0 runs before and after all others
    const placement& p = threads_[a].where;
    const placement& q = threads_[b].where;
    if (p.host || q.host) return scope::system;
    return p.block == q.block ? scope::block : scope::device;
}

bool memory::scopes_race(u32 thread, u32 location, u32 index, scope s) const
{
    const message& m = locations_[location][index];
    return m.clock > threads_[thread].now[m.writer] && !in_scope(s, m.reach, thread, m.writer);
}

value memory::read(u32 thread, u32 location, u32 index, order o, scope s)
{
    thread_state& t = threads_[thread];
    const message& m = locations_[location][index];
    raise(t.now, location, index);
    if (!in_scope(s, m.reach, thread, m.writer)) return m.bits;
    for (const attachment* a = m.attached; a; a = a->next) {
        const scope least = needed(thread, a->owner);
        if (a->reach < least) continue;
        if (acquires(o) && s >= least) join(t.now, a->view.at, a->view.size);
        else join(t.pending[static_cast<u32>(least)], a->view.at, a->view.size);
    }
    return m.bits;
}

void memory::append(u32 thread, u32 location, const value& bits, order o, scope s, edge tag, const attachment* inherited)
{
    thread_state& t = threads_[thread];
    raise(t.now, location, newest(location) + 1);
    const attachment* attached = inherited;
    for (u32 k = 0; k < 3; ++k)
        if (t.released[k].at && !(releases(o) && s >= static_cast<scope>(k)))
            attached = attach(t.released[k], static_cast<scope>(k), thread, attached);
    if (releases(o)) attached = attach(freeze(t.now), s, thread, attached);
    locations_[location].push_back({bits, thread, t.now[thread], s, tag, attached});
    ++t.now[thread];
}

void memory::write(u32 thread, u32 location, const value& bits, order o, scope s, edge tag)
{
    append(thread, location, bits, o, s, tag, nullptr);
}

value memory::add(u32 thread, u32 location, u64 amount, u64 mask, order o, scope s, edge tag)
{
    const u32 last = newest(location);
    const message& m = locations_[location][last];
    const attachment* inherited = in_scope(s, m.reach, thread, m.writer) ? m.attached : nullptr;
    const value before = read(thread, location, last, o, s);
    append(thread, location, value{(before[0] + amount) & mask, 0}, o, s, tag, inherited);
    return before;
}

void memory::fence(u32 thread, order o, scope s)
{
    thread_state& t = threads_[thread];
    if (acquires(o))
        for (u32 k = 0; k <= static_cast<u32>(s); ++k)
            if (!t.pending[k].empty()) join(t.now, t.pending[k].data(), static_cast<u32>(t.pending[k].size()));
    if (releases(o)) {
        t.released[static_cast<u32>(s)] = freeze(t.now);
        ++t.now[thread];
    }
}

void memory::barrier(const u32* threads, u32 count)
{
    view& all = threads_[threads[0]].now;
    for (u32 i = 1; i < count; ++i) join(all, threads_[threads[i]].now.data(), static_cast<u32>(threads_[threads[i]].now.size()));
    for (u32 i = 1; i < count; ++i) threads_[threads[i]].now = all;
    for (u32 i = 0; i < count; ++i) ++threads_[threads[i]].now[threads[i]];
}

void memory::join(u32 to, u32 from)
{
    join(threads_[to].now, threads_[from].now.data(), static_cast<u32>(threads_[from].now.size()));
}

race memory::cell_read(u32 thread, u32 cell, edge last)
{
    cell_state& c = cells_[cell];
    const view& now = threads_[thread].now;
    if (c.write.clock > now[c.write.thread]) return {true, true, c.write.thread, c.write.last};
    if (const access* u = unordered(c.updates, now)) return {true, true, u->thread, u->last};
    note(c.reads, thread, now[thread], last);
    return {};
}

race memory::cell_update(u32 thread, u32 cell, edge last)
{
    cell_state& c = cells_[cell];
    const view& now = threads_[thread].now;
    if (c.write.clock > now[c.write.thread]) return {true, true, c.write.thread, c.write.last};
    if (const access* r = unordered(c.reads, now)) return {true, false, r->thread, r->last};
    note(c.updates, thread, now[thread], last);
    return {};
}

race memory::cell_write(u32 thread, u32 cell, edge last)
{
    cell_state& c = cells_[cell];
    const view& now = threads_[thread].now;
    if (c.write.clock > now[c.write.thread]) return {true, true, c.write.thread, c.write.last};
    if (const access* u = unordered(c.updates, now)) return {true, true, u->thread, u->last};
    if (const access* r = unordered(c.reads, now)) return {true, false, r->thread, r->last};
    c.reads.clear();
    c.updates.clear();
    c.write = {thread, now[thread], last};
    return {};
}

} // namespace slipstream::model
