// refused: what is written is not const: use in<T> for what a body only reads
#include "tests/misuse/case.hpp"

struct scale {
#ifdef MISUSE
    out<const float> y;
#else
    in<const float> y;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
