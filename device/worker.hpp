// The worker's side of the mailbox: wait for mail, draw tickets, answer. Bodies are run by the caller.
//
// The functions here are called by one lane of the worker (thread 0 on the GPU); the platform's kernel spreads what they
// return to the block and puts a block barrier before answer(), so that every thread's writes precede the release.
//
// COST per mail: polls of one L2 line (lone workers: acquire loads and no fence; others: relaxed and one acquire fence, which
// empties the L1 they share), one recorder store to pinned memory, one release store. No atomic unless the task has more blocks than
// there are workers.
//
// OWNERS  worker w alone writes done[w] and recorder[w]; it alone reads mailbox[w].
// EDGES   A4 (mail, relaxed poll) + A4_fence (acquire, device): the record, and all writes of the predecessors
//         R5 (done, release, device): the body's writes
#pragma once
#include "device/scheduler.hpp"

namespace slipstream::device {

/// A 16-byte flight record: what this worker picked up last. Survives in pinned memory when the context does not.
struct flight_record {
    u32 ring_and_type; ///< type << 8 | ring, plus 1 << 31 so that a record is never 0
    u32 position;      ///< low 27 bits
    u32 block;
    u32 place; ///< SM id << 16 | worker

    SLIPSTREAM_BOTH u32 ring() const { return ring_and_type & 0xff; }
    SLIPSTREAM_BOTH u32 type() const { return ring_and_type >> 8 & 0xffff; }
    SLIPSTREAM_BOTH abi::chunk encode() const { return {{ring_and_type, position, block, place}}; }
    SLIPSTREAM_BOTH static flight_record decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2], c.w[3]}; }
};

template <class P>
class worker_port {
public:
    SLIPSTREAM_BOTH worker_port(const engine_memory<P>& memory, u32 worker, u32 sm)
        : m_(memory), worker_(worker), sm_(sm),
          done_(P::load(edge::P5_self, m_.done[worker], order::relaxed, scope::device))
    {
    }

    /// The next mail, or a leaving one when the engine is aborted. Waits; bounded by the stop word.
    SLIPSTREAM_BOTH mail wait()
    {
        const u32 expected = tag_of(done_word{done_}.count() + 1);
        for (u32 attempt = 0;; ++attempt) {
            // A worker that has its SM to itself polls with acquire loads: emptying an idle SM's L1 costs nothing, and the
            // fence (300 ns with its wait for outstanding stores) is off the critical path. Others poll relaxed.
            const bool lone = m_.n.lone_workers != 0;
            const auto& box = m_.mailboxes[worker_].mail[expected % mailbox_depth];
            const mail letter = mail::decode(lone ? P::load(edge::A4_mail, box, order::acquire, scope::device)
                                                  : P::load(edge::A4_mail, box, order::relaxed, scope::device));
            if (letter.tag == expected) {
                if (!lone) P::fence(edge::A4_mail_fence, order::acquire, scope::device);
                return letter;
            }
            if (attempt % P::look_for_abort == P::look_for_abort - 1
                && P::load(edge::P1_stop, *m_.stop, order::relaxed, scope::device) == static_cast<u32>(stop_level::abort))
                return mail{mail::leave, 0, 0, 0};
            P::pause(attempt);
        }
    }

    SLIPSTREAM_BOTH task_record<P>& record(const mail& letter) const { return m_.records[letter.slot()]; }

    /// Draws up to `chunk` block numbers; returns the first, which is >= blocks when none are left. A park or abort stops
    /// the drawing at the next block boundary: the counter keeps its value, and the task goes on after the relaunch.
    SLIPSTREAM_BOTH u32 draw(task_record<P>& record, u32 blocks, u32 chunk)
    {
        if (P::load(edge::P1_stop, *m_.stop, order::relaxed, scope::device) != static_cast<u32>(stop_level::none))
            return blocks;
        // The counter stays below 2^32: blocks <= 2^31 and every worker overshoots once, by at most one chunk.
        const u32 first = P::fetch_add(edge::P0_ticket, record.next_block, chunk, order::relaxed, scope::device);
        if (first >= blocks) drawn_ = done_word::drawn_bit;
        return first;
    }

    /// Blocks drawn at a time: enough to hide the counter's round trip, few enough to share the end fairly.
    SLIPSTREAM_BOTH u32 ticket_chunk(u32 blocks) const
    {
        const u32 share = blocks / (16 * m_.n.workers);
        return share < 1 ? 1 : share > 64 ? 64 : share;
    }

    SLIPSTREAM_BOTH void record_flight(const mail& letter, u32 block)
    {
        const flight_record entry{1u << 31 | letter.type() << 8 | (letter.identity >> 27 & 15), letter.identity & 0x7ffffffu, block,
                                  sm_ << 16 | worker_};
        P::store(edge::P3_recorder, m_.recorder[worker_], entry.encode(), order::relaxed, scope::system);
    }

    /// Keeps a line of history when a flight log was asked for; beyond its capacity only the count goes on.
    SLIPSTREAM_BOTH void log_flight(const mail& letter, u32 block, u32 count, u64 start_ns)
    {
        if (m_.n.log_capacity == 0) return;
        if (logged_ == ~0u) logged_ = P::load(edge::P5_self, m_.flight_counts[worker_], order::relaxed, scope::system);
        if (logged_ < m_.n.log_capacity)
            m_.flight_log[static_cast<u64>(worker_) * m_.n.log_capacity + logged_]
                = {1u << 31 | letter.type() << 8 | (letter.identity >> 27 & 15), letter.identity & 0x7ffffffu, block,
                   (count < 0xffff ? count : 0xffff) << 16 | sm_, start_ns, P::clock_ns()};
        ++logged_;
        // Read by the host after the kernel has left.
        P::store(edge::P5_self, m_.flight_counts[worker_], logged_, order::relaxed, scope::system);
    }
    SLIPSTREAM_BOTH bool logs() const { return m_.n.log_capacity != 0; }

    /// A body failed: the first code stays (relaxed: R5 of this worker orders it).
    SLIPSTREAM_BOTH void fail(task_record<P>& record, u32 code)
    {
        P::store(edge::P4_status, record.status, code, order::relaxed, scope::device);
        failed_ = done_word::failed_bit;
    }

    /// Answers the mail: everything the block wrote is released.
    SLIPSTREAM_BOTH void answer(const mail& letter)
    {
        done_ = done_word::make(letter.tag, (done_ & done_word::failed_bit) | failed_ | drawn_);
        drawn_ = 0;
        P::store(edge::R5_done, m_.done[worker_], done_, order::release, scope::device);
    }

    /// The last words of a worker that was told to leave.
    SLIPSTREAM_BOTH void leave(const mail& letter)
    {
        if (letter.tag == 0) return; // aborted: nothing is kept
        done_ = done_word::make(letter.tag, done_ & done_word::failed_bit);
        // Relaxed: nobody awaits it; the kernel's end publishes it.
        P::store(edge::P5_self, m_.done[worker_], done_, order::relaxed, scope::device);
    }

private:
    const engine_memory<P>& m_;
    u32 worker_;
    u32 sm_;
    u32 done_;
    u32 failed_ = 0;
    u32 drawn_ = 0; ///< drawn_bit: the mail in hand is a ticket mail and no ticket is left
    u32 logged_ = ~0u;
};

} // namespace slipstream::device
