// The worker's side of the mailbox: wait for mail, draw tickets, answer. Bodies are run by the caller.
//
// wait(), read_more() and await() are called by a team of lanes (the first warp on the GPU), all else by one lane (thread 0; but
// await_aside(), which may run beside its answer, by another one); the platform's kernel spreads what they return to the block
// and puts a block barrier before answer(), so that every thread's writes precede the release. The flight record of an ordinary
// block may be any thread's: it is the second warp's first lane's there, since the leader has enough to do. Where groups of a
// worker's threads run blocks of a ticket mail side by side, a lane of each draws, records and logs, through a port of its own
// that keeps nothing else; the recorder then shows what one of them picked up last, the task and not always the block that hangs.
//
// COST per mail: polls of two L2 lines (lone workers: acquire loads and no fence; others: relaxed and one acquire fence, which
// empties the L1 they share), one recorder store to pinned memory, one release fence, one addition (not waited for) and one
// store. No atomic that is waited for unless the task has more blocks than there are workers.
// Mails are read all together, with their records: a mailbox of them costs one poll and one more RT.
// A staged mail, moreover: a read of what it waits for (the first with the structs, others behind it: 1 RT, all together), polls of
// those finished counts, all of one poll in flight together (lone workers: acquire loads), and of others one acquire fence.
// What a lone worker's mail waits for is polled for right before its body (await_aside()), when its struct is loaded and its type
// chosen: between the poll that sees it and the body lie a store to fast memory, a barrier and a load. Where that mail is known
// when the body before it ends, the polls begin while the leader answers, and the first warp reads more mail if it is the last
// known: the answer's books and store, that read and the first poll are off the hop (not where some mail follows another). After
// every eighth poll (of a broadcast every 256th; not while the first warp answers or reads) who polls looks whether more mail has
// come (1 RT, in which nobody polls); if so the first warp reads it, and the polls go on.
// A broadcast (broadcast.hpp) is read in the same poll, eight at a time, from the copies that 4 or 5 workers of 131 share. One that
// has no block for this worker is answered as it is passed over: one store.
// One that follows and waits for nobody elsewhere: nothing of that. Where both are brief and nobody elsewhere was known to
// wait for the mail before it (or that is the first of two that wait for one: see scheduler), they are answered by one fence,
// a full mailbox at most: what is left of a hop is the recorder's store and an addition, a load from fast memory (has it
// failed, or is there a park? Not asked behind a type that never fails), and where the next one is of another type the branch to
// that.
//
// One that crosses (crossing_stage.hpp): out of line, see crossing_worker.hpp.
// A blank (watch.hpp): an addition that is waited for, then looks at the ring, out of line.
//
// OWNERS  worker w alone writes done[w] (once it has left for a park, the scheduler), recorder[w], picks[w] and the counts
//         behind mailbox[w], which it alone reads (broadcasts heard, too); worker 0 alone early marks.
// EDGES   A4 (mail, relaxed poll) + A4_mail_fence (acquire, device): the record, and all writes of the predecessors
//         R5R12_fence (release, device), then R12 (finished count) and R5 (done): the body's writes
//         none between two mails of a worker: its own barrier
//         none for picks[w] and what it keeps behind its mailbox: worker w reads back what it stored in the launch before; the
//         host reads when the kernel has left
//         R22_early_fence (release, system), then R22_early_mark: of a bypassed task (bypass.hpp), and R12, R5 behind it, too
//         A12 (finished counts, relaxed poll) + A12_finished_fence (acquire, device): the writes of the predecessors
//         of a staged task. A12 alone, acquire, by a lone worker; the block's barrier hands that on where other threads poll
//         (await_aside())
#pragma once
#include "device/crossing_worker.hpp"
#include "device/scheduler.hpp"
#include "device/watch.hpp"

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

/// When a run of blocks began to wait (0: it did not) and began; kept only for a flight log.
struct flight_times {
    u64 wait_ns;
    u64 start_ns;
};

/// What becomes of the mail in hand.
enum class mail_outcome : u32 { ran, failed, skipped };

/// What the one that answers keeps from mail to mail. In memory beside the mails: registers would be the bodies'.
struct worker_books {
    u64 picks;            ///< flight records ever stored
    u64 watched;          ///< chunks of rings ever looked at: worker 0 (watch.hpp)
    u32 done;             ///< the done_word of the last answer
    u32 stumbles;         ///< see mailbox::stumbles
    stop_level level;     ///< when the last mail was answered, if the next one follows it
    mail_outcome outcome; ///< of the mail in hand
};

/// What comes after each mail that was read, a bit for each of the mailbox's places; chosen when they are read, so that there
/// is little to do between two bodies.
template <u32 Places>
struct mail_plan {
    u32 next; ///< goes_on, answers_later
    u32 more; ///< at_once_from, looks
    static_assert(2 * Places <= 32);

    SLIPSTREAM_BOTH static bool bit(u32 word, u32 half, u32 number) { return (word >> (half * Places + number % Places) & 1) != 0; }
    /// None of them follows another.
    SLIPSTREAM_BOTH bool none() const { return (next | more) == 0; }
    /// The mail after this one waits for nothing but mails of this worker: if this one has not failed, and the last answer saw
    /// no park, it is at hand and runs at once, without await(), while the answer to this one is on its way.
    SLIPSTREAM_BOTH bool goes_on(u32 number) const { return bit(next, 0, number); }
    /// And the answer to this one may come with a later one: nobody looks for a park in between. Both are brief, and the
    /// scheduler says that they may (mail::joins).
    SLIPSTREAM_BOTH bool answers_later(u32 number) const { return bit(next, 1, number); }
    /// Lowest bit: and nothing is logged, so that there is nothing to do between the two bodies. The bits above it: the same of the
    /// mails behind this one.
    SLIPSTREAM_BOTH u32 at_once_from(u32 number) const
    {
        return (more & low_bits(Places)) * ((1u << Places) + 1) >> number % Places;
    }
    /// The next mail follows: who answers this one looks for a park.
    SLIPSTREAM_BOTH bool looks(u32 number) const { return bit(more, 1, number); }
    /// One failed or was skipped: those that follow may have to be, too.
    SLIPSTREAM_BOTH mail_plan stumbled() const { return {0, more >> Places << Places}; }
};

/// The mails that a worker has read and not answered. Its threads share it.
template <class P>
struct inbox {
    using plan_type = mail_plan<P::mailbox_depth>;

    worker_books books;
    mail letters[P::mailbox_depth];
    /// What all threads read before a body, in one load.
    struct alignas(16) findings {
        plan_type plan;
        verdict decision; ///< of a staged mail, if it is not to run; for threads that did not take part in await()
        u32 plain;        ///< 0: some mail follows another, or runs are logged. Otherwise 1, and, from early_at on, a bit for each
                          ///< place of the mailbox: its mail may be awaited early, if it comes next
        static constexpr u32 early_at = 16;
        static_assert(P::mailbox_depth <= 32 - early_at);
        /// By `plain`, may mail `number` be awaited while the one before it is answered? See worker_port::await_aside().
        SLIPSTREAM_BOTH static bool awaits_early(u32 plain, u32 number)
        {
            return (plain >> early_at >> number % P::mailbox_depth & 1) != 0;
        }
    } found;
    u32 answered; ///< tag of the last mail that was answered; those between it and the one in hand have run, and are owed an answer
    u32 known;    ///< of the last one that was read
    u32 heard;    ///< broadcasts ever read
    watch_memory watch; ///< of worker 0
    /// Beside a letter that waits for one task of this part alone: that task, or no_slot, if it was not seen with the letter.
    struct only_awaited {
        u32 slot;
        u32 target;
    } only[P::mailbox_depth];

    /// Answers, before mail `number`: of all mails of a full mailbox but that one, at most.
    SLIPSTREAM_BOTH u32 owed(u32 number) const { return mails_between(answered, number - 1); }
    SLIPSTREAM_BOTH u32 count() const { return mails_between(answered, known); }
    SLIPSTREAM_BOTH bool empty() const { return answered == known; }
    SLIPSTREAM_BOTH mail& letter(u32 number) { return letters[number % P::mailbox_depth]; }
    SLIPSTREAM_BOTH mail& next() { return letter(answered + 1); }
    /// Of those that were read and not answered.
    SLIPSTREAM_BOTH u32 broadcasts()
    {
        u32 among = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 i = 1; i <= count(); ++i) among += letter(answered + i).broadcast();
        return among;
    }
};

template <class P>
class worker_port {
public:
    using team_type = typename P::team;
    using plan_type = typename inbox<P>::plan_type;
    using finished_word = typename P::template word<u64>;

    /// All threads of a worker have a port, and one inbox between them, which is filled in by the one that has said `leads`.
    SLIPSTREAM_BOTH worker_port(const engine_memory<P>& memory, inbox<P>& box, u32 worker, u32 sm, bool leads = true)
        : m_(memory), box_(box), worker_(worker), sm_(sm)
    {
        if (!leads) return;
        box.answered = box.known = tag_of(P::get(m_.mailboxes[worker].answered));
        box.heard = P::get(m_.mailboxes[worker].heard);
        box.found = {};
        box.books = {P::get(m_.picks[worker]), 0, P::load(edge::P5_self, m_.done[worker], order::relaxed, scope::device),
                     P::get(m_.mailboxes[worker].stumbles), stop_level::none, mail_outcome::ran};
        if (worker != 0 || m_.n.bypass == 0) return;
        box.watch.lower = watch_word{P::load(edge::P9_watch, *m_.watch, order::relaxed, scope::device)}.lower();
        box.watch.type = 0;
        box.watch.next_at = 0;
        box.watch.forget();
        box.books.watched = P::get(m_.bus[ring_chunks_watched]);
    }

    /// The next mail, or a leaving one when the engine is aborted. Waits; bounded by the stop word. All mails that are there
    /// are read together, a lane each: those after the next one are at hand then. came(tag of the first, number) is called by
    /// all lanes when some are in the inbox, before they are planned: a platform that copies the tasks' structs asks for them
    /// there, and has them when the plan is made. Of a blank (watch.hpp) fill(letter) says where the task's struct is to be
    /// stored. While it is looked for the leader calls foresee(letter), with its task's letter if that is of the last one's type;
    /// again if it is of another; and filled(letter) when the struct is stored (both out of line: by value). `ahead`: the next
    /// mail is known and awaited elsewhere (await_aside()); if it is the last one known, there is time for one look for more.
    template <class Came, class Fill, class Foresee, class Filled>
    SLIPSTREAM_BOTH mail wait(team_type& team, Came came, Fill fill, Foresee foresee, Filled filled, bool ahead = false)
    {
        team.sync();
        for (u32 attempt = 0;; ahead = false) {
            if ((box_.empty() | (ahead & (box_.count() == 1))) && !read_more(team, came) && box_.empty()) {
                const auto level =
                    static_cast<stop_level>(team.broadcast(static_cast<u32>(team.leader() ? look(attempt) : stop_level::none)));
                if (level == stop_level::abort) return mail{mail::leave, 0, 0, 0};
                P::pause(attempt++);
                continue;
            }
            if (!box_.next().idle()) return box_.next();
            if (box_.next().broadcast()) {
                pass_over(team);
                continue;
            }
            const mail blank = box_.next();
            const auto came_of_it = watch(team, blank, fill(blank), foresee, filled);
            if (came_of_it == watcher<P>::outcome::aborted) return mail{mail::leave, 0, 0, 0};
            if (came_of_it == watcher<P>::outcome::task) return box_.next();
        }
    }
    /// For who gets no blanks, or reads their tasks from the record.
    template <class Came>
    SLIPSTREAM_BOTH mail wait(team_type& team, Came came)
    {
        const auto nothing = [](const mail&) {};
        return wait(team, came, [&](const mail& letter) { return record(letter).words; }, nothing, nothing);
    }
    SLIPSTREAM_BOTH mail wait(team_type& team) { return wait(team, [](u32, u32) {}); }

    /// Reads the mails that have come since, a lane each, and plans anew. True if there are any.
    /// Broadcasts come first: the scheduler sends one when all other mails before it were answered.
    template <class Came>
    SLIPSTREAM_BOTH bool read_more(team_type& team, Came came)
    {
        // A worker that has its SM to itself polls with acquire loads: emptying an idle SM's L1 costs nothing, and the
        // fence (300 ns with its wait for outstanding stores) is off the critical path. Others poll relaxed.
        const bool lone = m_.n.lone_workers != 0;
        const u32 known = box_.known, heard = box_.heard;
        const u32 room = P::mailbox_depth - box_.count();
        typename P::template lane_array<mail, 1> letters;
        const u32 there = team.mask32([&](u32 k) {
            const bool to_all = k >= P::mailbox_depth;
            const u32 i = to_all ? k - P::mailbox_depth : k;
            if ((i >= room) | (to_all & ((i >= broadcasts_read) | (m_.n.broadcast_copies == 0)))) return false;
            const u32 expected = tag_of((to_all ? heard : known) + 1 + i);
            const auto& place = m_.mailboxes[to_all ? broadcasts_at() : worker_].mail[expected % P::mailbox_depth];
            letters.at(0, k) = mail::decode(lone ? P::load(edge::A4_mail, place, order::acquire, scope::device)
                                                 : P::load(edge::A4_mail, place, order::relaxed, scope::device));
            const u32 tag = letters.at(0, k).tag;
            return to_all ? broadcast_mail::reached(expected, tag) : tag == expected;
        });
        // In order: those after one that was not seen are of no use yet.
        const u32 to_all = lowest_bit(~(there >> P::mailbox_depth));
        const u32 count = to_all + lowest_bit(~((there & low_bits(P::mailbox_depth)) >> to_all));
        if (count == 0) return false;
        if (!lone) P::fence(edge::A4_mail_fence, order::acquire, scope::device);
        team.each32([&](u32 k) {
            if ((k >= to_all) & (k < count)) box_.letter(known + 1 + k) = letters.at(0, k);
            if ((k < P::mailbox_depth) | (k >= P::mailbox_depth + to_all)) return;
            const u32 i = k - P::mailbox_depth;
            box_.letter(known + 1 + i) =
                broadcast_mail::of(letters.at(0, k), tag_of(heard + 1 + i), worker_, m_.n.workers, known + 1 + i);
        });
        team.sync();
        if (team.leader()) {
            box_.known = tag_of(known + count);
            box_.heard = heard + to_all;
        }
        team.sync();
        came(known + 1, count);
        const u32 aside = team.mask32([&](u32 k) -> bool {
            const mail& letter = box_.letter(known + 1 + k);
            if ((k >= count) | (letter.waits() == 0)) return false;
            const waits_place place = place_of_waits(letter);
            const abi::chunk chunk = P::load(edge::A4_mail, place.chunks[0], order::relaxed, scope::device);
            const awaited_task task = awaited_task::decode(chunk);
            const bool there = (awaited_task::tag_in(chunk) == place.tag) & (letter.waits() == 1) & !letter.crosses();
            box_.only[letter.tag % P::mailbox_depth] = {there ? task.slot : no_slot, task.target};
            return awaits_aside(letter);
        });
        const plan_type plan = make_plan(team);
        // Not the next one, which is awaited at once: behind a full mailbox its place is that of a mail that is not read yet.
        const u32 early = places_from(known + 1, aside & ~u32{known == box_.answered});
        const u32 plain = plan.none() && !logs() ? 1 | early << inbox<P>::findings::early_at : 0;
        if (team.leader()) {
            box_.found.plan = plan;
            box_.found.plain = plain;
        }
        team.sync();
        return true;
    }

    SLIPSTREAM_BOTH const plan_type& plan() const { return box_.found.plan; }
    /// The one after this mail, which was read.
    SLIPSTREAM_BOTH mail after(const mail& letter) const { return box_.letter(letter.tag + 1); }
    /// Has any of the last mails failed, or was skipped?
    SLIPSTREAM_BOTH bool stumbled_lately() const { return (box_.books.stumbles & low_bits(P::mailbox_depth)) != 0; }

    /// Waits until the tasks that a staged mail waits for are done, a lane for each of them. Bounded by the stop word. To skip
    /// it is the same answer for all blocks of the task: nobody waits for a task in a slot that had failures before it, and
    /// one that fails there later has another identity. After so many polls it looks for a park once more, and gives up.
    SLIPSTREAM_BOTH verdict await(team_type& team, const mail& letter, u32 polls_max = ~0u)
    {
        if (letter.crosses()) return await_crossing(team, letter, polls_max);
        if (letter.follows()) {
            const u32 found = team.broadcast(team.leader() ? static_cast<u32>(after_the_last()) : 0u);
            if (found != static_cast<u32>(verdict::run) || letter.waits() == 0) return static_cast<verdict>(found);
        }
        const u32 waits = letter.waits();
        typename P::template lane_array<awaited_task, 1> before; // a lane each
        u32 left = low_bits(waits);
        const auto only = box_.only[letter.tag % P::mailbox_depth];
        if (only.slot != no_slot) {
            team.each32([&](u32 k) { if (k == 0) before.at(0, k) = {only.slot, only.target, 0}; });
            left = 0;
        }
        const waits_place place = place_of_waits(letter);
        for (u32 attempt = 0; left != 0; ++attempt) { // written before the mail, but perhaps seen after it
            if (attempt != 0) {
                if (stopped(team, attempt - 1)) return verdict::leave;
                P::pause(attempt - 1);
            }
            left &= ~team.mask32([&](u32 k) {
                if (!(left >> k & 1)) return false;
                const abi::chunk chunk = P::load(edge::A4_mail, place.chunks[k], order::relaxed, scope::device);
                before.at(0, k) = awaited_task::decode(chunk);
                return awaited_task::tag_in(chunk) == place.tag;
            });
        }
        const bool lone = m_.n.lone_workers != 0;
        typename P::template lane_array<u32, 1> suspect;
        team.each32([&](u32 k) { suspect.at(0, k) = 0; });
        left = low_bits(waits);
        for (u32 attempt = 0;; ++attempt) {
            left &= ~team.mask32([&](u32 k) {
                if (!(left >> k & 1)) return false;
                const finished_count count{load_finished<P>(m_.records[before.at(0, k).slot].finished, lone)};
                if (!count.reached(before.at(0, k).target)) return false;
                suspect.at(0, k) = count.has_failures();
                return true;
            });
            if (left == 0) break;
            if (stopped(team, attempt == polls_max ? P::look_for_stop - 1 : attempt)) return verdict::leave;
            if (attempt == polls_max) return verdict::wait;
            P::pause(attempt);
        }
        if (!lone) P::fence(edge::A12_finished_fence, order::acquire, scope::device);
        const u32 suspects = team.mask32([&](u32 k) { return suspect.at(0, k) != 0; });
        if (suspects == 0) return verdict::run;
        const u32 failed = team.mask32([&](u32 k) {
            if (!(suspects >> k & 1)) return false;
            const auto& failed_by = m_.records[before.at(0, k).slot].failed_by;
            const abi::chunk chunk = P::load(edge::A4_mail, place.chunks[k], order::relaxed, scope::device); // as it was before
            return P::load(edge::P4_status, failed_by, order::relaxed, scope::device) == awaited_task::decode(chunk).identity;
        });
        return failed != 0 ? verdict::skip : verdict::run;
    }

    /// May others than the first warp wait for what the mail waits for? Of a worker that has its SM to itself (A12 acquires), and
    /// not where the mail follows another, since what became of that one decides.
    SLIPSTREAM_BOTH bool awaits_aside(const mail& letter) const
    {
        return m_.n.lone_workers != 0 && letter.waits() != 0 && !letter.follows();
    }
    /// And before the one before it is answered, if that is the mail in hand?
    SLIPSTREAM_BOTH bool awaits_early(u32 number) const { return inbox<P>::findings::awaits_early(box_.found.plain, number); }
    /// Does it wait for one task of this part alone, which is known?
    SLIPSTREAM_BOTH bool awaits_one(u32 number) const { return box_.only[number % P::mailbox_depth].slot != no_slot; }
    /// Waits for what a mail waits for of which awaits_aside() holds, by one lane or a team that may be others than those that read
    /// mail and answer, meanwhile or right before its body. After so many polls it gives up (`once`), or looks for something else
    /// to do, and polls as often again if there is nothing. Where awaits_one() holds:
    SLIPSTREAM_BOTH awaited await_one_aside(u32 number, u32 polls, bool once) const
    {
        const auto only = box_.only[number % P::mailbox_depth];
        const auto& finished = m_.records[only.slot].finished;
        SLIPSTREAM_ONE_COPY
        for (u32 attempt = 0;;) {
            const finished_count count{P::load(edge::A12_finished, finished, order::acquire, scope::device)};
            const u32 what = P::keep(static_cast<u32>(count.has_failures() ? awaited::look : awaited::runs));
            if (count.reached(only.target)) return static_cast<awaited>(what);
            P::pause(attempt);
            if (++attempt != polls) continue;
            if (once) return awaited::not_yet;
            if (const awaited came = has_come(); came != awaited::not_yet) return came;
            attempt = 0;
        }
    }
    /// And where it does not; to be asked of the team's leader.
    SLIPSTREAM_BOTH awaited await_several_aside(team_type& team, const mail& letter, u32 polls, bool once) const
    {
        return staged_of(letter).await_aside(team, polls, once, [this] { return has_come(); });
    }
    /// Either, where one team does both.
    SLIPSTREAM_BOTH awaited await_aside(team_type& team, const mail& letter, u32 polls, bool once) const
    {
        return awaits_one(letter.tag) ? await_one_aside(letter.tag, polls, once) : await_several_aside(team, letter, polls, once);
    }
    /// Has word to stop come (look), or mail that was not read (more)? By one lane, while none reads mail.
    SLIPSTREAM_BOTH awaited has_come() const
    {
        const u32 next = tag_of(box_.known + 1), heard = tag_of(box_.heard + 1);
        const auto* const mine = &m_.mailboxes[worker_].mail[next % P::mailbox_depth];
        const auto* const to_all =
            m_.n.broadcast_copies == 0 ? mine : &m_.mailboxes[broadcasts_at()].mail[heard % P::mailbox_depth];
        return has_come_out(m_.stop, mine, to_all, next, heard, box_.count() < P::mailbox_depth);
    }

    SLIPSTREAM_BOTH task_record<P>& record(const mail& letter) const { return m_.records[letter.slot()]; }

    /// Draws up to `chunk` block numbers; returns the first, which is >= blocks when none are left. A park or abort stops
    /// the drawing: when the run in hand, and what was drawn ahead, is over, the counter keeps its value, and the task goes
    /// on after the relaunch.
    SLIPSTREAM_BOTH u32 draw(task_record<P>& record, u32 blocks, u32 chunk)
    {
        if (look_for_stop() != stop_level::none) return blocks;
        return draw_anyway(record, blocks, chunk);
    }
    SLIPSTREAM_BOTH u32 draw_anyway(task_record<P>& record, u32 blocks, u32 chunk)
    {
        return drawn(ask_for(record, chunk), blocks);
    }
    /// In two parts: who looks at the number later does not wait for it. The counter stays below 2^32: blocks <= 2^31 and every
    /// drawer overshoots once, by at most one chunk.
    SLIPSTREAM_BOTH static u32 ask_for(task_record<P>& record, u32 chunk)
    {
        return P::fetch_add(edge::P0_ticket, record.next_block, chunk, order::relaxed, scope::device);
    }
    SLIPSTREAM_BOTH u32 drawn(u32 first, u32 blocks)
    {
        if (first >= blocks) drawn_ = done_word::drawn_bit;
        return first;
    }
    SLIPSTREAM_BOTH stop_level look_for_stop() const
    {
        return static_cast<stop_level>(P::load(edge::P1_stop, *m_.stop, order::relaxed, scope::device));
    }
    /// Has it seen the counter used up? Where several threads of a worker draw, with a port each, the one that
    /// answers must be told.
    SLIPSTREAM_BOTH bool all_drawn() const { return drawn_ != 0; }
    SLIPSTREAM_BOTH void set_all_drawn(bool all) { drawn_ = all ? done_word::drawn_bit : 0; }
    SLIPSTREAM_BOTH u32 workers() const { return m_.n.workers; }

    SLIPSTREAM_BOTH void record_flight(const mail& letter, u32 block)
    {
        note_flight(flight_of(letter, block));
        count_flights(1);
    }
    SLIPSTREAM_BOTH void count_flights(u32 count) { box_.books.picks += count; }
    SLIPSTREAM_BOTH flight_record flight_of(const mail& letter, u32 block) const
    {
        return flight_of(letter, block, sm_ << 16 | worker_);
    }
    SLIPSTREAM_BOTH static flight_record flight_of(const mail& letter, u32 block, u32 place)
    {
        return {1u << 31 | letter.type() << 8 | letter.ring(), letter.identity & identity_position_mask, block, place};
    }
    /// Without counting it.
    SLIPSTREAM_BOTH void note_flight(const flight_record& entry) const { note_flight(entry, *flight_place()); }
    /// In two parts, for who has the place before it must be quick.
    SLIPSTREAM_BOTH typename P::chunk_word* flight_place() const { return P::keep(&m_.recorder[worker_]); }
    SLIPSTREAM_BOTH void note_flight(const flight_record& entry, typename P::chunk_word& place) const
    {
        P::store(edge::P3_recorder, place, entry.encode(), order::relaxed, scope::system);
    }
    SLIPSTREAM_BOTH u64 runs() const { return box_.books.picks; }
    SLIPSTREAM_BOTH void set_runs(u64 count) { box_.books.picks = count; }

    /// Keeps a line of history of the run of that number (from 1 on) when a flight log was asked for; beyond its capacity
    /// only the count goes on.
    SLIPSTREAM_BOTH void log_flight(const mail& letter, u32 block, u32 count, flight_times& times, u64 run) const
    {
        if (m_.n.log_capacity == 0) return;
        if (run <= m_.n.log_capacity)
            m_.flight_log[static_cast<u64>(worker_) * m_.n.log_capacity + run - 1]
                = {1u << 31 | letter.type() << 8 | letter.ring(), letter.identity & identity_position_mask, block,
                   (count < 0xffff ? count : 0xffff) << 16 | sm_, times.wait_ns, times.start_ns, P::clock_ns()};
        times.wait_ns = 0; // of the next mail
    }
    SLIPSTREAM_BOTH bool logs() const { return m_.n.log_capacity != 0; }

    /// A body failed: one of the codes of its blocks stays (relaxed: ordered by answer()).
    SLIPSTREAM_BOTH void fail(task_record<P>& record, u32 code)
    {
        P::store(edge::P4_status, record.status, code, order::relaxed, scope::device);
        box_.books.done |= done_word::failed_bit;
        stumble(mail_outcome::failed);
    }

    /// The mail was not run: one before it failed. Who waits for this one must not run either.
    SLIPSTREAM_BOTH void skip() { stumble(mail_outcome::skipped); }

    /// Answers the mail, and those that are owed an answer: everything their blocks wrote is released, to the scheduler and to
    /// the workers of staged tasks.
    /// `looks`: of the plan, which may lie in a register.
    SLIPSTREAM_BOTH void answer(const mail& letter) { answer(letter, plan().looks(letter.tag)); }
    SLIPSTREAM_BOTH void answer(const mail& letter, bool looks)
    {
        worker_books& books = box_.books;
        const mail_outcome outcome = books.outcome;
        const u64 count = outcome == mail_outcome::ran ? finished_count::block : note_failure(letter);
        const stop_level level = looks ? look_for_stop() : stop_level::none; // its round trip is over when the fence's is
        P::fence(edge::R5R12_fence, order::release, scope::device);
        if (!letter.tickets()) P::add(edge::R12_finished, record(letter).finished, count, order::relaxed, scope::device);
        // All else comes behind the addition that others wait for.
        const u32 owed = box_.owed(letter.tag);
        SLIPSTREAM_ONE_COPY
        for (u32 i = owed; i != 0; --i)
            P::add(edge::R12_finished, record(box_.letter(letter.tag - i)).finished, finished_count::block, order::relaxed,
                   scope::device);
        const u32 skipped = done_word{books.done}.skipped_before(owed + 1) | static_cast<u32>(outcome == mail_outcome::skipped);
        books.done = done_word::make(letter.tag, skipped, (books.done & done_word::failed_bit) | drawn_);
        books.stumbles = books.stumbles << (owed + 1) | static_cast<u32>(outcome != mail_outcome::ran);
        books.level = level;
        books.outcome = mail_outcome::ran;
        box_.answered = letter.tag;
        if (letter.crosses() && outcome == mail_outcome::ran) count_for_stand_ins(letter);
        // The next failure in this slot must see that this one was noted.
        if (outcome != mail_outcome::ran) P::fence(edge::R5R12_failure_fence, order::release, scope::device);
        P::store(edge::R5_done, m_.done[worker_], books.done, order::relaxed, scope::device);
        drawn_ = 0;
    }

    /// May answer_alone() answer this one?
    SLIPSTREAM_BOTH bool is_alone(const mail& letter) const
    {
        return plan().none() && !letter.tickets() && !letter.crosses() && !stumbled();
    }
    /// The same for a block that has not failed, where no answer is owed and the next mail does not follow: the
    /// shortest way to others.
    SLIPSTREAM_BOTH void answer_alone(const mail& letter)
    {
        finished_word* const finished = finished_of(letter);
        release();
        answer_released(letter, *finished);
    }
    /// In two parts, for who looks in between whether the block failed. That look, the mail and the address cost nothing where
    /// they were found before the fence.
    SLIPSTREAM_BOTH finished_word* finished_of(const mail& letter) const { return P::keep(&record(letter).finished); }
    SLIPSTREAM_BOTH void release() const { P::fence(edge::R5R12_fence, order::release, scope::device); }
    SLIPSTREAM_BOTH void answer_released(const mail& letter, finished_word& finished)
    {
        P::add(edge::R12_finished, finished, finished_count::block, order::relaxed, scope::device);
        say_answered(letter.tag);
    }

    /// Tells the host of a bypassed task whose block has run and not failed, and answers, behind one fence. No answer is owed then.
    /// Without a look for a park: a mail that follows this one runs, and what comes after that looks.
    SLIPSTREAM_BOTH void answer_bypassed(const mail& letter)
    {
        tell_host(letter);
        answer_released(letter, record(letter).finished); // by the fence of system scope
    }
    /// Did the last answer see a park, or the end?
    SLIPSTREAM_BOTH bool told_to_stop() const { return box_.books.level != stop_level::none; }

    /// The last words of a worker that was told to leave.
    SLIPSTREAM_BOTH void leave(const mail& letter)
    {
        save();
        if (letter.tag == 0) return; // aborted: nothing is kept
        P::set(m_.mailboxes[worker_].answered, box_.answered + 1);
        P::set(m_.mailboxes[worker_].stumbles, 0u);
        // Relaxed: nobody awaits it; the kernel's end publishes it.
        P::store(edge::P5_self, m_.done[worker_], done_word::make(letter.tag, 0, box_.books.done & done_word::failed_bit),
                 order::relaxed, scope::device);
    }

    /// Keeps for the host, and for the next launch, what was counted; the last thing that a worker does whose await() told it
    /// to leave. Mails that were read and not answered are read again.
    SLIPSTREAM_BOTH void save()
    {
        P::set(m_.picks[worker_], box_.books.picks);
        P::set(m_.mailboxes[worker_].answered, box_.answered);
        P::set(m_.mailboxes[worker_].stumbles, box_.books.stumbles);
        P::set(m_.mailboxes[worker_].heard, box_.heard - box_.broadcasts());
        if (worker_ == 0) P::set(m_.bus[ring_chunks_watched], box_.books.watched);
    }

private:
    /// Out of line, and with no more than it needs by value; all loads fly together. Without broadcasts `to_all` is `mine`.
    SLIPSTREAM_BOTH_RARE static awaited has_come_out(const typename P::template word<u32>* stop, const typename P::chunk_word* mine,
                                                     const typename P::chunk_word* to_all, u32 next, u32 heard, bool room)
    {
        const u32 level = P::load(edge::P1_stop, *stop, order::relaxed, scope::device);
        const u32 tag = mail::decode(P::load(edge::A4_mail, *mine, order::relaxed, scope::device)).tag;
        const u32 tag_to_all = mail::decode(P::load(edge::A4_mail, *to_all, order::relaxed, scope::device)).tag;
        if (level != 0) return awaited::look;
        const bool heard_it = (mine != to_all) & broadcast_mail::reached(heard, tag_to_all);
        return room & ((tag == next) | heard_it) ? awaited::more : awaited::not_yet;
    }
    SLIPSTREAM_BOTH void tell_host(const mail& letter) const
    {
        const u64 position = P::get(record(letter).position); // on its way beside the fence
        P::fence(edge::R22_early_fence, order::release, scope::system);
        P::store(edge::R22_early_mark, m_.ring_pages[letter.ring()].early_mark, position + 1, order::relaxed, scope::system);
    }

    /// What comes after each mail in the inbox; all before the first are answered.
    SLIPSTREAM_BOTH plan_type make_plan(team_type& team) const
    {
        const u32 count = box_.count();
        if (count < 2) return {};
        const u32 first = box_.answered + 1;
        const u32 pairs = count - 1;
        const u32 follow = team.mask32([&](u32 k) { return k < pairs && box_.letter(first + k + 1).follows(); });
        if (follow == 0) return {};
        const u32 only = team.mask32([&](u32 k) { return k < pairs && box_.letter(first + k + 1).only_follows(); });
        const u32 later = team.mask32([&](u32 k) {
            return k < pairs && box_.letter(first + k).may_wait_for(box_.letter(first + k + 1));
        });
        const auto places = [&](u32 bits) { return places_from(first, bits); };
        const plan_type plan{places(only) | places(later) << P::mailbox_depth,
                             (logs() ? 0 : places(later)) | places(follow) << P::mailbox_depth};
        return stumbled_lately() ? plan.stumbled() : plan;
    }
    /// Mail first + k has place (first + k) % depth.
    SLIPSTREAM_BOTH static u32 places_from(u32 first, u32 bits)
    {
        const u32 by = first % P::mailbox_depth;
        return (bits << by | bits >> (P::mailbox_depth - by)) & low_bits(P::mailbox_depth);
    }
    /// By the one that answers, of the mail in hand.
    SLIPSTREAM_BOTH void stumble(mail_outcome outcome)
    {
        box_.books.outcome = outcome;
        box_.found.plan = plan().stumbled();
    }

    /// What to do with a mail that follows others on this worker. By the leader. It may wait for any of the last ones, and is
    /// skipped if any of them stumbled: if that was another, it comes again when what it waits for is complete. Those before
    /// them were answered when it was mailed, and it would not have been if they had failed.
    SLIPSTREAM_BOTH verdict after_the_last()
    {
        if (stumbled_lately()) return verdict::skip;
        if (box_.books.level == stop_level::none) return verdict::run;
        if (box_.books.level == stop_level::park) pause();
        return verdict::leave;
    }
    SLIPSTREAM_BOTH bool stumbled() const { return box_.books.outcome != mail_outcome::ran; }
    SLIPSTREAM_BOTH void pause()
    {
        P::store(edge::R5_done, m_.done[worker_], box_.books.done | done_word::paused_bit, order::relaxed, scope::device);
    }

    SLIPSTREAM_BOTH stop_level look(u32 attempt) const
    {
        return attempt % P::look_for_stop != P::look_for_stop - 1 ? stop_level::none : look_for_stop();
    }

    /// The mailbox with this worker's copies of broadcasts.
    SLIPSTREAM_BOTH u32 broadcasts_at() const { return m_.n.workers + (worker_ & (m_.n.broadcast_copies - 1)); }

    /// What a staged letter waits for, and the tag that those chunks have.
    struct waits_place {
        const typename P::chunk_word* chunks;
        u32 tag;
    };
    SLIPSTREAM_BOTH waits_place place_of_waits(const mail& letter) const
    {
        const u32 tag = letter.broadcast() ? broadcast_mail::tag_in(letter, box_.heard) : letter.tag;
        return {m_.mailboxes[letter.broadcast() ? broadcasts_at() : worker_].waits[tag % P::mailbox_depth], tag};
    }

    /// Of a mail that crosses, but for its wait aside: out of line, and with no more than it needs by value, since the way of all
    /// others has no part of it.
    SLIPSTREAM_BOTH staged_mail<P> staged_of(const mail& letter) const
    {
        const waits_place place = place_of_waits(letter);
        return {place.chunks, place.tag, letter.waits(), m_.records, m_.part_records, m_.part_clocks, m_.stop,
                &m_.done[worker_], m_.n.lone_workers != 0};
    }
    SLIPSTREAM_BOTH verdict await_crossing(team_type& team, const mail& letter, u32 polls_max)
    {
        return await_out(staged_of(letter), team, polls_max, box_.books.done);
    }
    SLIPSTREAM_BOTH_RARE static verdict await_out(const staged_mail<P> letter, team_type team, u32 polls_max, u32 done)
    {
        return letter.await(team, polls_max, done);
    }
    SLIPSTREAM_BOTH void count_for_stand_ins(const mail& letter) const { count_out(staged_of(letter)); }
    SLIPSTREAM_BOTH_RARE static void count_out(const staged_mail<P> letter) { letter.count_for_stand_ins(); }

    /// The next mail is a blank: looks at its ring until it is a task, or none. Out of line, and with no more than it needs by
    /// value: the workers' way has no part of it.
    template <class Foresee, class Filled>
    SLIPSTREAM_BOTH typename watcher<P>::outcome watch(team_type& team, const mail blank, typename P::template cell<u32>* words,
                                                       Foresee foresee, Filled filled)
    {
        return watch_out({m_.rings, m_.n.ring_slots, m_.mailboxes, m_.watch, m_.stop, m_.types, m_.handle_cache, m_.records}, team,
                         &box_, blank, words, foresee, filled);
    }
    template <class Foresee, class Filled>
    SLIPSTREAM_BOTH_RARE static typename watcher<P>::outcome watch_out(const watcher<P> w, team_type team, inbox<P>* box,
                                                                       const mail blank, typename P::template cell<u32>* words,
                                                                       Foresee foresee, Filled filled)
    {
        const u32 count = box->count();
        const u32 last_type = box->watch.type;
        const auto fill_in = [&](u32 type) {
            mail& task = box->next();
            task.slot_and_type = blank.slot_and_type | type << 16;
            task.block_and_waits = mail::bypass_bit;
            foresee(task);
        };
        const auto result = w.run(team, blank, box->watch, (box->books.done & done_word::failed_bit) != 0, words, count == 1,
                                  box->letters, [&] {
                                      box->books.watched += watcher<P>::ring_chunks;
                                      fill_in(last_type);
                                  });
        team.sync();
        if (team.leader()) {
            if (result.looks != 1) box->books.watched += (u64{result.looks} - 1) * watcher<P>::ring_chunks; // 0: minus one look
            if (result.what == watcher<P>::outcome::task) {
                if (result.learned && box->watch.type != last_type) fill_in(box->watch.type);
                filled(box->next());
                if (result.blanks != 0) { // as read_more() leaves it; none of these follows another
                    box->known = tag_of(box->known + result.blanks);
                    box->found.plan = {};
                }
            } else if (result.what == watcher<P>::outcome::void_blank) { // it was never read, nor what came behind it
                box->heard -= box->broadcasts();
                box->known = box->answered;
            }
        }
        team.sync();
        return result.what;
    }

    /// Answers a broadcast of which this worker has no block. Without a fence: the last one's stands before this store, too.
    SLIPSTREAM_BOTH void pass_over(team_type& team)
    {
        team.sync();
        if (team.leader()) say_answered(box_.next().tag);
        team.sync();
    }

    /// The answer to a mail that nothing is to be said of, behind a fence.
    SLIPSTREAM_BOTH void say_answered(u32 tag)
    {
        worker_books& books = box_.books;
        books.done = done_word::make(tag, done_word{books.done}.skipped_before(1), books.done & done_word::failed_bit);
        P::store(edge::R5_done, m_.done[worker_], books.done, order::relaxed, scope::device);
        books.stumbles <<= 1;
        books.level = stop_level::none;
        box_.answered = tag;
    }

    /// A worker that waits with a staged mail leaves for a park, too: the mail stays where it is, and the next launch's worker
    /// takes it up again. So does one that has come to a mail that follows another. A park waits for the mail in hand, those
    /// whose answers come with it, and one that was at hand, or was not read yet, when the last was answered.
    SLIPSTREAM_BOTH bool stopped(team_type& team, u32 attempt)
    {
        const auto level =
            static_cast<stop_level>(team.broadcast(static_cast<u32>(team.leader() ? look(attempt) : stop_level::none)));
        if (level == stop_level::park && team.leader()) pause();
        return level != stop_level::none;
    }

    /// What a block that failed or was skipped adds to the finished count. Only the first such task of a slot is noted: nobody
    /// waits for a later one until the linker has set the count back.
    SLIPSTREAM_BOTH u64 note_failure(const mail& letter)
    {
        task_record<P>& slot = record(letter);
        const finished_count count{P::load(edge::A12_finished, slot.finished, order::relaxed, scope::device)};
        if (count.has_failures()) return finished_count::block;
        P::store(edge::P4_status, slot.failed_by, letter.task(), order::relaxed, scope::device);
        return finished_count::failed_block;
    }

    const engine_memory<P>& m_;
    inbox<P>& box_;
    u32 worker_;
    u32 sm_;
    u32 drawn_ = 0; ///< drawn_bit: the mail in hand is a ticket mail and no ticket is left
};

/// Blocks of a ticket mail that are run together; count 0: none.
struct ticket_run {
    u32 first;
    u32 count;
};

/// What was asked for ahead; count 0: nothing.
struct ticket_request {
    u32 first; ///< on its way until it is looked at
    u32 count;
};

/// Draws the blocks of a ticket mail for one of its `drawers` on this worker. So many at a time that a run lasts 32 us or
/// more, of which the counter's round trip is little; while many are left, or blocks are short, the next ones are asked for when
/// a run begins, and their number looked at when it is over; towards the end ever fewer, so that all drawers end together (guided
/// self-scheduling: Polychronopoulos and Kuck, 1987).
template <class P>
class ticket_drawer {
public:
    SLIPSTREAM_BOTH ticket_drawer(worker_port<P>& port, task_record<P>& record, u32 blocks, u32 drawers)
        : port_(port), record_(record), blocks_(blocks), drawers_(drawers * port.workers()), left_(blocks)
    {
    }

    SLIPSTREAM_BOTH ticket_run draw()
    {
        if (port_.all_drawn()) return {blocks_, 0};
        const u32 chunk = share();
        return run_of(port_.draw(record_, blocks_, chunk), chunk);
    }

    /// To be called when a run begins, for next(). What was asked for is to be run, whether a park comes or not: nothing waits
    /// for an answer here, and that look for a park counts the next time. Not of blocks that last long: a park would wait for three
    /// of them, and there is nothing to gain.
    SLIPSTREAM_BOTH ticket_request ask_ahead()
    {
        const u32 chunk = share();
        if (stop_ != stop_level::none || lasting_ || port_.all_drawn() || (!hasty_ && left_ / 4 < drawers_ * chunk))
            return {blocks_, 0};
        stop_ = port_.look_for_stop();
        return {port_.ask_for(record_, chunk), chunk};
    }
    /// When that run is over: the next one.
    SLIPSTREAM_BOTH ticket_run next(ticket_request asked)
    {
        return asked.count != 0 ? run_of(port_.drawn(asked.first, blocks_), asked.count) : draw();
    }

    /// How long a run of so many blocks lasted.
    SLIPSTREAM_BOTH void took(u64 ns)
    {
        hasty_ = ns < hasty_ns;
        if (ns < short_ns && chunk_ < chunk_max) chunk_ *= 2;
        lasting_ = ns > 4 * short_ns && chunk_ == 1;
        if (ns > 4 * short_ns && chunk_ > 1) chunk_ /= 2;
    }

private:
    static constexpr u32 chunk_max = 64;
    static constexpr u64 short_ns = 32'000;
    static constexpr u64 hasty_ns = 4'000; ///< of a run: to wait for the counter costs more than a drawer that ends so much later

    SLIPSTREAM_BOTH u32 share() const
    {
        const u32 most = left_ / (2 * drawers_);
        return most < 1 ? 1 : most < chunk_ ? most : chunk_;
    }
    SLIPSTREAM_BOTH ticket_run run_of(u32 first, u32 chunk)
    {
        left_ = first < blocks_ ? blocks_ - first : 0;
        return {first, left_ < chunk ? left_ : chunk};
    }

    worker_port<P>& port_;
    task_record<P>& record_;
    u32 blocks_;
    u32 drawers_; ///< of all workers
    u32 left_;    ///< when it drew last
    u32 chunk_ = 1;
    bool lasting_ = false; ///< a single block lasts longer than a run should
    bool hasty_ = false;
    stop_level stop_ = stop_level::none;
};

} // namespace slipstream::device
