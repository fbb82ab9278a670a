// slipstream devices: what is here, what works, what is missing and how to get it.
#include "tools/slipstream/commands.hpp"
#include "tools/slipstream/gpu_inventory.hpp"
#include "tools/slipstream/json_report.hpp"

namespace slipstream::cli {
namespace {

double gib(u64 bytes) { return static_cast<double>(bytes) / (1u << 30); }

void print(std::FILE* to, const gpu_inventory& inventory)
{
    std::fprintf(to, "host    works: %u cores, %s (real results; its times are not GPU times)\n", cpu_cores(), cpu_name().c_str());
    for (const gpu& g : inventory.gpus) {
        std::fprintf(to, "cuda:%d  %s: %s, compute capability %d.%d, %d SMs, %.1f GiB memory, %.0f MiB L2\n", g.ordinal,
                     g.problem.empty() ? "works" : "does NOT work", g.name.c_str(), g.capability_major, g.capability_minor, g.sms,
                     gib(g.memory_bytes), static_cast<double>(g.l2_bytes) / (1 << 20));
        if (!g.problem.empty()) std::fprintf(to, "        %s\n", g.problem.c_str());
        if (g.kernel_timeout)
            std::fprintf(to, "        a display runs on it: the driver ends kernels that stay for seconds; the engine parks well "
                             "before (residency limit 200 ms)\n");
    }
    if (inventory.gpus.empty()) std::fprintf(to, "cuda    does NOT work: %s\n", inventory.problem.c_str());
    std::fprintf(to, "\ndriver  %s", inventory.driver.empty() ? "no NVIDIA kernel module is loaded" : inventory.driver.c_str());
    if (inventory.driver_api != 0) std::fprintf(to, ", knows CUDA up to %s", cuda_version_text(inventory.driver_api).c_str());
    std::fprintf(to, "\nbuild   %s\n",
                 inventory.built_with_cuda ? ("with CUDA " + cuda_version_text(inventory.runtime_api)).c_str()
                                           : "without CUDA: host device only");
    if (inventory.gpus.empty() && inventory.built_with_cuda)
        std::fprintf(to, "needs   an NVIDIA GPU of compute capability 8.0 or newer with driver 580 or newer "
                         "(https://www.nvidia.com/drivers); until then use --device host\n");
    if (!inventory.built_with_cuda)
        std::fprintf(to, "needs   CUDA 13.0 or newer at build time (https://developer.nvidia.com/cuda-downloads), "
                         "driver 580 or newer at run time; until then use --device host\n");
}

void write(json_writer& w, const options& o, const gpu_inventory& inventory)
{
    w.StartObject();
    field(w, "command", "devices");
    w.Key("devices");
    w.StartArray();
    w.StartObject();
    field(w, "device", "host");
    field(w, "name", cpu_name());
    field(w, "cores", cpu_cores());
    field(w, "works", true);
    w.EndObject();
    for (const gpu& g : inventory.gpus) {
        w.StartObject();
        field(w, "device", "cuda:" + std::to_string(g.ordinal));
        field(w, "name", g.name);
        field(w, "compute_capability", std::to_string(g.capability_major) + "." + std::to_string(g.capability_minor));
        field(w, "sms", g.sms);
        field(w, "memory_bytes", g.memory_bytes);
        field(w, "kernel_timeout", g.kernel_timeout);
        field(w, "works", g.problem.empty());
        field(w, "problem", g.problem);
        w.EndObject();
    }
    w.EndArray();
    field(w, "cuda_problem", inventory.problem);
    field(w, "driver", inventory.driver);
    field(w, "cuda_driver", cuda_version_text(inventory.driver_api));
    field(w, "cuda_runtime", cuda_version_text(inventory.runtime_api));
    write_environment(w, describe_environment(o, "host", false), o);
    w.EndObject();
}

} // namespace

int run_devices(const options& o)
{
    const report_target target(o);
    const gpu_inventory inventory = take_inventory();
    print(target.tables(), inventory);
    if (target.wants_json()) {
        rapidjson::StringBuffer text;
        json_writer w(text);
        write(w, o, inventory);
        target.write(text);
    }
    return exit_good;
}

} // namespace slipstream::cli
