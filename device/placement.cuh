// Which SMs the blocks of a launch run on, and which worker each of them is by that.
//
// The two SMs of a TPC share an instruction cache, it seems, and slow each other down while both run code (seen on an H200;
// device/tried.md). So the worker beside the control block is its part's last one, which gets a task where all others have one.
// Where blocks come to lie is the GPU's choice: each says it, when it begins, and waits until all have.
//
// OWNERS  place 0: the control block · 1 + b: block b of the workers' grid. Tagged with the launch: nobody has to empty them.
// COST    one round trip of device memory and one store a launch and block; nothing after that.
#pragma once
#include "device/cuda_platform.cuh"
#include "device/kernel_arguments.hpp"

namespace slipstream::device {

__device__ __forceinline__ u32 this_sm()
{
    u32 sm;
    asm("mov.u32 %0, %%smid;" : "=r"(sm));
    return sm;
}

class placement {
public:
    using P = cuda_platform;
    static constexpr u32 nowhere = ~0u;

    __device__ explicit placement(const kernel_arguments<P>& args) : args_(args) {}

    /// By one thread of a block.
    __device__ void tell(u32 place) const
    {
        P::store(edge::P11_place, args_.places[place], args_.launch << 16 | this_sm(), order::relaxed, scope::device);
    }

    /// The SM of that place's block; nowhere: the engine is told to end, and that block may never come.
    __device__ u32 wait(u32 place) const
    {
        for (u32 polls = 1;; ++polls) {
            const u32 told = P::load(edge::P11_place, args_.places[place], order::relaxed, scope::device);
            if (told >> 16 == (args_.launch & 0xffff)) return told & 0xffff;
            if (polls % looks_between == 0
                && P::load(edge::A8_command, args_.memory.page->command_word, order::relaxed, scope::system)
                    == static_cast<u32>(command::abort))
                return nowhere;
            P::pause(polls);
        }
    }

    /// By all threads of a worker's block: the number of that worker, or nowhere.
    __device__ u32 number_of_this_worker() const
    {
        __shared__ u32 beside_control, of_them_before; // this block, if it were numbered by its place alone
        if (threadIdx.x == 0) {
            beside_control = of_them_before = 0;
            tell(1 + blockIdx.x);
        }
        __syncthreads();
        const u32 control = wait(0), mine = by_place(blockIdx.x);
        bool ends = control == nowhere;
        for (u32 block = threadIdx.x; !ends && block < gridDim.x; block += blockDim.x) {
            const u32 sm = wait(1 + block);
            ends = sm == nowhere;
            if ((sm ^ control) != 1) continue;
            atomicAdd(&beside_control, 1u);
            if (by_place(block) < mine) atomicAdd(&of_them_before, 1u);
        }
        if (__syncthreads_or(ends)) return nowhere;
        return (this_sm() ^ control) == 1 ? gridDim.x - beside_control + of_them_before : mine - of_them_before;
    }

private:
    static constexpr u32 looks_between = 4096;
    __device__ static u32 by_place(u32 block) { return gridDim.x - 1 - block; }

    const kernel_arguments<P>& args_;
};

} // namespace slipstream::device
