// Host callbacks and stream memory operations of CUDA. No call in here waits for the device.
//
// A stream waits for a task by a stream memory operation, never by a callback that blocks: the driver runs callbacks one after
// another, so a waiting one would hold back those of after_stream, perhaps the very one its task waits for. Every driver
// that this library supports (580 or newer) has the operation.
#include "host/cuda_stream_port.hpp"
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <slipstream/status.hpp>
#include <string>

namespace slipstream::host {
namespace {

void check(cudaError_t status, const char* what)
{
    if (status == cudaSuccess) return;
    const std::string text = std::string(what) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")";
    if (status == cudaErrorInvalidResourceHandle || status == cudaErrorInvalidValue)
        throw config_error(text + "; is this a stream of this process that still exists?");
    throw device_error(text);
}

class cuda_stream_port final : public stream_port {
public:
    ~cuda_stream_port() override
    {
        for (const cudaEvent_t event : events_)
            if (event != nullptr) cudaEventDestroy(event);
    }

    bool done(cuda_stream stream) override
    {
        refuse_capture(stream);
        const cudaError_t status = cudaStreamQuery(stream);
        if (status == cudaErrorNotReady) {
            cudaGetLastError(); // no error of the caller's
            return false;
        }
        check(status, "cudaStreamQuery");
        return true;
    }

    void call_when_done(cuda_stream stream, void (*done_)(void*), void* data) override
    {
        refuse_capture(stream);
        check(cudaLaunchHostFunc(stream, done_, data), "cudaLaunchHostFunc");
    }

    void hold(cuda_stream stream, const abi::word<u32>* word, u32 value, u32 number) override
    {
        refuse_capture(stream);
        using wait_value = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned int);
        static const wait_value wait = [] {
            void* entry = nullptr;
            cudaDriverEntryPointQueryResult found{};
            // 11070: since then the operations need no opt-in of the driver.
            if (cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &entry, 11070, cudaEnableDefault, &found) != cudaSuccess
                || found != cudaDriverEntryPointSuccess)
                entry = nullptr;
            return reinterpret_cast<wait_value>(entry);
        }();
        if (wait == nullptr)
            throw device_error("this driver has no stream memory operations, which signal_stream needs: update the driver to 580 "
                               "or newer, or wait(handle) on the host before enqueueing the stream's work");
        const cudaEvent_t event = event_for(stream, number);
        // Pinned memory has the same address on both sides.
        if (const CUresult status = wait(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_GEQ);
            status != CUDA_SUCCESS)
            throw device_error("cuStreamWaitValue32: CUDA driver error " + std::to_string(static_cast<int>(status))
                               + "; wait(handle) on the host instead");
        check(cudaEventRecord(event, stream), "cudaEventRecord");
    }

    bool passed(u32 number) override
    {
        const cudaError_t status = cudaEventQuery(events_[number]);
        if (status == cudaErrorNotReady) {
            cudaGetLastError();
            return false;
        }
        check(status, "cudaEventQuery");
        return true;
    }

private:
    static void refuse_capture(cuda_stream stream)
    {
        cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
        const cudaError_t status = cudaStreamIsCapturing(stream, &capture);
        if (status == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone)
            throw config_error("a stream that is being captured into a graph cannot be joined: end the capture first");
        check(status, "cudaStreamIsCapturing");
    }

    /// The event of a wait, on the stream's device: an event is recorded only in streams of its own device.
    cudaEvent_t event_for(cuda_stream stream, u32 number)
    {
        int wanted = 0;
        check(cudaStreamGetDevice(stream, &wanted), "cudaStreamGetDevice");
        if (events_[number] != nullptr && devices_[number] == wanted) return events_[number];
        if (events_[number] != nullptr) cudaEventDestroy(events_[number]);
        events_[number] = nullptr;
        int current = 0;
        check(cudaGetDevice(&current), "cudaGetDevice");
        check(cudaSetDevice(wanted), "cudaSetDevice");
        const cudaError_t status = cudaEventCreateWithFlags(&events_[number], cudaEventDisableTiming);
        check(cudaSetDevice(current), "cudaSetDevice");
        check(status, "cudaEventCreateWithFlags");
        devices_[number] = wanted;
        return events_[number];
    }

    cudaEvent_t events_[64] = {}; ///< one a wait, recorded behind it
    int devices_[64] = {};
};

} // namespace

std::unique_ptr<stream_port> make_cuda_stream_port() { return std::make_unique<cuda_stream_port>(); }

} // namespace slipstream::host
