// Notes crossing tasks, finds them by any of their places, and forgets those that succeeded.
#include "host/crossing_book.hpp"
#include <algorithm>

namespace slipstream::host {

void crossing_book::note(const crossing_entry& entry)
{
    const std::lock_guard lock(mutex_);
    const u64 number = first_ + entries_.size();
    entries_.push_back(entry);
    for_each_place(entry, [&](task_handle place) { places_[place.ring].push_back({place.position, number}); });
}

std::optional<crossing_entry> crossing_book::find(task_handle place)
{
    const std::lock_guard lock(mutex_);
    const auto& places = places_[place.ring];
    const auto at = std::ranges::lower_bound(places, place.position, {}, &noted_place::position);
    if (at != places.end() && at->position == place.position) return entries_[at->number - first_];
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
    for_each_place(oldest, [&](task_handle place) {
        places_[place.ring].pop_front();
        if (keep) kept_places_[{place.ring, place.position}] = oldest.task;
    });
    if (keep) kept_[{oldest.task.ring, oldest.task.position}] = oldest;
    entries_.pop_front();
    ++first_;
}

} // namespace slipstream::host
