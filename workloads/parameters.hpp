// Reads a workload's parameters: defaults, refusal of unknown names, numbers within bounds.
#pragma once
#include "workloads/workload.hpp"

namespace slipstream::workloads {

class parameter_reader {
public:
    /// Throws config_error naming the known parameters when `given` has another one.
    parameter_reader(std::string workload, const parameters& defaults, const parameters& given);

    /// Throw config_error naming parameter, value and bounds.
    u32 whole(const std::string& name, u32 min, u32 max) const;
    double number(const std::string& name, double min, double max) const;
    const std::string& text(const std::string& name) const { return values_.at(name); }

private:
    [[noreturn]] void refuse(const std::string& name, const std::string& bounds) const;

    std::string workload_;
    parameters values_;
};

} // namespace slipstream::workloads
