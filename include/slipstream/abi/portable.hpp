// What lets one header compile with plain g++ and with nvcc: function qualifiers and the fixed-width names of the abi.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__CUDACC__)
#define SLIPSTREAM_BOTH __host__ __device__ __forceinline__
/// Qualifier of a task body: compiled for the host and, under nvcc, for the GPU.
#define SLIPSTREAM_BODY __host__ __device__
// One text serves platforms whose functions live on one side only; nvcc would warn at each host/device template.
#define SLIPSTREAM_ONE_SIDED _Pragma("nv_exec_check_disable")
#else
#define SLIPSTREAM_BOTH inline
#define SLIPSTREAM_BODY
#define SLIPSTREAM_ONE_SIDED
#endif

namespace slipstream {
using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
} // namespace slipstream
