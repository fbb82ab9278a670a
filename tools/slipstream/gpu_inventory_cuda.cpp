// The inventory of a build with CUDA.
#include "host/backend.hpp"
#include "host/gpu_requirements.hpp"
#include "tools/slipstream/gpu_inventory.hpp"
#include <cuda_runtime_api.h>

namespace slipstream::cli {

gpu_inventory take_inventory()
{
    gpu_inventory out;
    out.built_with_cuda = true;
    out.driver = kernel_module_version();
    if (cudaDriverGetVersion(&out.driver_api) != cudaSuccess) out.driver_api = 0;
    if (cudaRuntimeGetVersion(&out.runtime_api) != cudaSuccess) out.runtime_api = 0;
    out.problem = out.driver_api == 0             ? "no NVIDIA driver is installed here"
                  : host::first_usable_gpu() >= 0 ? ""
                                                  : host::cuda_problem(0);
    const int count = host::cuda_device_count();
    for (int i = 0; i < count; ++i) {
        gpu g;
        g.ordinal = i;
        g.problem = host::cuda_problem(i);
        cudaDeviceProp p{};
        if (cudaGetDeviceProperties(&p, i) != cudaSuccess) {
            g.name = "does not answer";
            out.gpus.push_back(std::move(g));
            continue;
        }
        g.name = p.name;
        g.capability_major = p.major;
        g.capability_minor = p.minor;
        g.sms = p.multiProcessorCount;
        g.memory_bytes = p.totalGlobalMem;
        g.l2_bytes = static_cast<u64>(p.l2CacheSize);
        g.cooperative_launch = p.cooperativeLaunch != 0;
        if (!g.cooperative_launch && g.problem.empty()) g.problem = "it has no cooperative launch";
        int timeout = 0;
        g.kernel_timeout = cudaDeviceGetAttribute(&timeout, cudaDevAttrKernelExecTimeout, i) == cudaSuccess && timeout != 0;
        out.gpus.push_back(std::move(g));
    }
    return out;
}

} // namespace slipstream::cli
