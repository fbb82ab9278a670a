// The megakernel's other half: the control block, one thread block that has an SM to itself. Compiled once, into the library:
// it knows no bodies (the workers do: worker_kernel.cuh).
//
// A warp each schedules, ingests, notifies and links, four admit (control_warps). Its state is copied from device memory into
// shared memory at launch and back at park.
#include "device/control.hpp"
#include "device/control_kernel.hpp"
#include "device/cuda_platform.cuh"
#include "device/muster.cuh"

namespace slipstream::device {
namespace {

__device__ inline void copy_words(void* to, const void* from, u32 bytes)
{
    auto* const out = static_cast<uint4*>(to);
    const auto* const in = static_cast<const uint4*>(from);
    for (u32 i = threadIdx.x; i < bytes / 16; i += blockDim.x) out[i] = in[i];
}

extern __shared__ __align__(16) unsigned char dynamic_shared[];

/// Of 32 workers, that a scheduler looks after, in loops without end tests: one that is not there costs as much as one that is.
constexpr u32 groups_of(bool many, u32 parts) { return parts == 1 ? (many ? 10 : 5) : many ? 5 : 1; }
static_assert(32 * groups_of(true, 1) == control_workers_max(1) && 32 * groups_of(true, 2) == control_workers_max(2));

// Inlined: the kernel's parameters are then read at places known when it is compiled; called, by an address.
template <class Role, class Lanes = cuda_platform::team, class... More>
__device__ __forceinline__ void run_resident(const kernel_arguments<cuda_platform>& args, More... more)
{
    const control_state<cuda_platform> state(args.memory.n, args.offsets, dynamic_shared, args.far);
    Lanes lanes;
    Role role(args.memory, state, more...);
    run_role<cuda_platform>(role, lanes);
}

/// When it begins to schedule, all workers are there.
/// Many: workers. The same roles laid out otherwise are 8 % slower or as fast, by the instruction cache, it seems: with a third
/// scheduler, in other orders, with one scheduler a kernel (device/tried.md). So what is changed here, be it the order of two
/// branches, is measured anew.
template <bool Many>
__global__ void __launch_bounds__(control_threads, 1) control_kernel(const __grid_constant__ kernel_arguments<cuda_platform> args)
{
    using P = cuda_platform;
    copy_words(dynamic_shared, args.near_saved, args.offsets.near_bytes);
    bool goes = false;
    if (threadIdx.x < 32) {
        P::team team;
        goes = muster_of(args).gather(team, this_sm());
    }
    if (!__syncthreads_or(goes)) return;
    if (threadIdx.x == 0) reset_phases<P>({args.memory.n, args.offsets, dynamic_shared, args.far});
    __syncthreads();
    switch (threadIdx.x / 32) {
    case control_warps::scheduler:
        if (args.memory.n.parts == 1) run_resident<scheduler_role<P, groups_of(Many, 1), false, true>>(args);
        else run_resident<scheduler_role<P, groups_of(Many, 2), true, false>>(args);
        break;
    case control_warps::ingest: run_resident<ingest_role<P>>(args); break;
    case control_warps::notifier: run_resident<notifier_role<P>>(args, args.residency_ns); break;
    case control_warps::linker:
        if (args.memory.n.parts == 1) run_resident<linker_role<P, false>>(args);
        else run_resident<linker_role<P, true>>(args);
        break;
    default: run_resident<admission_role<P>, P::crew>(args); break;
    }
    __syncthreads();
    copy_words(args.near_saved, dynamic_shared, args.offsets.near_bytes);
}

} // namespace

const void* control_kernel_for(u32 workers, u32 parts)
{
    const bool many = workers > 32 * groups_of(false, parts);
    return many ? reinterpret_cast<const void*>(&control_kernel<true>) : reinterpret_cast<const void*>(&control_kernel<false>);
}

} // namespace slipstream::device
