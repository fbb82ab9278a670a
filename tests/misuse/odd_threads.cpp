// refused: a block has 32, 64, 128 or 256 threads
#include "tests/misuse/case.hpp"

struct narrow {
#ifdef MISUSE
    static constexpr slipstream::u32 threads = 48;
#else
    static constexpr slipstream::u32 threads = 64;
#endif
    slipstream::u32 number;
    EMPTY_BODY
};

/// A member of that name is data like any other.
struct counts_threads {
    slipstream::u32 threads;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, narrow, counts_threads>;
