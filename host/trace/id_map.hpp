// Maps by ids that a file names. std::hash of a number is the number: ids that are all multiples of the number of buckets would
// lie in one bucket, and each would be compared with all before it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <random>
#include <unordered_map>

namespace slipstream::trace {

// Another one in each process, so that no file can be made for it.
inline std::uint64_t id_seed() {
    static const std::uint64_t seed = [] {
        try {
            std::random_device random;
            return std::uint64_t{random()} << 32 | random();
        } catch (const std::exception&) {  // no source of randomness: the clock is better than a constant
            return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
        }
    }();
    return seed;
}

struct id_hash {
    std::size_t operator()(std::uint64_t id) const noexcept {  // splitmix64 (Steele, Lea, Flood 2014)
        id += seed;
        id = (id ^ (id >> 30)) * 0xbf58476d1ce4e5b9u;
        id = (id ^ (id >> 27)) * 0x94d049bb133111ebu;
        return static_cast<std::size_t>(id ^ (id >> 31));
    }
    std::uint64_t seed = id_seed();
};

template <class Value>
using id_map = std::unordered_map<std::uint64_t, Value, id_hash>;

}  // namespace slipstream::trace
