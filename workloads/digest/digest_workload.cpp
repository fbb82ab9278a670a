// Microseconds into iterations, board into program, and a task held where an edge is left out.
#include "workloads/digest/digest_workload.hpp"
#include "workloads/digest/digest_image.hpp"
#include "workloads/digest/work_rate.hpp"
#include <algorithm>

namespace slipstream::workloads {
namespace {

u32 iterations(double us, double rate)
{
    return static_cast<u32>(std::min(us * rate, 4e9));
}

} // namespace

digest_workload::digest_workload(std::string name, engines::device_memory& device, u32 cells,
                                 const std::function<digest_plan(digest_board& board)>& fill, const std::string& broken)
    : name_(std::move(name)), board_(device, digest_image(), cells)
{
    const double rate = iterations_per_us(device, digest_image(), digest_task_type);
    const digest_plan plan = fill(board_);
    // Host runs are about correctness: a fiftieth of the work is enough to mix the order of tasks.
    const double share_done = device.is_cuda() ? 1 : 1 / 50.;
    critical_path_ = plan.critical_path;
    if (critical_path_) critical_path_->work_us *= share_done;
    digest_task task{};
    board_.finish([&](u32 number, const digest_share& share) {
        task = {share, iterations(plan.work_us[number] * share_done, rate), 0};
        return shaped_task{digest_task_type, &task};
    });
    if (!broken.empty()) {
        const broken_edge edge = board_.break_edge(broken);
        const double hold_us = device.is_cuda() ? 5'000 : 100'000; // threads of a busy machine may have to wait for their turn
        static_cast<digest_task*>(board_.arguments(edge.held))->hold = iterations(hold_us, rate);
    }
}

} // namespace slipstream::workloads
