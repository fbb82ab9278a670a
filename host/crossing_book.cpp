// Notes crossing tasks, finds them by any of their places, and forgets those that succeeded.
#include "host/crossing_book.hpp"
#include <algorithm>

namespace slipstream::host {

/// Called with mutex_ held.
void crossing_book::append(const crossing_entry& entry)
{
    for_each_place(entry, [&](task_handle place) { last_[place.ring] = place.position; });
    entries_.push_back({entry.home, entry.parts, last_});
    ++noted_;
}

u64 crossing_book::size()
{
    const std::lock_guard lock(mutex_);
    return entries_.size();
}

std::optional<crossing_entry> crossing_book::find(task_handle place)
{
    const std::lock_guard lock(mutex_);
    // One more: none_yet comes first.
    const auto at = std::ranges::lower_bound(entries_, place.position + 1, {},
                                             [&](const crossing_entry& e) { return e.positions[place.ring] + 1; });
    if (at != entries_.end() && at->is_in(place.ring) && at->place_in(place.ring) == place) return *at;
    const auto kept = kept_places_.find({place.ring, place.position});
    if (kept == kept_places_.end()) return {};
    return kept_.at({kept->second.ring, kept->second.position});
}

void crossing_book::remember(task_handle task, const task_status& status)
{
    const std::lock_guard lock(mutex_);
    remembered_[{task.ring, task.position}] = status;
}

std::optional<task_status> crossing_book::remembered(task_handle task)
{
    const std::lock_guard lock(mutex_);
    const auto found = remembered_.find({task.ring, task.position});
    return found == remembered_.end() ? std::nullopt : std::optional(found->second);
}

/// Called with mutex_ held.
void crossing_book::pop(bool keep)
{
    const crossing_entry oldest = entries_.front();
    if (keep) {
        for_each_place(oldest, [&](task_handle place) { kept_places_[{place.ring, place.position}] = oldest.task(); });
        kept_[{oldest.home, oldest.task().position}] = oldest;
    }
    entries_.pop_front();
}

} // namespace slipstream::host
