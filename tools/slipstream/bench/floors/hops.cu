// What one dependent body costs on hardware that does nothing else: on the same SM, on another one, through a hub.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"

namespace slipstream::bench {
namespace {

// What a worker has to do beyond body and barrier when tasks of other SMs read its result or feed it.
enum class same_sm { nothing, acquire_per_hop, release_per_hop };

template <same_sm Extra>
__global__ void __launch_bounds__(floor_threads) same_cta_hops(u32* data, u32 words, u32 hops, line_word* done)
{
    floor_block block;
    for (u32 i = 0; i < hops; ++i) {
        if (Extra == same_sm::acquire_per_hop) {
            if (threadIdx.x == 0) fence();
            __syncthreads();
        }
        step_words(block, data, words, i + 1);
        __syncthreads();
        if (Extra == same_sm::release_per_hop && threadIdx.x == 0) publish(*done, i + 1);
    }
}

// Thread blocks `a` and `b` take turns: poll, acquire, barrier, body, barrier, release.
__global__ void __launch_bounds__(floor_threads)
    release_hops(u32* data, u32 words, u32 hops, line_word* turns, u32 a, u32 b, u32* stuck)
{
    if (blockIdx.x != a && blockIdx.x != b) return;
    const u32 mine = blockIdx.x == a ? 0 : 1;
    floor_block block;
    bounded_wait wait;
    for (u32 i = mine; i < hops; i += 2) {
        if (threadIdx.x == 0) {
            wait.until(turns[1 - mine], i);
            fence();
        }
        __syncthreads();
        step_words(block, data, words, i + 1);
        __syncthreads();
        if (threadIdx.x == 0) publish(turns[mine], i + 1);
    }
    if (threadIdx.x == 0) wait.report(stuck);
}

// The same with a hub between them, thread block `hub`: completion word, fence, mailbox. words: mail 0, 1, done 2, 3.
__global__ void __launch_bounds__(floor_threads)
    hub_hops(u32* data, u32 words, u32 hops, line_word* signals, u32 a, u32 b, u32 hub, u32* stuck)
{
    line_word* const mail = signals;
    line_word* const done = signals + 2;
    floor_block block;
    bounded_wait wait;
    if (blockIdx.x == hub) {
        if (threadIdx.x != 0) return;
        for (u32 i = 0; i < hops; ++i) {
            wait.until(done[i % 2], i + 1);
            fence();
            poke(mail[(i + 1) % 2], i + 1);
        }
        wait.report(stuck);
        return;
    }
    if (blockIdx.x != a && blockIdx.x != b) return;
    const u32 mine = blockIdx.x == a ? 0 : 1;
    for (u32 i = mine; i < hops; i += 2) {
        if (threadIdx.x == 0) {
            wait.until(mail[mine], i);
            fence();
        }
        __syncthreads();
        step_words(block, data, words, i + 1);
        __syncthreads();
        if (threadIdx.x == 0) publish(done[mine], i + 1);
    }
    if (threadIdx.x == 0) wait.report(stuck);
}

// launch(memory, hops, repetition) puts the kernel on the stream.
template <class Launch> floor_result measure_hops(u32 bytes, u32 repeats, Launch launch)
{
    const u32 words = bytes / 4;
    const floor_memory<u32> data(std::max(words, 1u));
    const floor_memory<line_word> signals(4);
    const floor_memory<u32> stuck(1);
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 hops, u32 repetition) {
        data.clear(timer.stream());
        const double us = timer.us([&] {
            signals.clear(timer.stream());
            launch(data.get(), words, signals.get(), stuck.get(), hops, repetition, timer.stream());
        });
        if (words != 0) good &= all_equal(data.read(), steps_from_zero(hops));
        return us;
    };
    std::vector<double> us = floor_slopes(run, 2000, repeats);
    return {std::move(us), good && stuck.read()[0] == 0, {}, unchecked_note(words)};
}

template <same_sm Extra> floor_result measure_same_cta(u32 bytes, u32 repeats)
{
    return measure_hops(bytes, repeats, [](u32* data, u32 words, line_word* signals, u32*, u32 hops, u32, cudaStream_t stream) {
        same_cta_hops<Extra><<<1, floor_threads, 0, stream>>>(data, words, hops, signals);
        check_cuda(cudaGetLastError(), "launch of same_cta_hops");
    });
}

floor_result measure_release(u32 bytes, u32 repeats)
{
    const gpu_shape gpu = current_gpu();
    return measure_hops(bytes, repeats,
                        [gpu](u32* data, u32 words, line_word* signals, u32* stuck, u32 hops, u32 repetition, cudaStream_t stream) {
                            const u32 partners[] = {1, gpu.sms / 4, gpu.sms / 2, gpu.sms - 1};
                            launch_resident(release_hops, gpu, floor_threads, stream, data, words, hops, signals, 0,
                                            partners[repetition % 4], stuck);
                        });
}

floor_result measure_hub(u32 bytes, u32 repeats)
{
    const gpu_shape gpu = current_gpu();
    return measure_hops(bytes, repeats,
                        [gpu](u32* data, u32 words, line_word* signals, u32* stuck, u32 hops, u32 repetition, cudaStream_t stream) {
                            const u32 partners[] = {1, gpu.sms / 4, gpu.sms / 2, gpu.sms - 2};
                            launch_resident(hub_hops, gpu, floor_threads, stream, data, words, hops, signals, 0,
                                            partners[repetition % 4], gpu.sms - 1, stuck);
                        });
}

} // namespace

void add_hop_floors(std::vector<floor_entry>& to)
{
    const auto limit = [&](std::string name, floor_result (*measure)(u32, u32), u32 bytes) {
        to.push_back({std::move(name), "us", floor_kind::limit, [=](u32 repeats) { return measure(bytes, repeats); }});
    };
    for (const u32 bytes : {0u, 4u, 4096u, 32768u})
        limit(floor_names::same_cta_hop(bytes), measure_same_cta<same_sm::nothing>, bytes);
    limit("same-CTA hop with an acquire, 4 KB", measure_same_cta<same_sm::acquire_per_hop>, 4096);
    limit("same-CTA hop with a release, 4 KB", measure_same_cta<same_sm::release_per_hop>, 4096);
    for (const u32 bytes : {0u, 4u, 4096u, 32768u}) limit(floor_names::release_hop(bytes), measure_release, bytes);
    for (const u32 bytes : {0u, 4u, 4096u})
        limit("hop through hub and mailbox, " + floor_names::size_text(bytes), measure_hub, bytes);
}

} // namespace slipstream::bench
