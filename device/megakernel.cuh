// The persistent megakernel: one control block (block 0) and workers (all others), one CTA shape for all.
//
// Control block: warp 0 schedules, warp 1 ingests, warp 2 notifies; the other warps wait at the closing barrier. Its state is
// copied from device memory into shared memory at launch and back at park.
// Workers: thread 0 talks to the mailbox, all threads run bodies. Bodies are dispatched by a switch over a compile-time list,
// in one translation unit: function pointers would make ptxas spill and ignore setmaxnreg.
#pragma once
#include "device/control.hpp"
#include "device/cuda_platform.cuh"
#include "device/kernel_arguments.hpp"
#include <slipstream/cuda_block.cuh>
#include <slipstream/task.hpp>

namespace slipstream::device {

/// Runs block `block` of the task with the given type.
template <class... Tasks, class Block>
__device__ __forceinline__ void run_body(task_list<Tasks...>, u32 type, const void* words, Block& block)
{
    u32 index = 0;
    // Not one of them: the type table and the list are made from the same pack, so this cannot happen.
    ((index++ == type ? ((*static_cast<const Tasks*>(words))(block), true) : false) || ...);
}

template <class List, u32 Threads>
__device__ void run_worker(const kernel_arguments<cuda_platform>& args, unsigned char* arena)
{
    using P = cuda_platform;
    __shared__ mail letter;
    __shared__ u32 first_drawn;
    __shared__ block_failure failure;
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    worker_port<P> port(args.memory, blockIdx.x - 1, sm);
    const bool leader = threadIdx.x == 0;
    if (leader) failure.code = 0;
    u64 start_ns = 0;
    for (;;) {
        if (leader) letter = port.wait();
        __syncthreads();
        const mail mine = letter;
        if (mine.slot == mail_leave) {
            if (leader) port.leave(mine);
            return;
        }
        task_record<P>& record = port.record(mine);
        const u32 type = P::get(record.type);
        const u32 blocks = P::get(record.blocks);
        const void* const words = record.words;
        if (mine.count != mail_tickets) {
            if (leader) {
                port.record_flight(record, mine.block);
                if (port.logs()) start_ns = P::clock_ns();
            }
            for (u32 b = mine.block; b < mine.block + mine.count; ++b) {
                if (b != mine.block) __syncthreads(); // the last block is done with the scratch memory
                cuda_block<Threads> block(b, blocks, arena, &failure);
                run_body(List{}, type, words, block);
            }
            __syncthreads();
            if (leader && port.logs()) port.log_flight(record, mine.block, mine.count, start_ns);
        } else {
            const u32 chunk = port.ticket_chunk(blocks);
            for (;;) {
                if (leader) first_drawn = port.draw(record, blocks, chunk);
                __syncthreads();
                const u32 first = first_drawn;
                if (first >= blocks) break;
                if (leader) {
                    port.record_flight(record, first);
                    if (port.logs()) start_ns = P::clock_ns();
                }
                const u32 last = first + chunk < blocks ? first + chunk : blocks;
                for (u32 b = first; b < last; ++b) {
                    if (b != first) __syncthreads();
                    cuda_block<Threads> block(b, blocks, arena, &failure);
                    run_body(List{}, type, words, block);
                }
                __syncthreads(); // everybody has read first_drawn and is done with the scratch memory
                if (leader && port.logs()) port.log_flight(record, first, last - first, start_ns);
            }
            __syncthreads();
        }
        if (leader) {
            if (failure.code != 0) {
                port.fail(record, failure.code);
                failure.code = 0;
            }
            port.answer(mine);
        }
    }
}

__device__ inline void copy_words(void* to, const void* from, u32 bytes)
{
    auto* const out = static_cast<uint4*>(to);
    const auto* const in = static_cast<const uint4*>(from);
    for (u32 i = threadIdx.x; i < bytes / 16; i += blockDim.x) out[i] = in[i];
}

__device__ inline void run_control(const kernel_arguments<cuda_platform>& args, unsigned char* fast)
{
    using P = cuda_platform;
    copy_words(fast, args.near_saved, args.near_bytes);
    byte_carver near(fast);
    byte_carver far(args.far);
    __shared__ control_state<P> state; // forty pointers: in shared memory, not in every role's registers
    if (threadIdx.x == 0) state.bind(args.memory.n, near, far);
    __syncthreads();
    if (threadIdx.x == 0) reset_phases<P>(args.memory, state);
    __syncthreads();
    P::team team;
    switch (threadIdx.x / 32) {
    case 0: {
        scheduler_role<P> role(args.memory, state);
        run_role<P>(role, team);
        break;
    }
    case 1: {
        ingest_role<P> role(args.memory, state);
        run_role<P>(role, team);
        break;
    }
    case 2: {
        notifier_role<P> role(args.memory, state, args.residency_ns);
        run_role<P>(role, team);
        break;
    }
    default: break;
    }
    __syncthreads();
    copy_words(args.near_saved, fast, args.near_bytes);
}

template <class List, u32 Threads>
__global__ void __launch_bounds__(Threads) megakernel(const __grid_constant__ kernel_arguments<cuda_platform> args)
{
    static_assert(Threads >= 96 && Threads % 32 == 0, "the control block needs three warps");
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    if (blockIdx.x == 0)
        run_control(args, dynamic_shared);
    else
        run_worker<List, Threads>(args, dynamic_shared);
}

/// The same body launched as a kernel of its own: what the stream- and graph-based engines run.
template <class Task, u32 Threads>
__global__ void __launch_bounds__(Threads) plain_kernel(const __grid_constant__ Task task)
{
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    __shared__ block_failure failure; // a plain launch has nobody to tell
    cuda_block<Threads> block(blockIdx.x, gridDim.x, dynamic_shared, &failure);
    task(block);
}

} // namespace slipstream::device
