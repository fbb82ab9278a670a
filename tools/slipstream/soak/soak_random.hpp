// A small generator of random numbers (splitmix64): the streams of a soak are drawn at millions of tasks a second,
// alike everywhere.
#pragma once
#include <slipstream/abi/portable.hpp>

namespace slipstream::soak {

class soak_random {
public:
    explicit soak_random(u64 seed) : state_(seed) {}
    u64 next()
    {
        u64 x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
    }
    /// 0 .. n - 1.
    u32 below(u32 n) { return static_cast<u32>((next() >> 32) * n >> 32); }
    /// True `share` times of 65536.
    bool share(u32 share) { return (next() >> 48) < share; }

private:
    u64 state_;
};

} // namespace slipstream::soak
