// The notifier role: tells the host what is complete, and the kernel what the host commands.
//
// A submission's completion is one bit in its ring's map of completion_span bits, beside a low-water mark below which all
// submissions are retired. Bits are never cleared: each lap of the map completes by the opposite value, so the word has one
// writer and one meaning, and completing flips. The submitter stays less than half a span ahead of the low-water mark.
//
// Releases to the host are batched: one system-scope fence for all entries of a round, then relaxed stores. Entries have a lane
// each.
//
// COST    of a round of up to 32 entries, counted in sm_90a code: 210 instructions and the fence, under which the words' old values
//         arrive from device memory; then one trip to the L2 for the low-water marks of all rings together. No loop over entries.
// OWNERS  this role alone writes complete bits, low_water, heartbeat, stop, request.
// EDGES   A6 (retired slot) -> R11 (the slot goes on to admission, nothing of it is read any more)
//         A6 -> R7_complete_fence (release, system) -> R7_complete, R7_low_water (relaxed behind the fence)
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
        : m_(memory), s_(state), retired_(state.retired_queue()), finished_(state.finished_queue()),
          leave_ns_(P::clock_ns() + residency_ns)
    {
    }

    /// Publishes what was retired and looks for commands now and then. Returns true when it published something.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        const bool published = publish(team);
        // A look at the command word is a bus round trip; a park may wait for a few dozen microseconds.
        if (rounds_++ % P::look_around == 0) look_at_command(team);
        return published;
    }

    /// At the end: the counts since the engine was made, for the host. And nobody is told to stop any more: all workers have
    /// left, or are about to, and those of the next launch may be at work before its control block is.
    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (!team.leader()) return;
        if (request_ == static_cast<u32>(command::park))
            P::store(edge::P1_stop, *m_.stop, static_cast<u32>(stop_level::none), order::relaxed, scope::device);
        SLIPSTREAM_ONE_COPY
        for (u32 k = notifier_counts; k < worker_counts; ++k) P::set(m_.bus[k], s_.bus[k]);
    }

private:
    using lane_values = typename P::template lane_array<u32, 1>;

    SLIPSTREAM_BOTH bool publish(team_type& team)
    {
        const u32 available = retired_.available(team);
        if (available == 0) return false;
        const u32 count = available < notices_max ? available : notices_max;
        lane_values place; // of the submission's bit in the maps of all rings
        const u32 failed = take(team, count, place);
        if (failed != 0 && !report_failures(team, failed)) return true; // aborted: they stay incomplete
        // Neighbouring submissions share a word: the lane of the first one in it stores it. Completing flips a bit, see above.
        lane_values first, word;
        team.match32(low_bits(count), [&](u32 k) { return place.at(0, k) / 32; }, first);
        team.each32([&](u32 k) {
            if (k >= count) return;
            // Arrives while the fence takes its time.
            if (first.at(0, k) == k) word.at(0, k) = m_.complete_mirror[place.at(0, k) / 32];
            team.set_bits(s_.flips[first.at(0, k)], 1u << place.at(0, k) % 32);
        });
        P::fence(edge::R7_complete_fence, order::release, scope::system); // by every lane: each may store
        team.sync();
        const u32 told = team.mask32([&](u32 k) {
            if (k >= count || first.at(0, k) != k) return false;
            const u32 index = place.at(0, k) / 32;
            const u32 value = word.at(0, k) ^ s_.flips[k];
            s_.flips[k] = 0;
            m_.complete_mirror[index] = value;
            P::store(edge::R7_complete, m_.complete_bits[index], value, order::relaxed, scope::system);
            return true;
        });
        const u32 moved = team.mask32([&](u32 r) { return r < m_.n.rings && advance(r); });
        if (team.leader()) {
            s_.bus[completion_words_told] += popcount(told);
            s_.bus[low_water_told] += popcount(moved);
        }
        return true;
    }

    /// Notes what the host is to be told of the next `count` retired tasks, and gives their slots on to admission. Returns those
    /// that have failed.
    SLIPSTREAM_BOTH u32 take(team_type& team, u32 count, lane_values& place)
    {
        const u32 failed = team.mask32([&](u32 k) {
            if (k >= count) return false;
            const u32 entry = retired_.peek(k);
            const u32 slot = entry & ~retired_look;
            const u64 id = P::get(s_.task_id[slot]);
            finished_.put_ahead(k, slot);
            place.at(0, k) = static_cast<u32>(id >> 56) * completion_span + static_cast<u32>(id) % completion_span;
            if ((entry & retired_look) == 0) return false;
            const task_outcome outcome = s_.poison_outcomes[slot];
            s_.notices[k] = {id & ((u64{1} << 56) - 1), id >> 56, outcome.status, outcome.failure};
            return outcome.failure != 0;
        });
        retired_.skip(count);
        retired_.release(team);
        finished_.advance(count); // never full: it has room for every slot
        finished_.publish(team);
        return failed;
    }

    /// Failure records go out before the fence, so that a host that sees a task complete also sees how. False: not all of them
    /// did, since the engine was aborted; none of the batch may look complete then.
    SLIPSTREAM_BOTH bool report_failures(team_type& team, u32 failed)
    {
        SLIPSTREAM_ONE_COPY
        for (; failed != 0 && team.leader(); failed &= failed - 1) {
            const retired_entry entry = s_.notices[lowest_bit(failed)];
            const u32 n = entry.failure & ~outcome_cancelled;
            if (!room_for_failure(n)) break;
            P::store(edge::R7_failure, m_.page->failures[(n - 1) % failures_kept],
                     failure_record{entry.position, static_cast<u32>(entry.ring), entry.status, n,
                                    (entry.failure & outcome_cancelled) != 0}.encode(),
                     order::relaxed, scope::system);
            ++s_.bus[failures_told];
        }
        return team.broadcast(failed) == 0;
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

    /// Moves ring r's low-water mark over everything complete; true when it moved. One lane: rings move side by side.
    SLIPSTREAM_BOTH bool advance(u32 r)
    {
        const u64 before = s_.low_water[r];
        const u32* const mirror = m_.complete_mirror + r * completion_words;
        u64 mark = before;
        u32 index = static_cast<u32>(mark % completion_span) / 32;
        u32 word = mirror[index];
        SLIPSTREAM_ONE_COPY
        for (;;) {
            index = (index + 1) % completion_words;
            const u32 next = mirror[index]; // asked for with the one before: a round often ends in the next word
            const u32 at = static_cast<u32>(mark % 32);
            // Bits that are complete in this lap, from `at` on, as a run of ones from bit 0.
            const u32 run = (complete_value(mark) ? word : ~word) >> at;
            const u32 ones = run == ~0u ? 32 : lowest_bit(~run);
            const u32 room = 32 - at;
            mark += ones < room ? ones : room;
            if (ones < room) break;
            if (mark - before >= completion_span) break; // cannot happen: the submitter stays within the span
            word = next;
        }
        if (mark == before) return false;
        s_.low_water[r] = mark;
        P::store(edge::R7_low_water, m_.ring_pages[r].low_water, mark, order::relaxed, scope::system);
        return true;
    }

    /// Commands from the host, the residency limit, the heartbeat.
    SLIPSTREAM_BOTH void look_at_command(team_type& team)
    {
        if (team.leader()) {
            ++s_.bus[command_looks];
            u32 wanted = P::load(edge::A8_command, m_.page->command_word, order::acquire, scope::system);
            if (wanted < static_cast<u32>(command::park) || wanted == static_cast<u32>(command::drain))
                if (P::clock_ns() >= leave_ns_) wanted = static_cast<u32>(command::park);
            // A park that does not come to its end may be aborted.
            if (wanted != request_ && (request_ != static_cast<u32>(command::park) || wanted == static_cast<u32>(command::abort))) {
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
    queue_consumer<P, u32, edge::A6_retired, edge::R6_notified, order::relaxed> retired_; // never full
    queue_producer<P, u16, edge::R11_finished, edge::A11_taken> finished_;
    u64 leave_ns_;
    u32 rounds_ = 0;
    u32 beats_ = 0;
    u32 request_ = 0;
    u32 failures_read_ = 0; ///< as last seen; asked again when there is no room
};

} // namespace slipstream::device
