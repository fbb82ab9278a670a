// refused: a task holds no runtime and no buffer, nor a pointer to one
#include "tests/misuse/case.hpp"

struct scale {
#ifdef MISUSE
    buffer<float>* x;
#else
    in<float> x;
#endif
    out<float> y;
    EMPTY_BODY
};

void use(runtime<scale>& runtime, buffer<float>& x, buffer<float>& y)
{
#ifdef MISUSE
    runtime.submit(scale{&x, y});
#else
    runtime.submit(scale{x, y});
#endif
}

template class slipstream::basic_runtime<slipstream::detail::platforms, scale>;
