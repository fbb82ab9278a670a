// Stream choice and pruning of waits by vector clocks.
#include "host/engines/stream_assigner.hpp"
#include <algorithm>

namespace slipstream::engines {

stream_assigner::stream_assigner(u32 streams)
    : streams_(streams), clocks_(static_cast<std::size_t>(streams) * streams), length_(streams), last_used_(streams)
{
}

stream_assigner::placement stream_assigner::place(std::span<const u32> predecessors)
{
    u32 stream = streams_;
    for (const u32 p : predecessors)
        if (places_[p].place == length_[places_[p].stream]) {
            stream = places_[p].stream;
            break;
        }
    if (stream == streams_)
        stream = static_cast<u32>(std::min_element(last_used_.begin(), last_used_.end()) - last_used_.begin());

    u32* const clock = &clocks_[static_cast<std::size_t>(stream) * streams_];
    waits_.clear();
    for (const u32 p : predecessors) {
        const task_place at = places_[p];
        if (at.stream == stream || clock[at.stream] >= at.place) continue;
        waits_.push_back(p);
        const u32* const theirs = &task_clocks_[static_cast<std::size_t>(p) * streams_];
        for (u32 s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], theirs[s]);
    }
    clock[stream] = ++length_[stream];
    places_.push_back({stream, length_[stream]});
    last_used_[stream] = static_cast<u32>(places_.size());
    task_clocks_.insert(task_clocks_.end(), clock, clock + streams_);
    return {stream, waits_};
}

std::vector<u32> stream_assigner::open_streams() const
{
    std::vector<u32> open;
    for (u32 s = 0; s < streams_; ++s) {
        bool covered = length_[s] == 0;
        for (u32 other = 0; other < streams_ && !covered; ++other)
            covered = other != s && clocks_[static_cast<std::size_t>(other) * streams_ + s] == length_[s];
        if (!covered) open.push_back(s);
    }
    return open;
}

void stream_assigner::reset()
{
    std::fill(clocks_.begin(), clocks_.end(), 0);
    std::fill(length_.begin(), length_.end(), 0);
    std::fill(last_used_.begin(), last_used_.end(), 0);
    places_.clear();
    task_clocks_.clear();
}

void stream_assigner::reserve(u32 tasks)
{
    places_.reserve(tasks);
    task_clocks_.reserve(static_cast<std::size_t>(tasks) * streams_);
}

} // namespace slipstream::engines
