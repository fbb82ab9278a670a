// Keeps what is launched to streams from starting until all of it is there.
#pragma once
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/run_clock.hpp"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace slipstream::engines {

/// OWNERS  open_ (pinned): written by whoever opens the gate, read by the GPU's stream memory operations.
class cuda_gate {
public:
    explicit cuda_gate(u32 ordinal);
    ~cuda_gate();
    cuda_gate(const cuda_gate&) = delete;
    cuda_gate& operator=(const cuda_gate&) = delete;

    /// What is put on these streams from now on waits for open(). CUDA queues about a thousand launches a stream; a launch beyond
    /// that would wait for the gate, and the gate for it: after a few seconds the gate opens by itself, and settle() says so.
    void close(const stream_pool& streams);
    void open();
    /// Behind open(), outside of what is timed. Throws config_error when the gate had opened by itself.
    void settle();

private:
    void store(u32 value) { std::atomic_ref(*open_).store(value, std::memory_order_release); }

    u32* open_ = nullptr;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool closed_ = false, by_itself_ = false;
    std::thread guard_;
};

/// One run of an engine that launches to streams: launch(pacer&) puts everything there, end() waits for it. Preloaded: behind the
/// closed gate, and the clock starts when it opens.
template <class Launch, class End>
run_result timed_launches(const arrivals& when, cuda_gate& gate, const stream_pool& streams, Launch launch, End end)
{
    const bool preloaded = when.mode == arrival_mode::preloaded;
    if (preloaded) gate.close(streams);
    run_clock clock;
    pacer arriving(when, clock.watch());
    launch(arriving);
    const double submit_us = clock.total_us();
    if (preloaded) {
        clock = {};
        gate.open();
    }
    end();
    const run_result result = clock.stop(submit_us);
    if (preloaded) gate.settle();
    return result;
}

} // namespace slipstream::engines
