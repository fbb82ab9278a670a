// serial on the host: block after block, task after task, in program order.
#include "host/engines/engine_factories.hpp"
#include "host/engines/run_clock.hpp"
#include <algorithm>

namespace slipstream::engines {
namespace {

class host_serial_engine final : public engine {
public:
    std::string name() const override { return "serial"; }
    bool takes(arrival_mode mode) const override { return mode != arrival_mode::preloaded; }

    void prepare(const program& p) override
    {
        u32 bytes = 0;
        for (u32 t = 0; t < p.image().types; ++t) bytes = std::max(bytes, p.image().shared_bytes[t]);
        shared_.resize(bytes / sizeof(std::max_align_t) + 1);
    }

    run_result run(const program& p) override
    {
        const run_clock clock;
        pacer arriving(when(), clock.watch());
        for (const program_task& t : p.tasks()) {
            arriving.await_next();
            for (u32 b = 0; b < t.blocks; ++b) {
                host_block block(b, t.blocks, shared_.data(), shared_.size() * sizeof(std::max_align_t));
                p.image().host_bodies[t.type](p.arguments(t), block);
            }
        }
        return clock.stop(clock.total_us());
    }

private:
    std::vector<std::max_align_t> shared_;
};

} // namespace

std::unique_ptr<engine> make_host_serial_engine() { return std::make_unique<host_serial_engine>(); }

} // namespace slipstream::engines
