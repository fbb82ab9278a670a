// Ingest on an engine made by hand, with writers of its two rings: what it decodes and hands on, and what it mails itself.
#pragma once
#include "host/ring_writer.hpp"
#include "scheduler_test.hpp"
#include "trace_catch.hpp"

namespace slipstream::tests {

inline constexpr auto never = [] { return false; };

struct two_words {
    in<u32> x;
    u32 a;
    u32 b;
    template <class B> void operator()(B&) const {}
};

struct ingest_test {
    ingest_test(const engine_shape& shape, const std::vector<abi::task_type>& types)
        : engine(shape, types), ingest(engine.m, engine.s), decoded(engine.s.decoded_queue()), freed(engine.s.free_queue())
    {
        const u32 slots = engine.m.n.ring_slots;
        for (u32 r = 0; r < shape.rings; ++r) writers.emplace_back(engine.m.rings + r * slots, slots, engine.m.ring_pages + r);
    }
    /// The slot of the only task that ingest hands on.
    u32 take()
    {
        for (u32 i = 0; i < 8; ++i) ingest.step(engine.team);
        REQUIRE(decoded.available(engine.team) == 1);
        const u32 slot = decoded.pop();
        decoded.release(engine.team);
        return slot;
    }
    /// What lies in the place of worker 0's mail of that number.
    device::mail letter(u32 number)
    {
        const auto& place = engine.m.mailboxes[0].mail[number % P::mailbox_depth];
        return device::mail::decode(P::load(device::edge::A4_mail, place, device::order::relaxed, device::scope::device));
    }

    hand_made_engine engine;
    device::ingest<P> ingest;
    device::queue_consumer<P, u16, device::edge::A3_decoded, device::edge::R3_taken> decoded;
    device::queue_producer<P, u16, device::edge::R2_slot_freed, device::edge::A2_slot_taken> freed;
    std::vector<host::ring_writer<P>> writers;
};

} // namespace slipstream::tests
