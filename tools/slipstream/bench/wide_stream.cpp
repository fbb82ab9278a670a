#include "tools/slipstream/bench/wide_stream.hpp"
#include <algorithm>

namespace slipstream::bench {
namespace {

bool holds(const std::vector<wide_kind>& kinds, wide_kind a)
{
    return std::find(kinds.begin(), kinds.end(), a) != kinds.end();
}

// Both are at least one element: a buffer is never empty.
u64 source_words(const std::vector<wide_kind>& kinds, bool on_cuda)
{
    const bool needed = holds(kinds, wide_kind::copy) || holds(kinds, wide_kind::reduction);
    return needed ? static_cast<u64>(share_words) * shape_of(wide_kind::copy, on_cuda).blocks : 1;
}
u64 factor_count(const std::vector<wide_kind>& kinds, bool on_cuda)
{
    return holds(kinds, wide_kind::gemm) ? static_cast<u64>(gemm_side) * gemm_tiles * shape_of(wide_kind::gemm, on_cuda).depth : 1;
}
u64 target_bytes(wide_kind kind, bool on_cuda)
{
    return std::max<u64>(1, static_cast<u64>(wide_target_bytes(kind)) * shape_of(kind, on_cuda).blocks);
}

} // namespace

u64 wide_stream::bytes(const std::vector<wide_kind>& kinds, bool on_cuda)
{
    u64 all = 4 * source_words(kinds, on_cuda) + 4 * factor_count(kinds, on_cuda);
    for (const wide_kind kind : kinds) all += target_bytes(kind, on_cuda) + 4ull * shape_of(kind, on_cuda).blocks;
    return all + (16u << 10); // buffers begin on 256 bytes
}

wide_stream::wide_stream(wide_runtime& runtime, bool lose_a_task, const std::vector<wide_kind>& kinds)
    : basic_task_stream(runtime, lose_a_task), source_(runtime, source_words(kinds, runtime.on_cuda())),
      rows_(runtime, factor_count(kinds, runtime.on_cuda())), columns_(runtime, factor_count(kinds, runtime.on_cuda()))
{
    if (source_.size() > 1) runtime.submit(source_task{source_}, {.blocks = static_cast<u32>(source_.size() / share_words)});
    if (rows_.size() > 1) {
        const std::vector<u16> values = factor_values(shape_of(wide_kind::gemm, runtime.on_cuda()));
        rows_.upload(values);
        columns_.upload(values);
    }
    for (const wide_kind kind : kinds) {
        const wide_shape shape = shape_of(kind, runtime.on_cuda());
        part p{kind, shape, {runtime, target_bytes(kind, runtime.on_cuda())}, {runtime, shape.blocks}, {}, {kind, shape}};
        p.places = {source_.data(), rows_.data(), columns_.data(), p.target.data(), p.ledger.data()};
        p.ledger.upload(std::vector<u32>(shape.blocks, 0));
        parts_.push_back(std::move(p));
    }
}

void wide_stream::submit(u64 count, u64 lost)
{
    for (u64 round = 0; round < count; ++round) {
        if (round == lost) continue;
        for (const part& p : parts_)
            with_task_of(p.kind, [&](auto* type) {
                using task = std::remove_pointer_t<decltype(type)>;
                runtime_.submit(task::over(p.places, p.shape, next_number_ + static_cast<u32>(round)), {.blocks = p.shape.blocks});
            });
    }
}

bool wide_stream::check(u64 count)
{
    bool good = true;
    for (part& p : parts_) {
        for (u64 round = 0; round < count; ++round) p.reference.step(next_number_ + static_cast<u32>(round));
        good &= p.reference.right(p.places, [&](void* to, const void* from, u64 bytes) { runtime_.download(to, from, bytes); });
    }
    next_number_ += static_cast<u32>(count);
    return good;
}

} // namespace slipstream::bench
