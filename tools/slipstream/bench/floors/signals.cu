// What one signal costs: a flag from SM to SM, a load from L2, a fence.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"
#include <numeric>
#include <random>

namespace slipstream::bench {
namespace {

// Thread blocks `a` and `b` answer each other; each writes its own word.
template <bool Ordered> __global__ void flag_rounds(line_word* words, u32 a, u32 b, u32 hops, u32* stuck)
{
    if (blockIdx.x != a && blockIdx.x != b) return;
    const u32 mine = blockIdx.x == a ? 0 : 1;
    bounded_wait wait;
    for (u32 i = mine; i < hops; i += 2) {
        wait.until(words[1 - mine], i);
        if (Ordered) {
            fence();
            publish(words[mine], i + 1);
        } else {
            poke(words[mine], i + 1);
        }
    }
    wait.report(stuck);
}

template <bool Ordered> floor_result measure_flag(u32 repeats)
{
    const gpu_shape gpu = current_gpu();
    const floor_memory<line_word> words(2);
    const floor_memory<u32> stuck(1);
    gpu_timer timer;
    const auto run = [&](u32 hops, u32 repetition) {
        // Partners near and far: SMs differ in their distance to an L2 slice and to each other.
        const u32 partners[] = {1, gpu.sms / 4, gpu.sms / 2, gpu.sms - 1};
        return timer.us([&] {
            words.clear(timer.stream());
            launch_resident(flag_rounds<Ordered>, gpu, 1, timer.stream(), words.get(), 0, partners[repetition % 4], hops,
                            stuck.get());
        });
    };
    floor_result out{floor_slopes(run, 4000, repeats), stuck.read()[0] == 0};
    out.further = {{"min", *std::min_element(out.samples.begin(), out.samples.end())}};
    return out;
}

__global__ void chase(const line_word* ring, u32 loads, u32* end)
{
    u32 at = 0;
    for (u32 i = 0; i < loads; ++i) at = peek(ring[at]);
    *end = at;
}

floor_result measure_l2_load(u32 repeats)
{
    // A random cycle through 512 KB: in L2, and no load can be guessed.
    constexpr u32 lines = 4096;
    std::vector<u32> order(lines);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin() + 1, order.end(), std::mt19937(1));
    std::vector<line_word> content(lines);
    for (u32 i = 0; i < lines; ++i) content[order[i]].value.raw = order[(i + 1) % lines];
    const floor_memory<line_word> ring(lines);
    const floor_memory<u32> end(1);
    ring.write(content);
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 loads, u32) {
        const double us = timer.us([&] { chase<<<1, 1, 0, timer.stream()>>>(ring.get(), loads, end.get()); });
        good &= end.read()[0] == order[loads % lines];
        return us * 1e3;
    };
    std::vector<double> ns = floor_slopes(run, 20000, repeats);
    return {std::move(ns), good};
}

// `word` may lie in device memory or in pinned memory; null: nothing is outstanding at the fence.
template <bool System> __global__ void fences(line_word* word, u32 rounds)
{
    for (u32 i = 1; i <= rounds; ++i) {
        if (word != nullptr) poke(*word, i);
        if (System) fence_for_host();
        else fence();
    }
}

enum class outstanding { nothing, device_store, pinned_store };

template <bool System> floor_result measure_fence(outstanding what, u32 repeats)
{
    const floor_memory<line_word> near(1);
    const floor_memory<line_word> far(1, true);
    line_word* const word = what == outstanding::nothing ? nullptr : what == outstanding::device_store ? near.get() : far.get();
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 rounds, u32) {
        const double us = timer.us([&] { fences<System><<<1, 1, 0, timer.stream()>>>(word, rounds); });
        if (what == outstanding::device_store) good &= near.read()[0].value.raw == rounds;
        if (what == outstanding::pinned_store) good &= far.get()->value.raw == rounds;
        return us * 1e3;
    };
    std::vector<double> ns = floor_slopes(run, 5000, repeats);
    return {std::move(ns), good};
}

} // namespace

void add_signal_floors(std::vector<floor_entry>& to)
{
    const auto limit = [&](std::string name, std::string unit, std::function<floor_result(u32)> measure) {
        to.push_back({std::move(name), std::move(unit), floor_kind::limit, std::move(measure)});
    };
    limit("flag one-way between SMs, relaxed", "us", measure_flag<false>);
    limit("flag one-way between SMs, release-acquire", "us", measure_flag<true>);
    limit("L2 load", "ns", measure_l2_load);
    const auto fence_limits = [&]<bool System>(const std::string& name) {
        limit(name + ", nothing outstanding", "ns", [](u32 n) { return measure_fence<System>(outstanding::nothing, n); });
        limit(name + " after a store", "ns", [](u32 n) { return measure_fence<System>(outstanding::device_store, n); });
        limit(name + " after a store to pinned memory", "ns",
              [](u32 n) { return measure_fence<System>(outstanding::pinned_store, n); });
    };
    fence_limits.operator()<false>("gpu-scope fence");
    fence_limits.operator()<true>("system-scope fence"); // before the host is told: behind what a task wrote
}

} // namespace slipstream::bench
