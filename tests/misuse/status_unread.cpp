// refused: nodiscard
#include "tests/misuse/case.hpp"

void use(runtime<>& runtime)
{
    task_handle handle;
#ifdef MISUSE
    runtime.try_submit(marker_task{}, handle);
#else
    while (runtime.try_submit(marker_task{}, handle) == submit_status::full) {}
#endif
}
