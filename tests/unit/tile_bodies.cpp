// The bodies of cholesky and qr run by blocks of many threads, as on a GPU: staged factors, barriers, reductions.
#include "trace_catch.hpp"

#include "thread_team.hpp"
#include "workload_run.hpp"
#include "workloads/cholesky/cholesky_tasks.hpp"
#include "workloads/qr/qr_tasks.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

namespace {

// Tiles of 16: one block, most of it idle; of 48: several passes over the sums; of 80: blocks of unequal parts.
template <class... Tasks>
void check_on_team(const std::string& workload, const char* precision, std::initializer_list<const char*> tile_sizes)
{
    for (const char* const tile : tile_sizes) {
        const auto device = engines::open_device("host");
        const auto load = workload_named(workload).make(*device, {{"tiles", "4"}, {"tile", tile}, {"precision", precision}}, 1);
        load->reset();
        run_on_team<Tasks...>(load->program());
        const verdict v = load->verify();
        INFO(workload << ", " << precision << ", tile " << tile << ": " << v.detail);
        CHECK(v.verified);
    }
}

} // namespace

TEST_CASE("the bodies of cholesky are right in blocks of many threads", "[tile_bodies]")
{
    check_on_team<potrf_task<float>, trsm_task<float>, syrk_task<float>, gemm_task<float>>("cholesky", "fp32", {"16", "80"});
    check_on_team<potrf_task<double>, trsm_task<double>, syrk_task<double>, gemm_task<double>>("cholesky", "fp64", {"48"});
}

TEST_CASE("the bodies of qr are right in blocks of many threads", "[tile_bodies]")
{
    check_on_team<geqrt_task<float>, unmqr_task<float>, tsqrt_task<float>, tsmqr_task<float>>("qr", "fp32", {"16", "80"});
    check_on_team<geqrt_task<double>, unmqr_task<double>, tsqrt_task<double>, tsmqr_task<double>>("qr", "fp64", {"48"});
}
