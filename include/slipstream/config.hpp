// How a runtime is set up. All memory follows from these numbers and is taken before start.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <chrono>
#include <string>

namespace slipstream {

struct config {
    /// "auto": the first usable GPU, else the host; "cuda", "cuda:N", "host".
    std::string device = "auto";
    u32 window = 256;        ///< in-flight tasks; 16 to 4096 (a GPU's shared memory holds about 1024),
                             ///< rounded up to a multiple of 32 above 16
    u32 ring_slots = 1024;   ///< 64-byte slots of each submission ring; 4 or more, rounded up to a power of two
    u32 rings = 4;           ///< submitting threads, 1 to 16; the window must have more slots than this
    u32 workers_per_sm = 1;  ///< resident thread blocks on each SM but the control block's, 1 or 2; with several parts 1
    /// Control blocks, 1 to 8: each with its share of the SMs' workers (of host_workers on the host device) and of the memory,
    /// and with a submission ring and a pool of its own. What a task costs the control block is paid in the part whose memory it
    /// touches; one that touches several is ordered in each of them; those with ordering::no_access go to the part of the first
    /// task that they name by `after`, else to all in turns. window, ring_slots, memory_bytes and staging_bytes are each part's,
    /// handles_max is for all together. With more than 1 one thread submits, `rings` is taken as 1, and there is no batch mode. Of
    /// tasks that touch several parts no more than 512 with the same home are under way (the part that a task writes to first, or
    /// reads first if it writes nothing): before a further one submit waits. See runtime::place and allocate.
    u32 parts = 1;
    u32 sms_left_free = 0;   ///< SMs the kernel's grid does not fill (other kernels may still share the rest)
    u32 host_workers = 0;    ///< worker threads of the host device; 0: number of cores, at least 2, at most 8
    u32 accesses_max = 1024; ///< accesses of a task, and tasks and streams that it follows, together, 4 to 60000: one with more
                             ///< becomes a whole-memory task. More to follow alone that have not succeeded: config_error
    u32 handles_max = 65536; ///< different pieces of memory that are registered over the life of the runtime:
                             ///< a handle's index is not used for another piece
    u64 memory_bytes = 64u << 20;  ///< device memory behind buffer<T> and allocate()
    u64 staging_bytes = 16u << 20; ///< pinned memory behind upload and download; 4096 or more
    bool staging = true;     ///< tasks may wait on a worker for those before them; off: only to measure what that gains
    bool chaining = true;    ///< and on the worker of one of those; off: likewise
    bool bypass = true;      ///< a task of one block that comes while nothing is in flight goes to a worker at once, or is taken
                             ///< from the ring by one; off: likewise
    bool broadcast = true;   ///< a task of several brief blocks may be mailed to all workers at once; off: likewise
    /// Entries of history each worker keeps, 40 bytes of pinned memory each; 0: only the flight recorder's last one. Window and
    /// rings have room for eight times as many samples (flight_log.hpp). When on, each run of blocks takes two looks at the clock
    /// and stores its entry across the bus before it is complete. At most 2^24.
    u32 flight_log = 0;
    /// How long the kernel stays on the GPU at most before it lets other people's synchronising calls pass.
    /// Of this and the limits below more than 100 years, milliseconds::max() for one, is 100 years.
    std::chrono::milliseconds residency{200};
    /// Watchdog: nothing is taken from a ring, no block is picked up and no task ends for so long, though something is unfinished
    /// and the kernel is neither paused nor waiting for streams only (a task that waits by `after` for one that waits for a stream
    /// is no such task: let the limit be longer than the stream's work). After stall_report what the rings hold and what each
    /// worker runs is logged, once, and the engine goes on: a body may take its time. After stall_limit the engine is stopped:
    /// whatever submits, or waits for what was not done by then, throws device_error, which says what waits on what and which task
    /// runs which block on which SM. A body that never ends then keeps its worker and the engine's memory until the process ends,
    /// but no thread of yours. 0: never.
    std::chrono::milliseconds stall_report{10'000};
    std::chrono::milliseconds stall_limit{0};
    /// The same limit for the destructor, which waits for all that was submitted: without a stall_limit,
    /// a body that never ends holds up the process's end no longer than this. 0: for ever.
    std::chrono::milliseconds exit_limit{60'000};
    /// Batch mode: nothing runs until run_batch(); the kernel ends when the ring is empty. For sanitizers and profilers. Until then
    /// the rings have to hold all that is submitted: where one is full submit throws config_error. What was submitted after the
    /// last run_batch() never runs: the destructor logs a warning with its number.
    bool batch = false;
};

} // namespace slipstream
