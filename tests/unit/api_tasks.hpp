// Task types that the API tests share, and shorthands.
#pragma once
#include "tests/stress/in_time.hpp"
#include <atomic>
#include <slipstream/runtime.hpp>
#include <string>
#include <vector>

namespace slipstream::tests {

using namespace std::chrono_literals;

/// What `call` throws as an Error; "" when it throws nothing.
template <class Error, class Call> std::string thrown(Call call)
{
    try {
        call();
    } catch (const Error& e) {
        return e.what();
    }
    return {};
}

/// x[i] = x[i] * 3 + 1: n of them in a chain give one value only in the right number.
struct step_task {
    static constexpr const char* name = "step";
    static constexpr bool brief = true;
    inout<u64> x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < x.size(); i += block.global_size()) x[i] = x[i] * 3 + 1;
    }
};

/// Ends when the flag (host memory) is set. Host device only.
struct gate_task {
    static constexpr const char* name = "gate";
    u64 flag;
    template <class Block> void operator()(Block&) const
    {
        while (reinterpret_cast<const std::atomic<u32>*>(flag)->load() == 0) std::this_thread::sleep_for(50us);
    }
};

/// Counts how often it ran, once a block. Host device only.
struct count_task {
    static constexpr const char* name = "count";
    u64 counter;
    template <class Block> void operator()(Block& block) const
    {
        reinterpret_cast<std::atomic<u32>*>(counter)[block.block_index()].fetch_add(1);
    }
};

struct fail_task {
    static constexpr const char* name = "fails";
    u32 code;
    u32 block;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& b) const
    {
        if (b.block_index() == block && b.rank() == 0) b.fail(code);
    }
};

/// Adds the elements of a tile into out, row by row, with the tile's own numbers.
struct tile_sum_task {
    in2d<u32> tile;
    out<u64> sum;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.global_rank() != 0) return;
        u64 total = 0;
        for (u64 r = 0; r < tile.rows(); ++r)
            for (u64 c = 0; c < tile.columns(); ++c) total += tile(r, c);
        sum[0] = total;
        sum[1] = tile.row_bytes();
    }
};

/// Three bytes: no whole word.
struct small_task {
    u8 a, b, c;
    template <class Block> void operator()(Block&) const { seen = static_cast<u32>(a) << 16 | static_cast<u32>(b) << 8 | c; }
    static inline std::atomic<u32> seen{0};
};

using engine = runtime<step_task, gate_task, count_task, fail_task, tile_sum_task, small_task>;

inline config host_config()
{
    config c;
    c.device = "host";
    c.memory_bytes = 1u << 20;
    c.staging_bytes = 1u << 18;
    return c;
}

/// A gate that a task waits behind; opens itself when the test gives up.
struct gate {
    std::atomic<u32> flag{0};
    gate_task task() { return {reinterpret_cast<u64>(&flag)}; }
    void open() { flag = 1; }
    ~gate() { open(); }
};

inline u64 stepped(u64 x, u64 times)
{
    for (u64 i = 0; i < times; ++i) x = x * 3 + 1;
    return x;
}

inline deadline after(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time * time_stretch; }

} // namespace slipstream::tests
