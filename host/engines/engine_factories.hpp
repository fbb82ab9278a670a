// The engines and devices behind make_engine and open_device; internal to this folder.
#pragma once
#include "host/engines/engine.hpp"

namespace slipstream::engines {

std::unique_ptr<device_memory> make_host_device_memory();
std::unique_ptr<device_memory> make_cuda_device_memory(u32 ordinal);

std::unique_ptr<engine> make_host_serial_engine();
std::unique_ptr<engine> make_cuda_serial_engine(u32 ordinal);
std::unique_ptr<engine> make_cuda_streams_engine(u32 ordinal);
std::unique_ptr<engine> make_cuda_acs_engine(u32 ordinal);
std::unique_ptr<engine> make_cuda_graph_rebuild_engine(u32 ordinal);
std::unique_ptr<engine> make_cuda_graph_update_engine(u32 ordinal);
std::unique_ptr<engine> make_cuda_graph_replay_engine(u32 ordinal);
std::unique_ptr<engine> make_slipstream_engine(const config& configuration, const kernel_image& image);
std::unique_ptr<engine> make_slipstream_hostdep_engine(const config& configuration, const kernel_image& image);

} // namespace slipstream::engines
