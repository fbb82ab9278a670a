// A workload: makes a program over device memory and checks what came out.
#pragma once
#include "host/engines/engine.hpp"
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace slipstream::workloads {

/// Outcome of a check; `detail` names the first thing that is wrong, or what was measured of a good result.
struct verdict {
    bool verified = false;
    std::string detail;
};

/// A chain of dependent tasks: how many, and the work of their bodies without any overhead.
struct path_length {
    u64 tasks = 0;
    double work_us = 0;
};

/// One instance of a workload, made for one device. Engines run program() any number of times, with reset() before each.
class workload {
public:
    virtual ~workload() = default;
    virtual std::string name() const = 0;
    virtual const engines::program& program() const = 0;
    /// Puts device memory back into its initial state; not timed.
    virtual void reset() = 0;
    /// Compares device memory with a sequential reference.
    virtual verdict verify() = 0;
    /// What verify() compares with, where that depends on the parameters.
    virtual std::string check() const { return {}; }
    /// The longest path through the declared dependencies, where the workload's shape gives it in closed form.
    virtual std::optional<path_length> known_critical_path() const { return std::nullopt; }
};

/// Parameters from the command line: name -> value; unknown names are refused with the list of known ones.
using parameters = std::map<std::string, std::string>;

struct workload_type {
    std::string name;
    std::string description;
    parameters defaults; ///< every parameter with its default
    std::unique_ptr<workload> (*make)(engines::device_memory& device, const parameters& values, u64 seed);
};

/// All workloads this binary knows, by name.
const std::vector<workload_type>& all_workloads();

} // namespace slipstream::workloads
