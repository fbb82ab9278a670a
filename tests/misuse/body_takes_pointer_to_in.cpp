// refused: invalid conversion from .* to .float\*|cannot initialize a variable of type .float \*
#include "tests/misuse/case.hpp"

struct scale {
    in<float> x;
    template <class Block> SLIPSTREAM_BODY void operator()(Block&) const
    {
#ifdef MISUSE
        float* const data = x.data();
#else
        const float* const data = x.data();
#endif
        static_cast<void>(data);
    }
};

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
