// The floors: what the machine at hand needs for the elementary steps of the engine, and what CUDA needs for the same work.
//
// Each is a small kernel or a CUDA call sequence of its own, bounded and, where it writes data, checked.
#pragma once
#include <functional>
#include <slipstream/abi/portable.hpp>
#include <string>
#include <utility>
#include <vector>

namespace slipstream::bench {

struct floor_result {
    std::vector<double> samples; ///< in the unit of the entry
    bool verified = false;       ///< its data were right and no wait ran into its bound
    std::vector<std::pair<std::string, double>> further = {};
    std::string note = {}; ///< what `verified` does not say
};

enum class floor_kind { limit, alternative };

struct floor_entry {
    std::string name; ///< see floor_names.hpp for those that benchmarks refer to
    std::string unit; ///< us, ns, M/s
    floor_kind kind;
    std::function<floor_result(u32 repeats)> measure;
};

/// All floors of the GPU with this ordinal, which becomes the thread's current device; empty in a build without CUDA.
/// Measure while no runtime exists: its kernel fills the GPU.
std::vector<floor_entry> all_floors(u32 ordinal);

} // namespace slipstream::bench
