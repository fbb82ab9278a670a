// refused: a task has no array members|too many identifiers|decomposes into
#include "tests/misuse/case.hpp"

struct weights {
    float of[4];
};

struct scale {
#ifdef MISUSE
    float weight[4];
#else
    weights weight;
#endif
    out<float> y;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
