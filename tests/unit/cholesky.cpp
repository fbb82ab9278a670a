// cholesky on the host device: both precisions, several tilings and seeds, and results and programs that must not verify.
#include "trace_catch.hpp"

#include "workload_run.hpp"

using namespace slipstream;
using namespace slipstream::tests;
using namespace slipstream::workloads;

namespace {

constexpr const char* precisions[] = {"fp32", "fp64"};

/// The element (i, j) of the matrix: the first task's member is tile (0, 0).
template <class T> T& element(const engines::program& p, u32 i, u32 j)
{
    std::vector<abi::access_entry> accesses;
    engines::declared_accesses(p, p.tasks()[0], accesses);
    return *reinterpret_cast<T*>(accesses.at(0).begin() + i * accesses.at(0).pitch() + j * sizeof(T));
}

template <class T> void check_that_spoiled_results_show(const char* precision)
{
    const auto device = engines::open_device("host");
    const auto load = workload_named("cholesky").make(*device, {{"tiles", "4"}, {"precision", precision}}, 3);
    const auto serial = engines::make_engine("serial", {}, *device, load->program().image());
    serial->prepare(load->program());
    load->reset();
    CHECK_FALSE(load->verify().verified); // has not run
    serial->run(load->program());
    REQUIRE(load->verify().verified);
    const auto spoiled = [&](u32 i, u32 j, T value) {
        T& place = element<T>(load->program(), i, j);
        const T kept = std::exchange(place, value);
        const verdict v = load->verify();
        place = kept;
        return v;
    };
    const T right = element<T>(load->program(), 70, 3);
    CHECK_FALSE(spoiled(70, 3, right + T(0.01)).verified);
    CHECK_FALSE(spoiled(70, 3, std::numeric_limits<T>::quiet_NaN()).verified);
    CHECK_FALSE(spoiled(0, 0, std::numeric_limits<T>::infinity()).verified);
    CHECK(spoiled(3, 70, 9).detail == "element (3, 70) above the diagonal was written");
    CHECK(load->verify().verified);
}

} // namespace

TEST_CASE("cholesky verifies on every host engine in both precisions, with tiles of every kind and several seeds", "[cholesky]")
{
    for (const char* const precision : precisions)
        for (const auto& [tiles, tile] : {std::pair{"4", "16"}, {"7", "32"}, {"5", "48"}, {"4", "80"}, {"4", "144"}})
            for (u64 seed = 1; seed <= 2; ++seed)
                for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"}) {
                    const parameters values{
                        {"tiles", tiles}, {"tile", tile}, {"precision", precision}, {"handles", seed == 1 ? "1" : "0"}};
                    const verdict v = run_workload("cholesky", engine, small_engine(32, 16), values, seed, 2);
                    INFO(engine << ", " << precision << ", " << tiles << " x " << tile << ", seed " << seed << ": " << v.detail);
                    CHECK(v.verified);
                }
}

TEST_CASE("cholesky of a matrix too large for the host factorization is checked by residual, and says so", "[cholesky][large]")
{
    const auto device = engines::open_device("host");
    const parameters values{{"tiles", "9"}, {"tile", "240"}};
    const auto load = workload_named("cholesky").make(*device, values, 1);
    CHECK(load->check() == "residual alone: the matrix is too large for a host factorization");
    const auto serial = engines::make_engine("serial", {}, *device, load->program().image());
    serial->prepare(load->program());
    load->reset();
    serial->run(load->program());
    CHECK(load->verify().verified);
    element<float>(load->program(), 2000, 1000) += 1;
    CHECK_FALSE(load->verify().verified);
}

TEST_CASE("cholesky sees one wrong element, NaN, infinity and a write above the diagonal", "[cholesky]")
{
    check_that_spoiled_results_show<float>("fp32");
    check_that_spoiled_results_show<double>("fp64");
}

TEST_CASE("cholesky sees each kind of task left out, in both precisions", "[cholesky]")
{
    const auto device = engines::open_device("host");
    for (const char* const precision : precisions)
        for (const std::string left_out : {"potrf", "trsm", "syrk", "gemm"}) {
            const auto load =
                workload_named("cholesky").make(*device, {{"tiles", "12"}, {"tile", "16"}, {"precision", precision}}, 1);
            const engines::program shorter = without_first(load->program(), left_out);
            const auto serial = engines::make_engine("serial", {}, *device, shorter.image());
            serial->prepare(shorter);
            load->reset();
            serial->run(shorter);
            INFO(precision << " without a " << left_out);
            CHECK_FALSE(load->verify().verified);
        }
}

TEST_CASE("the tasks of cholesky and its longest path are those of the textbook", "[cholesky]")
{
    const auto device = engines::open_device("host");
    for (const u32 tiles : {4u, 9u, 16u})
        for (const char* const handles : {"0", "1"}) {
            const parameters values{{"tiles", std::to_string(tiles)}, {"tile", "16"}, {"handles", handles}};
            const auto load = workload_named("cholesky").make(*device, values, 1);
            CHECK(load->program().tasks().size() == tiles * (tiles + 1) * (tiles + 2) / 6);
            CHECK(longest_path(load->program()) == 3 * tiles - 2); // potrf, trsm, syrk, potrf, ...
            CHECK(load->program().registrations().size() == (handles[0] == '1' ? tiles * tiles : 0));
        }
}

TEST_CASE("cholesky refuses bad parameters with bounds", "[cholesky]")
{
    CHECK(refusal("cholesky", {{"tiles", "3"}}) == "cholesky: tiles = '3' must be a whole number from 4 to 48");
    CHECK(refusal("cholesky", {{"tile", "257"}}) == "cholesky: tile = '257' must be a whole number from 16 to 256");
    CHECK(refusal("cholesky", {{"tile", "40"}}) == "cholesky: tile = '40' must be a multiple of 16, from 16 to 256");
    CHECK(refusal("cholesky", {{"precision", "fp16"}}) == "cholesky: precision = 'fp16' must be fp32 or fp64");
    CHECK(refusal("cholesky", {{"handles", "yes"}}) == "cholesky: handles = 'yes' must be a whole number from 0 to 1");
    CHECK(refusal("cholesky", {{"seed", "1"}}) == "cholesky has no parameter 'seed': use handles, precision, tile, tiles");
}
