// A measured figure, and what it stands beside.
#pragma once
#include "tools/slipstream/comparison.hpp"
#include <string>
#include <utility>
#include <vector>

namespace slipstream::bench {

using cli::spread;
using cli::spread_of;

/// A floor or an alternative, in the unit of its figure.
struct reference {
    std::string name;
    double value = 0;
};

struct figure {
    std::string name;
    std::string unit; ///< us, ns, M/s, B, %, x (a factor)
    spread value;
    std::vector<std::pair<std::string, double>> further = {}; ///< other percentiles and parts in the same unit; what its name says
    u64 tasks = 0;                                            ///< of the smaller of the two sizes that a slope was taken between
    u32 repeats = 0;
    bool verified = false;
    std::string kind = {};                    ///< floors: limit or alternative
    std::string note = {};                    ///< what the figure is not, or why it did not verify
    std::vector<reference> floors = {};       ///< what the hardware needs for the same, same run
    std::vector<reference> alternatives = {}; ///< what CUDA needs for the same, same run
};

} // namespace slipstream::bench
