// A user's workload on every engine: a heat rod in pieces, stepped back and forth between two buffers, so that each task waits for
// three others of the step before (RAW) and for those that still read what it overwrites (WAR).
#pragma once
#include <cmath>
#include <cstdio>
#include <slipstream/engines.hpp>
#include <vector>

/// One piece of the rod: `from` holds it with a cell of each neighbour.
struct heat_piece {
    static constexpr const char* name = "heat_piece";
    slipstream::in<float> from;
    slipstream::out<float> to;
    template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
    {
        for (slipstream::u64 i = block.global_rank(); i < to.size(); i += block.global_size())
            to[i] = 0.25f * from[i] + 0.5f * from[i + 1] + 0.25f * from[i + 2];
    }
};

inline int run_comparison(const char* wanted)
{
    using namespace slipstream;
    constexpr u32 pieces = 12, piece = 500, steps = 30, cells = pieces * piece + 2; // a border cell on either side
    const auto device = engines::open_device(wanted);
    float* rods[2] = {static_cast<float*>(device->take(cells * sizeof(float))),
                      static_cast<float*>(device->take(cells * sizeof(float)))};

    engines::typed_program<heat_piece> program;
    for (u32 step = 0; step < steps; ++step)
        for (u32 p = 0; p < pieces; ++p) {
            float* const from = rods[step % 2] + p * piece;
            float* const to = rods[1 - step % 2] + p * piece + 1;
            program.add(heat_piece{{from, piece + 2}, {to, piece}}, {.blocks = 2, .name = "piece"});
        }

    std::vector<float> start(cells, 0.f), found(cells);
    for (u32 i = 1; i + 1 < cells; ++i) start[i] = static_cast<float>(i * 37 % 101);
    std::vector<float> wanted_rod = start, next = start;
    for (u32 step = 0; step < steps; ++step, wanted_rod.swap(next))
        for (u32 i = 1; i + 1 < cells; ++i)
            next[i] = 0.25f * wanted_rod[i - 1] + 0.5f * wanted_rod[i] + 0.25f * wanted_rod[i + 1];

    bool right = true;
    for (const std::string& name : engines::engine_names(device->is_cuda())) {
        const auto engine = engines::make_engine(name, {}, *device, program.image());
        engine->prepare(program);
        for (int run = 0; run < 3; ++run) {
            for (float* rod : rods) device->write(rod, start.data(), cells * sizeof(float));
            const double us = engine->run(program).makespan_us;
            device->read(found.data(), rods[steps % 2], cells * sizeof(float));
            bool good = true; // within rounding: compilers contract multiplications and additions as they like
            for (u32 i = 0; i < cells; ++i) good = good && std::abs(found[i] - wanted_rod[i]) < 1e-3f;
            std::printf("%s on %s: %.1f us, %s\n", name.c_str(), device->name().c_str(), us, good ? "right" : "WRONG");
            right = right && good;
        }
    }
    return right ? 0 : 1;
}
