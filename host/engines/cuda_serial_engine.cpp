// serial on the GPU: one stream, program order.
#include "host/engines/cuda_launcher.hpp"
#include "host/engines/engine_factories.hpp"
#include <chrono>

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
        const auto start = std::chrono::steady_clock::now();
        for (const program_task& t : p.tasks()) launcher_->launch(p, t, stream);
        const auto submitted = std::chrono::steady_clock::now();
        check_cuda(cudaStreamSynchronize(stream), "end of the run");
        const auto end = std::chrono::steady_clock::now();
        using microseconds = std::chrono::duration<double, std::micro>;
        return {microseconds(end - start).count(), microseconds(submitted - start).count()};
    }

private:
    u32 ordinal_;
    stream_pool streams_;
    std::unique_ptr<cuda_launcher> launcher_;
};

} // namespace

std::unique_ptr<engine> make_cuda_serial_engine(u32 ordinal) { return std::make_unique<cuda_serial_engine>(ordinal); }

} // namespace slipstream::engines
