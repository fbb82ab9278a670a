// What scheduler and workers say to each other: the mail, and the completion word that answers it.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// From one mail's tag to a later one's.
SLIPSTREAM_BOTH u32 mails_between(u32 tag, u32 later) { return (later - tag) & ~(1u << 31); }

/// A mail: what a worker is asked to do. 16 bytes, one store. It names the submission too, so that the flight recorder needs
/// no look at the record.
struct mail {
    u32 slot_and_type; ///< window slot | crosses_bit | follows_bit | type << 16, or leave
    u32 block_and_waits; ///< block | idle_bit | broadcast_bit | bypass_bit | brief_bit | joins_bit | tasks to wait for << 28
    u32 identity;      ///< identity_of(task id) | tickets_bit
    u32 tag;           ///< tag_of(mails ever sent to this worker, this one included); 0: no mail

    SLIPSTREAM_BOTH u32 slot() const { return slot_and_type & (crosses_bit - 1); }
    /// Of one block, and of several parts: it may wait for tasks there, and its worker counts for its stand-ins
    /// (crossing_stage.hpp).
    SLIPSTREAM_BOTH bool crosses() const { return (slot_and_type & crosses_bit) != 0; }
    SLIPSTREAM_BOTH bool follows() const { return (slot_and_type & follows_bit) != 0; } ///< waits for the mail before it on this
                                                                                        ///< worker, and perhaps others
    SLIPSTREAM_BOTH u32 type() const { return slot_and_type >> 16; }
    /// Where the bits lie: on the GPU one instruction behind the load.
    SLIPSTREAM_BOTH bool of_type(u32 type) const { return ((slot_and_type ^ type << 16) & 0xffff0000) == 0; }
    SLIPSTREAM_BOTH u32 block() const { return block_and_waits & block_mask; }
    SLIPSTREAM_BOTH bool broadcast() const { return (block_and_waits & broadcast_bit) != 0; } ///< see below
    /// A broadcast of which this worker has no block.
    SLIPSTREAM_BOTH bool idle() const { return (block_and_waits & idle_bit) != 0; }
    /// Of worker 0: a task that it takes from the ring itself. See watch.hpp.
    SLIPSTREAM_BOTH bool blank() const { return (block_and_waits & (idle_bit | broadcast_bit)) == idle_bit; }
    SLIPSTREAM_BOTH u32 blank_id() const { return block_and_waits & (idle_bit - 1); }
    SLIPSTREAM_BOTH bool bypassed() const { return (block_and_waits & bypass_bit) != 0; } ///< ingest's: see bypass.hpp
    SLIPSTREAM_BOTH bool brief() const { return (block_and_waits & brief_bit) != 0; } ///< its type promises it
    SLIPSTREAM_BOTH bool joins() const { return (block_and_waits & joins_bit) != 0; } ///< follows; if the one before it is brief,
                                                                                      ///< their answers may be one
    SLIPSTREAM_BOTH u32 waits() const { return block_and_waits >> 28; }
    /// Waits for nothing but mails before it on this worker.
    SLIPSTREAM_BOTH bool only_follows() const { return follows() && waits() == 0; }
    /// May the answer to this one come with that of the next?
    SLIPSTREAM_BOTH bool may_wait_for(const mail& next) const { return brief() && next.joins() && next.waits() == 0; }
    SLIPSTREAM_BOTH u32 task() const { return identity & ~tickets_bit; }
    SLIPSTREAM_BOTH bool tickets() const { return identity >> 31; }
    SLIPSTREAM_BOTH bool leaves() const { return slot_and_type == leave; }
    SLIPSTREAM_BOTH u32 ring() const { return identity >> 27 & 15; }
    SLIPSTREAM_BOTH abi::chunk encode() const { return {{slot_and_type, block_and_waits, identity, tag}}; }
    SLIPSTREAM_BOTH static mail decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }

    SLIPSTREAM_BOTH bool staged() const { return waits() != 0 || follows(); }

    static constexpr u32 leave = 0xffffffff;
    static constexpr u32 crosses_bit = 1u << 14;
    static constexpr u32 follows_bit = 1u << 15;
    static constexpr u32 block_bits = 11; ///< of a task that draws tickets it says nothing
    static constexpr u32 block_mask = (1u << block_bits) - 1;
    // Bits 11 to 22: of a broadcast its `blocks`, or, as its worker has it, its tag.
    static constexpr u32 idle_bit = 1u << 23; ///< of a mail that is no broadcast: a blank, and below is its id
    static constexpr u32 broadcast_bit = 1u << 24;
    static constexpr u32 bypass_bit = 1u << 25; ///< of one-block tasks only, as the next one
    static constexpr u32 brief_bit = 1u << 26;
    static constexpr u32 joins_bit = 1u << 27;
    static constexpr u32 tickets_bit = 1u << 31;
};
static_assert(rings_max <= 16 && window_slots_max <= mail::crosses_bit && waits_max < 16);

/// A broadcast (broadcast.hpp), as the scheduler writes it: its tag is of its number among the broadcasts.
struct broadcast_mail {
    u32 first;  ///< worker of block 0; the next ones follow, round about
    u32 blocks; ///< at most as many as workers

    SLIPSTREAM_BOTH u32 encode() const { return first | blocks << mail::block_bits | mail::broadcast_bit; }
    SLIPSTREAM_BOTH static broadcast_mail in(const mail& letter)
    {
        return {letter.block(), letter.block_and_waits >> mail::block_bits & mail::block_mask};
    }
    /// Worker w of so many: its block, or, if that is not below `blocks`, none.
    SLIPSTREAM_BOTH u32 block_of(u32 w, u32 workers) const { return w - first + (w < first ? workers : 0); }
    /// What number `tag` is to one worker of so many, whose mail `number` it is: `letter`, or, if that is a later one, a task that
    /// is complete, of which this worker had no block.
    SLIPSTREAM_BOTH static mail of(mail letter, u32 tag, u32 worker, u32 workers, u32 number)
    {
        const broadcast_mail to_all = in(letter);
        const u32 block = to_all.block_of(worker, workers);
        const u32 flags = letter.block_and_waits & ~(mail::broadcast_bit - 1);
        letter.block_and_waits = (letter.tag != tag) | (block >= to_all.blocks)
            ? mail::broadcast_bit | mail::idle_bit
            : flags | block | (tag & tag_mask) << mail::block_bits;
        letter.tag = tag_of(number);
        return letter;
    }
    /// Of a letter that of() has made: its tag, with `read` broadcasts read, of which it is one of the last 2^12.
    SLIPSTREAM_BOTH static u32 tag_in(const mail& letter, u32 read)
    {
        return tag_of(read - ((read - (letter.block_and_waits >> mail::block_bits)) & tag_mask));
    }
    /// Does a place hold number `tag`, or one that came after it? Not if it is empty.
    SLIPSTREAM_BOTH static bool reached(u32 tag, u32 there) { return there != 0 && mails_between(tag, there) < 1u << 30; }

    static constexpr u32 workers_max = mail::block_mask;
    static constexpr u32 tag_mask = (1u << 12) - 1;
};
static_assert(broadcast_mail::workers_max << mail::block_bits < mail::idle_bit
              && broadcast_mail::tag_mask << mail::block_bits < mail::idle_bit);

/// The completion word: mails answered, and what is to be said of the last ones. A mailbox may be emptied between two polls.
struct done_word {
    u32 raw;
    static constexpr u32 failed_bit = 1; ///< a body on this worker has failed since the engine was made
    static constexpr u32 drawn_bit = 2;  ///< the last mail was a ticket mail and no ticket is left
    static constexpr u32 paused_bit = 4; ///< the next mail is staged; the worker left for a park and comes back to it
    static constexpr u32 history_at = 3; ///< a bit a mail, the last one lowest: it was staged,
                                         ///< and not run since one before it failed
    static constexpr u32 history = 16;
    static constexpr u32 count_at = history_at + history;

    SLIPSTREAM_BOTH static u32 make(u32 count, u32 skipped, u32 bits) { return count << count_at | skipped << history_at | bits; }
    /// Modulo many more than are ever on their way.
    SLIPSTREAM_BOTH u32 count() const { return raw >> count_at; }
    SLIPSTREAM_BOTH u32 answered_since(u32 number) const { return (count() - number) & (~0u >> count_at); }
    /// The skipped bits, with room for so many more.
    SLIPSTREAM_BOTH u32 skipped_before(u32 mails) const { return (raw >> history_at) << mails & low_bits(history); }
    /// Was mail `number` skipped? One of the last ones, or one of bypassed tasks, of which more may have been answered: none was.
    SLIPSTREAM_BOTH bool skipped(u32 number) const { return (raw >> history_at & low_bits(history)) >> answered_since(number) & 1; }
};

} // namespace slipstream::device
