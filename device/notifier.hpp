// The notifier role: tells the host what is complete, and the kernel what the host commands.
//
// A submission's completion is one bit in its ring's map of completion_span bits, beside a low-water mark below which all
// submissions are retired. Bits are never cleared: each lap of the map completes by the opposite value, so the word has one
// writer and one meaning. The submitter stays less than a span ahead of the low-water mark.
//
// Releases to the host are batched: one system-scope fence for all entries of a round, then relaxed stores.
//
// OWNERS  this role alone writes complete bits, low_water, heartbeat, stop, request.
// EDGES   A6 (retired slot) -> R11 (the slot goes on to admission, nothing of it is read any more)
//         A6 -> R7_fence (acq_rel, system) -> R7_complete, R7_low_water (relaxed behind the fence)
//         R7_failure (relaxed, before the fence): whoever sees a task complete sees its failure record
//         A18 (failures_read, acquire): the host has read the record that lies where the next one goes
//         A8 (command, acquire at system scope) -> R9 (request): what was published before `drain` is seen by ingest
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

/// The value a bit of lap `lap` has once its submission is retired; before, it is the other one.
SLIPSTREAM_BOTH u32 complete_value(u64 position)
{
    return static_cast<u32>(position / completion_span & 1) ^ 1u;
}

template <class P>
class notifier {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH notifier(const engine_memory<P>& memory, const control_state<P>& state, u64 residency_ns)
        : m_(memory), s_(state), retired_(state.retired_queue()), finished_(state.finished_queue()), leave_ns_(P::clock_ns() + residency_ns)
    {
    }

    /// Publishes what was retired and looks for commands now and then. Returns true when it published something.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        const bool published = publish(team);
        // A look at the command word is a bus round trip; a park may wait for a few dozen microseconds.
        if (rounds_++ % P::look_around == 0) watch(team);
        return published;
    }

    /// At the end: the counts since the engine was made, for the host.
    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (!team.leader()) return;
        SLIPSTREAM_ONE_COPY
        for (u32 k = notifier_counts; k < bus_counts; ++k) P::set(m_.bus[k], s_.bus[k]);
    }

private:
    SLIPSTREAM_BOTH bool publish(team_type& team)
    {
        const u32 available = retired_.available(team);
        if (available == 0) return false;
        const u32 count = available < notices_max ? available : notices_max;
        take(team, count);
        u32 rings = 0;
        report_failures(team, count);
        if (team.leader()) P::fence(edge::R7_complete_fence, order::acq_rel, scope::system);
        team.sync();
        // Neighbouring submissions share a word: it is changed in a register and stored when the run ends.
        u32 open = ~0u;
        u32 word = 0;
        const auto close = [&] {
            if (open == ~0u || !team.leader()) return;
            m_.complete_mirror[open] = word;
            P::store(edge::R7_complete, m_.complete_bits[open], word, order::relaxed, scope::system);
            ++s_.bus[completion_words_told];
        };
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < count; ++i) {
            const retired_entry entry = s_.notices[i];
            const u32 ring = static_cast<u32>(entry.ring);
            rings |= 1u << ring;
            const u32 at = static_cast<u32>(entry.position % completion_span);
            const u32 index = ring * completion_words + at / 32;
            if (index != open) {
                close();
                open = index;
                word = m_.complete_mirror[index];
            }
            const u32 bit = 1u << at % 32;
            word = complete_value(entry.position) ? word | bit : word & ~bit;
        }
        close();
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 bits = rings; bits; bits &= bits - 1) advance(team, lowest_bit(bits));
        return true;
    }

    /// Notes what the host is to be told of the next `count` retired tasks, and gives their slots on to admission.
    SLIPSTREAM_BOTH void take(team_type& team, u32 count)
    {
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 entry = retired_.peek(k);
            const u32 slot = entry & ~retired_look;
            const u64 id = P::get(s_.task_id[slot]);
            const task_outcome outcome = (entry & retired_look) != 0 ? s_.poison_outcomes[slot] : task_outcome{0, 0};
            s_.notices[k] = {id & ((u64{1} << 56) - 1), id >> 56, outcome.status, outcome.failure};
            finished_.put_ahead(k, slot);
        });
        retired_.skip(count);
        retired_.release(team);
        finished_.advance(count); // never full: it has room for every slot
        finished_.publish(team);
        team.sync();
    }

    /// Failure records go out before the fence, so that a host that sees a task complete also sees how.
    SLIPSTREAM_BOTH void report_failures(team_type& team, u32 count)
    {
        if (!team.leader()) return;
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < count; ++i) {
            const retired_entry entry = s_.notices[i];
            if (entry.failure == 0) continue;
            const u32 n = entry.failure & ~outcome_cancelled;
            if (!room_for_failure(n)) return; // aborted: nothing is kept
            P::store(edge::R7_failure, m_.page->failures[(n - 1) % failures_kept],
                     failure_record{entry.position, static_cast<u32>(entry.ring), entry.status, n,
                                    (entry.failure & outcome_cancelled) != 0}.encode(),
                     order::relaxed, scope::system);
            ++s_.bus[failures_told];
        }
    }

    /// Waits until the host has read what lies in the place of record n: a failed task must never look complete. The host's
    /// service thread reads at every turn, waits for nobody, and outlives the kernel.
    SLIPSTREAM_BOTH bool room_for_failure(u32 n)
    {
        for (u32 attempt = 0; n - failures_read_ > failures_kept; ++attempt) {
            ++s_.bus[failure_looks];
            failures_read_ = P::load(edge::A18_failures_read, m_.page->failures_read, order::acquire, scope::system);
            if (n - failures_read_ <= failures_kept) break;
            ++s_.bus[failure_looks];
            if (P::load(edge::A8_command, m_.page->command_word, order::acquire, scope::system) == static_cast<u32>(command::abort))
                return false;
            P::pause(attempt);
        }
        return true;
    }

    /// Moves a ring's low-water mark over everything complete.
    SLIPSTREAM_BOTH void advance(team_type& team, u32 r)
    {
        const u64 before = s_.low_water[r];
        u64 mark = before;
        const u32* const mirror = m_.complete_mirror + r * completion_words;
        for (;;) {
            const u32 at = static_cast<u32>(mark % completion_span);
            // Bits that are complete in this lap, from `at` on, as a run of ones from bit 0.
            const u32 word = complete_value(mark) ? mirror[at / 32] : ~mirror[at / 32];
            const u32 run = word >> at % 32;
            const u32 ones = run == ~0u ? 32 : lowest_bit(~run);
            const u32 room = 32 - at % 32;
            mark += ones < room ? ones : room;
            if (ones < room) break;
            if (mark - before >= completion_span) break; // cannot happen: the submitter stays within the span
        }
        if (mark == before) return;
        team.sync();
        if (team.leader()) {
            s_.low_water[r] = mark;
            P::store(edge::R7_low_water, m_.ring_pages[r].low_water, mark, order::relaxed, scope::system);
            ++s_.bus[low_water_told];
        }
        team.sync();
    }

    /// Commands from the host, the residency limit, the heartbeat.
    SLIPSTREAM_BOTH void watch(team_type& team)
    {
        if (team.leader()) {
            ++s_.bus[command_looks];
            u32 wanted = P::load(edge::A8_command, m_.page->command_word, order::acquire, scope::system);
            if (wanted < static_cast<u32>(command::park) || wanted == static_cast<u32>(command::drain))
                if (P::clock_ns() >= leave_ns_) wanted = static_cast<u32>(command::park);
            if (wanted != request_ && request_ != static_cast<u32>(command::park)) {
                request_ = wanted;
                const auto level = wanted == static_cast<u32>(command::abort)  ? stop_level::abort
                                   : wanted == static_cast<u32>(command::park) ? stop_level::park
                                                                               : stop_level::none;
                P::store(edge::P1_stop, *m_.stop, static_cast<u32>(level), order::relaxed, scope::device);
                P::store(edge::R9_phase, *s_.request, wanted, order::release, scope::block);
            }
            P::store(edge::P2_heartbeat, m_.page->heartbeat, ++beats_, order::relaxed, scope::system);
        }
        team.sync();
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u32, edge::A6_retired, edge::R6_notified> retired_;
    queue_producer<P, u32, edge::R11_finished, edge::A11_taken> finished_;
    u64 leave_ns_;
    u32 rounds_ = 0;
    u32 beats_ = 0;
    u32 request_ = 0;
    u32 failures_read_ = 0; ///< as last seen; asked again when there is no room
};

} // namespace slipstream::device
