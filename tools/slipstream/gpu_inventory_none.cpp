// The inventory of a build without CUDA: only what the operating system says.
#include "tools/slipstream/gpu_inventory.hpp"

namespace slipstream::cli {

gpu_inventory take_inventory()
{
    gpu_inventory out;
    out.driver = kernel_module_version();
    out.problem = "this binary was built without CUDA: install CUDA 13.0 or newer, put nvcc on the PATH, and build again";
    return out;
}

} // namespace slipstream::cli
