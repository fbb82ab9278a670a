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
    const auto start = clock::now();
    submit(count, lost_of(count));
    wait_all(runtime_);
    const std::chrono::duration<double> taken = clock::now() - start;
    if (!check(count)) verified_ = false;
    return taken.count();
}

bus_traffic task_stream::run_counted(u64 count)
{
    runtime_.pause();
    const bus_traffic before = runtime_.bus_traffic();
    runtime_.resume();
    submit(count, lost_of(count)); // the ring is full when the kernel comes
    wait_all(runtime_);
    runtime_.pause();
    const bus_traffic moved = runtime_.bus_traffic() - before;
    runtime_.resume();
    if (!check(count)) verified_ = false;
    return moved;
}

} // namespace slipstream::bench
