// The body behind "verification by digest": its results depend on the order in which tasks used each cell.
//
// A task uses runs of cells. Block b of B owns the cells at positions b, b + B, b + 2 B ... of the task's list of cells.
//   at its start   it mixes the task's number with the cells it owns and the task reads: the block's digest
//   then           it works for a while
//   at its end     it writes mix(task, digest, cell) into each cell it owns and the task writes, and adds its digest to the
//                  task's result word
// A task that came too early has read old values; one whose output came too late leaves its values behind; a reader that was
// overtaken by a writer has read new ones. digest_board.hpp computes the same sequentially.
#pragma once
#include <slipstream/abi/message.hpp>
#if !defined(__CUDA_ARCH__)
#include <atomic>
#endif

namespace slipstream::workloads {

/// A run of cells that one task uses in one way. `position`: how many cells the task's earlier runs have.
struct digest_run {
    u32 first;
    u32 count;
    u32 position;
    abi::access_mode mode;
};
static_assert(sizeof(digest_run) == 16);

/// Two words into one that depends on every bit of both, in this order (finaliser of splitmix64).
SLIPSTREAM_BOTH u64 digest_mix(u64 a, u64 b)
{
    u64 x = (a + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u ^ (b + 0x2545f4914f6cdd1du);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

SLIPSTREAM_BOTH u64 digest_initial(u32 cell) { return digest_mix(0x5eed, cell); }
SLIPSTREAM_BOTH u64 digest_begin(u32 number, u32 block) { return digest_mix(number, block); }
/// Terms are added up, so that the threads of a block may read in any order.
SLIPSTREAM_BOTH u64 digest_term(u32 cell, u64 value) { return digest_mix(value, cell); }
SLIPSTREAM_BOTH u64 digest_written(u32 number, u64 digest, u32 cell) { return digest_mix(digest_mix(digest, number), cell); }

/// Calls visit(cell) for the cells of all runs with `mode` that block `block` of `blocks` owns and that fall to this thread:
/// a warp takes a run, its lanes the cells (on the host: one thread, all runs).
template <class Visit>
SLIPSTREAM_BOTH void for_owned_cells(const digest_run* runs, u32 run_count, abi::access_mode mode, u32 block, u32 blocks,
                                     u32 rank, u32 threads, Visit&& visit)
{
    const u32 lanes = threads < 32 ? threads : 32;
    const u32 lane = rank % lanes;
    for (u32 r = rank / lanes; r < run_count; r += threads / lanes) {
        const digest_run run = runs[r];
        if ((static_cast<u32>(run.mode) & static_cast<u32>(mode)) == 0) continue;
        // The first position of the run that is `block` modulo `blocks`.
        const u32 skip = (block + blocks - run.position % blocks) % blocks;
        for (u64 i = skip + static_cast<u64>(lane) * blocks; i < run.count; i += static_cast<u64>(lanes) * blocks)
            visit(run.first + static_cast<u32>(i));
    }
}

/// A chain of dependent multiply-adds: time that depends on `iterations` alone, and no memory.
SLIPSTREAM_BOTH void digest_work(u32 iterations)
{
    u32 x = iterations;
    // Sixteen at a time: a loop of four instructions takes 3 % longer where it lies across two lines of instruction
    // fetch, which is chance.
#if defined(__CUDACC__)
#pragma unroll 16
#endif
    for (u32 i = 0; i < iterations; ++i) {
        x = x * 1664525u + 1013904223u;
        asm volatile("" : "+r"(x)); // opaque: not computed in closed form
    }
#if defined(__CUDA_ARCH__)
    // ptxas sees no empty asm: without a use of x it drops the whole chain.
    if (x == 0x9e3779b9u) asm volatile("membar.cta;" ::: "memory");
#endif
}

/// Adds to a word that several blocks add to. Relaxed: the task's completion publishes it.
SLIPSTREAM_BOTH void add_to_word(u64* word, u64 value)
{
#if defined(__CUDA_ARCH__)
    atomicAdd(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(value));
#else
    std::atomic_ref<u64>(*word).fetch_add(value, std::memory_order_relaxed);
#endif
}

/// What a body needs to take part in verification by digest; a plain value in a task struct. What the task touches is declared
/// as further accesses on the memory of the cells.
struct digest_share {
    u64 cells;     ///< address of the cells, u64 each
    u64 runs;      ///< address of this task's digest_run[run_count]: disjoint, read-only
    u64 result;    ///< address of this task's result word
    u32 run_count;
    u32 number;    ///< of the task

    /// Reads, at the start of the body: the block's digest, the same on every thread.
    template <class Block> SLIPSTREAM_BODY u64 begin(Block& block) const
    {
        const auto* const memory = reinterpret_cast<const u64*>(cells);
        u64 sum = 0;
        for_owned_cells(reinterpret_cast<const digest_run*>(runs), run_count, abi::access_mode::read, block.block_index(),
                        block.blocks(), block.rank(), block.size(),
                        [&](u32 cell) { sum += digest_term(cell, memory[cell]); });
        return digest_begin(number, block.block_index()) + block.reduce_add(sum);
    }

    /// Writes, at the end of the body.
    template <class Block> SLIPSTREAM_BODY void end(Block& block, u64 digest) const
    {
        block.sync(); // no thread writes before the slowest one has worked
        auto* const memory = reinterpret_cast<u64*>(cells);
        for_owned_cells(reinterpret_cast<const digest_run*>(runs), run_count, abi::access_mode::write, block.block_index(),
                        block.blocks(), block.rank(), block.size(),
                        [&](u32 cell) { memory[cell] = digest_written(number, digest, cell); });
        if (block.rank() == 0) add_to_word(reinterpret_cast<u64*>(result), digest);
    }
};

/// Reads, works, writes.
struct digest_task {
    static constexpr const char* name = "digest";

    digest_share share;
    u32 work; ///< iterations of digest_work
    u32 hold; ///< further iterations of block 0 alone: makes the task late (broken_edge.hpp)

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const u64 digest = share.begin(block);
        digest_work(work);
        if (block.block_index() == 0) digest_work(hold);
        share.end(block, digest);
    }
};

} // namespace slipstream::workloads
