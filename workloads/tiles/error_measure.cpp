// The verdict, and the numbers that matrices and probes are made of.
#include "workloads/tiles/error_measure.hpp"
#include "workloads/digest/digest_task.hpp"
#include <cstdio>

namespace slipstream::workloads {

verdict judge(const std::vector<error_measure>& errors)
{
    std::string all;
    for (const error_measure& e : errors) {
        char text[160];
        std::snprintf(text, sizeof text, "%s: %.3g of the %g sqrt(n) eps allowed", e.what.c_str(), e.size, error_measure::allowed);
        if (!e.good()) return {false, text};
        all += (all.empty() ? "" : "; ") + std::string(text);
    }
    return {true, all};
}

std::vector<double> probe(u32 n, u64 seed, u32 number)
{
    std::vector<double> x(n);
    for (u32 i = 0; i < n; ++i) x[i] = digest_mix(digest_mix(seed, 0x9b0be + number), i) >> 63 ? 1 : -1;
    return x;
}

double random_element(u64 seed, u32 i, u32 j)
{
    const u64 bits = digest_mix(digest_mix(seed, 0x3a7), u64{i} << 32 | j);
    return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

} // namespace slipstream::workloads
