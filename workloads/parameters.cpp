// Parameters: text to numbers, with errors that say what would do.
#include "workloads/parameters.hpp"
#include <charconv>
#include <cmath>

namespace slipstream::workloads {

parameter_reader::parameter_reader(std::string workload, const parameters& defaults, const parameters& given)
    : workload_(std::move(workload)), values_(defaults)
{
    for (const auto& [name, value] : given) {
        const auto known = values_.find(name);
        if (known == values_.end()) {
            std::string list;
            for (const auto& [k, v] : defaults) list += (list.empty() ? "" : ", ") + k;
            throw config_error(workload_ + " has no parameter '" + name + "': use " + list);
        }
        known->second = value;
    }
}

u32 parameter_reader::whole(const std::string& name, u32 min, u32 max) const
{
    const std::string& value = values_.at(name);
    u64 n = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (problem != std::errc{} || end != value.data() + value.size() || n < min || n > max)
        refuse(name, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return static_cast<u32>(n);
}

double parameter_reader::number(const std::string& name, double min, double max) const
{
    const std::string& value = values_.at(name);
    double n = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), n);
    if (problem != std::errc{} || end != value.data() + value.size() || !(n >= min && n <= max)) {
        char bounds[96];
        std::snprintf(bounds, sizeof bounds, "a number from %g to %g", min, max);
        refuse(name, bounds);
    }
    return n;
}

void parameter_reader::refuse(const std::string& name, const std::string& bounds) const
{
    throw config_error(workload_ + ": " + name + " = '" + values_.at(name) + "' must be " + bounds);
}

} // namespace slipstream::workloads
