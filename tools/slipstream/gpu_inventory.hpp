// What GPUs and which driver this machine has. Two implementations: with CUDA and without.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <string>
#include <vector>

namespace slipstream::cli {

struct gpu {
    int ordinal = 0;
    std::string name;
    int capability_major = 0, capability_minor = 0;
    int sms = 0;
    u64 memory_bytes = 0;
    u64 l2_bytes = 0;
    bool cooperative_launch = false;
    bool kernel_timeout = false; ///< a display runs on it: the driver ends kernels that stay too long
    std::string problem;         ///< why Slipstream cannot use it; empty when it can
};

struct gpu_inventory {
    bool built_with_cuda = false;
    std::string driver;   ///< version of the kernel module, "" when there is none
    int driver_api = 0;   ///< newest CUDA version the driver knows, 1000 * major + 10 * minor; 0: none
    int runtime_api = 0;  ///< CUDA version this binary was built with; 0: none
    std::string problem;  ///< why no GPU can be used; empty when one can
    std::vector<gpu> gpus;
};

gpu_inventory take_inventory();

/// Version of the NVIDIA kernel module on this machine, "" when it is not loaded.
std::string kernel_module_version();

/// "13.0" for 13000.
std::string cuda_version_text(int version);

} // namespace slipstream::cli
