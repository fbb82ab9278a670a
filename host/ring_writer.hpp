// The submitting end of a ring: writes messages chunk by chunk, or whole slots of them, each chunk with its lap tag.
//
// OWNERS  one thread writes the ring's slots; `consumed` is read only. Positions are 64 bits and never wrap.
// EDGES   R0 (chunk, release at system scope: host memory written before submit is visible to the task)
//         A1 (consumed, acquire: a slot is overwritten only after ingest has read it)
// COST    one 16-byte store a chunk; `consumed` is read (a cache line the GPU writes) only when the last known room is used up.
#pragma once
#include "device/layout.hpp"
#include <bit>
#include <slipstream/short_message.hpp>

namespace slipstream::host {

using slipstream::detail::chunk_vector;
using slipstream::detail::vector_of;

template <class P>
class ring_writer {
public:
    ring_writer() = default;
    /// Two copies would write the same slots: a ring has one writer.
    ring_writer(ring_writer&&) = default;
    ring_writer& operator=(ring_writer&&) = default;
    /// slots: a power of two. begin: position of the first slot.
    ring_writer(device::ring_slot<P>* ring, u32 slots, device::ring_page<P>* page, u64 begin = 0)
        : ring_(ring), slots_(slots), page_(page), position_(begin), consumed_seen_(begin)
    {
    }

    /// Were `slots` ring slots free when ingest's position was last looked at?
    [[nodiscard]] bool had_room(u64 slots) const { return position_ + slots <= consumed_seen_ + slots_; }
    /// Are they now? Looks again at what ingest consumed if the last look does not suffice.
    [[nodiscard]] bool has_room(u64 slots)
    {
        if (had_room(slots)) return true;
        consumed_seen_ = P::load(device::edge::A1_ring_consumed, page_->consumed, device::order::acquire, device::scope::system);
        return had_room(slots);
    }

    /// Appends one chunk of the message in hand. wait() is called while the ring is full; it returns false to give up, and
    /// then the ring is unusable: a message is there in part.
    template <class Wait>
    [[nodiscard]] bool put(const abi::chunk& chunk, Wait&& wait)
    {
        if (chunk_ == 0)
            while (!has_room(1))
                if (!wait()) return false;
        store<P>(ring_[position_ & (slots_ - 1)], chunk_, vector_of(chunk), tag_at(position_));
        if (++chunk_ == abi::slot_chunks) {
            chunk_ = 0;
            ++position_;
        }
        return true;
    }

    /// Appends a message of whole slots, one or more, for which there is room. Store: P, or what stores as P does.
    template <class Store = P>
    [[gnu::always_inline]] void put_slots(const chunk_vector* chunks, u32 slots)
    {
        u64 at = position_; // not in memory that a store might have changed
        const u64 end = at + slots;
        do {
            device::ring_slot<P>& slot = ring_[at & (slots_ - 1)];
            const chunk_vector tag = tag_at(at);
#if !defined(__CUDACC__) // it does not know it, and says so; no submission goes through it
#pragma GCC unroll 4
#endif
            for (u32 c = 0; c < abi::slot_chunks; ++c) store<Store>(slot, c, chunks[c], tag);
            chunks += abi::slot_chunks;
        } while (++at != end);
        position_ = at;
    }

    /// Fills the last slot of the message up.
    template <class Wait>
    [[nodiscard]] bool finish(Wait&& wait)
    {
        while (chunk_ != 0)
            if (!put(abi::chunk{}, wait)) return false;
        return true;
    }

    u32 slots() const { return slots_; }
    u64 position() const { return position_; }

private:
    chunk_vector tag_at(u64 position) const { return chunk_vector{0, u64{abi::lap_tag(position, slots_)} << 32}; }
    /// The chunk comes without its tag.
    template <class Store>
    static void store(device::ring_slot<P>& slot, u32 c, chunk_vector chunk, chunk_vector tag)
    {
        Store::store(device::edge::R0_ring_publish, slot.chunks[c], std::bit_cast<abi::chunk>(chunk | tag),
                     device::order::release, device::scope::system);
    }

    device::ring_slot<P>* ring_ = nullptr;
    u32 slots_ = 0;
    device::ring_page<P>* page_ = nullptr;
    u64 position_ = 0;
    u64 consumed_seen_ = 0;
    u32 chunk_ = 0;
};

} // namespace slipstream::host
