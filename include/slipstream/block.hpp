// What a body sees of its thread block. This is the host's block, of one thread; the GPU's is in cuda_block.cuh.
//
// Both offer the same members, so that one body text serves both:
//   rank() size()                thread within the block, threads of the block
//   block_index() blocks()       block within the task, blocks of the task
//   global_rank() global_size()  thread within the task, threads of the task
//   sync()                       block barrier
//   shared<T>(count)             the block's scratch memory: the same array at every call; at most Task::shared_bytes
//   reduce_add/min/max(value)    over the block, the result on every thread; block-wide collectives
//   scan_add(value)              exclusive prefix sum over the block
//   warp_reduce_add(value), warp_scan_add(value)   the same over 32 lanes (1 on the host)
//   fail(code)                   the task has failed; 0 is ignored. Of one block the first code stays, of several blocks that of
//                                any one. The body should return soon after; other blocks may still run. See task_status.
//                                Not in a body that is noexcept, which promises that (task.hpp)
// A body throws nothing: on the GPU it cannot, and an exception that leaves one on the host device ends the process
// (std::terminate).
// On the GPU a block has 256 threads, or as many as the task type says: `static constexpr u32 threads`, 32, 64 or 128. A worker
// runs several blocks of a large task side by side then, each at its own pace: what suits bodies that wait a lot, or that need
// few threads. Each has Task::shared_bytes of its own: 256 / threads times as much must fit an SM. Below 256 threads the
// block-wide collectives take values that need no constructor.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <type_traits>

namespace slipstream {

inline constexpr u32 worker_threads = 256;

/// Does T say how many? A data member of that name does not.
template <class T>
constexpr bool says_threads()
{
    if constexpr (requires { &T::threads; })
        return !std::is_member_pointer_v<decltype(&T::threads)>;
    else
        return false;
}

/// Threads of a block of T on the GPU.
template <class T>
constexpr u32 threads_of()
{
    if constexpr (says_threads<T>()) {
        static_assert(T::threads == 32 || T::threads == 64 || T::threads == 128 || T::threads == worker_threads,
                      "a block has 32, 64, 128 or 256 threads");
        return T::threads;
    } else {
        return worker_threads;
    }
}

class host_block {
public:
    SLIPSTREAM_BOTH host_block(u32 block_index, u32 blocks, void* shared, u64 shared_bytes)
        : index_(block_index), blocks_(blocks), shared_(shared), shared_bytes_(shared_bytes)
    {
    }

    SLIPSTREAM_BOTH static constexpr u32 rank() { return 0; }
    SLIPSTREAM_BOTH static constexpr u32 size() { return 1; }
    SLIPSTREAM_BOTH u32 block_index() const { return index_; }
    SLIPSTREAM_BOTH u32 blocks() const { return blocks_; }
    SLIPSTREAM_BOTH u64 global_rank() const { return index_; }
    SLIPSTREAM_BOTH u64 global_size() const { return blocks_; }
    SLIPSTREAM_BOTH void sync() const {}
    template <class T> SLIPSTREAM_BOTH T* shared(u32) const { return static_cast<T*>(shared_); }
    template <class T> SLIPSTREAM_BOTH T reduce_add(T value) const { return value; }
    template <class T> SLIPSTREAM_BOTH T reduce_min(T value) const { return value; }
    template <class T> SLIPSTREAM_BOTH T reduce_max(T value) const { return value; }
    template <class T> SLIPSTREAM_BOTH T scan_add(T) const { return T{}; }
    template <class T> SLIPSTREAM_BOTH T warp_reduce_add(T value) const { return value; }
    template <class T> SLIPSTREAM_BOTH T warp_scan_add(T) const { return T{}; }
    SLIPSTREAM_BOTH void fail(u32 code)
    {
        if (failure_ == 0) failure_ = code;
    }
    SLIPSTREAM_BOTH u32 failure() const { return failure_; }

private:
    u32 index_;
    u32 blocks_;
    void* shared_;
    u64 shared_bytes_;
    u32 failure_ = 0;
};

} // namespace slipstream
