// The scheduler beside the linker on an engine made by hand: tasks are put where admission would put them, in any slot.
#pragma once
#include "device_engine.hpp"
#include <set>

namespace slipstream::tests {

struct boxed {
    std::unique_ptr<device::inbox<P>> box = std::make_unique<device::inbox<P>>();
};
/// A worker's port with an inbox of its own.
struct test_port : private boxed, device::worker_port<P> {
    test_port(const device::engine_memory<P>& m, u32 worker, u32 sm) : device::worker_port<P>(m, *box, worker, sm) {}
    device::mail wait()
    {
        P::team team;
        return device::worker_port<P>::wait(team);
    }
};
/// As if so many mails had been sent and answered.
template <class Engine>
void mails_so_far(Engine& engine, u32 worker, u32 count)
{
    engine.s.sent[worker] = engine.s.seen[worker] = count;
    engine.m.done[worker].raw = device::done_word::make(count, 0, 0);
    P::set(engine.m.mailboxes[worker].answered, count);
}

struct scheduler_test {
    explicit scheduler_test(const engine_shape& shape)
        : engine(shape, three_types()), admitted(engine.s.admitted_queue()), finished(engine.s.finished_queue()),
          retired(engine.s.retired_queue())
    {
    }

    /// Type 0, which tasks have unless a test says otherwise, and type 2 are brief; type 1 is not.
    static std::vector<abi::task_type> three_types()
    {
        std::vector<abi::task_type> types(3);
        types[0].brief = types[2].brief = 1;
        return types;
    }
    /// A launch.
    void start()
    {
        linker = std::make_unique<device::linker<P>>(engine.m, engine.s);
        scheduler = std::make_unique<device::scheduler<P>>(engine.m, engine.s);
    }
    void put(u32 slot, u32 blocks = 1, const std::vector<access_entry>& entries = {}, u32 flags = 0)
    {
        hand_over(slot, blocks, slot | device::admitted_free, entries, flags);
    }
    /// Waits for the tasks in `slots`.
    void put_behind(u32 slot, const std::vector<u32>& slots, u32 blocks = 1, const std::vector<access_entry>& entries = {},
                    u32 flags = 0)
    {
        while (admitted.room(engine.team) == 0) linker->step(engine.team);
        engine.set_predecessors(admitted.position(), slots);
        hand_over(slot, blocks, slot, entries, flags);
    }
    void hand_over(u32 slot, u32 blocks, u32 entry, const std::vector<access_entry>& entries, u32 flags)
    {
        engine.fill_slot(slot, next_position++, entries, flags, blocks);
        device::task_head head = P::get(engine.s.heads[slot]);
        head.slot_and_type |= type << 16;
        P::set(engine.s.heads[slot], head);
        while (admitted.room(engine.team) == 0) linker->step(engine.team);
        admitted.push(engine.team, entry);
    }
    u32 take_retired()
    {
        u32 count = 0;
        while (retired.available(engine.team)) {
            const u32 slot = retired.pop() & ~device::retired_look;
            positions.insert(P::get(engine.s.task_id[slot]));
            ++count;
        }
        retired.release(engine.team);
        return count;
    }
    /// Steps until nothing happens.
    void settle()
    {
        while (linker->step(engine.team) | scheduler->step(engine.team)) {}
    }

    hand_made_engine engine;
    device::queue_producer<P, u32, device::edge::R10_admitted, device::edge::A10_linked> admitted;
    device::queue_consumer<P, u16, device::edge::A11_finished, device::edge::R11_taken> finished;
    device::queue_consumer<P, u32, device::edge::A6_retired, device::edge::R6_notified> retired;
    std::unique_ptr<device::linker<P>> linker;
    std::unique_ptr<device::scheduler<P>> scheduler;
    std::multiset<u64> positions;
    u64 next_position = 0;
    u32 type = 0; ///< of the next tasks
};

/// Lets worker_port::wait() end when there is no mail: it then returns a leaving mail without a tag.
inline void let_waits_end(hand_made_engine& e)
{
    P::store(device::edge::P1_stop, *e.m.stop, static_cast<u32>(device::stop_level::abort), device::order::relaxed,
             device::scope::device);
}

} // namespace slipstream::tests
