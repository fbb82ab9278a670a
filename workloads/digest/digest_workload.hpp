// A workload whose tasks all are digest tasks: a generator fills the board, the rest is the same for all of them.
#pragma once
#include "workloads/digest/digest_board.hpp"
#include <functional>

namespace slipstream::workloads {

/// What a generator says of the tasks that it has added to the board.
struct digest_plan {
    std::vector<double> work_us;              ///< of each task, one block's
    std::optional<path_length> critical_path; ///< in these microseconds
};

class digest_workload final : public workload {
public:
    /// `broken`: empty, or the kind of edge to leave out (digest_board::break_edge).
    digest_workload(std::string name, engines::device_memory& device, u32 cells,
                    const std::function<digest_plan(digest_board& board)>& fill, const std::string& broken);

    std::string name() const override { return name_; }
    const engines::program& program() const override { return board_.program(); }
    void reset() override { board_.reset(); }
    verdict verify() override { return board_.verify(); }
    std::optional<path_length> known_critical_path() const override { return critical_path_; }

private:
    std::string name_;
    digest_board board_;
    std::optional<path_length> critical_path_;
};

} // namespace slipstream::workloads
