// refused: a task has a body
#include "tests/misuse/case.hpp"

struct scale {
    inout<float> x;
#ifndef MISUSE
    EMPTY_BODY
#endif
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
