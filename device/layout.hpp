// Every shared structure of the engine with its owner: what lies in pinned host memory, in device memory, and in the control
// block's fast memory.
//
// LAYOUT
//   pinned (host and device)   rings[rings][ring_slots] of 64 B · host_page · ring_page[rings] · complete bits[rings][2048]
//                              · recorder[workers] of 16 B · handle table · flight log
//   device                     records[window] of 384 B · mailboxes[workers] of 128 B · done[workers] of 4 B
//                              · pool_blocks of 32 entries · handle cache · type table · stop word · notifier's mirror
//   fast (shared memory of the control block, spilled to device memory at park)   control_state: queues, window, scheduler
// OWNERS  (single writer -> readers, scope)
//   ring slots            submitter -> ingest, system          host_page.command   service -> notifier, system
//   ring_page.consumed    ingest -> submitter, system          ring_page.low_water, bits   notifier -> host, system
//   host_page.heartbeat   notifier -> service, system          recorder[w]         worker w -> host, system
//   record (args)         ingest -> worker, device             record.next_block   ingest resets; workers draw; scheduler reads
//   record.status         worker -> scheduler, device          mailbox[w]          scheduler -> worker w, device
//   done[w]               worker w -> scheduler, device        stop                notifier -> workers, device
// STATES of a window slot
//   free -> filling (ingest took it from the free queue) -> decoded (in the decoded queue) -> pending | ready (admitted)
//   -> dispatched (some block mailed) -> retired (scheduler: removed from the window, in the retired queue) -> free
// EDGES   see device/edge.hpp; each operation names its own.
//
// Fast-memory budget, bytes, W = window slots (G = W/32 groups), accesses 64 W, successors 4 W G, the rest about 26 W + 7 K:
//   W        16/32    64     256     512      1024
//   near      11 K    16 K   38 K    86 K     100 K + successors in device memory (128 K)
// Successor rows move to device memory above successors_near_max slots: with them W = 1024 would need 228 K of 227 K.
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
inline constexpr u32 failures_kept = 1024;
inline constexpr u32 no_slot = 0xffff;
inline constexpr u32 no_block = 0xffffffff;

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
    typename P::template word<u32> failure_count; ///< failures ever; the last failures_kept are in failures[]
    typename P::chunk_word failures[failures_kept];
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
    typename P::template cell<u32> type;
    typename P::template cell<u32> blocks;
    typename P::template cell<u32> ring;
    typename P::template cell<u32> reserved;
    typename P::template cell<u64> position; ///< of the submission in its ring
    alignas(64) typename P::template word<u32> next_block; ///< ticket counter
    typename P::template word<u32> status;                 ///< 0, or the code a body failed with
};

/// A worker's private inbox: one line, single producer.
template <class P>
struct alignas(abi::line_bytes) mailbox {
    typename P::chunk_word mail[mailbox_depth];
};

/// A block of 32 accesses of a task that has more than four.
template <class P>
struct pool_block {
    typename P::template cell<abi::access_entry> entries[pool_block_entries];
    typename P::template cell<u32> next; ///< block index or no_block
};

/// What a retired task tells the notifier.
struct retired_entry {
    u64 position;
    u32 ring;
    u32 status;
};

/// Sizes of one engine instance; fixed before start.
struct sizes {
    u32 window;      ///< slots, multiple of 32
    u32 window_used; ///< slots handed out, at most window: windows below 32 use a part of a group
    u32 rings;
    u32 ring_slots;
    u32 workers;
    u32 pool_blocks;
    u32 types;
    u32 handles;
    u32 log_capacity; ///< flight-log entries a worker can keep

    SLIPSTREAM_BOTH u32 groups() const { return window / 32; }
    SLIPSTREAM_BOTH bool successors_near() const { return window <= successors_near_max; }
    SLIPSTREAM_BOTH u32 worker_groups() const { return (workers + 31) / 32; }
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
    // device
    task_record<P>* records;
    mailbox<P>* mailboxes;
    typename P::template word<u32>* done;
    pool_block<P>* pool;
    abi::handle_entry* handle_cache; ///< address 0: not met yet
    const abi::task_type* types;
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
    u32 half[3];   ///< first chunk of a two-chunk entry
};

/// The control block's own memory. Pointers only; the bytes lie where the carver put them.
template <class P>
struct control_state {
    template <class T> using word = typename P::template word<T>;
    template <class T> using cell = typename P::template cell<T>;

    sizes n;
    queue_storage<P, u32> free_queue;
    queue_storage<P, u32> decoded_queue;
    queue_storage<P, retired_entry> retired_queue;
    word<u32>* request;        ///< notifier -> ingest, scheduler: a command
    word<u32>* ingest_phase;   ///< ingest -> scheduler
    word<u32>* schedule_phase; ///< scheduler -> notifier

    // ingest
    ring_progress* progress; ///< [rings]
    u32* staged;             ///< [staged_slots * 16] payload words of the poll in hand
    u32* pool_free;          ///< stack of free pool blocks
    u32* pool_free_count;
    u32* held_slot;          ///< a free slot in hand plus 1, or 0

    // window: written by ingest while a slot is filling, read by the scheduler once it is decoded
    cell<abi::access_entry>* accesses; ///< [inline_accesses][window]
    cell<u64>* task_id;                ///< [window] ring << 56 | position
    cell<u32>* blocks;                 ///< [window]
    cell<u32>* counts;                 ///< [window] entries | flags << 16
    cell<u32>* first_block;            ///< [window] pool block or no_block

    u64* low_water; ///< [rings] the notifier's marks

    // scheduler
    u32* in_flight;   ///< [groups] admitted, not retired
    u32* exposed;     ///< [groups] in flight and not covered by a later whole-memory task
    u32* whole;       ///< [groups] whole-memory tasks among the exposed
    u32* pooled;      ///< [groups] in flight with pool blocks
    u32* live;        ///< [inline_accesses][groups] inline accesses not yet superseded
    u32* found;       ///< [groups] predecessors of the task being admitted
    u32* pool_live;   ///< [pool_blocks] entries not yet superseded
    u32* successors;  ///< [window][groups]
    u32* pending;     ///< [window] predecessors not yet retired
    u32* next_block;  ///< [window] blocks mailed (static dispatch)
    u32* outstanding; ///< [window] mails not yet answered
    u32* ready;       ///< [window] ring buffer of ready slots
    u32* sent;        ///< [workers] mails ever sent
    u32* seen;        ///< [workers] completions ever seen
    u32* answered;    ///< [workers] completions found by the poll in hand
    u32* changed;     ///< [worker groups] workers that answered since the last poll
    u32* mailed;      ///< [workers][mailbox_depth] slot of each mail
    u32* counters;    ///< scheduler_counter

    static constexpr u32 staged_slots = 8;

    /// Lays the state out; `near` is fast memory, `far` device memory. Every call with equal sizes gives equal offsets.
    template <class Near, class Far>
    SLIPSTREAM_BOTH void bind(const sizes& s, Near& near, Far& far)
    {
        n = s;
        const u32 g = s.groups();
        free_queue.bind(near, power_of_two(s.window));
        decoded_queue.bind(near, power_of_two(s.window));
        retired_queue.bind(near, power_of_two(s.window)); // one step can retire the whole window
        request = near.template take<word<u32>>(1);
        ingest_phase = near.template take<word<u32>>(1);
        schedule_phase = near.template take<word<u32>>(1);
        progress = near.template take<ring_progress>(s.rings);
        staged = near.template take<u32>(staged_slots * 16);
        pool_free = far.template take<u32>(s.pool_blocks);
        pool_free_count = near.template take<u32>(1);
        held_slot = near.template take<u32>(1);
        accesses = near.template take<cell<abi::access_entry>>(inline_accesses * s.window);
        task_id = near.template take<cell<u64>>(s.window);
        blocks = near.template take<cell<u32>>(s.window);
        counts = near.template take<cell<u32>>(s.window);
        first_block = near.template take<cell<u32>>(s.window);
        low_water = near.template take<u64>(s.rings);
        in_flight = near.template take<u32>(g);
        exposed = near.template take<u32>(g);
        whole = near.template take<u32>(g);
        pooled = near.template take<u32>(g);
        live = near.template take<u32>(inline_accesses * g);
        found = near.template take<u32>(g);
        pool_live = far.template take<u32>(s.pool_blocks);
        successors = s.successors_near() ? near.template take<u32>(s.window * g) : far.template take<u32>(s.window * g);
        pending = near.template take<u32>(s.window);
        next_block = near.template take<u32>(s.window);
        outstanding = near.template take<u32>(s.window);
        ready = near.template take<u32>(s.window);
        sent = near.template take<u32>(s.workers);
        seen = near.template take<u32>(s.workers);
        answered = near.template take<u32>(32 * s.worker_groups());
        changed = near.template take<u32>(s.worker_groups());
        mailed = near.template take<u32>(s.workers * mailbox_depth);
        counters = near.template take<u32>(16);
    }

    SLIPSTREAM_BOTH static constexpr u32 power_of_two(u32 value)
    {
        u32 p = 1;
        while (p < value) p *= 2;
        return p;
    }
};

/// Scheduler variables that must survive a park.
enum scheduler_counter : u32 {
    ready_head,        ///< ring buffer positions, wrapping
    ready_tail,
    in_flight_count,
    mails_outstanding,
    failures_seen,
    control_counters
};
static_assert(control_counters <= 16);

/// Hands out aligned pieces of one memory block; with base 0 it only measures.
class byte_carver {
public:
    SLIPSTREAM_BOTH explicit byte_carver(void* base = nullptr) : base_(reinterpret_cast<u64>(base)) {}
    template <class T> SLIPSTREAM_BOTH T* take(u64 count)
    {
        used_ = (used_ + 15) / 16 * 16;
        T* const out = reinterpret_cast<T*>(base_ + used_);
        used_ += count * sizeof(T);
        return out;
    }
    SLIPSTREAM_BOTH u64 bytes() const { return (used_ + 15) / 16 * 16; }

private:
    u64 base_;
    u64 used_ = 0;
};

} // namespace slipstream::device
