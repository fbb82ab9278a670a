// What lets one header compile with plain g++ and with nvcc: function qualifiers and the fixed-width names of the abi.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define SLIPSTREAM_BOTH __host__ __device__ __forceinline__
/// A function kept out of line on the GPU: rare paths that would only fill the instruction cache.
#define SLIPSTREAM_BOTH_RARE inline __host__ __device__ __noinline__
/// One copy of a loop's body: the control roles' code must stay small.
#define SLIPSTREAM_ONE_COPY _Pragma("unroll 1")
/// All copies: loops over lane_array, whose indices must be known.
#define SLIPSTREAM_UNROLL _Pragma("unroll")
/// Qualifier of a task body: compiled for the host and, under nvcc, for the GPU.
#define SLIPSTREAM_BODY __host__ __device__
#else
#define SLIPSTREAM_BOTH inline
#define SLIPSTREAM_BOTH_RARE inline
#define SLIPSTREAM_ONE_COPY
#define SLIPSTREAM_UNROLL
#define SLIPSTREAM_BODY
#endif

namespace slipstream {
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
} // namespace slipstream
