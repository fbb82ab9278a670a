// serial on the GPU: one stream, program order.
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"
#include "host/engines/run_clock.hpp"

namespace slipstream::engines {
namespace {

class cuda_serial_engine final : public engine {
public:
    explicit cuda_serial_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1) {}

    std::string name() const override { return "serial"; }

    void prepare(const program& p) override { launcher_ = std::make_unique<cuda_launcher>(ordinal_, p.image()); }

    run_result run(const program& p) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        const cudaStream_t stream = streams_[0];
        const run_clock clock;
        for (const program_task& t : p.tasks()) launcher_->launch(p, t, stream);
        const double submit_us = clock.total_us();
        check_cuda(cudaStreamSynchronize(stream), "end of the run");
        return clock.stop(submit_us);
    }

private:
    u32 ordinal_;
    stream_pool streams_;
    std::unique_ptr<cuda_launcher> launcher_;
};

} // namespace

std::unique_ptr<engine> make_cuda_serial_engine(u32 ordinal) { return std::make_unique<cuda_serial_engine>(ordinal); }

} // namespace slipstream::engines
