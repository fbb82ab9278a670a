// The list of workloads.
#include "workloads/random_dag/random_dag.hpp"

namespace slipstream::workloads {

const std::vector<workload_type>& all_workloads()
{
    static const std::vector<workload_type> list{random_dag_type()};
    return list;
}

} // namespace slipstream::workloads
