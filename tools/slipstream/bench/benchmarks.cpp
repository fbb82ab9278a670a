#include "tools/slipstream/bench/benchmarks.hpp"

namespace slipstream::bench {

const std::vector<benchmark>& all_benchmarks()
{
    static const std::vector<benchmark> list{
        {"chain", "one more dependent one-block task: 4 KB, 4 B, no-op", bench_chain},
        {"fan", "one round of a producer, N readers of it, and a joiner, 4 KB each (--width N)", bench_fan},
        {"throughput", "independent one-block tasks a second, by what they declare", bench_throughput},
        {"echo", "from submit to the host seeing the task complete, on an idle device", bench_echo},
        {"blocks", "one more dependent task of 1 to 500 blocks, 4 KB each", bench_blocks},
        {"window", "throughput at windows of 64, 256 and 1024 tasks", bench_window},
        {"parts", "throughput of one engine of 1 to 7 parts, each with its share of the SMs and memory of its own, "
                  "fed by one thread", bench_parts},
        {"bus", "bytes across the bus for one more task, ring full: of one slot, of two", bench_bus},
        {"bodies", "copy, reduction, GEMM and fp64 in one task list, alone and mixed, against the same launched", bench_bodies},
        {"large", "one task of 10^6 blocks that write 4 B, even and skewed, against the same launched", bench_large},
        {"idle", "what an idle engine costs a copy on the SMs that it leaves free", bench_idle},
        {"growth", "costs as runs, windows and access lists grow", bench_growth},
        {"submit", "what submit costs the host, one thread, ring not full", bench_submit},
    };
    return list;
}

} // namespace slipstream::bench
