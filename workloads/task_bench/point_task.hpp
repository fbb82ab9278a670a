// The body: checks its inputs, computes, stamps its output.
//
// LAYOUT of a board, in device memory:
//   point_header                    what all tasks share, and what they found wrong
//   point_output[buffers][width]    point p of row t is in buffer t % buffers
//   u64[steps][width]               result word of each task
// OWNERS  an output: the one task that writes it, then its readers, until the task that uses the buffer again: what the declared
//         accesses order. A result word: one task. point_header: the host, between runs; its counter: tasks that find a mismatch.
#pragma once
#include "workloads/task_bench/task_graph.hpp"
#include <cmath>
#include <cstring>

namespace slipstream::workloads {

/// What a point leaves behind: who wrote it, and a digest of all that went before it.
struct alignas(16) point_output {
    u32 timestep;
    u32 point;
    u64 digest;
};
static_assert(sizeof(point_output) == 16);

struct alignas(128) point_header {
    u32 iterations; ///< of busy_chains, of every task
    u32 chains_come_to;
    u32 mismatches; ///< inputs that were not what they should be; the rest tells of the first one counted
    u32 timestep, point;
    u32 from; ///< the point whose output it is
    u32 found_timestep, found_point;
    task_graph graph;
    u32 buffers;
    u32 held, hold; ///< the task of that number makes so many iterations of digest_work besides: it is late (broken_edge.hpp)
};
static_assert(sizeof(point_header) == 128);

/// Fused multiply-adds of one iteration; 64, as the compute-bound kernel of Task Bench.
inline constexpr u32 chains = 8, chain_steps = 8;
inline constexpr u32 multiply_adds = chains * chain_steps;

inline constexpr u32 warp_lanes = 32;

/// Bound by arithmetic, not by latency: eight chains keep the units of a streaming multiprocessor busy with two warps each, so that
/// several blocks on one SM gain nothing over a single one. x -> x * x + c does not settle for this c: the result tells how many
/// iterations there were, to the bit alike on every machine.
SLIPSTREAM_BOTH u32 busy_chains(u32 iterations)
{
    float x[chains];
    SLIPSTREAM_UNROLL
    for (u32 k = 0; k < chains; ++k) x[k] = 0.1f * static_cast<float>(k + 1);
    SLIPSTREAM_ONE_COPY
    for (u32 i = 0; i < iterations; ++i) {
        SLIPSTREAM_UNROLL
        for (u32 step = 0; step < chain_steps; ++step) {
            SLIPSTREAM_UNROLL
            for (u32 k = 0; k < chains; ++k) x[k] = fmaf(x[k], x[k], -1.9f);
        }
    }
    u32 out = 0;
    SLIPSTREAM_UNROLL
    for (u32 k = 0; k < chains; ++k) {
        u32 bits;
        memcpy(&bits, &x[k], sizeof bits);
        out = out * 31 + bits;
    }
    return out;
}

/// Counts one more; returns how many there were. Relaxed: the task's completion publishes it.
SLIPSTREAM_BOTH u32 count_one(u32* word)
{
#if defined(__CUDA_ARCH__)
    return atomicAdd(word, 1u);
#else
    return std::atomic_ref<u32>(*word).fetch_add(1, std::memory_order_relaxed);
#endif
}

/// Block b is point first + b of the graph, counted row after row. So little that a task with four handles takes one ring slot.
struct point_task {
    static constexpr const char* name = "point";

    u32 board_low, board_high; ///< address: two words, for three make a chunk of the message
    u32 first;

    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const u64 board = board_low | static_cast<u64>(board_high) << 32;
        auto* const header = reinterpret_cast<point_header*>(board);
        const task_graph graph = header->graph;
        const u32 buffers = header->buffers;
        auto* const outputs = reinterpret_cast<point_output*>(board + sizeof(point_header));
        auto* const results = reinterpret_cast<u64*>(outputs + static_cast<u64>(buffers) * graph.width);
        const u32 number = first + block.block_index();
        const u32 timestep = number / graph.width, point = number % graph.width;

        const u32 iterations = header->iterations, come_to = header->chains_come_to;
        const u32 candidates = graph.candidates(timestep);
        u64 sum = 0;
        // The first warp checks the inputs. Nobody waits for it: the others work while those are on their way.
        if (block.rank() < warp_lanes)
            for (u32 i = block.rank(); i < candidates; i += block.size() < warp_lanes ? block.size() : warp_lanes) {
                const u32 from = graph.candidate(timestep, point, i);
                if (from == task_graph::no_point) continue;
                const point_output input = outputs[static_cast<u64>((timestep - 1) % buffers) * graph.width + from];
                if (input.timestep != timestep - 1 || input.point != from) report(*header, number, from, input);
                sum += digest_term(from, input.digest);
            }
        // Here at the latest the warp is whole again: threads that were left apart from it would compute after the others.
        sum = block.warp_reduce_add(sum);
        // Every thread's chains are checked, which also keeps compilers from dropping them: a wrong one spoils the result.
        if (busy_chains(iterations) != come_to) add_to_word(results + number, digest_begin(number, 1 + block.rank()));
        if (first == header->held) digest_work(header->hold);

        if (block.rank() != 0) return;
        const u64 digest = digest_begin(number, 0) + sum;
        outputs[static_cast<u64>(timestep % buffers) * graph.width + point] = {timestep, point, digest};
        add_to_word(results + number, digest); // a task that runs twice has twice its digest
    }

private:
    SLIPSTREAM_BOTH void report(point_header& header, u32 number, u32 from, const point_output& input) const
    {
        if (count_one(&header.mismatches) != 0) return; // the first one tells
        header.timestep = number / header.graph.width;
        header.point = number % header.graph.width;
        header.from = from;
        header.found_timestep = input.timestep;
        header.found_point = input.point;
    }
};

} // namespace slipstream::workloads
