// An engine that begins as if it had run for long, and one of sizes that users cannot ask for: for proofs.
//
// Counters wrap after 2^27 tasks (identities in mails), 2^32 tasks (queues, mails, finished counts), 2^32 ring slots,
// or 2^32 laps of a ring (its tags). A run that begins a little before sees them wrap at once.
#pragma once
#include "device/control.hpp"
#include "host/backend.hpp"
#include <functional>
#include <memory>

namespace slipstream::host {

struct beginning {
    u64 position = 0;      ///< of the first task and of the first slot of every ring, below 2^54;
                           ///< all counters begin with its low bits
    bool any_size = false; ///< windows and rings from 2 slots on
    /// Puts something around the backend: a device that fails as no device here does.
    std::function<std::unique_ptr<backend>(std::unique_ptr<backend>)> around{};
};
inline constexpr u32 slots_min_of_any_size = 2;

/// The bits of a word of a ring's completion map when nothing from `position` on is complete, and everything before is.
inline u32 completion_word_at(u64 position, u32 word)
{
    u32 bits = 0;
    for (u32 i = 0; i < 32; ++i) {
        const u64 place = 32 * word + i;
        const u64 lap = position / device::completion_span;
        const bool before = place < position % device::completion_span;
        const u64 next = (before ? lap + 1 : lap) * device::completion_span + place; // whose turn the bit is
        bits |= (device::complete_value(next) ^ 1u) << i;
    }
    return bits;
}

/// Moves every counter of a control state that was just initialised; the queues are empty then.
template <class P>
void begin_at(const device::engine_memory<P>& m, const device::control_state<P>& s, u64 position)
{
    const u32 low = static_cast<u32>(position);
    for (u32 r = 0; r < m.n.rings; ++r) {
        s.progress[r].position = s.progress[r].published = s.progress[r].messages = position;
        s.low_water[r] = position;
    }
    const auto empty = [&](typename P::template word<u32>* tail, typename P::template word<u32>* head) {
        P::store(device::edge::P5_self, *tail, low, device::order::relaxed, device::scope::block);
        P::store(device::edge::P5_self, *head, low, device::order::relaxed, device::scope::block);
    };
    empty(s.free_tail, s.free_head);
    empty(s.decoded_tail, s.decoded_head);
    empty(s.admitted_tail, s.admitted_head);
    empty(s.report_tail, s.report_head);
    empty(s.ready_tail, s.ready_head);
    empty(s.finished_tail, s.finished_head);
    empty(s.retired_tail, s.retired_head);
    for (u32 w = 0; w < m.n.workers; ++w) s.sent[w] = s.seen[w] = low;
    P::set(*s.first_sent, low);
    *s.bypass_adopted = low;
    s.broadcast->number = low;
    P::store(device::edge::P5_self, *s.fences_promised, low, device::order::relaxed, device::scope::block);
    P::store(device::edge::P5_self, *s.bypass_number, low, device::order::relaxed, device::scope::block);
    for (u32 slot = 0; slot < m.n.window; ++slot) P::set(s.targets[slot], low);
}

} // namespace slipstream::host
