// refused: a reference cannot cross the bus
#include "tests/misuse/case.hpp"

struct scale {
    inout<float> x;
#ifdef MISUSE
    const float& factor;
#else
    float factor;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
