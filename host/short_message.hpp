// The message of nearly every task, put together in one go: its struct holds ranges and handles, and it says nothing beside.
//
// The same bytes as runtime_core::submit makes of it chunk by chunk (abi/message.hpp); that one also knows `after`, lists, rectangles, long ranges,
// joins of streams and messages that outgrow the ring.
// COST    of a submission: see README.md. A chunk is put together in registers: a load of 16 bytes that were stored in pieces waits until they are in the cache.
#pragma once
#include "host/ring_writer.hpp"
#include <cstring>
#include <slipstream/abi/task_type.hpp>
#include <slipstream/access.hpp>

namespace slipstream::host {

inline constexpr u32 short_slots_max = 2;
inline constexpr u32 short_chunks_max = short_slots_max * abi::slot_chunks;
inline constexpr u32 short_scalars_max = (short_chunks_max - 2) * abi::chunk_payload_words; ///< beside the header and one chunk of entries

/// What the short messages of a task type have in common, looked up once.
struct short_layout {
    u32 members = 0; ///< 0: the type's messages are not short
    u32 scalars = 0;
    u32 type = 0;
    struct {
        u32 at;          ///< offset in the struct, bytes
        u32 range_word;  ///< of the chunk's first word, what is the same for all ranges
        u32 handle_word; ///< to be added to handle_plus_one
    } member[abi::task_members_max] = {};
    u32 scalar_at[short_scalars_max] = {}; ///< bytes

    short_layout() = default;
    short_layout(const abi::task_type& t, u32 number) : type(number)
    {
        if (t.members == 0 || t.members > abi::task_members_max || t.rect_mask != 0 || t.bytes % 4 != 0 || t.scalars > short_scalars_max) return;
        members = t.members;
        scalars = t.scalars;
        for (u32 k = 0; k < members; ++k) {
            const auto mode = static_cast<access_mode>(t.member_mode[k]);
            member[k] = {4u * t.member_offset[k], abi::encode_first(abi::entry_kind::range, mode, 0), abi::encode_handle(0, mode) - 1};
        }
        for (u32 k = 0; k < scalars; ++k) scalar_at[k] = 4u * t.scalar_offset[k];
    }
};

/// Room for a message before it is known whether it is short.
using short_room = chunk_vector[1 + abi::task_members_max + short_scalars_max / abi::chunk_payload_words + abi::slot_chunks];

/// Puts the message, without tags, into `out` and returns how many ring slots it takes; 0: this task's is not a short one.
[[gnu::always_inline]] inline u32 encode_short(const short_layout& layout, const void* task, u32 blocks, short_room& out)
{
    if (layout.members == 0) return 0;
    const auto* const from = static_cast<const unsigned char*>(task);
    const auto word = [&](u32 at) {
        u32 w;
        std::memcpy(&w, from + at, sizeof w);
        return w;
    };
    u32 chunks = 1;
    u32 first = 0, second = 0; // handles of the chunk in hand
    u32 run = 0;               // of them
    const auto put_handles = [&](u32 third) {
        out[chunks++] = vector_of({{first, second, third, 0}});
        second = run = 0;
    };
    for (u32 k = 0; k < layout.members; ++k) {
        const auto& m = layout.member[k];
        detail::packed_range p;
        std::memcpy(&p, from + m.at, sizeof p);
        const u64 handle_plus_one = p.bytes_and_handle >> detail::member_handle_shift;
        if (handle_plus_one != 0) {
            const u32 handle = m.handle_word + static_cast<u32>(handle_plus_one);
            if (run == 2) {
                put_handles(handle);
                continue;
            }
            (run == 0 ? first : second) = handle;
            ++run;
            continue;
        }
        if (p.bytes_and_handle >> 32 != 0) return 0;
        if (run != 0) put_handles(0);
        out[chunks++] = vector_of(abi::encode_range(m.range_word, p.address, p.bytes_and_handle));
    }
    if (run != 0) put_handles(0);
    out[0] = vector_of(abi::message_header{blocks, layout.type, 0, layout.members, layout.scalars, chunks}.encode());
    const u32* at = layout.scalar_at;
    u32 left = layout.scalars;
    for (; left >= 3; left -= 3, at += 3) out[chunks++] = vector_of({{word(at[0]), word(at[1]), word(at[2]), 0}});
    if (left != 0) out[chunks++] = vector_of({{word(at[0]), left == 2 ? word(at[1]) : 0, 0, 0}});
    if (chunks > short_chunks_max) return 0;
    for (u32 i = 0; i < abi::slot_chunks - 1; ++i) out[chunks + i] = chunk_vector{}; // whether they are needed or not: no branch
    return (chunks + abi::slot_chunks - 1) / abi::slot_chunks;
}

} // namespace slipstream::host
