// refused: assignment of read-only location|cannot assign to return value|not assignable|read-only variable
#include "tests/misuse/case.hpp"

struct scale {
#ifdef MISUSE
    in<float> x;
#else
    inout<float> x;
#endif
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (u64 i = block.global_rank(); i < x.size(); i += block.global_size()) x[i] = 2;
    }
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
