// What the memory of a task of very many blocks must hold, computed on the host: for the engine, for launches, for tests.
#pragma once
#include "tools/slipstream/bench/wide_shape.hpp"
#include <functional>
#include <vector>

namespace slipstream::bench {

/// The target of one block behind a task with this number; wide_target_bytes(kind) of it.
std::vector<unsigned char> expected_target(wide_kind kind, const wide_shape& s, u32 block, u32 number);

/// A factor of the product: the values of `rows`, or of `columns`.
std::vector<u16> factor_values(const wide_shape& s);

/// Follows the ledger of a kind through all tasks that ran on it, and compares memory with what it must hold.
class wide_reference {
public:
    wide_reference(wide_kind kind, const wide_shape& s) : kind_(kind), shape_(s) {}

    /// A task with this number is complete.
    void step(u32 number);
    /// Copies device memory to the host.
    using reader = std::function<void(void* to, const void* from, u64 bytes)>;
    /// Compares the ledger of every block and the sum of every reduction; other targets are large: those of 32 blocks (gemm: 4),
    /// the first and the last, the others not the same at each call.
    bool right(const wide_places& p, const reader& read);

private:
    bool right_ledger(const wide_places& p, const reader& read) const;
    bool right_targets(const wide_places& p, const reader& read);

    wide_kind kind_;
    wide_shape shape_;
    u32 usual_ = 0, long_ = 0; ///< words of the ledger: all begin at 0
    u32 last_number_ = 0;
    u32 looks_ = 0;
};

} // namespace slipstream::bench
