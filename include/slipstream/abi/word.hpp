// The storage of shared words: what host, GPU and both agree on byte by byte. Access goes through a Platform only.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <type_traits>

namespace slipstream::abi {

/// An atomic word of 4 or 8 bytes. Read and written only by Platform::load / store / fetch_add.
template <class T>
struct alignas(sizeof(T)) word {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    T raw;
};

/// 16 bytes that cross the bus as one access.
struct alignas(16) chunk {
    u32 w[4];
};
static_assert(sizeof(chunk) == 16 && std::is_trivially_copyable_v<chunk>);

/// A chunk that two parties share. Read and written only by Platform::load / store.
struct alignas(16) chunk_word {
    chunk raw;
};

/// Plain data handed over under an edge: no atomicity of its own (the model platform checks it for races).
template <class T>
struct cell {
    T raw;
};

inline constexpr std::size_t line_bytes = 128; ///< L2 line and sector pair: writer's and reader's words lie on separate lines

} // namespace slipstream::abi
