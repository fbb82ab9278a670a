// Submission, completion, memory and the service thread.
#include "host/runtime_core.hpp"
#include "device/control.hpp"
#include "host/bus_count.hpp"
#include "host/fast_memory.hpp"
#include "host/gpu_requirements.hpp"
#include "host/nvtx_range.hpp"
#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <spdlog/spdlog.h>
#include <system_error>

namespace slipstream::host {

using device::command;
using device::edge;
using device::order;
using device::scope;

namespace {

constexpr auto service_turn = std::chrono::microseconds(50);
constexpr auto watch_turn = std::chrono::milliseconds(10);
constexpr auto leave_grace = std::chrono::milliseconds(500); ///< for a kernel that is told to leave where nothing moves
constexpr u32 flight_samples_each = 8; ///< samples for each entry of a worker's flight log
// Of a launch's blocks, with others that do not come (device/muster.hpp).
constexpr u64 patience_min_ns = 25'000'000;
constexpr u64 patience_max_ns = 3'200'000'000;
constexpr auto longest_limit = std::chrono::hours(24 * 365 * 100); ///< can be counted in nanoseconds, and added to the time of day
constexpr u64 staging_bytes_min = 4096;

u64 next_core_id()
{
    static std::atomic<u64> id{1};
    return id.fetch_add(1);
}

// Cores that are alive: a thread that ends gives its rings back only to those. There before whatever is initialised at the
// program's start, and never destroyed: a runtime may be an object at namespace scope.
constinit std::mutex alive_mutex;
std::map<u64, runtime_core*>& alive()
{
    static auto* const all = new std::map<u64, runtime_core*>;
    return *all;
}

struct ring_lease {
    u64 core;
    u32 ring;
    std::atomic<bool>* taken;
};

/// Those used last. Runtimes have numbers from 1 on, which do not come again. Its place is fixed when the program is loaded:
/// position-independent code would otherwise call a function to find it, at each submission.
struct ring_used {
    u64 core;
    void* ring;
};
/// by part: an engine of one uses the first
[[gnu::tls_model("initial-exec")]] thread_local constinit ring_used last_rings[abi::parts_max]{};

/// The thread ends, and has given its rings back. Nothing is destroyed here, so that objects of the thread whose destructors come
/// behind that of my_rings, and static ones, may still look.
thread_local constinit bool rings_given_back = false;

/// The rings this thread holds, in any runtime. Not to be looked at when rings_given_back.
struct thread_rings {
    std::vector<ring_lease> leases;
    ~thread_rings()
    {
        // Another thread may have them from here on: nothing is written there by the short way either.
        rings_given_back = true;
        for (ring_used& last : last_rings) last = {};
        const std::lock_guard lock(alive_mutex);
        for (auto& lease : leases)
            if (alive().contains(lease.core)) lease.taken->store(false, std::memory_order_release);
    }
};
thread_local thread_rings my_rings;

void check_config(config& c, bool any_size)
{
    const u32 window_min = any_size ? slots_min_of_any_size : device::window_slots_min;
    const u32 ring_min = any_size ? slots_min_of_any_size : 4;
    const auto refuse = [](const std::string& text) { throw config_error(text); };
    if (c.parts < 1 || c.parts > abi::parts_max)
        refuse("parts = " + std::to_string(c.parts) + ": must be 1 to " + std::to_string(abi::parts_max));
    if (c.window < window_min || c.window > device::window_slots_max)
        refuse("window = " + std::to_string(c.window) + ": must be " + std::to_string(window_min) + " to "
               + std::to_string(device::window_slots_max));
    if (c.window > 16) c.window = (c.window + 31) / 32 * 32;
    if (c.ring_slots < ring_min || c.ring_slots > (1u << 24))
        refuse("ring_slots = " + std::to_string(c.ring_slots) + ": must be " + std::to_string(ring_min) + " to 16777216");
    c.ring_slots = std::bit_ceil(c.ring_slots);
    if (c.rings < 1 || c.rings > device::rings_max)
        refuse("rings = " + std::to_string(c.rings) + ": must be 1 to " + std::to_string(device::rings_max));
    if (c.rings >= c.window)
        refuse("rings = " + std::to_string(c.rings) + ": the window must have more slots than there are rings");
    if (c.accesses_max < 4 || c.accesses_max > 60000)
        refuse("accesses_max = " + std::to_string(c.accesses_max) + ": must be 4 to 60000");
    if (c.handles_max < 1 || c.handles_max > detail::member_handles_max)
        refuse("handles_max = " + std::to_string(c.handles_max) + ": must be 1 to " + std::to_string(detail::member_handles_max));
    if (c.flight_log > (1u << 24)) refuse("flight_log = " + std::to_string(c.flight_log) + " entries: at most 16777216");
    if (c.residency.count() < 1) refuse("residency must be at least 1 ms");
    if (c.stall_report.count() < 0 || c.stall_limit.count() < 0 || c.exit_limit.count() < 0)
        refuse("stall_report, stall_limit and exit_limit must not be negative; 0: never");
    for (auto* const limit : {&c.residency, &c.stall_report, &c.stall_limit, &c.exit_limit})
        *limit = std::min<std::chrono::milliseconds>(*limit, longest_limit);
    if (c.staging_bytes < staging_bytes_min)
        refuse("staging_bytes = " + std::to_string(c.staging_bytes) + ": must be " + std::to_string(staging_bytes_min)
               + " or more");
}

/// Bodies that never end go on in there. Reachable, so that nobody takes it for a leak; never destroyed.
void keep_for_ever(std::unique_ptr<backend> abandoned)
{
    static auto* const kept = new std::vector<std::unique_ptr<backend>>;
    abandoned->abandon();
    const std::lock_guard lock(alive_mutex);
    kept->push_back(std::move(abandoned));
}

/// A registered piece, whose numbers need not fit into an access_entry.
struct registered_piece {
    const abi::handle_entry& h;

    u64 begin() const { return h.address; }
    u64 width() const { return is_rect() ? h.bytes : end() - begin(); }
    u64 pitch() const { return h.pitch; }
    u64 rows() const { return is_rect() ? h.rows : 1; }
    u64 end() const { return h.address + (h.rows > 1 ? (u64{h.rows} - 1) * h.pitch : 0) + h.bytes; }
    bool is_rect() const { return h.rows > 1 && h.pitch != h.bytes; } ///< has gaps
};
/// As abi::overlaps(), but exact for tiles of any size if their pitch is the same.
bool share_bytes(const registered_piece& a, const registered_piece& b)
{
    if (!(a.begin() < b.end() && b.begin() < a.end())) return false;
    if (a.is_rect() && b.is_rect()) {
        if (a.pitch() != b.pitch()) return true;
        return a.begin() <= b.begin() ? abi::detail::rects_meet(a, b) : abi::detail::rects_meet(b, a);
    }
    if (a.is_rect()) return abi::detail::range_meets_rect(b.begin(), b.end(), a);
    return !b.is_rect() || abi::detail::range_meets_rect(a.begin(), a.end(), b);
}

std::unique_ptr<backend> choose(const config& c, const kernel_image& image)
{
    const std::optional<int> gpu = gpu_of(c, image);
    return gpu ? make_cuda_backend(c, image, *gpu) : make_host_backend(c, image);
}

} // namespace

std::optional<int> gpu_of(const config& c, const kernel_image& image)
{
    if (c.device == "host") return {};
    if (c.device == "auto") {
        const int gpu = image.cuda != nullptr ? first_usable_gpu() : -1;
        return gpu >= 0 ? std::optional(gpu) : std::nullopt;
    }
    if (c.device == "cuda") return 0;
    if (c.device.rfind("cuda:", 0) == 0 && c.device.size() > 5 && c.device.size() < 9
        && c.device.find_first_not_of("0123456789", 5) == std::string::npos)
        return std::stoi(c.device.substr(5));
    throw config_error("unknown device '" + c.device + "': use auto, cuda, cuda:N or host");
}

runtime_core::runtime_core(const config& configuration, const kernel_image& image, const beginning& start, const membership& member)
    : config_(configuration), member_(member), fate_(member.first != nullptr ? member.first->own_fate_ : own_fate_), image_(image),
      id_(next_core_id()), counted_from_(static_cast<u32>(start.position))
{
    check_config(config_, start.any_size);
    (void)spdlog::default_logger_raw(); // made before the runtime, it outlives it: also one that ends behind main may log
    backend_ = choose(config_, image_);
    if (start.around) backend_ = start.around(std::move(backend_));

    using device::sizes;
    sizes n{};
    n.window = (config_.window + 31) / 32 * 32;
    n.window_used = config_.window;
    n.rings = config_.rings;
    n.ring_slots = config_.ring_slots;
    n.workers = backend_->workers();
    n.types = image_.types;
    n.handles = config_.handles_max;
    n.log_capacity = config_.flight_log;
    n.sample_capacity = config_.flight_log * flight_samples_each;
    n.staging = config_.staging ? 1 : 0;
    n.chaining = config_.chaining ? 1 : 0;
    n.bypass = config_.bypass ? 1 : 0;
    n.watch_after = config_.bypass ? 2 : 0; // else a burst would find its ring in the hands of a worker
    if (config_.broadcast && image_.broadcasts && member_.parts == 1 && n.workers <= device::broadcast_mail::workers_max)
        n.broadcast_copies = std::min(std::bit_floor(n.workers), device::broadcast_copies_max);
    n.lone_workers = config_.workers_per_sm == 1 ? 1 : 0;
    n.parts = member_.parts;
    n.part = member_.part;
    // A ring that waits at its gate holds the pool blocks of one message; one message more than all rings can hold in that way
    // must fit, or nobody could go on.
    const u32 blocks_per_message
        = (config_.accesses_max + abi::task_members_max + device::pool_block_entries - 1) / device::pool_block_entries;
    constexpr u32 word = device::pool_word_blocks;
    n.pool_blocks = ((n.rings + 1) * blocks_per_message + n.window + word - 1) / word * word;

    const u64 near_bytes_most = backend_->near_bytes_max();
    const device::control_offsets offsets = share_fast_memory(n, near_bytes_most);
    if (offsets.near_bytes > near_bytes_most)
        throw config_error("window = " + std::to_string(config_.window) + " needs " + std::to_string(offsets.near_bytes)
                           + " B of shared memory, " + std::to_string(near_bytes_most)
                           + " B are there; lower the window or the number of rings");
    backend_->prepare(offsets.near_bytes);

    auto& m = memory_;
    m.n = n;
    const auto pinned = [&]<class T>(T*& pointer, u64 count) {
        pointer = static_cast<T*>(backend_->take_pinned(count * sizeof(T)));
    };
    const auto resident = [&]<class T>(T*& pointer, u64 count) {
        pointer = static_cast<T*>(backend_->take_device(count * sizeof(T)));
    };
    pinned(m.rings, static_cast<u64>(n.rings) * n.ring_slots);
    pinned(m.page, 1);
    failures_.attach(m.page);
    pinned(m.ring_pages, n.rings);
    pinned(m.complete_bits, static_cast<u64>(n.rings) * device::completion_words);
    pinned(m.recorder, n.workers);
    abi::handle_entry* handles = nullptr;
    pinned(handles, n.handles);
    m.handles = handles;
    pinned(m.flight_log, static_cast<u64>(n.workers) * n.log_capacity);
    pinned(m.control_log, n.sample_capacity);
    pinned(m.picks, n.workers);
    pinned(m.bus, device::bus_counts);
    pinned(m.stream_joins, stream_join::words);
    stream_join::word* signals = nullptr;
    pinned(signals, stream_join::words);
    stream_join_ = std::make_unique<stream_join>(m.stream_joins, signals);
    streams_ = backend_->streams();
    resident(m.records, n.window);
    resident(m.mailboxes, n.workers + n.broadcast_copies);
    resident(m.done, n.workers);
    resident(m.watch, 1);
    abi::task_type* types = nullptr;
    resident(types, n.types);
    m.types = types;
    backend_->write(types, image_.table, n.types * sizeof(abi::task_type));
    resident(m.handle_cache, n.handles);
    resident(m.handle_pages, n.handles);
    resident(m.stop, 1);
    if (n.parts > 1) {
        if (member_.first == nullptr) {
            resident(m.channels, static_cast<u64>(n.parts) * n.parts * n.channel_slots());
            resident(m.staging_channels, static_cast<u64>(n.parts) * n.parts * n.staging_channel_slots());
            resident(m.part_records, n.parts);
            resident(m.part_clocks, n.parts);
        } else {
            m.channels = member_.first->memory_.channels;
            m.staging_channels = member_.first->memory_.staging_channels;
            m.part_records = member_.first->memory_.part_records;
            m.part_clocks = member_.first->memory_.part_clocks;
        }
        backend_->write(m.part_records + n.part, &m.records, sizeof m.records);
    }
    resident(m.complete_mirror, static_cast<u64>(n.rings) * device::completion_words);

    // The control block's first state is made here and copied over: one text initialises both devices.
    arguments_.memory = m;
    arguments_.offsets = offsets;
    arguments_.near_saved = static_cast<unsigned char*>(backend_->take_device(offsets.near_bytes));
    arguments_.far = static_cast<unsigned char*>(backend_->take_device(offsets.far_bytes));
    arguments_.residency_ns = static_cast<u64>(config_.residency.count()) * 1000000;
    resident(arguments_.muster_words.outcome, 1);
    resident(arguments_.muster_words.claims, 2);
    resident(arguments_.muster_words.places, 1 + n.workers);
    std::vector<abi::chunk> near(offsets.near_bytes / 16), far(offsets.far_bytes / 16);
    auto* const near_image = reinterpret_cast<unsigned char*>(near.data());
    auto* const far_image = reinterpret_cast<unsigned char*>(far.data());
    const device::control_state<P> state(n, offsets, near_image, far_image);
    device::initialise<P>(m, state, image_.table);
    if (start.position != 0) begin_at(state, start.position);
    backend_->write(arguments_.near_saved, near_image, offsets.near_bytes);
    backend_->write(arguments_.far, far_image, offsets.far_bytes);

    void* const pool = backend_->take_device(config_.memory_bytes);
    pool_range_ = {reinterpret_cast<u64>(pool), config_.memory_bytes};
    pool_.free = memory_pool(pool, config_.memory_bytes);
    staging_.free = memory_pool(backend_->take_pinned(config_.staging_bytes), config_.staging_bytes);

    for (u32 r = 0; r < n.rings; ++r) {
        rings_.push_back(std::make_unique<ring>());
        rings_[r]->index = r;
        rings_[r]->history.reserve(n.sample_capacity);
        rings_[r]->take_note();
        rings_[r]->writer = ring_writer<P>(m.rings + static_cast<u64>(r) * n.ring_slots, n.ring_slots, m.ring_pages + r,
                                           start.position);
        rings_[r]->low_water_seen = rings_[r]->next = start.position;
        rings_[r]->begun = rings_[r]->submitted = start.position;
    }
    {
        const std::lock_guard lock(alive_mutex);
        alive()[id_] = this;
    }
    if (config_.batch) paused_ = true;
    try {
        service_ = std::thread([this] { service(); });
    } catch (const std::system_error& e) {
        const std::lock_guard lock(alive_mutex);
        alive().erase(id_);
        throw device_error(std::string("the engine's service thread could not be started (") + e.what()
                           + "): let this process have more threads (ulimit -u) or more memory");
    }
}

/// The engine's words as if all rings had come as far as `position`; before the first launch.
void runtime_core::begin_at(const device::control_state<P>& state, u64 position)
{
    host::begin_at<P>(memory_, state, position);
    const auto& n = memory_.n;
    for (u32 r = 0; r < n.rings; ++r) {
        P::store(edge::R1_ring_consumed, memory_.ring_pages[r].consumed, position, order::relaxed, scope::system);
        P::store(edge::R7_low_water, memory_.ring_pages[r].low_water, position, order::relaxed, scope::system);
    }
    std::vector<u32> bits(static_cast<u64>(n.rings) * device::completion_words);
    for (u32 i = 0; i < bits.size(); ++i) {
        bits[i] = completion_word_at(position, i % device::completion_words);
        P::store(edge::R7_complete, memory_.complete_bits[i], bits[i], order::relaxed, scope::system);
    }
    backend_->write(memory_.complete_mirror, bits.data(), bits.size() * sizeof(u32));
    const std::vector<u32> done(n.workers, device::done_word::make(static_cast<u32>(position), 0, 0));
    backend_->write(memory_.done, done.data(), done.size() * sizeof(u32));
    const u32 answered = static_cast<u32>(position);
    for (u32 w = 0; w < n.workers; ++w) {
        backend_->write(&memory_.mailboxes[w].answered, &answered, sizeof answered);
        backend_->write(&memory_.mailboxes[w].heard, &answered, sizeof answered);
    }
    const u64 finished = static_cast<u32>(position);
    for (u32 slot = 0; slot < n.window; ++slot) backend_->write(&memory_.records[slot].finished, &finished, sizeof finished);
}

void runtime_core::begin_end()
{
    ending_ = true;
    if (!config_.batch) paused_ = false;
}

/// Of a batch that is never run. What release() submitted by itself is nobody's loss.
void runtime_core::tell_what_never_ran()
{
    u64 count = 0;
    for (u32 r = 0; r < rings_.size(); ++r) count += rings_[r]->submitted.load(std::memory_order_acquire) - low_water(r);
    const std::lock_guard lock(mutex_);
    for (const pending_release& p : pool_.pending) count -= p.after && !is_retired(*p.after);
    if (count != 0)
        spdlog::warn("slipstream: batch mode: the runtime ends, and {} task(s) submitted after the last run_batch() never ran; "
                     "call run_batch() once more before",
                     count);
}

void runtime_core::wait_for_end()
{
    if (dead_) return;
    if (config_.batch) return tell_what_never_ran();
    try {
        wait_all(deadline::max());
    } catch (const error&) {
        // The device was lost; whoever waited for a task was told.
    }
}

void runtime_core::leave()
{
    begin_leave();
    if (service_.joinable()) service_.join();
}

runtime_core::~runtime_core()
{
    begin_end();
    wait_for_end();
    leave();
    // Where a body of one part never ends, its worker may yet write into the memory of another.
    if (abandoned_ || fate_.abandoned) keep_for_ever(std::move(backend_));
    const std::lock_guard lock(alive_mutex);
    alive().erase(id_);
}

runtime_core::ring& runtime_core::own_ring(u32& index)
{
    const auto found = [&](u32 ring) -> runtime_core::ring& {
        index = ring;
        last_rings[member_.part] = {id_, rings_[ring].get()};
        return *rings_[ring];
    };
    if (const ring_used& last = last_rings[member_.part]; last.core == id_)
        return found(static_cast<const runtime_core::ring*>(last.ring)->index);
    if (rings_given_back)
        throw config_error("this thread ends and has given its submission ring back: a thread_local or static object submits in "
                           "its destructor; let it do so before the thread ends");
    for (const auto& lease : my_rings.leases)
        if (lease.core == id_) return found(lease.ring);
    for (u32 r = 0; r < rings_.size(); ++r) {
        bool expected = false;
        if (rings_[r]->taken.compare_exchange_strong(expected, true, std::memory_order_acquire)) {
            my_rings.leases.push_back({id_, r, &rings_[r]->taken});
            rings_[r]->joins.clear(); // of the thread before
            rings_[r]->take_note();
            return found(r);
        }
    }
    if (member_.parts > 1) throw config_error("more than one thread submits: with config::parts there is one");
    throw config_error("more than " + std::to_string(rings_.size())
                       + " threads submit: raise config::rings (at most " + std::to_string(device::rings_max) + ")");
}

template <class Store>
[[gnu::always_inline]] inline task_handle runtime_core::put_into(ring& r, const chunk_vector* chunks, u32 slots)
{
    const u64 position = r.next;
    r.begun.store(position + 1, std::memory_order_release);
    r.writer.put_slots<Store>(chunks, slots);
    r.next = position + 1;
    r.submitted.store(position + 1, std::memory_order_release);
    return {r.index, position};
}

/// A task that says nothing beside its struct, into a ring that has room, by a thread whose last one went there: nearly every one.
/// Without a handle: nothing was done, and submit() finds out why. A call on the usual way would cost the saving of registers.
[[gnu::always_inline]] inline task_handle runtime_core::put_short(u32 part, u32 accesses, const chunk_vector* chunks,
                                                                 detail::short_size size)
{
    // One of more accesses than accesses_max takes the other way: it becomes a whole-memory task.
    const auto [slots, handles_end] = size;
    const ring_used& last = last_rings[part];
    if (last.core != id_ || dead_.load(std::memory_order_relaxed) || handles_end > handles_given()) return {};
    if (accesses > config_.accesses_max) return {};
    ring& r = *static_cast<ring*>(last.ring);
    if (r.notes || r.next >= r.low_water_seen + device::submissions_ahead_max) return {};
    if (!r.writer.had_room(slots) || P::delayed()) return put_short_after_a_look(r, chunks, slots);
    return put_into<P::undelayed>(r, chunks, slots);
}

[[gnu::noinline]] task_handle runtime_core::put_short_after_a_look(ring& r, const chunk_vector* chunks, u32 slots)
{
    if (!r.writer.has_room(slots)) return {};
    return put_into<P>(r, chunks, slots);
}

/// By now it is known that the accesses are no more than accesses_max, and what handles there are.
task_handle runtime_core::put_listed(const chunk_vector* chunks, u32 slots, ordering order)
{
    const task_handle done = put_short(member_.part, 0, chunks, {slots, 0});
    if (order == ordering::no_access && done != task_handle{}) rings_[done.ring]->unordered_end = done.position + 1;
    return done;
}

bool runtime_core::takes_short(u32 slots)
{
    const ring_used& last = last_rings[member_.part];
    if (last.core != id_ || dead_.load(std::memory_order_relaxed)) return false;
    ring& r = *static_cast<ring*>(last.ring);
    return !r.notes && r.next < r.low_water_seen + device::submissions_ahead_max && r.writer.has_room(slots);
}

u64 runtime_core::put_taken(const chunk_vector* chunks, u32 slots)
{
    return put_into<P>(*static_cast<ring*>(last_rings[member_.part].ring), chunks, slots).position;
}

/// The quick ways. No handle: nothing was done, and submit_by_chunks() finds out why. They ask for less room than that one does,
/// since they know how long the message is.
[[gnu::always_inline]] inline task_handle runtime_core::submit_at_once(u32 type, const void* task, const submit_options& options)
{
    const abi::task_type& layout = image_.table[type];
    if (last_rings[member_.part].core != id_) [[unlikely]] {
        throw_if_dead();
        claim_ring();
    }
    if (const auto encode = image_.short_encoders[type]; encode != nullptr && options.says_little()) {
        detail::short_room chunks;
        const detail::short_size size = encode(task, type, options.blocks, chunks);
        if (size.slots != 0) return put_short(member_.part, layout.members, chunks, size);
    }
    message_room message;
    const direct_size size
        = put_direct<false>(message, type, layout, task, options, config_.accesses_max, handles_given(), nullptr);
    return size.slots != 0 ? put_listed(message, size.slots, options.order) : task_handle{};
}

submit_status runtime_core::submit(u32 type, const void* task, const submit_options& options, bool may_block,
                                   task_handle& handle, u32 flags, const crossing* crosses)
{
    if (flags == 0 && crosses == nullptr && type < image_.types)
        if (const task_handle done = submit_at_once(type, task, options); done != task_handle{}) [[likely]] {
            handle = done;
            return submit_status::submitted;
        }
    return submit_by_chunks(type, task, options, may_block, handle, flags, crosses);
}

submit_status runtime_core::submit_by_chunks(u32 type, const void* task, const submit_options& options, bool may_block,
                                             task_handle& handle, u32 flags, const crossing* crosses, bool only_look)
{
    if (dead_.load(std::memory_order_relaxed)) throw_if_dead();
    if (options.blocks == 0 || options.blocks > 0x7fffffffu) throw config_error("a task has 1 to 2147483647 blocks");
    if (type >= image_.types) throw config_error("task type " + std::to_string(type) + " is not in the runtime's list");
    u32 index = 0;
    ring& r = own_ring(index);
    const abi::task_type& layout = image_.table[type];
    // Header, then entries, then scalars; see abi/message.hpp.
    forget_raised_joins(r);
    const bool too_many = options.after.size() + r.joins.size() + layout.members + options.accesses.size() > config_.accesses_max;
    const bool nothing = layout.members == 0 && options.accesses.empty();
    const bool whole = options.order == ordering::whole_memory || too_many
        || (options.order == ordering::by_access && nothing);
    const bool extras = !too_many && options.order == ordering::by_access;
    // A predecessor that succeeded needs no entry; one that failed cancels the task, by the device's own books.
    const auto matters = [&](const task_handle& a) { return !is_retired(a) || !failures_.of(a).ok(); };
    r.after.clear();
    for (const task_handle& a : options.after) {
        if (a.ring >= rings_.size()) throw config_error("`after` names a handle that is not of this runtime");
        if (a.ring == index) refuse_own_future(a);
        if (matters(a)) r.after.push_back(a);
        // What is retired now stays retired; what retires in between costs an entry that the device drops.
    }
    check_after(r.after.size());
    const u32 entries = static_cast<u32>(r.after.size() + r.joins.size()) + layout.members
        + (extras ? static_cast<u32>(options.accesses.size()) : 0);

    u32 words[abi::task_words_max] = {}; // the struct's size need not be a multiple of four
    if (layout.words != 0) std::memcpy(words, task, layout.bytes);
    for (u32 k = 0; k < layout.members; ++k)
        if ((layout.rect_mask >> k & 1) && words[layout.member_offset[k] + 4] > 1
            && (words[layout.member_offset[k] + 3] & 0xff) != 0)
            throw config_error("the rows of a 2-D member must be shorter than 4 GiB: split it, or use a 1-D member");

    // visit(mode, address, bytes (of a range or of one row), rows, pitch, kind, handle_plus_one) for each access, in wire order.
    const auto range_of = [](u64 bytes) { return bytes >> 32 ? abi::entry_kind::long_range : abi::entry_kind::range; };
    const auto for_each_access = [&](const auto& visit) {
        for (u32 k = 0; k < layout.members; ++k) {
            const u32 at = layout.member_offset[k];
            const u64 address = words[at] | static_cast<u64>(words[at + 1]) << 32;
            const u64 tail = words[at + 2] | static_cast<u64>(words[at + 3]) << 32;
            const bool rect = (layout.rect_mask >> k & 1) && words[at + 4] > 1; // one row is a range
            const bool foreign = crosses != nullptr && (crosses->foreign_members >> k & 1) != 0;
            visit(foreign ? access_mode::none : static_cast<access_mode>(layout.member_mode[k]), address,
                  tail & detail::member_bytes_max, rect ? words[at + 4] : 1, rect ? words[at + 5] : 0,
                  rect ? abi::entry_kind::rect : range_of(tail & detail::member_bytes_max),
                  static_cast<u32>(tail >> detail::member_handle_shift));
        }
        if (!extras) return;
        for (const declared_access& a : options.accesses) {
            const bool fits = a.rows <= 0xffffffffu && a.pitch <= 0xffffffffu && a.bytes <= 0xffffffffu;
            if (a.rows > 1 && fits)
                visit(a.mode, a.address, a.bytes, a.rows, a.pitch, abi::entry_kind::rect, a.handle_plus_one);
            else if (a.rows > 1) // too large for the wire: its bounding range, which covers nothing
                visit(a.mode, a.address, (a.rows - 1) * a.pitch + a.bytes, 1, 0, abi::entry_kind::loose, a.handle_plus_one);
            else
                visit(a.mode, a.address, a.bytes, 1, 0, range_of(a.bytes), a.handle_plus_one);
        }
    };
    // Plain messages are decoded at once; see abi/message.hpp.
    u32 entry_chunks = static_cast<u32>(r.after.size() + r.joins.size());
    u32 second_chunks = 0; // of entries that do not fit into one
    bool plain = true;
    u32 run = 0; // handles in the chunk that is being filled
    for_each_access([&](access_mode, u64, u64, u64, u64, abi::entry_kind kind, u32 handle_plus_one) {
        check_handles(handle_plus_one); // nothing is published yet
        const bool two_chunks = handle_plus_one == 0 && kind != abi::entry_kind::range;
        plain &= !two_chunks;
        second_chunks += two_chunks;
        entry_chunks += handle_plus_one == 0 || run == 0;
        run = handle_plus_one == 0 ? 0 : (run + 1) % 3;
    });
    plain &= 1 + entry_chunks + (layout.scalars + 2) / 3
        <= abi::slot_chunks * std::min(abi::message_plain_slots, config_.ring_slots);

    // Back-pressure: the span of unfinished submissions first, then (for try) the ring.
    const auto in_span = [&] {
        if (r.next < r.low_water_seen + device::submissions_ahead_max) return true;
        r.low_water_seen = P::load(edge::A7_low_water, memory_.ring_pages[index].low_water, order::acquire, scope::system);
        return r.next < r.low_water_seen + device::submissions_ahead_max;
    };
    const u64 chunks = 1ull + entry_chunks + second_chunks + (layout.scalars + 2) / 3;
    const bool fits = (may_block && !config_.batch) || r.writer.has_room((chunks + abi::slot_chunks - 1) / abi::slot_chunks);
    if (!may_block && !(fits && in_span())) return submit_status::full;
    if (only_look) return submit_status::submitted;
    if (!fits || (config_.batch && !in_span()))
        throw config_error("batch mode: the ring of " + std::to_string(config_.ring_slots)
                           + " slots is full; raise config::ring_slots so that the whole batch fits, "
                             "or call run_batch() in between");
    for (u32 attempt = 0; !in_span(); ++attempt) {
        throw_if_dead();
        P::pause(attempt);
    }

    // What may throw comes before the first chunk: from then on the message has to be there as a whole.
    if (!options.name.empty() && r.names.empty()) {
        r.names.resize(device::completion_span);
        r.named.store(true, std::memory_order_release);
    }
    if (!r.joins.empty()) stream_join_->gate(index, r.next, r.joins);
    if (!options.name.empty()) r.names[r.next % device::completion_span] = {r.next, options.name};
    // A message longer than its ring needs the kernel before it is whole: the service thread is told now.
    r.begun.store(r.next + 1, std::memory_order_release);
    u32 attempt = 0;
    const auto wait = [&] {
        if (dead_.load(std::memory_order_relaxed)) return false;
        P::pause(attempt++);
        return true;
    };
    bool ok = true;
    const auto put = [&](const abi::chunk& c) {
        if (ok) ok = r.writer.put(c, wait);
    };
    if (crosses != nullptr) flags |= abi::flag_crossing;
    put(abi::message_header{crosses != nullptr && crosses->stand_in ? 0 : options.blocks, type,
                            (whole ? u32{abi::flag_whole_memory} : 0u)
                                | (options.order == ordering::no_access ? u32{abi::flag_no_access} : 0u) | flags,
                            entries, layout.scalars, plain ? entry_chunks + 1 : 0,
                            crosses != nullptr ? crosses->word : abi::crossing_word{}}.encode());

    for (const task_handle& a : r.after)
        put(abi::chunk{{abi::encode_first(abi::entry_kind::after, access_mode::none, a.ring), static_cast<u32>(a.position),
                        static_cast<u32>(a.position >> 32), 0}});
    for (const stream_point& p : r.joins)
        put(abi::chunk{{abi::encode_first(abi::entry_kind::after, access_mode::none, abi::after_stream_ring),
                        static_cast<u32>(p.encode()), static_cast<u32>(p.encode() >> 32), 0}});
    r.joins.clear(); // this ring's gate stays shut until then: what follows is behind it

    abi::chunk handles{};
    u32 handle_count = 0;
    const auto flush_handles = [&] {
        if (handle_count == 0) return;
        put(handles);
        handles = {};
        handle_count = 0;
    };
    const auto put_access = [&](access_mode mode, u64 address, u64 bytes, u64 rows, u64 pitch, abi::entry_kind kind,
                                u32 handle_plus_one) {
        if (handle_plus_one != 0) {
            handles.w[handle_count++] = abi::encode_handle(handle_plus_one - 1, mode);
            if (handle_count == 3) flush_handles();
            return;
        }
        flush_handles();
        put(abi::encode_range(abi::encode_first(kind, mode, 0), address, bytes));
        if (kind == abi::entry_kind::rect) put(abi::chunk{{static_cast<u32>(rows), static_cast<u32>(pitch), 0, 0}});
        else if (kind != abi::entry_kind::range) put(abi::chunk{{static_cast<u32>(bytes >> 32), 0, 0, 0}});
    };
    for_each_access(put_access);
    flush_handles();
    for (u32 k = 0; k < layout.scalars; k += 3) {
        abi::chunk c{};
        for (u32 i = 0; i < 3 && k + i < layout.scalars; ++i) c.w[i] = words[layout.scalar_offset[k + i]];
        put(c);
    }
    if (ok) ok = r.writer.finish(wait);
    if (!ok) throw_if_dead(); // the only reason to give up
    handle = {index, r.next};
    r.take_note();
    ++r.next;
    if (options.order == ordering::no_access) r.unordered_end = r.next;
    r.submitted.store(r.next, std::memory_order_release);
    if (r.history.wanted()) r.history.note(P::clock_ns(), r.writer.position());
    return submit_status::submitted;
}

bool runtime_core::holds_ring() const
{
    if (rings_given_back) return false;
    return std::ranges::any_of(my_rings.leases, [&](const ring_lease& lease) { return lease.core == id_; });
}

void runtime_core::claim_ring()
{
    u32 index = 0;
    (void)own_ring(index);
}

/// Streams that are done hold nobody back any more. The look that finds a word raised (A16) comes before all that this thread
/// submits from now on.
void runtime_core::forget_raised_joins(ring& r)
{
    if (r.joins.empty()) return;
    std::erase_if(r.joins, [&](const stream_point& p) { return stream_join_->raised(p); });
    r.take_note();
}

void runtime_core::refuse_own_future(task_handle handle) const
{
    const u64 next = rings_[handle.ring]->next;
    if (handle.position < next) return;
    throw config_error("`after` names " + name_of(handle) + ", which this thread has yet to submit (its next task there is "
                       + name_of({handle.ring, next})
                       + "): tasks of one thread are taken in in the order of submission, so that both would wait for ever; submit "
                         "that one first. Only tasks of other threads may be named before they are submitted");
}

/// By a thread that is about to wait for it without a deadline: nobody else submits to its ring.
void runtime_core::refuse_own_future_for_ever(task_handle handle)
{
    if (!holds_ring()) return;
    u32 index = 0;
    const u64 next = own_ring(index).next;
    if (handle.ring != index || handle.position < next) return;
    throw config_error("wait: " + name_of(handle) + " is one that this thread has yet to submit (its next task there is "
                       + name_of({index, next})
                       + "), so that it would wait for ever; submit it first, or give a deadline. A handle of another runtime is "
                         "not told apart");
}

void runtime_core::check_after(u64 count)
{
    u32 index = 0;
    ring& r = own_ring(index);
    forget_raised_joins(r);
    if (count + r.joins.size() > config_.accesses_max)
        throw config_error("a task waits for at most " + std::to_string(config_.accesses_max)
                           + " unfinished tasks and streams by `after`; submit a marker in between or raise accesses_max");
}

bool runtime_core::has_room(u32 type, const void* task, const submit_options& options)
{
    task_handle none;
    return submit_by_chunks(type, task, options, false, none, 0, nullptr, true) == submit_status::submitted;
}

/// All submissions of the ring below it are complete, and none of them failed.
u64 runtime_core::early_mark(u32 ring) const
{
    return P::load(edge::A22_early_mark, memory_.ring_pages[ring].early_mark, order::acquire, scope::system);
}

bool runtime_core::is_retired(task_handle h)
{
    const auto low = [&] {
        return P::load(edge::A7_low_water, memory_.ring_pages[h.ring].low_water, order::acquire, scope::system);
    };
    const u64 mark = low();
    if (h.position < mark || h.position < early_mark(h.ring)) return true;
    // No task is submitted as far ahead. Of one that is yet to be the bit may still be that of two laps before, whose value is the
    // same: a round's mark may be seen before its bits.
    if (h.position >= mark + device::submissions_ahead_max) return false;
    const u32 at = static_cast<u32>(h.position % device::completion_span);
    const u32 word = P::load(edge::A7_complete, memory_.complete_bits[h.ring * device::completion_words + at / 32], order::acquire,
                             scope::system);
    if ((word >> at % 32 & 1) == device::complete_value(h.position)) return true;
    // The bit may be of a later lap by now; then the mark has passed.
    return h.position < low();
}

task_status runtime_core::query(task_handle h)
{
    if (h.ring >= rings_.size()) throw config_error("this handle is not of this runtime");
    if (!is_retired(h)) {
        throw_if_dead();
        return {};
    }
    return failures_.of(h);
}

task_status runtime_core::wait(task_handle h, deadline until)
{
    if (h.ring >= rings_.size()) throw config_error("this handle is not of this runtime");
    for (u32 attempt = 0; !is_retired(h); ++attempt) {
        throw_if_dead();
        if (attempt == 15 && until == deadline::max()) refuse_own_future_for_ever(h);
        if (attempt % 16 == 15 && std::chrono::steady_clock::now() >= until) return {};
        P::pause(backend_->is_cuda() ? 0 : attempt);
    }
    return failures_.of(h);
}

/// A whole-memory task that is never cancelled: everything before it is retired when the device takes its flag.
task_handle runtime_core::clear_failure()
{
    submit_options options;
    options.order = ordering::whole_memory;
    options.name = "clear_failure";
    task_handle handle;
    (void)submit(image_.types - 1, nullptr, options, true, handle, abi::flag_clear_failure);
    return handle;
}

bool runtime_core::wait_all(deadline until)
{
    for (u32 r = 0; r < rings_.size(); ++r) {
        const u64 count = rings_[r]->submitted.load(std::memory_order_acquire);
        for (u32 attempt = 0; low_water(r) < count && early_mark(r) < count; ++attempt) {
            throw_if_dead();
            if (attempt % 16 == 15 && std::chrono::steady_clock::now() >= until) return false;
            P::pause(backend_->is_cuda() ? 0 : attempt);
        }
    }
    return true;
}

bool runtime_core::all_retired()
{
    for (u32 r = 0; r < rings_.size(); ++r)
        if (P::load(edge::A7_low_water, memory_.ring_pages[r].low_water, order::acquire, scope::system)
            < rings_[r]->begun.load(std::memory_order_acquire))
            return false;
    return true;
}

/// One look at each ring: a submission may come between two, and is not to be taken for one that waits for a stream.
runtime_core::unfinished_work runtime_core::look_for_work()
{
    auto found = unfinished_work::none;
    for (u32 r = 0; r < rings_.size(); ++r) {
        const u64 done = P::load(edge::A7_low_water, memory_.ring_pages[r].low_water, order::acquire, scope::system);
        if (done >= rings_[r]->begun.load(std::memory_order_acquire)) continue;
        if (!stream_join_->gated(r, done)) return unfinished_work::can_run;
        found = unfinished_work::waits_for_streams;
    }
    return found;
}

stream_port& runtime_core::need_streams()
{
    throw_if_dead();
    if (streams_ == nullptr)
        throw config_error("the host device has no CUDA streams to join: order the work on the host, by wait(handle) before it and "
                           "submit() after it");
    return *streams_;
}

void runtime_core::after_stream(cuda_stream stream)
{
    stream_port& port = need_streams();
    u32 index = 0;
    ring& r = own_ring(index);
    forget_raised_joins(r); // a thread may join streams again and again and submit nothing here
    if (port.done(stream)) return;
    stream_point point{};
    for (u32 attempt = 0; !stream_join_->join(port, stream, point); ++attempt) {
        throw_if_dead();
        P::pause(attempt);
    }
    r.joins.push_back(point);
    r.take_note();
}

void runtime_core::signal_stream(cuda_stream stream, task_handle handle)
{
    stream_port& port = need_streams();
    if (handle.ring >= rings_.size()) throw config_error("this handle is not of this runtime");
    if (is_retired(handle)) return;
    for (u32 attempt = 0; !stream_join_->signal(port, stream, handle); ++attempt) {
        throw_if_dead();
        P::pause(attempt);
    }
    // The service thread, which would raise the word, may have ended while the stream took the wait.
    if (dead_.load(std::memory_order_acquire)) stream_join_->let_all_go();
}

void runtime_core::pause()
{
    if (config_.batch) { // away but for run_batch(), which nobody could resume
        const std::lock_guard lock(batch_mutex_);
        return throw_if_dead();
    }
    begin_pause();
    // Until it is away; or another thread has resumed, and it may never be.
    for (u32 attempt = 0; !away_.load(std::memory_order_seq_cst) && paused_.load(std::memory_order_relaxed); ++attempt) {
        throw_if_dead();
        P::pause(attempt);
    }
}

void runtime_core::resume()
{
    if (config_.batch) throw config_error("a batch-mode runtime runs by run_batch()");
    paused_ = false;
}

void runtime_core::run_batch()
{
    if (!config_.batch) throw config_error("run_batch() needs config::batch");
    // One at a time: who comes to the end of its own would pause the next one's.
    const std::lock_guard lock(batch_mutex_);
    paused_ = false;
    while (!all_retired() || !away_.load(std::memory_order_acquire)) {
        throw_if_dead();
        std::this_thread::sleep_for(service_turn);
    }
    paused_ = true;
    while (!away_.load(std::memory_order_acquire)) std::this_thread::sleep_for(service_turn);
}

void runtime_core::command(device::command c)
{
    P::store(edge::R8_command, memory_.page->command_word, static_cast<u32>(c), order::release, scope::system);
}

/// The last launch, or one of so many before it.
bool runtime_core::was_void(u32 launches_back) const
{
    const u32 last = P::load(edge::P14_void, memory_.page->void_launch, order::relaxed, scope::system);
    return last != 0 && static_cast<u32>(launches()) - last <= launches_back;
}

/// Of the next launch. Longer from one void launch to the next: a tool that slows launches down may need it. And never the same,
/// as two engines whose control blocks each hold an SM that the other's workers need had better not both give way.
void runtime_core::choose_patience()
{
    patience_ns_ = was_void(0) ? std::min(2 * patience_ns_, patience_max_ns) : patience_min_ns;
    const auto now = static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch().count());
    arguments_.patience_ns = patience_ns_ + patience_ns_ / 1024 * (now % 1024);
}

/// Launches while something is unfinished and nobody paused; tells the kernel to leave when somebody did, or at the end.
void runtime_core::service()
{
    std::optional<nvtx_range> parking;
    const auto park = [&] {
        if (!parking) parking.emplace("park");
        command(device::command::park);
    };
    try {
        for (;;) {
            // `stop_` is read first: what was submitted before it is then seen as unfinished.
            const bool stopping = stop_.load(std::memory_order_acquire);
            const bool resident = backend_->running();
            if (fate_.ended.load(std::memory_order_acquire)) end_with_the_others();
            const auto work = look_for_work();
            const bool wanted = !paused_.load(std::memory_order_relaxed) && work == unfinished_work::can_run;
            failures_.read();
            stream_join_->service([this](task_handle h) { return is_retired(h); });
            watch_progress(resident, wanted);
            if (!resident) {
                parking.reset();
                if (stopping) break;
                if (wanted) {
                    // Either pause() sees that the kernel is not away, or we see that it paused: both sequentially consistent.
                    away_.store(false, std::memory_order_seq_cst);
                    if (paused_.load(std::memory_order_seq_cst)) continue;
                    command(config_.batch ? device::command::drain : device::command::run);
                    const nvtx_range launching(launches() == 0 ? "launch" : "relaunch");
                    choose_patience();
                    arguments_.launch = static_cast<u32>(launches()) + 1;
                    backend_->launch(arguments_);
                    launches_.fetch_add(1, std::memory_order_relaxed);
                } else {
                    away_.store(true, std::memory_order_release);
                }
            } else if (stopping || paused_.load(std::memory_order_relaxed)) {
                if (!config_.batch || stopping) park();
            } else if (work == unfinished_work::waits_for_streams) {
                park(); // let the streams' kernels have the SMs
            }
            std::this_thread::sleep_for(service_turn);
        }
    } catch (const std::exception& e) {
        command(device::command::abort); // to whatever is resident: half of a kernel, if the other half could not be launched
        mark_dead(e.what());
        stream_join_->let_all_go(); // who waits for such a stream is no better off for waiting
        try {
            if (!abandoned_) abandon_unless_left();
        } catch (const std::exception&) { // the device is lost
        }
    }
    away_.store(true, std::memory_order_release);
}

/// Changes when a ring slot is taken, a block picked up, a task retired.
u64 runtime_core::progress_mark() const
{
    u64 mark = 0;
    const auto add = [&](u64 value) { mark = (mark ^ value) * 0x9e3779b97f4a7c15u; };
    for (u32 r = 0; r < rings_.size(); ++r) {
        add(low_water(r));
        add(P::load(edge::A1_ring_consumed, memory_.ring_pages[r].consumed, order::relaxed, scope::system));
    }
    for (u32 w = 0; w < memory_.n.workers; ++w) {
        const abi::chunk c = P::load(edge::P3_recorder, memory_.recorder[w], order::relaxed, scope::system);
        add(static_cast<u64>(c.w[0]) << 32 | c.w[1]);
        add(c.w[2]);
    }
    return mark;
}

/// The watchdog: at every turn of the service thread.
void runtime_core::watch_progress(bool resident, bool wanted)
{
    const bool at_exit = config_.stall_limit.count() == 0 && ending_.load(std::memory_order_relaxed);
    const std::chrono::nanoseconds report = config_.stall_report, limit = at_exit ? config_.exit_limit : config_.stall_limit;
    if (report.count() == 0 && limit.count() == 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return;
    next_look_ = now + watch_turn;
    if (!(resident || wanted) || all_retired() || at_exit != watched_at_exit_) {
        progress_.restart(now);
        watched_at_exit_ = at_exit;
        stall_told_ = false;
        return;
    }
    if (const u64 mark = progress_mark(); mark != own_mark_) {
        own_mark_ = mark;
        fate_.progress.fetch_add(1, std::memory_order_relaxed);
    }
    // A part may wait for another one, which goes on: to one of several its own mark is among the others'.
    const auto quiet = progress_.look(fate_.progress.load(std::memory_order_relaxed), now);
    if (quiet < watch_turn) {
        stall_told_ = false;
        beats_seen_ = heartbeats();
    }
    // Of several parts the one that runs something tells first; the others may only wait for it.
    const auto patience = limit.count() != 0 && quiet >= limit && member_.parts > 1 && !holds_a_block()
                              ? 10 * watch_turn
                              : std::chrono::nanoseconds(0);
    if (limit.count() != 0 && quiet >= limit + patience && !fate_.ending.exchange(true))
        end_stalled_engine(quiet, at_exit ? "exit_limit" : "stall_limit");
    if (report.count() != 0 && quiet >= report && !stall_told_) {
        stall_told_ = true;
        spdlog::warn("slipstream: no progress for {} s; it goes on (config::stall_limit would end it){}{}{}",
                     std::chrono::duration_cast<std::chrono::seconds>(quiet).count(), describe_heartbeat(), describe_rings(),
                     describe_workers());
    }
}

u32 runtime_core::heartbeats() const { return P::load(edge::P2_heartbeat, memory_.page->heartbeat, order::relaxed, scope::system); }

/// Since progress was seen last: tells an engine that waits for its bodies from one that does not run.
std::string runtime_core::describe_heartbeat() const
{
    if (heartbeats() != beats_seen_) return "\n  control block: at work; it waits for what is listed here";
    return std::string("\n  control block: has not moved either")
        + (was_void(1)             ? "; its workers did not find the SMs they need: other work holds some of them"
           : backend_->is_cuda() ? "; other work may hold the GPU"
                                 : "");
}

void runtime_core::abandon_unless_left()
{
    if (leaves_within(leave_grace)) return;
    abandoned_ = true;
    fate_.abandoned = true;
}

bool runtime_core::leaves_within(std::chrono::milliseconds limit)
{
    const auto until = std::chrono::steady_clock::now() + limit;
    while (backend_->running()) {
        if (std::chrono::steady_clock::now() >= until) return false;
        failures_.read(); // a notifier that waits for room could not leave
        std::this_thread::sleep_for(service_turn);
    }
    return true;
}

/// In order: asked to park it keeps its state, which says what waits on what; told to abort it keeps nothing;
/// and if a body does not end, it stays where it is, and its memory with it.
void runtime_core::end_stalled_engine(std::chrono::nanoseconds quiet, const char* limit)
{
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count();
    std::string text = "no progress for " + std::to_string(ms)
        + " ms: no task was taken in, no block was picked up and no task ended, and not everything is done; "
          "the engine was stopped (config::" + limit + ")" + describe_heartbeat() + describe_rings();
    command(device::command::park);
    if (leaves_within(leave_grace)) {
        text += describe_window();
    } else {
        command(device::command::abort);
        abandon_unless_left();
        if (!abandoned_)
            text += "\n  It did not leave in order and was aborted: what waits on what is not known.";
        else
            text += backend_->is_cuda()
                        ? "\n  The kernel does not leave: a body does not end, or other work holds the GPU. "
                          "It keeps the GPU until this process ends."
                        : "\n  The engine's threads do not end: a body does not. They go on until this process ends.";
    }
    throw device_error(text);
}

/// Another part has ended: this one's tasks may wait for it for ever.
void runtime_core::end_with_the_others()
{
    std::string text;
    {
        const std::lock_guard lock(fate_.mutex);
        text = "part " + std::to_string(member_.part) + " was stopped, since another one has ended: " + fate_.why;
    }
    command(device::command::abort);
    abandon_unless_left();
    throw device_error(text);
}

void runtime_core::mark_dead(const std::string& why)
{
    // What each worker had picked up last: the flight recorder lives in pinned memory and outlasts the context.
    const std::string text = why + describe_workers();
    {
        const std::lock_guard lock(why_mutex_);
        why_dead_ = text;
    }
    spdlog::error("slipstream: {}", text); // before anybody is told, who may end the process
    dead_.store(true, std::memory_order_release);
    {
        const std::lock_guard lock(fate_.mutex);
        if (fate_.ended) return;
        fate_.why = text;
    }
    fate_.ended.store(true, std::memory_order_release);
}

void runtime_core::throw_if_dead()
{
    if (!dead_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(why_mutex_);
    throw device_error(why_dead_);
}

data_handle runtime_core::register_range(const void* data, u64 bytes, u64 rows, u64 pitch)
{
    if (data == nullptr || bytes == 0 || rows == 0) throw config_error("cannot register empty memory");
    if (bytes > detail::member_bytes_max || rows > 0xffffffffu || pitch > 0xffffffffu)
        throw config_error("this range is too large to register");
    if (rows > 1 && pitch < bytes) throw config_error("a tile's pitch must be at least its row's bytes");
    const u64 address = detail::checked_begin(data, bytes, rows, pitch);
    const std::lock_guard lock(mutex_);
    abi::handle_entry entry{address, bytes, rows > 1 ? static_cast<u32>(rows) : 0u, rows > 1 ? static_cast<u32>(pitch) : 0u, 0};
    const auto result = [&](u32 index) { return data_handle{index, address, bytes, entry.rows, entry.pitch}; };
    const registered_piece mine{entry};
    // Ranges are disjoint, so only the neighbours can meet a new range; tiles are compared one by one.
    const auto meets = [&](u32 index) {
        return share_bytes(mine, {ranges_[index]});
    };
    const auto same = [&](u32 index) {
        const auto& o = ranges_[index];
        return o.address == entry.address && o.bytes == entry.bytes && o.rows == entry.rows && o.pitch == entry.pitch;
    };
    const auto refuse = [&](u32 index) {
        throw config_error("this memory partly overlaps handle " + std::to_string(index)
                           + "; handles must be equal or disjoint: register the same pieces, or pass a raw range");
    };
    auto next = range_index_.lower_bound(mine.end());
    while (next != range_index_.begin()) {
        --next;
        const u32 index = next->second;
        if (same(index)) return result(index);
        if (meets(index)) refuse(index);
        if (next->first + ranges_[index].bytes <= mine.begin()) break;
    }
    for (const auto& [at, index] : rects_) {
        if (same(index)) return result(index);
        if (meets(index)) refuse(index);
    }
    auto& holding = entry.rows == 0 ? range_index_ : rects_;
    const std::array<u64, 4> shape{address, bytes, entry.rows, entry.pitch};
    if (const auto known = index_of_.find(shape); known != index_of_.end()) { // of a buffer that was there before
        holding[address] = known->second;
        return result(known->second);
    }
    if (ranges_.size() == config_.handles_max)
        throw config_error("all " + std::to_string(config_.handles_max) + " handles are registered: raise config::handles_max");
    const auto index = static_cast<u32>(ranges_.size());
    ranges_.push_back(entry);
    index_of_[shape] = index;
    holding[address] = index;
    // Plain stores: the first message that names the handle publishes them (R0).
    const_cast<abi::handle_entry*>(memory_.handles)[index] = entry;
    handles_given_.store(index + 1, std::memory_order_relaxed);
    return result(index);
}

void runtime_core::adopt(const data_handle& handle)
{
    const std::lock_guard lock(mutex_);
    if (handle.index < ranges_.size()) return;
    ranges_.push_back({handle.address, handle.bytes, handle.rows, handle.pitch, 0});
    const_cast<abi::handle_entry*>(memory_.handles)[handle.index] = ranges_.back();
    handles_given_.store(handle.index + 1, std::memory_order_relaxed);
}

void runtime_core::check_handles(u32 end) const
{
    if (const u32 given = handles_given(); end > given)
        throw config_error("handle " + std::to_string(end - 1) + " is not of this runtime, which has given out "
                           + std::to_string(given)
                           + ": register the memory here, by register_range, register_tile or buffer::handle");
}

/// Called with mutex_ held. all: not only up to the first that has to wait.
void runtime_core::reclaim(lending_pool& pool, bool all)
{
    if (pool.pending.empty()) return;
    std::array<u64, device::rings_max> marks{};
    for (u32 r = 0; r < rings_.size(); ++r) marks[r] = low_water(r);
    const auto done = [&](const pending_release& p) {
        for (u32 r = 0; r < rings_.size(); ++r)
            if (marks[r] < p.low_water[r]) return false;
        return (!p.after || p.after->position < marks[p.after->ring] || is_retired(*p.after)) && (!p.also || p.also());
    };
    const auto give_back = [&](const pending_release& p) {
        // What is registered of it ends here, where no task uses it any more.
        const u64 begin = reinterpret_cast<u64>(p.memory), end = begin + p.bytes;
        for (auto* const holding : {&range_index_, &rects_}) holding->erase(holding->lower_bound(begin), holding->lower_bound(end));
        pool.free.give(p.memory, p.bytes); // it was looked at when it was given up
    };
    while (!pool.pending.empty() && done(pool.pending.front())) {
        give_back(pool.pending.front());
        pool.pending.pop_front();
    }
    if (!all) return;
    std::erase_if(pool.pending, [&](const pending_release& p) {
        if (!done(p)) return false;
        give_back(p);
        return true;
    });
}

/// Null when no piece is as large now; never waits. As a rule memory comes back in the order in which it was given up:
/// the others are looked through only for who would get nothing without.
void* runtime_core::take(lending_pool& pool, u64 bytes)
{
    reclaim(pool, false);
    if (void* const memory = pool.free.take(bytes)) return memory;
    reclaim(pool, true);
    return pool.free.take(bytes);
}

void* runtime_core::allocate(u64 bytes)
{
    const auto refuse = [&](const std::string& text) {
        throw config_error(text + "raise config::memory_bytes (now " + std::to_string(config_.memory_bytes) + ")");
    };
    if (bytes > config_.memory_bytes) refuse(std::to_string(bytes) + " B are more than the memory pool has: ");
    for (u32 attempt = 0;; ++attempt) {
        bool more_to_come = false;
        {
            const std::lock_guard lock(mutex_);
            if (void* const memory = take(pool_, bytes)) return memory;
            more_to_come = !pool_.pending.empty();
        }
        throw_if_dead();
        if (!more_to_come) refuse("the memory pool has no " + std::to_string(bytes) + " B left in one piece: ");
        if (config_.batch)
            refuse("batch mode: the memory pool has no " + std::to_string(bytes)
                   + " B in one piece until run_batch(), which brings back what was released: call it first, or ");
        P::pause(attempt);
    }
}

/// Is this a piece of the pool that was not given up before? Logs what it is otherwise.
bool runtime_core::give_up(void* memory, u64 bytes)
{
    const give_result result = [&] {
        const std::lock_guard lock(mutex_);
        return pool_.free.give_up(memory, bytes);
    }();
    if (result == give_result::taken_back) return true;
    const char* const why = result == give_result::given_twice
        ? "some of it was given back before; give each piece of allocate() back once, and what is a buffer's not at all"
        : "it is no piece of this pool; give back what allocate() of this runtime returned, with the same number of bytes";
    spdlog::warn("slipstream: release() of {} B at {} is ignored: {}", bytes, memory, why);
    return false;
}

void runtime_core::release(void* memory, u64 bytes, std::function<bool()> also, bool submits)
{
    if (memory == nullptr || dead_ || !give_up(memory, bytes)) return;
    pending_release p{.memory = memory, .bytes = bytes, .also = std::move(also)};
    // Another thread's task may have been submitted before and still be taken in behind the one submitted here.
    for (u32 r = 0; r < rings_.size(); ++r) p.low_water[r] = rings_[r]->submitted.load(std::memory_order_acquire);
    // A task that writes the range comes after everything of this thread that declared an access to it.
    const declared_access whole = writes(memory, bytes);
    submit_options options; // without a name, with which it would take the longer way
    options.accesses = list_view<declared_access>(whole);
    try {
        if (submits) {
            task_handle handle;
            (void)submit(image_.types - 1, nullptr, options, true, handle);
            p.after = handle;
            p.low_water[handle.ring] = rings_[handle.ring]->unordered_end;
        }
    } catch (const error&) {
        // No ring for this thread, or none any more, or no room in it for the batch: then it waits for all that was submitted.
    }
    const std::lock_guard lock(mutex_);
    pool_.pending.push_back(p);
}

u32 runtime_core::blocks_for(u64 bytes, u32 workers)
{
    return static_cast<u32>(std::clamp<u64>(bytes / 32768, 1, std::max(1u, workers)));
}

/// A quarter of the staging memory, if that is not very little. A thread holds no piece while it waits for one: they all come back.
u64 runtime_core::staging_piece_max() const { return std::max(config_.staging_bytes / 4, staging_bytes_min); }

/// Staging memory; waits until other copies give some back.
void* runtime_core::take_staging(u64 bytes)
{
    for (u32 attempt = 0;; ++attempt) {
        {
            const std::lock_guard lock(mutex_);
            if (void* const stage = take(staging_, bytes)) return stage;
        }
        throw_if_dead();
        if (config_.batch)
            throw config_error("batch mode: all staging memory is in use until run_batch(); raise config::staging_bytes");
        P::pause(attempt);
    }
}

/// Staging memory for one copy; given back when this ends and `user` is retired.
struct runtime_core::staging_piece {
    staging_piece(runtime_core& c, u64 size) : core(c), bytes(size), memory(core.take_staging(size)) {}
    ~staging_piece()
    {
        const std::lock_guard lock(core.mutex_);
        if (user) core.staging_.pending.push_back({.after = user, .memory = memory, .bytes = bytes});
        else core.staging_.free.give(memory, bytes);
    }
    staging_piece(const staging_piece&) = delete;
    staging_piece& operator=(const staging_piece&) = delete;

    runtime_core& core;
    u64 bytes;
    void* memory;
    std::optional<task_handle> user; ///< the last task that was told of it
};

/// In pieces of their own, each a task. Who waits for the handle of several waits for a task behind all of them, which writes all
/// that they write: so it is ordered behind each, and heals what none of them covers alone, a rectangle's poison. It also reads
/// what the last piece reads: once everything is poisoned the pieces are cancelled, since they read, and it must not say that it
/// all went well.
task_handle runtime_core::upload(void* to, const void* from, u64 bytes)
{
    task_handle handle{};
    u64 done = 0;
    do {
        staging_piece stage(*this, std::min(bytes - done, staging_piece_max()));
        if (stage.bytes != 0) std::memcpy(stage.memory, static_cast<const char*>(from) + done, stage.bytes);
        const copy_task task{{static_cast<const unsigned char*>(stage.memory), stage.bytes},
                             {static_cast<unsigned char*>(to) + done, stage.bytes}};
        submit_options options;
        options.blocks = blocks_for(stage.bytes, memory_.n.workers);
        (void)submit(image_.types - 3, &task, options, true, handle);
        stage.user = handle;
        done += stage.bytes;
        if (done == bytes && stage.bytes != bytes) {
            const declared_access accesses[] = {writes(to, bytes), reads(stage.memory, stage.bytes)};
            options = {};
            options.accesses = std::span<const declared_access>(accesses);
            (void)submit(image_.types - 1, nullptr, options, true, handle);
            stage.user = handle;
        }
    } while (done < bytes);
    return handle;
}

task_error no_result(const task_status& status)
{
    return task_error("this memory holds no result: task " + std::to_string(status.cause.ring) + ":"
                          + std::to_string(status.cause.position) + ", which it goes back to, failed with code "
                          + std::to_string(status.code) + "; write it anew or call clear_failure()",
                      status);
}

void runtime_core::download(void* to, const void* from, u64 bytes)
{
    if (config_.batch)
        throw config_error("batch mode: download() would wait for what runs only in run_batch(); "
                           "submit a copy_task into host memory that the device can write (cudaMallocHost) with the batch, "
                           "or copy by cudaMemcpy behind run_batch()");
    for (u64 done = 0; done < bytes;) {
        staging_piece stage(*this, std::min(bytes - done, staging_piece_max()));
        const copy_task task{{static_cast<const unsigned char*>(from) + done, stage.bytes},
                             {static_cast<unsigned char*>(stage.memory), stage.bytes}};
        submit_options options;
        options.blocks = blocks_for(stage.bytes, memory_.n.workers);
        task_handle handle;
        (void)submit(image_.types - 3, &task, options, true, handle);
        stage.user = handle;
        const task_status status = wait(handle, deadline::max());
        if (!status.ok()) {
            // The copy was cancelled, and its staging memory with it: a pure write that does nothing heals it for the next user.
            const declared_access whole = writes(stage.memory, stage.bytes);
            options = {};
            options.accesses = list_view<declared_access>(whole);
            (void)submit(image_.types - 1, nullptr, options, true, handle);
            stage.user = handle;
            throw no_result(status);
        }
        std::memcpy(static_cast<char*>(to) + done, stage.memory, stage.bytes);
        stage.user.reset();
        done += stage.bytes;
    }
}

/// What the roles leave behind for the host when they end.
void runtime_core::check_away(const char* call) const
{
    // pause() may have found the kernel away just before the service thread, about to launch, saw the pause: away in a moment.
    for (u32 attempt = 0; !away_.load(std::memory_order_acquire); ++attempt) {
        if (!paused_.load(std::memory_order_relaxed)) throw config_error(std::string(call) + " needs pause() or run_batch() first");
        P::pause(attempt);
    }
}

std::vector<flight_entry> runtime_core::flight_log()
{
    check_away("flight_log()");
    std::vector<flight_entry> out;
    for (u32 w = 0; w < memory_.n.workers; ++w) {
        const u64 count = std::min<u64>(P::get(memory_.picks[w]), memory_.n.log_capacity);
        for (u64 i = 0; i < count; ++i) {
            const auto& e = memory_.flight_log[static_cast<u64>(w) * memory_.n.log_capacity + i];
            out.push_back({{e.ring_and_type & 0xff, e.position}, e.ring_and_type >> 8 & 0xffff, w, e.count_and_sm & 0xffff, e.block,
                           e.count_and_sm >> 16, e.wait_ns, e.start_ns, e.end_ns});
        }
    }
    return out;
}

flight_samples runtime_core::flight_samples()
{
    check_away("flight_samples()");
    slipstream::flight_samples out;
    for (u32 w = 0; w < memory_.n.workers; ++w) {
        const u64 picks = P::get(memory_.picks[w]);
        if (memory_.n.log_capacity != 0 && picks > memory_.n.log_capacity) out.lost_runs += picks - memory_.n.log_capacity;
    }
    const u64 told = P::get(memory_.bus[device::samples_told]);
    const u64 kept = std::min<u64>(told, memory_.n.sample_capacity);
    out.lost_samples = told - kept;
    for (u64 i = 0; i < kept; ++i) {
        const device::control_sample& s = memory_.control_log[i];
        out.window.push_back({s.time_ns, s.occupied});
        if (s.ring != device::control_sample::no_ring) out.taken.push_back({s.time_ns, s.ring, s.ring_taken});
    }
    for (u32 r = 0; r < rings_.size(); ++r) {
        for (const ring_history::sample& s : rings_[r]->history.kept()) out.written.push_back({s.time_ns, r, s.written});
        out.lost_writes += rings_[r]->history.lost();
    }
    return out;
}

std::string runtime_core::task_name(task_handle h, u32 type)
{
    if (const ring& r = *rings_.at(h.ring); r.named.load(std::memory_order_acquire)) {
        const named_task& named = r.names[h.position % device::completion_span];
        if (named.position == h.position && !named.name.empty()) return std::string(named.name);
    }
    return type < image_.types ? image_.names[type] : "";
}

bus_traffic runtime_core::bus_traffic() const
{
    check_away("bus_traffic()");
    return bus_traffic_of(memory_);
}

} // namespace slipstream::host

namespace slipstream {

// Here, and not beside the others: of each of them and runtime_core::put_short one function is made.
task_handle runtime_base::put_short(host::runtime_core* core, u32 accesses, const detail::chunk_vector* chunks,
                                    detail::short_size size)
{
    return core->put_short(0, accesses, chunks, size);
}

task_handle runtime_base::put_short_in(u32 part, host::runtime_core* core, u32 accesses, const detail::chunk_vector* chunks,
                                       detail::short_size size)
{
    task_handle handle = core->put_short(part, accesses, chunks, size);
    if (handle.ring == 0) handle.ring = part;
    return handle;
}

} // namespace slipstream
