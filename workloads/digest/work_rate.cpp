// The slope between two amounts of work, with the serial engine: launch costs fall out.
#include "workloads/digest/work_rate.hpp"
#include "workloads/digest/digest_task.hpp"
#include <algorithm>

namespace slipstream::workloads {

double iterations_per_us(engines::device_memory& device, const kernel_image& image, u32 type)
{
    void* const result = device.take(8);
    const auto run_us = [&](u32 iterations) {
        engines::program p(image);
        const digest_task task{{0, 0, reinterpret_cast<u64>(result), 0, 0}, iterations, 0};
        p.add(type, &task, 1, {}, {}, ordering::no_access);
        const auto engine = engines::make_engine("serial", {}, device, image);
        engine->prepare(p);
        engine->run(p); // clocks rise, code is loaded
        double best = engine->run(p).makespan_us;
        for (u32 i = 0; i < 2; ++i) best = std::min(best, engine->run(p).makespan_us);
        return best;
    };
    // About 0.1 ms and 0.5 ms: far above the noise of a launch.
    constexpr u32 few = 50'000, many = 250'000;
    const double slope = (run_us(many) - run_us(few)) / (many - few);
    return slope > 0 ? std::clamp(1 / slope, 1.0, 10'000.0) : 100.0;
}

} // namespace slipstream::workloads
