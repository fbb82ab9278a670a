// refused: brief is a promise: static constexpr bool
#include "tests/misuse/case.hpp"

struct quick {
#ifdef MISUSE
    static constexpr int brief = 1;
#else
    static constexpr bool brief = true;
#endif
    slipstream::u32 number;
    EMPTY_BODY
};

/// A member of that name is data like any other.
struct measures {
    slipstream::u32 brief;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, quick, measures>;
