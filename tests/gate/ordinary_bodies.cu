// The workers' kernel over ordinary bodies, compiled for inspection only (tests/gate/inspect): buffers, tiles, scratch memory,
// reductions, and pointers that a compiler would like to treat as constant.
#include <slipstream/runtime.hpp>

using namespace slipstream;

namespace {

struct axpy {
    in<float> x;
    inout<float> y;
    float a;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        const float* __restrict__ const from = x.data();
        float* __restrict__ const to = y.data();
        for (u64 i = block.global_rank(); i < y.size(); i += block.global_size()) to[i] += a * from[i];
    }
};

struct row_sums {
    static constexpr u32 shared_bytes = 256;
    in2d<double> a;
    out<double> sums;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 row = block.block_index(); row < a.rows(); row += block.blocks()) {
            double sum = 0;
            for (u64 i = block.rank(); i < a.columns(); i += block.size()) sum += a(row, i);
            sum = block.reduce_add(sum);
            if (block.rank() == 0) sums[row] = sum;
            block.sync();
        }
    }
};

} // namespace

namespace slipstream_gate {
const slipstream::cuda_image* image()
{
    return slipstream::detail::make_cuda_image<slipstream::workers_per_sm_max, axpy, row_sums, copy_task, fill_task, marker_task>();
}
} // namespace slipstream_gate
