// refused: use of deleted function|call to deleted constructor|implicitly-deleted|call to implicitly-deleted
#include "tests/misuse/case.hpp"

buffer<float> use(buffer<float>& x)
{
#ifdef MISUSE
    return x;
#else
    return std::move(x);
#endif
}
