// Names to engines and devices.
#include "host/backend.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/gpu_requirements.hpp"
#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace slipstream::engines {

std::unique_ptr<device_memory> open_device(const std::string& device)
{
    if (device == "host") return make_host_device_memory();
    u32 ordinal = 0;
    const bool numbered = device.rfind("cuda:", 0) == 0 && device.size() > 5 && device.size() < 9
        && device.find_first_not_of("0123456789", 5) == std::string::npos;
    if (numbered)
        ordinal = static_cast<u32>(std::stoul(device.substr(5)));
    else if (device != "auto" && device != "cuda")
        throw config_error("unknown device '" + device + "': use auto, cuda, cuda:N or host");
#if SLIPSTREAM_WITH_CUDA
    // Streams share hardware queues, 8 by default: with 32 no stream of the pool waits for another one by accident.
    ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
#endif
    if (device == "auto") {
        const int usable = host::first_usable_gpu();
        if (usable < 0) return make_host_device_memory();
        ordinal = static_cast<u32>(usable);
    } else if (const std::string problem = host::cuda_problem(static_cast<int>(ordinal)); !problem.empty()) {
        throw device_error(device + ": " + problem + "; or use --device host");
    }
#if SLIPSTREAM_WITH_CUDA
    return make_cuda_device_memory(ordinal);
#else
    return make_host_device_memory(); // not reached: without CUDA there is always a problem
#endif
}

std::vector<std::string> engine_names(bool cuda)
{
    if (cuda) return {"serial",       "streams",      "acs-sw",     "graph-rebuild",
                      "graph-update", "graph-replay", "slipstream", "slipstream-hostdep"};
    return {"serial", "slipstream", "slipstream-hostdep"};
}

bool runs_on_runtime(const std::string& name)
{
    return name == "slipstream" || name == "slipstream-hostdep";
}

void engine::set_arrivals(arrivals when)
{
    if (!takes(when.mode)) throw config_error("the " + name() + " engine takes no " + name_of(when.mode) + " tasks: leave it out");
    when_ = std::move(when);
}

std::unique_ptr<engine> make_engine(const std::string& name, const config& configuration, const device_memory& device,
                                    const kernel_image& image)
{
    const std::vector<std::string> known = engine_names(device.is_cuda());
    if (std::find(known.begin(), known.end(), name) == known.end()) {
        std::string list;
        for (const std::string& k : known) list += (list.empty() ? "" : ", ") + k;
        throw config_error("unknown engine '" + name + "' on " + device.name() + ": use one of " + list);
    }
    if (device.is_cuda() && image.cuda == nullptr)
        throw config_error("this workload was compiled for the host only: configure with CUDA, or use --device host");
    if (runs_on_runtime(name)) {
        config there = configuration;
        there.device = device.is_cuda() ? "cuda:" + std::to_string(device.ordinal()) : "host";
        return name == "slipstream" ? make_slipstream_engine(there, image) : make_slipstream_hostdep_engine(there, image);
    }
#if SLIPSTREAM_WITH_CUDA
    if (device.is_cuda()) {
        const u32 ordinal = device.ordinal();
        if (name == "serial") return make_cuda_serial_engine(ordinal);
        if (name == "streams") return make_cuda_streams_engine(ordinal);
        if (name == "acs-sw") return make_cuda_acs_engine(ordinal);
        if (name == "graph-rebuild") return make_cuda_graph_rebuild_engine(ordinal);
        if (name == "graph-update") return make_cuda_graph_update_engine(ordinal);
        if (name == "graph-replay") return make_cuda_graph_replay_engine(ordinal);
        throw std::logic_error("engine '" + name + "' is listed but not made");
    }
#endif
    return make_host_serial_engine();
}

} // namespace slipstream::engines
