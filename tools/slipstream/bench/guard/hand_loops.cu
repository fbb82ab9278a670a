// Written as tightly as CUDA allows: no table, no event that nobody waits for, graphs made and uploaded before the clock starts.
#include "tools/slipstream/bench/guard/hand_loops.hpp"
#include "tools/slipstream/bench/floors/kernel_graph.cuh"
#include <algorithm>
#include <chrono>
#include <vector>

namespace slipstream::bench {
namespace {

using clock = std::chrono::steady_clock;

class streams_loop final : public hand_written {
public:
    streams_loop(const guard_shape& shape, u32 steps, u32* data, u32 streams) : shape_(shape), steps_(steps), data_(data)
    {
        streams = std::min(streams, shape.chains_of(steps));
        streams_.resize(streams);
        done_.resize(streams);
        for (u32 s = 0; s < streams; ++s) {
            check_cuda(cudaStreamCreateWithFlags(&streams_[s], cudaStreamNonBlocking), "cudaStreamCreate");
            check_cuda(cudaEventCreateWithFlags(&done_[s], cudaEventDisableTiming), "cudaEventCreate");
        }
    }
    ~streams_loop() override
    {
        for (cudaEvent_t event : done_) cudaEventDestroy(event);
        for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
    }

    double run_us() override
    {
        const u32 chains = shape_.chains_of(steps_), words = shape_.body_words, stride = shape_.stride_words();
        const u32 streams = static_cast<u32>(streams_.size());
        const auto start = clock::now();
        u32 chain = 0, number = 1;
        for (u32 i = 0; i < steps_; ++i) {
            step_kernel<<<1, floor_threads, 0, streams_[chain % streams]>>>(data_ + u64{chain} * stride, words, number);
            if (++chain == chains) {
                chain = 0;
                ++number;
            }
        }
        check_cuda(cudaGetLastError(), "launch");
        for (u32 s = 1; s < streams; ++s) {
            check_cuda(cudaEventRecord(done_[s], streams_[s]), "cudaEventRecord");
            check_cuda(cudaStreamWaitEvent(streams_[0], done_[s], 0), "cudaStreamWaitEvent");
        }
        check_cuda(cudaStreamSynchronize(streams_[0]), "end of a hand-written loop");
        return us_since(start);
    }

private:
    guard_shape shape_;
    u32 steps_;
    u32* data_;
    std::vector<cudaStream_t> streams_;
    std::vector<cudaEvent_t> done_;
};

class graph_loop final : public hand_written {
public:
    graph_loop(const guard_shape& shape, u32 steps, u32* data, floor_names::edge_kind edges) : graph_(edges)
    {
        std::vector<cudaGraphNode_t> last(shape.chains_of(steps), nullptr);
        for (u32 i = 0; i < steps; ++i) {
            const u32 chain = shape.chain_of(i, steps);
            u32* const words = data + u64{chain} * shape.stride_words();
            const auto after = last[chain] != nullptr ? std::vector{last[chain]} : std::vector<cudaGraphNode_t>{};
            last[chain] = graph_.add(after, 1, graph_.kernels.step, words, shape.body_words, shape.number_of(i, steps));
        }
        check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        graph_.finish(stream_);
    }
    ~graph_loop() override { cudaStreamDestroy(stream_); }

    double run_us() override
    {
        const auto start = clock::now();
        graph_.replay(stream_);
        check_cuda(cudaStreamSynchronize(stream_), "end of a hand-written graph");
        return us_since(start);
    }

private:
    kernel_graph graph_;
    cudaStream_t stream_ = nullptr;
};

} // namespace

std::unique_ptr<hand_written> make_hand_written(hand_loop loop, const guard_shape& shape, u32 steps, u32* data, u32 ordinal)
{
    constexpr u32 streams = 32; // as many as there are hardware queues
    check_cuda(cudaSetDevice(static_cast<int>(ordinal)), "cudaSetDevice");
    switch (loop) {
    case hand_loop::one_stream: return std::make_unique<streams_loop>(shape, steps, data, 1);
    case hand_loop::streams_and_events: return std::make_unique<streams_loop>(shape, steps, data, streams);
    case hand_loop::graph: return std::make_unique<graph_loop>(shape, steps, data, floor_names::edge_kind::full);
    case hand_loop::graph_with_programmatic_edges:
        return std::make_unique<graph_loop>(shape, steps, data, floor_names::edge_kind::early);
    }
    return nullptr; // every loop is above
}

} // namespace slipstream::bench
