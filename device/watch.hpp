// The watch: while tasks come one by one, worker 0 takes them from the ring itself.
//
// On its way by ingest (bypass.hpp) a task that comes alone waits for a look of ingest's (2.7 us), its round (4.9), a mail and
// what the mail names (1 to 2; device/measured.md). None of that is needed to run it. So ingest mails worker 0 blanks: "the next
// task of this ring is yours, in this window slot". A worker that has come to a blank looks at nothing but that ring. It decodes
// the message, runs the block and tells the host, as of any bypassed task. Ingest, and the roles behind it, take the task in
// behind that.
//
// WHEN      the last two tasks came alone, from the same ring, and now a task might be bypassed. As long as no other message than
//           such ones comes, ingest mails more blanks, up to blanks_max ahead of what it knows to have been taken.
// RING      has one reader at a time. Blanks are numbered (ids). watch_word has two halves, each of which one of them adds to:
//           worker 0 says how far it has come (begun, taken, declined: id and phase), ingest up to which id blanks are withdrawn.
//           Who comes to a blank adds "begun", and sees in the same step whether it was withdrawn. Who withdraws sees in the same
//           step whether the next blank was begun. So either ingest has the ring back at once, or worker 0 is looking at it: then
//           it sees the withdrawal in its next look, and answers by "declined", or by "taken" if a task came before. The first look
//           flies with that addition: what it sees counts if the blank turns out to be begun, since ingest takes nothing then.
// DECLINED  what may not be bypassed, or has a further message behind it (of many tasks together only the first would gain), or
//           names a handle that the device has not met; all, once a body on this worker has failed; a blank that is seen to
//           be withdrawn while nothing has come. Then no further blank is valid.
// TAKEN     tasks lie at the head of the ring until ingest takes them in; it does so before it hands on anything of another ring.
//           Each takes the slot and the number of its blank.
// VOID      a blank that did not become a task never had its number: the next mail has it, in the same place. The worker that
//           declines empties that place before it says so, ingest those of later blanks and of such as were not begun. A worker
//           that has read one forgets that it did.
// BUSY      while worker 0 runs a task ingest looks at the ring, too: if a task waits there that worker 0 has not come to, it
//           withdraws the blanks.
// PARK      ingest does not end while there is a blank, or a task that was taken.
// COST      the worker: looks at the ring, a bus round trip of 5 chunks each. What flies with them takes no time of its own: with
//           the first the addition that begins the blank, and where its message is (it is looked for behind the last one, which
//           is wrong for the first of a watch); with each, if no other mail is known, the next blanks. To decode a message like
//           the last one takes no load but of what handles name (1 RT of L2), another one a look at its type, too (1 RT); an
//           addition that is not waited for; behind the body one fence, of system scope. Ingest: a look at the word, which flies
//           with its look at the other rings; of each blank five stores and one to fast memory, of all that it mails at a time
//           one fence. On the bus: 80 B a look, for as long as nothing comes.
// OWNERS    ingest: watch_book, blank places, and of a blank's record blocks, status and position · worker 0: inbox::watch,
//           worker_books::watched, and the places that it declines
// EDGES     R21_bypass_fence -> R21_bypass_mail · A4_mail: blank_place, and what the tasks before wrote; of blanks that were read
//           with a look A0_ring_fence acquires
//           A0_ring_publish, A0_ring_fence by worker 0: the message, and what the host wrote before it
//           R25_declined, R25_declined_fence -> A25_declined_fence: the emptied place
//           P10_blank: read before it is known that the blank is valid
//           P9_watch: both halves. "Taken" needs no order: ingest looks at the ring until it has seen the message, too
#pragma once
#include "device/bypass.hpp"
#include "device/entry_resolver.hpp"
#include "device/message_chunks.hpp"

namespace slipstream::device {

/// Upper half: the id up to which blanks are withdrawn. Lower half: id << 2 | phase of the one that worker 0 came to last.
struct watch_word {
    u64 raw;
    enum phase_name : u32 { none, begun, taken, declined };
    static constexpr u32 ids = mail::idle_bit; ///< they wrap there

    SLIPSTREAM_BOTH u32 lower() const { return static_cast<u32>(raw); }
    SLIPSTREAM_BOTH u32 withdrawn() const { return static_cast<u32>(raw >> 32); }
    SLIPSTREAM_BOTH static u32 lower_of(u32 id, phase_name phase) { return id << 2 | phase; }
    SLIPSTREAM_BOTH static u32 id_in(u32 lower) { return lower >> 2; }
    SLIPSTREAM_BOTH static u32 phase_in(u32 lower) { return lower & 3; }
    /// From one id to a later one.
    SLIPSTREAM_BOTH static u32 between(u32 id, u32 later) { return (later - id) & (ids - 1); }
    /// Is this blank behind those that are withdrawn? Of ids that are not further apart than half of all.
    SLIPSTREAM_BOTH bool valid(u32 id) const { return between(withdrawn(), id) - 1 < ids / 2; }
    /// What is to be added to make one half what it shall be.
    SLIPSTREAM_BOTH static u64 step(u32 from, u32 to) { return static_cast<u64>(to) - from; }
    SLIPSTREAM_BOTH static u64 upper_step(u32 from, u32 to) { return step(from, to) << 32; }
};

/// Ingest's end. A value, for functions out of line: while nothing is watched none of them is called.
template <class P>
struct watch_tables {
    using team_type = typename P::team;

    static constexpr u32 blanks_max = P::mailbox_depth - 1 < 6 ? P::mailbox_depth - 1 : 6; ///< each has a place
    static constexpr u32 blocks_each = 3; ///< of the pool, at most: three chunks of three handles
    static_assert((abi::slot_chunks - 1) * abi::chunk_payload_words <= blocks_each * pool_block_entries);

    task_record<P>* records;
    mailbox<P>* mailboxes;
    typename P::template word<u64>* word;
    watch_book* book;
    u32* free_slots;
    u32* free_slot_count;
    typename P::template cell<u32>* slots; ///< bypass_slots
    u32 window_used;

    /// Blanks that are not known to have become tasks.
    SLIPSTREAM_BOTH u32 out() const { return watch_word::between(book->known, book->posted); }
    SLIPSTREAM_BOTH typename P::template cell<u32>& slot_of(u32 number) const { return slots[number % bypassed_max<P>]; }

    /// Mails blanks, of the ring's slot at `at` and message `message` on, behind those that are out and those taken, as far as
    /// there is room; `ring_bits`: a task id of that ring, of its message 0. Returns how many are out.
    SLIPSTREAM_BOTH u32 post(team_type& team, u64 at, u64 message, u64 ring_bits, u32 pool_free, u32 handles) const
    {
        team.sync();
        const u32 free = *free_slot_count;
        const u32 before = out(), ahead = before + book->waiting;
        const u32 in_flight = window_used - free;
        const u32 most = bypassed_max<P> - 1;
        u32 count = before < blanks_max ? blanks_max - before : 0;
        // One slot stays: without any ingest looks at no ring, and what was taken from this one would never be taken in.
        if (count + 1 > free) count = free != 0 ? free - 1 : 0;
        if (in_flight + count > most) count = in_flight < most ? most - in_flight : 0;
        while (count != 0 && (ahead + count) * blocks_each > pool_free) --count;
        if (count == 0) return before;
        const u32 number = book->number + 1, id = book->posted + 1;
        team.each32([&](u32 k) { // a lane a blank
            if (k >= count) return;
            const u32 slot = free_slots[free - 1 - k];
            task_record<P>& record = records[slot];
            P::set(slot_of(number + k), slot);
            P::set(record.blocks, 1u);
            P::store(edge::P4_status, record.status, 0u, order::relaxed, scope::device);
            P::set(record.position, message + ahead + k);
            P::store(edge::P10_blank, record.blank, blank_place{at + ahead + k, handles}.encode(), order::relaxed, scope::device);
        });
        P::fence(edge::R21_bypass_fence, order::release, scope::device);
        team.sync(); // all lanes have read what the leader changes now
        if (team.leader()) {
            // The ids of withdrawn blanks never come to look like later ones.
            if (watch_word::between(book->withdrawn, book->posted) > watch_word::ids / 4) move_withdrawn(book->known);
            *free_slot_count = free - count;
            book->posted = (book->posted + count) & (watch_word::ids - 1);
            book->number += count;
        }
        team.sync();
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 tag = tag_of(number + k);
            const mail letter{P::get(slot_of(tag)), mail::bypass_bit | mail::idle_bit | ((id + k) & (watch_word::ids - 1)),
                              identity_of(ring_bits | (message + ahead + k)), tag};
            P::store(edge::R21_bypass_mail, mailboxes[0].mail[tag % P::mailbox_depth], letter.encode(), order::relaxed,
                     scope::device);
        });
        return before + count;
    }

    /// Takes note of the lower half of the word. False: the watch is over.
    SLIPSTREAM_BOTH bool note(team_type& team, u32 lower) const
    {
        team.sync();
        const u32 ahead = watch_word::between(book->known, watch_word::id_in(lower));
        const u32 blanks = out();
        const u32 phase = watch_word::phase_in(lower);
        const bool ours = ahead - 1 < blanks; // else it has come to none of these yet
        const u32 taken = !ours ? 0 : phase == watch_word::taken ? ahead : ahead - 1;
        const bool ends =
            ours && (phase == watch_word::declined || (book->state == watch_book::closing && phase != watch_word::begun));
        team.sync();
        if (taken != 0) {
            if (team.leader()) {
                book->known = (book->known + taken) & (watch_word::ids - 1);
                book->waiting += taken;
            }
            team.sync();
        }
        if (!ends) return true;
        if (phase == watch_word::declined) P::fence(edge::A25_declined_fence, order::acquire, scope::device);
        end(team);
        return false;
    }

    /// Withdraws all blanks. False: the watch is over.
    SLIPSTREAM_BOTH bool withdraw(team_type& team) const
    {
        team.sync();
        const u32 to = book->posted, from = book->withdrawn;
        const u64 old = team.leader() ? P::fetch_add(edge::P9_watch, *word, watch_word::upper_step(from, to), order::relaxed,
                                                     scope::device)
                                      : 0;
        const u32 lower = team.broadcast(watch_word{old}.lower());
        team.sync();
        if (team.leader()) {
            book->withdrawn = to;
            book->state = watch_book::closing;
        }
        team.sync();
        if (!note(team, lower)) return false;
        const u32 ahead = watch_word::between(book->known, watch_word::id_in(lower));
        if (ahead - 1 < out()) return true; // begun: it will answer
        end(team);
        return false;
    }

    /// Blanks that became none are forgotten: their slots are free, their numbers the next mails'.
    SLIPSTREAM_BOTH void end(team_type& team) const
    {
        team.sync();
        if (team.leader()) {
            const u32 unused = out();
            const u32 free = *free_slot_count;
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < unused; ++i) {
                const u32 number = book->number - i;
                free_slots[free + i] = P::get(slot_of(number));
                P::store(edge::R21_bypass_mail, mailboxes[0].mail[tag_of(number) % P::mailbox_depth], abi::chunk{}, order::relaxed,
                         scope::device);
            }
            *free_slot_count = free + unused;
            book->number -= unused;
            book->state = watch_book::off;
            if (book->withdrawn != book->posted) move_withdrawn(book->posted);
            book->known = book->posted; // ids are not given again
        }
        team.sync();
    }

    /// Nothing is watched, and `number` is that of the last mail to worker 0. False: nor is it now, for want of room. As for
    /// post().
    SLIPSTREAM_BOTH bool begin(team_type& team, u32 number, u64 at, u64 message, u64 ring_bits, u32 pool_free, u32 handles) const
    {
        team.sync();
        if (team.leader()) {
            book->number = number;
            book->state = watch_book::on;
        }
        if (post(team, at, message, ring_bits, pool_free, handles) != 0) return true;
        end(team);
        return false;
    }

    /// Once a step: what has worker 0 done, by the lower half of the word? `goes_on`: there may be more blanks, as for post(); else
    /// they are withdrawn. False: there is no watch, nor a task that was taken and is still in the ring.
    SLIPSTREAM_BOTH bool tend(team_type& team, u32 lower, bool goes_on, u64 at, u64 message, u64 ring_bits, u32 pool_free,
                              u32 handles) const
    {
        if (book->state != watch_book::off && note(team, lower) && book->state == watch_book::on
            && (!goes_on || post(team, at, message, ring_bits, pool_free, handles) == 0))
            withdraw(team);
        return book->state != watch_book::off || book->waiting != 0;
    }

    /// There is a watch, or tasks were taken; and `slots` of a ring are at hand. How many of them may be taken in? More than
    /// `slots`: all, and there is no watch any more.
    SLIPSTREAM_BOTH u32 beside(team_type& team, bool its_ring, u32 slots, u32 lower) const
    {
        const u32 waiting = book->waiting;
        if (its_ring && waiting != 0) return slots < waiting ? slots : waiting;
        if (book->state == watch_book::on) {
            // Has worker 0 come to that blank? Then it has seen the message, or will. What was seen of the word may be older than
            // the message by half a bus round trip: it is looked at once more.
            if (its_ring && (has_come_to(lower) || has_come_to(look(team)))) return 0;
            withdraw(team);
        }
        return book->state != watch_book::off || book->waiting != 0 ? 0 : ~0u;
    }

    /// The slots of the first so many tasks that were taken lie on top of the free ones then, the first task's uppermost. All of
    /// them will find their blocks in the pool: see post().
    SLIPSTREAM_BOTH void bring_slots(team_type& team, u32 count) const
    {
        team.sync();
        if (team.leader()) {
            const u32 free = *free_slot_count, first = first_waiting();
            SLIPSTREAM_ONE_COPY
            for (u32 i = 0; i < count; ++i) free_slots[free + count - 1 - i] = P::get(slot_of(first + i));
            *free_slot_count = free + count;
        }
        team.sync();
    }
    /// These are decoded. Returns the number of the last.
    SLIPSTREAM_BOTH u32 hand_on(team_type& team, u32 count) const
    {
        const u32 last = first_waiting() + count - 1;
        team.sync();
        if (team.leader()) book->waiting -= count;
        team.sync();
        return last;
    }

private:
    /// By the lower half of the word: has worker 0 come to a blank that is out?
    SLIPSTREAM_BOTH bool has_come_to(u32 lower) const
    {
        return watch_word::between(book->known, watch_word::id_in(lower)) - 1 < out();
    }
    SLIPSTREAM_BOTH u32 look(team_type& team) const
    {
        const u64 raw = team.leader() ? P::load(edge::P9_watch, *word, order::relaxed, scope::device) : 0;
        return team.broadcast(watch_word{raw}.lower());
    }
    /// Number of the first task that was taken and is not decoded.
    SLIPSTREAM_BOTH u32 first_waiting() const { return book->number - out() + 1 - book->waiting; }
    SLIPSTREAM_BOTH void move_withdrawn(u32 to) const
    {
        P::add(edge::P9_watch, *word, watch_word::upper_step(book->withdrawn, to), order::relaxed, scope::device);
        book->withdrawn = to;
    }
};

/// What worker 0 keeps from one blank to the next, beside its mails: tasks that come one by one are often alike.
struct watch_memory {
    static constexpr u32 payload_words = (abi::slot_chunks - 1) * abi::chunk_payload_words; ///< of a message of one slot

    u64 next_at; ///< where the next task will be: one ring slot behind the last one, unless its blank says otherwise
    u32 lower;   ///< of the watch word
    // Of the last message whose words were told apart:
    u16 type;
    bool plain;               ///< it names raw ranges alone, and no tiles
    u16 roles[payload_words]; ///< of each word behind the header, a role
    abi::chunk chunks[abi::slot_chunks];

    /// Whatever comes is not like it.
    SLIPSTREAM_BOTH void forget()
    {
        chunks[0] = {{~0u, ~0u, ~0u, 0}};
        plain = false;
    }

    /// The bits of its chunk k by which another message's words are told to have the same roles.
    SLIPSTREAM_BOTH abi::chunk telling(u32 k) const
    {
        if (k == 0) return {{~0u, ~0u, ~0u, 0}};
        if (k > abi::message_header::decode(chunks[0]).entry_chunks()) return {};
        const bool handle = (chunks[k].w[0] & abi::handle_bit) != 0;
        const u32 others = handle ? abi::handle_bit : 0;
        return {{handle ? abi::handle_bit : abi::handle_bit | abi::kind_mask, others, others, 0}};
    }

    // A role: where a word goes, as a place in the task struct, and what it is.
    static constexpr u32 place_mask = 0xff, is_entry = 1u << 8, by_handle = 1u << 9, is_rect = 1u << 10, is_scalar = 1u << 11;
    static_assert(abi::task_words_max <= place_mask && abi::message_header::types_max <= 1u << 16);
};

/// Worker 0's end.
template <class P>
struct watcher {
    using team_type = typename P::team;
    using words_type = typename P::template cell<u32>;
    using lane_words = typename P::template lane_array<u32, 1>;

    enum class outcome : u32 { task, void_blank, aborted };

    const ring_slot<P>* rings;
    u32 ring_slots;
    mailbox<P>* mailboxes;
    typename P::template word<u64>* word;
    const typename P::template word<u32>* stop;
    const abi::task_type* types;
    const typename P::template cell<known_handle>* handles;
    const task_record<P>* records;

    /// What came of a blank.
    struct result {
        outcome what;
        u32 looks;    ///< at the ring
        u32 blanks;   ///< behind this one, which were read: their letters are stored
        bool learned; ///< what its words are was found out anew; perhaps it is of another type than the last one
    };

    /// Waits for the task of `letter`, a blank, and stores its struct to `words`. `declines`: whatever comes. If `last`, it is the
    /// last mail that was read: with the task the blanks behind it are, into `letters`, P::mailbox_depth places. The leader calls
    /// meanwhile() while the first look is on its way.
    template <class Meanwhile>
    SLIPSTREAM_BOTH result run(team_type& team, const mail letter, watch_memory& memory, bool declines, words_type* words,
                               bool last, mail* letters, Meanwhile meanwhile) const
    {
        const u32 id = letter.blank_id();
        const u32 begun = watch_word::lower_of(id, watch_word::begun);
        const ring_slot<P>* const ring = rings + static_cast<u64>(letter.ring()) * ring_slots;
        blank_place where{memory.next_at, 0};
        const u32 mails = last ? P::mailbox_depth - 1 : 0;
        const auto number = [&](u32 k) { return tag_of(letter.tag + 1 + (k - first_mail_lane)); };
        const auto is_mail = [&](u32 k) { return (k >= first_mail_lane) & (k - first_mail_lane < mails); };
        typename P::template lane_array<abi::chunk, 1> chunks;
        typename P::template lane_array<u64, 1> beside; // the watch word, and the stop word
        lane_words expected, places;                    // the tag of what is asked for; of mails, their letters' places
        shape like;                                     // what came last
        // All that is loaded is on its way before any of it is looked at, the ring first: by one load of all lanes.
        const auto ask = [&](u32 attempt) {
            team.each32([&](u32 k) {
                const u64 at = where.at + k / abi::slot_chunks;
                edge which = edge::A0_ring_publish;
                const typename P::chunk_word* from = &ring[at & (ring_slots - 1)].chunks[k % abi::slot_chunks];
                // If the blank is not valid its place may be a later one's.
                if (k == place_lane) which = edge::P10_blank, from = &records[letter.slot()].blank;
                if (k >= first_mail_lane) which = edge::A4_mail, from = &mailboxes[0].mail[number(k) % P::mailbox_depth];
                chunks.at(0, k) = {};
                if (((k < ring_chunks) & !declines) | ((k == place_lane) & (attempt == 0)) | is_mail(k))
                    chunks.at(0, k) = P::load(which, *from, order::relaxed, scope::system);
                expected.at(0, k) = P::keep(k < ring_chunks ? abi::lap_tag(at, ring_slots) : number(k));
                places.at(0, k) = P::keep(number(k) % P::mailbox_depth);
                beside.at(0, k) = 0;
                if (k == word_lane)
                    beside.at(0, k) = attempt == 0 ? P::fetch_add(edge::P9_watch, *word, watch_word::step(memory.lower, begun),
                                                                  order::relaxed, scope::device)
                                                   : P::load(edge::P9_watch, *word, order::relaxed, scope::device);
                if (k == stop_lane && attempt % P::look_for_stop == P::look_for_stop - 1)
                    beside.at(0, k) = P::load(edge::P1_stop, *stop, order::relaxed, scope::device);
            });
        };
        const auto what_is_there = [&] {
            return team.mask32([&](u32 k) {
                const abi::chunk& chunk = chunks.at(0, k);
                const bool tagged = chunk.w[3] == expected.at(0, k);
                const bool withdrawn = !watch_word{beside.at(0, k)}.valid(id);
                const bool aborted = beside.at(0, k) == static_cast<u32>(stop_level::abort);
                const bool foreseen = blank_place::decode(chunk).at == where.at;
                return ((k < ring_chunks) & tagged) | ((k == word_lane) & withdrawn) | ((k == stop_lane) & aborted)
                    | ((k == place_lane) & foreseen) | (is_mail(k) & tagged & mail::decode(chunk).blank());
            });
        };
        const auto handles_known = [&] { return word_in_place(team, chunks, 2); };
        const auto decline = [&](u32 looks) -> result {
            team.sync();
            if (team.leader()) {
                P::store(edge::R25_declined, mailboxes[0].mail[letter.tag % P::mailbox_depth], abi::chunk{}, order::relaxed,
                         scope::device);
                P::fence(edge::R25_declined_fence, order::release, scope::device);
            }
            return {say(team, memory, begun, id, watch_word::declined), looks, 0, false};
        };

        ask(0);
        team.each32([&](u32 k) { like.load(memory, k); });
        team.sync(); // all lanes have read the letter
        if (team.leader()) meanwhile();
        u32 there = what_is_there();
        const auto is_like = [&] { return team.mask32([&](u32 k) { return like.differs(chunks.at(0, k), k); }) == 0; };
        bool alike = is_like();
        u32 looks = !declines;
        // Most often a task, in its place, with nothing behind it, and like the last one. What only the rest needs comes behind
        // the first look.
        const bool usual = alike & ((there & low_bits(place_lane + 1)) == (low_bits(abi::slot_chunks) | 1u << place_lane));
        if (!usual) {
            for (u32 attempt = 0;; ++attempt) {
                const bool withdrawn = (there >> word_lane & 1) != 0;
                if (withdrawn & (attempt == 0)) { // ingest has emptied its place, or will; what the ring holds is ingest's
                    const auto said = say(team, memory, begun, id, watch_word::declined);
                    // But not behind an abort: this blank would be read again and again.
                    const bool aborted = team.broadcast(team.leader() ? P::load(edge::P1_stop, *stop, order::relaxed, scope::device)
                                                                      : 0u) == static_cast<u32>(stop_level::abort);
                    return {aborted ? outcome::aborted : said, looks, 0, false};
                }
                if (declines) return decline(looks);
                if ((there >> stop_lane & 1) != 0) {
                    if (team.leader()) memory.lower = begun;
                    return {outcome::aborted, looks, 0, false};
                }
                if (attempt == 0) where.handles = handles_known();
                if (attempt == 0 && (there >> place_lane & 1) == 0) {
                    where.at = word_in_place(team, chunks, 0) | static_cast<u64>(word_in_place(team, chunks, 1)) << 32;
                } else if ((there & low_bits(abi::slot_chunks)) == low_bits(abi::slot_chunks)) {
                    const bool alone = (there & low_bits(ring_chunks)) == low_bits(abi::slot_chunks);
                    alike = is_like();
                    if (!alone || (!alike && !learn(team, chunks, like, memory))) return decline(looks); // not wanted
                    break;
                } else {
                    if (withdrawn) return decline(looks);
                    P::pause(attempt);
                }
                ask(attempt + 1);
                there = what_is_there();
                ++looks;
            }
        }
        if (like.plain) fill_plainly(team, chunks, like, words);
        else if (!fill(team, chunks, usual ? handles_known() : where.handles, like, words)) return decline(looks);
        P::fence(edge::A0_ring_fence, order::acquire, scope::system);
        team.sync();
        const u32 blanks = lowest_bit(~(there >> first_mail_lane));
        if (blanks != 0)
            team.each32([&](u32 k) { // behind the acquire fence that goes with the message
                if (is_mail(k) && k - first_mail_lane < blanks)
                    letters[places.at(0, k)] = mail::decode(chunks.at(0, k));
            });
        if (team.leader()) memory.next_at = where.at + 1;
        return {say(team, memory, begun, id, watch_word::taken), looks, blanks, !alike};
    }

    static constexpr u32 ring_chunks = abi::slot_chunks + 1; ///< the slot, and the first of the one behind it

private:
    static constexpr u32 word_lane = ring_chunks;
    static constexpr u32 stop_lane = ring_chunks + 1;
    static constexpr u32 place_lane = ring_chunks + 2;
    static constexpr u32 first_mail_lane = 16;
    static_assert(place_lane < first_mail_lane && P::mailbox_depth - 1 < 32 - first_mail_lane);
    static constexpr u32 payload_words = watch_memory::payload_words;
    static constexpr u32 words_each = abi::chunk_payload_words; ///< of a chunk
    static_assert(payload_words <= abi::task_members_max && payload_words <= abi::task_words_max);

    SLIPSTREAM_BOTH outcome say(team_type& team, watch_memory& memory, u32 lower, u32 id, watch_word::phase_name phase) const
    {
        const u32 now = watch_word::lower_of(id, phase);
        if (team.leader()) {
            P::add(edge::P9_watch, *word, watch_word::step(lower, now), order::relaxed, scope::device);
            memory.lower = now;
        }
        return phase == watch_word::taken ? outcome::task : outcome::void_blank;
    }

    /// Of watch_memory, a lane a chunk.
    struct shape {
        typename P::template lane_array<abi::chunk, 1> telling, told;
        typename P::template lane_array<u32, words_each> roles;
        typename P::template lane_array<u32, words_each + 1> places; ///< of words that fill_plainly() stores, or nowhere
        bool plain;
        static constexpr u32 nowhere = ~0u;

        SLIPSTREAM_BOTH void load(const watch_memory& memory, u32 k)
        {
            telling.at(0, k) = k < abi::slot_chunks ? memory.telling(k) : abi::chunk{};
            told.at(0, k) = k < abi::slot_chunks ? memory.chunks[k] : abi::chunk{};
            const bool payload = (k != 0) & (k < abi::slot_chunks);
            for (u32 i = 0; i < words_each; ++i) roles.at(i, k) = payload ? memory.roles[(k - 1) * words_each + i] : 0;
            for (u32 i = 0; i < words_each + 1; ++i) {
                const u32 role = is_entry(k) ? roles.at(0, k) + i : i < words_each ? roles.at(i, k) : 0;
                places.at(i, k) = P::keep(role != 0 ? role & watch_memory::place_mask : nowhere);
            }
            plain = memory.plain;
        }
        SLIPSTREAM_BOTH bool is_entry(u32 k) { return (roles.at(0, k) & watch_memory::is_entry) != 0; }
        SLIPSTREAM_BOTH bool differs(const abi::chunk& here, u32 k)
        {
            u32 bits = 0;
            for (u32 i = 0; i < words_each; ++i) bits |= (here.w[i] ^ told.at(0, k).w[i]) & telling.at(0, k).w[i];
            return bits != 0;
        }
    };

    /// Of the chunk that is a blank_place.
    template <class Chunks>
    SLIPSTREAM_BOTH static u32 word_in_place(team_type& team, Chunks& chunks, u32 i)
    {
        lane_words words;
        team.each32([&](u32 k) { words.at(0, k) = chunks.at(0, k).w[i]; });
        return team.from_lane(words, place_lane);
    }

    /// Stores the words of a message of one slot as the struct of its task, a lane a chunk. False: it names a handle that the
    /// device has not met, of which it knows so many.
    template <class Chunks>
    SLIPSTREAM_BOTH bool fill(team_type& team, Chunks& chunks, u32 handles_known, shape& like, words_type* words) const
    {
        const auto is = [&](u32 i, u32 k, u32 role) { return (like.roles.at(i, k) & role) != 0; };
        const auto handle = [&](u32 i, u32 k) { return chunks.at(0, k).w[i] & abi::handle_index_mask; };
        const u32 unmet = team.mask32([&](u32 k) {
            bool any = false;
            for (u32 i = 0; i < words_each; ++i) any |= is(i, k, watch_memory::by_handle) & (handle(i, k) >= handles_known);
            return any;
        });
        if (unmet != 0) return false;
        typename P::template lane_array<known_handle, words_each> named;
        team.each32([&](u32 k) {
            for (u32 i = 0; i < words_each; ++i)
                if (is(i, k, watch_memory::by_handle)) named.at(i, k) = P::get(handles[handle(i, k)]);
        });
        team.each32([&](u32 k) {
            for (u32 i = 0; i < words_each; ++i) {
                words_type* const to = words + (like.roles.at(i, k) & watch_memory::place_mask);
                if (is(i, k, watch_memory::is_scalar)) P::set(*to, chunks.at(0, k).w[i]);
                else if (is(i, k, watch_memory::is_entry))
                    entry_resolver<P>::set_words(to, is(i, k, watch_memory::is_rect),
                                                 is(i, k, watch_memory::by_handle) ? raw_access::of(named.at(i, k))
                                                                                   : range_in(chunks.at(0, k)));
            }
        });
        return true;
    }

    /// The same where the message names raw ranges alone, and no tiles: four stores by a lane at most, without branches.
    template <class Chunks>
    SLIPSTREAM_BOTH static void fill_plainly(team_type& team, Chunks& chunks, shape& like, words_type* words)
    {
        team.each32([&](u32 k) {
            const auto& chunk = chunks.at(0, k);
            const auto range = entry_resolver<P>::words_of(range_in(chunk));
            for (u32 i = 0; i < words_each + 1; ++i)
                if (like.places.at(i, k) != shape::nowhere)
                    P::set(words[like.places.at(i, k)], like.is_entry(k) || i == words_each ? range.w[i] : chunk.w[i]);
        });
    }
    SLIPSTREAM_BOTH static raw_access range_in(const abi::chunk& chunk) { return {address_in(chunk.w), chunk.w[2]}; }

    /// Of word k behind the header: its chunk (words behind the last one: the header), and which one of its words.
    SLIPSTREAM_BOTH static u32 chunk_of(u32 k) { return k < payload_words ? 1 + (k >= 3) + (k >= 6) : 0; }
    SLIPSTREAM_BOTH static u32 place_in_chunk(u32 k) { return k - 3 * (k >= 3) - 3 * (k >= 6); }

    template <class Chunks>
    SLIPSTREAM_BOTH static void gather_chunks(team_type& team, Chunks& chunks, lane_words (&of_chunk)[3])
    {
        lane_words words[3], from;
        team.each32([&](u32 k) {
            for (u32 i = 0; i < 3; ++i) words[i].at(0, k) = chunks.at(0, k).w[i];
            from.at(0, k) = chunk_of(k);
        });
        for (u32 i = 0; i < 3; ++i) team.gather32(words[i], from, of_chunk[i]);
    }

    /// Finds out what the words of a message of one slot are, a lane a word behind its header, and keeps that. False: it is none
    /// that a worker may take.
    template <class Chunks>
    SLIPSTREAM_BOTH bool learn(team_type& team, Chunks& chunks, shape& like, watch_memory& memory) const
    {
        lane_words of_chunk[3]; // the words of the chunk that the lane's word lies in
        gather_chunks(team, chunks, of_chunk);
        const auto header_word = [&](u32 i) { return team.from_lane(of_chunk[i], payload_words); };
        const abi::message_header h = abi::message_header::decode({{header_word(0), header_word(1), header_word(2), 0}});
        if (!h.plain() || !may_go_alone(h, team.from_lane(of_chunk[0], 0))) return false;
        const u32 entry_words = 3 * h.entry_chunks(); // then scalars, three a chunk
        const auto is_handle = [&](u32 k, u32 i) { return (of_chunk[i].at(0, k) & abi::handle_bit) != 0; };
        const u32 entries = team.mask32([&](u32 k) { // their first words
            const u32 place = place_in_chunk(k);
            return (k < entry_words)
                & ((place == 0) | (is_handle(k, 0) & is_handle(k, 1) & ((place == 1) | is_handle(k, 2))));
        });
        const abi::task_type& type = types[h.type];
        lane_words roles;
        team.each32([&](u32 k) {
            roles.at(0, k) = 0;
            if (k >= payload_words) return;
            if (entries >> k & 1) {
                const u32 member = popcount(entries & low_bits(k));
                if (member < type.members)
                    roles.at(0, k) = type.member_offset[member] | watch_memory::is_entry
                        | ((type.rect_mask >> member & 1) != 0 ? watch_memory::is_rect : 0);
                if (is_handle(k, 0)) roles.at(0, k) |= watch_memory::by_handle;
            } else if (k >= entry_words) {
                const u32 scalar = k - entry_words;
                if (scalar < h.scalars && scalar < type.scalars)
                    roles.at(0, k) = type.scalar_offset[scalar] | watch_memory::is_scalar;
            }
        });
        team.sync(); // all lanes have looked at what is overwritten
        team.each32([&](u32 k) {
            if (k < payload_words) memory.roles[k] = static_cast<u16>(roles.at(0, k));
            if (k < abi::slot_chunks) memory.chunks[k] = chunks.at(0, k);
        });
        const u32 not_plain = watch_memory::by_handle | watch_memory::is_rect;
        const u32 others = team.mask32([&](u32 k) { return (roles.at(0, k) & not_plain) != 0; });
        if (team.leader()) {
            memory.type = static_cast<u16>(h.type);
            memory.plain = others == 0;
        }
        team.sync();
        team.each32([&](u32 k) { like.load(memory, k); });
        return true;
    }
};

} // namespace slipstream::device
