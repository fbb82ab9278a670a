// refused: a task struct has at most 256 bytes; pass larger data in a buffer
#include "tests/misuse/case.hpp"

struct table {
#ifdef MISUSE
    double of[33];
#else
    double of[32];
#endif
};

struct look_up {
    table values;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, look_up>;
