// The ingest role: takes messages from the pinned rings and decodes them straight into window slots.
//
// Chunks are polled and fetched by one team-wide load (8 slots at a time on a warp): one PCIe round trip, no head index, no
// doorbell. A message is decoded chunk by chunk as it arrives, so a message longer than its ring streams through it. The
// decoded task is never copied again: accesses go into the window, the rebuilt task struct into the slot's record.
//
// STATES  of a ring (ring_progress.stage)
//   header  at a slot boundary, nothing held -> entries (slot and pool blocks taken together, or none: no hold and wait)
//   entries -> scalars -> gate                by the chunks of the message
//   gate    -> header                         once every task its `after` entries name has been handed to the scheduler;
//                                             the decoded queue is first in, first out, so handed over = admitted earlier;
//                                             and every CUDA stream they name is done (a look across the bus a step, while shut)
// Only the ring whose gate is shut waits. A waiting ring holds one slot and at most entries_max pool blocks: the window has
// more slots than rings and the pool more blocks than all rings together can hold while waiting (checked by the host).
//
// EDGES  A0 (ring chunks, relaxed polls + one acquire fence at system scope: host memory written before submit is visible to the task)
//        R1 (consumed: the chunks were read, they may be overwritten) · A2 (slot free) · R3 (slot decoded)
//        A10 (join word of a stream: its work is visible to the tasks that joined it)
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class ingest {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH ingest(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), free_(state.free_queue()), decoded_(state.decoded_queue())
    {
    }

    /// Polls every ring once. Returns true when something was taken.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        bool progress = false;
        starved_ = false;
        u32 nearest = ~0u;
        u32 next = turn_;
        reclaim(team);
        // While slots are short, the first ring polled takes them all: the turn goes to the next ring that found none. In a
        // fixed order, a ring behind one that is never empty would wait for ever.
        u32 first = turn_ / rings_at_once * rings_at_once;
        SLIPSTREAM_ONE_COPY
        for (u32 polled = 0; polled < m_.n.rings; polled += rings_at_once) {
            fetch(team, first);
            SLIPSTREAM_ONE_COPY
            for (u32 k = 0; k < rings_at_once; ++k) {
                const u32 j = (turn_ + k) % rings_at_once;
                const u32 r = first + j;
                if (r >= m_.n.rings) continue;
                const bool starved_before = starved_;
                starved_ = false;
                progress |= poll(team, r, s_.fetched[j], s_.staged + j * staged_words);
                const u32 distance = r > turn_ ? r - turn_ : r + m_.n.rings - turn_;
                if (starved_ && distance < nearest) {
                    nearest = distance;
                    next = r;
                }
                starved_ |= starved_before;
            }
            first += rings_at_once;
            if (first >= m_.n.rings) first = 0;
        }
        turn_ = next;
        decoded_.publish(team);
        return progress;
    }

    /// After a step that took nothing: true when no ring holds a message, in part or whole. What the drain command waits for.
    SLIPSTREAM_BOTH bool rings_empty() const
    {
        if (starved_) return false;
        for (u32 r = 0; r < m_.n.rings; ++r)
            if (s_.progress[r].stage != stage_header) return false;
        return true;
    }

private:
    enum stage_name : u32 { stage_header, stage_entries, stage_second_half, stage_scalars, stage_gate };

    static constexpr u32 rings_at_once = staged_rings;
    static constexpr u32 staged_words = staged_slots * 16;

    /// Loads up to staged_slots slots of each of four rings, all loads in flight together: one bus round trip for all.
    /// fetched[j]: how many from the head on are complete.
    SLIPSTREAM_BOTH void fetch(team_type& team, u32 first)
    {
        constexpr u32 all = staged_slots * abi::slot_chunks;
        const u32 limit = m_.n.ring_slots < staged_slots ? m_.n.ring_slots * abi::slot_chunks : all;
        u32 bad[rings_at_once];
        for (u32 j = 0; j < rings_at_once; ++j) bad[j] = first + j < m_.n.rings ? limit : 0;
        for (u32 c = team.rank(); c < limit; c += team.size()) {
            abi::chunk chunk[rings_at_once];
            u64 position[rings_at_once];
            for (u32 j = 0; j < rings_at_once; ++j) {
                const u32 r = first + j;
                if (r >= m_.n.rings) break;
                position[j] = s_.progress[r].position + c / abi::slot_chunks;
                chunk[j] = P::load(edge::A0_ring_publish,
                                   m_.rings[static_cast<u64>(r) * m_.n.ring_slots + (position[j] & (m_.n.ring_slots - 1))]
                                       .chunks[c % abi::slot_chunks],
                                   order::relaxed, scope::system);
            }
            for (u32 j = 0; j < rings_at_once; ++j) {
                if (c >= bad[j]) continue; // also: no such ring
                if (chunk[j].w[3] != abi::lap_tag(position[j], m_.n.ring_slots))
                    bad[j] = c;
                else
                    for (u32 i = 0; i < 4; ++i) s_.staged[j * staged_words + 4 * c + i] = chunk[j].w[i];
            }
        }
        u32 any = 0;
        for (u32 j = 0; j < rings_at_once; ++j) {
            const u32 whole = team.reduce_min(bad[j]) / abi::slot_chunks;
            if (team.leader()) s_.fetched[j] = whole;
            any |= whole;
        }
        // The loads are relaxed so that they fly together (acquire loads wait for each other: measured, four rings cost four
        // bus round trips); one fence acquires for all, and only when there is something.
        if (any != 0) P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        team.sync();
    }

    SLIPSTREAM_BOTH bool poll(team_type& team, u32 r, u32 slots, const u32* staged)
    {
        ring_progress rp = s_.progress[r];
        if (slots == 0 && rp.stage != stage_gate && rp.position == rp.published) return false;
        bool progress = false;
        // What was fetched while the gate was shut is fetched again once it is open.
        const u32 usable = rp.stage == stage_gate ? 0 : slots;
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0;;) {
            if (rp.stage == stage_gate) {
                if (!pass_gate(team, rp)) break;
                progress = true;
            }
            if (k == usable) break;
            if (!take_slot(team, rp, r, staged + 16 * k)) {
                starved_ = true;
                break;
            }
            progress = true;
            ++k;
        }
        // The submitter is told every quarter ring, and at once when the ring runs dry.
        if (rp.position != rp.published && (!progress || 4 * (rp.position - rp.published) >= m_.n.ring_slots)) {
            team.sync();
            if (team.leader())
                P::store(edge::R1_ring_consumed, m_.ring_pages[r].consumed, rp.position, order::release, scope::system);
            rp.published = rp.position;
        }
        team.sync();
        if (team.leader()) s_.progress[r] = rp;
        team.sync();
        return progress;
    }

    /// Decodes one staged ring slot. False: nothing was taken, for want of a window slot or pool blocks.
    SLIPSTREAM_BOTH bool take_slot(team_type& team, ring_progress& rp, u32 r, const u32* words)
    {
        u32 c = 0;
        if (rp.stage == stage_header) {
            const abi::chunk first{{words[0], words[1], words[2], 0}};
            if (!begin(team, rp, r, abi::message_header::decode(first))) return false;
            c = 1;
        }
        SLIPSTREAM_ONE_COPY
        for (; c < abi::slot_chunks && rp.stage != stage_gate; ++c) take_chunk(team, rp, words + 4 * c);
        ++rp.position;
        return true;
    }

    SLIPSTREAM_BOTH bool begin(team_type& team, ring_progress& rp, u32 r, const abi::message_header& h)
    {
        const u32 blocks_needed
            = h.entries > inline_accesses ? (h.entries - inline_accesses + pool_block_entries - 1) / pool_block_entries : 0;
        const u32 slot = lowest_free(team); // step() took back what was freed; more comes with the next step
        if (slot == no_slot || *s_.pool_free_count < blocks_needed) return false;
        u32 chain = no_block;
        const u32 left = *s_.pool_free_count - blocks_needed;
        team.sync(); // all lanes have read what the leader changes now
        if (team.leader()) {
            for (u32 b = 0; b < blocks_needed; ++b) {
                const u32 block = s_.pool_free[left + b];
                P::set(s_.pool_next[block], chain);
                chain = block;
            }
            *s_.pool_free_count = left;
            s_.free_slots[slot / 32] &= ~(1u << slot % 32);
        }
        chain = team.broadcast(chain);
        rp.stage = h.entries ? stage_entries : h.scalars ? stage_scalars : stage_gate;
        rp.slot = slot;
        rp.entries_left = h.entries;
        rp.scalars_left = h.scalars;
        rp.entry = rp.member = rp.scalar = 0;
        rp.type = h.type;
        rp.flags = h.flags;
        rp.last_block = chain;
        if (team.leader()) {
            task_record<P>& record = m_.records[slot];
            P::set(record.blocks, h.blocks);
            P::store(edge::P0_ticket, record.next_block, 0u, order::relaxed, scope::device);
            P::store(edge::P4_status, record.status, 0u, order::relaxed, scope::device);
            P::set(s_.task_id[slot], static_cast<u64>(r) << 56 | rp.messages);
            P::set(s_.type[slot], h.type);
            P::set(s_.blocks[slot], h.blocks);
            P::set(s_.counts[slot], h.entries | h.flags << 16);
            P::set(s_.first_block[slot], chain);
        }
        team.sync();
        return true;
    }

    /// Moves freed slots out of the free queue and their pool blocks back onto the stack.
    SLIPSTREAM_BOTH void reclaim(team_type& team)
    {
        for (u32 count = free_.available(team); count != 0; --count) {
            const u32 slot = free_.pop();
            u32 block = P::get(s_.first_block[slot]);
            u32 top = *s_.pool_free_count;
            team.sync();
            while (block != no_block) {
                const u32 next = P::get(s_.pool_next[block]);
                if (team.leader()) s_.pool_free[top] = block;
                ++top;
                block = next;
            }
            team.sync();
            if (team.leader()) {
                *s_.pool_free_count = top;
                s_.free_slots[slot / 32] |= 1u << slot % 32;
                P::set(s_.first_block[slot], no_block);
            }
            team.sync();
        }
        free_.release(team);
    }

    SLIPSTREAM_BOTH u32 lowest_free(team_type& team)
    {
        for (u32 first = 0; first < m_.n.groups(); first += 32) {
            const u32 any = team.mask32([&](u32 k) { return first + k < m_.n.groups() && s_.free_slots[first + k] != 0; });
            if (any == 0) continue;
            const u32 g = first + lowest_bit(any);
            return 32 * g + lowest_bit(s_.free_slots[g]);
        }
        return no_slot;
    }

    SLIPSTREAM_BOTH void take_chunk(team_type& team, ring_progress& rp, const u32* w)
    {
        switch (rp.stage) {
        case stage_entries:
            if (w[0] & abi::handle_bit) {
                for (u32 i = 0; i < 3 && rp.entries_left && (w[i] & abi::handle_bit); ++i) take_handle(team, rp, w[i]);
            } else if (abi::kind_of(w[0]) == abi::entry_kind::rect || abi::kind_of(w[0]) == abi::entry_kind::long_range) {
                team.sync();
                if (team.leader())
                    for (u32 i = 0; i < 3; ++i) half(rp)[i] = w[i];
                team.sync();
                rp.stage = stage_second_half;
                return;
            } else if (abi::kind_of(w[0]) == abi::entry_kind::after) {
                store_entry(team, rp, abi::access_entry::after(w[0] & 0xff, w[1] | static_cast<u64>(w[2]) << 32));
            } else {
                take_access(team, rp, w[0], w[1], w[2], 0, 0, false);
            }
            break;
        case stage_second_half: {
            const u32* const first = half(rp);
            rp.stage = stage_entries;
            take_access(team, rp, first[0], first[1], first[2], w[0], w[1], abi::kind_of(first[0]) == abi::entry_kind::rect);
            break;
        }
        case stage_scalars: {
            const abi::task_type& type = s_.types[rp.type];
            for (u32 i = 0; i < 3 && rp.scalars_left; ++i, --rp.scalars_left, ++rp.scalar)
                if (team.leader() && rp.scalar < type.scalars)
                    P::set(m_.records[rp.slot].words[type.scalar_offset[rp.scalar]], w[i]);
            break;
        }
        default: break;
        }
        if (rp.stage == stage_entries && rp.entries_left == 0) rp.stage = stage_scalars;
        if (rp.stage == stage_scalars && rp.scalars_left == 0) rp.stage = stage_gate;
    }

    /// The first chunk of a two-chunk entry, kept in fast memory: in ring_progress it would need an address, and a local
    /// variable with an address lies in memory that every acquire of this SM empties from the L1.
    SLIPSTREAM_BOTH u32* half(const ring_progress& rp) const { return s_.halves + 3 * rp.ring; }

    SLIPSTREAM_BOTH void take_handle(team_type& team, ring_progress& rp, u32 w)
    {
        const u32 index = w & abi::handle_index_mask;
        const abi::handle_entry h = handle(team, index);
        const abi::access_mode mode = abi::mode_of(w);
        store_member(team, rp, h.address, h.bytes, index + 1, h.rows ? h.rows : 1, h.pitch);
        store_entry(team, rp,
                    h.rows ? abi::access_entry::rect(mode, h.address, h.bytes, h.rows, h.pitch)
                           : abi::access_entry::range(mode, h.address, h.bytes));
    }

    /// A registered handle. Handles never change, so the device keeps those it has met and reads the host's table (a PCIe
    /// round trip) once for each.
    SLIPSTREAM_BOTH abi::handle_entry handle(team_type& team, u32 index)
    {
        abi::handle_entry h = m_.handle_cache[index];
        if (h.address == 0) {
            h = m_.handles[index];
            team.sync();
            if (team.leader()) m_.handle_cache[index] = h;
            team.sync();
        }
        return h;
    }

    /// A raw access: `extra` and `pitch` come from the second chunk.
    SLIPSTREAM_BOTH void take_access(team_type& team, ring_progress& rp, u32 w0, u32 w1, u32 w2, u32 extra, u32 pitch, bool rect)
    {
        const u64 address = w1 | static_cast<u64>(w0 & ((1u << 25) - 1)) << 32;
        const abi::access_mode mode = abi::mode_of(w0);
        if (rect) {
            store_member(team, rp, address, w2, 0, extra, pitch);
            store_entry(team, rp, abi::access_entry::rect(mode, address, w2, extra, pitch));
        } else {
            const u64 bytes = w2 | static_cast<u64>(extra) << 32;
            store_member(team, rp, address, bytes, 0, 1, 0);
            store_entry(team, rp, abi::access_entry::range(mode, address, bytes));
        }
    }

    /// The first accesses of a message are the typed members of the task struct: put pointer and size back in their place.
    SLIPSTREAM_BOTH void store_member(team_type& team, ring_progress& rp, u64 address, u64 bytes, u32 handle_plus_one,
                                      u32 rows, u32 pitch)
    {
        const abi::task_type& type = s_.types[rp.type];
        if (rp.member < type.members && team.leader()) {
            const u32 at = type.member_offset[rp.member];
            const u64 tail = bytes | static_cast<u64>(handle_plus_one) << 40;
            auto* const words = m_.records[rp.slot].words;
            P::set(words[at], static_cast<u32>(address));
            P::set(words[at + 1], static_cast<u32>(address >> 32));
            P::set(words[at + 2], static_cast<u32>(tail));
            P::set(words[at + 3], static_cast<u32>(tail >> 32));
            if (type.rect_mask >> rp.member & 1) {
                P::set(words[at + 4], rows);
                P::set(words[at + 5], pitch);
            }
        }
        ++rp.member;
    }

    SLIPSTREAM_BOTH void store_entry(team_type& team, ring_progress& rp, const abi::access_entry& declared)
    {
        const bool ignored = (rp.flags & abi::flag_no_access) != 0 && declared.is_memory();
        const abi::access_entry entry = ignored ? abi::access_entry{0, 0} : declared;
        if (rp.entry < inline_accesses) {
            if (team.leader()) P::set(s_.accesses[rp.entry * m_.n.window + rp.slot], entry);
        } else {
            const u32 at = (rp.entry - inline_accesses) % pool_block_entries;
            if (at == 0 && rp.entry != inline_accesses) rp.last_block = P::get(s_.pool_next[rp.last_block]);
            if (team.leader()) {
                access_box box = at == 0 ? access_box::nothing() : P::get(s_.pool_box[rp.last_block]);
                if (entry.is_memory()) box.add(entry);
                P::set(s_.pool_box[rp.last_block], box);
                P::set(s_.pool_owner[rp.last_block], rp.slot);
            }
            if (team.leader()) P::set(s_.pool_entries(rp.last_block)[at], entry);
        }
        ++rp.entry;
        --rp.entries_left;
    }

    /// Hands the decoded task over once everything its `after` entries name was handed over before.
    SLIPSTREAM_BOTH bool pass_gate(team_type& team, ring_progress& rp)
    {
        team.sync();
        u32 block = P::get(s_.first_block[rp.slot]);
        const u32 entries = rp.entry;
        for (u32 e = 0; e < entries; ++e) {
            const u32 at = (e - inline_accesses) % pool_block_entries;
            if (e > inline_accesses && at == 0) block = P::get(s_.pool_next[block]);
            const abi::access_entry entry = e < inline_accesses ? P::get(s_.accesses[e * m_.n.window + rp.slot])
                                                                : P::get(s_.pool_entries(block)[at]);
            if (entry.kind() != abi::entry_kind::after) break; // `after` entries come first
            // A ring's own progress is in rp while it is being polled; the others' is in memory.
            const u32 ring = entry.after_ring();
            if (ring == abi::after_stream_ring) {
                if (!stream_done(team, entry.after_position())) return false;
                continue;
            }
            const u64 handed_over = ring == static_cast<u32>(P::get(s_.task_id[rp.slot]) >> 56) ? rp.messages
                                                                                                 : s_.progress[ring].messages;
            if (entry.after_position() >= handed_over) return false;
        }
        decoded_.put(team, rp.slot); // never full: it has room for every window slot
        ++rp.messages;
        rp.stage = stage_header;
        return true;
    }

    /// Has the stream raised its join word? The tasks behind this gate then see what its work wrote.
    SLIPSTREAM_BOTH bool stream_done(team_type& team, u64 point)
    {
        const u32 now = team.broadcast(
            team.leader() ? P::load(edge::A10_stream_done, m_.stream_joins[point >> 32], order::acquire, scope::system) : 0u);
        team.sync();
        return static_cast<std::int32_t>(now - static_cast<u32>(point)) >= 0;
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u32, edge::A2_slot_freed, edge::R2_slot_taken> free_;
    queue_producer<P, u32, edge::R3_decoded, edge::A3_admitted> decoded_;
    bool starved_ = false; ///< a message waits for a window slot or pool blocks
    u32 turn_ = 0;         ///< the ring that is polled first
};

} // namespace slipstream::device
