// What a task touches, typed members and declared accesses, and the messages that say it, each put together in one go: of a task
// whose memory lies in one part of the engine while its accesses are looked through; of one that crosses from a list of them, its
// own and its stand-ins'.
//
// The same bytes as runtime_core::submit makes chunk by chunk (abi/message.hpp); what only that one can say is left to it.
// slipstream/short_message.hpp has the messages of tasks whose type says all.
// COST    of a submission: see host/README.md. A chunk is put together in registers, see slipstream/short_message.hpp; for the same
//         reason a member is read as two words, as it was stored.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <slipstream/runtime.hpp>

namespace slipstream::host {

/// A plain message has room for so many accesses, whatever they are.
inline constexpr u32 short_accesses_max = abi::slot_chunks * abi::message_plain_slots - 1;

/// Is there nothing about a task, as long as its accesses are not looked at, that only the other way can say?
inline bool says_accesses_alone(const abi::task_type& layout, const submit_options& options, u32 accesses_max)
{
    const u64 all = layout.members + options.accesses.size();
    return options.after.empty() && options.name.empty() && options.order != ordering::whole_memory
        && options.blocks - 1 < 0x7fffffffu && all <= std::min(short_accesses_max, accesses_max)
        && (options.order != ordering::by_access || all != 0);
}

/// Member k of a task, as a declared access; pitch is left out.
inline declared_access member_of(const abi::task_type& layout, const void* task, u32 k)
{
    const auto* const at = static_cast<const unsigned char*>(task) + 4 * layout.member_offset[k];
    detail::packed_range range;
    std::memcpy(&range.address, at, sizeof range.address);
    std::memcpy(&range.bytes_and_handle, at + sizeof range.address, sizeof range.bytes_and_handle);
    u32 rows = 1;
    if (layout.rect_mask >> k & 1) std::memcpy(&rows, at + sizeof range, sizeof rows);
    return {static_cast<access_mode>(layout.member_mode[k]), range.address, range.bytes_and_handle & detail::member_bytes_max,
            rows, 0, static_cast<u32>(range.bytes_and_handle >> detail::member_handle_shift)};
}

constexpr u32 chunks_of_scalars(u32 scalars) { return (scalars + abi::chunk_payload_words - 1) / abi::chunk_payload_words; }
constexpr u32 slots_of_chunks(u32 chunks) { return (chunks + abi::slot_chunks - 1) / abi::slot_chunks; }

/// Room for any message of these, before it is known whether it is plain.
using message_room = detail::chunk_vector[1 + short_accesses_max + chunks_of_scalars(abi::task_words_max)];

/// Puts entries into a message, behind its header. Lives in registers: what is stored in pieces and loaded as a whole waits.
class entry_writer {
public:
    explicit entry_writer(message_room& out) : chunks_(out) {}

    [[gnu::always_inline]] void put_handle(u32 handle)
    {
        if (shift_ == 64) {
            put_handles(handle);
        } else {
            handles_ |= u64{handle} << shift_;
            shift_ += 32;
        }
    }
    [[gnu::always_inline]] void put_range(access_mode mode, u64 address, u32 bytes)
    {
        if (shift_ != 0) put_handles(0);
        const u32 kind_and_mode = abi::encode_first(abi::entry_kind::range, mode, 0);
        chunks_[count_++] = detail::vector_of(abi::encode_range(kind_and_mode, address, bytes));
    }
    /// Returns the chunk behind the last entry.
    [[gnu::always_inline]] u32 end()
    {
        if (shift_ != 0) put_handles(0);
        return count_;
    }

private:
    [[gnu::always_inline]] void put_handles(u32 third)
    {
        chunks_[count_++] = detail::chunk_vector{handles_, third};
        handles_ = shift_ = 0;
    }

    detail::chunk_vector* chunks_;
    u32 count_ = 1;
    u64 handles_ = 0; // of the chunk in hand the first two
    u32 shift_ = 0;   // where the next one goes
};

/// Ends a message behind its last chunk; returns how many ring slots it takes, one or more.
inline u32 fill_up(message_room& out, u32 chunks)
{
    for (u32 c = 0; c < abi::slot_chunks - 1; ++c) out[chunks + c] = detail::chunk_vector{}; // needed or not: no branch
    return slots_of_chunks(chunks);
}

/// Ends a task's message behind its entries; returns how many ring slots it takes, 0: it is too long to be plain.
[[gnu::noinline]] inline u32 put_scalars(message_room& out, u32 at, const abi::task_type& layout, const void* task)
{
    const auto* const from = static_cast<const unsigned char*>(task);
    const u32 scalars = layout.scalars, bytes = layout.bytes;
    const auto scalar = [&](u32 number) __attribute__((always_inline)) {
        const u32 begin = 4u * layout.scalar_offset[number];
        u32 w = 0;
        if (begin + sizeof w <= bytes) [[likely]] std::memcpy(&w, from + begin, sizeof w);
        else std::memcpy(&w, from + begin, bytes - begin); // the struct's size need not be a multiple of four
        return w;
    };
    u32 k = 0;
    if (layout.members == 0) // all words of the struct, one behind the other
        for (; 4 * (k + 3) <= bytes; k += 3) {
            u64 first_two;
            u32 third;
            std::memcpy(&first_two, from + 4 * k, sizeof first_two);
            std::memcpy(&third, from + 4 * k + sizeof first_two, sizeof third);
            out[at++] = detail::chunk_vector{first_two, third};
        }
    for (; k + 3 <= scalars; k += 3) out[at++] = detail::vector_of({{scalar(k), scalar(k + 1), scalar(k + 2), 0}});
    if (k < scalars) out[at++] = detail::vector_of({{scalar(k), k + 1 < scalars ? scalar(k + 1) : 0, 0, 0}});
    return at <= abi::slot_chunks * abi::message_plain_slots ? fill_up(out, at) : 0;
}

/// What was put into a message. A register.
struct put_list {
    u32 end = 0;   ///< chunk behind the entries; 0: this list is left to the other way
    u32 parts = 0; ///< bits: where the accesses lie; 0: nobody asked
};

/// Puts a list of accesses, as if all of them lay in one part. A loop by itself, with as little as it needs, so that it has
/// registers for all of it. handles_given: a task may name those before it. Several: the engine has parts, and `table` says where
/// things lie.
template <bool Several>
[[gnu::noinline]] put_list put_accesses(message_room& out, const declared_access* list, const declared_access* list_end,
                                        u32 handles_given, const detail::part_table* table)
{
    entry_writer writer(out);
    u32 parts = 0;
    for (; list != list_end; ++list) {
        if (const u32 handle = list->handle_plus_one - 1; handle < handles_given) [[likely]] {
            if constexpr (Several) parts |= 1u << table->of_handle[handle];
            writer.put_handle(abi::encode_handle(handle, list->mode));
        } else {
            if (list->handle_plus_one != 0 || list->bytes >> 32 != 0 || list->rows > 1) return {};
            if constexpr (Several) {
                const u32 part = list->bytes == 0 ? detail::no_single_part // nothing lies nowhere
                                                  : detail::part_of(*table, list->address, list->bytes, 0);
                if (part == detail::no_single_part) return {};
                parts |= 1u << part;
            }
            writer.put_range(list->mode, list->address, static_cast<u32>(list->bytes));
        }
    }
    return {writer.end(), parts};
}

/// What became of a task's message. A register.
struct direct_size {
    u32 slots = 0; ///< of the ring; 0: the task is left to the other way, unless it crosses
    u32 parts = 0; ///< bits: where its accesses lie

    bool crosses() const { return (parts & (parts - 1)) != 0; }
};

/// The same of a task whose struct has accesses: theirs and the declared ones in one list. table: null in an engine of one part,
/// and for a task whose accesses order nothing, which may be anywhere.
[[gnu::noinline]] inline put_list put_joined(message_room& out, const abi::task_type& layout, const void* task,
                                             std::span<const declared_access> declared, u32 handles_given,
                                             const detail::part_table* table)
{
    union joined_list { // none of them is made before it is known
        joined_list() {}
        declared_access accesses[short_accesses_max];
    } joined;
    declared_access* end = joined.accesses;
    for (u32 k = 0; k < layout.members; ++k) std::construct_at(end++, member_of(layout, task, k));
    end = std::uninitialized_copy(declared.begin(), declared.end(), end);
    return table != nullptr ? put_accesses<true>(out, joined.accesses, end, handles_given, table)
                            : put_accesses<false>(out, joined.accesses, end, handles_given, nullptr);
}

/// Puts a task's message into `out`. table: null in an engine of one part.
template <bool Several>
[[gnu::always_inline]] inline direct_size put_direct(message_room& out, u32 type, const abi::task_type& layout, const void* task,
                                                     const submit_options& options, u32 accesses_max, u32 handles_given,
                                                     const detail::part_table* table)
{
    if (!says_accesses_alone(layout, options, accesses_max)) return {};
    const bool ordered = options.order == ordering::by_access;
    put_list put;
    if (layout.members == 0 && ordered) [[likely]] {
        const declared_access* const list = options.accesses.data();
        put = put_accesses<Several>(out, list, list + options.accesses.size(), handles_given, table);
    } else {
        put = put_joined(out, layout, task, ordered ? options.accesses : list_view<declared_access>(), handles_given,
                         ordered ? table : nullptr);
    }
    if (direct_size crossing{0, put.parts}; put.end == 0 || crossing.crosses()) return crossing;
    const u32 entries = layout.members + (ordered ? static_cast<u32>(options.accesses.size()) : 0u);
    const u32 flags = ordered ? 0u : u32{abi::flag_no_access};
    out[0] = detail::vector_of(abi::message_header{options.blocks, type, flags, entries, layout.scalars, put.end}.encode());
    return {put_scalars(out, put.end, layout, task), put.parts};
}

/// What a task that crosses touches, and in which part.
struct located_accesses {
    struct access {
        u64 address;
        u32 bytes;
        u32 handle_plus_one; ///< 0: a range
        access_mode mode;
        u32 part;
    };

    std::array<access, short_accesses_max> list; ///< in wire order
    u32 count = 0;
    u32 members = 0; ///< the first of them
    u32 parts = 0;   ///< bits
    u32 home = 0;    ///< where the first of them is that is written, or else the first

    /// Of a task that put_direct() has found to cross.
    void gather(const abi::task_type& layout, const void* task, const submit_options& options, const detail::part_table& table)
    {
        bool written = false;
        const auto add = [&](const declared_access& a) {
            const u32 part = detail::part_of(table, a.address, a.bytes, a.handle_plus_one);
            const bool writes = (static_cast<u32>(a.mode) & 2) != 0;
            if (count == 0 || (writes && !written)) home = part;
            written |= writes;
            parts |= 1u << part;
            list[count++] = {a.address, static_cast<u32>(a.bytes), a.handle_plus_one, a.mode, part};
        };
        for (; members < layout.members; ++members) add(member_of(layout, task, members));
        for (const declared_access& a : options.accesses) add(a);
    }
};

/// Puts the entries of what lies in a part into a message, and the header, which is complete but for how many they are. Of the
/// first `rebuilt` those of other parts come, too, and have no effect. Returns the chunk behind them.
inline u32 put_entries(message_room& out, const located_accesses& accesses, u32 part, u32 rebuilt, abi::message_header header)
{
    entry_writer writer(out);
    for (u32 k = 0; k < accesses.count; ++k) {
        const located_accesses::access& a = accesses.list[k];
        if (a.part != part && k >= rebuilt) continue;
        ++header.entries;
        const access_mode mode = a.part == part ? a.mode : access_mode::none;
        if (a.handle_plus_one != 0) writer.put_handle(abi::encode_handle(a.handle_plus_one - 1, mode));
        else writer.put_range(mode, a.address, a.bytes);
    }
    header.entry_chunks_plus_one = writer.end();
    out[0] = detail::vector_of(header.encode());
    return header.entry_chunks_plus_one;
}

/// Puts the message of a task that crosses together, as its home is told; returns how many ring slots it takes, 0: it is too long
/// to be plain. What the task does to memory of other parts is its stand-ins' to say: such members only rebuild its struct.
inline u32 make_message(message_room& out, const located_accesses& accesses, const abi::task_type& layout, const void* task,
                        u32 type, u32 blocks, abi::crossing_word word)
{
    const abi::message_header header{blocks, type, abi::flag_crossing, 0, layout.scalars, 0, word};
    return put_scalars(out, put_entries(out, accesses, accesses.home, accesses.members, header), layout, task);
}

/// Puts together the message of the stand-in in a part, in which some access lies, and returns how many ring slots it takes;
/// type: the one of stand-ins. flags: beside flag_crossing.
inline u32 make_stand_in(message_room& out, const located_accesses& accesses, u32 part, u32 type, u32 flags,
                         abi::crossing_word word)
{
    return fill_up(out, put_entries(out, accesses, part, 0, {0, type, flags | abi::flag_crossing, 0, 0, 0, word}));
}

} // namespace slipstream::host
