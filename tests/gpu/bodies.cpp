// The bodies of `bench bodies` and `bench large`, as tasks: tensor cores, CUB's reduction, asynchronous copies.
#include "tests/stress/in_time.hpp"
#include "tools/slipstream/bench/wide_reference.hpp"
#include "tools/slipstream/bench/wide_tasks.hpp"
#include <algorithm>

using namespace slipstream;
using namespace slipstream::bench;
using slipstream::tests::in_time;

namespace {

// Three tasks, one behind the other, of more blocks than workers.
void check_kind(wide_runtime& runtime, wide_kind kind, const wide_shape& shape)
{
    const std::vector<u16> factors = factor_values(shape);
    buffer<u32> source(runtime, static_cast<u64>(share_words) * shape.blocks), ledger(runtime, shape.blocks);
    buffer<u16> rows(runtime, std::max<u64>(1, factors.size())), columns(runtime, std::max<u64>(1, factors.size()));
    buffer<unsigned char> target(runtime, std::max<u64>(1, static_cast<u64>(wide_target_bytes(kind)) * shape.blocks));
    runtime.submit(source_task{source}, {.blocks = shape.blocks});
    rows.upload(factors);
    columns.upload(factors);
    ledger.upload(std::vector<u32>(shape.blocks, 0));
    const wide_places places{source.data(), rows.data(), columns.data(), target.data(), ledger.data()};
    wide_reference reference(kind, shape);
    for (const u32 number : {3u, 0xfffffff0u, 1027u}) {
        with_task_of(kind, [&](auto* type) {
            using task = std::remove_pointer_t<decltype(type)>;
            runtime.submit(task::over(places, shape, number), {.blocks = shape.blocks});
        });
        reference.step(number);
        INFO("kind " << static_cast<u32>(kind) << ", depth " << shape.depth << ", number " << number);
        CHECK(reference.right(places, [&](void* to, const void* from, u64 bytes) { runtime.download(to, from, bytes); }));
    }
}

} // namespace

TEST_CASE("bodies of many blocks agree with their reference", "[gpu][bodies]")
{
    in_time(30, [] {
        config c;
        c.device = "cuda";
        c.memory_bytes = 256u << 20;
        wide_runtime runtime(c);
        for (const wide_kind kind : {wide_kind::copy, wide_kind::reduction, wide_kind::fp64, wide_kind::even, wide_kind::skewed})
            check_kind(runtime, kind, {300, 0, 4});
        // Fewer slices than are in flight, as many, more.
        for (const u32 slices : {1u, 2u, 3u, 8u, 32u}) check_kind(runtime, wide_kind::gemm, {300, slices * gemm_slice, 0});
    });
}
