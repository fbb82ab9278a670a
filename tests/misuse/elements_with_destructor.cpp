// refused: elements are bytes to the device: they must be trivially copyable
#include "tests/misuse/case.hpp"
#include <string>

struct scale {
#ifdef MISUSE
    in<std::string> names;
#else
    in<char> names;
#endif
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
