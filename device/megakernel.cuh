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

/// Calls run<Task>() for the task type of that number, if blocks of it have `Size` threads, or any number (0).
template <u32 Size, class... Tasks, class Run>
__device__ __forceinline__ void with_type(task_list<Tasks...>, u32 type, Run run)
{
    u32 index = 0;
    const auto call = [&]<class Task>() {
        if constexpr (Size == 0 || threads_of<Task>() == Size) run.template operator()<Task>();
        return true;
    };
    // Not one of them: the type table and the list are made from the same pack, so this cannot happen.
    ((index++ == type ? call.template operator()<Tasks>() : false) || ...);
}

/// The struct that bodies see. A copy: what lies in memory would be read again behind whatever a body stores.
template <class Task>
__device__ __forceinline__ Task task_in(const void* words) { return *static_cast<const Task*>(words); }

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
        with_type<Size>(List{}, letter.type(), [&]<class Task>() {
            const Task task = task_in<Task>(words);
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

/// The structs of the mails in the inbox behind mail `known`, by the first warp, half of it for each of two mails: all loads are on their way before the first has come.
__device__ __forceinline__ void copy_structs(const worker_port<cuda_platform>& port, inbox<cuda_platform>& box, u32 known,
                                             u32 (&words)[cuda_platform::mailbox_depth][abi::task_words_max],
                                             u32 (&blocks)[cuda_platform::mailbox_depth])
{
    using P = cuda_platform;
    static_assert(abi::task_words_max == 16 * 4 && offsetof(task_record<P>, words) % 16 == 0 && alignof(task_record<P>) % 16 == 0);
    constexpr u32 pairs = P::mailbox_depth / 2;
    const u32 first = known + 1, count = mails_between(known, box.known);
    const u32 half = threadIdx.x / 16, at = threadIdx.x % 16 * 4; // words, 16 bytes of them
    u32 kept_blocks = 0;
    uint4 kept[pairs];
    if (threadIdx.x < count) kept_blocks = P::get(port.record(box.letter(first + threadIdx.x)).blocks);
    SLIPSTREAM_UNROLL
    for (u32 i = 0; i < pairs; ++i) {
        if (2 * i >= count) break; // one mail, most often
        if (2 * i + half < count) kept[i] = *reinterpret_cast<const uint4*>(&port.record(box.letter(first + 2 * i + half)).words[at].raw);
    }
    SLIPSTREAM_UNROLL
    for (u32 i = 0; i < pairs; ++i) {
        if (2 * i >= count) break;
        if (2 * i + half < count) *reinterpret_cast<uint4*>(&words[(first + 2 * i + half) % P::mailbox_depth][at]) = kept[i];
    }
    if (threadIdx.x < count) blocks[(first + threadIdx.x) % P::mailbox_depth] = kept_blocks;
    __syncwarp();
}

/// While it waits for other workers' tasks, a worker looks for more mail after so many polls.
inline constexpr u32 polls_between = 256;

/// What all threads look at when a body is over.
struct alignas(8) body_end {
    block_failure failure;
    u32 stopping; ///< the leader saw a park, or the end, when it answered the mail before
    __device__ bool stands() const { return (failure.code | stopping) != 0; } ///< no mail is at hand
};

template <class List, u32 Threads>
__device__ void run_worker(const kernel_arguments<cuda_platform>& args, unsigned char* arena)
{
    using P = cuda_platform;
    __shared__ inbox<P> box;
    __shared__ mail order; // the mail to come, for those who did not read it
    __shared__ __align__(16) u32 kept_words[P::mailbox_depth][abi::task_words_max]; // of each mail that was read
    __shared__ u32 kept_blocks[P::mailbox_depth];
    // Of the mail in hand, of the one before and of the next one, whose body some warps may have begun before others have looked at this.
    __shared__ body_end ends[3];
    __shared__ flight_times times; // the leader's; not in registers, which would be the bodies'
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    const bool leader = threadIdx.x == 0;
    worker_port<P> port(args.memory, box, blockIdx.x - 1, sm, leader);
    if (leader) {
        for (body_end& e : ends) e = {};
        times.wait_ns = 0;
    }
    __syncthreads();
    mail mine{};
    inbox<P>::plan_type plan{};
    bool at_hand = false; // the next mail
    bool failed_before = false; // the leader's
    for (u32 turn = 0;; turn = turn == 2 ? 0 : turn + 1) {
        bool skipped = false;
        u32 blocks = 1; // what is at hand has one
        if (at_hand) {
            mine = port.after(mine);
        } else {
            // The first warp fetches mails, with the structs of all of them, and tells the others.
            if (threadIdx.x < 32) {
                P::team team;
                team.sync(); // the leader has answered the last one
                const u32 known = box.known;
                const mail next = port.wait(team);
                if (leader) order = next;
                if (known != box.known && !next.leaves()) copy_structs(port, box, known, kept_words, kept_blocks);
            }
            __syncthreads();
            mine = order;
            if (mine.leaves()) {
                if (leader) port.leave(mine);
                return;
            }
            blocks = kept_blocks[mine.tag % P::mailbox_depth];
            if (mine.staged()) {
                // And waits for what this one waits for. Only what it finds is left to be told then.
                if (threadIdx.x < 32) {
                    P::team team;
                    if (leader && port.logs() && mine.waits() != 0) times.wait_ns = P::clock_ns();
                    verdict decision = verdict::wait;
                    while ((decision = port.await(team, mine, polls_between)) == verdict::wait) {
                        const u32 known = box.known;
                        if (port.read_more(team)) copy_structs(port, box, known, kept_words, kept_blocks);
                    }
                    if (leader) box.found.decision = decision;
                }
                __syncthreads();
                const auto found = box.found;
                plan = found.plan;
                const verdict decision = found.decision;
                if (decision == verdict::leave) { // parked, or aborted
                    if (leader) port.save();
                    return;
                }
                skipped = decision == verdict::skip;
            } else {
                plan = box.found.plan;
            }
        }
        const u32 type = mine.type();
        if (skipped) {
            __syncthreads(); // all have read the letter
            if (leader) {
                port.skip();
                times.wait_ns = 0;
            }
        } else if (!mine.tickets()) {
            u32 number = mine.tag;
            with_type<0>(List{}, type, [&]<class Task>() {
                mail letter = mine;
                const u32* words = kept_words[number % P::mailbox_depth];
                u32 block = mine.block();
                SLIPSTREAM_ONE_COPY
                for (;;) {
                    if (threadIdx.x == 32) port.note_flight(letter, block); // the leader has enough to do
                    if (leader && port.logs()) times.start_ns = P::clock_ns();
                    __syncwarp(); // bodies begin with whole warps, whatever became of these branches
                    const Task task = task_in<Task>(words);
                    if (threads_of<Task>() == Threads || threadIdx.x < threads_of<Task>())
                        run_block<Threads>(task, 0, block, blocks, arena, ends[turn].failure);
                    __syncthreads();
                    if (plan.none() || !plan.repeats(number) || ends[turn].stands()) break;
                    turn = turn == 2 ? 0 : turn + 1;
                    number = tag_of(number + 1);
                    if (threadIdx.x == 32) letter = box.letter(number);
                    words = kept_words[number % P::mailbox_depth];
                    block = 0;
                    blocks = 1;
                }
            });
            if (plan.none() && !port.logs()) { // most often, and others wait for it: what a chain needs comes after
                at_hand = false;
                if (leader && !failed_before && ends[turn].failure.code == 0) {
                    port.answer_alone(box.letter(number));
                    port.count_flights(1);
                    continue;
                }
            } else {
                at_hand = plan.goes_on(number) && !ends[turn].stands();
            }
            if (leader) port.count_flights(1 + mails_between(mine.tag, number));
            mine = box.letter(number);
            if (leader && port.logs()) port.log_flight(mine, mine.block(), 1, times, port.runs());
        } else {
            const u32 size = threads_of_type(List{}, type); // draw_blocks begins with a barrier
            const mail& letter = box.letter(mine.tag); // and what is needed behind the bodies: in no register, they are the bodies'
            const auto draw = [&]<u32 Size>() {
                if constexpr (any_of_size<Size>(List{}))
                    if (size == Size) draw_blocks<List, Threads, Size>(port, letter, blocks, kept_words[mine.tag % P::mailbox_depth], arena, ends[turn].failure);
            };
            draw.template operator()<Threads>();
            draw.template operator()<128>();
            draw.template operator()<64>();
            draw.template operator()<32>();
            __syncthreads();
            mine = leader ? box.next() : mail{};
            plan = leader ? box.found.plan : inbox<P>::plan_type{};
            at_hand = false;
        }
        if (leader && !(at_hand && plan.answers_later(mine.tag))) {
            const u32 code = ends[turn].failure.code;
            if (code != 0) port.fail(port.record(mine), code);
            port.answer(mine, plan.looks(mine.tag));
            ends[turn == 2 ? 0 : turn + 1].stopping = port.told_to_stop(); // all have looked at it two mails ago
            // What nobody waits for.
            if (failed_before) ends[turn == 0 ? 2 : turn - 1].failure.code = 0; // of the mail after the next: all have looked at the one before
            failed_before = code != 0;
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
