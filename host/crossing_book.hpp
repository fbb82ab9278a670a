// Which tasks touch memory of several parts, and which stand-ins they have there: so that a failure that one part tells of in its
// own terms can be told in the caller's.
//
// An entry is of use until its task and all its stand-ins are retired, and for ever if they did not all succeed:
// like the failure_book, what is known stays known.
#pragma once
#include <array>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <slipstream/abi/message.hpp>
#include <slipstream/status.hpp>

namespace slipstream::host {

/// A task in its home, and its stand-ins. Handles here are the caller's: `ring` is the part.
struct crossing_entry {
    u32 home = 0;
    u32 parts = 0;                               ///< bits: where it or a stand-in of it is
    std::array<u64, abi::parts_max> positions{}; ///< there

    bool is_in(u32 part) const { return (parts >> part & 1) != 0; }
    task_handle place_in(u32 part) const { return {part, positions[part]}; }
    task_handle task() const { return place_in(home); }
};

class crossing_book {
public:
    /// In the order of submission. At every prune_turn of them lets go of the oldest ones, as far as status_of(place) says that
    /// they are over, and of no more than prune_max: what is asked there the device writes, so that nearly each look is a cache
    /// miss.
    template <class StatusOf>
    void note(const crossing_entry& entry, const StatusOf& status_of)
    {
        const std::lock_guard lock(mutex_);
        append(entry);
        if (noted_ % prune_turn == 0) prune(status_of);
    }
    static constexpr u32 prune_turn = 32;
    static constexpr u32 prune_max = 4 * prune_turn; ///< more than are added between two of these looks
    /// Entries of tasks that are not known to be over.
    u64 size();
    /// The entry of a task, or of the one that a stand-in stands for.
    std::optional<crossing_entry> find(task_handle place);

    /// What has become of a task that was cancelled for something in another part, once found out: the way there may be long.
    void remember(task_handle task, const task_status& status);
    std::optional<task_status> remembered(task_handle task);

private:
    static constexpr u64 none_yet = ~u64{0};

    template <class Visit>
    static void for_each_place(const crossing_entry& e, const Visit& visit)
    {
        for (u32 p = 0; p < abi::parts_max; ++p)
            if (e.is_in(p)) visit(e.place_in(p));
    }
    void append(const crossing_entry& entry);
    template <class StatusOf>
    void prune(const StatusOf& status_of)
    {
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
    void pop(bool keep);

    std::mutex mutex_;
    /// Where an entry is not, its position is that of the last one before it that is; before any is, none_yet.
    /// So that in each part positions ascend.
    std::deque<crossing_entry> entries_;
    std::array<u64, abi::parts_max> last_ = [] { std::array<u64, abi::parts_max> none; none.fill(none_yet); return none; }();
    u64 noted_ = 0;
    // Of those that did not succeed.
    std::map<std::pair<u32, u64>, task_handle> kept_places_;
    std::map<std::pair<u32, u64>, crossing_entry> kept_; ///< by task
    std::map<std::pair<u32, u64>, task_status> remembered_;
};

} // namespace slipstream::host
