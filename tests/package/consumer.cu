// Compiled by nvcc: tasks run on the GPU when there is one that works, else on the host device.
#include "consumer.hpp"

int main()
{
    const int on_host = run_consumer("host");
    const int on_best = run_consumer("auto");
    return on_host != 0 ? on_host : on_best;
}
