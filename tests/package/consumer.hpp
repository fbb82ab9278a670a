// A user's program: two task types of its own, the second reads what the first wrote.
#pragma once
#include <cstdio>
#include <slipstream/runtime.hpp>
#include <vector>

struct ramp {
    static constexpr const char* name = "ramp";
    slipstream::out<double> y;
    double step;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (slipstream::u64 i = block.global_rank(); i < y.size(); i += block.global_size()) y[i] = step * static_cast<double>(i);
    }
};

struct total {
    static constexpr const char* name = "total";
    static constexpr slipstream::u32 shared_bytes = 256;
    slipstream::in<double> x;
    slipstream::out<double> sum;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        double mine = 0;
        for (slipstream::u64 i = block.rank(); i < x.size(); i += block.size()) mine += x[i];
        mine = block.reduce_add(mine);
        if (block.rank() == 0) sum[0] = mine;
    }
};

inline int run_consumer(const char* device)
{
    slipstream::config configuration;
    configuration.device = device;
    slipstream::runtime<ramp, total> runtime(configuration);
    constexpr slipstream::u64 count = 1000;
    slipstream::buffer<double> data(runtime, count);
    slipstream::buffer<double> sum(runtime, 1);
    bool right = true;
    for (int round = 1; round <= 100; ++round) {
        runtime.submit(ramp{data, static_cast<double>(round)}, {.blocks = 4});
        runtime.submit(total{data, sum});
        if (round % 10 != 0) continue;
        double result = 0;
        sum.download({&result, 1});
        right = right && result == round * (count * (count - 1) / 2.0);
    }
    std::printf("consumer on %s: %s\n", runtime.device_name().c_str(), right ? "right" : "WRONG");
    return right ? 0 : 1;
}
