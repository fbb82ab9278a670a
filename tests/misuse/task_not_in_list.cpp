// refused: this task type is not in the runtime's task list
#include "tests/misuse/case.hpp"

struct first {
    u32 a;
    EMPTY_BODY
};
struct second {
    u32 a;
    EMPTY_BODY
};

#ifdef MISUSE
void use(runtime<first>& runtime)
#else
void use(runtime<first, second>& runtime)
#endif
{
    runtime.submit(second{1});
}
