// The persistent megakernel: one control block (block 0) and workers (all others), one CTA shape for all.
//
// Control block: warp 0 schedules, warp 1 ingests, warp 2 notifies, warp 3 links, warps 4 to 7 admit. Its state is copied from device
// memory into shared memory at launch and back at park.
// Workers: the first warp reads mail and waits for predecessors, its thread 0 answers, all threads run bodies; of a type whose blocks have fewer threads, groups of so many draw tickets and run
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

/// The structs of the mails in the inbox, by the first warp: all loads are on their way before the first has come.
__device__ __forceinline__ void copy_structs(const worker_port<cuda_platform>& port, inbox<cuda_platform>& box,
                                             u32 (&words)[cuda_platform::mailbox_depth][abi::task_words_max],
                                             u32 (&blocks)[cuda_platform::mailbox_depth])
{
    using P = cuda_platform;
    static_assert(abi::task_words_max == 2 * 32);
    const u32 first = box.answered + 1;
    const u32 count = box.count();
    u32 kept[P::mailbox_depth][2];
    u32 kept_blocks = 0;
    if (threadIdx.x < count) kept_blocks = P::get(port.record(box.letter(first + threadIdx.x)).blocks);
    SLIPSTREAM_UNROLL
    for (u32 i = 0; i < P::mailbox_depth; ++i)
        SLIPSTREAM_UNROLL
        for (u32 half = 0; half < 2; ++half)
            if (i < count) kept[i][half] = P::get(port.record(box.letter(first + i)).words[32 * half + threadIdx.x]);
    SLIPSTREAM_UNROLL
    for (u32 i = 0; i < P::mailbox_depth; ++i)
        SLIPSTREAM_UNROLL
        for (u32 half = 0; half < 2; ++half)
            if (i < count) words[(first + i) % P::mailbox_depth][32 * half + threadIdx.x] = kept[i][half];
    if (threadIdx.x < count) blocks[(first + threadIdx.x) % P::mailbox_depth] = kept_blocks;
    __syncwarp();
}

/// What comes after each mail that was read, a bit for each place of the mailbox; chosen when they are read, so that there is little to do between two bodies.
struct mail_plan {
    u32 word;

    static constexpr u32 places = cuda_platform::mailbox_depth;
    __device__ bool bit(u32 from, const mail& letter) const { return (word >> (from + letter.tag % places) & 1) != 0; }
    /// The next mail waits for nothing but mails of this worker, and this one's answer may come with its own: it runs at once
    /// behind the barrier that ends this body, without a second one or a look for a park.
    __device__ bool goes_on(const mail& letter) const { return bit(0, letter); }
    /// The next mail follows, and looks for a park.
    __device__ bool looks(const mail& letter) const { return bit(places, letter); }
    /// One failed or was skipped: those that follow may have to be, too.
    __device__ mail_plan stumbled() const { return {word & ~low_bits(places)}; }
};
static_assert(2 * mail_plan::places <= 32);

/// While it waits for other workers' tasks, a worker looks for more mail after so many polls.
inline constexpr u32 polls_between = 256;

/// What the first warp tells the others: all that is known before the wait is over lies there by then.
struct alignas(16) work_order {
    mail letter;
    mail_plan plan;
    u32 blocks;
    verdict decision;
};

__device__ __forceinline__ mail_plan make_plan(const worker_port<cuda_platform>& port, inbox<cuda_platform>& box)
{
    u32 mine = 0;
    const u32 number = box.answered + 1 + threadIdx.x;
    if (threadIdx.x + 1 < box.count()) {
        const mail& next = box.letter(number + 1);
        const bool goes_on = box.letter(number).brief() && next.joins() && next.waits() == 0;
        const u32 flags = static_cast<u32>(goes_on) | static_cast<u32>(next.follows()) << mail_plan::places;
        mine = flags << number % mail_plan::places;
    }
    const mail_plan all{__reduce_or_sync(0xffffffff, mine)};
    return __shfl_sync(0xffffffff, port.stumbled_lately(), 0) ? all.stumbled() : all;
}

template <class List, u32 Threads>
__device__ void run_worker(const kernel_arguments<cuda_platform>& args, unsigned char* arena)
{
    using P = cuda_platform;
    __shared__ inbox<P> box;
    __shared__ work_order order;
    __shared__ __align__(16) u32 kept_words[P::mailbox_depth][abi::task_words_max]; // of each mail that was read
    __shared__ u32 kept_blocks[P::mailbox_depth];
    // Of the mail in hand, of the one before and of the next one, whose body some warps may have begun before others have looked at this.
    __shared__ block_failure failures[3];
    __shared__ flight_times times; // the leader's; not in registers, which would be the bodies'
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    const bool leader = threadIdx.x == 0;
    worker_port<P> port(args.memory, box, blockIdx.x - 1, sm, leader);
    if (leader) {
        for (block_failure& f : failures) f.code = 0;
        times.wait_ns = 0;
    }
    __syncthreads();
    mail mine{};
    mail_plan plan{0};
    bool at_hand = false; // the next mail
    bool failed_before = false; // the leader's
    for (u32 turn = 0;; turn = turn == 2 ? 0 : turn + 1) {
        block_failure& failure = failures[turn];
        u32 blocks = 0;
        bool skipped = false;
        if (at_hand) {
            mine = box.letter(mine.tag + 1);
            blocks = kept_blocks[mine.tag % P::mailbox_depth];
        } else {
            // The first warp fetches mails, with the structs of all of them, and waits for what the next one waits for: one barrier before the body, one behind it.
            if (threadIdx.x < 32) {
                P::team team;
                team.sync(); // the leader has answered the last one
                bool new_ones = !port.has_mail();
                const mail next = port.wait(team);
                if (leader) order.letter = next;
                verdict found = next.leaves() || !next.staged() ? verdict::run : verdict::wait;
                if (leader && port.logs() && next.waits() != 0 && !next.leaves()) times.wait_ns = P::clock_ns();
                for (;;) {
                    if (new_ones && !next.leaves()) {
                        copy_structs(port, box, kept_words, kept_blocks);
                        const mail_plan made = make_plan(port, box);
                        if (leader) order.plan = made;
                    }
                    if (leader) order.blocks = kept_blocks[next.tag % P::mailbox_depth];
                    if (found != verdict::wait) break;
                    found = port.await(team, next, polls_between);
                    new_ones = found == verdict::wait && port.read_more(team);
                }
                if (leader) order.decision = found;
            }
            __syncthreads();
            const work_order in_hand = order;
            mine = in_hand.letter;
            plan = in_hand.plan;
            blocks = in_hand.blocks;
            if (in_hand.decision != verdict::run || mine.leaves()) {
                if (mine.leaves()) {
                    if (leader) port.leave(mine);
                    return;
                }
                if (in_hand.decision == verdict::leave) { // parked, or aborted
                    if (leader) port.save();
                    return;
                }
                skipped = true;
            }
        }
        task_record<P>& record = port.record(mine);
        const u32 type = mine.type();
        const u32* const words = kept_words[mine.tag % P::mailbox_depth];
        if (skipped) {
            __syncthreads(); // all have read the letter
            if (leader) {
                order.plan = order.plan.stumbled();
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
            at_hand = plan.goes_on(mine);
            if (at_hand && failure.code != 0) at_hand = false;
            if (leader && port.logs()) port.log_flight(mine, mine.block(), 1, times, port.runs());
        } else {
            const u32 size = threads_of_type(List{}, type); // draw_blocks begins with a barrier
            const auto draw = [&]<u32 Size>() {
                if constexpr (any_of_size<Size>(List{}))
                    if (size == Size) draw_blocks<List, Threads, Size>(port, mine, blocks, words, arena, failure);
            };
            draw.template operator()<Threads>();
            draw.template operator()<128>();
            draw.template operator()<64>();
            draw.template operator()<32>();
            __syncthreads();
            at_hand = false;
        }
        if (leader) {
            const u32 code = failure.code;
            if (code != 0) port.fail(record, code);
            if (at_hand) port.answer_later(mine);
            else port.answer(mine, plan.looks(mine));
            // What nobody waits for.
            if (failed_before) failures[turn == 0 ? 2 : turn - 1].code = 0; // of the mail after the next: all have looked at the one before
            failed_before = code != 0;
            if (failed_before) order.plan = order.plan.stumbled();
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
        reset_phases<cuda_platform>({args.memory.n, args.offsets, dynamic_shared, args.far});
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
