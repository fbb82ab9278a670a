// refused: a body that is noexcept promises never to fail
#include "tests/misuse/case.hpp"

struct check {
    in<u32> x;
    template <class Block>
    SLIPSTREAM_BODY void operator()(Block& block) const
#ifdef MISUSE
        noexcept
#endif
    {
        if (x[0] != 0) block.fail(1);
    }
};

/// A body that is noexcept and does not fail.
struct touch {
    out<u32> x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const noexcept
    {
        if (block.rank() == 0) x[0] = 1;
    }
};

template class slipstream::basic_runtime<slipstream::detail::platforms, check, touch>;
