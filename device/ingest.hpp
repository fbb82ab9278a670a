// The ingest role: takes messages from the pinned rings and decodes them straight into window slots.
//
// Chunks are polled and fetched by one team-wide load (8 slots at a time on a warp): one PCIe round trip, no head index, no
// doorbell. A plain message (every entry in one chunk, the whole in one fetch: most are) is decoded at once, a lane a chunk. Any
// other is decoded chunk by chunk as it arrives, so a message longer than its ring streams through it. The decoded task is
// never copied again: accesses go into the pool, the rebuilt task struct into the slot's record.
//
// OWNERS  this role alone: progress, incoming, halves, parts, the stack of free pool blocks. It writes records, task heads and pool blocks
//         while their slot is filling: nobody else looks at them then.
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
//        A16 (join word of a stream: its work is visible to the tasks that joined it)
// Bus counts (layout.hpp: bus_count): looks at the rings in a register, what happens once in many tasks in fast memory.
#pragma once
#include "device/layout.hpp"

namespace slipstream::device {

template <class P>
class ingest {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH ingest(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), free_(state.free_queue()), decoded_(state.decoded_queue()), looks_(state.bus[ring_looks])
    {
    }

    /// Polls the rings once. Returns true when something was taken.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        bool progress = false;
        const bool was_starved = starved_;
        starved_ = false;
        reclaim(team);
        // While one ring is busy the others are looked at less often: they would only cost its loads their overlap.
        if (ahead_ring_ != no_ring && !was_starved && ++turns_ % P::look_at_rings != 0) {
            const u32 r = ahead_ring_;
            const u32 slots = stage_ahead(team);
            progress = poll(team, r, slots, s_.incoming);
        }
        if (!progress) { // always, then: what a drain relies on is a look at every ring after the command was seen
            ahead_ring_ = no_ring;
            progress = poll_all(team);
        }
        // The loads are relaxed so that they fly together (acquire loads wait for each other: measured, four rings cost four
        // bus round trips); one fence acquires for all tasks of a step.
        if (progress) P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        decoded_.publish(team);
        return progress;
    }

    /// Polls every ring. While slots are short, the first ring polled takes them all: the turn goes to the next ring that found
    /// none. In a fixed order, a ring behind one that is never empty would wait for ever.
    SLIPSTREAM_BOTH bool poll_all(team_type& team)
    {
        bool progress = false;
        u32 nearest = ~0u;
        u32 next = turn_;
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
                progress |= poll(team, r, s_.fetched[j], s_.incoming + j * staged_words);
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

    /// At the end: the counts since the engine was made, for the host.
    SLIPSTREAM_BOTH void save(team_type& team)
    {
        team.sync();
        if (!team.leader()) return;
        u64 taken = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 r = 0; r < m_.n.rings; ++r) taken += s_.progress[r].position;
        s_.bus[ring_looks] = looks_;
        s_.bus[ring_slots_taken] = taken;
        s_.bus[handles_read] = s_.counters[handles_met];
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < notifier_counts; ++k) P::set(m_.bus[k], s_.bus[k]);
    }

private:
    enum stage_name : u32 { stage_header, stage_entries, stage_second_half, stage_scalars, stage_gate };

    static constexpr u32 rings_at_once = staged_rings;
    static constexpr u32 staged_words = staged_slots * 16;
    static constexpr u32 no_ring = ~0u;

    SLIPSTREAM_BOTH abi::chunk load_chunk(u32 r, u64 position, u32 c) const
    {
        const u64 at = position + c / abi::slot_chunks;
        return P::load(edge::A0_ring_publish,
                       m_.rings[static_cast<u64>(r) * m_.n.ring_slots + (at & (m_.n.ring_slots - 1))].chunks[c % abi::slot_chunks],
                       order::relaxed, scope::system);
    }

    /// Keeps a chunk if it is the one expected at `position`; else lowers `bad` to it.
    SLIPSTREAM_BOTH void stage(const abi::chunk& chunk, u64 position, u32 c, u32* staged, u32& bad) const
    {
        if (chunk.w[3] != abi::lap_tag(position + c / abi::slot_chunks, m_.n.ring_slots)) {
            bad = c < bad ? c : bad;
            return;
        }
        for (u32 i = 0; i < 4; ++i) staged[4 * c + i] = chunk.w[i];
    }

    /// Loads up to staged_slots slots of each of four rings, all loads in flight together: one bus round trip for all.
    /// fetched[j]: how many from the head on are complete.
    SLIPSTREAM_BOTH void fetch(team_type& team, u32 first)
    {
        const u32 limit = m_.n.look_chunks();
        u32 bad[rings_at_once];
        for (u32 j = 0; j < rings_at_once; ++j) bad[j] = first + j < m_.n.rings ? limit : 0;
        looks_ += m_.n.rings - first < rings_at_once ? m_.n.rings - first : rings_at_once;
        SLIPSTREAM_ONE_COPY
        for (u32 c = team.rank(); c < limit; c += team.size()) {
            abi::chunk chunk[rings_at_once];
            u64 position[rings_at_once];
            for (u32 j = 0; j < rings_at_once; ++j) {
                if (first + j >= m_.n.rings) break;
                position[j] = s_.progress[first + j].position;
                chunk[j] = load_chunk(first + j, position[j], c);
            }
            for (u32 j = 0; j < rings_at_once; ++j)
                if (c < bad[j]) stage(chunk[j], position[j], c, s_.incoming + j * staged_words, bad[j]); // else: no such ring, or a gap before
        }
        for (u32 j = 0; j < rings_at_once; ++j) {
            const u32 whole = team.reduce_min(bad[j]) / abi::slot_chunks;
            if (team.leader()) s_.fetched[j] = whole;
        }
        team.sync();
    }

    /// Sends the loads of ring r's next slots off; they arrive while the messages in hand are decoded.
    SLIPSTREAM_BOTH void look_ahead(team_type& team, u32 r, u64 position)
    {
        ahead_ring_ = r;
        ahead_position_ = position;
        ++looks_;
        team.each32([&](u32 c) { if (c < m_.n.look_chunks()) ahead_.at(0, c) = load_chunk(r, position, c); });
    }

    /// What look_ahead() brought, or a fresh look when the ring's head has moved since. Returns how many slots are complete.
    SLIPSTREAM_BOTH u32 stage_ahead(team_type& team)
    {
        const u32 limit = m_.n.look_chunks();
        const u64 position = s_.progress[ahead_ring_].position;
        if (position != ahead_position_) look_ahead(team, ahead_ring_, position);
        u32 bad = limit;
        team.each32([&](u32 c) { if (c < limit && c < bad) stage(ahead_.at(0, c), position, c, s_.incoming, bad); });
        ahead_ring_ = no_ring;
        const u32 whole = team.reduce_min(bad) / abi::slot_chunks;
        team.sync();
        return whole;
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
            const u32* const words = staged + 16 * k;
            u32 taken = 0;
            if (rp.stage == stage_header && header_at(words).plain()) {
                if (plain_slots(header_at(words)) > usable - k) break; // a later fetch begins here and brings the whole message
                taken = take_plain(team, rp, r, words, usable - k);
            } else {
                taken = take_slot(team, rp, r, words) ? 1 : 0;
            }
            if (taken == 0) {
                starved_ = true;
                break;
            }
            progress = true;
            k += taken;
        }
        // The submitter is told every quarter ring, and at once when the ring runs dry.
        if (rp.position != rp.published && (!progress || 4 * (rp.position - rp.published) >= m_.n.ring_slots)) {
            team.sync();
            if (team.leader()) {
                P::store(edge::R1_ring_consumed, m_.ring_pages[r].consumed, rp.position, order::release, scope::system);
                ++s_.bus[consumed_told];
            }
            rp.published = rp.position;
        }
        team.sync();
        if (progress && logs()) log_sample(team, r, rp.position);
        if (team.leader()) s_.progress[r] = rp;
        team.sync();
        return progress;
    }

    SLIPSTREAM_BOTH static abi::message_header header_at(const u32* words)
    {
        return abi::message_header::decode(abi::chunk{{words[0], words[1], words[2], 0}});
    }
    SLIPSTREAM_BOTH static u32 plain_slots(const abi::message_header& h)
    {
        return (h.plain_chunks() + abi::slot_chunks - 1) / abi::slot_chunks;
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

    SLIPSTREAM_BOTH static constexpr u32 blocks_for(u32 entries) { return (entries + pool_block_entries - 1) / pool_block_entries; }

    /// The j-th block from the top of the stack when it held `count`. Stays readable after it was taken.
    SLIPSTREAM_BOTH u32 pool_top(u32 count, u32 j) const { return s_.pool_free[count - 1 - j]; }

    /// One lane: gives a window slot its chain of pool blocks, from the top of the stack when it held `top`.
    SLIPSTREAM_BOTH void chain_blocks(u32 slot, u32 top, u32 blocks) const
    {
        u32 block = blocks != 0 ? pool_top(top, 0) : no_block;
        P::set(s_.first_block[slot], block);
        SLIPSTREAM_ONE_COPY
        for (u32 j = 1; block != no_block; ++j) {
            const u32 next = j < blocks ? pool_top(top, j) : no_block;
            P::set(s_.pool_next[block], next);
            P::set(s_.pool_tags[block], slot);
            block = next;
        }
    }

    /// One lane: what workers and the other roles need of the task beside its words and accesses.
    SLIPSTREAM_BOTH void describe(u32 slot, u32 r, u64 number, const abi::message_header& h, u32 entries) const
    {
        task_record<P>& record = m_.records[slot];
        P::set(record.blocks, h.blocks);
        P::store(edge::P0_ticket, record.next_block, 0u, order::relaxed, scope::device);
        P::store(edge::P4_status, record.status, 0u, order::relaxed, scope::device);
        const u64 id = static_cast<u64>(r) << 56 | number;
        P::set(s_.task_id[slot], id);
        s_.outstanding[slot] = h.blocks > m_.n.workers ? 1 : h.blocks; // with tickets: one until they are drawn
        s_.dealt[slot] = 0;
        P::set(s_.heads[slot], task_head{slot | h.type << 16, identity_of(id), h.blocks,
                                            entries | (h.flags & ~u32{abi::flag_no_access}) << 16});
    }

    /// Decodes plain messages staged at `words`, a lane a chunk, as many of them as lie within `slots` ring slots and find a
    /// place; the first does lie within. Returns how many ring slots were taken; 0: no place, nothing was taken.
    SLIPSTREAM_BOTH u32 take_plain(team_type& team, ring_progress& rp, u32 r, const u32* words, u32 slots)
    {
        // First the places, in order: a window slot and pool blocks for each message.
        const u32 g = group_with_free(team);
        if (g == no_slot) return 0;
        u32 free_bits = s_.free_slots[g];
        u32 top = *s_.pool_free_count;
        u32 starts = 0; // a bit for each message's first chunk
        u32 messages = 0;
        u32 taken = 0;
        u32 slot = no_slot;
        bool gated = false;
        SLIPSTREAM_ONE_COPY
        while (taken < slots && !gated) {
            const u32* const w = words + 16 * taken;
            const abi::message_header h = header_at(w);
            const u32 blocks = blocks_for(h.entries);
            if (!h.plain() || plain_slots(h) > slots - taken || free_bits == 0 || top < blocks) break;
            slot = 32 * g + lowest_bit(free_bits);
            free_bits &= free_bits - 1;
            if (team.leader()) s_.parts[messages] = {abi::slot_chunks * taken, slot, top};
            starts |= 1u << abi::slot_chunks * taken;
            // `after` entries come first. Such a task may have to wait at the gate: it is the last one taken.
            gated = h.entry_chunks() != 0 && (w[4] & abi::handle_bit) == 0 && abi::kind_of(w[4]) == abi::entry_kind::after;
            top -= blocks;
            taken += plain_slots(h);
            ++messages;
        }
        team.sync(); // all lanes have read what the leader changes now
        if (messages == 0) return 0;
        if (team.leader()) {
            s_.free_slots[g] = free_bits;
            *s_.pool_free_count = top;
        }
        const u64 first_number = rp.messages;
        rp.position += taken;
        look_ahead(team, r, rp.position);
        team.sync();
        // Then the content. Entries of a chunk: one, or up to three handles; masks count those of the chunks before.
        const u32 end = abi::slot_chunks * taken;
        typename P::template lane_array<u32, 1> entries_in;
        team.each32([&](u32 c) {
            entries_in.at(0, c) = 0;
            if (c >= end) return;
            const message_part part = s_.parts[message_of(starts, c)];
            const u32 rel = c - part.first_chunk;
            const abi::message_header h = header_at(words + 4 * part.first_chunk);
            if (rel == 0) {
                const bool ordered = (h.flags & abi::flag_no_access) == 0;
                const bool waits = gated && part.slot == slot;
                describe(part.slot, r, first_number + message_of(starts, c), h, ordered || waits ? h.entries : 0);
                chain_blocks(part.slot, part.top, blocks_for(h.entries));
                if (!waits) decoded_.put_ahead(message_of(starts, c), part.slot);
            } else if (rel <= h.entry_chunks()) {
                const u32* const w = words + 4 * c;
                const u32 handles = handles_in(w);
                entries_in.at(0, c) = handles != 0 ? handles : abi::kind_of(w[0]) == abi::entry_kind::after ? entry_is_after : 1;
            }
        });
        const u32 second = team.mask32([&](u32 c) { return (entries_in.at(0, c) & 3) > 1; });
        const u32 third = team.mask32([&](u32 c) { return (entries_in.at(0, c) & 3) > 2; });
        const u32 afters = team.mask32([&](u32 c) { return entries_in.at(0, c) == entry_is_after; });
        SLIPSTREAM_ONE_COPY
        for (u32 c = team.rank(); c < end; c += team.size()) {
            const message_part part = s_.parts[message_of(starts, c)];
            const abi::message_header h = header_at(words + 4 * part.first_chunk);
            const u32 rel = c - part.first_chunk;
            const u32* const w = words + 4 * c;
            const abi::task_type& type = s_.types[h.type];
            auto* const out = m_.records[part.slot].words;
            if (rel > h.entry_chunks()) {
                for (u32 i = 0; i < 3; ++i) {
                    const u32 scalar = 3 * (rel - 1 - h.entry_chunks()) + i;
                    if (scalar < h.scalars && scalar < type.scalars) P::set(out[type.scalar_offset[scalar]], w[i]);
                }
            } else if (rel != 0) {
                const u32 own = ~((2u << part.first_chunk) - 1); // this message's entries begin behind its header
                const u32 below = own & ((1u << c) - 1);
                const u32 first = rel - 1 + popcount(second & below) + popcount(third & below);
                const u32 after_count = popcount(afters & own & ((2u << (part.first_chunk + h.entry_chunks())) - 1));
                const bool ordered = (h.flags & abi::flag_no_access) == 0;
                const bool by_handles = (w[0] & abi::handle_bit) != 0;
                SLIPSTREAM_ONE_COPY
                for (u32 i = 0; i < (entries_in.at(0, c) & 3); ++i) {
                    const raw_access a = by_handles ? by_handle(w[i] & abi::handle_index_mask, true) : raw_access{address_in(w), w[2], 0, 1, 0};
                    const abi::access_entry entry = entries_in.at(0, c) == entry_is_after
                        ? abi::access_entry::after(w[0] & 0xff, w[1] | static_cast<u64>(w[2]) << 32)
                        : a.entry(abi::mode_of(w[by_handles ? i : 0]));
                    const u32 e = first + i;
                    if (e >= after_count) set_member(type, out, e - after_count, a);
                    if (e < after_count || ordered) put_entry(team, pool_top(part.top, e / pool_block_entries), e, entry, by_handles);
                }
            }
        }
        team.sync();
        decoded_.advance(gated ? messages - 1 : messages);
        rp.messages += gated ? messages - 1 : messages;
        if (gated) {
            rp.slot = slot;
            rp.stage = stage_gate;
        }
        return taken;
    }

    static constexpr u32 entry_is_after = 1 | 4;

    SLIPSTREAM_BOTH static u32 message_of(u32 starts, u32 c) { return popcount(starts & ((2u << c) - 1)) - 1; }

    SLIPSTREAM_BOTH static u32 handles_in(const u32* w)
    {
        return !(w[0] & abi::handle_bit) ? 0 : !(w[1] & abi::handle_bit) ? 1 : !(w[2] & abi::handle_bit) ? 2 : 3;
    }

    /// Stores an entry that is number `e` of its task, and tags its block.
    SLIPSTREAM_BOTH void put_entry(team_type& team, u32 block, u32 e, const abi::access_entry& entry, bool registered) const
    {
        const u32 at = e % pool_block_entries;
        s_.set_pool_entry(block, at, table_entry::of(entry, registered));
        if (entry.kind() == abi::entry_kind::rect) P::set(s_.pool_shapes[block * pool_block_entries + at], entry.tail);
        const u32 bits = entry.is_memory() ? pool_tag::make(0, 1u << at, 0).word
                         : entry.kind() == abi::entry_kind::after ? pool_tag::make(0, 0, 1u << at).word : 0;
        if (bits != 0) team.set_bits(s_.pool_tags[block], bits);
    }

    SLIPSTREAM_BOTH bool begin(team_type& team, ring_progress& rp, u32 r, const abi::message_header& h)
    {
        const u32 g = group_with_free(team);
        const u32 blocks = blocks_for(h.entries);
        const u32 top = *s_.pool_free_count;
        if (g == no_slot || top < blocks) return false;
        const u32 slot = 32 * g + lowest_bit(s_.free_slots[g]);
        team.sync(); // all lanes have read what the leader changes now
        if (team.leader()) {
            s_.free_slots[g] &= s_.free_slots[g] - 1;
            *s_.pool_free_count = top - blocks;
            chain_blocks(slot, top, blocks);
            describe(slot, r, rp.messages, h, h.entries);
        }
        team.sync();
        rp.stage = h.entries ? stage_entries : h.scalars ? stage_scalars : stage_gate;
        rp.slot = slot;
        rp.entries_left = h.entries;
        rp.scalars_left = h.scalars;
        rp.entry = rp.member = rp.scalar = 0;
        rp.type = h.type;
        rp.flags = h.flags;
        rp.last_block = P::get(s_.first_block[slot]);
        return true;
    }

    /// Moves freed slots out of the free queue and their pool blocks back onto the stack.
    SLIPSTREAM_BOTH void reclaim(team_type& team)
    {
        const u32 came_back = free_.available(team);
        for (u32 count = came_back; count != 0; --count) {
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
        if (came_back != 0 && logs()) log_sample(team, control_sample::no_ring, 0);
    }

    SLIPSTREAM_BOTH bool logs() const { return m_.n.sample_capacity != 0; }

    /// For a flight log; beyond its capacity only the count goes on.
    SLIPSTREAM_BOTH void log_sample(team_type& team, u32 ring, u64 taken)
    {
        u32 free = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) free += popcount(s_.free_slots[g]);
        free = team.reduce_add(free);
        if (!team.leader()) return;
        const u64 at = s_.bus[samples_told]++;
        if (at < m_.n.sample_capacity) m_.control_log[at] = {P::clock_ns(), taken, ring, m_.n.window_used - free};
    }

    /// The lowest group with a free window slot, or no_slot.
    SLIPSTREAM_BOTH u32 group_with_free(team_type& team)
    {
        SLIPSTREAM_ONE_COPY
        for (u32 first = 0; first < m_.n.groups(); first += 32) {
            const u32 any = team.mask32([&](u32 k) { return first + k < m_.n.groups() && s_.free_slots[first + k] != 0; });
            if (any != 0) return first + lowest_bit(any);
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
                store_entry(team, rp, abi::access_entry::after(w[0] & 0xff, w[1] | static_cast<u64>(w[2]) << 32), false);
            } else {
                take_access(team, rp, abi::mode_of(w[0]), {address_in(w), w[2], 0, 1, 0});
            }
            break;
        case stage_second_half: {
            const u32* const first = half(rp);
            const bool rect = abi::kind_of(first[0]) == abi::entry_kind::rect;
            rp.stage = stage_entries;
            take_access(team, rp, abi::mode_of(first[0]),
                        rect ? raw_access{address_in(first), first[2], 0, w[0], w[1]}
                             : raw_access{address_in(first), first[2] | static_cast<u64>(w[0]) << 32, 0, 1, 0});
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

    SLIPSTREAM_BOTH static u64 address_in(const u32* w) { return static_cast<u64>(w[0] & ((1u << 25) - 1)) << 32 | w[1]; }

    /// The first chunk of a two-chunk entry, kept in fast memory: in ring_progress it would need an address, and a local
    /// variable with an address lies in memory that every acquire of this SM empties from the L1.
    SLIPSTREAM_BOTH u32* half(const ring_progress& rp) const { return s_.halves + 3 * rp.ring; }

    SLIPSTREAM_BOTH void take_handle(team_type& team, ring_progress& rp, u32 w)
    {
        take_access(team, rp, abi::mode_of(w), by_handle(w & abi::handle_index_mask, team.leader()));
    }

    /// A declared access, before it is packed.
    struct raw_access {
        u64 address;
        u64 bytes; ///< of the range, or of one row
        u32 handle_plus_one;
        u32 rows;
        u32 pitch; ///< 0: a range

        SLIPSTREAM_BOTH abi::access_entry entry(abi::access_mode mode) const
        {
            return pitch != 0 ? abi::access_entry::rect(mode, address, bytes, rows, pitch) : abi::access_entry::range(mode, address, bytes);
        }
    };

    /// A registered handle. Handles never change, so the device keeps those it has met and reads the host's table (a PCIe
    /// round trip) once for each. Lanes that meet at one handle write the same. `counts`: the lane is the one that counts the read.
    SLIPSTREAM_BOTH raw_access by_handle(u32 index, bool counts)
    {
        abi::handle_entry h = m_.handle_cache[index];
        if (h.address == 0) {
            // The host wrote the entry before it published the message.
            P::fence(edge::A0_ring_fence, order::acquire, scope::system);
            h = m_.handles[index];
            if (counts) team_type::add(s_.counters[handles_met], 1);
            m_.handle_cache[index] = h;
        }
        return {h.address, h.bytes, index + 1, h.rows ? h.rows : 1, h.rows ? h.pitch : 0};
    }

    SLIPSTREAM_BOTH void take_access(team_type& team, ring_progress& rp, abi::access_mode mode, const raw_access& a)
    {
        if (team.leader()) set_member(s_.types[rp.type], m_.records[rp.slot].words, rp.member, a);
        ++rp.member;
        store_entry(team, rp, a.entry(mode), a.handle_plus_one != 0);
    }

    /// The first accesses of a message are the typed members of the task struct: put pointer and size back in their place.
    template <class Words>
    SLIPSTREAM_BOTH void set_member(const abi::task_type& type, Words* words, u32 member, const raw_access& a)
    {
        if (member >= type.members) return;
        const u32 at = type.member_offset[member];
        const u64 tail = a.bytes | static_cast<u64>(a.handle_plus_one) << 40;
        P::set(words[at], static_cast<u32>(a.address));
        P::set(words[at + 1], static_cast<u32>(a.address >> 32));
        P::set(words[at + 2], static_cast<u32>(tail));
        P::set(words[at + 3], static_cast<u32>(tail >> 32));
        if (type.rect_mask >> member & 1) {
            P::set(words[at + 4], a.rows);
            P::set(words[at + 5], a.pitch);
        }
    }

    SLIPSTREAM_BOTH void store_entry(team_type& team, ring_progress& rp, const abi::access_entry& declared, bool registered)
    {
        const bool ignored = (rp.flags & abi::flag_no_access) != 0 && declared.is_memory();
        const abi::access_entry entry = ignored ? abi::access_entry{0, 0} : declared;
        const u32 at = rp.entry % pool_block_entries;
        if (at == 0 && rp.entry != 0) rp.last_block = P::get(s_.pool_next[rp.last_block]);
        if (team.leader()) put_entry(team, rp.last_block, at, entry, registered);
        ++rp.entry;
        --rp.entries_left;
    }

    /// Hands the decoded task over once everything its `after` entries name was handed over before.
    SLIPSTREAM_BOTH bool pass_gate(team_type& team, ring_progress& rp)
    {
        team.sync();
        const u32 own_ring = static_cast<u32>(P::get(s_.task_id[rp.slot]) >> 56);
        SLIPSTREAM_ONE_COPY
        for (u32 block = P::get(s_.first_block[rp.slot]); block != no_block; block = P::get(s_.pool_next[block])) {
            const u32 afters = pool_tag{P::get(s_.pool_tags[block])}.after();
            SLIPSTREAM_ONE_COPY
            for (u32 bits = afters; bits != 0; bits &= bits - 1) {
                const table_entry entry = s_.pool_entry(block, lowest_bit(bits));
                // A ring's own progress is in rp while it is being polled; the others' is in memory.
                const u32 ring = entry.after_ring();
                if (ring == abi::after_stream_ring) {
                    if (!stream_done(team, entry.after_position())) return false;
                    continue;
                }
                const u64 handed_over = ring == own_ring ? rp.messages : s_.progress[ring].messages;
                if (entry.after_position() >= handed_over) return false;
            }
            if (afters != 15) break; // `after` entries come first
        }
        hand_over(team, rp);
        return true;
    }

    /// Has the stream raised its join word? The tasks behind this gate then see what its work wrote: relaxed, the fence of the step
    /// acquires.
    SLIPSTREAM_BOTH bool stream_done(team_type& team, u64 point)
    {
        const u32 now = team.broadcast(
            team.leader() ? P::load(edge::A16_stream_done, m_.stream_joins[point >> 32], order::relaxed, scope::system) : 0u);
        if (team.leader()) ++s_.bus[stream_words_read];
        team.sync();
        return static_cast<std::int32_t>(now - static_cast<u32>(point)) >= 0;
    }

    SLIPSTREAM_BOTH void hand_over(team_type& team, ring_progress& rp)
    {
        decoded_.put(team, rp.slot); // never full: it has room for every window slot
        ++rp.messages;
        rp.stage = stage_header;
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u32, edge::A2_slot_freed, edge::R2_slot_taken> free_;
    queue_producer<P, u32, edge::R3_decoded, edge::A3_taken> decoded_;
    bool starved_ = false; ///< a message waits for a window slot or pool blocks
    // Loads sent off early: chunks of ahead_ring_ from ahead_position_ on.
    typename P::template lane_array<abi::chunk, 1> ahead_;
    u64 ahead_position_ = 0;
    u32 ahead_ring_ = no_ring;
    u32 turns_ = 0;
    u32 turn_ = 0; ///< the ring that is polled first
    u64 looks_; ///< see ring_looks; 64 bits: it counts on while nothing comes
};

} // namespace slipstream::device
