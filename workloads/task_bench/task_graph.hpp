// The dependence patterns of Task Bench (Slaughter et al., SC'20): which points of one timestep need which of the timestep before.
// One text for the generator, the bodies and the reference.
//
// A graph is `steps` rows of points. Row t has the points [first_point(t), first_point(t) + row_width(t)); a point may need points
// of row t - 1 only. What it needs is asked for by number: candidate(t, p, i) for i < candidates(t) is a point of row t - 1, or
// no_point where the pattern reaches beyond that row, or leaves a neighbour out.
//
//   pattern              candidates of point p, before clipping to row t - 1; W = width, r = radix, s = dependence_set(t)
//   trivial              none
//   no_comm              p
//   stencil_1d           p - 1 ... p + 1
//   stencil_1d_periodic  p - 1 ... p + 1 modulo W
//   dom                  p - 1, p; rows grow to the right, a point a step, and at the end shrink from the left
//   tree                 p / 2; rows double until they have W points
//   fft                  p - 2^s, p, p + 2^s
//   all_to_all           the whole row
//   nearest              p - r/2 ... p + (r - 1)/2
//   spread               p, then p + i W/r + s modulo W for i = 1 ... r - 1
//   random_nearest       of nearest's, p and each other one with a chance of `keep_below` in 2^31, drawn anew for each set
//
// random_nearest draws from digest_mix, where Task Bench has SipHash: the same distribution, other graphs.
#pragma once
#include "workloads/digest/digest_task.hpp"

namespace slipstream::workloads {

enum class pattern : u32 {
    trivial,
    no_comm,
    stencil_1d,
    stencil_1d_periodic,
    dom,
    tree,
    fft,
    all_to_all,
    nearest,
    spread,
    random_nearest,
};

/// In the order of the enumeration.
inline constexpr const char* pattern_names[] = {"trivial",    "no_comm", "stencil_1d", "stencil_1d_periodic", "dom", "tree", "fft",
                                                "all_to_all", "nearest", "spread",     "random_nearest"};

struct task_graph {
    static constexpr u32 no_point = ~0u;

    pattern kind;
    u32 width;      ///< of the widest row
    u32 steps;      ///< rows
    u32 radix;      ///< nearest, spread, random_nearest
    u32 period;     ///< spread, random_nearest: dependence sets
    u32 keep_below; ///< random_nearest
    u32 seed;       ///< random_nearest

    SLIPSTREAM_BOTH u32 first_point(u32 t) const { return kind == pattern::dom && t + width > steps ? t + width - steps : 0; }

    SLIPSTREAM_BOTH u32 row_width(u32 t) const
    {
        if (kind == pattern::dom) return least(width, least(t + 1, steps - t));
        if (kind == pattern::tree) return t < 31 ? least(width, 1u << t) : width;
        return width;
    }

    /// Rows of the same set have the same dependencies, apart from clipping.
    SLIPSTREAM_BOTH u32 dependence_set(u32 t) const
    {
        if (kind == pattern::fft) {
            u32 sets = 0;
            while (1u << sets < width) ++sets;
            return (t + sets - 1) % sets;
        }
        return kind == pattern::spread || kind == pattern::random_nearest ? t % period : 0;
    }

    SLIPSTREAM_BOTH u32 candidates(u32 t) const
    {
        if (t == 0) return 0;
        switch (kind) {
        case pattern::trivial:
            return 0;
        case pattern::no_comm:
        case pattern::tree:
            return 1;
        case pattern::dom:
            return 2;
        case pattern::stencil_1d:
        case pattern::stencil_1d_periodic:
        case pattern::fft:
            return 3;
        case pattern::all_to_all:
            return width;
        case pattern::nearest:
        case pattern::spread:
        case pattern::random_nearest:
            break;
        }
        return radix;
    }

    SLIPSTREAM_BOTH u32 candidate(u32 t, u32 p, u32 i) const
    {
        const u32 set = dependence_set(t);
        const u32 q = unclipped(set, p, i); // below zero it wraps, and lies beyond any row
        if (q - first_point(t - 1) >= row_width(t - 1)) return no_point;
        if (kind == pattern::random_nearest && q != p && !drawn(set, p, q)) return no_point;
        return q;
    }

private:
    static SLIPSTREAM_BOTH u32 least(u32 a, u32 b) { return a < b ? a : b; }

    SLIPSTREAM_BOTH u32 unclipped(u32 set, u32 p, u32 i) const
    {
        switch (kind) {
        case pattern::trivial:
            break;
        case pattern::no_comm:
            return p;
        case pattern::stencil_1d:
        case pattern::dom:
            return p + i - 1;
        case pattern::stencil_1d_periodic:
            return (p + i + width - 1) % width;
        case pattern::tree:
            return p / 2;
        case pattern::fft:
            return i == 0 ? p - (1u << set) : i == 1 ? p : p + (1u << set);
        case pattern::all_to_all:
            return i;
        case pattern::nearest:
        case pattern::random_nearest:
            return p + i - radix / 2;
        case pattern::spread:
            return (p + i * width / radix + (i > 0 ? set : 0)) % width;
        }
        return no_point;
    }

    SLIPSTREAM_BOTH bool drawn(u32 set, u32 p, u32 q) const
    {
        const u64 number = digest_mix(digest_mix(seed, radix), digest_mix(set, static_cast<u64>(q) << 32 | p));
        return number >> 33 < keep_below;
    }
};

} // namespace slipstream::workloads
