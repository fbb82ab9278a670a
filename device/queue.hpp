// A bounded single-producer single-consumer queue between two roles of the control block.
//
// LAYOUT  tail  word, counts entries ever pushed (wraps) · head  word, counts entries ever popped · entries[capacity]
// OWNERS  tail, entries: the producer writes, the consumer reads (and of what is published and not popped, writes: replace())
//         · head: the consumer writes, the producer reads
// STATES  entry i: empty (i >= tail) -> full (head <= i < tail) by the producer's publish -> empty by the consumer's release
// EDGES   RPush (publish) pairs with APop: the entry, and everything the producer did before it
//         RPop (release) pairs with APush: the consumer is done with the entry, it may be overwritten. Relaxed, by the queue's
//         ends, where the queue has room for all there ever is, so that nobody looks for room
// Both counters live in the control block's fast memory, so every edge has block scope: no L2 round trip.
#pragma once
#include "device/platform.hpp"

namespace slipstream::device {

template <class P, class T>
struct queue_storage {
    typename P::template word<u32>* tail;
    typename P::template word<u32>* head;
    typename P::template cell<T>* entries;
    u32 capacity; ///< power of two
};

/// The pushing end. One role owns it; only the leader of the role's team stores.
template <class P, class T, edge RPush, edge APush, order Look = order::acquire>
class queue_producer {
public:
    SLIPSTREAM_BOTH explicit queue_producer(const queue_storage<P, T>& q)
        : q_(q), tail_(P::load(edge::P5_self, *q.tail, order::relaxed, scope::block)), published_(tail_),
          head_seen_(tail_ - q.capacity)
    {
    }

    /// Free entries, at least; looks at the consumer's counter only when fewer than `wanted` are left of the last look.
    SLIPSTREAM_BOTH u32 room(typename P::team& team, u32 wanted = 1)
    {
        if (q_.capacity - (tail_ - head_seen_) < wanted)
            head_seen_ = team.broadcast(team.leader() ? P::load(APush, *q_.head, Look, scope::block) : 0u);
        return q_.capacity - (tail_ - head_seen_);
    }

    /// Counts entries put so far; wraps.
    SLIPSTREAM_BOTH u32 position() const { return tail_; }

    /// Writes an entry without showing it. There must be room. All lanes call it; the leader writes.
    SLIPSTREAM_BOTH void put(typename P::team& team, const T& value)
    {
        if (team.leader()) P::set(q_.entries[tail_ & (q_.capacity - 1)], value);
        ++tail_;
    }

    /// The same for many: any lane writes the entry `ahead` places behind the next one; then all lanes advance().
    SLIPSTREAM_BOTH void put_ahead(u32 ahead, const T& value) { P::set(q_.entries[(tail_ + ahead) & (q_.capacity - 1)], value); }
    SLIPSTREAM_BOTH void advance(u32 count) { tail_ += count; }

    /// Shows all entries put so far.
    SLIPSTREAM_BOTH void publish(typename P::team& team)
    {
        if (published_ == tail_) return;
        team.sync();
        if (team.leader()) P::store(RPush, *q_.tail, tail_, order::release, scope::block);
        published_ = tail_;
    }

    SLIPSTREAM_BOTH void push(typename P::team& team, const T& value)
    {
        put(team, value);
        publish(team);
    }

    /// Has the consumer given everything back that was published? By a look at its counter now.
    SLIPSTREAM_BOTH bool drained(typename P::team& team)
    {
        head_seen_ = team.broadcast(team.leader() ? P::load(APush, *q_.head, Look, scope::block) : 0u);
        team.sync();
        return published_ == head_seen_ && published_ == tail_;
    }

private:
    queue_storage<P, T> q_;
    u32 tail_;
    u32 published_;
    u32 head_seen_;
};

/// The popping end. One role owns it.
template <class P, class T, edge APop, edge RPop, order GiveBack = order::release>
class queue_consumer {
public:
    SLIPSTREAM_BOTH explicit queue_consumer(const queue_storage<P, T>& q)
        : q_(q), head_(P::load(edge::P5_self, *q.head, order::relaxed, scope::block)), released_(head_), tail_seen_(head_)
    {
    }

    /// Entries that may be read; looks at the producer's counter only when fewer than `wanted` are known.
    SLIPSTREAM_BOTH u32 available(typename P::team& team, u32 wanted = 1)
    {
        if (tail_seen_ - head_ < wanted) {
            tail_seen_ = team.broadcast(team.leader() ? P::load(APop, *q_.tail, order::acquire, scope::block) : 0u);
            team.sync();
        }
        return tail_seen_ - head_;
    }

    /// Looks at the producer's counter now. True when something came since the last look.
    SLIPSTREAM_BOTH bool look(typename P::team& team)
    {
        const u32 before = tail_seen_;
        tail_seen_ = team.broadcast(team.leader() ? P::load(APop, *q_.tail, order::acquire, scope::block) : 0u);
        team.sync();
        return tail_seen_ != before;
    }

    /// Entries that may be read, by the last look.
    SLIPSTREAM_BOTH u32 known() const { return tail_seen_ - head_; }

    /// Counts entries popped so far; wraps.
    SLIPSTREAM_BOTH u32 position() const { return head_; }

    /// The next entry; available() must be positive. The entry stays the consumer's until release().
    SLIPSTREAM_BOTH T pop()
    {
        return P::get(q_.entries[head_++ & (q_.capacity - 1)]);
    }

    /// Takes `count` entries that were peeked at.
    SLIPSTREAM_BOTH void skip(u32 count) { head_ += count; }

    /// The entry `ahead` places behind the next one; ahead < available().
    SLIPSTREAM_BOTH T peek(u32 ahead) const { return P::get(q_.entries[(head_ + ahead) & (q_.capacity - 1)]); }

    /// Any lane overwrites an entry that is not popped yet.
    SLIPSTREAM_BOTH void replace(u32 ahead, const T& value) { P::set(q_.entries[(head_ + ahead) & (q_.capacity - 1)], value); }

    /// Gives the popped entries back to the producer.
    SLIPSTREAM_BOTH void release(typename P::team& team)
    {
        if (released_ == head_) return;
        team.sync();
        if (team.leader()) P::store(RPop, *q_.head, head_, GiveBack, scope::block);
        released_ = head_;
    }

private:
    queue_storage<P, T> q_;
    u32 head_;
    u32 released_;
    u32 tail_seen_;
};

} // namespace slipstream::device
