// The GPU's block context: what block.hpp promises, over one thread block of a compile-time size.
#pragma once
#include <slipstream/block.hpp>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>

namespace slipstream {

namespace detail {
struct minimum {
    template <class T> __device__ T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
struct maximum {
    template <class T> __device__ T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
struct sum {
    template <class T> __device__ T operator()(const T& a, const T& b) const { return a + b; }
};

template <class T> __device__ T warp_sum(T value)
{
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
    return value;
}

template <u32 Threads, class T> __device__ T warp_sum_before(T value)
{
    using scan = cub::WarpScan<T>;
    __shared__ typename scan::TempStorage scratch[Threads / 32];
    T out;
    scan(scratch[threadIdx.x / 32]).ExclusiveSum(value, out);
    __syncwarp();
    return out;
}
} // namespace detail

/// Where a block reports a failure: the first code stays.
struct block_failure {
    u32 code;
};

namespace detail {
/// What a block offers whatever threads it is made of.
class cuda_block_base {
public:
    __device__ u32 block_index() const { return index_; }
    __device__ u32 blocks() const { return blocks_; }
    template <class T> __device__ T* shared(u32) const { return static_cast<T*>(shared_); }
    template <class T> __device__ T warp_reduce_add(T value) { return warp_sum(value); }

    /// Any thread may call it; in a body that promises never to (noexcept) it ends the CUDA context.
    __device__ void fail(u32 code)
    {
        if (code == 0) return;
        if (failure_ == nullptr) __trap();
        atomicCAS(&failure_->code, 0u, code);
    }

protected:
    __device__ cuda_block_base(u32 block_index, u32 blocks, void* shared, block_failure* failure)
        : index_(block_index), blocks_(blocks), shared_(shared), failure_(failure)
    {
    }

    u32 index_;
    u32 blocks_;
    void* shared_;
    block_failure* failure_;
};
} // namespace detail

template <u32 Threads>
class cuda_block : public detail::cuda_block_base {
public:
    __device__ cuda_block(u32 block_index, u32 blocks, void* shared, block_failure* failure)
        : detail::cuda_block_base(block_index, blocks, shared, failure)
    {
    }

    __device__ static u32 rank() { return threadIdx.x; }
    __device__ static constexpr u32 size() { return Threads; }
    __device__ u64 global_rank() const { return static_cast<u64>(index_) * Threads + threadIdx.x; }
    __device__ u64 global_size() const { return static_cast<u64>(blocks_) * Threads; }
    __device__ void sync() const { __syncthreads(); }

    template <class T> __device__ T reduce_add(T value) { return reduce(value, detail::sum{}); }
    template <class T> __device__ T reduce_min(T value) { return reduce(value, detail::minimum{}); }
    template <class T> __device__ T reduce_max(T value) { return reduce(value, detail::maximum{}); }

    template <class T> __device__ T scan_add(T value)
    {
        using scan = cub::BlockScan<T, Threads>;
        __shared__ typename scan::TempStorage scratch;
        T out;
        scan(scratch).ExclusiveSum(value, out);
        __syncthreads(); // scratch may be used again at once
        return out;
    }

    template <class T> __device__ T warp_scan_add(T value) { return detail::warp_sum_before<Threads>(value); }

private:
    template <class T, class Op> __device__ T reduce(T value, Op op)
    {
        using reduction = cub::BlockReduce<T, Threads>;
        __shared__ typename reduction::TempStorage scratch;
        __shared__ T result;
        const T total = reduction(scratch).Reduce(value, op);
        if (threadIdx.x == 0) result = total;
        __syncthreads();
        const T out = result;
        __syncthreads(); // scratch and result may be used again at once
        return out;
    }
};

/// The same over a part of a worker's threads, group number `group` of so many: blocks side by side,
/// each with a barrier and scratch memory of its own.
template <u32 Threads>
class cuda_group : public detail::cuda_block_base {
public:
    /// `rank`: threadIdx.x % Threads, which whoever runs block after block has in a register. Of use for blocks of one warp, which
    /// may be short: to ask for threadIdx.x takes 20 cycles. Longer ones are better off if it is known to be less than Threads.
    __device__ cuda_group(u32 group, u32 rank, u32 block_index, u32 blocks, void* shared, block_failure* failure)
        : detail::cuda_block_base(block_index, blocks, shared, failure), group_(group), rank_(rank)
    {
    }

    __device__ u32 rank() const { return Threads == 32 ? rank_ : threadIdx.x % Threads; }
    __device__ static constexpr u32 size() { return Threads; }
    __device__ u64 global_rank() const { return static_cast<u64>(index_) * Threads + rank(); }
    __device__ u64 global_size() const { return static_cast<u64>(blocks_) * Threads; }
    __device__ void sync() const
    {
        if constexpr (Threads == 32) __syncwarp();
        else __barrier_sync_count(1 + group_, Threads); // barrier 0 is the whole worker's
    }

    template <class T> __device__ T reduce_add(T value) { return reduce(value, detail::sum{}); }
    template <class T> __device__ T reduce_min(T value) { return reduce(value, detail::minimum{}); }
    template <class T> __device__ T reduce_max(T value) { return reduce(value, detail::maximum{}); }

    // CUB's block-wide collectives take the whole thread block: here its warp-wide ones, and the warps' results.
    template <class T> __device__ T scan_add(T value)
    {
        const T before = detail::warp_sum_before<worker_threads>(value);
        if constexpr (Threads == 32) return before;
        T* const of_warps = results<T>();
        if (rank() % 32 == 31) of_warps[rank() / 32] = before + value;
        sync();
        T out = before;
        for (u32 w = 0; w < rank() / 32; ++w) out = out + of_warps[w];
        sync(); // they may be used again at once
        return out;
    }

    template <class T> __device__ T warp_scan_add(T value) { return detail::warp_sum_before<worker_threads>(value); }

private:
    /// A word a warp of the group.
    template <class T> __device__ T* results() const
    {
        __shared__ T of_warps[worker_threads / 32];
        return of_warps + group_ * (Threads / 32);
    }
    template <class T, class Op> __device__ T reduce(T value, Op op)
    {
        using reduction = cub::WarpReduce<T>;
        __shared__ typename reduction::TempStorage scratch[worker_threads / 32];
        const T total = reduction(scratch[threadIdx.x / 32]).Reduce(value, op);
        T* const of_warps = results<T>();
        if (rank() % 32 == 0) of_warps[rank() / 32] = total;
        sync();
        T out = of_warps[0];
        for (u32 w = 1; w < Threads / 32; ++w) out = op(out, of_warps[w]);
        sync(); // likewise
        return out;
    }

    u32 group_;
    u32 rank_;
};

} // namespace slipstream
