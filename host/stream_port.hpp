// The four things that joins need of a CUDA stream. The GPU device has them, the host device has no streams.
#pragma once
#include <slipstream/abi/word.hpp>
#include <slipstream/stream.hpp>

namespace slipstream::host {

/// Called by any thread; calls with the same `number` by one at a time. None of them synchronises, but an enqueue waits while the
/// stream's queue is full: no lock is held meanwhile that the service thread takes. Throws config_error for a stream that cannot be
/// joined, device_error when the device was lost.
class stream_port {
public:
    virtual ~stream_port() = default;

    /// Is all work done that was enqueued so far?
    virtual bool done(cuda_stream stream) = 0;
    /// Calls done_(data) once the work enqueued so far is done, from any thread; the callee makes no CUDA call.
    virtual void call_when_done(cuda_stream stream, void (*done_)(void*), void* data) = 0;
    /// Work enqueued later starts only when *word, in pinned memory, is at least `value` (as a counter that wraps).
    /// `number` < 64 names the wait for passed().
    virtual void hold(cuda_stream stream, const abi::word<u32>* word, u32 value, u32 number) = 0;
    /// Has the stream gone past the wait with this number? No longer does the device read its word then.
    virtual bool passed(u32 number) = 0;
};

} // namespace slipstream::host
