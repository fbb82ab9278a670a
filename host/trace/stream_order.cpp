// stream_order: one sweep in submission order with the last task of each stream at hand.
#include "stream_order.hpp"

#include <algorithm>
#include <iterator>
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
    std::size_t host_waits_seen = 0;
};

}  // namespace

void chain_streams(std::vector<recorded_task>& tasks, const std::vector<sync_point>& syncs, std::uint64_t edges_max) {
    std::map<stream_key, stream_state> streams;
    // What the host has waited for, oldest first. Every stream takes each entry once, with its next task.
    std::vector<std::uint32_t> host_waits;
    std::map<stream_key, std::uint32_t> waited;  // the last of them by stream
    std::set<stream_key> unwaited;               // streams with tasks since the last wait for their device
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
        const auto [it, fresh] = waited.emplace(key_of(tasks[task]), task);
        if (!fresh && it->second >= task) return;  // implied by an earlier wait
        it->second = task;
        host_waits.push_back(task);
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
        // A later wait on the same stream implies the earlier ones: keep the last per stream.
        std::map<stream_key, std::uint32_t> newest;
        for (; own.host_waits_seen < host_waits.size(); ++own.host_waits_seen) {
            const std::uint32_t t = host_waits[own.host_waits_seen];
            const auto [it, fresh] = newest.emplace(key_of(tasks[t]), t);
            if (!fresh) it->second = std::max(it->second, t);
        }
        for (const auto& [key, t] : newest)
            if (key != key_of(tasks[i])) after.push_back(t);
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
