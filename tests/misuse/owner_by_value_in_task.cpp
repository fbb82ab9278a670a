// refused: it must be trivially copyable. A buffer or other container is not
#include "tests/misuse/case.hpp"

struct scale {
#ifdef MISUSE
    buffer<float> x;
#else
    inout<float> x;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
