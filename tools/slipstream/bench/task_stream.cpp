#include "tools/slipstream/bench/task_stream.hpp"

namespace slipstream::bench {

void wait_all(runtime_base& runtime)
{
    if (!runtime.wait_all(std::chrono::steady_clock::now() + std::chrono::minutes(1)))
        throw device_error("tasks did not complete within a minute; run fewer of them (--tasks), or report this with the command");
}

} // namespace slipstream::bench
