// refused: a task holds no runtime and no buffer, nor a pointer to one
#include "tests/misuse/case.hpp"

struct follow_up;

struct spawn {
#ifdef MISUSE
    runtime<follow_up>* runtime; // a body that wants to submit
#else
    out<u32> wanted; // a body tells the host what to submit
#endif
    EMPTY_BODY
};

struct follow_up {
    u32 number;
    EMPTY_BODY
};

template class slipstream::basic_runtime<slipstream::detail::platforms, spawn>;
