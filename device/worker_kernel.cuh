// The workers' half of the megakernel: instantiated by the user, over a task list. The other half, the control block, is in the
// library (control_kernel.cu): it knows no bodies.
//
// The first warp reads mail, its thread 0 answers, a thread of the third warp or all of the fourth wait for predecessors (the first
// warp says what becomes of a failure or a park, and of mails for which worker_port::awaits_aside() does not hold), all threads run
// bodies; of a type whose blocks have fewer threads, groups of so many draw tickets and run blocks each by itself. Bodies are
// dispatched by comparisons over a compile-time list (with_type), in one translation unit: function pointers would make ptxas spill
// and ignore setmaxnreg.
#pragma once
#include "device/cuda_platform.cuh"
#include "device/muster.cuh"
#include "device/worker.hpp"
#include <slipstream/cuda_block.cuh>
#include <slipstream/kernel_image.hpp>
#include <tuple>

namespace slipstream::device {

/// Scratch memory of a block of T beside others.
template <class T>
constexpr u32 shared_share() { return (shared_bytes_of<T>() + 127) / 128 * 128; }

/// Calls run<Task>() for the task type of that number, if blocks of it have `Size` threads, or any number (0). By halves: two
/// to five branches cost less than the table of a switch, which is one load of constant memory and an indirect branch.
template <u32 Size, u32 First, u32 Count, class... Tasks, class Run>
__device__ __forceinline__ void with_type_of(task_list<Tasks...> list, u32 type, const Run& run)
{
    if constexpr (Count == 1) {
        using task = std::tuple_element_t<First, std::tuple<Tasks...>>;
        if constexpr (Size == 0 || threads_of<task>() == Size) run.template operator()<task>();
    } else {
        if (type < First + Count / 2) with_type_of<Size, First, Count / 2>(list, type, run);
        else with_type_of<Size, First + Count / 2, Count - Count / 2>(list, type, run);
    }
}
template <u32 Size, class... Tasks, class Run>
__device__ __forceinline__ void with_type(task_list<Tasks...> list, u32 type, const Run& run)
{
    static_assert(sizeof...(Tasks) != 0);
    with_type_of<Size, 0, sizeof...(Tasks)>(list, type, run); // the type table and the list are made from the same pack:
                                                              // the number is in range
}

/// The first words of a task's struct.
struct struct_head {
    uint4 quads[2];
};

/// The struct that bodies see. A copy: what lies in memory would be read again behind whatever a body stores.
template <class Task>
__device__ __forceinline__ Task task_in(const u32* words) { return *reinterpret_cast<const Task*>(words); }

/// The same, of which the head is there.
template <class Task>
__device__ __forceinline__ Task task_of(const struct_head& head, const u32* words)
{
    // Not byte by byte: nvcc would make the struct of bytes.
    if constexpr (sizeof(Task) <= sizeof(struct_head) && alignof(Task) <= alignof(struct_head))
        return *reinterpret_cast<const Task*>(&head);
    else return task_in<Task>(words);
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

/// Of bodies as a worker runs them.
template <class Task>
constexpr bool never_fails_here()
{
    constexpr u32 size = threads_of<Task>();
    return never_fails<Task, std::conditional_t<size == worker_threads, cuda_block<worker_threads>, cuda_group<size>>>();
}

/// Block `index` of the task, by group number `group` of this worker's threads, of which this one is number `rank`.
template <class Task>
__device__ __forceinline__ void run_block(const Task& task, u32 group, u32 rank, u32 index, u32 blocks, void* arena,
                                          block_failure& failure)
{
    constexpr u32 size = threads_of<Task>();
    block_failure* const told = never_fails_here<Task>() ? nullptr : &failure;
    if constexpr (size == worker_threads) {
        cuda_block<worker_threads> block(index, blocks, arena, told);
        task(block);
    } else {
        auto* const scratch = static_cast<unsigned char*>(arena) + group * shared_share<Task>();
        cuda_group<size> block(group, rank, index, blocks, scratch, told);
        task(block);
    }
}

/// A ticket mail of a type with blocks of `Size` threads: each group of so many draws for itself, and runs a block after the other.
template <class List, u32 Size>
__device__ __forceinline__ void draw_blocks(worker_port<cuda_platform>& port, const mail& letter, u32 blocks, const u32* words,
                                            void* arena, block_failure& failure)
{
    using P = cuda_platform;
    constexpr u32 groups = worker_threads / Size;
    __shared__ ticket_run drawn[groups][2]; // the one in hand, and the next
    __shared__ unsigned long long runs;
    const u32 group = threadIdx.x / Size;
    const bool leads = threadIdx.x % Size == 0;
    // Out of a shuffle, as in in_register(): else ptxas has threadIdx.x asked for in each block, 20 cycles or more.
    const u32 rank = __shfl_sync(0xffffffff, threadIdx.x % Size, threadIdx.x % 32);
    const auto sync = [&] {
        if constexpr (Size == worker_threads) __syncthreads();
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
        ticket_request next{};
        flight_times times{};
        u64 number = 0;
        if (leads) {
            next = tickets.ask_ahead();
            port.note_flight(port.flight_of(letter, run.first));
            number = atomicAdd(&runs, 1ull) + 1;
            times.start_ns = P::clock_ns();
        }
        __syncwarp(); // bodies begin with whole warps, whatever became of the leader's branch
        with_type<Size>(List{}, letter.type(), [&]<class Task>() {
            const Task task = task_in<Task>(words);
            SLIPSTREAM_ONE_COPY
            for (u32 b = run.first; b < run.first + run.count; ++b) {
                if (b != run.first) sync(); // scratch memory is used again
                run_block(task, group, rank, b, blocks, arena, failure);
            }
        });
        if (leads) {
            tickets.took(P::clock_ns() - times.start_ns);
            drawn[group][turn ^ 1] = tickets.next(next);
        }
        sync(); // everybody is done with the scratch memory, and the next run is there
        if (leads) port.log_flight(letter, run.first, run.count, times, number);
    }
    const bool all = __syncthreads_or(port.all_drawn()) != 0;
    port.set_all_drawn(all && threadIdx.x == 0); // it answers
    if (threadIdx.x == 0) port.set_runs(runs);
}

/// What all threads look at when a body is over.
struct alignas(8) body_end {
    block_failure failure;
    u32 stopping; ///< the leader saw a park, or the end, when it answered the mail before
    __device__ bool stands() const { return (failure.code | stopping) != 0; } ///< no mail is at hand
};

/// What the threads of a worker share, but for the memory of bodies and of ticket mails.
struct worker_shared {
    using P = cuda_platform;

    inbox<P> box;
    mail next;                ///< the mail to come, for those who did not read it
    inbox<P>::findings found; ///< what was known then. More may be found while a worker waits
    // Of each mail that was read.
    __align__(16) u32 words[P::mailbox_depth][abi::task_words_max];
    flight_record flights[P::mailbox_depth]; ///< what the recorder is told
    u32 blocks[P::mailbox_depth];
    /// Of the mail in hand, of the one before and of the next one, whose body some warps may have begun before others
    /// have looked at this; and one more, since to count by four is one instruction.
    body_end ends[4];
    device::awaited awaited[2]; ///< what became of the mail in hand, of two goes by turns: some may still look at the last one's
    flight_times times; ///< the leader's; not in registers, which would be the bodies'

    __device__ static u32 turn_after(u32 turn) { return (turn + 1) % 4; }
    __device__ static u32 turn_before(u32 turn) { return (turn + 3) % 4; }
    __device__ const u32* words_of(u32 number) const { return words[number % P::mailbox_depth]; }
    __device__ struct_head head_at(u32 place) const
    {
        const auto* const from = reinterpret_cast<const uint4*>(words[place]);
        return {{from[0], from[1]}};
    }
};

/// The same object, by an address that lies in a register. Where a shared variable is named, ptxas has the SM asked for its
/// place in the cluster (S2R, 20 to 50 cycles) each time; what came out of a shuffle it cannot ask for again.
template <class T>
__device__ __forceinline__ T& in_register(T& shared)
{
    const auto at = static_cast<u32>(__cvta_generic_to_shared(&shared));
    return *static_cast<T*>(__cvta_shared_to_generic(__shfl_sync(0xffffffff, at, 0)));
}

/// Copies the structs of mails that were just read, by the first warp, half of it for each of two mails: all loads are on
/// their way before the first has come.
class struct_copy {
public:
    using P = cuda_platform;

    /// Of so many mails from number `first` on.
    __device__ __forceinline__ void load(const worker_port<P>& port, worker_shared& shared, u32 first, u32 count)
    {
        if (shared.box.letter(first).leaves()) return; // it comes alone
        first_ = first;
        count_ = count;
        if (threadIdx.x < count) blocks_ = P::get(port.record(shared.box.letter(first + threadIdx.x)).blocks);
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < pairs; ++i) {
            if (2 * i >= count) break; // one mail, most often
            const u32 mine = 2 * i + threadIdx.x / 16;
            if (mine < count)
                kept_[i] = *reinterpret_cast<const uint4*>(&port.record(shared.box.letter(first + mine)).words[word()].raw);
        }
    }

    /// Once: whatever load() asked for, if anything.
    __device__ __forceinline__ void store(const worker_port<P>& port, worker_shared& shared)
    {
        if (count_ == 0) return;
        SLIPSTREAM_UNROLL
        for (u32 i = 0; i < pairs; ++i) {
            if (2 * i >= count_) break;
            const u32 mine = 2 * i + threadIdx.x / 16;
            if (mine < count_) *reinterpret_cast<uint4*>(&shared.words[(first_ + mine) % P::mailbox_depth][word()]) = kept_[i];
        }
        if (threadIdx.x < count_) {
            const mail& letter = shared.box.letter(first_ + threadIdx.x);
            shared.flights[letter.tag % P::mailbox_depth] = port.flight_of(letter, letter.block());
            shared.blocks[letter.tag % P::mailbox_depth] = blocks_;
        }
        __syncwarp();
        count_ = 0;
    }

    /// Whatever load() asked for is not wanted.
    __device__ __forceinline__ void forget() { count_ = 0; }

private:
    static_assert(abi::task_words_max == 16 * 4 && offsetof(task_record<P>, words) % 16 == 0 && alignof(task_record<P>) % 16 == 0);
    static constexpr u32 pairs = P::mailbox_depth / 2;
    __device__ static u32 word() { return threadIdx.x % 16 * 4; }

    u32 first_;
    u32 count_ = 0;
    u32 blocks_;
    uint4 kept_[pairs];
};

/// While it waits for other workers' tasks, a worker looks whether more mail has come, or a park, after so many polls of some 340
/// cycles: what comes behind the task that it waits for is planned when it is read, and should be when that one runs. Where the
/// first warp polls, to look is to read mail, which takes longer: after twice as many polls each time, up to polls_between. Of a
/// broadcast seldom: each look makes some worker late, and all wait for the last of them.
inline constexpr u32 polls_at_first = 8;
inline constexpr u32 polls_between = 256;
inline constexpr u32 polls_meanwhile = 32; ///< while the first warp answers, or reads mail; then the look comes
// Who polls right before a body, of neither the leader's warp nor the recorder's: a thread, where the mail waits for one task
// alone, else another warp: one warp for both made that thread 0.02 us later (device/tried.md).
inline constexpr u32 aside_thread = 64;
inline constexpr u32 aside_warp = 3;
static_assert(aside_thread < worker_threads && 32 * aside_warp < worker_threads);

__device__ __forceinline__ u32 first_polls(const mail& letter) { return letter.broadcast() ? polls_between : polls_at_first; }
/// So many polls after those.
__device__ __forceinline__ u32 longer(const mail& letter, u32 polls)
{
    return letter.broadcast() || polls >= polls_between ? polls_between : 2 * polls;
}

/// By the first warp: fetches mails, with the structs of all of them, and tells the others. `early`: while others wait for what the
/// mail in hand waits for.
__device__ __forceinline__ void fetch_mail(worker_port<cuda_platform>& port, worker_shared& shared, u32 sm, bool early)
{
    using P = cuda_platform;
    P::team team;
    team.sync(); // the leader has answered the last one
    struct_copy structs;
    const mail came = port.wait(
        team, [&](u32 first, u32 count) { structs.load(port, shared, first, count); },
        [&](const mail& blank) {
            structs.forget(); // what its record holds is of no task
            return reinterpret_cast<P::cell<u32>*>(shared.words[blank.tag % P::mailbox_depth]);
        },
        [mine = &shared, place = sm << 16](const mail& task) { // of worker 0
            mine->flights[task.tag % P::mailbox_depth] = worker_port<P>::flight_of(task, 0, place);
            mine->blocks[task.tag % P::mailbox_depth] = 1;
        },
        [](const mail&) {}, early);
    if (team.leader()) {
        shared.next = came;
        shared.found = shared.box.found;
    }
    structs.store(port, shared);
}

/// By the first warp: says what becomes of the mail in hand (`ask`), and reads more mail every so many polls; or, while others poll
/// for it (`aside`), reads more mail once. True: there is something to be told.
__device__ __forceinline__ bool await_or_read(worker_port<cuda_platform>& port, worker_shared& shared, const mail& mine, bool ask,
                                              bool aside, u32 polls)
{
    using P = cuda_platform;
    P::team team;
    auto decision = verdict::run;
    bool anew = false;
    for (u32 most = aside ? 0 : polls;; most = longer(mine, most)) {
        decision = ask ? port.await(team, mine, most) : verdict::wait;
        if (decision != verdict::wait) break;
        struct_copy structs;
        port.read_more(team, [&](u32 first, u32 count) { structs.load(port, shared, first, count); });
        structs.store(port, shared);
        anew = true;
        if (aside) break;
    }
    anew |= decision != verdict::run;
    if (team.leader() && !ask) shared.found = shared.box.found;
    else if (team.leader() && anew) shared.box.found.decision = decision;
    return anew;
}

/// All blocks of a ticket mail that are left, in groups of as many threads as its type has. Begins with a barrier.
template <class List>
__device__ __forceinline__ void draw_all_blocks(worker_port<cuda_platform>& port, const mail& letter, u32 type, u32 blocks,
                                                const u32* words, unsigned char* arena, block_failure& failure)
{
    const u32 size = threads_of_type(List{}, type);
    const auto draw = [&]<u32 Size>() {
        if constexpr (any_of_size<Size>(List{}))
            if (size == Size) draw_blocks<List, Size>(port, letter, blocks, words, arena, failure);
    };
    draw.template operator()<worker_threads>();
    draw.template operator()<128>();
    draw.template operator()<64>();
    draw.template operator()<32>();
}

/// `Alone`: it has its SM to itself (sizes::lone_workers). Only then do others than the first warp wait.
template <class List, bool Alone>
__device__ __forceinline__ void run_worker(const kernel_arguments<cuda_platform>& args, u32 worker, unsigned char* arena)
{
    using P = cuda_platform;
    __shared__ worker_shared of_this_worker;
    worker_shared& shared = in_register(of_this_worker);
    inbox<P>& box = shared.box;
    const u32 sm = this_sm();
    const bool leader = threadIdx.x == 0;
    const bool recorder = threadIdx.x == 32;
    worker_port<P> port(args.memory, box, worker, sm, leader);
    if (leader) {
        for (body_end& e : shared.ends) e = {};
        shared.times.wait_ns = 0;
    }
    __syncthreads();
    mail mine{}, next{}; // next: the one that is at hand
    struct_head head; // of the one in hand, or of that one
    flight_record flight{}; // the recorder's: the leader has enough to do
    P::chunk_word* const flight_place = port.flight_place();
    const auto note = [&] { P::store_if(recorder, edge::P3_recorder, *flight_place, flight.encode()); };
    const auto ask_for = [&](u32 place) {
        head = shared.head_at(place);
        if (recorder) flight = shared.flights[place];
    };
    inbox<P>::plan_type plan{};
    u32 plain = 0; // of the findings; 0 of a mail that is answered otherwise
    bool at_hand = false; // the next mail
    bool failed_before = false; // the leader's
    const auto take = [&](const inbox<P>::findings& found) {
        plan = found.plan;
        plain = mine.bypassed() ? 0 : found.plain & ~u32{mine.crosses()};
    };
    for (u32 turn = 0;; turn = worker_shared::turn_after(turn)) {
        // What the mail in hand waits for elsewhere others than the first warp poll for, right before its body (aside), in a go or
        // several; or it is the first warp that has to say what becomes of it (ask): of other mails, and if a go ended so.
        bool aside = false, ask = false;
        bool early = false; // aside, and before the last one is answered
        u32 polls = polls_meanwhile; // then a look for something else to do
        u32 blocks = 1; // what is at hand has one
        if (at_hand) {
            mine = next;
        } else {
            const auto load = [&] { // now, so that nothing is left to be loaded when the wait is over
                blocks = shared.blocks[mine.tag % P::mailbox_depth];
                ask_for(mine.tag % P::mailbox_depth);
            };
            early = aside = Alone && inbox<P>::findings::awaits_early(plain, mine.tag + 1);
            if (early) {
                mine = port.after(mine);
                load();
            }
            if (threadIdx.x < 32) fetch_mail(port, shared, sm, early);
            if (!early) {
                __syncthreads();
                mine = shared.next;
                if (mine.leaves()) {
                    if (leader) port.leave(mine);
                    return;
                }
                load();
                take(shared.found);
                aside = Alone && port.awaits_aside(mine);
                ask = mine.staged() && !aside;
                polls = first_polls(mine);
                if (leader && port.logs() && mine.waits() != 0) shared.times.wait_ns = P::clock_ns();
            }
        }
        u32 type = mine.type();
        u32 block = mine.block();
        const u32 crossing = u32{mine.crosses()};
        u32 number = mine.tag; // when this turn is over, of the last mail that has run
        bool skipped = false;
        bool answered = false; // the leader's
        // Does the first warp read mail while the others poll, and has it something to tell when they have done so?
        bool reads = false, tells = early;
        auto became = awaited::runs;
        for (u32 go = 0;; go ^= 1) {
            bool waits = aside;
            if (ask | reads) {
                const bool anew = threadIdx.x < 32 && await_or_read(port, shared, mine, ask, aside, polls);
                waits = !ask;
                if (ask && __syncthreads_or(anew)) {
                    const auto found = box.found;
                    if (found.decision == verdict::leave) { // parked, or aborted
                        if (leader) port.save();
                        return;
                    }
                    skipped = found.decision == verdict::skip;
                    waits = Alone && found.decision == verdict::wait;
                    take(found);
                }
            }
            if (skipped | mine.tickets()) break;
            if (waits && threadIdx.x / 32 == aside_warp && !port.awaits_one(mine.tag)) {
                P::team team;
                const awaited what = port.await_several_aside(team, mine, polls, tells);
                if (team.leader()) shared.awaited[go] = what;
            }
            bool changes; // the next mail begins at once, and is of another type
            do {
                changes = false;
                with_type<0>(List{}, type, [&]<class Task>() {
                    if (waits) {
                        if (threadIdx.x == aside_thread && port.awaits_one(mine.tag))
                            shared.awaited[go] = port.await_one_aside(mine.tag, polls, tells);
                        __syncthreads();
                        became = shared.awaited[go];
                        if (tells) { // take(), of a mail that is never bypassed
                            const auto found = shared.found;
                            plan = found.plan;
                            plain = found.plain & ~crossing;
                        }
                        if (became != awaited::runs) return;
                    }
                    const u32* words = shared.words_of(number);
                    u32 at_once = P::keep(plan.at_once_from(number)), place = P::keep(number % P::mailbox_depth);
                    if (leader && port.logs()) shared.times.start_ns = P::clock_ns(); // then none goes on
                    note();
                    __syncwarp(); // bodies begin with whole warps, whatever became of the leader's branch
                    SLIPSTREAM_ONE_COPY
                    for (;;) {
                        const Task task = task_of<Task>(head, words);
                        place = P::keep((place + 1) % P::mailbox_depth); // the next one's
                        if (threads_of<Task>() == worker_threads || threadIdx.x < threads_of<Task>())
                            run_block(task, 0, threadIdx.x, block, blocks, arena, shared.ends[turn].failure);
                        if ((at_once & 1) == 0) {
                            mail last = box.letter(number); // on the way while others finish
                            __syncthreads();
                            last.slot_and_type = P::keep(last.slot_and_type);
                            // Most often, and others wait for it: at once, not behind what brings all types' branches together.
                            if ((plain & 1) != 0 && leader && !failed_before) {
                                auto* const finished = port.finished_of(last);
                                const u32 code = never_fails_here<Task>() ? 0 : shared.ends[turn].failure.code;
                                port.release();
                                if (code == 0) {
                                    port.answer_released(last, *finished);
                                    port.count_flights(1);
                                    answered = true;
                                }
                            }
                            return;
                        }
                        ask_for(place); // likewise
                        mail follower = box.letters[place];
                        __syncthreads();
                        follower.slot_and_type = P::keep(follower.slot_and_type);
                        // Who never fails is not asked, nor whether a park was seen when the one before was answered: it waits for
                        // these, and where such rows come one behind the other for all that were read.
                        if (!never_fails_here<Task>() && shared.ends[turn].stands()) return;
                        at_once >>= 1;
                        turn = worker_shared::turn_after(turn);
                        number = tag_of(number + 1);
                        block = 0;
                        blocks = 1;
                        if (!follower.of_type(type)) {
                            type = follower.type();
                            waits = false;
                            changes = true;
                            return;
                        }
                        words = shared.words[place];
                        note();
                    }
                });
            } while (changes);
            if (became == awaited::runs) break;
            ask = became == awaited::look;
            reads = tells = became == awaited::more;
            polls = reads ? polls_meanwhile : first_polls(mine);
            became = awaited::runs;
        }
        if (answered) {
            at_hand = false;
            continue;
        }
        if (skipped) {
            __syncthreads(); // all have read the letter
            if (leader) {
                port.skip();
                shared.times.wait_ns = 0;
            }
        } else if (!mine.tickets()) {
            at_hand = (plain & 1) == 0 && plan.goes_on(number);
            if (at_hand) { // all loads together
                next = box.letter(number + 1);
                ask_for((number + 1) % P::mailbox_depth);
                at_hand = !shared.ends[turn].stands();
            } else if (mine.bypassed() && leader && !failed_before && shared.ends[turn].failure.code == 0 && !port.logs()) {
                port.answer_bypassed(box.letter(number)); // the host waits for it
                port.count_flights(1);
                continue;
            }
            if (leader && port.logs()) {
                const mail& last = box.letter(number);
                port.log_flight(last, last.block(), 1, shared.times, port.runs() + 1 + box.owed(number));
            }
        } else {
            // By its letter: what is needed behind the bodies is in no register, they are the bodies'. What is not needed there has
            // values of its own then, so that ptxas need not keep the old ones.
            draw_all_blocks<List>(port, box.letter(mine.tag), type, blocks, shared.words_of(mine.tag), arena,
                                  shared.ends[turn].failure);
            __syncthreads();
            number = leader ? box.next().tag : 0;
            plain = 0; // nobody but the leader knows what came last
            plan = leader ? box.found.plan : inbox<P>::plan_type{};
            at_hand = false;
            mine = next = {};
            head = {};
            flight = {};
        }
        if (leader && !(at_hand && plan.answers_later(number))) {
            const mail last = box.letter(number);
            const u32 code = shared.ends[turn].failure.code;
            const u32 flights = box.owed(number) + !(skipped || last.tickets()); // those of ticket mails are counted
            if (code == 0 && last.bypassed()) { // which is never skipped
                port.answer_bypassed(last);
            } else {
                if (code != 0) port.fail(port.record(last), code);
                port.answer(last, plan.looks(number));
            }
            shared.ends[worker_shared::turn_after(turn)].stopping = port.told_to_stop(); // all looked at it three mails ago
            // What nobody waits for.
            port.count_flights(flights);
            if (failed_before) shared.ends[worker_shared::turn_before(turn)].failure.code = 0; // all have looked at it
            failed_before = code != 0;
        }
    }
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];

/// `PerSm` blocks of it fit on an SM: with one, bodies may use twice the registers. An engine without workers asks for nothing:
/// that launch makes the driver load the kernel, and find the local memory that its threads need, which it could not while
/// another kernel is resident.
template <class List, u32 PerSm>
__global__ void __launch_bounds__(worker_threads, PerSm) worker_kernel(const __grid_constant__ kernel_arguments<cuda_platform> args)
{
    if (args.memory.n.workers == 0) return;
    __shared__ u32 number;
    if (threadIdx.x == 0) number = muster_of(args).join(blockIdx.x, this_sm());
    __syncthreads();
    const u32 worker = number;
    if (worker != muster<cuda_platform>::nowhere) run_worker<List, PerSm == 1>(args, worker, dynamic_shared);
}

/// The same body launched as a kernel of its own: what the stream- and graph-based engines run. Behind a programmatic
/// edge of a graph it takes its place on an SM early and waits there until its predecessors are complete; otherwise
/// neither call does anything.
template <class Task, u32 Threads>
__global__ void __launch_bounds__(Threads) plain_kernel(const __grid_constant__ Task task)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
    cudaGridDependencySynchronize();
#endif
    __shared__ block_failure failure; // a plain launch has nobody to tell
    block_failure* const told = never_fails<Task, cuda_block<Threads>>() ? nullptr : &failure;
    cuda_block<Threads> block(blockIdx.x, gridDim.x, dynamic_shared, told);
    task(block);
}

} // namespace slipstream::device
