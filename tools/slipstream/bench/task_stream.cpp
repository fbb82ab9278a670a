#include "tools/slipstream/bench/task_stream.hpp"

namespace slipstream::bench {

using clock = std::chrono::steady_clock;

void wait_all(runtime_base& runtime)
{
    if (!runtime.wait_all(clock::now() + std::chrono::minutes(1)))
        throw device_error("tasks did not complete within a minute; run fewer of them (--tasks), or report this with the command");
}

void wake(bench_runtime& runtime)
{
    (void)runtime.submit(marker_task{}, {.order = ordering::no_access});
    wait_all(runtime);
}

double task_stream::run(u64 count)
{
    wake(runtime_);
    const u64 lost = lose_a_task_ ? count / 2 : ~u64{0};
    const auto start = clock::now();
    submit(count, lost);
    wait_all(runtime_);
    const std::chrono::duration<double> taken = clock::now() - start;
    if (!check(count)) verified_ = false;
    return taken.count();
}

} // namespace slipstream::bench
