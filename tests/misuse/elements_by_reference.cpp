// refused: take the type of an element
#include "tests/misuse/case.hpp"

struct scale {
#ifdef MISUSE
    in<float&> bytes;
#else
    in<unsigned char> bytes;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
