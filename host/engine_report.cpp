// What an engine is doing, in words: for the exception that ends it and for the watchdog.
//
// Rings, completion and the flight recorder lie in pinned memory: they can be read while the kernel is resident, hangs, or is
// gone with its context. The window can be read only when the kernel has left, since its state lives in fast memory until then.
#include "device/control.hpp"
#include "device/worker.hpp"
#include "host/runtime_core.hpp"
#include <algorithm>

namespace slipstream::host {

using device::edge;
using device::order;
using device::scope;

namespace {

constexpr u32 tasks_told_max = 16;    ///< of the window
constexpr u32 predecessors_told_max = 6;

} // namespace

/// A part has one ring, which has the part's number.
std::string runtime_core::name_of(task_handle h) const
{
    return std::to_string(member_.part + h.ring) + ":" + std::to_string(h.position);
}

u64 runtime_core::low_water(u32 ring) const
{
    return P::load(edge::A7_low_water, memory_.ring_pages[ring].low_water, order::acquire, scope::system);
}

/// "scale 'my name' (submission 0:17)".
std::string runtime_core::describe_task(task_handle h, u32 type)
{
    const std::string of_type = type < image_.types ? image_.names[type] : "?";
    const std::string own = h.ring < rings_.size() && h.position < rings_[h.ring]->submitted.load(std::memory_order_acquire)
                                ? task_name(h, type)
                                : of_type;
    return of_type + (own != of_type ? " '" + own + "'" : std::string()) + " (submission " + name_of(h) + ")";
}

std::string runtime_core::describe_rings()
{
    std::string text;
    for (u32 r = 0; r < rings_.size(); ++r) {
        const u64 done = low_water(r), begun = rings_[r]->begun.load(std::memory_order_acquire);
        if (done >= begun) continue;
        u64 late = 0;
        for (u64 p = done; p < begun; ++p) late += !is_retired({r, p});
        const u64 consumed = P::load(edge::A1_ring_consumed, memory_.ring_pages[r].consumed, order::acquire, scope::system);
        text += "\n  ring " + std::to_string(member_.part + r) + ": " + std::to_string(late)
            + " submission(s) unfinished, the first of them " + name_of({r, done}) + ", the last " + name_of({r, begun - 1}) + "; "
            + std::to_string(consumed) + " ring slots were taken from it";
    }
    return text;
}

/// Calls visit(worker, record, task) for those that have picked up a block of a task that is not retired;
/// returns how many have not.
template <class Visit>
u32 runtime_core::for_each_held(const Visit& visit)
{
    u32 idle = 0;
    for (u32 w = 0; w < memory_.n.workers; ++w) {
        const auto record
            = device::flight_record::decode(P::load(edge::P3_recorder, memory_.recorder[w], order::relaxed, scope::system));
        task_handle h{record.ring(), 0};
        if (record.ring_and_type != 0 && h.ring < rings_.size()) {
            // The record keeps 27 bits: the position with those that is nearest to the low-water mark.
            const u64 mark = low_water(h.ring);
            h.position = mark + static_cast<u64>(static_cast<std::int64_t>((record.position - mark) << 37) >> 37);
        }
        if (record.ring_and_type == 0 || h.ring >= rings_.size() || is_retired(h)) ++idle;
        else visit(w, record, h);
    }
    return idle;
}

bool runtime_core::holds_a_block()
{
    return for_each_held([](u32, const device::flight_record&, task_handle) {}) != memory_.n.workers;
}

std::string runtime_core::describe_workers()
{
    std::string text;
    const u32 idle = for_each_held([&](u32 w, const device::flight_record& record, task_handle h) {
        text += "\n  worker " + std::to_string(w) + " on SM " + std::to_string(record.place >> 16) + " picked up block "
            + std::to_string(record.block) + " of " + describe_task(h, record.type());
    });
    return text + "\n  " + std::to_string(idle) + " of " + std::to_string(memory_.n.workers) + " worker(s) hold no unfinished task";
}

/// The kernel must be away.
runtime_core::kept_state runtime_core::read_state()
{
    const auto& o = arguments_.offsets;
    std::vector<abi::chunk> near(o.near_bytes / 16), far(o.far_bytes / 16);
    backend_->read(near.data(), arguments_.near_saved, o.near_bytes);
    backend_->read(far.data(), arguments_.far, o.far_bytes);
    const device::control_state<P> state(memory_.n, o, reinterpret_cast<unsigned char*>(near.data()),
                                         reinterpret_cast<unsigned char*>(far.data()));
    return {std::move(near), std::move(far), state};
}

u32 runtime_core::broadcasts()
{
    check_away("broadcasts()");
    return read_state().state.broadcast->number - counted_from_;
}

/// The kernel must be away, and have left in order.
std::string runtime_core::describe_window()
{
    const auto& n = memory_.n;
    const kept_state kept = read_state();
    const device::control_state<P>& s = kept.state;
    const auto handle_in = [&](u32 slot) {
        const u64 id = P::get(s.task_id[slot]);
        return task_handle{static_cast<u32>(id >> 56), id & ((u64{1} << 56) - 1)};
    };
    std::vector<u32> slots;
    for (u32 slot = 0; slot < n.window; ++slot)
        if (s.in_flight[slot / 32] >> slot % 32 & 1) slots.push_back(slot);
    std::string text = "\n  window: " + std::to_string(slots.size()) + " of " + std::to_string(n.window_used)
        + " slots hold a task that is not complete, " + std::to_string(*s.free_slot_count) + " are free";
    std::vector<bool> known(n.window);
    for (const u32 slot : slots) known[slot] = true;
    for (u32 k = 0; k < *s.free_slot_count; ++k) known[s.free_slots[k]] = true;
    for (u32 slot = 0; slot < n.window_used; ++slot) // what is complete is retired; blanks are none left
        if (const task_handle h = handle_in(slot); !known[slot] && h.ring < n.rings && !is_retired(h))
            text += "\n  " + describe_task(h, P::get(s.heads[slot]).slot_and_type >> 16)
                + " was taken in, and what it waits for is not known yet";
    for (u32 r = 0; r < n.rings; ++r)
        if (const u64 begun = rings_[r]->begun.load(std::memory_order_acquire); s.progress[r].messages < begun)
            text += "\n  ring " + std::to_string(member_.part + r) + ": " + name_of({r, s.progress[r].messages})
                + " is at its head: it waits for tasks that it names by `after`, for a window slot, or for the rest of its message";
    std::sort(slots.begin(), slots.end(), [&](u32 a, u32 b) { return P::get(s.task_id[a]) < P::get(s.task_id[b]); });
    u32 told = 0;
    for (const u32 slot : slots) {
        if (told++ == tasks_told_max) {
            text += "\n  ... and " + std::to_string(slots.size() - tasks_told_max) + " more";
            break;
        }
        u32 before = 0;
        std::string names;
        for (const u32 p : slots)
            if (p != slot && (s.successor_word(p * n.groups() + slot / 32) >> slot % 32 & 1) != 0
                && ++before <= predecessors_told_max)
                names += (before > 1 ? ", " : "") + name_of(handle_in(p));
        const device::task_head head = P::get(s.heads[slot]);
        text += "\n  " + describe_task(handle_in(slot), head.slot_and_type >> 16)
            + (before != 0 ? " waits for " + names
               : (head.entries_and_flags >> 16 & abi::flag_crossing) != 0
                   ? (head.blocks == 0 ? " stands in for a task of another part" : " waits for nobody here, or for other parts")
                   : " waits for nobody: it runs, or is about to");
        if (before > predecessors_told_max) text += " and " + std::to_string(before - predecessors_told_max) + " more";
    }
    return text;
}

} // namespace slipstream::host
