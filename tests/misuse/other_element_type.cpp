// refused: could not convert|no viable conversion|no matching function
#include "tests/misuse/case.hpp"

struct scale {
    in<double> x;
    EMPTY_BODY
};

#ifdef MISUSE
scale use(buffer<float>& x)
#else
scale use(buffer<double>& x)
#endif
{
    return scale{x};
}
