// The persistent megakernel: one control block (block 0) and workers (all others), one CTA shape for all.
//
// Control block: warp 0 schedules, warp 1 ingests, warp 2 notifies, warp 3 links, warps 4 to 7 admit. Its state is copied from device
// memory into shared memory at launch and back at park.
// Workers: thread 0 talks to the mailbox, its warp waits for predecessors, all threads run bodies; of a type whose blocks have fewer threads, groups of so many draw tickets and run
// blocks each by itself. Bodies are dispatched by a switch over a compile-time list, in one translation unit: function pointers would make ptxas spill
// and ignore setmaxnreg.
#pragma once
#include "device/control.hpp"
#include "device/cuda_platform.cuh"
#include "device/kernel_arguments.hpp"
#include <slipstream/cuda_block.cuh>
#include <slipstream/kernel_image.hpp>

namespace slipstream::device {

/// Scratch memory of a block of T beside others.
template <class T>
constexpr u32 shared_share() { return (shared_bytes_of<T>() + 127) / 128 * 128; }

/// Calls run(task) with the struct as its own type, if blocks of that type have `Size` threads, or any number (0). A copy: what lies in memory would be
/// read again behind whatever a body stores.
template <u32 Size, class... Tasks, class Run>
__device__ __forceinline__ void with_task(task_list<Tasks...>, u32 type, const void* words, Run run)
{
    u32 index = 0;
    const auto call = [&]<class Task>(const Task* task) {
        if constexpr (Size == 0 || threads_of<Task>() == Size) {
            const Task copy = *task;
            run(copy);
        }
        return true;
    };
    // Not one of them: the type table and the list are made from the same pack, so this cannot happen.
    ((index++ == type ? call(static_cast<const Tasks*>(words)) : false) || ...);
}

template <u32 Size, class... Tasks>
constexpr bool any_of_size(task_list<Tasks...>)
{
    return ((threads_of<Tasks>() == Size) || ...);
}

/// Of a type's blocks.
template <class... Tasks>
__device__ __forceinline__ u32 threads_of_type(task_list<Tasks...>, u32 type)
{
    u32 index = 0, threads = worker_threads;
    ((index++ == type ? (threads = threads_of<Tasks>(), true) : false) || ...);
    return threads;
}

/// Block `index` of the task, by group number `group` of this worker's threads.
template <u32 Threads, class Task>
__device__ __forceinline__ void run_block(const Task& task, u32 group, u32 index, u32 blocks, void* arena, block_failure& failure)
{
    constexpr u32 size = threads_of<Task>();
    if constexpr (size == Threads) {
        cuda_block<Threads> block(index, blocks, arena, &failure);
        task(block);
    } else {
        cuda_group<size> block(group, index, blocks, static_cast<unsigned char*>(arena) + group * shared_share<Task>(), &failure);
        task(block);
    }
}

/// A ticket mail of a type with blocks of `Size` threads: each group of so many draws for itself, and runs a block after the other.
template <class List, u32 Threads, u32 Size>
__device__ __forceinline__ void draw_blocks(worker_port<cuda_platform>& port, const mail& letter, u32 blocks, const void* words, void* arena,
                                            block_failure& failure)
{
    using P = cuda_platform;
    constexpr u32 groups = Threads / Size;
    __shared__ ticket_run drawn[groups][2]; // the one in hand, and the next
    __shared__ unsigned long long runs;
    const u32 group = threadIdx.x / Size;
    const bool leads = threadIdx.x % Size == 0;
    const auto sync = [&] {
        if constexpr (Size == Threads) __syncthreads();
        else if constexpr (Size == 32) __syncwarp();
        else __barrier_sync_count(1 + group, Size);
    };
    ticket_drawer<P> tickets(port, port.record(letter), blocks, groups);
    if (threadIdx.x == 0) runs = port.runs();
    // Of few blocks as many groups of each worker take part as leave none of the other workers without.
    if (leads) drawn[group][0] = group < (blocks + port.workers() - 1) / port.workers() ? tickets.draw() : ticket_run{blocks, 0};
    __syncthreads();
    for (u32 turn = 0;; turn ^= 1) {
        const ticket_run run = drawn[group][turn];
        if (run.count == 0) break;
        ticket_run next{};
        flight_times times{};
        u64 number = 0;
        if (leads) {
            next = tickets.draw_ahead();
            port.note_flight(letter, run.first);
            number = atomicAdd(&runs, 1ull) + 1;
            times.start_ns = P::clock_ns();
        }
        __syncwarp(); // bodies begin with whole warps, whatever became of the leader's branch
        with_task<Size>(List{}, letter.type(), words, [&](const auto& task) {
            SLIPSTREAM_ONE_COPY
            for (u32 b = run.first; b < run.first + run.count; ++b) {
                if (b != run.first) sync(); // scratch memory is used again
                run_block<Threads>(task, group, b, blocks, arena, failure);
            }
        });
        if (leads) {
            tickets.took(P::clock_ns() - times.start_ns);
            drawn[group][turn ^ 1] = next.count != 0 ? next : tickets.draw();
        }
        sync(); // everybody is done with the scratch memory, and the next run is there
        if (leads) port.log_flight(letter, run.first, run.count, times, number);
    }
    const bool all = __syncthreads_or(port.all_drawn()) != 0;
    port.set_all_drawn(all && threadIdx.x == 0); // it answers
    if (threadIdx.x == 0) port.set_runs(runs);
}

template <class List, u32 Threads>
__device__ void run_worker(const kernel_arguments<cuda_platform>& args, unsigned char* arena)
{
    using P = cuda_platform;
    __shared__ mail letter;
    __shared__ verdict decision;
    __shared__ __align__(16) u32 kept_words[abi::task_words_max];
    __shared__ block_failure failure;
    __shared__ flight_times times; // the leader's; not in registers, which would be the bodies'
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    worker_port<P> port(args.memory, blockIdx.x - 1, sm);
    const bool leader = threadIdx.x == 0;
    if (leader) {
        failure.code = 0;
        times.wait_ns = 0;
    }
    for (;;) {
        if (leader) letter = port.wait();
        __syncthreads();
        const mail mine = letter;
        if (mine.leaves()) {
            if (leader) port.leave(mine);
            return;
        }
        task_record<P>& record = port.record(mine);
        const u32 type = mine.type();
        const u32 blocks = P::get(record.blocks);
        const void* words = record.words;
        bool skipped = false;
        if (mine.waits() != 0) {
            // The struct is copied to where the polls of the first warp do not drive it out of the cache.
            if (threadIdx.x < 32) {
                if (leader && port.logs()) times.wait_ns = P::clock_ns();
                P::team team;
                const verdict found = port.await(team, mine);
                if (leader) decision = found;
            } else {
                for (u32 i = threadIdx.x - 32; i < abi::task_words_max; i += Threads - 32) kept_words[i] = P::get(record.words[i]);
            }
            __syncthreads();
            if (decision == verdict::leave) { // parked, or aborted
                if (leader) port.save();
                return;
            }
            skipped = decision == verdict::skip;
            words = kept_words;
        }
        if (skipped) {
            if (leader) {
                port.skip();
                times.wait_ns = 0;
            }
        } else if (!mine.tickets()) {
            if (leader) {
                port.record_flight(mine, mine.block());
                if (port.logs()) times.start_ns = P::clock_ns();
            }
            __syncwarp(); // bodies begin with whole warps, whatever became of the leader's branch
            with_task<0>(List{}, type, words, [&]<class Task>(const Task& task) {
                if (threads_of<Task>() == Threads || threadIdx.x < threads_of<Task>()) run_block<Threads>(task, 0, mine.block(), blocks, arena, failure);
            });
            __syncthreads();
            if (leader && port.logs()) port.log_flight(mine, mine.block(), 1, times, port.runs());
        } else {
            for (u32 i = threadIdx.x; i < abi::task_words_max; i += Threads) kept_words[i] = P::get(record.words[i]);
            const u32 size = threads_of_type(List{}, type); // draw_blocks begins with a barrier
            const auto draw = [&]<u32 Size>() {
                if constexpr (any_of_size<Size>(List{}))
                    if (size == Size) draw_blocks<List, Threads, Size>(port, mine, blocks, kept_words, arena, failure);
            };
            draw.template operator()<Threads>();
            draw.template operator()<128>();
            draw.template operator()<64>();
            draw.template operator()<32>();
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

extern __shared__ __align__(16) unsigned char dynamic_shared[];

// One function a role. Inlined: the kernel's parameters are then read at places known when it is compiled; called, by an address.
template <u32 Groups>
__device__ __forceinline__ void run_scheduler(const kernel_arguments<cuda_platform>& args)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    cuda_platform::team team;
    scheduler_role<cuda_platform, Groups> role(args.memory, state);
    run_role<cuda_platform>(role, team);
}

template <u32 AheadSlots>
__device__ __forceinline__ void run_ingest(const kernel_arguments<cuda_platform>& args)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    cuda_platform::team team;
    ingest_role<cuda_platform, AheadSlots> role(args.memory, state);
    run_role<cuda_platform>(role, team);
}

__device__ __forceinline__ void run_linker(const kernel_arguments<cuda_platform>& args)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    cuda_platform::team team;
    linker_role<cuda_platform> role(args.memory, state);
    run_role<cuda_platform>(role, team);
}

__device__ __forceinline__ void run_admission(const kernel_arguments<cuda_platform>& args)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    cuda_platform::crew crew;
    admission_role<cuda_platform> role(args.memory, state);
    run_role<cuda_platform>(role, crew);
}

__device__ __forceinline__ void run_notifier(const kernel_arguments<cuda_platform>& args)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    cuda_platform::team team;
    notifier_role<cuda_platform> role(args.memory, state, args.residency_ns);
    run_role<cuda_platform>(role, team);
}

template <u32 PerSm>
__device__ __forceinline__ void run_control(const kernel_arguments<cuda_platform>& args)
{
    copy_words(dynamic_shared, args.near_saved, args.offsets.near_bytes);
    __syncthreads();
    if (threadIdx.x == 0)
        reset_phases<cuda_platform>(args.memory, {args.memory.n, args.offsets, dynamic_shared, args.far});
    __syncthreads();
    switch (threadIdx.x / 32) {
    case 0: run_scheduler<PerSm * cuda_workers_per_sm_step / 32>(args); break;
    case 1: run_ingest<PerSm == 1 ? ahead_slots_max : staged_slots>(args); break; // two have no registers for more
    case 2: run_notifier(args); break;
    case 3: run_linker(args); break;
    default: run_admission(args); break;
    }
    __syncthreads();
    copy_words(args.near_saved, dynamic_shared, args.offsets.near_bytes);
}

/// `PerSm` blocks of it fit on an SM: with one, the control roles may use twice the registers and do not spill.
template <class List, u32 Threads, u32 PerSm>
__global__ void __launch_bounds__(Threads, PerSm) megakernel(const __grid_constant__ kernel_arguments<cuda_platform> args)
{
    static_assert(Threads == 256, "the control block is made of eight warps");
    if (blockIdx.x == 0)
        run_control<PerSm>(args);
    else
        run_worker<List, Threads>(args, dynamic_shared);
}

/// The same body launched as a kernel of its own: what the stream- and graph-based engines run. Behind a programmatic edge of a
/// graph it takes its place on an SM early and waits there until its predecessors are complete; otherwise neither call does anything.
template <class Task, u32 Threads>
__global__ void __launch_bounds__(Threads) plain_kernel(const __grid_constant__ Task task)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    __shared__ block_failure failure; // a plain launch has nobody to tell
    cuda_block<Threads> block(blockIdx.x, gridDim.x, dynamic_shared, &failure);
    task(block);
}

} // namespace slipstream::device
