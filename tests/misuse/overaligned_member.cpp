// refused: members aligned to more than 8 bytes are not supported
#include "tests/misuse/case.hpp"

struct
#ifdef MISUSE
    alignas(16)
#else
    alignas(8)
#endif
        point {
    float x, y, z, w;
};

struct move_to {
    point where;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, move_to>;
