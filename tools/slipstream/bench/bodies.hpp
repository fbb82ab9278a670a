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

/// Reads and writes `count` words, each thread of the block its share.
template <class Block>
SLIPSTREAM_BODY void step_words(Block& block, u32* words, u32 count, u32 number)
{
    for (u32 i = block.rank(); i < count; i += block.size()) words[i] = stepped(words[i], number);
}

/// Reads `from`, writes `to`.
template <class Block>
SLIPSTREAM_BODY void relay_words(Block& block, const u32* from, u32* to, u32 count, u32 number)
{
    for (u32 i = block.rank(); i < count; i += block.size()) to[i] = from[i] + number;
}

/// Folds `parts` arrays, which lie behind each other, into `to`.
template <class Block>
SLIPSTREAM_BODY void join_words(Block& block, const u32* from, u32 parts, u32* to, u32 count, u32 number)
{
    for (u32 i = block.rank(); i < count; i += block.size()) {
        u32 sum = to[i];
        for (u32 p = 0; p < parts; ++p) sum += from[p * count + i];
        to[i] = stepped(sum, number);
    }
}

} // namespace slipstream::bench
