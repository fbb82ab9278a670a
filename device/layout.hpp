// Every shared structure of the engine with its owner: what lies in pinned host memory, in device memory, and in the control
// block's fast memory.
//
// LAYOUT
//   pinned (host and device)   rings[rings][ring_slots] of 64 B · host_page · ring_page[rings] · complete bits[rings][2048]
//                              · recorder[workers] of 16 B · handle table · flight log · stream join words
//   device                     records[window] of 384 B · mailboxes[workers] of 128 B · done[workers] of 4 B
//                              · handle cache · stop word · notifier's mirror
//   fast (shared memory of the control block, spilled to device memory at park)   control_state: queues, window, scheduler
// OWNERS  (single writer -> readers, scope)
//   ring slots            submitter -> ingest, system          host_page.command   service -> notifier, system
//   ring_page.consumed    ingest -> submitter, system          ring_page.low_water, bits   notifier -> host, system
//   host_page.heartbeat   notifier -> service, system          recorder[w]         worker w -> host, system
//   host_page.failures    notifier -> host, system             host_page.failures_read   host (under a lock) -> notifier, system
//   record (args)         ingest -> worker, device             record.next_block   ingest resets; workers draw; scheduler reads
//   record.status         worker -> scheduler, device          mailbox[w]          scheduler -> worker w, device
//   done[w]               worker w -> scheduler, device        stop                notifier -> workers, device
//   stream_joins          a stream's callback -> ingest, system
// STATES of a window slot
//   free -> filling (ingest took it from the free queue) -> decoded (in the decoded queue) -> pending | ready (admitted)
//   -> dispatched (some block mailed) -> retired (scheduler: removed from the window, in the retired queue) -> free
// EDGES   see device/edge.hpp; each operation names its own.
//
// Fast-memory budget, bytes, by control_state::measure (4 rings, 131 workers, 5 task types; G = W/32 groups): accesses 64 W,
// successors 4 W G, boxes 128 G, pool books 48 (165 + W), the rest about 50 W + 11 K.
//   W      32     64     256    512     1024
//   near   20 K   26 K   70 K   142 K   204 K   and its successors in device memory (128 K): with them it would need 332 of 224 K
// What is left of an SM's 224 K goes to pool blocks, 512 B each (sizes::pool_near_blocks); the others lie in device memory.
#pragma once
#include "device/queue.hpp"
#include <slipstream/abi/access_entry.hpp>
#include <slipstream/abi/task_type.hpp>

namespace slipstream::device {

inline constexpr u32 window_slots_min = 16;
inline constexpr u32 window_slots_max = 4096;
inline constexpr u32 successors_near_max = 512; ///< window slots
inline constexpr u32 inline_accesses = 4;
inline constexpr u32 pool_block_entries = 32;
inline constexpr u32 rings_max = 16;
inline constexpr u32 mailbox_depth = 2;
inline constexpr u32 completion_span = 65536; ///< submissions a ring may be ahead of its low-water mark
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
        return {{static_cast<u32>(position), static_cast<u32>(position >> 32) | ring << 24 | (cancelled ? cancelled_bit : 0), status, tag}};
    }
    SLIPSTREAM_BOTH static failure_record decode(const abi::chunk& c)
    {
        return {c.w[0] | static_cast<u64>(c.w[1] & 0xffffff) << 32, c.w[1] >> 24 & 0x7f, c.w[2], c.w[3], (c.w[1] & cancelled_bit) != 0};
    }

    static constexpr u32 cancelled_bit = 1u << 31;
};
static_assert(rings_max <= 0x80);

/// Tasks of one ring that failed or were cancelled for one cause, one behind the other.
struct failed_run {
    u64 first; ///< task id: ring << 56 | position
    u32 count;
    u32 cause;
};

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
    alignas(abi::line_bytes) typename P::template word<u32> failures_read; ///< host -> notifier: records that may be overwritten
    alignas(abi::line_bytes) typename P::chunk_word failures[failures_kept]; ///< the last ones; see failure_record
};

/// What one ring's submitter reads, a line for each word.
template <class P>
struct ring_page {
    alignas(abi::line_bytes) typename P::template word<u64> consumed;  ///< ring slots taken by ingest
    alignas(abi::line_bytes) typename P::template word<u64> low_water; ///< all submissions below it are retired
};

template <class P>
struct ring_slot {
    typename P::chunk_word chunks[abi::slot_chunks];
};

/// A task as its workers see it.
template <class P>
struct task_record {
    typename P::template cell<u32> words[abi::task_words_max]; ///< the task struct
    typename P::template cell<u32> blocks;
    alignas(64) typename P::template word<u32> next_block; ///< ticket counter
    typename P::template word<u32> status;                 ///< 0, or the code a body failed with
};

/// A worker's private inbox: one line, single producer.
template <class P>
struct alignas(abi::line_bytes) mailbox {
    typename P::chunk_word mail[mailbox_depth];
};

/// What a retired task tells the notifier.
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
    u32 pool_blocks;      ///< blocks of 32 accesses, for tasks with more than four
    u32 pool_near_blocks; ///< so many of them, the first ones, lie in fast memory
    u32 types;
    u32 handles;
    u32 log_capacity; ///< flight-log entries a worker can keep
    u32 lone_workers; ///< 1: a worker has its SM to itself and may poll with acquire loads (they empty the SM's L1)

    SLIPSTREAM_BOTH u32 groups() const { return window / 32; }
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

/// One picked-up run of blocks with its times, kept when a flight log is asked for.
struct flight_log_entry {
    u32 ring_and_type;
    u32 position;
    u32 block;
    u32 count_and_sm; ///< blocks << 16 (capped) | SM id
    u64 start_ns;
    u64 end_ns;
};
static_assert(sizeof(flight_log_entry) == 32);

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
    typename P::template word<u32>* flight_counts; ///< [workers] entries written
    typename P::template word<u32>* stream_joins;  ///< see host/stream_join.hpp; an `after` entry names one of them
    // device
    task_record<P>* records;
    mailbox<P>* mailboxes;
    typename P::template word<u32>* done;
    abi::handle_entry* handle_cache; ///< address 0: not met yet
    typename P::template word<u32>* stop;
    u32* complete_mirror; ///< [rings][completion_words], the notifier's own copy of the bits
};

enum class stop_level : u32 { none = 0, park = 1, abort = 2 };

/// How far a ring's message at the head is taken in. Owned by ingest.
struct ring_progress {
    u64 position;  ///< slots consumed
    u64 published; ///< slots the submitter was told of
    u64 messages;  ///< messages handed to the scheduler
    u32 stage;     ///< see ingest
    u32 slot;
    u32 entries_left;
    u32 scalars_left;
    u32 entry;     ///< entries stored so far
    u32 member;    ///< accesses seen so far
    u32 scalar;    ///< scalar words stored so far
    u32 type;
    u32 last_block;
    u32 ring;
    u32 flags;     ///< message_flags
    u32 reserved;
};

// The control block's own memory as a list: field, type, where it lies, how many. One list makes the offsets (host) and the
// pointers (device). `near` is fast memory, `far` device memory, `rows` near or far by sizes::successors_near().
//   ingest alone     progress, staged, pool_free, pool_free_count, free_slots, types
//   ingest fills while a slot is filling, the scheduler reads once it is decoded   accesses .. first_block
//   notifier alone   low_water
//   scheduler alone  marks and all that follow
#define SLIPSTREAM_CONTROL_FIELDS(X)                                                                                    \
    X(free_tail, word<u32>, near, 1)                                                                                    \
    X(free_head, word<u32>, near, 1)                                                                                    \
    X(free_entries, cell<u32>, near, s.queue_slots())                                                                   \
    X(decoded_tail, word<u32>, near, 1)                                                                                 \
    X(decoded_head, word<u32>, near, 1)                                                                                 \
    X(decoded_entries, cell<u32>, near, s.queue_slots())                                                                \
    X(retired_tail, word<u32>, near, 1)                                                                                 \
    X(retired_head, word<u32>, near, 1)                                                                                 \
    X(retired_entries, cell<retired_entry>, near, s.queue_slots()) /* one step can retire the whole window */          \
    X(request, word<u32>, near, 1)        /* notifier -> ingest, scheduler: a command */                                \
    X(ingest_phase, word<u32>, near, 1)   /* ingest -> scheduler */                                                     \
    X(schedule_phase, word<u32>, near, 1) /* scheduler -> notifier */                                                   \
    X(progress, ring_progress, near, s.rings)                                                                           \
    X(staged, u32, near, staged_rings * staged_slots * 16) /* ring slots of the poll in hand */                         \
    X(fetched, u32, near, staged_rings)                    /* complete slots of each */                                 \
    X(halves, u32, near, 3 * s.rings)                      /* first chunk of a two-chunk entry */                       \
    X(pool_free, u32, near, s.pool_blocks)                 /* stack of free pool blocks, the lowest on top at first */  \
    X(pool_next, cell<u32>, near, s.pool_blocks)           /* block index or no_block */                                \
    X(pool_owner, cell<u32>, near, s.pool_blocks)          /* window slot whose accesses a block holds */               \
    X(pool_box, cell<access_box>, near, s.pool_blocks)     /* what a block's accesses lie within */                     \
    X(pool_near, cell<abi::access_entry>, near, s.pool_near_blocks * pool_block_entries)                                \
    X(pool_far, cell<abi::access_entry>, far, (s.pool_blocks - s.pool_near_blocks) * pool_block_entries)                \
    X(pool_free_count, u32, near, 1)                                                                                    \
    X(free_slots, u32, near, s.groups()) /* a bit a slot; the lowest is taken first, so that live slots lie close */    \
    X(types, abi::task_type, near, s.types)                                                                             \
    X(accesses, cell<abi::access_entry>, near, inline_accesses * s.window) /* [access][slot] */                         \
    X(task_id, cell<u64>, near, s.window)     /* ring << 56 | position */                                               \
    X(type, cell<u32>, near, s.window)                                                                                 \
    X(blocks, cell<u32>, near, s.window)                                                                                \
    X(counts, cell<u32>, near, s.window)      /* entries | flags << 16 */                                               \
    X(first_block, cell<u32>, near, s.window) /* pool block or no_block */                                              \
    X(low_water, u64, near, s.rings)                                                                                    \
    X(marks, u32, near, mark_count * s.groups()) /* [mark][group], a bit a slot; see enum mark */                       \
    X(found, u32, near, s.groups())     /* predecessors of the task being admitted */                                   \
    X(live_box, access_box, near, inline_accesses * s.groups()) /* what the live accesses of a word lie within */       \
    X(pool_live, u32, near, s.pool_blocks)                                                                              \
    X(successors, u32, rows, s.window * s.groups())                                                                     \
    X(pending, u32, near, s.window)     /* predecessors not yet retired */                                              \
    X(next_block, u32, near, s.window)  /* blocks mailed; tickets: 0, or blocks once all are drawn */                   \
    X(outstanding, u32, near, s.window) /* mails not yet answered */                                                    \
    X(ready, u32, near, s.queue_slots()) /* ring buffer of ready slots */                                               \
    X(sent, u32, near, s.workers)       /* mails ever sent */                                                           \
    X(seen, u32, near, s.workers)       /* completions ever seen */                                                     \
    X(answered, u32, near, 32 * s.worker_groups()) /* completion words read by the poll in hand */                      \
    X(changed, u32, near, s.worker_groups())       /* workers that answered since the last poll */                      \
    X(mailed, u32, near, s.workers * mailbox_depth) /* slot of each mail */                                             \
    X(batch, u32, near, s.queue_slots()) /* slots completed in this step */                                            \
    X(counters, u32, near, 16)                                                                                         \
    X(poison_state, u32, far, poison_words)                                                                            \
    X(poison_entries, abi::access_entry, far, poison_entries_max)                                                      \
    X(poison_causes, u32, far, poison_entries_max)                                                                     \
    X(poison_runs, failed_run, far, failed_runs_max)                                                                   \
    X(poison_judged, u64, far, s.window)            /* id + 1 of the task that was found free of poison */             \
    X(poison_cause_of, u32, far, s.window)          /* cause of a cancelled task until it is settled */                \
    X(poison_outcomes, task_outcome, far, s.window) /* of the tasks of the batch in hand */                            \
    X(poison_pending, u32, far, s.queue_slots())    /* cancelled, to be completed by the next step */

/// What some accesses lie within: a half-open range of addresses for the reads, one for the writes. Only ever too large.
struct access_box {
    u64 read_lo, read_hi; ///< lo >= hi: none
    u64 write_lo, write_hi;

    SLIPSTREAM_BOTH static access_box nothing() { return {~u64{0}, 0, ~u64{0}, 0}; }
    SLIPSTREAM_BOTH void add(const abi::access_entry& e)
    {
        const u64 lo = e.begin();
        const u64 hi = e.end();
        if (e.reads()) {
            read_lo = lo < read_lo ? lo : read_lo;
            read_hi = hi > read_hi ? hi : read_hi;
        }
        if (e.writes()) {
            write_lo = lo < write_lo ? lo : write_lo;
            write_hi = hi > write_hi ? hi : write_hi;
        }
    }
    /// Could an access in `next` have to wait for one in here? Writes against reads and writes, reads against writes.
    SLIPSTREAM_BOTH bool may_conflict(const access_box& next) const
    {
        return (write_lo < next.write_hi && next.write_lo < write_hi) || (read_lo < next.write_hi && next.write_lo < read_hi)
            || (write_lo < next.read_hi && next.read_lo < write_hi);
    }
};

/// What the window knows of a slot, a bit each. The bits of one slot are changed by one lane a mark.
enum mark : u32 {
    mark_in_flight, ///< admitted, not retired
    mark_exposed,   ///< in flight and not covered by a later whole-memory task
    mark_whole,     ///< whole-memory tasks among the exposed
    mark_awaited,   ///< some task waits for it: its successor row is not empty
    mark_live,      ///< inline access 0 is in use and not yet superseded; three more follow
    mark_count = mark_live + inline_accesses
};

inline constexpr u32 staged_slots = 8; ///< ring slots fetched at a time: one chunk a lane of a warp
inline constexpr u32 staged_rings = 4; ///< rings fetched in one go

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
    u32 pool_near_blocks;

    /// Points the fields into memory blocks laid out by measure().
    SLIPSTREAM_BOTH control_state(const sizes& s, const control_offsets& o, unsigned char* near_base, unsigned char* far_base)
        : queue_slots(s.queue_slots()), pool_near_blocks(s.pool_near_blocks)
    {
        unsigned char* const rows_base = s.successors_near() ? near_base : far_base;
#define SLIPSTREAM_ATTACH(name, type, place, count) name = reinterpret_cast<type*>(place##_base + o.name);
        SLIPSTREAM_CONTROL_FIELDS(SLIPSTREAM_ATTACH)
#undef SLIPSTREAM_ATTACH
    }

    /// Takes each field from an allocator with take<T>(count): what the model platform uses, whose words are objects.
    template <class Allocator>
    control_state(const sizes& s, Allocator& memory) : queue_slots(s.queue_slots()), pool_near_blocks(s.pool_near_blocks)
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
        u32& rows = s.successors_near() ? near : far;
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

    /// The 32 accesses of a pool block.
    SLIPSTREAM_BOTH cell<abi::access_entry>* pool_entries(u32 block) const
    {
        return block < pool_near_blocks ? pool_near + block * pool_block_entries
                                        : pool_far + (block - pool_near_blocks) * pool_block_entries;
    }

    SLIPSTREAM_BOTH queue_storage<P, u32> free_queue() const { return {free_tail, free_head, free_entries, queue_slots}; }
    SLIPSTREAM_BOTH queue_storage<P, u32> decoded_queue() const { return {decoded_tail, decoded_head, decoded_entries, queue_slots}; }
    SLIPSTREAM_BOTH queue_storage<P, retired_entry> retired_queue() const
    {
        return {retired_tail, retired_head, retired_entries, queue_slots};
    }
};

/// Scheduler variables that must survive a park.
enum scheduler_counter : u32 {
    saved_ready_head, ///< ring buffer positions, wrapping
    saved_ready_tail,
    saved_in_flight,
    saved_whole,      ///< exposed whole-memory tasks: at most one
    saved_pool_live,  ///< pool blocks with live accesses
    failures_seen,    ///< some body has failed since the engine was made
    poison_active,    ///< a task has failed or was cancelled since the last clear_failure
    cancelled_pending, ///< entries of poison_pending
    control_counters
};
static_assert(control_counters <= 16);

} // namespace slipstream::device
