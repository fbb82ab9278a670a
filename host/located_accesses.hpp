// What a task touches, typed members and declared accesses in one list, and the messages that say it, each put together in one go:
// the task's own and, where it crosses, its stand-ins'.
//
// The same bytes as runtime_core::submit makes chunk by chunk (abi/message.hpp); what only that one can say is not gathered.
// slipstream/short_message.hpp has the messages of tasks whose type says all.
// COST    of a submission: see host/README.md. A chunk is put together in registers, see slipstream/short_message.hpp; for the same
//         reason a member is read as two words, as it was stored.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <slipstream/runtime.hpp>

namespace slipstream::host {

struct located_accesses {
    struct access {
        u64 address;
        u32 bytes;
        u32 handle_plus_one; ///< 0: a range
        access_mode mode;
        u32 part;
    };
    /// A plain message has room for so many, whatever they are.
    static constexpr u32 count_max = abi::slot_chunks * abi::message_plain_slots - 1;

    std::array<access, count_max> list; ///< in wire order
    u32 count = 0;
    u32 members = 0; ///< the first of them
    u32 handles_end = 0; ///< behind the highest handle among them
    u32 parts = 0;   ///< bits
    u32 home = 0;    ///< where the first of them is that is written, or else the first

    bool cross() const { return (parts & (parts - 1)) != 0; }

    /// part_of(address, bytes, handle_plus_one) is the part that an access lies in, or no_single_part. A task whose accesses
    /// order nothing goes to `home` as it is. False: the task is left to the other way.
    template <class PartOf>
    bool gather(const abi::task_type& layout, const void* task, const submit_options& options, u32 accesses_max,
                const PartOf& part_of)
    {
        const bool ordered = options.order == ordering::by_access;
        const u64 all = layout.members + options.accesses.size();
        if (!options.after.empty() || !options.name.empty() || options.order == ordering::whole_memory
            || options.blocks - 1 >= 0x7fffffffu || all > std::min(count_max, accesses_max) || (ordered && all == 0))
            return false;
        bool written = false;
        const auto add = [&](access_mode mode, u64 address, u64 bytes, u64 rows, u32 handle_plus_one) {
            if (bytes >> 32 != 0 || (rows > 1 && handle_plus_one == 0)) return false;
            const u32 part = ordered ? part_of(address, bytes, handle_plus_one) : home;
            if (part == detail::no_single_part) return false;
            const bool writes = (static_cast<u32>(mode) & 2) != 0;
            if (count == 0 || (writes && !written)) home = part;
            written |= writes;
            handles_end = std::max(handles_end, handle_plus_one);
            parts |= 1u << part;
            list[count++] = {address, static_cast<u32>(bytes), handle_plus_one, mode, part};
            return true;
        };
        for (; members < layout.members; ++members) {
            const auto* const at = static_cast<const unsigned char*>(task) + 4 * layout.member_offset[members];
            detail::packed_range range;
            std::memcpy(&range.address, at, sizeof range.address);
            std::memcpy(&range.bytes_and_handle, at + sizeof range.address, sizeof range.bytes_and_handle);
            u32 rows = 1;
            if (layout.rect_mask >> members & 1) std::memcpy(&rows, at + sizeof range, sizeof rows);
            if (!add(static_cast<access_mode>(layout.member_mode[members]), range.address,
                     range.bytes_and_handle & detail::member_bytes_max, rows,
                     static_cast<u32>(range.bytes_and_handle >> detail::member_handle_shift)))
                return false;
        }
        if (!ordered) return true;
        for (const declared_access& a : options.accesses)
            if (!add(a.mode, a.address, a.bytes, a.rows, a.handle_plus_one)) return false;
        return true;
    }
};

constexpr u32 chunks_of_scalars(u32 scalars) { return (scalars + abi::chunk_payload_words - 1) / abi::chunk_payload_words; }
constexpr u32 slots_of_chunks(u32 chunks) { return (chunks + abi::slot_chunks - 1) / abi::slot_chunks; }

/// Room for any message of these, before it is known whether it is plain.
using message_room = detail::chunk_vector[1 + located_accesses::count_max + chunks_of_scalars(abi::task_words_max)];

/// Puts the entries of what lies in a part into a message, and the header, which is complete but for how many they are. Of the
/// first `rebuilt` those of other parts come, too, and have no effect. Returns the chunk behind them.
inline u32 put_entries(message_room& out, const located_accesses& accesses, u32 part, u32 rebuilt, abi::message_header header)
{
    u32 at = 1;
    u32 first = 0, second = 0, run = 0; // handles of the chunk in hand
    const auto put_handles = [&](u32 third) {
        out[at++] = detail::vector_of({{first, second, third, 0}});
        second = run = 0;
    };
    for (u32 k = 0; k < accesses.count; ++k) {
        const located_accesses::access& a = accesses.list[k];
        if (a.part != part && k >= rebuilt) continue;
        const access_mode mode = a.part == part ? a.mode : access_mode::none;
        ++header.entries;
        if (a.handle_plus_one != 0) {
            const u32 handle = abi::encode_handle(a.handle_plus_one - 1, mode);
            if (run == 2) {
                put_handles(handle);
            } else {
                (run == 0 ? first : second) = handle;
                ++run;
            }
        } else {
            if (run != 0) put_handles(0);
            const u32 kind_and_mode = abi::encode_first(abi::entry_kind::range, mode, 0);
            out[at++] = detail::vector_of(abi::encode_range(kind_and_mode, a.address, a.bytes));
        }
    }
    if (run != 0) put_handles(0);
    header.entry_chunks_plus_one = at;
    out[0] = detail::vector_of(header.encode());
    return at;
}

/// Ends a message behind its last chunk; returns how many ring slots it takes, one or more.
inline u32 fill_up(message_room& out, u32 chunks)
{
    for (u32 c = 0; c < abi::slot_chunks - 1; ++c) out[chunks + c] = detail::chunk_vector{}; // needed or not: no branch
    return slots_of_chunks(chunks);
}

/// Puts a task's message together, as its home is told; returns how many ring slots it takes, 0: it is too long to be plain.
/// What the task does to memory of other parts is its stand-ins' to say: such members only rebuild its struct.
inline u32 make_message(message_room& out, const located_accesses& accesses, const abi::task_type& layout, const void* task,
                        u32 type, u32 blocks, u32 flags, abi::crossing_word word = {})
{
    u32 at = put_entries(out, accesses, accesses.home, accesses.members, {blocks, type, flags, 0, layout.scalars, 0, word});
    const auto scalar = [&](u32 number) {
        const u32 begin = 4u * layout.scalar_offset[number];
        const auto* const from = static_cast<const unsigned char*>(task) + begin;
        u32 w = 0;
        if (begin + sizeof w <= layout.bytes) [[likely]] std::memcpy(&w, from, sizeof w);
        else std::memcpy(&w, from, layout.bytes - begin); // the struct's size need not be a multiple of four
        return w;
    };
    u32 k = 0;
    for (; k + 3 <= layout.scalars; k += 3) out[at++] = detail::vector_of({{scalar(k), scalar(k + 1), scalar(k + 2), 0}});
    if (k < layout.scalars) out[at++] = detail::vector_of({{scalar(k), k + 1 < layout.scalars ? scalar(k + 1) : 0, 0, 0}});
    return at <= abi::slot_chunks * abi::message_plain_slots ? fill_up(out, at) : 0;
}

/// Puts together the message of the stand-in in a part, in which some access lies, and returns how many ring slots it takes;
/// type: the one of stand-ins. flags: beside flag_crossing.
inline u32 make_stand_in(message_room& out, const located_accesses& accesses, u32 part, u32 type, u32 flags,
                         abi::crossing_word word)
{
    return fill_up(out, put_entries(out, accesses, part, 0, {0, type, flags | abi::flag_crossing, 0, 0, 0, word}));
}

} // namespace slipstream::host
