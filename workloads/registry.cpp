// The list of workloads.
#include "workloads/cholesky/cholesky.hpp"
#include "workloads/fork_join/fork_join.hpp"
#include "workloads/pipeline/pipeline.hpp"
#include "workloads/qr/qr.hpp"
#include "workloads/random_dag/random_dag.hpp"
#include "workloads/task_bench/task_bench.hpp"

namespace slipstream::workloads {

const std::vector<workload_type>& all_workloads()
{
    static const std::vector<workload_type> list{cholesky_type(), fork_join_type(),  pipeline_type(),
                                                 qr_type(),       random_dag_type(), task_bench_type()};
    return list;
}

} // namespace slipstream::workloads
