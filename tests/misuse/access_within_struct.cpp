// refused: an in, out or inout within a struct is not seen
#include "tests/misuse/case.hpp"

struct shape {
    u32 rows, columns;
};
struct matrix {
    shape size;
    in<float> elements;
};

struct scale {
#ifdef MISUSE
    matrix x;
#else
    shape size;
    in<float> x;
#endif
    out<float> y;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
