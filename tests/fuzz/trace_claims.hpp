// What must hold of every trace that an import lets through, and of every message of one that it refuses.
#pragma once
#include "host/trace/import_error.hpp"
#include "host/trace/import_limits.hpp"
#include "host/trace/recorded_trace.hpp"
#include "tests/fuzz/target.hpp"
#include <string>

namespace slipstream::fuzz {

/// Bounds that small inputs reach: each has a seed on either side. Reads are small too, and cross the ends of the reader's buffer.
inline trace::import_limits small_limits()
{
    trace::import_limits out;
    out.read_bytes = 256;
    out.tasks_max = 4;
    out.accesses_max = 8;
    out.spaces_max = 3;
    out.order_edges_max = 3;
    out.name_bytes_max = 24;
    out.names_bytes_max = 80;
    return out;
}

/// Bounds, order, ranges and numbers of the trace, its hazards against a plain quadratic search, its cells. Throws nothing.
void claim_sound(const trace::recorded_trace& t, const trace::import_limits& limits);

/// Runs an import of `path`, with claims about whatever comes out.
template <class Import>
void import_with_claims(const std::string& path, Import import)
{
    try {
        const trace::import_limits limits = small_limits();
        claim_sound(import(limits), limits);
    } catch (const trace::import_error& e) {
        const std::string message = e.what();
        claim_one_line(message);
        claim(message.starts_with(path + ": "), "a refusal names its file");
        claim(message.find("; ") != std::string::npos, "a refusal ends in a remedy");
    }
}

} // namespace slipstream::fuzz
