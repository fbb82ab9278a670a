// The memory of one model execution: an operational RC11-like machine without load buffering, with scopes.
//
// A location is the list of its messages in modification order; stores append. A thread has a view: per location the oldest
// message it may still read, and per thread a clock (happens-before). A release attaches the writer's view to the message;
// an acquire that reads it joins that view, if the scopes of both ends include the other thread. Fences as in C++: a release
// fence lends its view to later stores, an acquire fence collects the views of earlier loads.
#pragma once
#include "device/platform.hpp"
#include "tests/model/mutation.hpp"
#include <array>
#include <deque>
#include <memory>
#include <vector>

namespace slipstream::model {

using device::edge;
using device::order;
using device::scope;

inline constexpr u32 threads_max = 32; ///< lanes of all roles together, and the set-up thread 0

/// Where a thread runs; decides which scopes include which threads.
struct placement {
    bool host = true;
    u32 block = 0;
};
constexpr placement host_thread() { return {true, 0}; }
constexpr placement device_block(u32 block) { return {false, block}; }

using value = std::array<u64, 2>;

constexpr bool acquires(order o) { return has_acquire(o); }
constexpr bool releases(order o) { return has_release(o); }

/// A frozen view: clocks of threads_max threads, then the oldest readable message of each location.
struct frozen_view {
    const u32* at = nullptr;
    u32 size = 0;
};

/// A view that a message hands to those who acquire it.
struct attachment {
    frozen_view view;
    scope reach;
    u32 owner;
    const attachment* next;
};

struct message {
    value bits;
    u32 writer;
    u32 clock; ///< of the writer, at the store
    scope reach;
    edge tag;
    const attachment* attached;
};

/// Two accesses of a cell that nothing orders.
struct race {
    bool found = false;
    bool other_writes = false;
    u32 other = 0;
    edge other_edge = edge::count; ///< last edge of the other thread before its access
};

class memory {
public:
    void clear();
    void place(u32 thread, placement where);
    /// The new thread starts with everything that thread 0 did so far.
    void start_thread(u32 thread);

    u32 add_location();
    u32 add_cell();
    u32 locations() const { return locations_used_; }

    u32 newest(u32 location) const { return static_cast<u32>(locations_[location].size()) - 1; }
    u32 oldest(u32 thread, u32 location) const { return seen(threads_[thread].now, location); }
    const message& at(u32 location, u32 index) const { return locations_[location][index]; }

    value read(u32 thread, u32 location, u32 index, order o, scope s);
    void write(u32 thread, u32 location, const value& bits, order o, scope s, edge tag);
    /// Reads the newest message and appends its successor; continues its release sequence.
    value add(u32 thread, u32 location, u64 amount, u64 mask, order o, scope s, edge tag);
    void fence(u32 thread, order o, scope s);
    /// A barrier: everything done by the threads so far happens before what any of them does next.
    void barrier(const u32* threads, u32 count);
    /// Thread `to` has waited for the end of `from`.
    void join(u32 to, u32 from);

    race cell_read(u32 thread, u32 cell, edge last);
    race cell_write(u32 thread, u32 cell, edge last);
    /// Sets bits together with others: two of them need no order between them.
    race cell_update(u32 thread, u32 cell, edge last);

    /// The thread's own clock, and whether what `other` did at `clock` happens before what the thread does next.
    u32 clock(u32 thread) const { return threads_[thread].now[thread]; }
    bool ordered(u32 thread, u32 other, u32 clock) const { return clock <= threads_[thread].now[other]; }

    /// True if a message is neither ordered before the thread nor in a scope that both share: mixed scopes race in PTX.
    bool scopes_race(u32 thread, u32 location, u32 index, scope s) const;

private:
    using view = std::vector<u32>;
    struct thread_state {
        view now;
        std::array<view, 3> pending;        ///< seen by relaxed loads, by the scope that an acquire fence needs
        std::array<frozen_view, 3> released; ///< lent by release fences, by their scope
        placement where;
    };
    struct access {
        u32 thread, clock;
        edge last;
    };
    struct cell_state {
        access write;
        std::vector<access> reads;
        std::vector<access> updates; ///< since the last write
    };

    static u32 seen(const view& v, u32 location)
    {
        return threads_max + location < v.size() ? v[threads_max + location] : 0;
    }
    static const access* unordered(const std::vector<access>& list, const view& now)
    {
        for (const access& a : list)
            if (a.clock > now[a.thread]) return &a;
        return nullptr;
    }
    static void note(std::vector<access>& list, u32 thread, u32 clock, edge last)
    {
        for (access& a : list)
            if (a.thread == thread) {
                a = {thread, clock, last};
                return;
            }
        list.push_back({thread, clock, last});
    }
    static void raise(view& v, u32 location, u32 index);
    static void join(view& v, const u32* at, u32 size);
    frozen_view freeze(const view& v);
    const attachment* attach(frozen_view v, scope reach, u32 owner, const attachment* next);
    scope needed(u32 a, u32 b) const;
    bool in_scope(scope a, scope b, u32 first, u32 second) const
    {
        const scope least = needed(first, second);
        return a >= least && b >= least;
    }
    void append(u32 thread, u32 location, const value& bits, order o, scope s, edge tag, const attachment* inherited);

    static constexpr std::size_t page_words = 1 << 16;
    u32* take(u32 words);

    std::deque<std::vector<message>> locations_;
    std::deque<cell_state> cells_;
    std::array<thread_state, threads_max> threads_;
    u32 locations_used_ = 0;
    u32 cells_used_ = 0;

    std::vector<std::unique_ptr<u32[]>> pages_;
    std::size_t page_ = 0;
    std::size_t page_used_ = 0;
    std::deque<attachment> attachments_;
    std::size_t attachments_used_ = 0;
};

} // namespace slipstream::model
