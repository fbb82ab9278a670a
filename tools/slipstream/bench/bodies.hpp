// What the timed tasks compute: one text for tasks, launched kernels and floors, so that all of them time the same body.
//
// Every result depends on the order of the steps and on their number: one step lost, doubled or taken early changes it.
#pragma once
#include <slipstream/abi/portable.hpp>

namespace slipstream::bench {

/// What a thread block of one kilobyte-sized body works on: 4 KB.
inline constexpr u32 body_words = 1024;

/// x -> a * x + number modulo 2^32: steps with different numbers do not commute.
SLIPSTREAM_BOTH u32 stepped(u32 x, u32 number)
{
    return x * 1664525u + number;
}

/// 16 bytes, one load and one store of a thread: with words, a body of 4 KB would be four round trips to L2 in a row, and flatter
/// every scheduler beside it.
struct alignas(16) quad {
    u32 w[4];
};

/// Reads and writes `count` words, each thread of the block its share. A multiple of four words is 16-byte aligned.
template <class Block> SLIPSTREAM_BODY void step_words(Block& block, u32* words, u32 count, u32 number)
{
    if (count % 4 != 0) {
        for (u32 i = block.rank(); i < count; i += block.size()) words[i] = stepped(words[i], number);
        return;
    }
    auto* const quads = reinterpret_cast<quad*>(words);
    for (u32 i = block.rank(); i < count / 4; i += block.size()) {
        quad q = quads[i];
        for (u32& word : q.w) word = stepped(word, number);
        quads[i] = q;
    }
}

/// Reads `from`, writes `to`: 16-byte aligned, a multiple of four words.
template <class Block> SLIPSTREAM_BODY void relay_words(Block& block, const u32* from, u32* to, u32 count, u32 number)
{
    const auto* const source = reinterpret_cast<const quad*>(from);
    auto* const target = reinterpret_cast<quad*>(to);
    for (u32 i = block.rank(); i < count / 4; i += block.size()) {
        quad q = source[i];
        for (u32& word : q.w) word += number;
        target[i] = q;
    }
}

/// Folds `parts` arrays, part_at(0), part_at(1) ..., into `to`; aligned as above.
template <class Block, class PartAt>
SLIPSTREAM_BODY void join_arrays(Block& block, u32 parts, PartAt part_at, u32* to, u32 count, u32 number)
{
    auto* const target = reinterpret_cast<quad*>(to);
    for (u32 i = block.rank(); i < count / 4; i += block.size()) {
        quad sum = target[i];
        for (u32 p = 0; p < parts; ++p) {
            const quad part = reinterpret_cast<const quad*>(part_at(p))[i];
            for (u32 k = 0; k < 4; ++k) sum.w[k] += part.w[k];
        }
        for (u32& word : sum.w) word = stepped(word, number);
        target[i] = sum;
    }
}

/// The same of arrays that lie behind each other.
template <class Block> SLIPSTREAM_BODY void join_words(Block& block, const u32* from, u32 parts, u32* to, u32 count, u32 number)
{
    join_arrays(block, parts, [=](u32 p) { return from + p * count; }, to, count, number);
}

} // namespace slipstream::bench
