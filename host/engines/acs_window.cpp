// Upstream lists are bit masks over the slots: a completion clears one bit in each.
#include "host/engines/acs_window.hpp"
#include <algorithm>
#include <bit>
#include <cassert>

namespace slipstream::engines {

u32 acs_window::ready() const
{
    return static_cast<u32>(std::popcount(ready_));
}

bool acs_window::conflict(const slot& next, const slot& earlier)
{
    if (next.whole_memory || earlier.whole_memory) return true;
    for (const abi::access_entry& a : next.accesses)
        for (const abi::access_entry& b : earlier.accesses)
            if (abi::conflicts(a, b)) return true;
    return false;
}

void acs_window::insert(u32 task, std::span<const abi::access_entry> accesses, bool whole_memory, std::span<const u32> after)
{
    assert(!full());
    const u32 at = static_cast<u32>(std::countr_one(occupied_));
    slot& mine = slots_[at];
    mine.task = task;
    mine.whole_memory = whole_memory;
    mine.accesses.assign(accesses.begin(), accesses.end());
    mine.upstream = 0;
    for (u32 left = occupied_; left != 0; left &= left - 1) {
        const u32 s = static_cast<u32>(std::countr_zero(left));
        assert(slots_[s].task < task);
        if (conflict(mine, slots_[s]) || std::find(after.begin(), after.end(), slots_[s].task) != after.end())
            mine.upstream |= 1u << s;
    }
    occupied_ |= 1u << at;
    if (mine.upstream == 0) ready_ |= 1u << at;
}

u32 acs_window::take_ready()
{
    u32 first = none;
    for (u32 left = ready_; left != 0; left &= left - 1) {
        const u32 s = static_cast<u32>(std::countr_zero(left));
        if (first == none || slots_[s].task < slots_[first].task) first = s;
    }
    if (first == none) return none;
    ready_ &= ~(1u << first);
    executing_ |= 1u << first;
    return first;
}

void acs_window::complete(u32 done)
{
    const u32 gone = 1u << done;
    assert(executing_ & gone);
    executing_ &= ~gone;
    occupied_ &= ~gone;
    for (u32 left = occupied_ & ~ready_ & ~executing_; left != 0; left &= left - 1) {
        const u32 s = static_cast<u32>(std::countr_zero(left));
        slots_[s].upstream &= ~gone; // others never have it: a task ahead does not wait for one behind
        if (slots_[s].upstream == 0) ready_ |= 1u << s;
    }
}

} // namespace slipstream::engines
