// refused: could not convert|no viable conversion|cannot convert
#include "tests/misuse/case.hpp"

task_status use(runtime<>& runtime, buffer<float>& x)
{
#ifdef MISUSE
    return runtime.wait(x.handle()); // names memory, not a task
#else
    return runtime.wait(runtime.submit(fill_task{{reinterpret_cast<unsigned char*>(x.data()), x.size()}, 0}));
#endif
}
