// qr on the host device: both precisions, several tilings and seeds, and results and programs that must not verify.
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
    const auto load = workload_named("qr").make(*device, {{"tiles", "4"}, {"precision", precision}}, 3);
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
    for (const auto& [i, j] : {std::pair{3u, 70u}, {70u, 3u}, {33u, 32u}}) { // in R, in V of tsqrt, in V of geqrt
        const T right = element<T>(load->program(), i, j);
        INFO(i << ", " << j);
        CHECK_FALSE(spoiled(i, j, right + T(0.05)).verified);
        CHECK_FALSE(spoiled(i, j, std::numeric_limits<T>::quiet_NaN()).verified);
        CHECK_FALSE(spoiled(i, j, std::numeric_limits<T>::infinity()).verified);
    }
    CHECK(load->verify().verified);
}

} // namespace

TEST_CASE("qr verifies on every host engine in both precisions, with tiles of every kind and several seeds", "[qr][large]")
{
    for (const char* const precision : precisions)
        for (const auto& [tiles, tile] : {std::pair{"4", "16"}, {"7", "32"}, {"5", "48"}, {"4", "80"}, {"4", "144"}})
            for (u64 seed = 1; seed <= 2; ++seed)
                for (const std::string engine : {"serial", "slipstream", "slipstream-hostdep"}) {
                    const parameters values{
                        {"tiles", tiles}, {"tile", tile}, {"precision", precision}, {"handles", seed == 1 ? "1" : "0"}};
                    const verdict v = run_workload("qr", engine, small_engine(32, 16), values, seed, 2);
                    INFO(engine << ", " << precision << ", " << tiles << " x " << tile << ", seed " << seed << ": " << v.detail);
                    CHECK(v.verified);
                }
}

TEST_CASE("qr of a matrix too large for the host factorization is checked by residual and orthogonality, and says so",
          "[qr][large]")
{
    const auto device = engines::open_device("host");
    const parameters values{{"tiles", "10"}, {"tile", "112"}};
    const auto load = workload_named("qr").make(*device, values, 1);
    CHECK(load->check() == "residual and orthogonality alone: the matrix is too large for a host factorization");
    const auto serial = engines::make_engine("serial", {}, *device, load->program().image());
    serial->prepare(load->program());
    load->reset();
    serial->run(load->program());
    CHECK(load->verify().verified);
    element<float>(load->program(), 500, 1000) += 1;
    CHECK_FALSE(load->verify().verified);
}

TEST_CASE("qr sees a wrong element, NaN and infinity in R and in each kind of reflector", "[qr]")
{
    check_that_spoiled_results_show<float>("fp32");
    check_that_spoiled_results_show<double>("fp64");
}

TEST_CASE("qr sees one wrong element of T", "[qr]")
{
    const auto device = engines::open_device("host");
    const auto load = workload_named("qr").make(*device, {{"tiles", "4"}, {"precision", "fp64"}}, 1);
    const engines::program& p = load->program();
    const auto serial = engines::make_engine("serial", {}, *device, p.image());
    serial->prepare(p);
    load->reset();
    serial->run(p);
    std::vector<abi::access_entry> accesses;
    engines::declared_accesses(p, p.tasks()[0], accesses);
    auto* const t = reinterpret_cast<double*>(accesses.at(1).begin());
    t[1] += 0.05;
    const verdict v = load->verify();
    CHECK_FALSE(v.verified);
    CHECK(v.detail.find("residual of probe 0") == 0); // R is right
}

TEST_CASE("qr sees each kind of task left out, in both precisions", "[qr]")
{
    const auto device = engines::open_device("host");
    for (const char* const precision : precisions)
        for (const std::string left_out : {"geqrt", "unmqr", "tsqrt", "tsmqr"}) {
            const auto load = workload_named("qr").make(*device, {{"tiles", "12"}, {"tile", "16"}, {"precision", precision}}, 1);
            const engines::program shorter = without_first(load->program(), left_out);
            const auto serial = engines::make_engine("serial", {}, *device, shorter.image());
            serial->prepare(shorter);
            load->reset();
            serial->run(shorter);
            INFO(precision << " without a " << left_out);
            CHECK_FALSE(load->verify().verified);
        }
}

TEST_CASE("the tasks of qr are those of the flat tree, and the first tsqrt of a column waits for each unmqr (WAR)", "[qr]")
{
    const auto device = engines::open_device("host");
    for (const u32 tiles : {4u, 9u})
        for (const char* const handles : {"0", "1"}) {
            const parameters values{{"tiles", std::to_string(tiles)}, {"tile", "16"}, {"handles", handles}};
            const auto load = workload_named("qr").make(*device, values, 1);
            const engines::program& p = load->program();
            CHECK(p.tasks().size() == tiles * (tiles + 1) * (2 * tiles + 1) / 6);
            CHECK(p.registrations().size() == (handles[0] == '1' ? tiles * tiles + tiles * (tiles + 1) / 2 : 0));
            engines::hazard_search search;
            for (u32 n = 0; n <= tiles; ++n) {
                const auto predecessors = search.next(p, p.tasks()[n]);
                if (n == 0) continue;
                if (n < tiles) {
                    CHECK(p.tasks()[n].name == "unmqr");
                    CHECK(std::vector<u32>(predecessors.begin(), predecessors.end()) == std::vector<u32>{0});
                } else {
                    CHECK(p.tasks()[n].name == "tsqrt");
                    for (u32 unmqr = 1; unmqr < tiles; ++unmqr)
                        CHECK(std::find(predecessors.begin(), predecessors.end(), unmqr) != predecessors.end());
                }
            }
        }
}

TEST_CASE("qr refuses bad parameters with bounds", "[qr]")
{
    CHECK(refusal("qr", {{"tiles", "3"}}) == "qr: tiles = '3' must be a whole number from 4 to 48");
    CHECK(refusal("qr", {{"tile", "257"}}) == "qr: tile = '257' must be a whole number from 16 to 256");
    CHECK(refusal("qr", {{"tile", "40"}}) == "qr: tile = '40' must be a multiple of 16, from 16 to 256");
    CHECK(refusal("qr", {{"precision", "fp16"}}) == "qr: precision = 'fp16' must be fp32 or fp64");
    CHECK(refusal("qr", {{"handles", "yes"}}) == "qr: handles = 'yes' must be a whole number from 0 to 1");
    CHECK(refusal("qr", {{"seed", "1"}}) == "qr has no parameter 'seed': use handles, precision, tile, tiles");
}
