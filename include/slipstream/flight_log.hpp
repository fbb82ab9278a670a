// The history that a runtime keeps when config::flight_log asks for it: what each worker ran, how full window and rings were.
#pragma once
#include <slipstream/status.hpp>
#include <vector>

namespace slipstream {

/// One line of a worker's history: which blocks of which task it ran, where and when. Times are the device's clock: globaltimer
/// on the GPU (steps of 32 ns on an H200), std::chrono::steady_clock on the host device. Of task types with fewer than
/// 256 threads a block, lines of one worker overlap: it runs blocks side by side.
struct flight_entry {
    task_handle task; ///< of the position the low 27 bits
    u32 type;
    u32 worker;
    u32 sm;
    u32 first_block;
    u32 blocks;
    u64 wait_ns; ///< a task mailed before those it waits for were done: when the worker began to wait for them; else 0
    u64 start_ns;
    u64 end_ns;
};

/// How full the window and the rings were, as those saw it that own them.
struct flight_samples {
    struct window_sample {
        u64 time_ns; ///< the device's clock
        u32 occupied; ///< slots of tasks taken in and not yet out of the window
    };
    struct ring_sample {
        u64 time_ns;
        u32 ring;
        u64 slots; ///< ever; written minus taken is the ring's fill
    };
    std::vector<window_sample> window;
    std::vector<ring_sample> taken;   ///< by the device, in its clock
    std::vector<ring_sample> written; ///< by the submitting threads, in std::chrono::steady_clock
    u64 lost_runs = 0;    ///< runs of blocks that found no room in the history of their worker
    u64 lost_samples = 0; ///< samples of the device that found none
    u64 lost_writes = 0;  ///< samples of the submitting threads that found none
};

} // namespace slipstream
