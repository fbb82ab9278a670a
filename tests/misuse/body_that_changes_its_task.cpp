// refused: It is const because each block gets a copy of the struct
#include "tests/misuse/case.hpp"

struct count {
#ifdef MISUSE
    u32 calls;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) { ++calls; }
#else
    inout<u32> calls;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        if (block.global_rank() == 0) ++calls[0];
    }
#endif
};

template class slipstream::basic_runtime<slipstream::detail::platforms, count>;
