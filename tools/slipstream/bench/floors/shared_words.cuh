// Words that thread blocks signal each other with, in the orders that floors are about; each wait is bounded.
#pragma once
#include "device/cuda_platform.cuh"

namespace slipstream::bench {

/// A word on a line of its own: its writer disturbs nobody else's polls.
struct alignas(abi::line_bytes) line_word {
    abi::word<u32> value;
};

// Floors are no part of the engine's protocol: their accesses have no edge of its list.
inline constexpr device::edge no_edge{};

/// Relaxed load and store, device scope: one instruction each.
__device__ __forceinline__ u32 peek(const line_word& w)
{
    return device::cuda_platform::load(no_edge, w.value, device::order::relaxed, device::scope::device);
}
__device__ __forceinline__ void poke(line_word& w, u32 value)
{
    device::cuda_platform::store(no_edge, w.value, value, device::order::relaxed, device::scope::device);
}
/// Release store, device scope.
__device__ __forceinline__ void publish(line_word& w, u32 value)
{
    device::cuda_platform::store(no_edge, w.value, value, device::order::release, device::scope::device);
}
/// Acquire and release fence, device scope: makes a relaxed poll an acquire, and a relaxed store behind it a release.
__device__ __forceinline__ void fence()
{
    device::cuda_platform::fence(no_edge, device::order::acq_rel, device::scope::device);
}

/// Release fence, system scope: before the host is told.
__device__ __forceinline__ void fence_for_host()
{
    device::cuda_platform::fence(no_edge, device::order::release, device::scope::system);
}

/// Polls of one wait at most: a second or more, where a good wait takes microseconds.
inline constexpr u32 polls_max = 1u << 21;

/// Waits for words that only grow. After one wait that ran into its bound it waits no more: the kernel ends at once, and says so.
class bounded_wait {
public:
    template <class Look> __device__ __forceinline__ void until(Look look, u32 value)
    {
        if (stuck_) return;
        for (u32 polls = 0; polls < polls_max; ++polls)
            if (static_cast<int>(look() - value) >= 0) return;
        stuck_ = true;
    }
    __device__ __forceinline__ void until(const line_word& w, u32 value)
    {
        until([&] { return peek(w); }, value);
    }
    __device__ __forceinline__ void report(u32* stuck) const
    {
        if (stuck_) *stuck = 1;
    }

private:
    bool stuck_ = false;
};

/// What bodies see of a thread block of a floor.
inline constexpr u32 floor_threads = 256;
struct floor_block {
    __device__ static u32 rank() { return threadIdx.x; }
    __device__ static constexpr u32 size() { return floor_threads; }
};

} // namespace slipstream::bench
