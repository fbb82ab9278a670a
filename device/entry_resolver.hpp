// What a message declares of a task's accesses, made whole: the typed members of the task struct get their pointers and sizes
// back, and handles become the memory they name.
//
// Ingest leaves the entries of most tasks unresolved in the pool (pool_tag::unresolved): a raw range as it will be, a handle as
// its word. Admission resolves them when it takes the task in, a lane an access: three warps, where ingest has one.
//
// COST    of an access: one look at the device's copy of the handle table, an L2 round trip for all lanes together, and four
//         words stored to the record.
// OWNERS  ingest, or admission of a task that it has taken in: records, pool entries and tags of that task.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// A declared access, before it is packed.
struct raw_access {
    u64 address;
    u64 bytes; ///< of the range, or of one row
    u32 rows = 1;
    u32 pitch = 0; ///< 0: a range
    u32 handle_plus_one = 0;
    bool loose = false; ///< a bounding range with gaps in it

    SLIPSTREAM_BOTH static raw_access of(const known_handle& h)
    {
        return {h.head & abi::access_entry::address_mask, h.bytes(), h.rows, h.pitch, h.index() + 1};
    }
    SLIPSTREAM_BOTH abi::access_entry entry(abi::access_mode mode) const
    {
        if (loose) return abi::access_entry::make(abi::entry_kind::loose, mode, address, bytes);
        return pitch != 0 ? abi::access_entry::rect(mode, address, bytes, rows, pitch)
                          : abi::access_entry::range(mode, address, bytes);
    }
};

/// An entry of the pool that is not resolved: a handle's word, or a raw range. Of an empty range the address is kept, for the
/// task struct.
struct unresolved_entry {
    static constexpr u64 handle_mark = u64{7} << 60; ///< no kind of entry

    SLIPSTREAM_BOTH static table_entry handle(u32 word) { return {handle_mark | word, 0}; }
    SLIPSTREAM_BOTH static table_entry range(abi::access_mode mode, u64 address, u32 bytes)
    {
        if (bytes == 0) return {address & abi::access_entry::address_mask, address};
        return table_entry::of(abi::access_entry::range(mode, address, bytes));
    }
    SLIPSTREAM_BOTH static bool is_handle(const table_entry& e) { return (e.head & handle_mark) == handle_mark; }
    /// Of a handle.
    SLIPSTREAM_BOTH static bool writes(const table_entry& e)
    {
        return (static_cast<u32>(abi::mode_of(static_cast<u32>(e.head))) & 2) != 0;
    }
    SLIPSTREAM_BOTH static u32 handle_of(const table_entry& e) { return static_cast<u32>(e.head) & abi::handle_index_mask; }
};

template <class P>
class entry_resolver {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH entry_resolver(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    /// What a handle that the device knows names.
    SLIPSTREAM_BOTH known_handle of_handle(u32 index) const { return P::get(m_.handle_cache[index]); }

    /// What such an entry names, if it is a handle.
    SLIPSTREAM_BOTH known_handle named_by(const table_entry& e) const
    {
        return unresolved_entry::is_handle(e) ? of_handle(unresolved_entry::handle_of(e)) : known_handle{};
    }

    /// By a lane: `entry`, which ingest has left as entry i of a pool block, access number `member` of the task in `slot`, of
    /// the given type. `h`: see named_by().
    SLIPSTREAM_BOTH table_entry resolve(table_entry entry, const known_handle& h, u32 slot, u32 type,
                                        u32 block, u32 i, u32 member) const
    {
        raw_access a{entry.begin(), entry.end() - entry.begin()};
        if (unresolved_entry::is_handle(entry)) {
            a = raw_access::of(h);
            entry = h.entry(abi::mode_of(static_cast<u32>(entry.head)));
            s_.set_pool_entry(block, i, entry);
            if (entry.is_rect()) P::set(s_.pool_shapes[block * pool_block_entries + i], h.shape());
        }
        set_member(s_.types[type], m_.records[slot].words, member, a);
        return entry;
    }

    SLIPSTREAM_BOTH static bool is_memory(const table_entry& e) { return e.kind() != abi::entry_kind::none; }

    /// The first accesses of a message are the typed members of the task struct: puts pointer and size back in their place.
    template <class Words>
    SLIPSTREAM_BOTH static void set_member(const abi::task_type& type, Words* words, u32 member, const raw_access& a)
    {
        if (member < type.members) set_words(words + type.member_offset[member], (type.rect_mask >> member & 1) != 0, a);
    }
    /// Pointer and size, as the struct has them.
    SLIPSTREAM_BOTH static abi::chunk words_of(const raw_access& a)
    {
        const u64 tail = a.bytes | static_cast<u64>(a.handle_plus_one) << 40;
        return {{static_cast<u32>(a.address), static_cast<u32>(a.address >> 32), static_cast<u32>(tail),
                 static_cast<u32>(tail >> 32)}};
    }
    /// As set_member() does, where the member's place is known.
    template <class Words>
    SLIPSTREAM_BOTH static void set_words(Words* words, bool is_rect, const raw_access& a)
    {
        const abi::chunk range = words_of(a);
        for (u32 i = 0; i < 4; ++i) P::set(words[i], range.w[i]);
        if (is_rect) {
            P::set(words[4], a.rows);
            P::set(words[5], a.pitch);
        }
    }

private:
    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
