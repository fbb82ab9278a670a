// refused: a task type is a plain struct: no constructors, no private members
#include "tests/misuse/case.hpp"

struct scale {
    float factor;
#ifdef MISUSE
    scale() = default;
    explicit scale(float f) : factor(f) {}
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
