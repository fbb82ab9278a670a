// Which tasks touch memory of several parts, and which stand-ins they have there: so that a failure that one part tells of in its own terms can be told in the
// caller's.
//
// An entry is of use until its task and all its stand-ins are retired, and for ever if they did not all succeed: like the failure_book, what is known stays known.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <slipstream/abi/message.hpp>
#include <slipstream/status.hpp>

namespace slipstream::host {

/// Handles here are the caller's: `ring` is the part.
struct crossing_entry {
    task_handle task;                               ///< in its home
    u32 parts = 0;                                  ///< bits: where it has stand-ins
    std::array<u64, abi::parts_max> stand_in{};     ///< their positions

    bool stands_in(u32 part) const { return (parts >> part & 1) != 0; }
};

class crossing_book {
public:
    /// In the order of submission.
    void note(const crossing_entry& entry);
    /// The entry of a task, or of the one that a stand-in stands for.
    std::optional<crossing_entry> find(task_handle place);

    /// What has become of a task that was cancelled for something in another part, once found out: the way there may be long.
    void remember(task_handle task, const task_status& status);
    std::optional<task_status> remembered(task_handle task);

    /// Lets go of the oldest entries, a few at each call, as far as status_of(place) says that they are over.
    template <class StatusOf>
    void prune(const StatusOf& status_of)
    {
        const std::lock_guard lock(mutex_);
        for (u32 i = 0; i < prune_max && !entries_.empty(); ++i) {
            const crossing_entry& oldest = entries_.front();
            bool over = true, ok = true;
            for_each_place(oldest, [&](task_handle place) {
                const task_status status = over ? status_of(place) : task_status{};
                over &= status.state != task_state::pending;
                ok &= status.ok();
            });
            if (!over) return;
            pop(!ok);
        }
    }

private:
    static constexpr u32 prune_max = 4; ///< more than are added between two calls

    struct noted_place {
        u64 position;
        u64 number; ///< of the entry
    };

    template <class Visit>
    static void for_each_place(const crossing_entry& e, const Visit& visit)
    {
        visit(e.task);
        for (u32 p = 0; p < abi::parts_max; ++p)
            if (e.stands_in(p)) visit(task_handle{p, e.stand_in[p]});
    }
    void pop(bool keep);

    std::mutex mutex_;
    std::deque<crossing_entry> entries_;
    u64 first_ = 0; ///< number of the first of them
    std::array<std::deque<noted_place>, abi::parts_max> places_; ///< of them, in each part: ascending
    // Of those that did not succeed.
    std::map<std::pair<u32, u64>, task_handle> kept_places_;
    std::map<std::pair<u32, u64>, crossing_entry> kept_; ///< by task
    std::map<std::pair<u32, u64>, task_status> remembered_;
};

} // namespace slipstream::host
