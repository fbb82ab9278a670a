// Weakening one EDGE of the protocol at run time: the list of edges (device/edge.hpp) is the list of mutations.
#pragma once
#include "device/platform.hpp"
#include <array>

namespace slipstream::model {

enum class mutation : u8 {
    none,
    relax,      ///< loads, stores and read-modify-writes of this edge become relaxed; its fences are dropped
    no_acquire, ///< only the acquiring half of that: acq_rel becomes release
    no_release, ///< only the releasing half: acq_rel becomes acquire
    narrow,     ///< system scope becomes device scope, device scope becomes block scope
    lose,       ///< its stores are not made: no weaker order but a planted bug, for canaries
};

inline constexpr std::size_t edges = static_cast<std::size_t>(device::edge::count);

/// What a test's own stubs synchronise by where they play no end of a protocol edge; it is never mutated.
inline constexpr device::edge by_test = device::edge::count;

inline std::array<mutation, edges + 1> mutations{};

enum class access_kind : u8 { load, store, add, fence };

/// What operations an edge has: a set of (kind, order, scope).
class edge_uses {
public:
    void note(access_kind k, device::order o, device::scope s) { bits_ |= bit(k, o, s); }
    void add(const edge_uses& other) { bits_ |= other.bits_; }
    bool any() const { return bits_ != 0; }
    u64 bits() const { return bits_; }
    static edge_uses of(u64 bits)
    {
        edge_uses out;
        out.bits_ = bits;
        return out;
    }
    /// act(kind, order, scope) of each.
    template <class Do> void each(Do act) const
    {
        for (u32 i = 0; i < 48; ++i)
            if (bits_ >> i & 1)
                act(static_cast<access_kind>(i / 12), static_cast<device::order>(i / 3 % 4), static_cast<device::scope>(i % 3));
    }
    bool fences_only() const
    {
        bool only = any();
        each([&](access_kind k, device::order, device::scope) { only &= k == access_kind::fence; });
        return only;
    }

private:
    static u64 bit(access_kind k, device::order o, device::scope s)
    {
        return u64{1} << (static_cast<u32>(k) * 12 + static_cast<u32>(o) * 3 + static_cast<u32>(s));
    }
    u64 bits_ = 0;
};

constexpr bool has_acquire(device::order o) { return o == device::order::acquire || o == device::order::acq_rel; }
constexpr bool has_release(device::order o) { return o == device::order::release || o == device::order::acq_rel; }

/// What is left of an operation's order and scope; true if that is less than there was.
inline bool weaken(mutation m, device::order& o, device::scope& s)
{
    using device::order;
    using device::scope;
    switch (m) {
    case mutation::none:
    case mutation::lose: return false;
    case mutation::relax:
        if (o == order::relaxed) return false;
        o = order::relaxed;
        return true;
    case mutation::no_acquire:
        if (!has_acquire(o)) return false;
        o = o == order::acq_rel ? order::release : order::relaxed;
        return true;
    case mutation::no_release:
        if (!has_release(o)) return false;
        o = o == order::acq_rel ? order::acquire : order::relaxed;
        return true;
    case mutation::narrow:
        if (s == scope::block) return false;
        s = static_cast<scope>(static_cast<u8>(s) - 1);
        return true;
    }
    return false;
}

/// Whether a mutation leaves anything of these operations weaker. The halves are mutants of their own only where both occur.
inline bool applies(mutation m, const edge_uses& uses)
{
    bool weaker = false, acquires = false, releases = false;
    uses.each([&](access_kind, device::order o, device::scope s) {
        acquires |= has_acquire(o);
        releases |= has_release(o);
        weaker |= weaken(m, o, s);
    });
    if (m == mutation::no_acquire || m == mutation::no_release) return weaker && acquires && releases;
    return weaker;
}

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
