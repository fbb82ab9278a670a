// refused: a task crosses the bus as bytes: it must be trivially copyable
#include "tests/misuse/case.hpp"
#include <vector>

struct scale {
#ifdef MISUSE
    std::vector<float> factors;
#else
    in<float> factors;
#endif
    out<float> y;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
