// The work of a synthetic body: streams bytes through memory, then waits on a chain of arithmetic.
#pragma once
#include <slipstream/abi/portable.hpp>

namespace slipstream::workloads {

/// How much one task does. The same for every block; travels inside the task struct.
struct calibrated_work {
    u64 scratch = 0;          ///< device memory of this task alone, 16 B * chunks * blocks; holds no data anybody needs
    u32 chunks = 0;           ///< 16-byte chunks a block reads and writes back in one pass
    u32 passes = 0;           ///< over the block's part of the scratch memory
    u32 iterations = 0;       ///< dependent multiply-adds of every thread
    u32 reserved = 0;

    u64 bytes_moved(u32 blocks) const { return u64{32} * chunks * passes * blocks; }
    u64 bytes_of_scratch(u32 blocks) const { return u64{16} * chunks * blocks; }
};

/// Each thread touches the same chunks in every pass, so the blocks of a task never meet.
template <class Block>
SLIPSTREAM_BODY void do_work(Block& block, const calibrated_work& w)
{
    struct alignas(16) wide {
        u32 word[4];
    };
    constexpr u32 in_flight = 8; // 256 threads * 8 * 16 B = 32 KiB in flight saturate HBM from one block an SM
    auto* const part = reinterpret_cast<wide*>(w.scratch) + static_cast<u64>(w.chunks) * block.block_index();
    for (u32 pass = 0; pass < w.passes; ++pass) {
        u32 i = block.rank();
        for (; i + (in_flight - 1) * block.size() < w.chunks; i += in_flight * block.size()) {
            wide held[in_flight];
            for (u32 k = 0; k < in_flight; ++k) held[k] = part[i + k * block.size()];
            for (u32 k = 0; k < in_flight; ++k) {
                held[k].word[0] += 1;
                part[i + k * block.size()] = held[k];
            }
        }
        for (; i < w.chunks; i += block.size()) {
            wide held = part[i];
            held.word[0] += 1;
            part[i] = held;
        }
    }
    // Floating point is not reassociated, so no compiler shortens the chain. It converges to 2 and never gets to the sentinel.
    float x = static_cast<float>(block.rank());
    for (u32 i = 0; i < w.iterations; ++i) x = x * 0.5f + 1.0f;
    if (x == 123456.0f) block.fail(1);
}

} // namespace slipstream::workloads
