// CUDA alternatives without a graph: launches on a stream, streams joined by events.
#include "tools/slipstream/bench/floors/early_kernels.cuh"
#include "tools/slipstream/bench/floors/floor_groups.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/floors/gpu_timing.cuh"

namespace slipstream::bench {
namespace {

using clock = std::chrono::steady_clock;

using floor_names::edge_kind;

void launch_step(cudaStream_t stream, edge_kind edges, u32* data, u32 words, u32 number)
{
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how{};
    how.gridDim = dim3(1);
    how.blockDim = dim3(floor_threads);
    how.stream = stream;
    how.attrs = &early;
    how.numAttrs = edges == edge_kind::early ? 1 : 0;
    check_cuda(cudaLaunchKernelEx(&how, kernels_behind(edges).step, data, words, number), "cudaLaunchKernelEx");
}

// Host clock, launches and completion: what an application sees.
floor_result measure_stream_chain(u32 bytes, edge_kind edges, u32 repeats)
{
    const u32 words = bytes / 4;
    const floor_memory<u32> data(std::max(words, 1u));
    gpu_timer timer;
    bool good = true;
    const auto run = [&](u32 count, u32) {
        data.clear(timer.stream());
        check_cuda(cudaStreamSynchronize(timer.stream()), "cudaMemset");
        const auto start = clock::now();
        for (u32 i = 1; i <= count; ++i) launch_step(timer.stream(), edges, data.get(), words, i);
        check_cuda(cudaStreamSynchronize(timer.stream()), "a chain in a stream");
        const double us = us_since(start);
        if (words != 0) good &= all_equal(data.read(), steps_from_zero(count));
        return us;
    };
    std::vector<double> us = floor_slopes(run, 2000, repeats);
    return {std::move(us), good, {}, unchecked_note(words)};
}

floor_result measure_launch_and_sync(u32)
{
    constexpr u32 count = 2000;
    const floor_memory<u32> data(1);
    gpu_timer timer;
    std::vector<double> us;
    for (u32 i = 1; i <= count; ++i) {
        const auto start = clock::now();
        step_kernel<<<1, floor_threads, 0, timer.stream()>>>(data.get(), 1, i);
        check_cuda(cudaStreamSynchronize(timer.stream()), "step_kernel");
        us.push_back(us_since(start));
    }
    floor_result out{us, all_equal(data.read(), steps_from_zero(count))};
    std::sort(us.begin(), us.end());
    out.further = {{"min", us.front()}, {"p50", us[count / 2]}, {"p99", us[count * 99 / 100]}};
    return out;
}

// A stream for each reader; the producer's stream is the joiner's.
class stream_fan {
public:
    explicit stream_fan(u32 width) : streams_(width), read_(width)
    {
        check_cuda(cudaEventCreateWithFlags(&produced_, cudaEventDisableTiming), "cudaEventCreate");
        for (u32 k = 0; k < width; ++k) {
            check_cuda(cudaStreamCreateWithFlags(&streams_[k], cudaStreamNonBlocking), "cudaStreamCreate");
            check_cuda(cudaEventCreateWithFlags(&read_[k], cudaEventDisableTiming), "cudaEventCreate");
        }
    }
    ~stream_fan()
    {
        for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
        for (cudaEvent_t event : read_) cudaEventDestroy(event);
        cudaEventDestroy(produced_);
    }
    stream_fan(const stream_fan&) = delete;
    stream_fan& operator=(const stream_fan&) = delete;

    void round(cudaStream_t main, u32* source, u32* parts, u32& number)
    {
        const u32 width = static_cast<u32>(streams_.size());
        step_kernel<<<1, floor_threads, 0, main>>>(source, body_words, number++);
        check_cuda(cudaEventRecord(produced_, main), "cudaEventRecord");
        for (u32 k = 0; k < width; ++k) {
            check_cuda(cudaStreamWaitEvent(streams_[k], produced_, 0), "cudaStreamWaitEvent");
            relay_kernel<<<1, floor_threads, 0, streams_[k]>>>(source, parts + k * body_words, number++);
            check_cuda(cudaEventRecord(read_[k], streams_[k]), "cudaEventRecord");
            check_cuda(cudaStreamWaitEvent(main, read_[k], 0), "cudaStreamWaitEvent");
        }
        join_kernel<<<1, floor_threads, 0, main>>>(parts, width, source, number++);
    }

private:
    std::vector<cudaStream_t> streams_;
    std::vector<cudaEvent_t> read_;
    cudaEvent_t produced_ = nullptr;
};

floor_result measure_streams_fan(u32 width, u32 repeats)
{
    const floor_memory<u32> source(body_words), parts(static_cast<u64>(body_words) * width);
    gpu_timer timer;
    stream_fan fan(width);
    bool good = true;
    const auto run = [&](u32 rounds, u32) {
        source.clear(timer.stream());
        check_cuda(cudaStreamSynchronize(timer.stream()), "cudaMemset");
        u32 number = 1;
        const auto start = clock::now();
        for (u32 i = 0; i < rounds; ++i) fan.round(timer.stream(), source.get(), parts.get(), number);
        check_cuda(cudaStreamSynchronize(timer.stream()), "a fan on streams");
        const double us = us_since(start);
        good &= all_equal(source.read(), fan_result(width, rounds));
        return us;
    };
    std::vector<double> us = floor_slopes(run, 200, repeats);
    return {std::move(us), good};
}

} // namespace

void add_launch_alternatives(std::vector<floor_entry>& to)
{
    const auto alternative = [&](std::string name, std::function<floor_result(u32)> measure) {
        to.push_back({std::move(name), "us", floor_kind::alternative, std::move(measure)});
    };
    alternative(floor_names::launch, [](u32 n) { return measure_stream_chain(0, edge_kind::full, n); });
    alternative(floor_names::launch_and_sync, measure_launch_and_sync);
    for (const edge_kind edges : {edge_kind::full, edge_kind::early})
        for (const u32 bytes : {4u, 4096u})
            alternative(floor_names::stream_chain(bytes, edges), [=](u32 n) { return measure_stream_chain(bytes, edges, n); });
    for (const u32 width : {2u, 8u})
        alternative(floor_names::streams_fan(width), [=](u32 n) { return measure_streams_fan(width, n); });
}

} // namespace slipstream::bench
