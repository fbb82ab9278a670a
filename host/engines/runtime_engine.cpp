// Runs a program's tasks on a runtime: start, clock, end and errors are the same for all of them.
#include "host/engines/runtime_engine.hpp"
#include "device/layout.hpp"
#include "host/engines/declared_accesses.hpp"
#include "host/engines/run_clock.hpp"
#include <algorithm>

namespace slipstream::engines {

runtime_engine::runtime_engine(const char* name, const config& configuration, const kernel_image& image)
    : name_(name), config_(configuration), image_(image)
{
    if (config_.batch) throw config_error("the " + name_ + " engine does not run in batch mode");
}

void runtime_engine::prepare(const program& p)
{
    runtime_.reset(); // before the new one takes its memory
    config c = config_;
    const std::vector<placed_memory> placed = c.parts > 1 ? place_registrations(p, c.parts) : std::vector<placed_memory>();
    if (when().mode == arrival_mode::preloaded) c.ring_slots = std::max(c.ring_slots, slots_of(p, placed));
    c.handles_max = std::max(c.handles_max, static_cast<u32>(p.registrations().size()));
    runtime_ = std::make_unique<runtime_base>(c, image_);
    runtime_->pause();
    place(p, placed);
    translate(p);
    handles_.resize(p.tasks().size());
}

run_result runtime_engine::run(const program& p)
{
    const bus_traffic before = runtime_->bus_traffic();
    const bool preloaded = when().mode == arrival_mode::preloaded;
    if (!preloaded) {
        runtime_->resume();
        // A marker brings the kernel onto the device: launching it is start-up, not part of the program. Of a whole-memory task
        // every part hears.
        submit_options first;
        first.order = config_.parts > 1 ? ordering::whole_memory : ordering::no_access;
        (void)runtime_->wait(runtime_->submit_bytes(image_.types - 1, nullptr, first));
    }

    run_clock clock;
    pacer arriving(when(), clock.watch());
    submit_all(p, arriving);
    const double submit_us = clock.total_us();
    if (preloaded) { // as a graph's launch is part of its replay, the kernel's launch is part of this
        clock = {};
        runtime_->resume();
    }
    runtime_->wait_all();
    run_result result = clock.stop(submit_us);
    result.begin_ns = clock.watch().begin_ns();
    runtime_->pause(); // nobody else's launch waits for our kernel between two runs
    const bus_traffic moved = runtime_->bus_traffic() - before;
    result.counts = {{"bus_bytes_to_gpu", moved.to_gpu()}, {"bus_bytes_to_host", moved.to_host()}};
    if (config_.parts > 1) result.counts.emplace_back("crossing_tasks", crossing_tasks_);

    const std::span<const program_task> tasks = p.tasks();
    for (std::size_t i = 0; i < handles_.size(); ++i)
        if (const task_status status = runtime_->query(handles_[i]); !status.ok())
            throw error("task " + std::to_string(i) + (tasks[i].name.empty() ? "" : " (" + std::string(tasks[i].name) + ")")
                        + (status.state == task_state::cancelled ? " was cancelled" : " failed") + " with code "
                        + std::to_string(status.code));
    tell(result);
    return result;
}

/// Ring slots that hold the whole program, of parts each one's: an upper bound. Refuses a program that cannot be there as a whole.
u32 runtime_engine::slots_of(const program& p, std::span<const placed_memory> placed) const
{
    // None of them finishes before all are there: one more would wait for ever.
    if (p.tasks().size() > device::submissions_ahead_max)
        throw config_error("preloaded: " + std::to_string(p.tasks().size()) + " tasks; at most "
                           + std::to_string(device::submissions_ahead_max)
                           + " can be submitted before the first one runs (as far as a thread may be ahead of its oldest "
                             "unfinished task); run them back-to-back (replay --mode back-to-back), or fewer of them");
    u64 slots = 0;
    std::vector<abi::access_entry> accesses;
    for (const program_task& t : p.tasks()) {
        const abi::task_type& layout = image_.table[t.type];
        u64 entries = u64{layout.members} + t.access_count + t.after_count; // at most two chunks each, see abi/message.hpp
        if (!placed.empty() && !declared_accesses(p, t, accesses))
            for (const abi::access_entry& a : accesses) entries += pieces_touched(placed, a.begin(), a.end()) - 1;
        const u64 chunks = 1 + (layout.words + 2) / abi::chunk_payload_words + 2 * entries;
        slots += (chunks + abi::slot_chunks - 1) / abi::slot_chunks;
    }
    u64 rounded = 4;
    while (rounded < slots) rounded *= 2;
    if (rounded > ring_slots_most)
        throw config_error("preloaded: " + std::to_string(p.tasks().size()) + " tasks need " + std::to_string(rounded)
                           + " ring slots; use a smaller program or another mode");
    return static_cast<u32>(rounded);
}

double runtime_engine::scheduling_sms()
{
    return runtime_->on_cuda() ? runtime_->control_blocks() : 0; // each has an SM to itself
}

/// The program's memory is not from the runtime's pool.
void runtime_engine::place(const program& p, std::span<const placed_memory> placed)
{
    if (config_.parts == 1) return;
    for (const placed_memory& m : placed) runtime_->place(reinterpret_cast<const void*>(m.address), m.bytes, m.part);
    crossing_tasks_ = crossing_tasks(p, placed);
    // None of them ends before all are there.
    if (when().mode == arrival_mode::preloaded && crossing_tasks_ > abi::meetings_max)
        throw config_error("preloaded: " + std::to_string(crossing_tasks_) + " tasks touch memory of several parts; at most "
                           + std::to_string(abi::meetings_max)
                           + " can be submitted before the first one runs; use one part (--parts 1), or run them back-to-back");
}

void runtime_engine::translate(const program& p)
{
    words_.clear();
    accesses_.clear();
    if (p.registrations().empty()) return;
    std::vector<u32> index;
    bool same = true;
    for (const data_handle& h : p.registrations()) {
        const auto* const data = reinterpret_cast<const void*>(h.address);
        index.push_back(
            (h.rows ? runtime_->register_tile(data, h.bytes, h.rows, h.pitch) : runtime_->register_range(data, h.bytes)).index);
        same = same && index.back() == h.index;
    }
    if (same) return;
    words_.assign(p.argument_words().begin(), p.argument_words().end());
    for (const program_task& t : p.tasks()) {
        const abi::task_type& layout = image_.table[t.type];
        auto* const words = reinterpret_cast<u32*>(reinterpret_cast<char*>(words_.data()) + t.bytes_first);
        for (u32 m = 0; m < layout.members; ++m) {
            u32* const tail = words + layout.member_offset[m] + 2;
            u64 value = tail[0] | static_cast<u64>(tail[1]) << 32;
            const u64 plus_one = value >> detail::member_handle_shift;
            if (plus_one == 0) continue;
            value = (value & detail::member_bytes_max) | (u64{index.at(plus_one - 1)} + 1) << detail::member_handle_shift;
            tail[0] = static_cast<u32>(value);
            tail[1] = static_cast<u32>(value >> 32);
        }
        for (const declared_access& a : p.accesses(t)) {
            const std::size_t at = static_cast<std::size_t>(t.access_first) + static_cast<std::size_t>(&a - p.accesses(t).data());
            if (accesses_.size() <= at) accesses_.resize(at + 1);
            accesses_[at] = a;
            if (a.handle_plus_one) accesses_[at].handle_plus_one = index.at(a.handle_plus_one - 1) + 1;
        }
    }
}

} // namespace slipstream::engines
