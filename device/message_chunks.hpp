// What the chunks of a message say, for who decodes it: ingest, and worker 0 (watch.hpp).
#pragma once
#include <slipstream/abi/message.hpp>

namespace slipstream::device {

/// Ring slots of a plain message.
SLIPSTREAM_BOTH u32 plain_slots(const abi::message_header& h)
{
    return (h.plain_chunks() + abi::slot_chunks - 1) / abi::slot_chunks;
}

/// Of a plain message: is it a task that may go by itself, if nothing else is in flight (bypass.hpp)? `first`: word 0 of the
/// chunk behind the header.
SLIPSTREAM_BOTH bool may_go_alone(const abi::message_header& h, u32 first)
{
    const bool waits =
        h.entry_chunks() != 0 && (first & abi::handle_bit) == 0 && abi::kind_of(first) == abi::entry_kind::after;
    return h.blocks == 1 && (h.flags & ~u32{abi::flag_no_access}) == 0 && plain_slots(h) == 1 && !waits;
}

inline constexpr u32 entry_is_after = 1 | 4;

/// Of a chunk of entries: how many, or entry_is_after.
SLIPSTREAM_BOTH u32 entries_in(const u32* w)
{
    if ((w[0] & abi::handle_bit) == 0) return abi::kind_of(w[0]) == abi::entry_kind::after ? entry_is_after : 1;
    return !(w[1] & abi::handle_bit) ? 1 : !(w[2] & abi::handle_bit) ? 2 : 3;
}

/// Of an entry's first chunk.
SLIPSTREAM_BOTH u64 address_in(u32 first, u32 second) { return static_cast<u64>(first & ((1u << 25) - 1)) << 32 | second; }
SLIPSTREAM_BOTH u64 address_in(const u32* w) { return address_in(w[0], w[1]); }

/// Stores the scalars of a plain message's chunk, the first of which is number 3 * `chunk`, to the words of a task struct.
template <class P, class Words>
SLIPSTREAM_BOTH void store_scalars(const abi::task_type& type, u32 scalars, Words* words, const u32* w, u32 chunk)
{
    for (u32 i = 0; i < 3; ++i) {
        const u32 scalar = 3 * chunk + i;
        if (scalar < scalars && scalar < type.scalars) P::set(words[type.scalar_offset[scalar]], w[i]);
    }
}

} // namespace slipstream::device
