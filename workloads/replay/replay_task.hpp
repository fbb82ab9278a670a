// The body of a replayed task: the digest around the calibrated work.
#pragma once
#include "workloads/digest/digest_task.hpp"
#include "workloads/replay/calibrated_work.hpp"
#include <slipstream/kernel_image.hpp>

namespace slipstream::workloads {

/// Reads its cells at its start, then works, then writes its cells: a task that comes too early or too late shows.
/// Block-size-agnostic; cooperating threads of a block: all.
struct replay_task {
    static constexpr const char* name = "replay";

    digest_share share;
    calibrated_work work;
    u32 hold; ///< iterations of digest_work of block 0 alone: makes the task late, for a broken edge
    u32 reserved;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const u64 digest = share.begin(block);
        do_work(block, work);
        if (block.block_index() == 0) digest_work(hold);
        share.end(block, digest);
    }
};
static_assert(sizeof(replay_task) == 64);

inline constexpr u32 replay_task_type = 0; ///< index in replay_image()

/// replay_task and the built-in tasks; with its GPU side when this build has CUDA.
kernel_image replay_image();

} // namespace slipstream::workloads
