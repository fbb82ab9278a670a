#include "tools/slipstream/bench/wide_reference.hpp"
#include "tools/slipstream/bench/wide_gemm.hpp"
#include "tools/slipstream/bench/wide_tasks.hpp"
#include <algorithm>
#include <cstring>

namespace slipstream::bench {
namespace {

template <class T, class Value> std::vector<unsigned char> bytes_of(u32 count, const Value& value)
{
    std::vector<unsigned char> out(sizeof(T) * count);
    for (u32 i = 0; i < count; ++i) {
        const T v = value(i);
        std::memcpy(&out[sizeof(T) * i], &v, sizeof v);
    }
    return out;
}

// In integers: the sums are exact in either arithmetic.
std::vector<unsigned char> expected_tile(const wide_shape& s, u32 block, u32 number)
{
    const u32 row = block % gemm_tiles * gemm_side, column = block / gemm_tiles % gemm_tiles * gemm_side;
    std::vector<int> sums(gemm_side * gemm_side, static_cast<int>(number % 1024));
    for (u32 i = 0; i < gemm_side; ++i)
        for (u32 k = 0; k < s.depth; ++k) {
            const int left = factor_value((row + i) * s.depth + k);
            for (u32 j = 0; j < gemm_side; ++j)
                sums[i * gemm_side + j] += left * factor_value(k * gemm_side * gemm_tiles + column + j);
        }
    return bytes_of<float>(gemm_side * gemm_side, [&](u32 i) { return static_cast<float>(sums[i]); });
}

// source_word(first) + ... of a whole share: each is a multiple of its index.
u32 share_sum(u32 block)
{
    const u64 first = static_cast<u64>(block) * share_words;
    return source_word(share_words * first + u64{share_words} * (share_words - 1) / 2);
}

} // namespace

std::vector<unsigned char> expected_target(wide_kind kind, const wide_shape& s, u32 block, u32 number)
{
    switch (kind) {
    case wide_kind::copy:
        return bytes_of<u32>(share_words, [&](u32 i) { return source_word(static_cast<u64>(block) * share_words + i) + number; });
    case wide_kind::reduction:
        return bytes_of<u32>(1, [&](u32) { return share_sum(block) + number; });
    case wide_kind::gemm:
        return expected_tile(s, block, number);
    case wide_kind::fp64:
        return bytes_of<double>(fp64_values,
                                [&](u32 i) { return wide_fp64_task::value(block * fp64_values + i + number, s.rounds); });
    default:
        return {};
    }
}

std::vector<u16> factor_values(const wide_shape& s)
{
    std::vector<u16> out(static_cast<std::size_t>(gemm_side) * gemm_tiles * s.depth);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = bf16_of(static_cast<float>(factor_value(static_cast<u32>(i))));
    return out;
}

void wide_reference::step(u32 number)
{
    for (u32 i = 0; i < ledger_steps(kind_, false); ++i) usual_ = stepped(usual_, number);
    for (u32 i = 0; i < ledger_steps(kind_, true); ++i) long_ = stepped(long_, number);
    last_number_ = number;
}

bool wide_reference::right_ledger(const wide_places& p, const reader& read) const
{
    std::vector<u32> words(shape_.blocks);
    read(words.data(), p.ledger, sizeof(u32) * words.size());
    for (u32 b = 0; b < shape_.blocks; ++b)
        if (words[b] != (is_long(b) ? long_ : usual_)) return false;
    return true;
}

bool wide_reference::right_targets(const wide_places& p, const reader& read)
{
    if (wide_target_bytes(kind_) == 0) return true;
    if (kind_ == wide_kind::reduction) {
        std::vector<u32> sums(shape_.blocks);
        read(sums.data(), p.target, sizeof(u32) * sums.size());
        for (u32 b = 0; b < shape_.blocks; ++b)
            if (sums[b] != share_sum(b) + last_number_) return false;
        return true;
    }
    const u64 samples = std::min(shape_.blocks, kind_ == wide_kind::gemm ? 4u : 32u), bytes = wide_target_bytes(kind_);
    const u64 drift = 7919u * looks_++;
    std::vector<unsigned char> found(bytes);
    for (u64 k = 0; k < samples; ++k) {
        const u64 block = k == 0 ? 0 : k == samples - 1 ? shape_.blocks - 1 : (k * shape_.blocks / samples + drift) % shape_.blocks;
        read(found.data(), static_cast<const unsigned char*>(p.target) + block * bytes, bytes);
        if (found != expected_target(kind_, shape_, static_cast<u32>(block), last_number_)) return false;
    }
    return true;
}

bool wide_reference::right(const wide_places& p, const reader& read)
{
    return right_ledger(p, read) && right_targets(p, read);
}

} // namespace slipstream::bench
