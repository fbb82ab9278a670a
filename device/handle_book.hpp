// The handle book: for each registered handle the last task that writes it and the tasks that have read it since. Handles are
// pairwise the same memory or disjoint, so that a task that names handles alone finds there whom it waits for, without a
// search; and what it replaces there is superseded, without one.
// (The rule of data handles in StarPU: Augonnet et al., 2011.)
//
// LAYOUT  a page a handle, in device memory: a stamp of the writer, and of readers_max readers. A stamp is a window slot + 1 |
//         the slot's epoch << 16, and stands while the slot's epoch is that one: it goes on when the task leaves the book, so
//         that nobody has to take a stamp out. A reader that finds no room lies in the access table, as do the accesses of all
//         batches that the book cannot tell of; while there are any, those who use the book look there, too.
// STATES  open: batches whose accesses are all by handle, and which hold whole tasks, are taken in by the book (booked). Any
//         other closes it: the accesses of booked tasks become live, so that raw ranges find them, and it stays closed for so
//         many tasks by handle (closed_tasks).
//         Where some slot's epoch comes to its last the book is worn: it takes nothing in until it has been closed, wiped,
//         and all epochs begin anew.
// COST    of an access: its page, an L2 round trip together with what the handle names; no other access is looked at. Of a
//         finished task: its epoch.
// OWNERS  admission's crew, who carries out an order (access_batch.hpp): pages by one lane of a batch that uses the handle;
//         epochs, booked and spilled by the lane of the task.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class handle_book {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH handle_book(const engine_memory<P>& memory, const control_state<P>& state) : m_(memory), s_(state) {}

    SLIPSTREAM_BOTH handle_page page(u32 handle) const { return P::get(m_.handle_pages[handle]); }
    SLIPSTREAM_BOTH void set_page(u32 handle, const handle_page& page) const { P::set(m_.handle_pages[handle], page); }

    SLIPSTREAM_BOTH u32 stamp(u32 slot) const { return (slot + 1) | static_cast<u32>(s_.epochs[slot]) << 16; }
    SLIPSTREAM_BOTH static u32 slot_of(u32 stamp) { return (stamp & 0xffff) - 1; }
    SLIPSTREAM_BOTH bool stands(u32 stamp) const { return stamp != 0 && s_.epochs[slot_of(stamp)] == stamp >> 16; }
    /// The readers of a page that stand, a bit each; `few`: no page in hand has more than few_readers.
    SLIPSTREAM_BOTH u32 standing_readers(const handle_page& page, bool few) const
    {
        u32 out = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < few_readers; ++i) out |= static_cast<u32>(stands(page.readers[i])) << i;
        if (few) return out;
        SLIPSTREAM_UNROLL
        for (u32 i = few_readers; i < readers_max; ++i) out |= static_cast<u32>(stands(page.readers[i])) << i;
        return out;
    }
    struct reader_slots {
        u32 slots[handle_page::readers_max];
    };
    /// Of a page's readers, those that stand or not.
    SLIPSTREAM_BOTH static reader_slots slots_of(const handle_page& page)
    {
        reader_slots out;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < readers_max; ++i) out.slots[i] = slot_of(page.readers[i]);
        return out;
    }
    SLIPSTREAM_BOTH static bool has_many(const handle_page& page)
    {
        u32 any = 0;
        SLIPSTREAM_UNROLL
        for (u32 i = few_readers; i < readers_max; ++i) any |= page.readers[i];
        return any != 0;
    }

    /// May a batch of tasks by handle be taken in?
    SLIPSTREAM_BOTH bool open() const { return s_.counters[book_closed_for] == 0 && !worn(); }
    SLIPSTREAM_BOTH bool worn() const { return s_.counters[book_worn] != 0; }

    /// By one lane: a batch of so many tasks by handle went by, or any other (0), which closes it.
    SLIPSTREAM_BOTH void passed(u32 tasks) const
    {
        const u32 due = s_.counters[book_closed_for];
        s_.counters[book_closed_for] = tasks == 0 ? closed_tasks : tasks < due ? due - tasks : 0;
    }

    /// By a lane: the slot's task is in the book; of its readers one lies in the table.
    SLIPSTREAM_BOTH void set_booked(team_type& team, u32 slot) const { team.set_bits(s_.booked[slot / 32], 1u << slot % 32); }
    SLIPSTREAM_BOTH void set_spilled(team_type& team, u32 slot) const { team.set_bits(s_.spilled[slot / 32], 1u << slot % 32); }
    SLIPSTREAM_BOTH bool is_booked(u32 slot) const { return (s_.booked[slot / 32] >> slot % 32 & 1) != 0; }
    SLIPSTREAM_BOTH bool is_spilled(u32 slot) const { return (s_.spilled[slot / 32] >> slot % 32 & 1) != 0; }

    /// By a lane: the slot's task, which is in the book, has finished, or is found in the table from now on. Its stamps stand
    /// no more.
    SLIPSTREAM_BOTH void take_out(team_type& team, u32 slot) const
    {
        team.clear_bits(s_.booked[slot / 32], 1u << slot % 32);
        team.clear_bits(s_.spilled[slot / 32], 1u << slot % 32);
        if (s_.epochs[slot] == last_epoch) s_.counters[book_worn] = 1; // the book is used no more, so that this epoch may stay
        else ++s_.epochs[slot];
    }

    /// By one team: nobody has to be found any more.
    SLIPSTREAM_BOTH void clear(team_type& team) const
    {
        SLIPSTREAM_ONE_COPY
        for (u32 g = 0; g < m_.n.groups(); ++g) {
            const u32 booked = s_.booked[g];
            if (booked == 0) continue;
            team.sync();
            team.each32([&](u32 k) {
                if (booked >> k & 1) take_out(team, 32 * g + k);
            });
        }
    }

    /// By each team, of a worn book that is closed: no stamp is left, and epochs begin anew.
    SLIPSTREAM_BOTH void wipe(team_type& team, u32 number, u32 teams) const
    {
        const u32 lane = number * team.size() + team.rank(), lanes = teams * team.size();
        SLIPSTREAM_ONE_COPY
        for (u32 h = lane; h < m_.n.handles; h += lanes) set_page(h, handle_page{});
        SLIPSTREAM_ONE_COPY
        for (u32 slot = lane; slot < m_.n.window; slot += lanes) s_.epochs[slot] = 0;
        if (lane == 0) s_.counters[book_worn] = 0;
    }

    static constexpr u32 readers_max = handle_page::readers_max;
    static constexpr u32 few_readers = 3; ///< of most pages; the first places are taken first

private:
    static constexpr u32 closed_tasks = 64; ///< what it costs to close the book is then little of a task
    static constexpr u32 last_epoch = 0xffff;
    static_assert(window_slots_max < 0xffff);

    const engine_memory<P>& m_;
    const control_state<P>& s_;
};

} // namespace slipstream::device
