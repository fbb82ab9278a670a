// Weakening one EDGE of the protocol at run time: the list of edges (device/edge.hpp) is the list of mutations.
#pragma once
#include "device/platform.hpp"
#include <array>

namespace slipstream::model {

enum class mutation : u8 {
    none,
    relax,      ///< loads, stores and read-modify-writes of this edge become relaxed; its fences are dropped
    narrow,     ///< system scope becomes device scope, device scope becomes block scope
};

inline std::array<mutation, static_cast<std::size_t>(device::edge::count)> mutations{};

/// Weakens one edge for as long as this object lives.
class mutate {
public:
    explicit mutate(device::edge e, mutation m = mutation::relax) : edge_(e), before_(at(e)) { at(e) = m; }
    ~mutate() { at(edge_) = before_; }
    mutate(const mutate&) = delete;
    mutate& operator=(const mutate&) = delete;

private:
    static mutation& at(device::edge e) { return mutations[static_cast<std::size_t>(e)]; }
    device::edge edge_;
    mutation before_;
};

} // namespace slipstream::model
