// Where an engine runs: memory, launch and end of the resident kernel. Two implementations: threads and CUDA.
#pragma once
#include "device/host_platform.hpp"
#include "device/kernel_arguments.hpp"
#include "host/stream_port.hpp"
#include <memory>
#include <slipstream/config.hpp>
#include <slipstream/kernel_image.hpp>
#include <slipstream/status.hpp>
#include <string>

namespace slipstream::host {

using host_memory = device::engine_memory<device::host_platform>;
using host_arguments = device::kernel_arguments<device::host_platform>;

/// Calls that change something come from one thread at a time: constructor, then the service thread, then the destructor; read()
/// from a user's thread, too, while the kernel is away. name(), is_cuda(), workers(), control_blocks(), streams() and what that
/// returns: any thread.
class backend {
public:
    virtual ~backend() = default;

    virtual std::string name() const = 0; ///< "host" or "cuda:0 (NVIDIA H200)"
    virtual bool is_cuda() const = 0;
    virtual u32 workers() const = 0;
    virtual u32 control_blocks() const = 0; ///< resident blocks, an SM each (host: threads), that schedule and run no task

    /// Zeroed memory that lives as long as the backend. Pinned memory has the same address on both sides.
    virtual void* take_pinned(std::size_t bytes) = 0;
    virtual void* take_device(std::size_t bytes) = 0;
    /// Copies into or out of device memory while no kernel is resident.
    virtual void write(void* to_device, const void* from, std::size_t bytes) = 0;
    virtual void read(void* to, const void* from_device, std::size_t bytes) = 0;

    /// Bytes of fast memory the control block may use.
    virtual std::size_t near_bytes_max() const = 0;
    /// Called once when all sizes are known, before the first launch; throws config_error when the kernel does not fit.
    virtual void prepare(std::size_t near_bytes) = 0;

    virtual void launch(const host_arguments& arguments) = 0;
    /// Joins with CUDA streams; null where there are none.
    virtual stream_port* streams() = 0;
    /// Is the kernel resident? Never blocks. Throws device_error when the device was lost.
    virtual bool running() = 0;
    /// A body of it will never end: the kernel is left to itself, and the backend is neither used nor destroyed any more.
    virtual void abandon() {}
};

std::unique_ptr<backend> make_host_backend(const config& configuration, const kernel_image& image);
/// Throws device_error with a remedy when there is no usable GPU.
std::unique_ptr<backend> make_cuda_backend(const config& configuration, const kernel_image& image, int ordinal);

/// What is wrong with the GPU side of this machine, in one line; empty when GPU `ordinal` works.
std::string cuda_problem(int ordinal);
int cuda_device_count();
u32 cuda_multiprocessors(int ordinal); ///< 0: there is no such GPU
/// Worker threads of the host device where nobody says how many.
u32 host_workers_usual();

} // namespace slipstream::host
