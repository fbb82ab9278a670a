// serial on the GPU: one stream, program order.
#include "host/engines/cuda_gate.hpp"
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"

namespace slipstream::engines {
namespace {

class cuda_serial_engine final : public engine {
public:
    explicit cuda_serial_engine(u32 ordinal) : ordinal_(ordinal), streams_(ordinal, 1) {}

    std::string name() const override { return "serial"; }
    bool takes(arrival_mode) const override { return true; }

    void prepare(const program& p) override { launcher_ = std::make_unique<cuda_launcher>(ordinal_, p.image()); }

    run_result run(const program& p) override
    {
        check_cuda(cudaSetDevice(static_cast<int>(ordinal_)), "cudaSetDevice");
        return timed_launches(when(), gate_, streams_, [&](pacer& arriving) {
            for (const program_task& t : p.tasks()) {
                arriving.await_next();
                launcher_->launch(p, t, streams_[0]);
            }
        }, [&] { check_cuda(cudaStreamSynchronize(streams_[0]), "end of the run"); });
    }

private:
    u32 ordinal_;
    stream_pool streams_;
    cuda_gate gate_{ordinal_};
    std::unique_ptr<cuda_launcher> launcher_;
};

} // namespace

std::unique_ptr<engine> make_cuda_serial_engine(u32 ordinal) { return std::make_unique<cuda_serial_engine>(ordinal); }

} // namespace slipstream::engines
