// The host's stores into a ring of slots: C++ only, so that they are the ones the library itself makes.
#pragma once
#include <slipstream/abi/word.hpp>

namespace slipstream::bench {

inline constexpr u32 slot_chunks = 4; ///< of 16 bytes: a slot has 64

/// Writes `count` slots, round and round.
void write_slots(abi::chunk_word* ring, u32 slots, u32 count);

} // namespace slipstream::bench
