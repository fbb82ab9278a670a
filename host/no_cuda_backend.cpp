// What the library answers about GPUs when it was built without CUDA.
#include "host/backend.hpp"

namespace slipstream::host {

int cuda_device_count() { return 0; }
u32 cuda_multiprocessors(int) { return 0; }

std::string cuda_problem(int)
{
    return "this build has no CUDA: install CUDA 13.0 or newer (driver 580 or newer), put nvcc on the PATH and configure again";
}

std::unique_ptr<backend> make_cuda_backend(const config&, const kernel_image&, int ordinal)
{
    throw device_error(cuda_problem(ordinal));
}

} // namespace slipstream::host
