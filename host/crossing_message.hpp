// The messages of a task that touches memory of several parts and says nothing beside its struct, put together in one go:
// its own, and its stand-ins'.
//
// The same bytes as runtime_core::submit makes of them chunk by chunk (abi/message.hpp),
// as slipstream/short_message.hpp has them for other tasks.
#pragma once
#include <array>
#include <bit>
#include <optional>
#include <slipstream/short_message.hpp>

namespace slipstream::host {

/// The members of a task, each of which lies in one part.
struct located_members {
    struct member {
        detail::packed_range range;
        access_mode mode;
        u32 part;
    };
    std::array<member, abi::task_members_max> list;
    u32 count = 0;
    u32 parts = 0; ///< bits
    u32 home = 0;  ///< where the first of them is that is written, or else the first

    bool cross() const { return (parts & (parts - 1)) != 0; }
};

/// Puts the entries of those members that use(member) has a mode for, behind the header;
/// returns the chunk behind them and how many entries they are.
template <class Use>
std::pair<u32, u32> put_entries(const located_members& members, detail::short_room& out, const Use& use)
{
    u32 at = 1, entries = 0;
    u32 first = 0, second = 0, run = 0; // handles of the chunk in hand: in registers, see short_message.hpp
    const auto put_handles = [&](u32 third) {
        out[at++] = detail::vector_of({{first, second, third, 0}});
        second = run = 0;
    };
    for (u32 k = 0; k < members.count; ++k) {
        const located_members::member& m = members.list[k];
        const std::optional<access_mode> mode = use(m);
        if (!mode) continue;
        ++entries;
        if (const u64 handle_plus_one = m.range.bytes_and_handle >> detail::member_handle_shift; handle_plus_one != 0) {
            const u32 handle = abi::encode_handle(static_cast<u32>(handle_plus_one) - 1, *mode);
            if (run == 2) {
                put_handles(handle);
            } else {
                (run == 0 ? first : second) = handle;
                ++run;
            }
        } else {
            if (run != 0) put_handles(0);
            out[at++] = detail::vector_of(
                abi::encode_range(abi::encode_first(abi::entry_kind::range, *mode, 0), m.range.address, m.range.bytes_and_handle));
        }
    }
    if (run != 0) put_handles(0);
    return {at, entries};
}

/// Makes of a task's message, which is short and has all members, that of one that crosses. What it does to memory of other parts
/// is its stand-ins' to say: those members only rebuild its struct.
inline void make_crossing(detail::short_room& message, const located_members& members, u32 type, u32 blocks, u32 scalars,
                          abi::crossing_word word)
{
    const auto [chunks, entries] = put_entries(members, message, [&](const auto& m) {
        return std::optional(m.part == members.home ? m.mode : access_mode::none);
    });
    message[0] = detail::vector_of(abi::message_header{blocks, type, abi::flag_crossing, entries, scalars, chunks, word}.encode());
}

/// The message of the stand-in in a part, in which some member lies; type: the one of stand-ins.
/// Returns how many ring slots it takes; of a short task it is short.
inline u32 make_stand_in(detail::short_room& out, const located_members& members, u32 part, u32 type, abi::crossing_word word)
{
    const auto [chunks, entries] = put_entries(members, out, [&](const auto& m) {
        return m.part == part ? std::optional(m.mode) : std::nullopt;
    });
    out[0] = detail::vector_of(abi::message_header{0, type, abi::flag_crossing, entries, 0, chunks, word}.encode());
    for (u32 c = 0; c < abi::slot_chunks - 1; ++c) out[chunks + c] = detail::chunk_vector{};
    return (chunks + abi::slot_chunks - 1) / abi::slot_chunks;
}

} // namespace slipstream::host
