// What the GPU tests share: task types, a configuration, a watchdog.
#pragma once
#include "tests/stress/digest_stream.hpp"
#include "tests/stress/in_time.hpp"
#include <cuda_runtime.h>
#include <slipstream/runtime.hpp>

namespace slipstream::tests {

using namespace std::chrono_literals;

/// x[i] = x[i] * 3 + 1.
struct step_task {
    static constexpr const char* name = "step";
    static constexpr bool brief = true;
    inout<u64> x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept // nobody looks whether it failed
    {
        for (u64 i = block.global_rank(); i < x.size(); i += block.global_size()) x[i] = x[i] * 3 + 1;
    }
};

/// y[i] = x[i + 1] * 3 + 1, round about: each block reads what other blocks of the task before wrote.
struct turn_task {
    static constexpr const char* name = "turn";
    static constexpr bool brief = true;
    in<u64> x;
    out<u64> y;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < y.size(); i += block.global_size()) y[i] = x[i + 1 == x.size() ? 0 : i + 1] * 3 + 1;
    }
};

/// Each block adds 1 to its own counter, then burns time.
struct count_task {
    static constexpr const char* name = "count";
    u64 counters;
    u32 spin;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        u64 burnt = 1;
        for (u32 i = 0; i < spin; ++i) burnt = mix(burnt + i);
        if (block.rank() == 0) reinterpret_cast<u32*>(counters)[block.block_index()] += burnt == 0 ? 2 : 1;
    }
};

struct fail_task {
    static constexpr const char* name = "fails";
    static constexpr bool brief = true; // those of several blocks may fail when they were mailed to all workers
    u32 code;
    u32 block;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& b) const
    {
        if (b.block_index() == block && b.rank() == b.size() - 1) b.fail(code);
    }
};

using gpu_engine = runtime<listed_task, member_task, row_task, step_task, turn_task, count_task, fail_task>;

inline config gpu_config()
{
    config c;
    c.device = "cuda";
    c.memory_bytes = 32u << 20;
    c.staging_bytes = 4u << 20;
    return c;
}

inline u64 stepped(u64 x, u64 times)
{
    for (u64 i = 0; i < times; ++i) x = x * 3 + 1;
    return x;
}

} // namespace slipstream::tests
