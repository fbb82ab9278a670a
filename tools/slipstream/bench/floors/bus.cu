// Host and GPU over pinned memory: an echo, the GPU reading a ring, the host writing one.
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"
#include "tools/slipstream/bench/floors/shared_words.cuh"
#include "tools/slipstream/bench/floors/slot_writer.hpp"
#include <atomic>

namespace slipstream::bench {
namespace {

using clock = std::chrono::steady_clock;

__device__ __forceinline__ u32 peek_host(const line_word& w)
{
    return device::cuda_platform::load(no_edge, w.value, device::order::relaxed, device::scope::system);
}

// Relaxed on both sides: the word itself is all that is handed over.
std::atomic_ref<u32> host_word(line_word& w)
{
    return std::atomic_ref<u32>(w.value.raw);
}

__global__ void echo(const line_word* question, line_word* answer, u32 count, u32* stuck)
{
    bounded_wait wait;
    for (u32 i = 1; i <= count; ++i) {
        wait.until([&] { return peek_host(*question); }, i);
        device::cuda_platform::store(no_edge, answer->value, i, device::order::relaxed, device::scope::system);
    }
    wait.report(stuck);
}

floor_result measure_echo(u32)
{
    constexpr u32 count = 20000;
    const floor_memory<line_word> words(2, true);
    const floor_memory<u32> stuck(1);
    gpu_timer timer;
    auto question = host_word(words.get()[0]), answer = host_word(words.get()[1]);
    echo<<<1, 1, 0, timer.stream()>>>(words.get(), words.get() + 1, count, stuck.get());
    check_cuda(cudaGetLastError(), "launch of echo");
    std::vector<double> us;
    bool answered = true;
    for (u32 i = 1; i <= count && answered; ++i) {
        const auto start = clock::now();
        question.store(i, std::memory_order_relaxed);
        for (u32 polls = 1; answer.load(std::memory_order_relaxed) != i && answered; ++polls)
            if (polls % 4096 == 0 && us_since(start) > 2e6) answered = false;
        if (i > 100) us.push_back(us_since(start)); // the first ones wait for the launch
    }
    question.store(count, std::memory_order_relaxed); // whatever happened, the kernel has nothing left to wait for
    check_cuda(cudaStreamSynchronize(timer.stream()), "echo");
    floor_result out{us, answered && stuck.read()[0] == 0};
    if (us.empty()) return out;
    std::sort(us.begin(), us.end());
    out.further = {{"min", us.front()}, {"p50", us[us.size() / 2]}, {"p99", us[us.size() * 99 / 100]}};
    return out;
}

// Each warp reads 512 bytes (8 slots) a load and has InFlight loads on their way; w[0] of every chunk is 1.
constexpr u32 region_chunks = 64 * 32; ///< that a warp reads round and round: 32 KB

template <u32 InFlight> __global__ void ring_reads(const abi::chunk_word* ring, u32 rounds, unsigned long long* chunks_seen)
{
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const abi::chunk_word* const region = ring + static_cast<u64>(warp) * region_chunks;
    u32 sum = 0;
    for (u32 i = 0; i < rounds; ++i) {
        abi::chunk got[InFlight];
#pragma unroll
        for (u32 k = 0; k < InFlight; ++k)
            got[k] = device::cuda_platform::load(no_edge, region[((i * InFlight + k) * 32 + threadIdx.x % 32) % region_chunks],
                                                 device::order::relaxed, device::scope::system);
#pragma unroll
        for (u32 k = 0; k < InFlight; ++k) sum += got[k].w[0];
    }
    atomicAdd(chunks_seen, static_cast<unsigned long long>(sum));
}

template <u32 InFlight> floor_result measure_ring_reads(u32 ctas, u32 warps, u32 repeats)
{
    const u32 readers = ctas * warps;
    const floor_memory<abi::chunk_word> ring(static_cast<u64>(readers) * region_chunks, true);
    for (u64 i = 0; i < ring.size(); ++i) ring.get()[i].raw.w[0] = 1;
    const floor_memory<unsigned long long> seen(1);
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 rounds, u32) {
        seen.clear(timer.stream());
        const double us =
            timer.us([&] { ring_reads<InFlight><<<ctas, warps * 32, 0, timer.stream()>>>(ring.get(), rounds, seen.get()); });
        good &= seen.read()[0] == static_cast<unsigned long long>(rounds) * InFlight * 32 * readers;
        return us;
    };
    std::vector<double> rates = floor_slopes(run, 2000, repeats);
    for (double& r : rates) r = readers * InFlight * 8 / r; // slots a microsecond
    return {std::move(rates), good};
}

// One warp reads the head of the ring for as long as `stop` is 0.
__global__ void poll_ring(const abi::chunk_word* ring, const line_word* stop, u32* seen)
{
    u32 sum = 0;
    for (u32 polls = 0; polls < polls_max; ++polls) {
        sum += device::cuda_platform::load(no_edge, ring[threadIdx.x], device::order::relaxed, device::scope::system).w[0];
        if (peek_host(*stop) != 0) break;
    }
    *seen = sum;
}

floor_result measure_slot_store(bool polled, u32 repeats)
{
    constexpr u32 slots = 1024, count = 1u << 20;
    const floor_memory<abi::chunk_word> ring(slots * slot_chunks, true);
    const floor_memory<line_word> stop(1, true);
    const floor_memory<u32> seen(1);
    gpu_timer timer;
    if (polled) poll_ring<<<1, 32, 0, timer.stream()>>>(ring.get(), stop.get(), seen.get());
    std::vector<double> ns;
    for (u32 i = 0; i < repeats; ++i) {
        const auto start = clock::now();
        write_slots(ring.get(), slots, count);
        ns.push_back(us_since(start) * 1e3 / count);
    }
    host_word(*stop.get()).store(1, std::memory_order_relaxed);
    check_cuda(cudaStreamSynchronize(timer.stream()), "poll_ring");
    bool good = true;
    for (u32 s = 0; s < slots; ++s) good &= ring.get()[s * slot_chunks].raw.w[0] == count - slots + s;
    return {std::move(ns), good};
}

} // namespace

void add_bus_floors(std::vector<floor_entry>& to)
{
    const auto limit = [&](std::string name, std::string unit, std::function<floor_result(u32)> measure) {
        to.push_back({std::move(name), std::move(unit), floor_kind::limit, std::move(measure)});
    };
    limit(floor_names::flag_echo, "us", measure_echo);
    limit("slots the GPU reads, 1 warp, 1 load in flight", "M/s", [](u32 n) { return measure_ring_reads<1>(1, 1, n); });
    limit("slots the GPU reads, 1 warp, 4 loads in flight", "M/s", [](u32 n) { return measure_ring_reads<4>(1, 1, n); });
    limit("slots the GPU reads, 8 warps, 4 loads in flight", "M/s", [](u32 n) { return measure_ring_reads<4>(1, 8, n); });
    limit("slots the GPU reads, 8 SMs of 8 warps, 4 loads in flight", "M/s", [](u32 n) { return measure_ring_reads<4>(8, 8, n); });
    limit(floor_names::slot_store, "ns", [](u32 n) { return measure_slot_store(false, n); });
    limit("host store of a 64 B slot, the GPU polling", "ns", [](u32 n) { return measure_slot_store(true, n); });
}

} // namespace slipstream::bench
