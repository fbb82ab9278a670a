// The message of nearly every task, put together in one go: its struct holds ranges and handles, and it says nothing beside.
//
// The same bytes as runtime_core::submit makes of it chunk by chunk (abi/message.hpp); that one also knows `after`, lists, rectangles, long ranges,
// joins of streams and messages that outgrow the ring.
// COST    one look at each member. A submission takes 85 ns instead of 180 (median; one range; 2 shared cores of a Xeon, into a ring that a thread of another core empties), of
//         four handles 90 instead of 235.
#pragma once
#include <cstring>
#include <slipstream/abi/task_type.hpp>
#include <slipstream/access.hpp>

namespace slipstream::host {

inline constexpr u32 short_slots_max = 2;
inline constexpr u32 short_chunks_max = short_slots_max * abi::slot_chunks;

/// Fills `out` with whole ring slots, without tags, and returns how many chunks they are; 0: this task's message is not a short one.
inline u32 encode_short(const abi::task_type& layout, u32 type, const void* task, u32 blocks, abi::chunk* out)
{
    if (layout.members == 0 || layout.rect_mask != 0 || layout.bytes % 4 != 0) return 0;
    const auto* const from = static_cast<const unsigned char*>(task);
    u32 chunks = 1;
    u32 run = 0; // handles in the chunk that is being filled
    for (u32 k = 0; k < layout.members; ++k) {
        u64 member[2]; // address; bytes and handle
        std::memcpy(member, from + 4 * layout.member_offset[k], sizeof member);
        const u64 bytes = member[1] & detail::member_bytes_max;
        const u32 handle_plus_one = static_cast<u32>(member[1] >> detail::member_handle_shift);
        const auto mode = static_cast<access_mode>(layout.member_mode[k]);
        if (handle_plus_one == 0 || run == 0) {
            if (chunks == short_chunks_max) return 0;
            out[chunks++] = {};
        }
        abi::chunk& c = out[chunks - 1];
        if (handle_plus_one != 0) {
            c.w[run] = abi::encode_handle(handle_plus_one - 1, mode);
            run = run == 2 ? 0 : run + 1;
            continue;
        }
        if (bytes >> 32 != 0) return 0;
        const u32 high = static_cast<u32>(member[0] >> 32) & ((1u << 25) - 1);
        c = {{abi::encode_first(abi::entry_kind::range, mode, high), static_cast<u32>(member[0]), static_cast<u32>(bytes), 0}};
        run = 0;
    }
    out[0] = abi::message_header{blocks, type, 0, layout.members, layout.scalars, chunks}.encode();
    for (u32 k = 0; k < layout.scalars; k += 3) {
        if (chunks == short_chunks_max) return 0;
        abi::chunk& c = out[chunks++];
        c = {};
        for (u32 i = 0; i < 3 && k + i < layout.scalars; ++i) std::memcpy(&c.w[i], from + 4 * layout.scalar_offset[k + i], 4);
    }
    while (chunks % abi::slot_chunks != 0) out[chunks++] = {};
    return chunks;
}

} // namespace slipstream::host
