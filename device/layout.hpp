// Every shared structure of the engine with its owner: what lies in pinned host memory, in device memory, and in the control
// block's fast memory.
//
// LAYOUT
//   pinned (host and device)   rings[rings][ring_slots] of 64 B · host_page · ring_page[rings] · complete bits[rings][4096]
//                              · recorder[workers] of 16 B · handle table · flight log · stream join words · bus and pick counts
//   device                     records[window] of 384 B · mailboxes[workers + copies of broadcasts] of 4224 B
//                              · done[workers] of 4 B · watch word · type table
//                              · handle cache · handle pages · stop word · notifier's mirror
//                              · channels between parts [parts][parts], of schedulers and of linkers, and where each part's
//                              records lie, of the first part
//   fast (shared memory of the control block, spilled to device memory at park)   control_state: queues, window, scheduler
// OWNERS  (single writer -> readers, scope)
//   ring slots            submitter -> ingest, system          host_page.command   service -> notifier, system
//   ring_page.consumed    ingest -> submitter, system          ring_page.low_water, bits   notifier -> host, system
//   ring_page.early_mark  worker 0 -> host, system
//   host_page.heartbeat   notifier -> service, system          recorder[w]         worker w -> host, system
//   host_page.failures    notifier -> host, system             host_page.failures_read   host (under a lock) -> notifier, system
//   stream_joins          a stream's callback -> ingest, system
//   bus[k]                the role that counts it, once, when it ends -> host, after the kernel   picks[w]   worker w, likewise
//   record (args)         ingest and admission -> worker, device   record.next_block   ingest resets; workers draw
//   record.status         worker -> scheduler, device          mailbox[w]          scheduler -> worker w, device
//                                                                                  (its last words: worker w, for its next launch);
//                                                                                  of tasks that come alone, ingest -> worker 0,
//                                                                                  which empties the places of blanks (watch.hpp)
//                                                              mailbox[workers + i]   scheduler -> workers, see broadcast.hpp
//   record.finished       workers add -> workers that wait, and the scheduler (broadcast.hpp), device; the linker resets it when
//                         nobody can be waiting
//   record.failed_by      a worker -> workers that wait, device; likewise
//   channel[a][b]         scheduler of part a -> scheduler of part b, device: see crossing.hpp
//   staging_channel[a][b] linker of part a -> linker of part b, device: see crossing_stage.hpp
//   record.finished of a stand-in   workers of the task's home add -> workers that wait, device: likewise
//   done[w]               worker w -> scheduler, device (0: and ingest); once it has left for a park, the scheduler
//   stop                  notifier -> workers, device
//   handle table          the host, before it names one -> ingest, system     handle cache, pages   ingest; admission, device
//   notifier's mirror     the notifier alone
//   watch                 ingest <-> worker 0, device, by additions: see watch_word
//   fast memory           see the list SLIPSTREAM_CONTROL_FIELDS
// STATES of a window slot
//   free -> filling (ingest) -> decoded -> admitted (its predecessors found) -> linked: waiting | staged | ready -> mailed
//   (some block) -> complete (scheduler: reported to the linker, in the retired queue) -> noticed (notifier: in the finished
//   queue) -> out of the access table (admission: in the free queue) -> free
// EDGES   see device/edge.hpp; each operation names its own.
//
// Fast-memory budget, by host/fast_memory.cpp (4 rings, 131 workers, 5 task types): G = W/32 groups; successors 4 W G and
// 16 W, pool books 12 a block of four accesses, what staged tasks wait for 62 W (and 216 W in device memory), the last mails
// of each worker 5 K, access index 128 W (at most 32 K; half, quarter or none of it where the rest needs the room),
// admission's batch 11 K, its rows of predecessors 8 W and their lists 2.1 K, ring slots in hand 4.6 to
// 10.7 K (shorter looks where else the smallest access index had no room), bus counts 104, the rest about 80 W.
// Accesses: 72 a block, with where the index has them; as many as fit in what is left of the 227 K, the others lie in device memory
// (sizes::pool_near_blocks).
//   W                 32      64      256     512     1024
//   near, bytes       155 K   167 K   226 K   226 K   226 K and its successors in device memory (144 K), an eighth of the index
//   pool blocks       1336    1368    1560    1816    2328
//   of these near     all     all     1264    264     32
//   slots of a look   128     128     128     128     128
#pragma once
#include "device/queue.hpp"
#include <slipstream/abi/access_entry.hpp>
#include <slipstream/abi/task_type.hpp>
#include <bit>

namespace slipstream::device {

inline constexpr u32 window_slots_min = 16;
inline constexpr u32 window_slots_max = 4096;
inline constexpr u32 successors_near_max = 512; ///< window slots
inline constexpr u32 successors_listed = 8;     ///< of a task, one by one; beyond them its row is looked through
inline constexpr u32 pool_block_entries = 4;    ///< accesses: most tasks need one block
inline constexpr u32 pool_word_blocks = 32 / pool_block_entries; ///< blocks that share a word of live bits
inline constexpr u32 index_buckets_max = 512;
inline constexpr u32 index_places = 7;  ///< accesses that a bucket of the access index has room for
inline constexpr u32 index_classes = 66; ///< see access_index
inline constexpr u32 rings_max = 16;
inline constexpr u32 staged_slots = abi::message_plain_slots; ///< of each ring fetched at a time, at most:
                                                              ///< one chunk a lane of a warp
inline constexpr u32 staged_rings = 4; ///< rings fetched in one go
inline constexpr u32 glance_slots = 2; ///< of each ring, while none is known to hold more
inline constexpr u32 ahead_slots_max = 128; ///< of the busy ring: what makes a bus round trip, which is waited for, cheap
inline constexpr u32 ahead_slots_least = 32; ///< likewise, where fast memory is short
inline constexpr u32 batch_messages = 32; ///< plain messages given places together
inline constexpr u32 broadcasts_read = 8; ///< by a worker at a time: a line
inline constexpr u32 broadcast_copies_max = 32; ///< a lane stores one of each
inline constexpr u32 waits_near_max = 3;  ///< of them in fast memory
inline constexpr u32 waits_max = 15;      ///< tasks that a staged one may wait for: where one has more, those behind it wait, too
inline constexpr u32 waits_far_max = waits_max - waits_near_max;
inline constexpr u32 admitted_max = 64; ///< tasks between admission and linker
inline constexpr u32 batch_max = 32;    ///< tasks, and pool blocks, that admission takes at once
inline constexpr u32 batch_cells_bits = 9;
inline constexpr u32 batch_marks_max = 4;
inline constexpr u32 covered_max = 256; ///< accesses that a batch supersedes; further ones wait for the next that covers them
inline constexpr u32 crossing_words_max = 32;
inline constexpr u32 arrived_max = 64;  ///< stand-ins (crossing.hpp) between scheduler and linker
inline constexpr u32 order_words = 8;   ///< of an order to admission's crew
inline constexpr u32 submissions_ahead_max = 65536; ///< so far a ring may be ahead of its low-water mark
/// Bits of a ring's completion map. Twice as many: a round's bits and its mark are stored in no order, so whoever sees the mark may
/// not yet see the bits of that round. Those of a lap before are of another round then, since tasks in between were submitted
/// behind an earlier mark.
inline constexpr u32 completion_span = 2 * submissions_ahead_max;
inline constexpr u32 completion_words = completion_span / 32;
inline constexpr u32 failures_kept = 1024;    ///< failure records the host may be behind; more is back-pressure
inline constexpr u32 poison_entries_max = 512; ///< poisoned accesses; one more poisons everything
inline constexpr u32 failed_runs_max = 512;    ///< runs of failed or cancelled tasks of one ring; likewise
inline constexpr u32 no_slot = 0xffff;
inline constexpr u32 no_block = 0xffffffff;

/// What became of a task that is complete. All 0: it succeeded.
struct task_outcome {
    u32 status;  ///< failed: the body's code; cancelled: the number of the failure it goes back to
    u32 failure; ///< number of the failure, from 1 on | outcome_cancelled
};
inline constexpr u32 outcome_cancelled = 1u << 31;

/// One failed or cancelled task, for the host, at place (tag - 1) % failures_kept. The tag tells a record from the one of a lap
/// before: no counter has to be ordered with it. A record is overwritten only when the host has read it (failures_read).
struct failure_record {
    u64 position;
    u32 ring;
    u32 status; ///< failed: the body's code; cancelled: tag of the record it goes back to
    u32 tag;    ///< number of the failure, from 1 on: 2^31 of them in the life of an engine
    bool cancelled;

    SLIPSTREAM_BOTH abi::chunk encode() const
    {
        return {{static_cast<u32>(position),
                 static_cast<u32>(position >> 32) | ring << 24 | (cancelled ? cancelled_bit : 0), status, tag}};
    }
    SLIPSTREAM_BOTH static failure_record decode(const abi::chunk& c)
    {
        return {c.w[0] | static_cast<u64>(c.w[1] & 0xffffff) << 32, c.w[1] >> 24 & 0x7f, c.w[2], c.w[3],
                (c.w[1] & cancelled_bit) != 0};
    }

    static constexpr u32 cancelled_bit = 1u << 31;
};
static_assert(rings_max <= 0x80);

/// Tasks of one ring that failed or were cancelled for one cause, or each for itself, one behind the other.
struct failed_run {
    u64 first; ///< task id: ring << 56 | position
    u32 count : 31;
    u32 each : 1; ///< each is its own cause, the next number
    u32 cause; ///< of the first

    SLIPSTREAM_BOTH u32 cause_of(u64 id) const { return cause + (each != 0 ? static_cast<u32>(id - first) : 0); }
};
static_assert(sizeof(failed_run) == 16);

/// The words of control_state::poison_state.
enum poison_word : u32 {
    poison_entry_count,
    poison_run_count,
    poison_everything, ///< 0, or the cause for which everything is poisoned
    poison_failures,   ///< failure numbers given
    poison_words
};

/// Where the host tells the kernel what to do. One 128-byte line per direction.
enum class command : u32 {
    run = 0,
    park = 1,  ///< leave at the next block boundary; state is kept
    drain = 2, ///< leave when everything published before this command is retired
    abort = 3, ///< leave now; nothing is kept
};

template <class P>
struct host_page {
    alignas(abi::line_bytes) typename P::template word<u32> command_word;
    alignas(abi::line_bytes) typename P::template word<u32> heartbeat;
    typename P::template word<u32> void_launch; ///< number of the last launch that did not go (muster.hpp)
    alignas(abi::line_bytes) typename P::template word<u32> failures_read; ///< host -> notifier: records that may be overwritten
    alignas(abi::line_bytes) typename P::chunk_word failures[failures_kept]; ///< the last ones; see failure_record
};

/// What one ring's submitter reads: what it has taken, and what is done, a line each.
template <class P>
struct ring_page {
    alignas(abi::line_bytes) typename P::template word<u64> consumed;  ///< ring slots taken by ingest
    alignas(abi::line_bytes) typename P::template word<u64> low_water; ///< all submissions below it are retired
    typename P::template word<u64> early_mark; ///< all below it are complete (bypass.hpp). In the line that who waits reads anyhow
};

template <class P>
struct ring_slot {
    typename P::chunk_word chunks[abi::slot_chunks];
};

/// Where worker 0 finds the task of a blank (watch.hpp).
struct blank_place {
    u64 at;      ///< position of its ring slot
    u32 handles; ///< so many the device knows

    SLIPSTREAM_BOTH abi::chunk encode() const { return {{static_cast<u32>(at), static_cast<u32>(at >> 32), handles, 0}}; }
    SLIPSTREAM_BOTH static blank_place decode(const abi::chunk& c) { return {c.w[0] | static_cast<u64>(c.w[1]) << 32, c.w[2]}; }
};

/// A task as its workers see it.
template <class P>
struct task_record {
    typename P::template cell<u32> words[abi::task_words_max]; ///< the task struct; of a watched one (watch.hpp) nobody's
    typename P::template cell<u32> blocks;
    typename P::template cell<u64> position; ///< of the submission in its ring, of a bypassed task only
    typename P::chunk_word blank;            ///< a blank_place: likewise, of a watched one
    alignas(64) typename P::template word<u32> next_block; ///< ticket counter
    typename P::template word<u32> status;                 ///< 0, or the code a body failed with
    typename P::template word<u32> failed_by;              ///< of the slot, not of the task: see finished_count
    typename P::template word<u64> finished;               ///< likewise
};

/// How many blocks have run in a window slot, so that the worker of a staged task sees by itself when those before it are done. It
/// counts on from task to task (those of more blocks than workers draw tickets, do not count, and are not waited for). The upper
/// bits count blocks that failed or were skipped, of the first such task only; failed_by is then that task's identity.
struct finished_count {
    u64 raw;
    static constexpr u64 block = 1;
    static constexpr u64 failed_block = block | 1ull << 48;

    SLIPSTREAM_BOTH u32 blocks() const { return static_cast<u32>(raw); }
    SLIPSTREAM_BOTH bool reached(u32 target) const { return static_cast<std::int32_t>(blocks() - target) >= 0; }
    SLIPSTREAM_BOTH bool has_failures() const { return raw >> 48 != 0; }
};

/// How many fences a part's scheduler has made (R4A5_step_fence), for workers of other parts; wraps. In the low half, as the blocks
/// of a finished_count: both are polled in one go.
template <class P>
struct alignas(abi::line_bytes) part_clock {
    typename P::template word<u64> fences;
};

/// What a staged task waits for: that the slot's finished_count has reached the target. As a chunk beside a mail it has the mail's
/// tag: mail and chunks may be seen in any order.
struct alignas(16) awaited_task {
    u32 slot; ///< of another part's task far_slot() (crossing_stage.hpp); in control_state a stand-in's with stand_in_bit
    u32 target;
    u32 identity; ///< identity_of(task id); of another part's task the fence of that part that is to be waited for, too

    static constexpr u32 stand_in_bit = 1u << 16;
    SLIPSTREAM_BOTH bool stands_in() const { return (slot & stand_in_bit) != 0; }
    SLIPSTREAM_BOTH awaited_task without_bit() const { return {slot & (stand_in_bit - 1), target, identity}; }

    SLIPSTREAM_BOTH abi::chunk encode(u32 tag) const { return {{slot, target, identity, tag}}; }
    SLIPSTREAM_BOTH static awaited_task decode(const abi::chunk& c) { return {c.w[0], c.w[1], c.w[2]}; }
    SLIPSTREAM_BOTH static u32 tag_in(const abi::chunk& c) { return c.w[3]; }
};

/// A worker's private mailbox: single producer. Behind them lies what a staged task waits for.
template <class P>
struct alignas(abi::line_bytes) mailbox {
    typename P::chunk_word mail[P::mailbox_depth];
    typename P::chunk_word waits[P::mailbox_depth][waits_max];
    typename P::template cell<u32> answered; ///< mails ever answered; the worker keeps it here between launches, as the next one
    typename P::template cell<u32> stumbles; ///< a bit for each of the last mails, the last one lowest: it failed or was skipped
    typename P::template cell<u32> heard;    ///< broadcasts (mail.hpp) that were answered, likewise
};

/// So many bypassed tasks (bypass.hpp) may be in flight, blanks included: from the mail until the slot is free again. More than a
/// mailbox has places, since a task is run long before the roles behind it have let it go.
template <class P>
constexpr u32 bypassed_max = 2 * P::mailbox_depth;

/// What ingest keeps of a watch (watch.hpp).
struct alignas(16) watch_book {
    enum state_name : u32 { off, on, closing };
    u32 state;
    u32 posted;  ///< id of the last blank; wraps at watch_word::ids
    u32 known;   ///< of the last one that is known to have become a task
    u32 waiting; ///< tasks that worker 0 has taken from the ring and ingest has not
    u32 withdrawn; ///< the id up to which watch_word says that blanks are
    u32 number;  ///< of the last mail to worker 0, blanks included
};

/// What the scheduler keeps of broadcasts (broadcast.hpp).
struct alignas(16) broadcast_book {
    u32 number;   ///< ever sent; wraps
    u32 unbooked; ///< of these, the last ones: they are not in `sent` and `seen` yet
    u32 first;    ///< worker of the next one's block 0
};
struct alignas(4) broadcast_entry {
    u16 slot;
    u16 first; ///< worker of its block 0
};

inline constexpr u32 retired_look = 1u << 31; ///< in the retired queue, beside a slot: it has an outcome to look at
inline constexpr u32 notices_max = 32;

/// What the notifier keeps of a retired task: its slot is given on before the host is told.
struct retired_entry {
    u64 position : 56;
    u64 ring : 8;
    u32 status;  ///< see task_outcome
    u32 failure;
};
static_assert(sizeof(retired_entry) == 16);

/// Sizes of one engine instance; fixed before start.
struct sizes {
    u32 window;      ///< slots, multiple of 32
    u32 window_used; ///< slots handed out, at most window: windows below 32 use a part of a group
    u32 rings;
    u32 ring_slots;
    u32 workers;
    u32 pool_blocks;      ///< blocks of pool_block_entries accesses, multiple of pool_word_blocks
    u32 pool_near_blocks; ///< so many of them, the first ones, lie in fast memory; multiple of pool_word_blocks
    u32 index_buckets;    ///< of each of the two tables of the access index: a power of two, or 0: there is none
    u32 ahead_slots;      ///< of the busy ring are looked at together, at most:
                          ///< ahead_slots_least to ahead_slots_max, a power of two
    u32 types;
    u32 handles;
    u32 log_capacity; ///< flight-log entries a worker can keep
    u32 sample_capacity; ///< control samples ingest can keep
    u32 staging;      ///< 1: tasks may be mailed before those that they wait for are complete
    u32 chaining;     ///< 1: to the same worker, behind them
    u32 bypass;       ///< 1: ingest may mail a task that comes alone
    u32 watch_after;  ///< behind so many of these worker 0 may take the next from the ring itself (watch.hpp); 0: never
    u32 broadcast_copies; ///< of each broadcast (broadcast.hpp), a power of two, at most 32: worker w reads number w % copies;
                          ///< 0: none are sent
    u32 parts;        ///< of the engine (crossing.hpp): 1, or 2 to abi::parts_max; this is number `part`
    u32 part;
    u32 lone_workers; ///< 1: a worker has its SM to itself and may poll with acquire loads (they empty the SM's L1)

    SLIPSTREAM_BOTH u32 groups() const { return window / 32; }
    /// Of the channel from one part to another, which has room for all there ever is: a message of a stand-in for each of the
    /// other's meetings, and an answer to each of the other's, whose stand-ins keep their window slots till they have read it.
    /// (Their meetings are given to others before.)
    SLIPSTREAM_BOTH u32 channel_slots() const { return power_of_two(abi::meetings_max + window); }
    SLIPSTREAM_BOTH u32 meetings() const { return parts > 1 ? abi::meetings_max : 0; }
    /// Of the channel from one part's linker to another's: a message of each stand-in there, which does not leave its window slot
    /// before that was read.
    SLIPSTREAM_BOTH u32 staging_channel_slots() const { return power_of_two(window); }
    /// What index_buckets should be where there is room: two a window slot, or tasks of 64 accesses fill them, and what spills
    /// is compared with everything.
    u32 index_buckets_wanted() const { return power_of_two(2 * window < index_buckets_max ? 2 * window : index_buckets_max); }
    SLIPSTREAM_BOTH u32 pool_words() const { return pool_blocks / pool_word_blocks; }
    SLIPSTREAM_BOTH bool successors_near() const { return window <= successors_near_max; }
    SLIPSTREAM_BOTH u32 worker_groups() const { return (workers + 31) / 32; }
    /// Capacity of the control block's queues: the window's slots, rounded up to a power of two.
    SLIPSTREAM_BOTH u32 queue_slots() const { return power_of_two(window); }
    SLIPSTREAM_BOTH static constexpr u32 power_of_two(u32 value)
    {
        u32 p = 1;
        while (p < value) p *= 2;
        return p;
    }
};

/// What crossed the bus, by the protocol's own count: accesses to pinned memory since the engine was made, in the unit that the
/// comment names. A role counts in its registers and in fast memory, and shows the host a copy in pinned memory when it ends.
enum bus_count : u32 {
    // ingest
    ring_chunks_looked, ///< loads of chunks of the rings, whether they had come or not
    ring_slots_taken,  ///< slots, the part of it that brought something
    handles_read,      ///< entries of the handle table
    stream_words_read, ///< join words, while a gate waits for a stream
    consumed_told,     ///< stores of ring_page.consumed
    samples_told,      ///< control samples due, those beyond their log's capacity included
    tasks_bypassed,    ///< mailed by ingest: worker 0 stores ring_page.early_mark for each that does not fail
    // notifier
    command_looks,         ///< loads of the command word; a heartbeat goes with each
    failure_looks,         ///< loads of failures_read and of the command word, while it waits for room for a record
    failures_told,         ///< failure records
    completion_words_told, ///< stores of a word of completion bits
    low_water_told,        ///< stores of ring_page.low_water
    // worker 0
    ring_chunks_watched, ///< its loads of chunks of a ring (watch.hpp), likewise
    bus_counts,
    notifier_counts = command_looks,
    worker_counts = ring_chunks_watched
};

/// One picked-up run of blocks with its times, kept when a flight log is asked for. Cost then: two looks at the clock a run
/// (three of a staged one) and this entry, stored to pinned memory behind the body; samples of ingest (below) once a poll
/// that took something.
struct flight_log_entry {
    u32 ring_and_type;
    u32 position;
    u32 block;
    u32 count_and_sm; ///< blocks << 16 (capped) | SM id
    u64 wait_ns; ///< staged: when the worker began to wait for the tasks before this one; else 0
    u64 start_ns;
    u64 end_ns;
};
static_assert(sizeof(flight_log_entry) == 40);

/// How full the window was when ingest had taken slots of a ring, or had taken window slots back; kept beside the flight log.
struct control_sample {
    u64 time_ns;
    u64 ring_taken; ///< slots ever taken of the ring
    u32 ring;       ///< or no_ring: window slots came back
    u32 occupied;   ///< window slots that ingest has given away and not got back
    static constexpr u32 no_ring = ~0u;
};
static_assert(sizeof(control_sample) == 24);

/// Who uses a handle, by stamps (handle_book.hpp); 0: nobody.
struct alignas(16) handle_page {
    static constexpr u32 readers_max = 11; ///< a fan-out of eight fits, beside what has not ended of the one before
    u32 writer;
    u32 readers[readers_max];
};
static_assert(sizeof(handle_page) == 48);

struct known_handle;

/// All memory that control block, workers and host share; a plain value handed to the kernel.
template <class P>
struct engine_memory {
    sizes n;
    // pinned
    ring_slot<P>* rings; ///< ring r starts at r * ring_slots
    host_page<P>* page;
    ring_page<P>* ring_pages;
    typename P::template word<u32>* complete_bits; ///< [rings][completion_words]
    typename P::chunk_word* recorder;              ///< [workers]
    const abi::handle_entry* handles;              ///< written by the host before a handle is used
    flight_log_entry* flight_log;                  ///< [workers][log_capacity], or null
    control_sample* control_log;                   ///< [sample_capacity], or null
    typename P::template cell<u64>* picks;         ///< [workers] flight records ever stored, one for each run of blocks picked up
    typename P::template cell<u64>* bus;           ///< [bus_counts]
    typename P::template word<u32>* stream_joins;  ///< see host/stream_join.hpp; an `after` entry names one of them
    // device
    task_record<P>* records;
    mailbox<P>* mailboxes; ///< [workers + broadcast_copies] the last ones are of broadcasts
    typename P::template word<u32>* done;
    typename P::template word<u64>* watch;        ///< see watch_word
    const abi::task_type* types;                  ///< [types] for worker 0, which may decode a message; else control_state's
    typename P::template cell<known_handle>* handle_cache; ///< the first control_counter::handles_known of them
    typename P::template cell<handle_page>* handle_pages; ///< [handles] see handle_book.hpp
    typename P::template word<u32>* stop;
    typename P::template word<u64>* channels; ///< [parts][parts][channel_slots] from, to: see crossing.hpp; null: one part
    typename P::chunk_word* staging_channels; ///< [parts][parts][staging_channel_slots] likewise: see crossing_stage.hpp
    task_record<P>** part_records;            ///< [parts] where each part has its records
    u32* complete_mirror; ///< [rings][completion_words], the notifier's own copy of the bits
    part_clock<P>* part_clocks; ///< [parts]
};

enum class stop_level : u32 { none = 0, park = 1, abort = 2 };

/// Where one of the plain messages in hand begins, and the place it was given.
struct message_place {
    u32 first_chunk; ///< among the staged ones
    u32 slot;
    u32 top; ///< the pool's stack when its blocks were taken
};

/// What the scheduler needs of a task to mail it; written by ingest, 16 bytes in one load.
struct alignas(16) task_head {
    u32 slot_and_type; ///< as in a mail
    u32 identity;      ///< as in a mail: identity_of(task id)
    u32 blocks;
    u32 entries_and_flags; ///< stored entries | message flags << 16 | bypass_bit

    SLIPSTREAM_BOTH u32 entries() const { return entries_and_flags & 0xffff; }
    SLIPSTREAM_BOTH bool has(u32 flag) const { return (entries_and_flags >> 16 & flag) != 0; }
    SLIPSTREAM_BOTH bool whole_memory() const { return has(abi::flag_whole_memory); }
    /// See crossing.hpp, as the next one.
    SLIPSTREAM_BOTH bool crosses() const { return blocks != 0 && has(abi::flag_crossing); }
    SLIPSTREAM_BOTH bool stands_in() const { return blocks == 0; }
    /// Ingest has mailed it.
    SLIPSTREAM_BOTH bool bypassed() const { return (entries_and_flags & bypass_bit) != 0; }

    static constexpr u32 bypass_bit = 1u << 31;
};

/// What marks number `number` of a row of messages that never ends: a mail, or a message between parts. Never 0, also
/// when the number wraps.
SLIPSTREAM_BOTH u32 tag_of(u32 number) { return number | 1u << 31; }

inline constexpr u32 identity_position_bits = 27;
inline constexpr u32 identity_position_mask = (1u << identity_position_bits) - 1;

/// A submission in 31 bits, for mails and flight records: low 27 bits of the position | ring << 27.
SLIPSTREAM_BOTH u32 identity_of(u64 task_id)
{
    return (static_cast<u32>(task_id) & identity_position_mask) | static_cast<u32>(task_id >> 56) << identity_position_bits;
}

/// An access as the table keeps it: both ends at hand, since they are all that most comparisons need. The shape of a rectangle
/// (abi::access_entry::tail) lies apart, in pool_shapes.
struct alignas(16) table_entry {
    u64 head; ///< as in abi::access_entry; bit 63: registered
    u64 hi;   ///< end of the bounding range; of an `after` entry: the position

    /// `registered`: by a handle. Handles are pairwise the same memory or disjoint, so that two registered rectangles (tiles),
    /// whose exact test takes divisions, overlap when they begin at the same place.
    SLIPSTREAM_BOTH static table_entry of(const abi::access_entry& e, bool by_handle = false)
    {
        const bool marked = by_handle && e.is_memory();
        return {e.head | static_cast<u64>(marked) << 63, e.is_memory() ? e.end() : e.tail};
    }
    SLIPSTREAM_BOTH bool registered() const { return (head >> 63) != 0; }
    SLIPSTREAM_BOTH bool is_tile() const { return registered() && is_rect(); }
    SLIPSTREAM_BOTH abi::entry_kind kind() const { return static_cast<abi::entry_kind>(head >> 60 & 7); }
    SLIPSTREAM_BOTH bool is_rect() const { return kind() == abi::entry_kind::rect; }
    SLIPSTREAM_BOTH bool writes() const { return (head >> 58 & 1) != 0; }
    SLIPSTREAM_BOTH u64 begin() const { return head & abi::access_entry::address_mask; }
    SLIPSTREAM_BOTH u64 end() const { return hi; }
    SLIPSTREAM_BOTH u32 after_ring() const { return static_cast<u32>(head & 0xff); }
    SLIPSTREAM_BOTH u64 after_position() const { return hi; }
    SLIPSTREAM_BOTH abi::access_entry access(u64 shape) const
    {
        return {head & ~(u64{1} << 63), is_rect() ? shape : kind() == abi::entry_kind::after ? hi : hi - begin()};
    }
};
static_assert(sizeof(table_entry) == 16);

/// What a handle names, made ready when the device first hears of it: an access by it, and what its member of a task struct
/// says, are a few instructions.
struct alignas(16) known_handle {
    u64 head; ///< of the table_entry, without a mode
    u64 hi;   ///< likewise
    u64 size; ///< as in a member: bytes, or those of a row | handle + 1 << 40
    u32 rows;
    u32 pitch; ///< 0: a range

    SLIPSTREAM_BOTH static known_handle of(const abi::handle_entry& h, u32 index)
    {
        const table_entry e =
            table_entry::of(h.rows != 0 ? abi::access_entry::rect(abi::access_mode::none, h.address, h.bytes, h.rows, h.pitch)
                                        : abi::access_entry::range(abi::access_mode::none, h.address, h.bytes),
                            true);
        return {e.head, e.hi, h.bytes | static_cast<u64>(index + 1) << 40, h.rows != 0 ? h.rows : 1, h.rows != 0 ? h.pitch : 0};
    }
    SLIPSTREAM_BOTH table_entry entry(abi::access_mode mode) const
    {
        return {head | abi::access_entry::make(abi::entry_kind::none, mode, 0, 0).head, hi};
    }
    SLIPSTREAM_BOTH u64 bytes() const { return size & ((u64{1} << 40) - 1); }
    SLIPSTREAM_BOTH u32 index() const { return static_cast<u32>(size >> 40) - 1; }
    /// For pool_shapes, of a rectangle.
    SLIPSTREAM_BOTH u64 shape() const { return abi::access_entry::rect_tail(bytes(), rows, pitch); }
};
static_assert(sizeof(known_handle) == 32);

/// What the linker asks of a task that it has taken in, in one load.
struct linked_load {
    u32 word; ///< blocks (0: it draws tickets, or stands in) | clears_bit | stands_in_bit | crosses_bit | brief_bit
              ///< | successors entered so far << 16

    static constexpr u32 clears_bit = 1u << 12;
    static constexpr u32 stands_in_bit = 1u << 13;
    static constexpr u32 crosses_bit = 1u << 14;
    static constexpr u32 brief_bit = 1u << 15;
    static constexpr u32 successor = 1u << 16;
    SLIPSTREAM_BOTH u32 blocks() const { return word & (clears_bit - 1); }
    SLIPSTREAM_BOTH bool clears() const { return (word & clears_bit) != 0; } ///< failures: clear_failure()
    SLIPSTREAM_BOTH bool stands_in() const { return (word & stands_in_bit) != 0; }
    SLIPSTREAM_BOTH bool crosses() const { return (word & crosses_bit) != 0; }
    SLIPSTREAM_BOTH bool brief() const { return (word & brief_bit) != 0; }
    SLIPSTREAM_BOTH u32 successors() const { return word >> 16; }
};
static_assert(window_slots_max <= 0xffff);

/// Whose accesses a pool block holds, and which of them are what.
struct pool_tag {
    u32 word; ///< window slot | memory mask << 16 | `after` mask << 20
              ///< | mask of entries not yet resolved << 24 (entry_resolver.hpp)

    SLIPSTREAM_BOTH static pool_tag make(u32 slot, u32 memory, u32 after) { return {slot | memory << 16 | after << 20}; }
    SLIPSTREAM_BOTH static pool_tag waiting(u32 slot, u32 unresolved) { return {slot | unresolved << 24}; }
    SLIPSTREAM_BOTH u32 slot() const { return word & 0xffff; }
    SLIPSTREAM_BOTH u32 memory() const { return word >> 16 & 15; }
    SLIPSTREAM_BOTH u32 after() const { return word >> 20 & 15; }
    SLIPSTREAM_BOTH u32 unresolved() const { return word >> 24 & 15; }
};
static_assert(pool_block_entries == 4);

/// A bucket of the access index (access_index.hpp).
struct alignas(16) index_bucket {
    u32 places[index_places];
    u32 spilled;
};

/// A cell of memory that tasks of admission's batch touch (access_batch.hpp), and which, a bit each. All 0 between batches.
struct alignas(16) batch_cell {
    u32 key;
    u32 writers;
    u32 readers;
    u32 entered; ///< by the book: 0 until somebody has written the handle's page
};

/// How far a ring is taken in. Owned by ingest.
struct ring_progress {
    u64 position;  ///< slots consumed
    u64 published; ///< slots the submitter was told of
    u64 messages;  ///< messages handed on
    u32 stage;     ///< see ingest
    u32 slot;      ///< of the message at the head
};

/// How far a message is that is decoded as it arrives.
struct message_progress {
    u32 entries_left;
    u32 scalars_left;
    u32 entry;  ///< entries stored so far
    u32 member; ///< accesses seen so far
    u32 scalar; ///< scalar words stored so far
    u32 type;
    u32 last_block;
    u32 flags; ///< message_flags
};

/// A task that may be mailed, on its way from linker to scheduler: it waits for nobody, or it is staged and its workers wait.
struct ready_entry {
    u32 word; ///< window slot | waits << 12 | low 16 bits of its link number << 16: the count of linked tasks, this one included

    SLIPSTREAM_BOTH static ready_entry make(u32 slot, u32 number, u32 waits = 0) { return {slot | waits << 12 | number << 16}; }
    static constexpr u32 slot_mask = 0xfff;
    SLIPSTREAM_BOTH u32 slot() const { return word & slot_mask; }
    SLIPSTREAM_BOTH u32 waits() const { return word >> 12 & 0xf; } ///< see control_state::set_awaited
    SLIPSTREAM_BOTH u32 number() const { return word >> 16; }
    /// Was it linked after `count` tasks were? May be true of one that was linked very long before (scheduler::is_late). The
    /// other way round it never errs while `count` is recent: between two fences of a launch no more than a window of tasks
    /// can be linked, far fewer than 2^15.
    SLIPSTREAM_BOTH bool linked_after(u32 count) const { return static_cast<std::int16_t>((word >> 16) - count) > 0; }
};
static_assert(window_slots_max <= 1u << 12 && waits_max < 16);

/// What the home of a crossing task knows of one of its stand-ins (crossing_stage.hpp).
struct alignas(8) stand_in_place {
    u32 target; ///< of the one task that it waits for, if that is known: what its slot's finished_count has to reach
    u32 slots;  ///< the stand-in's | that task's << 16
};

/// The stand-ins for which a task's worker counts a block (crossing_stage.hpp): 16 bits each, 0 behind the last one.
struct alignas(16) stand_in_list {
    u32 pairs[3];
    u32 unused;

    static constexpr u32 most = abi::stand_ins_counted_max;
    static_assert(most == 6);
    static constexpr u32 there = 1u << 15;
    SLIPSTREAM_BOTH static u32 entry(u32 part, u32 slot) { return there | part << 12 | slot; }
    SLIPSTREAM_BOTH static u32 part_of(u32 entry) { return entry >> 12 & 7; }
    SLIPSTREAM_BOTH static u32 slot_of(u32 entry) { return entry & 0xfff; }
    /// Entry i < most, or 0. No index: on the GPU the list would lie in memory for it.
    SLIPSTREAM_BOTH u32 at(u32 i) const { return (i < 2 ? pairs[0] : i < 4 ? pairs[1] : pairs[2]) >> i % 2 * 16 & 0xffff; }
    SLIPSTREAM_BOTH abi::chunk encode(u32 tag) const { return {{pairs[0], pairs[1], pairs[2], tag}}; }
    SLIPSTREAM_BOTH static u32 entry_in(const abi::chunk& c, u32 i) { return c.w[i / 2] >> i % 2 * 16 & 0xffff; }
};
static_assert(window_slots_max <= 1u << 12 && abi::parts_max <= 8);

/// The predecessors of a task when it was linked, while they are few: their number, and the first ones. See
/// control_state::predecessor.
struct alignas(8) predecessor_list {
    u16 number; ///< which may be more than there is room for
    u16 slots[waits_near_max];

    SLIPSTREAM_BOTH bool complete() const { return number <= waits_max; }
};
static_assert(window_slots_max <= 0xffff);

/// Those that it has no room for, in memory that is far: read whole, so that all loads fly together.
struct more_predecessors {
    static constexpr u32 at_once = 4;
    static constexpr u32 most = waits_far_max;
    struct alignas(8) four_slots {
        u16 slots[at_once];
    } fours[most / at_once];
    static_assert(most == 3 * at_once);

    /// Four of them, 16 bits each. No index, as above.
    SLIPSTREAM_BOTH u64 four(u32 n) const
    {
        const u64 first = std::bit_cast<u64>(fours[0]), second = std::bit_cast<u64>(fours[1]), third = std::bit_cast<u64>(fours[2]);
        return n == 0 ? first : n == 1 ? second : third;
    }
    SLIPSTREAM_BOTH static u32 in_four(u64 slots, u32 i) { return static_cast<u32>(slots >> 16 * i) & 0xffff; }
};

/// A task that is linked with others.
struct entering_task {
    u32 nearest; ///< of its predecessors the one that was linked last: how many were since << 16 | slot; ~0: it has none
    u32 entered; ///< of its predecessors, that one counted
};

/// What the scheduler tells the linker of a task.
enum class report_kind : u32 {
    completed, ///< its blocks have run
    failed,    ///< likewise, and a body of it failed
    cancelled, ///< complete, but never mailed
    skipped,   ///< mailed staged, and not run: one before it failed. It waits like any other from now on
    declined,  ///< staged, and not mailed for fear of that. Likewise
};

struct report {
    u32 word; ///< window slot | kind << 16

    SLIPSTREAM_BOTH static report make(report_kind kind, u32 slot) { return {slot | static_cast<u32>(kind) << 16}; }
    SLIPSTREAM_BOTH u32 slot() const { return word & 0xffff; }
    SLIPSTREAM_BOTH report_kind kind() const { return static_cast<report_kind>(word >> 16); }
};

/// Between admission and linker: a window slot, and whether a row of predecessors comes with it.
inline constexpr u32 admitted_free = 1u << 31; ///< waits for nobody: no row

// The control block's own memory as a list: field, type, where it lies, how many. One list makes the offsets (host) and the
// pointers (device). `near` is fast memory, `far` device memory.
//   ingest alone     progress .. free_slot_count
//   nobody, once initialised   types
//   ingest fills while a slot is filling; the roles behind it read once it is decoded   pool_next .. first_block
//   admission alone  live, index, book, exposed, hidden, orders, batch; it fills a row of predecessors before it hands the task on
//   notifier alone   notices, flips, low_water
//   linker alone     arriving .. targets, but for brief, joins and joins_both; meetings, crossings_linked, stand_ins,
//                    stand_in_lists (which the scheduler reads), counted, pointed_at, staging_*, fences_named. The scheduler reads
//                    `targets` of broadcasts that are out, which stand still meanwhile
//   ingest alone     watch
//   ingest while a slot is filling, then linker and scheduler read   crossings
//   between ingest and scheduler   bypass_number, bypass_slots, first_sent; the scheduler alone   bypass_adopted (bypass.hpp)
//   linker fills before a task is handed over; the scheduler reads   brief, joins, joins_both, waits_near, waits_far
//   scheduler alone  dealt and all that follow (ingest sets dealt and outstanding while a slot is filling), but for bus (ingest and
//                    notifier), counters (each has its role), hidden and fences_named (above)
#define SLIPSTREAM_CONTROL_FIELDS(X)                                                                                    \
    X(free_tail, word<u32>, near, 1)                                                                                    \
    X(free_head, word<u32>, near, 1)                                                                                    \
    X(free_entries, cell<u16>, near, s.queue_slots())                                                                   \
    X(decoded_tail, word<u32>, near, 1)                                                                                 \
    X(decoded_head, word<u32>, near, 1)                                                                                 \
    X(decoded_entries, cell<u16>, near, s.queue_slots())                                                                \
    X(admitted_tail, word<u32>, near, 1)                                                                                \
    X(admitted_head, word<u32>, near, 1)                                                                                \
    X(admitted_entries, cell<u32>, near, admitted_max)                                                                  \
    X(predecessors, cell<u32>, near, admitted_max * s.groups()) /* a row for each place in the admitted queue */        \
    X(named_count, cell<u32>, near, admitted_max) /* likewise: how many slots the row names, */                         \
    X(named, cell<u16>, near, admitted_max * waits_max) /* and the first ones, in no order */                           \
    X(report_tail, word<u32>, near, 1)                                                                                  \
    X(report_head, word<u32>, near, 1)                                                                                  \
    X(report_entries, cell<report>, near, s.queue_slots())                                                              \
    X(arrived_tail, word<u32>, near, 1)                                                                                 \
    X(arrived_head, word<u32>, near, 1)                                                                                 \
    X(arrived_entries, cell<u32>, near, s.parts > 1 ? arrived_max : 0)                                                  \
    X(ready_tail, word<u32>, near, 1)                                                                                   \
    X(ready_head, word<u32>, near, 1)                                                                                   \
    X(ready_entries, cell<ready_entry>, near, s.queue_slots())                                                          \
    X(linked, word<u32>, near, 1) /* tasks ever linked; wraps */                                                        \
    X(finished_tail, word<u32>, near, 1)                                                                                \
    X(finished_head, word<u32>, near, 1)                                                                                \
    X(finished_entries, cell<u16>, near, s.queue_slots())                                                               \
    X(retired_tail, word<u32>, near, 1)                                                                                 \
    X(retired_head, word<u32>, near, 1)                                                                                 \
    X(retired_entries, cell<u32>, near, s.queue_slots())                                                                \
    X(request, word<u32>, near, 1)         /* notifier -> the other roles: a command */                                 \
    X(ingest_phase, word<u32>, near, 1)    /* ingest -> admission */                                                    \
    X(admission_phase, word<u32>, near, 1) /* admission -> linker */                                                    \
    X(link_phase, word<u32>, near, 1)      /* linker -> scheduler */                                                    \
    X(schedule_phase, word<u32>, near, 1)  /* scheduler -> notifier */                                                  \
    X(progress, ring_progress, near, s.rings)                                                                           \
    X(streamed, message_progress, near, s.rings)           /* the one at the head */                                    \
    X(incoming, u32, near, staged_rings * staged_slots * 16) /* ring slots of the poll in hand */                         \
    X(kept, u32, near, (staged_slots + s.ahead_slots) * 16)    /* of the busy ring: see ingest */                           \
    X(halves, u32, near, 3 * s.rings)                      /* first chunk of a two-chunk entry */                       \
    X(message_places, message_place, near, batch_messages) /* the plain messages in hand */                             \
    X(pool_free, u32, near, s.pool_blocks)                 /* stack of free pool blocks, the lowest on top at first */  \
    X(pool_free_count, u32, near, 1)                                                                                    \
    X(free_slots, u32, near, s.window)   /* stack of free window slots, likewise */                                     \
    X(free_slot_count, u32, near, 1)                                                                                    \
    X(types, abi::task_type, near, s.types)                                                                             \
    X(pool_next, cell<u32>, near, s.pool_blocks)    /* block index or no_block */                                       \
    X(pool_tags, cell<u32>, near, s.pool_blocks)    /* see pool_tag */                                                  \
    X(pool_near, cell<table_entry>, near, s.pool_near_blocks * pool_block_entries)                                \
    X(pool_far, cell<table_entry>, far, (s.pool_blocks - s.pool_near_blocks) * pool_block_entries)                \
    X(pool_shapes, cell<u64>, far, s.pool_blocks * pool_block_entries) /* of rectangles only */                         \
    X(pool_handles, cell<u32>, far, s.pool_blocks * pool_block_entries) /* of registered accesses                       \
                                                                           that ingest has resolved: the handle */      \
    X(task_id, cell<u64>, near, s.window)     /* ring << 56 | position */                                               \
    X(heads, cell<task_head>, near, s.window)                                                                           \
    X(first_block, cell<u32>, near, s.window) /* pool block or no_block */                                              \
    X(live, u32, near, s.pool_words())   /* a bit an access: in use and not yet superseded */                           \
    X(index_buckets, index_bucket, near, 2 * s.index_buckets)                                                           \
    X(indexed, u32, near, s.pool_words()) /* a bit an access: live, and in a bucket or spilled */                       \
    X(index_live, u32, near, index_classes) /* live accesses of each class */                                           \
    X(index_at, u16, near, s.pool_near_blocks * pool_block_entries) /* where the index has an access (access_index.hpp) */ \
    X(epochs, u16, near, s.window)       /* see handle_book, as the next two */                                         \
    X(booked, u32, near, s.groups())     /* a bit a slot: admission's book knows its accesses */                        \
    X(spilled, u32, near, s.groups())    /* a bit a slot: of these, those of which it had no room for one */            \
    X(exposed, u32, near, s.groups())    /* a bit a slot: admitted, not finished, not hidden by a whole-memory task */  \
    X(orders, u32, near, 2 * order_words) /* to the crew's other teams, in two halves as the next six: see admission::job */ \
    X(batch_slots, u32, near, 2 * batch_max)  /* window slots of the tasks of admission's batch */                      \
    X(batch_spans, u32, near, 2 * batch_max)  /* first of their blocks in batch_blocks | how many << 8                  \
                                                 | how many came in batches before << 16 */                             \
    X(batch_blocks, u32, near, 2 * batch_max) /* pool block | task << 24 */                                             \
    X(finished_slots, u32, near, 2 * batch_max) /* of the finished tasks that the same order forgets */                 \
    X(finished_blocks, u32, near, 2 * batch_max) /* and their first pool blocks */                                      \
    X(batch_marks, u32, near, 2 * batch_marks_max) /* see access_batch */                                               \
    X(batch_dead, u32, near, batch_max * pool_block_entries / 32) /* a bit an access: a later one of the batch covers it */ \
    X(batch_grids, u32, near, batch_max * pool_block_entries / 32) /* of a team: coarsest grid | raw ranges << 31 */    \
    X(batch_scans, u32, near, batch_max)  /* of batch_blocks | accesses to be compared with all << 8 */                 \
    X(covered, u32, near, s.pool_words()) /* a bit an access: live, and covered by the batch in hand; else 0 */         \
    X(covered_list, u32, near, covered_max) /* their numbers in the pool */                                             \
    X(batch_cells, batch_cell, near, 1u << batch_cells_bits)                                                            \
    X(notices, retired_entry, near, notices_max) /* of the batch in hand: those that have an outcome to look at */        \
    X(flips, u32, near, notices_max)     /* bits of a word of completion bits that the batch completes; 0 between batches */ \
    X(low_water, u64, near, s.rings)                                                                                    \
    X(bypass_number, word<u32>, near, 1) /* of the last mail that ingest sent; wraps, as the others */                    \
    X(bypass_slots, cell<u32>, near, bypassed_max<P>)  /* and of each of the last ones, by its number, the slot */         \
    X(bypass_adopted, u32, near, 1)      /* the last number that the scheduler has taken into its count */                \
    X(first_sent, cell<u32>, near, 1)    /* mails ever sent to worker 0, when nothing was in flight last */               \
    X(watch, watch_book, near, 1)        /* see watch.hpp */                                                             \
    X(crossings, u32, near, s.parts > 1 ? s.window : 0) /* abi::crossing_word of a task that crosses, or a stand-in */    \
    X(crossings_linked, word<u32>, near, 1) /* so many of these were ever linked; wraps */                               \
    X(meetings, u32, near, s.meetings()) /* see crossing_stage */                                                        \
    X(stand_ins, stand_in_place, far, s.meetings() * s.parts) /* likewise, as the next five */                           \
    X(stand_in_lists, cell<stand_in_list>, far, s.parts > 1 ? s.window : 0)                                              \
    X(counted, u32, near, s.parts > 1 ? s.groups() : 0)                                                                  \
    X(pointed_at, u32, near, s.parts > 1 ? s.groups() : 0)                                                               \
    X(staging_sent, u32, near, s.parts)  /* messages ever sent to each part's linker; wraps */                           \
    X(staging_seen, u32, near, s.parts)  /* ever taken from it; wraps */                                                 \
    X(arriving, u32, near, s.groups())   /* a bit a slot: being linked, with others */                                  \
    X(in_flight, u32, near, s.groups())  /* a bit a slot: linked, not complete */                                       \
    X(old, u32, near, s.groups())        /* a bit a slot: linked so long ago that its number says nothing any more */     \
    X(successors_near, u32, near, s.successors_near() ? s.window * s.groups() : 0)                                      \
    X(successors_far, u32, far, s.successors_near() ? 0 : s.window * s.groups())                                        \
    X(listed_near, u16, near, s.successors_near() ? s.window * successors_listed : 0) /* of each slot, the slots        \
                                                                                         of its first successors */     \
    X(listed_far, u16, far, s.successors_near() ? 0 : s.window * successors_listed)                                     \
    X(entering, entering_task, near, 32) /* tasks that are linked together: see dependency_table */                     \
    X(having_items, u32, near, 32)       /* of the n-th task that has items: which it is | items of those before << 8 */  \
    X(woken, u32, near, 32)              /* of the reports in hand: slot | successors that are listed << 16 */           \
    X(identities, u32, near, s.window)   /* of the task in a slot: see dependency_table::note */                        \
    X(loads, linked_load, near, s.window) /* likewise */                                                                \
    X(pending, u32, near, s.window)      /* predecessors not yet complete | link number << 16 */                        \
    X(handed, u32, near, s.groups())     /* a bit a slot: handed to the scheduler and not complete; others may be staged behind */ \
    X(staged, u32, near, s.groups())     /* a bit a slot: of these, those that wait */                                  \
    X(early, u32, near, s.groups())      /* a bit a slot: reported complete before one that it waits for */             \
    X(tainted, u32, near, s.groups())    /* a bit a slot: its finished_count has failures */                            \
    X(brief, u32, near, s.groups() + 1)  /* a bit a slot: its type promises it; and of none (broadcast.hpp) */          \
    X(joins, u32, near, s.groups())      /* a bit a slot: brief, and handed over staged                                 \
                                            when nobody else waited for the last of those that it waits for */          \
    X(joins_both, u32, near, s.groups()) /* likewise, when one other did */                                             \
    X(waits_for, predecessor_list, near, s.window) /* of the task that was linked last */                               \
    X(waits_for_more, more_predecessors, far, s.window) /* the slots that it has no room for */                          \
    X(order_at, u32, near, s.window)     /* its place in link_order, or one that never comes */                         \
    X(link_order, u32, near, s.queue_slots()) /* ready_entry words of the last tasks linked that wait; see linker */    \
    X(targets, cell<u32>, near, s.window) /* what the slot's finished_count comes to with the task that was handed over last */ \
    X(waits_near, cell<awaited_task>, near, (s.window + 1) * waits_near_max) /* of a staged task, the first ones */     \
    X(waits_far, cell<awaited_task>, far, s.window * waits_far_max) /* and the others */                                \
    X(dealt, cell<u32>, near, s.window)  /* blocks mailed */                                                            \
    X(outstanding, cell<u32>, near, s.window + 1) /* see scheduler; the last one: broadcast.hpp */                       \
    X(broadcast, broadcast_book, near, 1) /* see broadcast.hpp, as the next one */                                      \
    X(broadcast_entries, broadcast_entry, near, P::mailbox_depth) /* of the last ones, by number */                     \
    X(sent, u32, near, 32 * s.worker_groups())   /* mails ever sent to a worker; wraps */                               \
    X(seen, u32, near, 32 * s.worker_groups())   /* answers ever taken from it */                                       \
    X(mailed, u16, near, 32 * s.worker_groups() * P::mailbox_depth) /* slots of its last mails */                       \
    X(runs_on, u16, near, s.window)      /* 1 + the worker that a one-block task was mailed to last, or 0; see scheduler */ \
    X(parcel_links, u32, near, 32)       /* of the parcel in hand: see scheduler */                                     \
    X(parcel_workers, u32, near, 32)     /* likewise */                                                                 \
    X(parcel_roots, u32, near, 32)       /* likewise */                                                                 \
    X(waits_sent, u32, near, s.parts > 1 ? 32 * s.worker_groups() : 0) /* of these, the last one that waits for others */  \
    X(turns, u32, near, s.parts > 1 ? 32 * s.worker_groups() : 0) /* likewise, but that nobody falls far behind: see scheduler */ \
    X(taken, u32, near, s.worker_groups()) /* a bit a worker: a task of the parcel in hand comes behind its last mail */ \
    X(batch, u32, near, s.queue_slots()) /* slots completed in this step */                                             \
    X(meeting_slots, u16, near, s.meetings() * s.parts) /* 1 + slot of the stand-in in each part that is to be answered */ \
    X(meeting_held, u32, near, s.meetings()) /* 1 + slot of the task, if it is done and has to wait for a stand-in's word \
                                                | how many stand-ins have said that they are ready << 16 */                \
    X(unretired, u32, near, s.parts > 1 ? s.groups() : 0) /* a bit a slot: complete, but a stand-in, not said to be ready \
                                                             yet, or a task with such a one (crossing.hpp) */          \
    X(told, u32, near, s.parts > 1 ? s.groups() : 0) /* a bit a slot: a stand-in that is said to be ready, and not answered */ \
    X(meetings_bad, u32, near, s.meetings() / 32) /* a bit a meeting: a stand-in of it was cancelled,                   \
                                                     and the task has not been looked at */                             \
    X(crossing_words, u64, near, s.parts > 1 ? crossing_words_max : 0) /* the scheduler's: see crossing */                \
    X(crossings_ended, u32, near, 1)     /* tasks that cross and stand-ins that ever came to their end; wraps */          \
    X(channel_sent, u32, near, s.parts)  /* messages ever sent to each part; wraps */                                    \
    X(channel_seen, u32, near, s.parts)  /* ever taken from it; wraps */                                                 \
    X(bus, u64, near, bus_counts)        /* what ingest and notifier have counted: see bus_count */                     \
    X(counters, u32, near, 20)                                                                                          \
    X(poison_state, u32, far, poison_words)                                                                             \
    X(poison_entries, abi::access_entry, far, poison_entries_max)                                                       \
    X(poison_causes, u32, far, poison_entries_max)                                                                      \
    X(poison_runs, failed_run, far, failed_runs_max)                                                                    \
    X(poison_judged, u64, far, s.window)            /* id + 1 of the task that was found free of poison */              \
    X(poison_cause_of, u32, far, s.window)          /* cause of a cancelled task until it is settled */                 \
    X(poison_outcomes, task_outcome, far, s.window) /* of a settled task, until the notifier has read it */             \
    X(poison_pending, u32, far, s.queue_slots())    /* cancelled, to be completed by the next step */                   \
    X(hidden, u32, near, s.parts > 1 ? s.groups() : 0) /* a bit a slot: not finished, not exposed: a whole-memory task hides it */ \
    X(fences_named, u32, near, s.parts)  /* the last fence of each part that its linker has named */                     \
    X(fences_promised, word<u32>, near, 1) /* from scheduler to linker: this part's fence that covers what the linker knows */

/// Where a role stands, for the role behind it: stopped by a park, or dry (nothing will come any more).
enum class feed_phase : u32 { running = 0, stopped = 1, dry = 2 };

/// Byte offsets of the control block's fields in fast or device memory; computed once on the host.
struct control_offsets {
#define SLIPSTREAM_OFFSET(name, type, place, count) u32 name;
    SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_OFFSET)
#undef SLIPSTREAM_OFFSET
    u32 near_bytes;
    u32 far_bytes;
};

/// The control block's own memory: pointers only. On the GPU they are the fast memory's base plus a kernel parameter, which
/// the compiler folds into each access: no pointer is ever loaded.
template <class P>
struct control_state {
    template <class T> using word = typename P::template word<T>;
    template <class T> using cell = typename P::template cell<T>;

#define SLIPSTREAM_POINTER(name, type, place, count) type* name;
    SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_POINTER)
#undef SLIPSTREAM_POINTER
    u32 queue_slots;
    u32 arrived_slots = arrived_max;
    u32 pool_near_blocks;
    bool rows_near;

    /// Points the fields into memory blocks laid out by measure().
    SLIPSTREAM_BOTH control_state(const sizes& s, const control_offsets& o, unsigned char* near_base, unsigned char* far_base)
        : queue_slots(s.queue_slots()), pool_near_blocks(s.pool_near_blocks), rows_near(s.successors_near())
    {
#define SLIPSTREAM_ATTACH(name, type, place, count) name = reinterpret_cast<type*>(place##_base + o.name);
        SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_ATTACH)
#undef SLIPSTREAM_ATTACH
    }

    /// Takes each field from an allocator with take<T>(count): what the model platform uses, whose words are objects.
    template <class Allocator>
    control_state(const sizes& s, Allocator& memory)
        : queue_slots(s.queue_slots()), pool_near_blocks(s.pool_near_blocks), rows_near(s.successors_near())
    {
#define SLIPSTREAM_TAKE(name, type, place, count) name = memory.template take<type>(count);
        SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_TAKE)
#undef SLIPSTREAM_TAKE
    }

    static control_offsets measure(const sizes& s)
    {
        control_offsets o{};
        u32 near = 0;
        u32 far = 0;
#define SLIPSTREAM_MEASURE(name, type, place, count)                                                                   \
    place = (place + 15) / 16 * 16;                                                                                    \
    o.name = place;                                                                                                    \
    place += static_cast<u32>(sizeof(type) * (count));
        SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_MEASURE)
#undef SLIPSTREAM_MEASURE
        o.near_bytes = (near + 15) / 16 * 16;
        o.far_bytes = (far + 15) / 16 * 16;
        return o;
    }

    // Near or far is asked at each access: a pointer to either would be generic, and generic loads are slower than both.
    /// Access `at` of a pool block.
    SLIPSTREAM_BOTH table_entry pool_entry(u32 block, u32 at) const
    {
        if (block < pool_near_blocks) return P::get(pool_near[block * pool_block_entries + at]);
        return P::get(pool_far[(block - pool_near_blocks) * pool_block_entries + at]);
    }
    SLIPSTREAM_BOTH void set_pool_entry(u32 block, u32 at, const table_entry& entry) const
    {
        if (block < pool_near_blocks) P::set(pool_near[block * pool_block_entries + at], entry);
        else P::set(pool_far[(block - pool_near_blocks) * pool_block_entries + at], entry);
    }
    /// Access `k` of the 32 that share word `w` of the live bits.
    SLIPSTREAM_BOTH table_entry numbered_entry(u32 number) const
    {
        return pool_entry(number / pool_block_entries, number % pool_block_entries);
    }
    SLIPSTREAM_BOTH table_entry word_entry(u32 w, u32 k) const
    {
        return pool_entry(w * pool_word_blocks + k / pool_block_entries, k % pool_block_entries);
    }
    SLIPSTREAM_BOTH u32 successor_word(u32 i) const { return rows_near ? successors_near[i] : successors_far[i]; }
    SLIPSTREAM_BOTH void set_successor_word(u32 i, u32 bits) const
    {
        if (rows_near) successors_near[i] = bits;
        else successors_far[i] = bits;
    }

    /// Successor i < successors_listed of the task in `slot`.
    SLIPSTREAM_BOTH u32 listed(u32 slot, u32 i) const
    {
        return rows_near ? listed_near[slot * successors_listed + i] : listed_far[slot * successors_listed + i];
    }
    SLIPSTREAM_BOTH void set_listed(u32 slot, u32 i, u32 successor) const
    {
        if (rows_near) listed_near[slot * successors_listed + i] = static_cast<u16>(successor);
        else listed_far[slot * successors_listed + i] = static_cast<u16>(successor);
    }

    /// The slot of predecessor i < waits_max of the task in `slot`.
    SLIPSTREAM_BOTH u32 predecessor(u32 slot, u32 i) const
    {
        return i < waits_near_max ? waits_for[slot].slots[i] : more_place(slot, i - waits_near_max);
    }
    SLIPSTREAM_BOTH void set_predecessor(u32 slot, u32 i, u32 predecessor) const
    {
        if (i < waits_near_max) waits_for[slot].slots[i] = static_cast<u16>(predecessor);
        else more_place(slot, i - waits_near_max) = static_cast<u16>(predecessor);
    }
    SLIPSTREAM_BOTH u16& more_place(u32 slot, u32 i) const
    {
        return waits_for_more[slot].fours[i / more_predecessors::at_once].slots[i % more_predecessors::at_once];
    }
    /// Task number i of those that the staged task in `slot` waits for.
    SLIPSTREAM_BOTH void set_awaited(u32 slot, u32 i, const awaited_task& task) const
    {
        if (i < waits_near_max) P::set(waits_near[slot * waits_near_max + i], task);
        else P::set(waits_far[slot * waits_far_max + i - waits_near_max], task);
    }

    using slot_queue = queue_storage<P, u16>;
    using word_queue = queue_storage<P, u32>;
    using report_storage = queue_storage<P, report>;
    using ready_storage = queue_storage<P, ready_entry>;
    SLIPSTREAM_BOTH slot_queue free_queue() const { return {free_tail, free_head, free_entries, queue_slots}; }
    SLIPSTREAM_BOTH slot_queue decoded_queue() const { return {decoded_tail, decoded_head, decoded_entries, queue_slots}; }
    SLIPSTREAM_BOTH word_queue arrived_queue() const { return {arrived_tail, arrived_head, arrived_entries, arrived_slots}; }
    SLIPSTREAM_BOTH word_queue admitted_queue() const { return {admitted_tail, admitted_head, admitted_entries, admitted_max}; }
    SLIPSTREAM_BOTH report_storage report_queue() const { return {report_tail, report_head, report_entries, queue_slots}; }
    SLIPSTREAM_BOTH ready_storage ready_queue() const { return {ready_tail, ready_head, ready_entries, queue_slots}; }
    SLIPSTREAM_BOTH slot_queue finished_queue() const { return {finished_tail, finished_head, finished_entries, queue_slots}; }
    SLIPSTREAM_BOTH word_queue retired_queue() const { return {retired_tail, retired_head, retired_entries, queue_slots}; }
};

/// Variables of the roles that must survive a park.
enum role_counter : u32 {
    saved_in_flight,  ///< tasks linked and not complete (linker)
    handed_blocks,    ///< of tasks handed to the scheduler and not complete, without those that draw tickets (linker)
    handed_tasks,     ///< so many tasks (linker)
    handed_lasting,   ///< and of these so many that do not promise to be brief (linker)
    saved_early,      ///< bits set in `early` (linker)
    saved_ordered,    ///< entries of link_order ever written, wrapping (linker)
    saved_settled,    ///< and settled
    saved_whole,      ///< slot + 1 of the exposed whole-memory task, 0: none (admission)
    saved_live_words, ///< words of `live` ever used (admission)
    failures_seen,    ///< some body has failed since the engine was made
    poison_active,    ///< a task has failed or was cancelled since the last clear_failure
    cancelled_pending, ///< entries of poison_pending
    handles_known,     ///< entries of the handle table that the device has a copy of (ingest)
    book_closed_for,   ///< so many tasks by handle, before the handle book is open again; 0: it is (admission)
    book_worn,         ///< some slot has come to its last epoch (admission)
    bad_meetings,      ///< bits set in meetings_bad (scheduler)
    saved_failures,    ///< some task has failed, was cancelled, skipped or declined since the engine was made (linker)
    saved_crossings_here, ///< of saved_in_flight, tasks that cross and stand-ins (linker)
    control_counters
};
static_assert(control_counters <= 20);

} // namespace slipstream::device
