// What a GPU must be and have, and what to do where it is not: judged from plain facts,
// so that it can be tested without such a GPU.
#pragma once
#include <functional>
#include <slipstream/abi/portable.hpp>
#include <string>

namespace slipstream::host {

/// What CUDA answers when it is asked for its devices.
enum class gpu_answer {
    good,
    no_device,
    no_driver,
    old_driver, ///< knows no CUDA as new as this build's
    other,
};

struct gpu_facts {
    gpu_answer answer = gpu_answer::good;
    std::string said;   ///< CUDA's own words, for `other`
    int count = 0;      ///< of GPUs
    int driver_cuda = 0; ///< newest CUDA the driver knows, 1000 * major + 10 * minor; 0: unknown
    int build_cuda = 0; ///< of this build
    // Of the GPU in question:
    bool answers = true;
    std::string name;
    int major = 0, minor = 0; ///< compute capability
    bool cooperative_launch = true;
    u32 sms = 0;
};

/// What is wrong with GPU `ordinal` and what to do; empty: it works.
std::string gpu_problem(const gpu_facts& f, int ordinal);

/// The first of `count` GPUs with which nothing is wrong; -1: there is none. problem_of: of a GPU, by its ordinal; empty: it works.
int first_usable_gpu(int count, const std::function<std::string(int)>& problem_of);
/// Of this machine: what the device "auto" means. -1: there is none, and cuda_problem(0) says why.
int first_usable_gpu();

/// How workers, who must all be resident beside a control block with an SM to itself, meet a GPU.
struct launch_facts {
    std::string name;
    u32 sms = 0;
    u32 workers = 0;
    u32 workers_per_sm = 0; ///< wanted
    u32 fit_per_sm = 0;     ///< as CUDA says
    u32 threads = 0;        ///< of a worker
    u64 shared_bytes = 0;   ///< of a worker
};
/// Empty: they are resident together.
std::string launch_problem(const launch_facts& f);

/// What is wrong with CUDA_LAUNCH_BLOCKING in the environment (null: it is not set); empty: nothing.
std::string launch_blocking_problem(const char* value);

/// For a cudaMalloc or cudaHostAlloc of `bytes` that found no room. free, total: of the GPU's memory; 0: unknown.
std::string memory_problem(const std::string& call, u64 bytes, u64 free, u64 total);

/// What to do about a CUDA error: "" or a sentence that begins with "; ". code: cudaError_t.
std::string cuda_remedy(int code);

} // namespace slipstream::host
