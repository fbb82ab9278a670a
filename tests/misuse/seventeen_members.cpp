// refused: a task has at most 16 members
#include "tests/misuse/case.hpp"

struct many {
    u32 a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
#ifdef MISUSE
    u32 q;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, many>;
