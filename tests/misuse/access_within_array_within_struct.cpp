// refused: an in, out or inout within a struct is not seen
#include "tests/misuse/case.hpp"
#include <array>

struct sum {
#ifdef MISUSE
    std::array<in<float>, 2> x;
#else
    in<float> x0, x1;
    std::array<float, 2> factors;
#endif
    out<float> y;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, sum>;
