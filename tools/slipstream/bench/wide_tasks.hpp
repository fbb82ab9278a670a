// Tasks of very many blocks: four bodies that want a GPU in four different ways, and one that hardly wants it at all.
//
// One text for tasks and launched kernels. Beside its result each block steps a word of its own, the ledger: results are the same
// from task to task but for a number, the ledger tells a block lost, doubled or run out of order.
#pragma once
#include "tools/slipstream/bench/bodies.hpp"
#include "tools/slipstream/bench/listed_runtime.hpp"
#include "tools/slipstream/bench/wide_gemm.hpp"
#include <bit>
#include <cmath>

namespace slipstream::bench {

/// The block's word of the ledger: read first, so that the round trip is hidden behind the body's own, written last.
/// (With a null pointer for the other threads, in place of the flag, ptxas 13.0 may ask for it before it is there: a
/// thread without one then read address 0.)
class ledger_word {
public:
    template <class Block>
    SLIPSTREAM_BODY ledger_word(const Block& block, const inout<u32>& ledger, u32 number)
        : word_(ledger.data() + block.block_index()), mine_(block.rank() == 0), after_(mine_ ? stepped(*word_, number) : 0)
    {
    }
    SLIPSTREAM_BODY void write() const
    {
        if (mine_) *word_ = after_;
    }

private:
    u32* word_;
    bool mine_;
    u32 after_;
};

/// Calls use(index, quad) for this thread's part of a block's share, `InFlight` loads at a time.
template <u32 InFlight, class Block, class Use>
SLIPSTREAM_BODY void stream_share(const Block& block, const u32* share, const Use& use)
{
    constexpr u32 quads = share_words / 4, each = quads / Block::size();
    constexpr u32 in_flight = each < InFlight ? each : InFlight;
    static_assert(quads % (Block::size() * in_flight) == 0);
    const auto* const from = reinterpret_cast<const quad*>(share);
    for (u32 first = block.rank(); first < quads; first += in_flight * Block::size()) {
        quad held[in_flight];
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < in_flight; ++k) held[k] = from[first + k * Block::size()];
        block.sync(); // nvcc takes the loads a few at a time, to save registers, where nothing keeps it from doing so
        SLIPSTREAM_UNROLL
        for (u32 k = 0; k < in_flight; ++k) use(first + k * Block::size(), held[k]);
    }
}

/// Makes the source; no benchmark of its own.
struct source_task {
    static constexpr const char* name = "source";
    out<u32> to;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const u64 share = static_cast<u64>(block.block_index()) * share_words;
        for (u64 i = share + block.rank(); i < share + share_words; i += block.size()) to[i] = source_word(i);
    }
};

/// Streaming copy: to = from + number.
struct wide_copy_task {
    static constexpr const char* name = "wide_copy";
    static constexpr wide_kind kind = wide_kind::copy;
    static constexpr u32 threads = 32;
    in<u32> from;
    out<u32> to;
    inout<u32> ledger;
    u32 number;
    static wide_copy_task over(const wide_places& p, const wide_shape& s, u32 number)
    {
        const u64 words = static_cast<u64>(share_words) * s.blocks;
        return {{p.source, words}, {static_cast<u32*>(p.target), words}, {p.ledger, s.blocks}, number};
    }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const ledger_word entry(block, ledger, number);
        const u64 share = static_cast<u64>(block.block_index()) * share_words;
        auto* const target = reinterpret_cast<quad*>(to.data() + share);
        stream_share<8>(block, from.data() + share, [&](u32 i, quad q) {
            for (u32& word : q.w) word += number;
            target[i] = q;
        });
        entry.write();
    }
};

/// The sum of a share, plus number; over the block, on the GPU, by CUB's block reduction where it is launched, by CUB's warp
/// reductions where blocks lie side by side on a worker: the next block's loads then come while this one's sum is made.
struct wide_reduction_task {
    static constexpr const char* name = "wide_reduction";
    static constexpr wide_kind kind = wide_kind::reduction;
    static constexpr u32 threads = 64;
    in<u32> from;
    out<u32> to;
    inout<u32> ledger;
    u32 number;
    static wide_reduction_task over(const wide_places& p, const wide_shape& s, u32 number)
    {
        return {{p.source, static_cast<u64>(share_words) * s.blocks},
                {static_cast<u32*>(p.target), s.blocks},
                {p.ledger, s.blocks},
                number};
    }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const ledger_word entry(block, ledger, number);
        u32 sum = 0;
        stream_share<16>(block, from.data() + static_cast<u64>(block.block_index()) * share_words,
                     [&](u32, const quad& q) { sum += q.w[0] + q.w[1] + q.w[2] + q.w[3]; });
        const u32 total = block.reduce_add(sum);
        if (block.rank() == 0) to[block.block_index()] = total + number;
        entry.write();
    }
};

/// A tile of a matrix product, each sum plus number % 1024.
struct wide_gemm_task {
    static constexpr const char* name = "wide_gemm";
    static constexpr wide_kind kind = wide_kind::gemm;
    static constexpr u32 threads = gemm_threads;
    static constexpr u32 shared_bytes = gemm_shared_bytes;
    in<u16> rows, columns;
    out<float> to;
    inout<u32> ledger;
    u32 depth;
    u32 number;
    static wide_gemm_task over(const wide_places& p, const wide_shape& s, u32 number)
    {
        const u64 factor = static_cast<u64>(gemm_side) * gemm_tiles * s.depth;
        const u64 sums = static_cast<u64>(gemm_side) * gemm_side * s.blocks;
        return {
            {p.rows, factor}, {p.columns, factor}, {static_cast<float*>(p.target), sums}, {p.ledger, s.blocks}, s.depth, number};
    }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const ledger_word entry(block, ledger, number);
        const u32 b = block.block_index();
        const bf16_factor left{rows.data() + static_cast<u64>(b % gemm_tiles) * gemm_side * depth, depth};
        const bf16_factor right{columns.data() + b / gemm_tiles % gemm_tiles * gemm_side, gemm_side * gemm_tiles};
        float* const tile = to.data() + static_cast<u64>(b) * gemm_side * gemm_side;
        const auto start = static_cast<float>(number % 1024);
#if defined(__CUDACC__)
        if constexpr (has_tensor_cores<Block>)
            tensor_tile(block, left, right, depth, start, tile);
        else
#endif
            plain_tile(block, left, right, depth, start, tile);
        entry.write();
    }
};

/// Fused multiply-adds around a ring of doubles, all of which stay in registers.
struct wide_fp64_task {
    static constexpr const char* name = "wide_fp64";
    static constexpr wide_kind kind = wide_kind::fp64;
    out<double> to;
    inout<u32> ledger;
    u32 rounds;
    u32 number;
    static wide_fp64_task over(const wide_places& p, const wide_shape& s, u32 number)
    {
        return {{static_cast<double*>(p.target), static_cast<u64>(fp64_values) * s.blocks}, {p.ledger, s.blocks}, s.rounds, number};
    }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const ledger_word entry(block, ledger, number);
        const u64 share = static_cast<u64>(block.block_index()) * fp64_values;
        for (u32 i = block.rank(); i < fp64_values; i += block.size())
            to[share + i] = value(static_cast<u32>(share) + i + number, rounds);
        entry.write();
    }

    /// Every operation rounds once and is spelled in order: host and GPU agree in each bit.
    SLIPSTREAM_BODY static double value(u32 first, u32 rounds)
    {
        double x[fp64_registers];
        SLIPSTREAM_UNROLL
        for (u32 j = 0; j < fp64_registers; ++j) x[j] = static_cast<double>(first) + j;
        SLIPSTREAM_ONE_COPY
        for (u32 round = 0; round < rounds; ++round) {
            SLIPSTREAM_UNROLL
            for (u32 j = 0; j < fp64_registers; ++j) x[j] = ::fma(x[j], 0.625, x[(j + 1) % fp64_registers]);
        }
        // Bounds that nvcc can unroll: an index that it does not know would put all of x into memory.
        SLIPSTREAM_UNROLL
        for (int fold = 1; fold <= std::countr_zero(fp64_registers); ++fold) {
            SLIPSTREAM_UNROLL
            for (u32 j = 0; j < fp64_registers / 2; ++j)
                if (j < fp64_registers >> fold) x[j] += x[j + (fp64_registers >> fold)];
        }
        return x[0];
    }
};

/// A word of the ledger and nothing else: what a block costs that does hardly anything, or, skewed, some of whose kind do much.
template <wide_kind Kind> struct large_task {
    static constexpr const char* name = Kind == wide_kind::even ? "large_even" : "large_skewed";
    static constexpr wide_kind kind = Kind;
    static constexpr u32 threads = 32;
    inout<u32> ledger;
    u32 number;
    static large_task over(const wide_places& p, const wide_shape& s, u32 number) { return {{p.ledger, s.blocks}, number}; }
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.rank() != 0) return;
        const u32 b = block.block_index(), steps = ledger_steps(Kind, is_long(b));
        u32 word = ledger[b];
        for (u32 i = 0; i < steps; ++i) word = stepped(word, number);
        ledger[b] = word;
    }
};

using wide_list = task_list<source_task, wide_copy_task, wide_reduction_task, wide_gemm_task, wide_fp64_task,
                            large_task<wide_kind::even>, large_task<wide_kind::skewed>, copy_task, fill_task, marker_task>;

/// The image of wide_list; compiled by nvcc where there is one, for one worker an SM: with two, the bodies would not have the
/// registers that they are about.
kernel_image wide_image();

using wide_runtime = listed_runtime<wide_list, wide_image>;

/// Calls use(type) with the task type of a kind, as a null pointer to it.
template <class Use> auto with_task_of(wide_kind kind, const Use& use)
{
    switch (kind) {
    case wide_kind::copy:
        return use(static_cast<wide_copy_task*>(nullptr));
    case wide_kind::reduction:
        return use(static_cast<wide_reduction_task*>(nullptr));
    case wide_kind::gemm:
        return use(static_cast<wide_gemm_task*>(nullptr));
    case wide_kind::fp64:
        return use(static_cast<wide_fp64_task*>(nullptr));
    case wide_kind::even:
        return use(static_cast<large_task<wide_kind::even>*>(nullptr));
    case wide_kind::skewed:
        break;
    }
    return use(static_cast<large_task<wide_kind::skewed>*>(nullptr));
}

} // namespace slipstream::bench
