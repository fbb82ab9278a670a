// Finds, for every operator of a Kineto log, the execution-trace node of the same call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execution_trace.hpp"
#include "kineto_log.hpp"

namespace slipstream::trace {

struct operator_join {
    std::vector<std::uint32_t> node_of_op;  // by index into kineto_log::cpu_ops; no_node when there is none
    std::uint64_t matched = 0;
    std::uint64_t ops = 0;    // of the log that could have matched
    std::uint64_t nodes = 0;  // of the execution trace that could have matched
    bool by_record_function = false;  // else by the order of calls in each thread

    // Of the shorter side, because either recording may have started earlier than the other.
    double matched_share() const {
        const std::uint64_t possible = ops < nodes ? ops : nodes;
        return possible == 0 ? 0.0 : static_cast<double>(matched) / static_cast<double>(possible);
    }
};

// Takes `Record function id` = `rf_id` where the names agree; in 2023 files, whose numbers are offset, the order of
// the calls of each thread (by External id and rf_id), with the names resynchronised after a gap. The better one wins.
operator_join join_operators(const kineto_log& log, const execution_trace& et);

}  // namespace slipstream::trace
