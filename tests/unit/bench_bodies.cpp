// The bodies of `bench bodies` and `bench large` against their reference, in blocks of one thread and of many.
#include "trace_catch.hpp"

#include "thread_team.hpp"
#include "tools/slipstream/bench/wide_reference.hpp"
#include "tools/slipstream/bench/wide_tasks.hpp"
#include <cstring>

using namespace slipstream;
using namespace slipstream::bench;
using namespace slipstream::tests;

namespace {

constexpr wide_kind kinds[] = {wide_kind::copy, wide_kind::reduction, wide_kind::gemm,
                               wide_kind::fp64, wide_kind::even,      wide_kind::skewed};

// Blocks beyond gemm_tiles take other columns; skewed ones beyond the long ones are short.
wide_shape small(wide_kind kind)
{
    return {kind == wide_kind::gemm ? gemm_tiles + 2 : is_large(kind) ? 1010u : 3u, gemm_slice, 4};
}

// Memory of one kind, in which tasks have run.
struct board {
    explicit board(wide_kind k)
        : kind(k), shape(small(k)), source(share_words / 4 * 3), rows(factor_values(shape)), columns(rows),
          target(std::max<std::size_t>(1, static_cast<std::size_t>(wide_target_bytes(k)) * shape.blocks / 8 + 1)),
          ledger(shape.blocks, 0), reference(k, shape)
    {
        for (u64 i = 0; i < source.size(); ++i)
            source[i] = {source_word(4 * i), source_word(4 * i + 1), source_word(4 * i + 2), source_word(4 * i + 3)};
    }
    wide_places places() { return {source.data()->w, rows.data(), columns.data(), target.data(), ledger.data()}; }
    bool right()
    {
        return reference.right(places(), [](void* to, const void* from, u64 bytes) { std::memcpy(to, from, bytes); });
    }

    wide_kind kind;
    wide_shape shape;
    std::vector<quad> source; // aligned as on the GPU
    std::vector<u16> rows, columns;
    std::vector<double> target;
    std::vector<u32> ledger;
    wide_reference reference;
};

// Runs block `only`, or all of them.
void run_on_host(board& b, u32 number, u32 only = ~0u)
{
    with_task_of(b.kind, [&](auto* type) {
        const auto task = std::remove_pointer_t<decltype(type)>::over(b.places(), b.shape, number);
        for (u32 i = 0; i < b.shape.blocks; ++i) {
            host_block block(i, b.shape.blocks, nullptr, 0);
            if (only == ~0u || only == i) task(block);
        }
    });
}

void run_on_team(board& b, u32 number)
{
    with_task_of(b.kind, [&](auto* type) {
        const auto task = std::remove_pointer_t<decltype(type)>::over(b.places(), b.shape, number);
        thread_team team(gemm_shared_bytes);
        std::vector<std::thread> threads;
        for (u32 rank = 0; rank < thread_team::threads; ++rank)
            threads.emplace_back([&, rank] {
                for (u32 i = 0; i < b.shape.blocks; ++i) {
                    team_block block(team, rank, i, b.shape.blocks);
                    task(block);
                    block.sync();
                }
            });
        for (std::thread& t : threads) t.join();
    });
}

} // namespace

TEST_CASE("wide bodies agree with their reference in blocks of one thread", "[bench_bodies]")
{
    for (const wide_kind kind : kinds) {
        INFO("kind " << static_cast<u32>(kind));
        board b(kind);
        for (const u32 number : {5u, 0xfffffff0u, 1027u}) {
            run_on_host(b, number);
            b.reference.step(number);
            CHECK(b.right());
        }
    }
}

TEST_CASE("wide bodies agree with their reference in blocks of many threads", "[bench_bodies]")
{
    for (const wide_kind kind : kinds) {
        INFO("kind " << static_cast<u32>(kind));
        board b(kind);
        for (const u32 number : {9u, 4000000000u}) {
            run_on_team(b, number);
            b.reference.step(number);
            CHECK(b.right());
        }
    }
}

TEST_CASE("a block lost, doubled or overtaken shows", "[bench_bodies]")
{
    for (const wide_kind kind : kinds) {
        INFO("kind " << static_cast<u32>(kind));
        board lost(kind), doubled(kind), overtaken(kind);
        for (const u32 number : {1u, 2u}) {
            for (u32 i = 0; i < lost.shape.blocks; ++i)
                if (i != 1 || number == 2) run_on_host(lost, number, i);
            run_on_host(doubled, number);
            run_on_host(overtaken, 3 - number);
            for (board* b : {&lost, &doubled, &overtaken}) b->reference.step(number);
        }
        CHECK(doubled.right());
        run_on_host(doubled, 2, 2);
        CHECK_FALSE(lost.right());
        CHECK_FALSE(doubled.right());
        CHECK_FALSE(overtaken.right());
    }
}

TEST_CASE("a wrong result shows though every block has run", "[bench_bodies]")
{
    for (const wide_kind kind : body_kinds) {
        INFO("kind " << static_cast<u32>(kind));
        board b(kind);
        run_on_host(b, 7);
        b.reference.step(7);
        REQUIRE(b.right());
        reinterpret_cast<unsigned char*>(b.target.data())[2] ^= 1; // of the first block, which is always looked at
        CHECK_FALSE(b.right());
    }
}

TEST_CASE("the sums of the tile are exact in fp32 in any order", "[bench_bodies]")
{
    const wide_shape s = shape_of(wide_kind::gemm, true);
    int most = 0;
    for (u32 i = 0; i < 4096; ++i) most = std::max(most, std::abs(factor_value(i)));
    CHECK(most == 4);
    CHECK(static_cast<u64>(most) * static_cast<u64>(most) * s.depth + 1024 < 1u << 24);
    for (u32 i = 0; i < 4096; ++i)
        REQUIRE(value_of_bf16(bf16_of(static_cast<float>(factor_value(i)))) == static_cast<float>(factor_value(i)));
    CHECK(s.depth % gemm_slice == 0);
}
