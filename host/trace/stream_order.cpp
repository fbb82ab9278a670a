// stream_order: one sweep in submission order with the last task of each stream at hand.
#include "stream_order.hpp"

#include <algorithm>
#include <iterator>
#include <list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace slipstream::trace {

namespace {

using stream_key = std::pair<std::uint32_t, std::uint64_t>;  // device, stream

stream_key key_of(const recorded_task& t) { return {t.device, t.stream}; }

void sort_unique(std::vector<std::uint32_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}

struct stream_state {
    std::vector<std::uint32_t> tasks;    // so far, in order
    std::vector<std::uint32_t> pending;  // predecessors that the next task takes
    std::uint64_t host_waits_seen = 0;   // number of the last one that a task here has taken
};

struct host_wait {
    stream_key stream;  // what was waited for: this stream up to this task
    std::uint32_t task;
    std::uint64_t number;  // counted on from 1
};

}  // namespace

void chain_streams(std::vector<recorded_task>& tasks, const std::vector<sync_point>& syncs, std::uint64_t edges_max) {
    std::map<stream_key, stream_state> streams;
    // What the host has waited for, oldest first: of each stream the last wait alone, which implies those before it. So each
    // entry that a task looks at is an edge of it (but for one, its own stream's). Every stream takes each once, with its next
    // task.
    std::list<host_wait> host_waits;
    std::map<stream_key, std::list<host_wait>::iterator> waited;
    std::uint64_t host_waits_count = 0;
    std::set<stream_key> unwaited;  // streams with tasks since the last wait for their device
    std::size_t next_sync = 0;
    std::uint64_t edges = 0;

    const auto last_before = [&](const stream_key& key, double us, std::uint32_t& task) {
        const auto it = streams.find(key);
        if (it == streams.end()) return false;
        const auto& list = it->second.tasks;
        const auto behind = std::partition_point(list.begin(), list.end(),
                                                 [&](std::uint32_t t) { return tasks[t].submit_us < us; });
        if (behind == list.begin()) return false;
        task = *std::prev(behind);
        return true;
    };
    const auto host_waits_for = [&](std::uint32_t task) {
        const stream_key key = key_of(tasks[task]);
        const auto [it, fresh] = waited.try_emplace(key, host_waits.end());
        if (!fresh && it->second->task >= task) return;  // implied by an earlier wait
        if (!fresh) host_waits.erase(it->second);
        it->second = host_waits.insert(host_waits.end(), {key, task, ++host_waits_count});
    };
    const auto apply = [&](const sync_point& s) {
        std::uint32_t task = 0;
        switch (s.kind) {
            case kineto_log::sync_kind::stream_waits_event:
                if (last_before({s.device, s.wait_on_stream}, s.recorded_us, task))
                    streams[{s.device, s.stream}].pending.push_back(task);
                break;
            case kineto_log::sync_kind::host_waits_event:
            case kineto_log::sync_kind::host_waits_stream:
                if (last_before({s.device, s.wait_on_stream}, s.recorded_us, task)) host_waits_for(task);
                break;
            case kineto_log::sync_kind::host_waits_device:
                for (auto it = unwaited.lower_bound({s.device, 0}); it != unwaited.end() && it->first == s.device;) {
                    host_waits_for(streams[*it].tasks.back());
                    it = unwaited.erase(it);
                }
                break;
        }
    };

    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        for (; next_sync < syncs.size() && syncs[next_sync].submit_us <= tasks[i].submit_us; ++next_sync)
            apply(syncs[next_sync]);
        stream_state& own = streams[key_of(tasks[i])];
        std::vector<std::uint32_t> after = std::move(own.pending);
        own.pending.clear();
        for (auto it = host_waits.rbegin(); it != host_waits.rend() && it->number > own.host_waits_seen; ++it)
            if (it->stream != key_of(tasks[i])) after.push_back(it->task);
        own.host_waits_seen = host_waits_count;
        if (!own.tasks.empty()) after.push_back(own.tasks.back());
        sort_unique(after);
        edges += after.size();
        if (edges > edges_max)
            throw std::length_error("more than " + std::to_string(edges_max) + " stream-order edges");
        tasks[i].after = std::move(after);
        own.tasks.push_back(i);
        unwaited.insert(key_of(tasks[i]));
    }
}

void fence_unknown_tasks(std::vector<recorded_task>& tasks) {
    struct fence_state {
        std::vector<std::uint32_t> since;  // tasks behind the last unknown one, itself included
        bool has_unknown = false;
        std::uint32_t unknown = 0;
    };
    std::map<stream_key, fence_state> streams;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        fence_state& s = streams[key_of(tasks[i])];
        if (tasks[i].accesses_known) {
            if (s.has_unknown) tasks[i].after.push_back(s.unknown);
        } else {
            tasks[i].after.insert(tasks[i].after.end(), s.since.begin(), s.since.end());
            s.since.clear();
            s.has_unknown = true;
            s.unknown = i;
        }
        s.since.push_back(i);
        sort_unique(tasks[i].after);
    }
}

}  // namespace slipstream::trace
