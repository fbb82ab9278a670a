// Joins with the streams of a GPU.
#pragma once
#include "host/stream_port.hpp"
#include <memory>

namespace slipstream::host {

std::unique_ptr<stream_port> make_cuda_stream_port();

} // namespace slipstream::host
