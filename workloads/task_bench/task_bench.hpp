// task-bench: the patterns of Task Bench (SC'20) as a workload; inputs are checked where the tasks run, and all digests afterwards.
#pragma once
#include "workloads/task_bench/point_task.hpp"
#include "workloads/workload.hpp"

namespace slipstream::workloads {

/// What is run, apart from how long a task works.
struct task_bench_plan {
    task_graph graph;
    u32 buffers;  ///< outputs of a point, used in turn: few give WAR and WAW
    bool handles; ///< every output is a registered handle; else a raw range
    bool rows;    ///< a row is one task of as many blocks as it has points; else every point is a task
};

class task_bench final : public workload {
public:
    /// `lose_a_task`: for tests; the program lacks one, which must show.
    task_bench(engines::device_memory& device, const task_bench_plan& plan, bool lose_a_task);

    std::string name() const override { return "task-bench"; }
    const engines::program& program() const override { return program_; }
    void reset() override;
    verdict verify() override;
    std::string check() const override
    {
        return "the stamps of all inputs, on the device, and the digests of all tasks and outputs";
    }

    const task_bench_plan& plan() const { return plan_; }
    /// Points of all rows: tasks, or the blocks of all tasks.
    u64 points() const { return points_; }
    /// Dependencies between points.
    u64 inputs() const { return inputs_; }
    /// How often every task goes through busy_chains' loop, from the next reset() on. Engines need not prepare again.
    void set_iterations(u32 iterations);
    /// Leaves one RAW, WAR or WAW edge out (find_broken_edge); before engines prepare.
    void break_edge(const std::string& kind);

private:
    declared_access access_to(abi::access_mode mode, u32 t, u32 p, u32 points = 1);
    void add_tasks(bool lose_a_task);
    void compute_reference();
    u64 outputs_bytes() const { return expected_outputs_.size() * sizeof(point_output); }

    engines::device_memory& device_;
    task_bench_plan plan_;
    engines::program program_;
    char* board_ = nullptr; ///< device memory, point_task.hpp has its layout
    point_header header_{};
    u64 points_ = 0, inputs_ = 0;
    std::vector<data_handle> handles_;
    std::vector<point_output> expected_outputs_;
    std::vector<u64> expected_results_;
};

/// Iterations of busy_chains in a microsecond, by one block of `device`.
double chain_iterations_per_us(engines::device_memory& device);

/// As `run task-bench` makes it; throws config_error for parameters that cannot work.
std::unique_ptr<task_bench> make_task_bench(engines::device_memory& device, const parameters& values, u64 seed,
                                            bool lose_a_task = false);

/// Name, description, defaults and maker, for registry.cpp. What the parameters mean: README.md of this folder.
workload_type task_bench_type();

} // namespace slipstream::workloads
