#include "tools/slipstream/environment.hpp"
#include "slipstream_commit.hpp"
#include "tools/slipstream/gpu_inventory.hpp"
#include <ctime>
#include <fstream>
#include <thread>

namespace slipstream::cli {

std::string cpu_name()
{
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.rfind("model name", 0) != 0) continue;
        const auto colon = line.find(": ");
        if (colon != std::string::npos) return line.substr(colon + 2);
    }
    return "unknown CPU";
}

u32 cpu_cores()
{
    const u32 cores = std::thread::hardware_concurrency();
    return cores == 0 ? 1 : cores;
}

std::string kernel_module_version()
{
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build ...": the first word with two dots.
    std::ifstream in("/proc/driver/nvidia/version");
    std::string word;
    while (in >> word) {
        const auto dot = word.find('.');
        if (dot == std::string::npos || dot == 0) continue;
        if (word.find_first_not_of("0123456789.") == std::string::npos) return word;
    }
    return {};
}

std::string cuda_version_text(int version)
{
    return version == 0 ? std::string("none") : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

environment describe_environment(const options& o, const std::string& device_name, bool is_cuda)
{
    environment e;
    e.device = device_name;
    e.is_cuda = is_cuda;
    if (is_cuda) {
        const gpu_inventory inventory = take_inventory();
        e.driver = inventory.driver;
        e.cuda_driver = cuda_version_text(inventory.driver_api);
        e.cuda_runtime = cuda_version_text(inventory.runtime_api);
        // device_memory::name() is "cuda:N (NAME)".
        const auto open = device_name.find(" (");
        if (open != std::string::npos && device_name.back() == ')')
            e.gpu = device_name.substr(open + 2, device_name.size() - open - 3);
    }
    e.cpu = cpu_name();
    e.cores = cpu_cores();
    e.commit = slipstream_commit;
    e.command = o.command_line;
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    gmtime_r(&now, &utc);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    e.date = text;
    return e;
}

} // namespace slipstream::cli
