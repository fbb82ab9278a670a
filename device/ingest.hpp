// The ingest role: takes messages from the pinned rings and decodes them straight into window slots.
//
// Chunks are polled and fetched by team-wide loads: one PCIe round trip, no head index, no doorbell. While nothing comes, the next
// two slots of every ring are looked at. The ring that brings something is read ahead: a look whenever the slots of the one before
// are used up, each twice as long as the last one up to 128 slots while they come back full. What a look brought is kept until it
// is taken, so that a full window fetches nothing twice. A look is waited for: sent off beforehand, it was at ptxas's mercy
// (device/tried.md), and of 128 slots a bus round trip costs each 10 ns.
//
// Plain messages (every entry in one chunk, no longer than message_plain_slots: most are) get their places together, and a lane
// each where they take a ring slot each, or up to four and there are many; longer ones get a lane a chunk. Any other is decoded as
// it arrives, what is at hand at a time, its entries a lane a chunk, so a message longer than its ring streams through it. The
// decoded task is never copied again: accesses go into the pool, the rebuilt task struct into the slot's record.
//
// Accesses stay as they came, for admission to resolve, an access a lane of its helpers (entry_resolver.hpp): those of tasks that
// it sees are not looked at here, but where a task comes alone and is mailed at once (bypass.hpp, with its edges).
//
// While tasks come one by one worker 0 looks at their ring (watch.hpp): then it is not looked at here, and what that one has taken
// is decoded like all other messages, but into slots that have their workers' part of the record already.
//
// COST    in cycles of a batch of 31 one-slot messages with four handles (H200, a build with clock reads in these places): places
//         for all of them 1200, describing them 650, scalars and accesses as they came 3600 (9300 when it resolved the handles
//         itself), whatever slots came back 1700.
//         Each look, of 128 slots at most, the round trip and the fence (250). No loop over messages where all take one
//         ring slot. On the bus: a slot once, and what looks find empty: 128 B a ring while idle; of the busy ring no more
//         than twice what came last.
// KEPT    s.kept is staged_slots + sizes::ahead_slots ring slots long. A look is staged behind the first staged_slots; what was
//         left of the looks before, fewer slots than a message may have, moves right before it: a message lies in one piece.
// OWNERS  this role alone: progress, incoming, kept, halves, streamed, message_places, the stacks of free window slots and pool
//         blocks. It writes records, task heads and pool blocks while their slot is filling: nobody else looks at them then.
// STATES  of a ring (ring_progress.stage)
//   header  at a slot boundary, nothing held -> entries (slot and pool blocks taken together, or none: no hold and wait), or, of
//                                             a plain message with `after` entries, gate at once
//   entries <-> second_half, -> scalars -> gate   by the chunks of the message
//   gate    -> header                         once every task its `after` entries name has been handed to the scheduler;
//                                             the decoded queue is first in, first out, so handed over = admitted earlier;
//                                             and every CUDA stream they name is done (a look across the bus a step, while shut)
// Only the ring whose gate is shut waits. A waiting ring holds one slot and at most a message's pool blocks (blocks_per_message, by
// the host): the window has more slots than rings and the pool more blocks than all rings together can hold while waiting
// (checked by the host).
//
// EDGES  A0 (ring chunks, relaxed polls + one acquire fence at system scope: host memory written before submit is
//            visible to the task)
//        R1 (consumed: the chunks were read, they may be overwritten) · A2 (slot free) · R3 (slot decoded)
//        A16 (join word of a stream: its work is visible to the tasks that joined it)
// Bus counts (layout.hpp: bus_count) in fast memory, one addition a look.
#pragma once
#include "device/bypass.hpp"
#include "device/entry_resolver.hpp"
#include "device/watch.hpp"

namespace slipstream::device {

/// A look ahead is `sizes::ahead_slots` ring slots long at most, 8 of them in 4 registers of a lane.
template <class P>
class ingest {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH ingest(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), resolver_(memory, state), bypass_(memory, state), free_(state.free_queue()),
          decoded_(state.decoded_queue()), due_(low_bits(memory.n.rings))
    {
    }

    /// Polls the rings once. Returns true when something was taken. `may_watch`: else a watch (watch.hpp) ends, and none begins.
    SLIPSTREAM_BOTH bool step(team_type& team, bool may_watch = true)
    {
        reclaim(team);
        // While one ring is busy the others are looked at less often: they would only cost its loads their overlap.
        bool progress = false;
        SLIPSTREAM_ONE_COPY
        for (bool all = ahead_ring_ == no_ring || reach_ != glance_slots || ++turns_ % P::look_at_rings == 0;; all = true) {
            progress = poll_rings(team, all, may_watch);
            if (progress || (all && !again_)) break;
            // All, then: what a drain relies on is a look at every ring after the command was seen.
        }
        // The loads are relaxed so that they fly together (acquire loads wait for each other: measured, four rings cost four
        // bus round trips); one fence acquires for all tasks of a step.
        if (progress) P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        decoded_.publish(team);
        if (!progress && may_watch && watched_ == no_ring && m_.n.watch_after != 0 && streak_ % 256 >= m_.n.watch_after)
            begin_watch(team);
        return progress;
    }

    /// Has worker 0 no blank, and has it taken nothing that is not handed on?
    SLIPSTREAM_BOTH bool watches() const { return watched_ != no_ring; }

    /// After a step that took nothing: true when no ring holds a message, in part or whole. What the drain command waits for.
    SLIPSTREAM_BOTH bool rings_empty() const
    {
        if (starved_ || unseen_ || watches()) return false;
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
        s_.bus[ring_slots_taken] = taken;
        s_.bus[handles_read] = s_.counters[handles_known];
        SLIPSTREAM_ONE_COPY
        for (u32 k = 0; k < notifier_counts; ++k) P::set(m_.bus[k], s_.bus[k]);
    }

private:
    enum stage_name : u32 { stage_header, stage_entries, stage_second_half, stage_scalars, stage_gate };

    static constexpr u32 rings_at_once = staged_rings;
    static constexpr u32 staged_words = staged_slots * 16;
    static constexpr u32 no_ring = ~0u;
    static constexpr u32 brief_slots = 4; ///< messages no longer than this are decoded a lane each, others a lane a chunk
    static constexpr u32 ahead_loads = ahead_slots_max * abi::slot_chunks / 32; ///< of a lane
    static constexpr u32 plain_blocks_bits = 5;
    static constexpr u32 plain_entries_max = 3 * (staged_slots * abi::slot_chunks - 1);
    static_assert(plain_entries_max / pool_block_entries + 1 < 1u << plain_blocks_bits);
    static_assert(ahead_slots_max % staged_slots == 0);
    static_assert(batch_messages == 32 && staged_slots * abi::slot_chunks == 32, "an item of a team's collectives each");
    using lane_values = typename P::template lane_array<u32, 1>;

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

    /// Polls every ring, or only the one that is read ahead. While window slots are short, the first ring polled takes them all:
    /// the turn goes to the next ring that found none. In a fixed order, a ring behind one that is never empty would wait for ever.
    /// If the ring whose turn it is finds too few pool blocks, no other begins a message until it has them: of blocks that come
    /// back one by one the others would take each. In an engine of one part: what is in flight ends without those others, a shut
    /// gate's ring apart, whose blocks it does not wait for (head of this file). Where there are several, tasks in flight may wait
    /// for stand-ins that other rings bring, here and in parts that save likewise: all would stand still.
    SLIPSTREAM_BOTH bool poll_rings(team_type& team, bool all, bool may_watch)
    {
        bool progress = false;
        u32 first = turn_ / rings_at_once * rings_at_once;
        unseen_ = again_ = false;
        u32 full = 0; // rings of which there is more, a bit each
        u32 starving = 0;
        bool saving = false;
        const u32 ahead_slots_kept = ahead_ring_ != no_ring ? kept_slots(team) : 0;
        starved_ = false;
        if (!all && ahead_ring_ == no_ring) return false;
        const bool room = *s_.free_slot_count != 0;
        const u32 rings = all ? m_.n.rings : 1;
        SLIPSTREAM_ONE_COPY
        for (u32 polled = 0; polled < rings; polled += rings_at_once) {
            const u32 fetched = all ? fetch(team, first, room) : 0;
            // Before what lies in the rings is taken in: worker 0 may be out of blanks.
            if (all && watched_ != no_ring && polled == 0) tend_watch(team, may_watch);
            const bool quiet = fetched == 0 && due_ == 0 && ahead_ring_ == no_ring; // most often, while nothing comes
            SLIPSTREAM_ONE_COPY
            for (u32 k = 0; k < (quiet ? 0 : all ? rings_at_once : 1); ++k) {
                const u32 j = (turn_ + k) % rings_at_once;
                const u32 r = all ? first + j : ahead_ring_;
                if (r >= m_.n.rings) continue;
                const bool ahead = r == ahead_ring_;
                const u64 position = s_.progress[r].position;
                const u32 slots = ahead ? ahead_slots_kept : fetched >> 8 * j & 0xff;
                const u32* const words = ahead ? kept_words(position) : s_.incoming + j * staged_words;
                starved_ = cut_ = false;
                const bool took = poll(team, r, slots, words);
                progress |= took;
                if (ahead) {
                    kept_cut_ = cut_;
                    again_ |= cut_; // the look may be older than what a drain relies on
                } else if (slots != 0) {
                    const u32 left = slots - static_cast<u32>(s_.progress[r].position - position);
                    const bool more = slots == look_slots(reach_) || left != 0;
                    again_ |= cut_ && left == look_slots(reach_); // the look was too short for a message: the next one is not
                    if (r == watched_) continue; // what is left there is worker 0's, as far as is known
                    if (more && took && ahead_ring_ == no_ring)
                        read_ahead(team, r, position + slots, words + 16 * (slots - left), left);
                    else full |= static_cast<u32>(more) << r;
                }
                starving |= static_cast<u32>(starved_) << r;
                saving |= m_.n.parts == 1 && r == turn_ && starved_ && !took;
            }
            first += rings_at_once;
            if (first >= m_.n.rings) first = 0;
        }
        starved_ = starving != 0;
        if (all && room) { // else nobody knows who waits
            const u32 behind = starving & ~low_bits(turn_ + 1);
            saving_ = saving; // it was polled first, and there were window slots: it wants pool blocks
            if (starving != 0 && !saving) turn_ = lowest_bit(behind != 0 ? behind : starving);
            // What worker 0 has taken it takes faster than two a round: then more is looked for.
            const bool behind_watch = watched_ != no_ring && s_.watch->waiting != 0;
            reach_ = full != 0 || behind_watch ? staged_slots : glance_slots;
        }
        return progress;
    }

    SLIPSTREAM_BOTH void count_look(team_type& team, u32 chunks) const
    {
        if (team.leader()) s_.bus[ring_chunks_looked] += chunks;
    }

    SLIPSTREAM_BOTH u32 ahead_most() const { return m_.n.ahead_slots < ahead_slots_max ? m_.n.ahead_slots : ahead_slots_max; }
    SLIPSTREAM_BOTH u32 look_slots(u32 wanted) const { return wanted < m_.n.ring_slots ? wanted : m_.n.ring_slots; }

    /// Loads the next slots of each of four rings, all loads in flight together: one bus round trip for all. Not of the
    /// ring that is read ahead, nor of one that could not take a message. Returns how many of each are complete from its
    /// head on, eight bits a ring.
    SLIPSTREAM_BOTH u32 fetch(team_type& team, u32 first, bool room)
    {
        const u32 limit = look_slots(reach_) * abi::slot_chunks;
        u32 wanted = 0; // a bit a ring
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < rings_at_once; ++j) {
            const u32 r = first + j;
            if (r >= m_.n.rings || r == ahead_ring_) continue;
            if (r == watched_ && is_looked_after()) {
                unseen_ = true;
                continue;
            }
            const u32 stage = s_.progress[r].stage;
            if (stage == stage_header ? room : stage != stage_gate) wanted |= 1u << j;
            else unseen_ = true;
        }
        count_look(team, popcount(wanted) * limit);
        u32 watch_seen = 0; // by each lane, so that it flies with the rings' loads
        if (watched_ != no_ring)
            watch_seen = watch_word{P::load(edge::P9_watch, *m_.watch, order::relaxed, scope::device)}.lower();
        const u32 fetched = reach_ == glance_slots ? glance(team, first, wanted) : fetch_and_stage(team, first, wanted, limit);
        if (watched_ != no_ring) watch_seen_ = team.broadcast(watch_seen);
        return fetched;
    }

    /// Stages what it loads.
    SLIPSTREAM_BOTH u32 fetch_and_stage(team_type& team, u32 first, u32 wanted, u32 limit)
    {
        typename P::template lane_array<abi::chunk, rings_at_once> chunks;
        u32 bad[rings_at_once];
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < rings_at_once; ++j)
            team.each32([&](u32 c) {
                chunks.at(j, c) = {}; // or the compiler carries along what was there before
                if ((wanted >> j & 1) != 0 && c < limit)
                    chunks.at(j, c) = load_chunk(first + j, s_.progress[first + j].position, c);
            });
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < rings_at_once; ++j) {
            bad[j] = (wanted >> j & 1) != 0 ? limit : 0;
            team.each32([&](u32 c) { // a chunk behind a gap is not looked at
                if (c < bad[j]) stage(chunks.at(j, c), s_.progress[first + j].position, c, s_.incoming + j * staged_words, bad[j]);
            });
        }
        u32 fetched = 0;
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < rings_at_once; ++j) fetched |= team.reduce_min(bad[j]) / abi::slot_chunks << 8 * j;
        team.sync();
        return fetched;
    }
    static_assert(rings_at_once <= 4 && staged_slots < 256);

    /// The same for the next two slots of each ring that is `wanted`, a lane a chunk of any: one load, and nothing more to
    /// do while nothing comes.
    SLIPSTREAM_BOTH u32 glance(team_type& team, u32 first, u32 wanted)
    {
        constexpr u32 ring_chunks = glance_slots * abi::slot_chunks;
        static_assert(rings_at_once * ring_chunks <= 32);
        typename P::template lane_array<abi::chunk, 1> chunks;
        bypass_.look();
        const u32 there = team.mask32([&](u32 k) {
            const u32 j = k / ring_chunks;
            chunks.at(0, k) = {};
            if (j >= rings_at_once || !(wanted >> j & 1)) return false;
            const u64 position = s_.progress[first + j].position;
            chunks.at(0, k) = load_chunk(first + j, position, k % ring_chunks);
            return chunks.at(0, k).w[3] == abi::lap_tag(position + k % ring_chunks / abi::slot_chunks, m_.n.ring_slots);
        });
        if (there == 0) return 0;
        u32 fetched = 0;
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < rings_at_once; ++j) { // a chunk behind a gap is not looked at
            const u32 of_ring = there >> ring_chunks * j & low_bits(ring_chunks);
            fetched |= lowest_bit(~of_ring) / abi::slot_chunks << 8 * j;
        }
        team.each32([&](u32 k) {
            if (!(there >> k & 1)) return;
            u32* const to = s_.incoming + k / ring_chunks * staged_words + 4 * (k % ring_chunks);
            for (u32 i = 0; i < abi::chunk_payload_words; ++i) to[i] = chunks.at(0, k).w[i];
        });
        team.sync();
        return fetched;
    }

    /// Ring r is read ahead from now on, behind the `left` slots at `words` that end at `end`.
    SLIPSTREAM_BOTH void read_ahead(team_type& team, u32 r, u64 end, const u32* words, u32 left)
    {
        ahead_ring_ = r;
        ahead_reach_ = 2 * reach_ < ahead_most() ? 2 * reach_ : ahead_most();
        kept_cut_ = cut_;
        kept_at_ = kept_end_ = static_cast<u32>(end);
        move_kept(team, words, left);
    }

    /// Moves up to staged_slots slots to right before the place of the next look.
    SLIPSTREAM_BOTH void move_kept(team_type& team, const u32* words, u32 slots)
    {
        if (slots == 0) return;
        typename P::template lane_array<abi::chunk, 1> moved; // they may overlap their new place
        team.each32([&](u32 c) {
            if (c < slots * abi::slot_chunks) moved.at(0, c) = {{words[4 * c], words[4 * c + 1], words[4 * c + 2], 0}};
        });
        team.sync();
        u32* const to = s_.kept + staged_words - 16 * slots;
        team.each32([&](u32 c) {
            if (c >= slots * abi::slot_chunks) return;
            for (u32 i = 0; i < abi::chunk_payload_words; ++i) to[4 * c + i] = moved.at(0, c).w[i];
        });
        team.sync();
    }

    SLIPSTREAM_BOTH const u32* kept_words(u64 position) const
    {
        return s_.kept + (staged_words + 16 * static_cast<std::int32_t>(static_cast<u32>(position) - kept_at_));
    }

    /// How many slots of the ring that is read ahead are at hand from its head on. When they are used up, or end within a message,
    /// the next ones are looked at and kept behind them: twice as many as the last time if those came back full. When it brings
    /// nothing, the ring is one of all again.
    SLIPSTREAM_BOTH u32 kept_slots(team_type& team)
    {
        const u64 position = s_.progress[ahead_ring_].position;
        const u32 left = kept_end_ - static_cast<u32>(position);
        if (s_.progress[ahead_ring_].stage == stage_gate || (left != 0 && !kept_cut_)) return left;
        const u64 end = position + left;
        const u32 room = m_.n.ring_slots - left;
        const u32 slots = ahead_reach_ < room ? ahead_reach_ : room;
        const u32 limit = slots * abi::slot_chunks;
        count_look(team, limit);
        typename P::template lane_array<abi::chunk, ahead_loads> chunks; // all loads in flight together
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < ahead_loads; ++n)
            team.each32([&](u32 k) {
                chunks.at(n, k) = {};
                if (32 * n + k < limit) chunks.at(n, k) = load_chunk(ahead_ring_, end, 32 * n + k);
            });
        move_kept(team, kept_words(position), left);
        u32 bad = limit;
        SLIPSTREAM_UNROLL
        for (u32 n = 0; n < ahead_loads; ++n)
            team.each32([&](u32 k) {
                const u32 c = 32 * n + k;
                if (c < bad) stage(chunks.at(n, k), end, c, s_.kept + staged_words, bad);
            });
        const u32 whole = team.reduce_min(bad) / abi::slot_chunks;
        team.sync();
        kept_at_ = kept_end_;
        kept_end_ += whole;
        kept_cut_ = false;
        const u32 reach = whole == slots ? 2 * slots : whole;
        ahead_reach_ = reach < glance_slots ? glance_slots : reach < ahead_most() ? reach : ahead_most();
        if (whole == 0) ahead_ring_ = no_ring;
        return left + whole;
    }

    SLIPSTREAM_BOTH bool poll(team_type& team, u32 r, u32 slots, const u32* staged)
    {
        ring_progress rp = s_.progress[r];
        const u32 bit = 1u << r;
        if (slots == 0 && rp.stage != stage_gate && rp.position == rp.published) {
            due_ &= ~bit;
            return false;
        }
        bool progress = false;
        // What was fetched while the gate was shut waits for the next poll, or is fetched again.
        u32 usable = rp.stage == stage_gate ? 0 : slots;
        if (saving_ && r != turn_ && rp.stage == stage_header && usable != 0) {
            usable = 0;
            starved_ = true;
        }
        if (watched_ != no_ring && usable != 0) {
            usable = beside_out(watch(), team, r == watched_, usable, watch_seen_);
            if (usable > slots) {
                watched_ = no_ring;
                usable = slots;
            }
        }
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
                if (plain_slots(header_at(words)) > usable - k) { // a later fetch brings the whole message
                    cut_ = true;
                    break;
                }
                taken = take_plain(team, rp, r, words, usable - k);
            } else {
                taken = take_slots(team, rp, r, words, usable - k);
            }
            if (taken == 0) {
                starved_ = true;
                break;
            }
            progress = true;
            k += taken;
            if (k != usable && rp.stage == stage_header) { // admission need not wait for all of a long look
                P::fence(edge::A0_ring_fence, order::acquire, scope::system);
                decoded_.publish(team);
            }
        }
        if (progress && logs()) log_sample(team, r, rp.position); // before the submitter is told: it writes again at once
        // The submitter is told every quarter ring, and at once when the ring runs dry.
        if (rp.position != rp.published && (!progress || 4 * (rp.position - rp.published) >= m_.n.ring_slots)) {
            team.sync();
            if (team.leader()) {
                P::store(edge::R1_ring_consumed, m_.ring_pages[r].consumed, rp.position, order::release, scope::system);
                ++s_.bus[consumed_told];
            }
            rp.published = rp.position;
        }
        due_ = rp.stage == stage_gate || rp.position != rp.published ? due_ | bit : due_ & ~bit;
        team.sync();
        if (team.leader()) s_.progress[r] = rp;
        team.sync();
        return progress;
    }

    SLIPSTREAM_BOTH static abi::message_header header_at(const u32* words)
    {
        return abi::message_header::decode(abi::chunk{{words[0], words[1], words[2], 0}});
    }
    /// Decodes the slots at hand of a message that is not plain, or of its beginning. Returns how many; 0: nothing was taken, for
    /// want of a window slot or pool blocks.
    SLIPSTREAM_BOTH u32 take_slots(team_type& team, ring_progress& rp, u32 r, const u32* words, u32 slots)
    {
        message_progress mp = s_.streamed[r]; // not held beside rp: plain messages have no use for it
        u32 c = 0;
        if (rp.stage == stage_header) {
            if (!begin(team, rp, mp, r, header_at(words))) return 0;
            c = 1;
        }
        const u32 end = slots * abi::slot_chunks;
        SLIPSTREAM_ONE_COPY
        while (c < end && rp.stage != stage_gate) {
            u32 taken = rp.stage == stage_entries ? take_run(team, rp, mp, words + 4 * c, end - c < 32 ? end - c : 32) : 0;
            if (taken == 0) {
                take_chunk(team, rp, mp, r, words + 4 * c);
                taken = 1;
            }
            c += taken;
            if (rp.stage == stage_entries && mp.entries_left == 0) rp.stage = stage_scalars;
            if (rp.stage == stage_scalars && mp.scalars_left == 0) rp.stage = stage_gate;
        }
        const u32 taken = (c + abi::slot_chunks - 1) / abi::slot_chunks;
        rp.position += taken;
        team.sync();
        if (team.leader()) s_.streamed[r] = mp;
        team.sync();
        return taken;
    }

    /// Decodes entries of a message that is not plain, a lane a chunk: those that end within the first so many `chunks` at `w`.
    /// Returns how many chunks they took; 0: there is the first half of one.
    SLIPSTREAM_BOTH u32 take_run(team_type& team, const ring_progress& rp, message_progress& mp, const u32* w, u32 chunks)
    {
        const u32 ranges = chunks < mp.entries_left ? chunks : mp.entries_left; // if there is nothing else: most often
        if (team.mask32([&](u32 k) { return k < ranges && !is_range(w[4 * k]); }) == 0) return take_ranges(team, rp, mp, w, ranges);
        const u32 firsts = team.mask32([&](u32 k) {
            if (k >= chunks || (w[4 * k] & abi::handle_bit) != 0) return false;
            const abi::entry_kind kind = abi::kind_of(w[4 * k]);
            return kind == abi::entry_kind::rect || kind == abi::entry_kind::long_range || kind == abi::entry_kind::loose;
        });
        u32 seconds = 0; // halves; what lies in them may look like a first one
        u32 count = chunks;
        SLIPSTREAM_ONE_COPY
        for (u32 rest = firsts; rest != 0;) {
            const u32 k = lowest_bit(rest);
            if (k + 1 >= chunks) {
                count = k;
                break;
            }
            seconds |= 2u << k;
            rest &= ~(3u << k);
        }
        lane_values in, before; // before: entries of the chunks before
        const u32 second = team.mask32([&](u32 k) {
            in.at(0, k) = k >= count || (seconds >> k & 1) != 0 ? 0 : entries_in(w + 4 * k);
            return (in.at(0, k) & 3) > 1;
        });
        const u32 third = team.mask32([&](u32 k) { return (in.at(0, k) & 3) > 2; });
        const u32 within = team.mask32([&](u32 k) {
            before.at(0, k) = popcount(low_bits(k) & ~seconds) + popcount(low_bits(k) & second) + popcount(low_bits(k) & third);
            return k < count && before.at(0, k) + (in.at(0, k) & 3) <= mp.entries_left;
        });
        const u32 run = within == ~0u ? 32 : lowest_bit(~within);
        if (run == 0) return 0;
        u32 known = ~0u; // complement, see take_plain
        const u32 after = team.mask32([&](u32 k) {
            if (k >= run) in.at(0, k) = 0;
            if ((in.at(0, k) & 3) != 0 && (w[4 * k] & abi::handle_bit) != 0) known = least_known(known, w + 4 * k, in.at(0, k));
            return in.at(0, k) == entry_is_after;
        });
        meet_handles(team, ~team.reduce_min(known));
        lane_values blocks; // of a chunk's last entry
        team.each32([&](u32 k) {
            if ((in.at(0, k) & 3) == 0) return;
            const u32 e = mp.entry + before.at(0, k);
            blocks.at(0, k) = take_entries(team, s_.types[mp.type], rp.slot, (mp.flags & abi::flag_no_access) == 0, block_of(mp, e),
                                           w + 4 * k, in.at(0, k), e, mp.member + before.at(0, k) - popcount(after & low_bits(k)),
                                           (firsts >> k & 1) != 0);
        });
        const u32 last = (seconds >> (run - 1) & 1) != 0 ? run - 2 : run - 1;
        const u32 taken = team.from_lane(before, last) + (team.from_lane(in, last) & 3);
        mp.last_block = team.from_lane(blocks, last);
        mp.entry += taken;
        mp.member += taken - popcount(after);
        mp.entries_left -= taken;
        return run;
    }

    /// Nothing but ranges of one chunk each.
    SLIPSTREAM_BOTH u32 take_ranges(team_type& team, const ring_progress& rp, message_progress& mp, const u32* words, u32 count)
    {
        lane_values blocks;
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32* const w = words + 4 * k;
            const u32 e = mp.entry + k;
            blocks.at(0, k) = block_of(mp, e);
            const raw_access a{address_in(w), w[2]};
            entry_resolver<P>::set_member(s_.types[mp.type], m_.records[rp.slot].words, mp.member + k, a);
            if ((mp.flags & abi::flag_no_access) == 0) put_entry(team, blocks.at(0, k), e, a.entry(abi::mode_of(w[0])));
        });
        mp.last_block = team.from_lane(blocks, count - 1);
        mp.entry += count;
        mp.member += count;
        mp.entries_left -= count;
        return count;
    }

    SLIPSTREAM_BOTH static bool is_range(u32 first_word)
    {
        return (first_word & abi::handle_bit) == 0 && abi::kind_of(first_word) == abi::entry_kind::range;
    }

    /// The pool block of entry e of a message, not before the last one that was taken.
    SLIPSTREAM_BOTH u32 block_of(const message_progress& mp, u32 e) const
    {
        u32 block = mp.last_block;
        SLIPSTREAM_ONE_COPY
        for (u32 at = mp.entry == 0 ? 0 : (mp.entry - 1) / pool_block_entries; at < e / pool_block_entries; ++at)
            block = P::get(s_.pool_next[block]);
        return block;
    }

    SLIPSTREAM_BOTH static constexpr u32 blocks_for(u32 entries) { return (entries + pool_block_entries - 1) / pool_block_entries; }

    /// The j-th block from the top of the stack when it held `count`. Stays readable after it was taken.
    SLIPSTREAM_BOTH u32 pool_top(u32 count, u32 j) const { return s_.pool_free[count - 1 - j]; }

    /// One lane: gives a window slot its chain of pool blocks, from the top of the stack when it held `top`; the first so many
    /// `entries` in them are left unresolved.
    SLIPSTREAM_BOTH void chain_blocks(u32 slot, u32 top, u32 blocks, u32 unresolved) const
    {
        P::set(s_.first_block[slot], blocks != 0 ? pool_top(top, 0) : no_block);
        SLIPSTREAM_ONE_COPY
        for (u32 j = 0; j < blocks; ++j) {
            const u32 here = unresolved < pool_block_entries ? unresolved : pool_block_entries;
            link_block(slot, top, j, blocks, here);
            unresolved -= here;
        }
    }
    SLIPSTREAM_BOTH void link_block(u32 slot, u32 top, u32 j, u32 blocks, u32 unresolved) const
    {
        const u32 block = pool_top(top, j);
        P::set(s_.pool_next[block], j + 1 < blocks ? pool_top(top, j + 1) : no_block);
        P::set(s_.pool_tags[block], pool_tag::waiting(slot, low_bits(unresolved)).word);
    }

    /// One lane: what workers and the other roles need of the task beside its words and accesses.
    SLIPSTREAM_BOTH void describe(u32 slot, u32 r, u64 number, const abi::message_header& h, u32 entries,
                                  bool bypassed = false, bool watched = false) const
    {
        if (!watched) { // else worker 0 has what it needs, and may have failed
            task_record<P>& record = m_.records[slot];
            P::set(record.blocks, h.blocks);
            P::store(edge::P0_ticket, record.next_block, 0u, order::relaxed, scope::device);
            P::store(edge::P4_status, record.status, 0u, order::relaxed, scope::device);
        }
        const u64 id = static_cast<u64>(r) << 56 | number;
        P::set(s_.task_id[slot], id);
        // With tickets: one until they are drawn.
        P::set(s_.outstanding[slot], bypassed ? 2 : h.blocks > m_.n.workers ? 1 : h.blocks);
        P::set(s_.dealt[slot], 0u);
        if (m_.n.parts > 1) s_.crossings[slot] = h.crossing.word;
        P::set(s_.heads[slot], task_head{slot | h.type << 16, identity_of(id), h.blocks,
                                            entries | (h.flags & ~u32{abi::flag_no_access}) << 16
                                                | (bypassed ? task_head::bypass_bit : 0)});
    }

    /// Decodes plain messages staged at `words`: a run of those that take a ring slot each, or whatever lies within batch_messages
    /// slots, as many of them as lie within `slots` and find a place; the first does lie within. Returns how many ring slots were
    /// taken; 0: no place, nothing was taken.
    SLIPSTREAM_BOTH u32 take_plain(team_type& team, ring_progress& rp, u32 r, const u32* words, u32 slots)
    {
        const bool watched = r == watched_; // worker 0 has taken all of these
        if (watched) bring_out(watch(), team, slots);
        const u32 slots_free = *s_.free_slot_count;
        const u32 top = *s_.pool_free_count;
        if (slots_free == 0) return 0;
        const bool alone = watched
            || (slots == 1 && may_go_alone(header_at(words), words[4]) && bypass_.open(team, m_.n.window_used - slots_free));
        if (!alone) bypass_.close();
        // First where messages begin. What is not a message's first chunk is looked at as if it were, and not used.
        lane_values length, blocks;
        const u32 single = team.mask32([&](u32 k) {
            if (k >= slots) return false;
            const abi::message_header h = header_at(words + 16 * k);
            length.at(0, k) = h.plain() ? plain_slots(h) : no_slot; // no_slot: further than anything reaches
            blocks.at(0, k) = blocks_for(h.entries);
            return length.at(0, k) == 1;
        });
        const bool lone = (single & 1) != 0;
        // few: lane a chunk is sooner
        const bool brief = lone || (slots > staged_slots && team.from_lane(length, 0) <= brief_slots);
        u32 starts = lone ? single & ~(single + 1) : 0; // a bit for the ring slot of each message's first chunk: a run from 0 on
        if (!lone) {
            const u32 end = slots < batch_messages ? slots : batch_messages; // what this fetch and the last one left may be more
            SLIPSTREAM_ONE_COPY
            for (u32 k = 0; k < end;) {
                const u32 next = k + team.from_lane(length, k);
                if (next > end || (brief && next > k + brief_slots)) break;
                starts |= 1u << k;
                k = next;
            }
        }
        // `after` entries come first. Such a task may have to wait at the gate: it is the last one taken.
        const u32 waiting = team.mask32([&](u32 k) {
            const u32* const w = words + 16 * k;
            return (starts >> k & 1) != 0 && header_at(w).entry_chunks() != 0 && (w[4] & abi::handle_bit) == 0
                && abi::kind_of(w[4]) == abi::entry_kind::after;
        });
        if (waiting != 0) starts &= low_bits(lowest_bit(waiting) + 1);

        // Then the places, in order: a window slot and pool blocks for each message, both from the top of their stacks. The blocks
        // of those before are counted by the bits of their numbers; most tasks have one block or none.
        lane_values below;
        const u32 ones = team.mask32([&](u32 k) { return (starts >> k & 1) != 0 && (blocks.at(0, k) & 1) != 0; });
        const u32 large = team.mask32([&](u32 k) { return (starts >> k & 1) != 0 && blocks.at(0, k) > 1; });
        team.each32([&](u32 k) { below.at(0, k) = popcount(ones & low_bits(k)); });
        if (large != 0) {
            SLIPSTREAM_ONE_COPY
            for (u32 bit = 1; bit < plain_blocks_bits; ++bit) {
                const u32 set = team.mask32([&](u32 k) { return (large >> k & 1) != 0 && (blocks.at(0, k) >> bit & 1) != 0; });
                team.each32([&](u32 k) { below.at(0, k) += popcount(set & low_bits(k)) << bit; });
            }
        }
        const u32 all = starts;
        starts = team.mask32([&](u32 k) {
            return (all >> k & 1) != 0 && popcount(all & low_bits(k)) < slots_free && below.at(0, k) + blocks.at(0, k) <= top;
        });
        if (starts == 0) return 0;
        const u32 messages = popcount(starts);
        const u32 last = highest_bit(starts);
        const u32 taken = last + team.from_lane(length, last);
        const bool gated = (waiting >> last & 1) != 0;
        team.each32([&](u32 k) {
            if ((starts >> k & 1) == 0) return;
            const u32 number = popcount(starts & low_bits(k));
            s_.message_places[number] = {abi::slot_chunks * k, s_.free_slots[slots_free - 1 - number], top - below.at(0, k)};
            if (k != last) return;
            *s_.free_slot_count = slots_free - messages;
            *s_.pool_free_count = top - below.at(0, k) - blocks.at(0, k);
        });
        team.sync();
        const u64 first_number = rp.messages;
        rp.position += taken;

        // Then the content. Entries are left for admission to resolve, except those of tasks that it sees none of,
        // that wait at the gate, or that run before it sees them, by what is stored here.
        u32 known = ~s_.counters[handles_known]; // complement of the handles that must be known, so that the minimum is the most
        const u32 mine = team.mask32([&](u32 k) {
            if (k >= messages) return false;
            const message_place place = s_.message_places[k];
            const u32* const w = words + 4 * place.first_chunk;
            const abi::message_header h = header_at(w);
            const bool waits = gated && k + 1 == messages;
            const bool leaves = ordered(h) && !waits && (!alone || watched) && (h.flags & abi::flag_whole_memory) == 0;
            describe(place.slot, r, first_number + k, h, ordered(h) || waits ? h.entries : 0, alone, watched);
            chain_blocks(place.slot, place.top, blocks_for(h.entries), leaves ? h.entries : 0);
            if (!waits) decoded_.put_ahead(k, place.slot);
            return !leaves && h.entries != 0;
        });
        if (!brief) {
            team.sync(); // pool blocks have their tags
            SLIPSTREAM_ONE_COPY
            for (u32 from = 0, number = 0; from < taken;) { // whole messages within staged_slots
                u32 begun = starts >> from & low_bits(staged_slots);
                const u32 last_begun = from + highest_bit(begun);
                u32 to = last_begun + team.from_lane(length, last_begun);
                if (to > from + staged_slots) {
                    to = last_begun;
                    begun &= low_bits(last_begun - from);
                }
                take_chunks(team, words + 16 * from, begun, (to - from) * abi::slot_chunks, number, mine, known);
                number += popcount(begun);
                from = to;
            }
        } else {
            team.each32([&](u32 k) {
                if (k >= messages) return;
                const message_place place = s_.message_places[k];
                const u32* const w = words + 4 * place.first_chunk;
                const abi::message_header h = header_at(w);
                u32 entries = 0;
                SLIPSTREAM_ONE_COPY
                for (u32 c = 1; c < h.plain_chunks(); ++c) {
                    if (c > h.entry_chunks()) {
                        store_scalars<P>(s_.types[h.type], h.scalars, m_.records[place.slot].words, w + 4 * c,
                                         c - 1 - h.entry_chunks());
                    } else {
                        const u32 in = entries_in(w + 4 * c);
                        leave_entries(place, w + 4 * c, in, entries, (mine >> k & 1) == 0, known);
                        entries += in & 3;
                    }
                }
            });
        }
        meet_handles(team, ~team.reduce_min(known));
        if (mine != 0)
            team.each32([&](u32 k) {
                if (!(mine >> k & 1)) return;
                const message_place place = s_.message_places[k];
                const u32* const w = words + 4 * place.first_chunk;
                const abi::message_header h = header_at(w);
                u32 entries = 0, afters = 0;
                SLIPSTREAM_ONE_COPY
                for (u32 c = 1; c <= h.entry_chunks(); ++c) {
                    const u32 in = entries_in(w + 4 * c);
                    take_entries(team, s_.types[h.type], place.slot, ordered(h), pool_top(place.top, entries / pool_block_entries),
                                 w + 4 * c, in, entries, entries - afters, false);
                    entries += in & 3;
                    afters += in == entry_is_after;
                }
            });
        if (watched) bypass_.publish(team, hand_on_out(watch(), team, messages), messages);
        else if (alone)
            bypass_.send(team, s_.message_places[0].slot, header_at(words).type, static_cast<u64>(r) << 56 | first_number);
        streak_ = !alone ? 0 : streak_ >> 8 == r ? streak_ + (streak_ % 256 < m_.n.watch_after) : r << 8 | 1;
        team.sync();
        decoded_.advance(gated ? messages - 1 : messages);
        rp.messages += gated ? messages - 1 : messages;
        if (gated) {
            rp.slot = s_.message_places[messages - 1].slot;
            rp.stage = stage_gate;
        }
        return taken;
    }

    /// The content of plain messages of several ring slots, the first of which is number `number`, a lane a chunk. `starts`: the
    /// slots they begin in, of those at `words`; `end`: chunks.
    SLIPSTREAM_BOTH void take_chunks(team_type& team, const u32* words, u32 starts, u32 end, u32 number, u32 kept_back, u32& known)
    {
        // Entries of a chunk: one, or up to three handles; masks count those of the chunks before.
        const auto number_of = [&](u32 c) { return number + popcount(starts & low_bits(c / abi::slot_chunks + 1)) - 1; };
        const auto first_of = [&](u32 c) { return abi::slot_chunks * highest_bit(starts & low_bits(c / abi::slot_chunks + 1)); };
        lane_values in;
        team.each32([&](u32 c) {
            in.at(0, c) = 0;
            if (c >= end) return;
            const u32 first = first_of(c);
            if (c != first && c - first <= header_at(words + 4 * first).entry_chunks()) in.at(0, c) = entries_in(words + 4 * c);
        });
        const u32 second = team.mask32([&](u32 c) { return (in.at(0, c) & 3) > 1; });
        const u32 third = team.mask32([&](u32 c) { return (in.at(0, c) & 3) > 2; });
        team.each32([&](u32 c) {
            if (c >= end) return;
            const u32 first = first_of(c);
            if (c == first) return;
            const message_place place = s_.message_places[number_of(c)];
            const abi::message_header h = header_at(words + 4 * first);
            const u32 rel = c - first - 1;
            if (rel >= h.entry_chunks()) {
                store_scalars<P>(s_.types[h.type], h.scalars, m_.records[place.slot].words, words + 4 * c,
                                 rel - h.entry_chunks());
            } else {
                const u32 before = low_bits(c) & ~low_bits(first + 1); // this message's entries begin behind its header
                leave_entries(place, words + 4 * c, in.at(0, c), rel + popcount(second & before) + popcount(third & before),
                              (kept_back >> number_of(c) & 1) == 0, known);
            }
        });
    }

    SLIPSTREAM_BOTH static bool ordered(const abi::message_header& h) { return (h.flags & abi::flag_no_access) == 0; }

    /// By a lane: puts the entries of a plain message's chunk into the pool as they are, if `put`; `in` is what entries_in() says
    /// of it, `entries` come before. Lowers `known`, see take_plain.
    SLIPSTREAM_BOTH void leave_entries(const message_place& place, const u32* w, u32 in, u32 entries, bool put, u32& known) const
    {
        if (in == entry_is_after) return;
        if ((w[0] & abi::handle_bit) == 0) {
            if (put) leave_entry(place, entries, unresolved_entry::range(abi::mode_of(w[0]), address_in(w), w[2]));
            return;
        }
        known = least_known(known, w, in);
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < abi::chunk_payload_words; ++i)
            if (i < in && put) leave_entry(place, entries + i, unresolved_entry::handle(w[i]));
    }
    /// The smaller of `known` and the complements of what must be known of the `in` handles at `w`.
    SLIPSTREAM_BOTH static u32 least_known(u32 known, const u32* w, u32 in)
    {
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < abi::chunk_payload_words; ++i) {
            const u32 needed = ~((w[i] & abi::handle_index_mask) + 1);
            if (i < in && needed < known) known = needed;
        }
        return known;
    }
    SLIPSTREAM_BOTH void leave_entry(const message_place& place, u32 e, const table_entry& entry) const
    {
        s_.set_pool_entry(pool_top(place.top, e / pool_block_entries), e % pool_block_entries, entry);
    }

    /// By a lane: stores the entries of a chunk, whole; `in` is what entries_in() says of it. The first is number e of its task,
    /// to go into `block`, and describes access `member`; `two`: it is one of two chunks. Returns the block of the last one.
    SLIPSTREAM_BOTH u32 take_entries(team_type& team, const abi::task_type& type, u32 slot, bool is_ordered, u32 block,
                                     const u32* w, u32 in, u32 e, u32 member, bool two) const
    {
        if (in == entry_is_after) {
            put_entry(team, block, e, abi::access_entry::after(w[0] & 0xff, w[1] | static_cast<u64>(w[2]) << 32));
            return block;
        }
        const bool by_handles = (w[0] & abi::handle_bit) != 0;
        SLIPSTREAM_ONE_COPY
        for (u32 i = 0; i < in; ++i) {
            const raw_access a = by_handles ? raw_access::of(resolver_.of_handle(w[i] & abi::handle_index_mask))
                                 : two      ? access_of_two(w, w + 4)
                                            : raw_access{address_in(w), w[2]};
            entry_resolver<P>::set_member(type, m_.records[slot].words, member + i, a);
            if (i != 0 && (e + i) % pool_block_entries == 0) block = P::get(s_.pool_next[block]);
            if (is_ordered) put_entry(team, block, e + i, a.entry(abi::mode_of(w[by_handles ? i : 0])), a.handle_plus_one);
        }
        return block;
    }

    SLIPSTREAM_BOTH static raw_access access_of_two(const u32* first, const u32* second)
    {
        if (abi::kind_of(first[0]) == abi::entry_kind::rect) return {address_in(first), first[2], second[0], second[1]};
        return {address_in(first), first[2] | static_cast<u64>(second[0]) << 32, 1, 0, 0,
                abi::kind_of(first[0]) == abi::entry_kind::loose};
    }

    /// The device's copy of the handle table shall hold the first `count`. Handles never change, and the host writes each before
    /// it is named and behind those before it: what is missing is read across the bus in one go.
    SLIPSTREAM_BOTH void meet_handles(team_type& team, u32 count)
    {
        const u32 known = s_.counters[handles_known];
        if (count <= known) return;
        // The host wrote the entries before it published the message.
        P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        for (u32 i = known + team.rank(); i < count && i < m_.n.handles; i += team.size())
            P::set(m_.handle_cache[i], known_handle::of(m_.handles[i], i));
        team.sync();
        if (team.leader()) s_.counters[handles_known] = count;
        team.sync();
    }

    /// Stores an entry that is number `e` of its task, by a handle or none (0), and tags its block.
    SLIPSTREAM_BOTH void put_entry(team_type& team, u32 block, u32 e, const abi::access_entry& entry, u32 handle_plus_one = 0) const
    {
        const u32 at = e % pool_block_entries;
        s_.set_pool_entry(block, at, table_entry::of(entry, handle_plus_one != 0));
        if (handle_plus_one != 0) P::set(s_.pool_handles[block * pool_block_entries + at], handle_plus_one - 1);
        if (entry.kind() == abi::entry_kind::rect) P::set(s_.pool_shapes[block * pool_block_entries + at], entry.tail);
        const u32 bits = entry.is_memory() ? pool_tag::make(0, 1u << at, 0).word
                         : entry.kind() == abi::entry_kind::after ? pool_tag::make(0, 0, 1u << at).word : 0;
        if (bits != 0) team.set_bits(s_.pool_tags[block], bits);
    }

    SLIPSTREAM_BOTH bool begin(team_type& team, ring_progress& rp, message_progress& mp, u32 r, const abi::message_header& h)
    {
        const u32 free = *s_.free_slot_count;
        const u32 blocks = blocks_for(h.entries);
        const u32 top = *s_.pool_free_count;
        if (free == 0 || top < blocks) return false;
        bypass_.close();
        streak_ = 0;
        const u32 slot = s_.free_slots[free - 1];
        team.sync(); // all lanes have read what the leader changes now
        if (team.leader()) {
            *s_.free_slot_count = free - 1;
            *s_.pool_free_count = top - blocks;
            P::set(s_.first_block[slot], blocks != 0 ? pool_top(top, 0) : no_block);
            describe(slot, r, rp.messages, h, h.entries);
        }
        SLIPSTREAM_ONE_COPY
        for (u32 j = team.rank(); j < blocks; j += team.size()) link_block(slot, top, j, blocks, 0);
        team.sync();
        rp.stage = h.entries ? stage_entries : h.scalars ? stage_scalars : stage_gate;
        rp.slot = slot;
        mp.entries_left = h.entries;
        mp.scalars_left = h.scalars;
        mp.entry = mp.member = mp.scalar = 0;
        mp.type = h.type;
        mp.flags = h.flags;
        mp.last_block = P::get(s_.first_block[slot]);
        return true;
    }

    /// Moves freed slots out of the free queue and their pool blocks back onto the stacks, a lane a slot.
    SLIPSTREAM_BOTH void reclaim(team_type& team)
    {
        const u32 came_back = free_.available(team);
        if (came_back == 0) return;
        const u32 free = *s_.free_slot_count;
        SLIPSTREAM_ONE_COPY
        for (u32 k = team.rank(); k < came_back; k += team.size()) {
            const u32 slot = free_.peek(k);
            s_.free_slots[free + k] = slot;
            u32 block = P::get(s_.first_block[slot]);
            P::set(s_.first_block[slot], no_block);
            SLIPSTREAM_ONE_COPY
            while (block != no_block) { // most have one or none; in which order they come to lie on the stack is all the same
                const u32 next = P::get(s_.pool_next[block]);
                s_.pool_free[team.add(*s_.pool_free_count, 1)] = block;
                block = next;
            }
        }
        free_.skip(came_back);
        free_.release(team); // all lanes are done
        if (team.leader()) *s_.free_slot_count = free + came_back;
        team.sync();
        if (logs()) log_sample(team, control_sample::no_ring, 0);
    }

    SLIPSTREAM_BOTH bool logs() const { return m_.n.sample_capacity != 0; }

    /// For a flight log; beyond its capacity only the count goes on.
    SLIPSTREAM_BOTH void log_sample(team_type& team, u32 ring, u64 taken)
    {
        if (!team.leader()) return;
        const u64 at = s_.bus[samples_told]++;
        if (at < m_.n.sample_capacity) m_.control_log[at] = {P::clock_ns(), taken, ring, m_.n.window_used - *s_.free_slot_count};
    }

    SLIPSTREAM_BOTH void take_chunk(team_type& team, ring_progress& rp, message_progress& mp, u32 r, const u32* w)
    {
        switch (rp.stage) {
        case stage_entries:
            team.sync();
            if (team.leader())
                for (u32 i = 0; i < 3; ++i) half(r)[i] = w[i];
            team.sync();
            rp.stage = stage_second_half;
            break;
        case stage_second_half: {
            const u32* const first = half(r);
            rp.stage = stage_entries;
            take_access(team, rp.slot, mp, abi::mode_of(first[0]), access_of_two(first, w));
            break;
        }
        case stage_scalars: {
            const abi::task_type& type = s_.types[mp.type];
            for (u32 i = 0; i < 3 && mp.scalars_left; ++i, --mp.scalars_left, ++mp.scalar)
                if (team.leader() && mp.scalar < type.scalars)
                    P::set(m_.records[rp.slot].words[type.scalar_offset[mp.scalar]], w[i]);
            break;
        }
        default: break;
        }
    }

    /// The first chunk of a two-chunk entry, kept in fast memory: in message_progress it would need an address, and a local
    /// variable with an address lies in memory that every acquire of this SM empties from the L1.
    SLIPSTREAM_BOTH u32* half(u32 r) const { return s_.halves + 3 * r; }

    SLIPSTREAM_BOTH void take_access(team_type& team, u32 slot, message_progress& mp, abi::access_mode mode, const raw_access& a)
    {
        if (team.leader()) entry_resolver<P>::set_member(s_.types[mp.type], m_.records[slot].words, mp.member, a);
        ++mp.member;
        store_entry(team, mp, a.entry(mode));
    }

    SLIPSTREAM_BOTH void store_entry(team_type& team, message_progress& mp, const abi::access_entry& declared)
    {
        const bool ignored = (mp.flags & abi::flag_no_access) != 0 && declared.is_memory();
        const abi::access_entry entry = ignored ? abi::access_entry{0, 0} : declared;
        const u32 at = mp.entry % pool_block_entries;
        if (at == 0 && mp.entry != 0) mp.last_block = P::get(s_.pool_next[mp.last_block]);
        if (team.leader()) put_entry(team, mp.last_block, at, entry);
        ++mp.entry;
        --mp.entries_left;
    }

    SLIPSTREAM_BOTH watch_tables<P> watch() const
    {
        return {m_.records, m_.mailboxes, m_.watch, s_.watch, s_.free_slots, s_.free_slot_count, s_.bypass_slots,
                m_.n.window_used};
    }

    SLIPSTREAM_BOTH void begin_watch(team_type& team)
    {
        const u32 r = streak_ >> 8;
        if (ahead_ring_ != no_ring || s_.progress[r].stage != stage_header
            || !bypass_.open(team, m_.n.window_used - *s_.free_slot_count))
            return;
        const ring_progress& at = s_.progress[r];
        if (begin_out(watch(), team, bypass_.number(), at.position, at.messages, static_cast<u64>(r) << 56, *s_.pool_free_count,
                      s_.counters[handles_known]))
            watched_ = r;
    }

    /// With each look at all rings, while there is one: what has worker 0 done?
    SLIPSTREAM_BOTH void tend_watch(team_type& team, bool may_watch)
    {
        const ring_progress& at = s_.progress[watched_];
        if (!tend_out(watch(), team, watch_seen_, may_watch && bypass_.goes_on(team), at.position, at.messages,
                      static_cast<u64>(watched_) << 56, *s_.pool_free_count, s_.counters[handles_known]))
            watched_ = no_ring;
    }

    /// Worker 0 is looking at the ring, or was when it was seen last.
    SLIPSTREAM_BOTH bool is_looked_after() const
    {
        return s_.watch->state != watch_book::off && s_.watch->waiting == 0
            && watch_seen_ == watch_word::lower_of((s_.watch->known + 1) & (watch_word::ids - 1), watch_word::begun);
    }

    SLIPSTREAM_BOTH_RARE static bool begin_out(const watch_tables<P> w, team_type team, u32 number, u64 at, u64 message,
                                               u64 ring_bits, u32 pool_free, u32 handles)
    {
        return w.begin(team, number, at, message, ring_bits, pool_free, handles);
    }
    SLIPSTREAM_BOTH_RARE static u32 beside_out(const watch_tables<P> w, team_type team, bool its_ring, u32 slots, u32 lower)
    {
        return w.beside(team, its_ring, slots, lower);
    }
    SLIPSTREAM_BOTH_RARE static void bring_out(const watch_tables<P> w, team_type team, u32 count) { w.bring_slots(team, count); }
    SLIPSTREAM_BOTH_RARE static u32 hand_on_out(const watch_tables<P> w, team_type team, u32 count)
    {
        return w.hand_on(team, count);
    }
    SLIPSTREAM_BOTH_RARE static bool tend_out(const watch_tables<P> w, team_type team, u32 lower, bool goes_on, u64 at, u64 message,
                                              u64 ring_bits, u32 pool_free, u32 handles)
    {
        return w.tend(team, lower, goes_on, at, message, ring_bits, pool_free, handles);
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
    entry_resolver<P> resolver_;
    bypass<P> bypass_;
    queue_consumer<P, u16, edge::A2_slot_freed, edge::R2_slot_taken, order::relaxed> free_; // never full
    queue_producer<P, u16, edge::R3_decoded, edge::A3_taken> decoded_;
    bool starved_ = false; ///< a message waits for a window slot or pool blocks
    bool unseen_ = false;  ///< some ring was not looked at in this step
    bool again_ = false;   ///< some ring was looked at too briefly or too early to tell whether it holds a whole message
    bool cut_ = false;       ///< the slots polled last end within a message
    bool kept_cut_ = false;  ///< likewise those kept
    u32 reach_ = glance_slots; ///< slots a look at all rings asks each for: more while one of them has more
    u32 due_;        ///< rings that there is something to do for without new slots, a bit each: a gate, or a submitter
                     ///< to be told. After a launch: unknown
    u32 turns_ = 0;
    u32 turn_ = 0; ///< the ring that is polled first
    bool saving_ = false; ///< no other ring begins a message until that one has found its pool blocks
    u32 watched_ = no_ring; ///< worker 0 has blanks for tasks of this ring, or has taken some that are still in it
    u32 streak_ = 0;        ///< so many tasks came alone, one behind the other, from one ring: that one << 8
    u32 watch_seen_ = 0;    ///< lower half of the watch word, at the last look
    // The ring that is read ahead.
    u32 ahead_ring_ = no_ring;
    u32 ahead_reach_ = 0; ///< slots that the next look asks for
    u32 kept_end_ = 0; ///< position behind the last slot kept; wraps, as the next one
    u32 kept_at_ = 0;  ///< position of the slot at kept + staged_words
};

} // namespace slipstream::device
