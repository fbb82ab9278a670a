// refused: could not convert|no viable conversion|no matching function
#include "tests/misuse/case.hpp"

struct scale {
    in<float> x;
    out<float> y;
    EMPTY_BODY
};

scale use([[maybe_unused]] in<float> a, out<float> b)
{
#ifdef MISUSE
    return scale{b, a}; // reading what may be written is fine, writing what may be read is not
#else
    return scale{b, b};
#endif
}
