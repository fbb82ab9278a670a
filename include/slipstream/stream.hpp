// The type of a CUDA stream, without CUDA: a cudaStream_t or CUstream converts to it.
#pragma once

struct CUstream_st;

namespace slipstream {

using cuda_stream = ::CUstream_st*;

} // namespace slipstream
