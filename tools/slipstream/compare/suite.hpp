// The subjects of the results page.
#pragma once
#include "tools/slipstream/compare/subject.hpp"
#include <span>

namespace slipstream::cli {

struct suite_entry {
    const char* title;
    const char* text; ///< for parse_subject
};

/// workloads/results/README.md shows them in this order.
std::span<const suite_entry> results_suite();

} // namespace slipstream::cli
