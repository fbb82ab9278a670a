// refused: use of deleted function|call to deleted constructor|implicitly-deleted
#include "tests/misuse/case.hpp"

#ifdef MISUSE
void submit_all(runtime<> runtime)
#else
void submit_all(runtime<>& runtime)
#endif
{
    static_cast<void>(runtime.workers());
}

void use(runtime<>& runtime) { submit_all(runtime); }
