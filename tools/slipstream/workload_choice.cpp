#include "tools/slipstream/workload_choice.hpp"
#include "tools/slipstream/usage_error.hpp"
#include <set>

namespace slipstream::cli {

const workloads::workload_type* find_workload(const std::string& name)
{
    for (const auto& type : workloads::all_workloads())
        if (type.name == name) return &type;
    return nullptr;
}

std::string workload_names()
{
    std::string known;
    for (const auto& type : workloads::all_workloads()) known += (known.empty() ? "" : ", ") + type.name;
    return known;
}

workloads::parameters workload_values(const std::string& where, const workloads::workload_type& type,
                                      std::span<const std::string> given)
{
    std::string known;
    for (const auto& [name, value] : type.defaults)
        if (name != hidden_parameter) known += (known.empty() ? "" : ", ") + name;
    workloads::parameters out = type.defaults;
    std::set<std::string> named;
    for (const std::string& assignment : given) {
        const auto equals = assignment.find('=');
        if (equals == std::string::npos || equals == 0)
            throw usage_error(where + ": '" + assignment + "' is no parameter; write NAME=VALUE with one of: " + known);
        const auto it = out.find(assignment.substr(0, equals));
        if (it == out.end())
            throw usage_error(where + ": unknown parameter '" + assignment.substr(0, equals) + "'; use one of: " + known);
        if (!named.insert(it->first).second) throw usage_error(where + ": " + it->first + " is given twice; leave one out");
        it->second = assignment.substr(equals + 1);
    }
    return out;
}

} // namespace slipstream::cli
