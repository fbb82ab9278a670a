// The list: a new trace or workload adds its line here.
#include "tools/slipstream/compare/suite.hpp"

namespace slipstream::cli {

std::span<const suite_entry> results_suite()
{
    static constexpr suite_entry list[] = {
        {"DLRM training step (the demo trace)", "traces/dlrm_h200.kineto.json.gz"},
        {"optimiser step of small kernels", "traces/optimiser_h200.kineto.json.gz"},
        {"CNN with input-dependent paths", "traces/dynamic_cnn_h200.kineto.json.gz"},
        {"transformer with early exit", "traces/transformer_exit_h200.kineto.json.gz"},
        {"random-dag, 1000 tasks of 5 us", "random-dag"},
        {"random-dag, 1000 tasks of 50 us", "random-dag:work_us=50"},
        {"random-dag by handles, 2000 tasks of 5 us, width 64",
         "random-dag:tasks=2000,width=64,cells=8192,handles=1,partial=0,tiles=0,whole=0,no_access=0,after=0,blocks=1"},
        {"Cholesky, 16 x 16 tiles of 32, fp32", "cholesky"},
        {"Cholesky, 24 x 24 tiles of 64, fp64", "cholesky:tiles=24,tile=64,precision=fp64"},
        {"QR, 12 x 12 tiles of 32, fp32", "qr"},
        {"QR, 12 x 12 tiles of 64, fp64", "qr:tile=64,precision=fp64"},
        {"fork-join, 64 branches of 5 us", "fork-join"},
        {"pipeline, 8 stages of 5 us", "pipeline"},
    };
    return list;
}

} // namespace slipstream::cli
