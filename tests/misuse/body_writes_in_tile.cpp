// refused: assignment of read-only location|cannot assign to return value|not assignable|read-only variable
#include "tests/misuse/case.hpp"

struct clear {
#ifdef MISUSE
    in2d<float> x;
#else
    out2d<float> x;
#endif
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.global_rank() == 0) x(0, 0) = 0;
    }
};

template class slipstream::basic_runtime<slipstream::detail::platforms, clear>;
