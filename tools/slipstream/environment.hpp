// Where a result comes from: hardware, driver, commit, command. Stands in every report.
#pragma once
#include "tools/slipstream/options.hpp"
#include <string>

namespace slipstream::cli {

struct environment {
    std::string device;       ///< "host" or "cuda:0 (NVIDIA H200)"
    bool is_cuda = false;
    std::string gpu;          ///< "" on the host device
    std::string driver;       ///< kernel module, "" when there is none
    std::string cuda_driver;  ///< newest CUDA the driver knows
    std::string cuda_runtime; ///< CUDA this binary was built with
    std::string cpu;
    u32 cores = 0;
    std::string commit;
    std::string command;
    std::string date; ///< UTC
};

environment describe_environment(const options& o, const std::string& device_name, bool is_cuda);

std::string cpu_name();
u32 cpu_cores();

} // namespace slipstream::cli
