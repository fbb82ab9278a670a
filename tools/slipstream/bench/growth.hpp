// What a sweep over sizes says about growth.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <vector>

namespace slipstream::bench {

struct growth_point {
    double size = 0;
    double cost = 0; ///< of all of it, or of one task: the same for a whole sweep
};
/// By size, each larger than the one before.
using growth_sweep = std::vector<growth_point>;

/// The factor by which costs grew where the size doubled, at the worst; no number when a cost is none, or there are not two points.
/// Between sizes that are not a doubling apart it is taken evenly: the root of as many doublings as lie between them.
double worst_doubling(const growth_sweep& points);

/// The cost of one in the longest run over that of one in a run of a hundredth of it, 10^7 against 10^5; no number without such a
/// run.
double long_run_factor(const growth_sweep& runs);

/// 1, 2, 5 times the powers of ten: from a thousand on, where `most` is not so small that there would be no growth to see.
std::vector<u64> run_lengths(u64 most);

} // namespace slipstream::bench
