#include "tools/slipstream/device_choice.hpp"
#include "tools/slipstream/commands.hpp"
#include <slipstream/status.hpp>

namespace slipstream::cli {

void check_device_name(const std::string& name)
{
    if (name == "auto" || name == "cuda" || name == "host") return;
    const bool numbered = name.rfind("cuda:", 0) == 0 && name.size() > 5 && name.size() < 9
        && name.find_first_not_of("0123456789", 5) == std::string::npos;
    if (!numbered) throw usage_error("--device " + name + ": unknown device; use auto, cuda, cuda:N or host");
}

std::unique_ptr<engines::device_memory> open_named_device(const std::string& name)
{
    check_device_name(name);
    try {
        return engines::open_device(name);
    } catch (const error& e) {
        throw usage_error("--device " + name + ": " + e.what() + " (see 'slipstream devices')");
    }
}

} // namespace slipstream::cli
