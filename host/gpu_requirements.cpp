#include "host/gpu_requirements.hpp"
#include "host/backend.hpp"

namespace slipstream::host {
namespace {

constexpr const char* host_instead = "; until then use the host device (config::device = \"host\", --device host)";

std::string cuda_version(int v) { return std::to_string(v / 1000) + "." + std::to_string(v % 1000 / 10); }
std::string mib(u64 bytes) { return std::to_string(bytes >> 20) + " MiB"; }

} // namespace

std::string gpu_problem(const gpu_facts& f, int ordinal)
{
    const std::string gpu = "cuda:" + std::to_string(ordinal);
    switch (f.answer) {
    case gpu_answer::no_driver:
        return std::string("no NVIDIA driver is loaded: install driver 580 or newer (https://www.nvidia.com/drivers)")
            + host_instead;
    case gpu_answer::old_driver:
        return "the NVIDIA driver is too old: it knows CUDA "
            + (f.driver_cuda ? "up to " + cuda_version(f.driver_cuda) : std::string("of an earlier version"))
            + ", and this build needs " + cuda_version(f.build_cuda)
            + "; install driver 580 or newer (https://www.nvidia.com/drivers)" + host_instead;
    case gpu_answer::other: return "no usable NVIDIA GPU (" + f.said + ")" + host_instead;
    case gpu_answer::no_device: break;
    case gpu_answer::good: break;
    }
    if (f.answer == gpu_answer::no_device || f.count == 0)
        return std::string("no NVIDIA GPU found: use a machine with one of compute capability 8.0 or newer, "
                           "or look whether CUDA_VISIBLE_DEVICES hides it")
            + host_instead;
    if (ordinal >= f.count)
        return "there is no " + gpu + "; this machine has " + std::to_string(f.count) + " GPU(s), from cuda:0 to cuda:"
            + std::to_string(f.count - 1);
    if (!f.answers)
        return gpu + " does not answer: look at it with nvidia-smi; "
                     "when an earlier kernel of this process failed there, start a new process";
    if (f.major < 8)
        return f.name + " has compute capability " + std::to_string(f.major) + "." + std::to_string(f.minor)
            + "; 8.0 or newer is needed" + host_instead;
    if (!f.cooperative_launch)
        return f.name + " has no cooperative launch, which keeps all blocks of a kernel resident" + std::string(host_instead);
    if (f.sms < 2)
        return f.name + " shows " + std::to_string(f.sms)
            + " SM, and the engine needs two: one schedules, the others work; give this process a larger share of the GPU"
            + host_instead;
    return {};
}

int first_usable_gpu(int count, const std::function<std::string(int)>& problem_of)
{
    for (int ordinal = 0; ordinal < count; ++ordinal)
        if (problem_of(ordinal).empty()) return ordinal;
    return -1;
}

int first_usable_gpu()
{
    return first_usable_gpu(cuda_device_count(), cuda_problem);
}

std::string launch_problem(const launch_facts& f)
{
    if (f.fit_per_sm < f.workers_per_sm)
        return "workers_per_sm = " + std::to_string(f.workers_per_sm) + ", but only " + std::to_string(f.fit_per_sm)
            + " of them fit on an SM (" + std::to_string(f.threads) + " threads, " + std::to_string(f.shared_bytes)
            + " B shared memory); lower workers_per_sm";
    const u64 room = f.sms == 0 ? 0 : static_cast<u64>(f.fit_per_sm) * (f.sms - 1);
    if (f.workers == 0 || room < f.workers)
        return f.name + " is too small: " + std::to_string(f.workers)
            + " workers must be resident at once, beside an SM that schedules, and " + std::to_string(room) + " fit on its "
            + std::to_string(f.sms)
            + " SM(s); lower sms_left_free or workers_per_sm, or give this process a larger share of the GPU" + host_instead;
    return {};
}

std::string launch_blocking_problem(const char* value)
{
    if (value == nullptr || *value == '\0' || std::string_view(value) == "0") return {};
    return "CUDA_LAUNCH_BLOCKING = " + std::string(value)
        + " in the environment: each launch would wait for its kernel's end, but the control block and the workers are two "
          "kernels that run at once; unset it, or set it to 0"
        + host_instead;
}

std::string memory_problem(const std::string& call, u64 bytes, u64 free, u64 total)
{
    const bool pinned = call == "cudaHostAlloc";
    std::string text = call + " of " + mib(bytes) + " found no room";
    if (!pinned && total != 0) text += " (" + mib(free) + " of the GPU's " + mib(total) + " are free)";
    return text
        + (pinned ? "; lower config::staging_bytes, ring_slots, rings or flight_log, "
                    "or raise the limit on locked memory (ulimit -l)"
                  : "; lower config::memory_bytes or the window, or end what else holds memory of this GPU (nvidia-smi)");
}

std::string cuda_remedy(int code)
{
    switch (code) {
    case 35: // cudaErrorInsufficientDriver
        return "; install driver 580 or newer (https://www.nvidia.com/drivers)";
    case 46: // cudaErrorDevicesUnavailable
        return "; another process has this GPU for itself (exclusive compute mode): end it, or use another GPU";
    case 720: // cudaErrorCooperativeLaunchTooLarge
        return "; this process may use fewer SMs than the GPU has: raise config::sms_left_free, or give the process a larger share";
    case 214: // cudaErrorECCUncorrectable
    case 220: // cudaErrorNvlinkUncorrectable
    case 226: // cudaErrorContained
    case 700: // cudaErrorIllegalAddress
    case 702: // cudaErrorLaunchTimeout
    case 710: // cudaErrorAssert
    case 714: // cudaErrorHardwareStackError
    case 715: // cudaErrorIllegalInstruction
    case 716: // cudaErrorMisalignedAddress
    case 717: // cudaErrorInvalidAddressSpace
    case 718: // cudaErrorInvalidPc
    case 719: // cudaErrorLaunchFailure
    case 721: // cudaErrorTensorMemoryLeak
        return "; this process's CUDA context is lost with it: no CUDA call works in this process any more, a new process does "
               "(in this one the host device does)";
    case 803: // cudaErrorSystemDriverMismatch
        return "; the parts of the NVIDIA driver are of different versions: restart the machine";
    default: return {};
    }
}

} // namespace slipstream::host
