// The task types of the benchmarks and their runtime. Bodies are those of bodies.hpp.
#pragma once
#include "tools/slipstream/bench/bodies.hpp"
#include "tools/slipstream/bench/listed_runtime.hpp"

namespace slipstream::bench {

/// Block b steps words [b * words_each, (b + 1) * words_each). words_each = 0: a task that orders and does nothing.
struct step_task {
    static constexpr const char* name = "step";
    static constexpr bool brief = true;
    inout<u32> data;
    u32 words_each;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        step_words(block, data.data() + static_cast<u64>(block.block_index()) * words_each, words_each, number);
    }
};

/// One reader of a fan.
struct relay_task {
    static constexpr const char* name = "relay";
    static constexpr bool brief = true;
    in<u32> from;
    out<u32> to;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        relay_words(block, from.data(), to.data(), static_cast<u32>(to.size()), number);
    }
};

/// The joiner of a diamond.
struct join_2_task {
    static constexpr const char* name = "join_2";
    static constexpr bool brief = true;
    in<u32> a, b;
    inout<u32> to;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        const u32* const parts[] = {a.data(), b.data()};
        join_arrays(block, 2, [&](u32 p) { return parts[p]; }, to.data(), static_cast<u32>(to.size()), number);
    }
};

/// The joiner of a fan of eight.
struct join_8_task {
    static constexpr const char* name = "join_8";
    static constexpr bool brief = true;
    in<u32> a, b, c, d, e, f, g, h;
    inout<u32> to;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        const u32* const parts[] = {a.data(), b.data(), c.data(), d.data(), e.data(), f.data(), g.data(), h.data()};
        join_arrays(block, 8, [&](u32 p) { return parts[p]; }, to.data(), static_cast<u32>(to.size()), number);
    }
};

/// The joiner of a fan whose parts lie in one buffer: `from` holds as many arrays of the size of `to` as there are readers.
struct join_task {
    static constexpr const char* name = "join";
    static constexpr bool brief = true;
    in<u32> from;
    inout<u32> to;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        join_words(block, from.data(), static_cast<u32>(from.size() / to.size()), to.data(), static_cast<u32>(to.size()), number);
    }
};

/// Two inputs, one output; writes one word of the output.
struct sum_task {
    static constexpr const char* name = "sum";
    static constexpr bool brief = true;
    in<u32> a, b;
    out<u32> y;
    u32 at;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() == 0) y[at] = a[0] + b[0] + number;
    }
};

/// The first whole word of a range of bytes that is not aligned.
SLIPSTREAM_BOTH u64 first_word(const unsigned char* bytes)
{
    return (reinterpret_cast<u64>(bytes) + 3) & ~u64{3};
}

/// Four ranges of bytes, aligned to nothing; steps the first whole word of the last one.
struct gather_task {
    static constexpr const char* name = "gather";
    static constexpr bool brief = true;
    in<unsigned char> a, b, c;
    inout<unsigned char> y;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() != 0) return;
        const auto word = [](const unsigned char* bytes) { return *reinterpret_cast<const u32*>(first_word(bytes)); };
        u32& out = *reinterpret_cast<u32*>(first_word(y.data()));
        out = stepped(out, number + word(a.data()) + word(b.data()) + word(c.data()));
    }
};

/// Writes one word that it does not declare.
struct store_task {
    static constexpr const char* name = "store";
    static constexpr bool brief = true;
    u64 address;
    u32 number;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() == 0) *reinterpret_cast<u32*>(address) = number;
    }
};

using bench_list = task_list<step_task, relay_task, join_2_task, join_8_task, join_task, sum_task, gather_task, store_task,
                             copy_task, fill_task, marker_task>;

/// The image of bench_list; compiled by nvcc where there is one.
kernel_image bench_image();

using bench_runtime = listed_runtime<bench_list, bench_image>;

} // namespace slipstream::bench
