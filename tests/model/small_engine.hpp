// The smallest whole engine for model tests: its memory, a host that submits, workers whose body is a digest, and an oracle.
//
// A task is a list of accesses to a few 64-byte places; its body mixes its number with what it reads and writes the mix into
// what it writes. Places are plain cells, so a missing dependency is a race even where digests agree.
#pragma once
#include "device/control.hpp"
#include "device/worker.hpp"
#include "host/ring_writer.hpp"
#include "tests/model/model_platform.hpp"
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <vector>

namespace slipstream::model {

using abi::access_mode;

struct place_access {
    u32 place;
    access_mode mode;
};

struct test_task {
    std::vector<place_access> accesses;
    u32 blocks = 1;
    u32 filler = 0; ///< further scalar words: makes the message longer
    bool whole_memory = false;
    int after = -1; ///< submission number
    bool joins_stream = false; ///< waits for join word 0 to be raised to 1
    bool fails = false;        ///< its body fails, having written
    bool cancelled = false;    ///< must not run: a failed task is in its way
    int fails_block = -1;      ///< of a failing task of several blocks: only this one fails
    int reads_blocks_of = -1;  ///< number of a task of several blocks: each block reads what all of its blocks wrote
    bool clears_failure = false;
    bool crosses = false; ///< a task of several parts, or, if it has no blocks, a stand-in of one; see device/crossing.hpp
    abi::crossing_word crossing{};
    bool counted = false; ///< a stand-in for which the task's worker counts
    bool raw = false; ///< names places by their address where the others do by handle
};

/// Roles of the control block; tests put several on one fiber where what they look at does not lie between them.
enum role : u32 { ingest_role = 1, admission_role = 2, linker_role = 4, scheduler_role = 8, notifier_role = 16 };

/// When the roles of a fiber have done their part in a test of `count` tasks.
struct until {
    u32 count;
    bool slots_come_back = true; ///< admission waits for the slots, too; else it ends when all tasks are admitted
    bool completions = true;     ///< the linker waits for the completions, too; else it ends when all tasks are linked
    bool submits = false;        ///< ingest's fiber writes each message when the one before it is handed on
};

/// Hands out aligned pieces of one memory block; with no block it only measures.
class carver {
public:
    explicit carver(unsigned char* base = nullptr) : base_(reinterpret_cast<std::uintptr_t>(base)) {}
    template <class T> T* take(u64 count)
    {
        const u64 align = alignof(T) < 16 ? 16 : alignof(T);
        used_ = (used_ + align - 1) / align * align;
        T* const out = reinterpret_cast<T*>(base_ + used_);
        used_ += count * sizeof(T);
        return out;
    }
    u64 bytes() const { return used_; }

private:
    std::uintptr_t base_;
    u64 used_ = 0;
};

inline u64 mix(u64 digest, u64 v)
{
    digest ^= v + 0x9e3779b97f4a7c15u + (digest << 6) + (digest >> 2);
    return digest * 0xff51afd7ed558ccdu;
}

struct engine_size {
    u32 ring_slots = 4;
    u32 window_used = 4;
    u32 workers = 2;
    u32 pool_blocks = 8; ///< multiple of device::pool_word_blocks
    u32 queue_slots = 0; ///< of the control block's queues, at least window_used; 0: as the engine has it
    u32 window = 32;
    bool streamed = false; ///< no message is marked plain: each is decoded as it arrives
    bool lone_workers = false;
    bool staging = false;
    bool chaining = false;
    bool bypass = false;
    u32 watch_after = 0;
    u32 broadcast_copies = 0;
    bool answers_late = false; ///< with the next one, whenever they may be
    bool never_fails = false;  ///< tasks that do not fail are of types that promise it
    bool by_handle = false; ///< places are registered
    u32 parts = 1; ///< of an engine, of which this is one
    u32 part = 0;
    bool by_slots = false; ///< messages, none longer than the ring, are stored by whole slots as they find room
};

template <class P>
class small_engine {
public:
    static constexpr u32 places_max = 4;
    static constexpr u64 place_address = 0x10000;

    small_engine(std::vector<test_task> program, engine_size size = {})
        : tasks(std::move(program)), answers_late(size.answers_late), never_fails(size.never_fails), streamed_(size.streamed),
          by_handle_(size.by_handle), by_slots_(size.by_slots), m(layout(size)), storage_(zeroed(m)), s(place())
    {
        type.words = 1;
        type.scalars = 1;
        type.brief = 1; // answers may come together
        for (u32 p = 0; p < places_max; ++p) handles[p] = {place_address + 64 * p, 64, 0, 0, 0};
        m.handles = handles;
        m.handle_cache = handle_cache;
        m.handle_pages = pages;
        m.types = &type;
        device::initialise<P>(m, s, &type);
        device::reset_phases<P>(s);
        writer = host::ring_writer<P>(m.rings, m.n.ring_slots, m.ring_pages);
        if (size.queue_slots) s.queue_slots = size.queue_slots;
        names();
    }

    /// Writes one message; wait() is called while the ring is full.
    template <class Wait> bool submit(u32 number, Wait&& wait)
    {
        const test_task& t = tasks[number];
        const u32 entries = static_cast<u32>(t.accesses.size()) + (t.after >= 0) + t.joins_stream;
        // Every entry takes one chunk, so a message that is short enough is plain.
        const u32 chunks = 1 + entries + (1 + t.filler + 2) / 3;
        const bool plain = !streamed_ && chunks <= abi::slot_chunks * std::min(abi::message_plain_slots, m.n.ring_slots);
        const abi::message_header header{t.blocks, 0,
                                         (t.whole_memory ? abi::flag_whole_memory : 0u)
                                             | (t.clears_failure ? abi::flag_clear_failure : 0u)
                                             | (t.crosses ? abi::flag_crossing : 0u) | (t.counted ? abi::flag_counted : 0u),
                                         entries, 1 + t.filler, plain ? entries + 1 : 0, t.crossing};
        std::vector<abi::chunk> message{header.encode()};
        if (t.after >= 0)
            message.push_back({{abi::encode_first(abi::entry_kind::after, access_mode::none, 0), static_cast<u32>(t.after), 0, 0}});
        if (t.joins_stream)
            message.push_back({{abi::encode_first(abi::entry_kind::after, access_mode::none, abi::after_stream_ring), 1, 0, 0}});
        for (const place_access& a : t.accesses)
            message.push_back(by_handle_ && !t.raw ? abi::chunk{{abi::encode_handle(a.place, a.mode), 0, 0, 0}}
                                                   : abi::encode_range(abi::encode_first(abi::entry_kind::range, a.mode, 0),
                                                                       place_address + 64 * a.place, 64));
        for (u32 word = 0; word < 1 + t.filler; word += 3) message.push_back({{word == 0 ? number : 0xdead0000u + word, 0, 0, 0}});
        if (by_slots_) {
            message.resize((message.size() + abi::slot_chunks - 1) / abi::slot_chunks * abi::slot_chunks);
            std::vector<host::chunk_vector> vectors;
            for (const abi::chunk& c : message) vectors.push_back(host::vector_of(c));
            const u32 slots = static_cast<u32>(message.size()) / abi::slot_chunks;
            while (!writer.has_room(slots))
                if (!wait()) return false;
            writer.put_slots(vectors.data(), slots);
            return true;
        }
        for (const abi::chunk& c : message)
            if (!writer.put(c, wait)) return false;
        return writer.finish(wait);
    }

    /// So many tasks were linked by launches before; called first.
    void begin_after(u32 linked)
    {
        linked_before = linked;
        P::store(edge::P5_self, *s.linked, linked, order::relaxed, scope::block);
    }

    /// Submits all tasks and decodes them, before the threads start (tests that are not about the ring).
    void decode_all()
    {
        typename P::team team;
        device::ingest<P> in(m, s);
        for (u32 i = 0; i < tasks.size(); ++i) {
            const bool sent = submit(i, [] { return false; });
            check(sent, "the ring of a decoded test holds every task");
            while (in.step(team)) {}
        }
    }

    /// And admits them too (tests that are not about admission).
    void admit_all()
    {
        decode_all();
        typename P::crew crew;
        device::admission<P> admission(m, s);
        while (admission.step(crew)) {}
        check(admission.decoded_empty(crew.team()), "the admitted queue holds every task");
        admission.finish(crew);
    }

    /// And links them (tests that are not about the way to the dependency table).
    void link_all()
    {
        admit_all();
        typename P::team team;
        device::linker<P> linker(m, s);
        while (linker.step(team)) {}
        linker.save(team);
    }

    void run_body(u32 number)
    {
        const test_task& t = tasks[number];
        u64 digest = number + 1;
        for (const place_access& a : t.accesses)
            if (static_cast<u32>(a.mode) & 1) digest = mix(digest, P::get(shared_places[a.place]));
        for (const place_access& a : t.accesses)
            if (static_cast<u32>(a.mode) & 2) P::set(shared_places[a.place], digest);
        P::set(results[number], digest);
    }

    /// A worker's life.
    void work(u32 worker)
    {
        device::inbox<P> box;
        device::worker_port<P> port(m, box, worker, 0);
        typename P::team team;
        device::mail letter{};
        typename P::template cell<u32> taken[abi::task_words_max];
        bool stopping = false;
        for (bool at_hand = false, awaited = false;;) {
            bool watched = false;
            letter = at_hand || awaited ? port.after(letter)
                                        : port.wait(team, [](u32, u32) {}, [&](const device::mail&) { return taken; },
                                                    [](const device::mail&) {}, [&](const device::mail&) { watched = true; });
            if (letter.leaves()) {
                port.leave(letter);
                return;
            }
            auto& record = port.record(letter);
            bypassed += letter.bypassed();
            broadcasts += letter.broadcast();
            check(!letter.idle(), "who has no block of a broadcast passes it over");
            taken_from_ring += watched;
            const u32 number = P::get(watched ? taken[0] : record.words[0]);
            const u32 blocks = watched ? 1 : P::get(record.blocks);
            check(number < tasks.size(), "the record holds the task's own words");
            if (letter.staged()) {
                far_staged += letter.crosses();
                // On the GPU by others than those that wait otherwise, right before the body.
                const bool aside = !at_hand && !awaited && port.awaits_aside(letter) && await_aside(port, team, letter);
                const device::verdict decision = at_hand || awaited || aside ? device::verdict::run : port.await(team, letter);
                awaited_aside += aside;
                check(!at_hand || (letter.only_follows() && !port.stumbled_lately()),
                      "what is at hand waits for nobody, and nothing before it failed");
                went_on += at_hand;
                awaited_early += awaited;
                far_early += awaited && letter.crosses();
                if (decision == device::verdict::leave) {
                    port.save();
                    ++paused;
                    return;
                }
                ++staged;
                chained += letter.follows();
                if (decision == device::verdict::skip) {
                    ++skipped;
                    port.skip();
                    port.answer(letter);
                    at_hand = awaited = false;
                    continue;
                }
                ran_staged |= 1u << number;
            }
            if (letter.tickets()) {
                device::ticket_drawer<P> tickets(port, record, blocks, 1);
                for (device::ticket_run run = tickets.draw(); run.count != 0;) {
                    const device::ticket_request next = tickets.ask_ahead();
                    for (u32 b = run.first; b < run.first + run.count; ++b) run_block(number, b, blocks);
                    tickets.took(run.first % 2 == 0 ? 0 : 1'000'000); // it draws ahead behind short blocks, not behind long ones
                    drawn_ahead |= next.count != 0;
                    run = tickets.next(next);
                }
            } else {
                run_block(number, letter.block(), blocks);
            }
            const test_task& t = tasks[number];
            if (t.fails && (t.fails_block < 0 || letter.block() == static_cast<u32>(t.fails_block))) port.fail(record, 9);
            // On the GPU by another warp, while this one is answered: before and behind it, here.
            const bool early = !letter.tickets() && !letter.bypassed() && port.awaits_early(letter.tag + 1);
            awaited = early && port.await_aside(team, port.after(letter), 1, true) == device::awaited::runs;
            const bool later = answers_late && port.plan().answers_later(letter.tag);
            // Behind a task of a type that never fails nobody looks whether a park was seen, as long as answers come together
            // (run_worker()), nor later whether the first of them should have stopped.
            const bool in_row = later && never_fails && !t.fails;
            at_hand = port.plan().goes_on(letter.tag) && (in_row || !stopping);
            if (at_hand && later) {
                ++late;
                past_stop += stopping;
                stopping = false;
                continue;
            }
            if (letter.bypassed() && !t.fails) port.answer_bypassed(letter);
            else if (port.is_alone(letter)) port.answer_alone(letter);
            else port.answer(letter);
            awaited =
                awaited || (early && port.await_aside(team, port.after(letter), 1, true) == device::awaited::runs);
            stopping = port.told_to_stop();
        }
    }

    /// Does it run? If not, await() has to be asked.
    bool await_aside(device::worker_port<P>& port, typename P::team& team, const device::mail& letter)
    {
        for (;;) {
            const device::awaited became = port.await_aside(team, letter, 1, false);
            if (became != device::awaited::more) return became == device::awaited::runs;
            ++read_meanwhile;
            check(port.read_more(team, [](u32, u32) {}), "mail that has come can be read");
        }
    }

    /// One-block tasks run their digest body; a task of several blocks sets a cell of its own per block.
    void run_block(u32 number, u32 block, u32 blocks)
    {
        const test_task& t = tasks[number];
        check(!t.cancelled, "a cancelled task does not run");
        check(block < blocks && !ran_[number][block], "no block runs twice");
        ran_[number][block] = true;
        if (t.reads_blocks_of >= 0) {
            const u32 before = static_cast<u32>(t.reads_blocks_of);
            for (u32 b = 0; b < tasks[before].blocks; ++b)
                check(P::get(block_cells[before][b]) == before + 1, "a block reads what the task before it wrote");
        }
        if (blocks == 1) run_body(number);
        else P::set(block_cells[number][block], u64{number} + 1);
    }

    /// After everything: the digests of a sequential run.
    void check_against_oracle()
    {
        u64 expected[places_max] = {};
        for (u32 i = 0; i < tasks.size(); ++i) {
            if (tasks[i].cancelled) {
                check(ran_[i].empty(), "a cancelled task does not run");
                continue;
            }
            for (u32 b = 0; b < tasks[i].blocks; ++b) check(ran_[i][b], "nothing is lost");
            if (tasks[i].blocks != 1) continue;
            u64 digest = i + 1;
            for (const place_access& a : tasks[i].accesses)
                if (static_cast<u32>(a.mode) & 1) digest = mix(digest, expected[a.place]);
            for (const place_access& a : tasks[i].accesses)
                if (static_cast<u32>(a.mode) & 2) expected[a.place] = digest;
            check(P::get(results[i]) == digest, "each task read what program order says");
        }
        for (u32 p = 0; p < places_max; ++p) check(P::get(places[p]) == expected[p], "the places hold what program order says");
    }

private:
    struct release_bytes {
        void operator()(unsigned char* p) const { std::free(p); }
    };
    using bytes = std::unique_ptr<unsigned char, release_bytes>;

public:
    std::vector<test_task> tasks;
    bool answers_late;
    bool never_fails;
    u32 staged = 0;  ///< staged mails that workers took
    u32 late = 0;    ///< mails that were answered with the next one
    u32 past_stop = 0; ///< of these, those behind which a worker went on though it had seen a park
    u32 chained = 0; ///< of the staged ones, those behind the mail that they wait for
    u32 went_on = 0; ///< of these, those that were at hand
    u32 awaited_aside = 0; ///< of the staged ones, those that were awaited when all else was done
    u32 read_meanwhile = 0; ///< how often mail had come while one was awaited so
    u32 far_early = 0;     ///< of far_staged, those of awaited_early
    u32 awaited_early = 0; ///< and those that were awaited before the mail in front of them was answered
    u32 skipped = 0; ///< staged ones that did not run
    u32 far_staged = 0; ///< of the staged ones, those of tasks that cross, whatever became of them
    bool drawn_ahead = false; ///< some block, while another one ran
    u32 ran_staged = 0; ///< tasks whose staged mails were run, a bit each
    u32 paused = 0;  ///< or left for a park, or an abort
    u32 bypassed = 0; ///< mails of ingest's that workers took
    u32 taken_from_ring = 0; ///< of these, tasks that worker 0 took from the ring itself
    u32 broadcasts = 0; ///< likewise, of those to all, by workers that had a block
    bool early = false; ///< a task was reported complete before one that it waits for
    u32 linked_before = 0; ///< tasks linked by launches before

private:
    bool streamed_;
    bool by_handle_;
    bool by_slots_;

public:
    device::engine_memory<P> m;

private:
    bytes storage_; ///< the words of the model begin as zero bytes
    std::map<u32, std::map<u32, bool>> ran_;

public:
    device::control_state<P> s;
    host::ring_writer<P> writer;
    typename P::template cell<u64> places[places_max];
    typename P::template cell<u64>* shared_places = places; ///< several parts: those of the first
    typename P::template cell<u64> results[16];
    typename P::template cell<u64> block_cells[16][4];
    abi::task_type type{};
    abi::handle_entry handles[places_max] = {};
    typename P::template cell<device::known_handle> handle_cache[places_max];
    typename P::template cell<device::handle_page> pages[places_max];

private:
    static device::engine_memory<P> layout(const engine_size& size)
    {
        device::engine_memory<P> m{};
        m.n.window = size.window;
        m.n.lone_workers = size.lone_workers;
        m.n.staging = size.staging;
        m.n.chaining = size.chaining;
        m.n.bypass = size.bypass;
        m.n.watch_after = size.watch_after;
        m.n.broadcast_copies = size.broadcast_copies;
        m.n.parts = size.parts;
        m.n.part = size.part;
        m.n.window_used = size.window_used;
        m.n.rings = 1;
        m.n.ring_slots = size.ring_slots;
        m.n.workers = size.workers;
        m.n.pool_blocks = size.pool_blocks;
        m.n.index_buckets = m.n.index_buckets_wanted();
        m.n.ahead_slots = device::ahead_slots_least;
        m.n.types = 1;
        m.n.handles = places_max;
        return m;
    }

    static device::control_state<P> carve(device::engine_memory<P>& m, carver& c)
    {
        m.rings = c.take<device::ring_slot<P>>(m.n.ring_slots);
        m.page = c.take<device::host_page<P>>(1);
        m.ring_pages = c.take<device::ring_page<P>>(1);
        m.complete_bits = c.take<typename P::template word<u32>>(device::completion_words);
        m.recorder = c.take<typename P::chunk_word>(m.n.workers);
        m.picks = c.take<typename P::template cell<u64>>(m.n.workers);
        m.bus = c.take<typename P::template cell<u64>>(device::bus_counts);
        m.stream_joins = c.take<typename P::template word<u32>>(1);
        m.records = c.take<device::task_record<P>>(m.n.window);
        m.mailboxes = c.take<device::mailbox<P>>(m.n.workers + m.n.broadcast_copies);
        m.done = c.take<typename P::template word<u32>>(m.n.workers);
        m.watch = c.take<typename P::template word<u64>>(1);
        m.stop = c.take<typename P::template word<u32>>(1);
        m.complete_mirror = c.take<u32>(device::completion_words);
        if (m.n.parts > 1) {
            m.channels = c.take<typename P::template word<u64>>(m.n.parts * m.n.parts * m.n.channel_slots());
            m.staging_channels = c.take<typename P::chunk_word>(m.n.parts * m.n.parts * m.n.staging_channel_slots());
            m.part_records = c.take<device::task_record<P>*>(m.n.parts);
            m.part_clocks = c.take<device::part_clock<P>>(m.n.parts);
        }
        return device::control_state<P>(m.n, c);
    }

    static bytes zeroed(device::engine_memory<P> m)
    {
        carver measure;
        carve(m, measure);
        const u64 size = (measure.bytes() + 255) / 256 * 256;
        bytes out(static_cast<unsigned char*>(std::aligned_alloc(256, size)));
        std::memset(out.get(), 0, size);
        return out;
    }

    device::control_state<P> place()
    {
        carver real(storage_.get());
        return carve(m, real);
    }

    void names()
    {
        static constexpr const char* place_names[] = {"place 0", "place 1", "place 2", "place 3"};
        for (u32 p = 0; p < places_max; ++p) label(places[p], place_names[p]);
        label(*s.free_tail, "free.tail");
        label(*s.free_head, "free.head");
        label(*s.decoded_tail, "decoded.tail");
        label(*s.decoded_head, "decoded.head");
        label(*s.admitted_tail, "admitted.tail");
        label(*s.admitted_head, "admitted.head");
        label(*s.report_tail, "report.tail");
        label(*s.report_head, "report.head");
        label(*s.ready_tail, "ready.tail");
        label(*s.ready_head, "ready.head");
        label(*s.linked, "linked");
        label(*s.finished_tail, "finished.tail");
        label(*s.finished_head, "finished.head");
        label(*s.retired_tail, "retired.tail");
        label(*s.retired_head, "retired.head");
        label(*s.request, "request");
        label(*s.ingest_phase, "ingest_phase");
        label(*s.admission_phase, "admission_phase");
        label(*s.link_phase, "link_phase");
        label(*s.schedule_phase, "schedule_phase");
        for (u32 i = 0; i < 4 && i < s.queue_slots; ++i) {
            static constexpr const char* of_queues[7][4]
                = {{"decoded entry 0", "decoded entry 1", "decoded entry 2", "decoded entry 3"},
                   {"admitted entry 0", "admitted entry 1", "admitted entry 2", "admitted entry 3"},
                   {"finished entry 0", "finished entry 1", "finished entry 2", "finished entry 3"},
                   {"free entry 0", "free entry 1", "free entry 2", "free entry 3"},
                   {"report entry 0", "report entry 1", "report entry 2", "report entry 3"},
                   {"ready entry 0", "ready entry 1", "ready entry 2", "ready entry 3"},
                   {"retired entry 0", "retired entry 1", "retired entry 2", "retired entry 3"}};
            static constexpr const char* records[] = {"record 0", "record 1", "record 2", "record 3"};
            static constexpr const char* rows[] = {"row 0", "row 1", "row 2", "row 3"};
            static constexpr const char* heads[] = {"head 0", "head 1", "head 2", "head 3"};
            label(s.decoded_entries[i], of_queues[0][i]);
            label(s.admitted_entries[i], of_queues[1][i]);
            label(s.finished_entries[i], of_queues[2][i]);
            label(s.free_entries[i], of_queues[3][i]);
            label(s.report_entries[i], of_queues[4][i]);
            label(s.ready_entries[i], of_queues[5][i]);
            label(s.retired_entries[i], of_queues[6][i]);
            label(s.predecessors[i * m.n.groups()], rows[i]);
            label(m.records[i].words[0], records[i]);
            label(s.heads[i], heads[i]);
        }
        label(m.ring_pages->consumed, "consumed");
        label(m.ring_pages->low_water, "low_water");
        label(m.ring_pages->early_mark, "early_mark");
        label(m.page->command_word, "command");
        label(*m.stop, "stop");
        label(m.page->heartbeat, "heartbeat");
        label(m.stream_joins[0], "stream join 0");
        label(m.complete_bits[0], "complete bits 0");
        static constexpr const char* done_names[] = {"done 0", "done 1"};
        static constexpr const char* mail_names[] = {"mail 0.0", "mail 0.1", "mail 1.0", "mail 1.1"};
        for (u32 w = 0; w < m.n.workers && w < 2; ++w) {
            label(m.done[w], done_names[w]);
            for (u32 i = 0; i < 2; ++i) label(m.mailboxes[w].mail[i], mail_names[2 * w + i]);
        }
        static constexpr const char* chunk_names[] = {"ring 0.0", "ring 0.1", "ring 0.2", "ring 0.3",
                                                      "ring 1.0", "ring 1.1", "ring 1.2", "ring 1.3"};
        for (u32 slot = 0; slot < m.n.ring_slots; ++slot)
            for (u32 c = 0; c < abi::slot_chunks; ++c) reuse_needs_order(m.rings[slot].chunks[c]);
        // What a declined blank's worker has read is in order before the slot's next blank, as the emptied place is before the next
        // mail: that one is a store before a store, which take effect as they are executed here. Of a blank that was withdrawn
        // before it was begun there is no such order, and no need of it. With two places in a mailbox one blank is out at most, and
        // none is read that is not begun; with more there are such (control.cpp, three blanks), and nothing is declared.
        if constexpr (P::mailbox_depth == 2)
            for (u32 slot = 0; slot < m.n.window_used; ++slot) reuse_needs_order(m.records[slot].blank);
        for (u32 c = 0; c < 8; ++c) label(m.rings[c / 4].chunks[c % 4], chunk_names[c]);
    }
};

/// How many entries the calling role has put into a queue so far, or taken out of it.
template <class P>
u32 own_count(const typename P::template word<u32>& counter, typename P::team& team)
{
    const u32 count = team.broadcast(team.leader() ? P::load(edge::P5_self, counter, order::relaxed, scope::block) : 0u);
    team.sync();
    return count;
}

/// Some roles of the control block (a mask of model::role), taking turns on the calling fiber until all of them are done.
/// Admission with a crew of several teams needs a fiber group of its own.
template <class P>
void run_roles(const std::shared_ptr<small_engine<P>>& e, u32 roles, until end)
{
    typename P::crew crew;
    if (crew.index() != 0) {
        device::admission<P> with_the_leader(e->m, e->s);
        while (with_the_leader.step(crew)) {}
        return;
    }
    typename P::team& team = crew.team();
    const device::control_state<P>& s = e->s;
    std::optional<device::ingest<P>> ingest;
    std::optional<device::admission<P>> admission;
    std::optional<device::linker<P>> linker;
    std::optional<device::scheduler<P>> scheduler;
    std::optional<device::notifier<P>> notifier;
    if (roles & ingest_role) ingest.emplace(e->m, s);
    if (roles & admission_role) admission.emplace(e->m, s);
    if (roles & linker_role) linker.emplace(e->m, s);
    if (roles & scheduler_role) scheduler.emplace(e->m, s);
    if (roles & notifier_role) notifier.emplace(e->m, s, u64{1} << 60);
    const auto is = [&](const typename P::template word<u32>& counter) { return own_count<P>(counter, team) == end.count; };
    u32 submitted = 0;
    for (u32 n = 0;;) {
        bool busy = false;
        if (end.submits && ingest && submitted < end.count && s.progress[0].messages == submitted) {
            const bool sent = e->submit(submitted++, [] { return false; });
            check(sent, "the ring has room");
        }
        if (ingest) busy |= ingest->step(team);
        if (admission) busy |= admission->step(crew);
        if (linker) busy |= linker->step(team);
        for (u32 g = 0; linker && g < e->m.n.groups(); ++g) e->early |= s.early[g] != 0;
        if (scheduler) busy |= scheduler->step(team);
        if (notifier) busy |= notifier->step(team);
        n = busy ? 0 : n + 1;
        if ((!ingest || s.progress[0].messages == end.count)
            && (!admission || is(end.slots_come_back ? *s.free_tail : *s.admitted_tail))
            && (!linker || (own_count<P>(*s.linked, team) - e->linked_before == end.count && (!end.completions || linker->empty())))
            && (!scheduler || is(*s.retired_tail))
            && (!notifier || is(*s.finished_tail)))
            break;
        if (n) P::pause(n);
    }
    for (u32 n = 1; scheduler && !scheduler->workers_idle(team); ++n) // broadcasts are booked
        if (!scheduler->step(team)) P::pause(n);
    if (scheduler) scheduler->dismiss_workers(team);
    if (admission) admission->finish(crew);
}

/// Its notifier looks at the host once only: nobody there says anything.
template <u32 Lanes = 1, u32 Teams = 1>
struct without_host : model_platform<Lanes, Teams> {
    static constexpr u32 look_around = 1u << 30;
};

/// The same with mailboxes of four places: a task, two that wait for it, and one that waits for both.
template <u32 Lanes = 1>
struct deep_mailboxes : without_host<Lanes> {
    static constexpr u32 mailbox_depth = 4;
};

} // namespace slipstream::model
