// refused: a span or string_view in a task declares no access
#include "tests/misuse/case.hpp"
#include <span>

struct scale {
#ifdef MISUSE
    std::span<float> x;
#else
    inout<float> x;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
