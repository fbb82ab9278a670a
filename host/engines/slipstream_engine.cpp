// slipstream: the program's tasks go to a runtime over the program's image; hazards are found on the device.
#include "host/engines/engine_factories.hpp"
#include "host/engines/runtime_engine.hpp"

namespace slipstream::engines {
namespace {

class slipstream_engine final : public runtime_engine {
public:
    slipstream_engine(const config& configuration, const kernel_image& image) : runtime_engine("slipstream", configuration, image)
    {
    }

    bool takes(arrival_mode) const override { return true; }

private:
    void submit_all(const program& p, pacer& arriving) override
    {
        const std::span<const program_task> tasks = p.tasks();
        for (std::size_t i = 0; i < tasks.size(); ++i) {
            const program_task& t = tasks[i];
            arriving.await_next();
            after_.clear();
            for (const u32 predecessor : p.after(t)) after_.push_back(handles_[predecessor]);
            submit_options options;
            options.blocks = t.blocks;
            options.after = after_;
            options.accesses = accesses(p, t);
            options.order = t.order;
            handles_[i] = runtime_->submit_bytes(t.type, arguments(p, t), options);
        }
    }

    std::vector<task_handle> after_;
};

} // namespace

std::unique_ptr<engine> make_slipstream_engine(const config& configuration, const kernel_image& image)
{
    return std::make_unique<slipstream_engine>(configuration, image);
}

} // namespace slipstream::engines
