// The result of the same trace on the GPU, as it was committed beside the trace: what a host run shows next to its own.
#pragma once
#include "tools/slipstream/comparison.hpp"
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream::cli {

struct committed_result {
    std::string path;
    std::string device, gpu, driver, commit, date;
    std::string mode;       ///< when tasks arrived
    std::string kineto, et; ///< stems of the trace's two files
    u64 tasks = 0;
    std::vector<run_row> rows;
};

/// "dlrm_h200" for "some/where/dlrm_h200.kineto.json.gz".
std::string trace_stem(const std::string& trace_path);

/// What runs here: a Kineto file with its execution trace, so many tasks, which arrive in one of the modes of `replay`.
struct committed_subject {
    std::string kineto, et; ///< paths
    std::string mode;
    u64 tasks = 0;
};

/// Reads <folder of the Kineto file>/results/<stem>.h200.json, <stem>.<mode>.h200.json for modes other than back-to-back, which
/// this tool wrote with --json on an H200. Nothing when there is no such file, or it is of another subject; a file that is no
/// such report is logged and ignored.
std::optional<committed_result> find_committed_result(const committed_subject& subject);

/// What `text`, read from `path`, reports. Nothing when it is no such report: then `why` says what it is instead. Control
/// characters come out as '?', names are cut at 256 bytes.
std::optional<committed_result> parse_committed_result(std::string_view text, const std::string& path, const char*& why);

void print_committed_result(std::FILE* to, const committed_result& r);

} // namespace slipstream::cli
