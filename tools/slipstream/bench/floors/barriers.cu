// A barrier over all SMs, each of which has just written data that another one reads next.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"

namespace slipstream::bench {
namespace {

__global__ void __launch_bounds__(floor_threads)
    barrier_rounds(u32* data, u32 words_each, u32 rounds, line_word* arrived, u32* stuck)
{
    floor_block block;
    bounded_wait wait;
    for (u32 i = 0; i < rounds; ++i) {
        // The slice moves on: data written on one SM is read on the next, so that a barrier that orders nothing shows.
        const u32 slice = (blockIdx.x + i) % gridDim.x;
        step_words(block, data + slice * words_each, words_each, i + 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            fence();
            device::cuda_platform::fetch_add(no_edge, arrived->value, 1, device::order::relaxed, device::scope::device);
            wait.until(*arrived, (i + 1) * gridDim.x);
            fence();
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) wait.report(stuck);
}

floor_result measure_barrier(u32 bytes, u32 repeats)
{
    const gpu_shape gpu = current_gpu();
    const u32 words_each = bytes / 4;
    const floor_memory<u32> data(std::max(words_each * gpu.sms, 1u));
    const floor_memory<line_word> arrived(1);
    const floor_memory<u32> stuck(1);
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 rounds, u32) {
        data.clear(timer.stream());
        const double us = timer.us([&] {
            arrived.clear(timer.stream());
            launch_resident(barrier_rounds, gpu, floor_threads, timer.stream(), data.get(), words_each, rounds, arrived.get(),
                            stuck.get());
        });
        if (words_each != 0) good &= all_equal(data.read(), steps_from_zero(rounds));
        return us;
    };
    std::vector<double> us = floor_slopes(run, 1000, repeats);
    return {std::move(us), good && stuck.read()[0] == 0, {}, unchecked_note(words_each)};
}

} // namespace

void add_barrier_floors(std::vector<floor_entry>& to)
{
    for (const u32 bytes : {0u, 4096u, 32768u})
        to.push_back({floor_names::grid_barrier(bytes), "us", floor_kind::limit,
                      [=](u32 repeats) { return measure_barrier(bytes, repeats); }});
}

} // namespace slipstream::bench
