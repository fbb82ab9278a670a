// Steps in chains, numbered from 1 within each: what engines run as a program and hand-written loops launch one by one.
#pragma once
#include <slipstream/abi/portable.hpp>
#include <string>

namespace slipstream::bench {

struct guard_shape {
    std::string name;
    u32 chains;     ///< 0: every step is one of its own
    u32 body_words; ///< each step reads and writes them; 0: empty bodies

    u32 chains_of(u32 steps) const { return chains != 0 ? chains : steps; }
    /// Step i of all, in program order.
    u32 chain_of(u32 i, u32 steps) const { return i % chains_of(steps); }
    u32 number_of(u32 i, u32 steps) const { return i / chains_of(steps) + 1; }
    /// Words from one chain's data to the next one's. Empty steps too declare what orders them.
    u32 stride_words() const { return body_words != 0 ? body_words : 64; }
    u64 words(u32 steps) const { return u64{chains_of(steps)} * stride_words(); }
};

} // namespace slipstream::bench
