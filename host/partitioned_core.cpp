// Which parts a task touches, what each of them is told, and what they tell as the caller knows it.
#include "host/partitioned_core.hpp"
#include <bit>
#include <cstring>

namespace slipstream::host {
namespace {

template <class Visit>
void for_each_bit(u32 bits, const Visit& visit)
{
    for (; bits != 0; bits &= bits - 1) visit(static_cast<u32>(std::countr_zero(bits)));
}

u64 bounding_bytes(const declared_access& a) { return a.rows > 1 ? (a.rows - 1) * a.pitch + a.bytes : a.bytes; }
/// Of the stand-ins of a task.
u32 stand_in_flags(u32 blocks, u32 stand_ins, u32 flags = 0)
{
    return abi::counts_for_stand_ins(blocks, stand_ins, (flags & abi::flag_clear_failure) != 0) ? u32{abi::flag_counted} : 0u;
}
u32 share_of(u32 all, u32 parts, u32 part) { return all / parts + (part < all % parts ? 1 : 0); }

/// What each part is made with: of SMs, or of worker threads, its share.
std::vector<config> divide(const config& whole, const kernel_image& image)
{
    const std::optional<int> gpu = gpu_of(whole, image);
    std::vector<config> out(whole.parts, whole);
    const u32 sms = gpu ? cuda_multiprocessors(*gpu) : 0;
    if (gpu && sms != 0 && sms < u64{whole.sms_left_free} + 2ull * whole.parts)
        throw config_error("parts = " + std::to_string(whole.parts) + ": each needs two SMs, and this GPU has "
                           + std::to_string(sms) + ", less sms_left_free = " + std::to_string(whole.sms_left_free));
    const u32 threads = whole.host_workers != 0 ? whole.host_workers : host_workers_usual();
    for (u32 p = 0; p < whole.parts; ++p) {
        config& c = out[p];
        c.device = gpu ? "cuda:" + std::to_string(*gpu) : "host";
        if (sms != 0) // without a GPU the first part says what is wrong
            c.sms_left_free = sms - share_of(sms - whole.sms_left_free, whole.parts, p);
        c.host_workers = std::max(1u, share_of(threads, whole.parts, p));
    }
    return out;
}

config checked(config c)
{
    if (c.parts < 1 || c.parts > abi::parts_max)
        throw config_error("parts = " + std::to_string(c.parts) + ": must be 1 to " + std::to_string(abi::parts_max));
    if (c.batch)
        throw config_error("parts = " + std::to_string(c.parts)
                           + ": batch mode has one part; set config::batch to false, or config::parts to 1");
    c.rings = 1;
    return c;
}

} // namespace

partitioned_core::partitioned_core(const config& configuration, const kernel_image& image, const beginning& start)
    : image_(image), config_(checked(configuration))
{
    const std::vector<config> each = divide(config_, image);
    // All memory is taken before the first kernel: nothing is allocated while one is resident.
    for (u32 p = 0; p < config_.parts; ++p) {
        const membership member{config_.parts, p, p == 0 ? nullptr : cores_.front().get()};
        cores_.push_back(std::make_unique<runtime_core>(each[p], image, start, member));
        core_list_.push_back(cores_.back().get());
        const auto [address, bytes] = cores_.back()->pool_range();
        map_.add_pool(address, bytes, p);
    }
    config_ = cores_.front()->configuration(); // with numbers rounded up
    config_.device = configuration.device;
    config_.sms_left_free = configuration.sms_left_free;
    config_.host_workers = configuration.host_workers;
    part_of_handle_.resize(config_.handles_max);
    table_ = make_table();
}

detail::part_table partitioned_core::make_table() const
{
    detail::part_table out{part_of_handle_.data(), config_.handles_max, core_list_.data(), parts()};
    for (u32 p = 0; p < parts(); ++p) std::tie(out.pools[p].begin, out.pools[p].bytes) = cores_[p]->pool_range();
    return out;
}

partitioned_core::~partitioned_core()
{
    // A crossing task needs all of its parts until the end, and where one's memory is given back no other's kernel is resident.
    for (const auto& core : cores_) core->begin_end();
    for (const auto& core : cores_) core->wait_for_end();
    for (const auto& core : cores_) core->begin_leave();
    for (const auto& core : cores_) core->leave();
}

/// Takes the rings for this thread, or says that another one has them: who has part 0's has all.
void partitioned_core::claim() { cores_.front()->claim_ring(); }

runtime_core& partitioned_core::owner_of(task_handle handle)
{
    if (handle.ring >= parts()) throw config_error("this handle is not of this runtime");
    return *cores_[handle.ring];
}

const memory_map& partitioned_core::map_seen()
{
    if (map_version_.load(std::memory_order_acquire) != map_copied_) {
        const std::lock_guard lock(mutex_);
        map_copy_ = map_;
        map_copied_ = map_version_.load(std::memory_order_relaxed);
    }
    return map_copy_;
}

/// Bits; none: an empty range. What is no handle of this engine ends here, before any part was told of the task.
u32 partitioned_core::parts_touched(const declared_access& a)
{
    cores_.front()->check_handles(a.handle_plus_one);
    if (const u32 handle = a.handle_plus_one - 1; handle < part_of_handle_.size()) return 1u << part_of_handle_[handle];
    return map_seen().parts_of(a.address, bounding_bytes(a));
}

/// Typed members and declared ones, as far as they order anything.
template <class Visit>
void partitioned_core::for_each_access(u32 type, const void* task, const submit_options& options, const Visit& visit) const
{
    if (options.order != ordering::by_access) return;
    const abi::task_type& layout = image_.table[type];
    for (u32 k = 0; k < layout.members; ++k) {
        const unsigned char* const at = static_cast<const unsigned char*>(task) + 4 * layout.member_offset[k];
        detail::packed_range range;
        std::memcpy(&range, at, sizeof range);
        u32 rows_and_pitch[2] = {1, 0};
        if (layout.rect_mask >> k & 1) std::memcpy(rows_and_pitch, at + sizeof range, sizeof rows_and_pitch);
        visit(declared_access{static_cast<access_mode>(layout.member_mode[k]), range.address,
                              range.bytes_and_handle & detail::member_bytes_max, rows_and_pitch[0], rows_and_pitch[1],
                              static_cast<u32>(range.bytes_and_handle >> detail::member_handle_shift)});
    }
    for (const declared_access& a : options.accesses) visit(a);
}

/// Home is where a task writes first, or else reads first, or else has its first predecessor; those that have neither go to all
/// parts in turns.
partitioned_core::route partitioned_core::route_of(u32 type, const void* task, const submit_options& options)
{
    for (const task_handle& a : options.after) {
        if (a.ring >= parts()) throw config_error("`after` names a handle that is not of this runtime");
        cores_[a.ring]->refuse_own_future({0, a.position}); // now: one that crosses would be in some of the rings already
    }
    const u32 members = image_.table[type].members;
    const bool too_many = options.after.size() + members + options.accesses.size() > config_.accesses_max;
    const bool nothing = members == 0 && options.accesses.empty();
    if (options.order == ordering::whole_memory || too_many || (options.order == ordering::by_access && nothing))
        return {0, (1u << parts()) - 1, true};

    u32 touched = 0, reads = 0, writes = 0; // reads, writes: by the first access that does anything, or writes
    for_each_access(type, task, options, [&](const declared_access& a) {
        const u32 parts = parts_touched(a);
        touched |= parts;
        if (reads == 0) reads = parts;
        if (writes == 0 && (static_cast<u32>(a.mode) & 2) != 0) writes = parts;
    });
    const auto anywhere = [&] { return options.after.empty() ? turn_++ % parts() : options.after.front().ring; };
    const u32 first = writes != 0 ? writes : reads != 0 ? reads : 1u << anywhere();
    route way{static_cast<u32>(std::countr_zero(first)), touched | first, false};
    for (const task_handle& a : options.after)
        if ((way.parts >> a.ring & 1) == 0 && matters(a)) way.parts |= 1u << a.ring;
    return way;
}

submit_status partitioned_core::submit(u32 type, const void* task, const submit_options& options, bool may_block,
                                       task_handle& handle, u32 flags)
{
    if (flags == 0 && type < image_.types && submit_short(type, task, options, may_block, handle) == submit_status::submitted)
        return submit_status::submitted;
    claim();
    if (type >= image_.types) return cores_.front()->submit(type, task, options, may_block, handle); // says that there is none
    const route way = route_of(type, task, options);
    if (way.crosses()) return submit_crossing(way, type, task, options, may_block, handle, flags);
    runtime_core& core = *cores_[way.home];
    const submit_status status = options.after.empty()
                                     ? core.submit(type, task, options, may_block, handle)
                                     : core.submit(type, task, told_to(way.home, way, options), may_block, handle);
    if (status == submit_status::submitted) handle.ring = way.home;
    return status;
}

/// Of nearly every task: where each of its accesses lies in one part, and that is quickly said. Home is route_of's.
/// Full: nothing was done, and the other way finds out why.
submit_status partitioned_core::submit_short(u32 type, const void* task, const submit_options& options, bool may_block,
                                             task_handle& handle)
{
    const abi::task_type& layout = image_.table[type];
    message_room message;
    const direct_size size = put_direct<true>(message, type, layout, task, options, config_.accesses_max,
                                              cores_.front()->handles_given(), &table_);
    if (size.crosses()) {
        located_accesses accesses;
        accesses.gather(layout, task, options, table_);
        return submit_short_crossing(accesses, type, task, options.blocks, may_block, handle);
    }
    if (size.slots == 0) return submit_status::full;
    const bool unordered = options.order == ordering::no_access;
    const u32 home = unordered ? turn_ % parts() : static_cast<u32>(std::countr_zero(size.parts));
    const task_handle done = cores_[home]->put_listed(message, size.slots, options.order);
    if (done == task_handle{}) return submit_status::full;
    handle = {home, done.position};
    if (unordered) ++turn_;
    return submit_status::submitted;
}

/// The options of a task in one part: of `after` what is of that part, as that part's ring calls it.
submit_options partitioned_core::told_to(u32 part, const route& way, const submit_options& options)
{
    auto& after = after_[part];
    after.clear();
    for (const task_handle& a : options.after)
        if (a.ring == part && (!way.crosses() || matters(a))) after.push_back({0, a.position});
    submit_options told = options;
    told.after = list_view<task_handle>(after);
    if (way.whole) told.order = ordering::whole_memory;
    return told;
}

/// Where it crosses.
submit_options partitioned_core::told_to_home(const route& way, u32 type, const submit_options& options)
{
    submit_options told = told_to(way.home, way, options);
    told.accesses = list_view<declared_access>(declared_[way.home]);
    // It touches nothing there, and must not be taken for one that declares nothing.
    if (!way.whole && image_.table[type].members == 0 && declared_[way.home].empty()) told.order = ordering::no_access;
    return told;
}

submit_options partitioned_core::told_to_stand_in(u32 part, const route& way, const submit_options& options)
{
    submit_options told = told_to(part, way, options);
    told.blocks = 1;
    told.name = {}; // it is the task's: a report says of a stand-in that it is one
    told.accesses = list_view<declared_access>(declared_[part]);
    if (!way.whole && declared_[part].empty()) told.order = ordering::no_access;
    return told;
}

/// What each part has to know of, and no other: poison, for one, is noted and healed where the memory is. (Of a rectangle that
/// reaches into several they all have all.) The home has the typed members anyway; returns those that are not its own.
u32 partitioned_core::share_accesses(const route& way, u32 type, const void* task, const submit_options& options)
{
    for_each_bit(way.parts, [&](u32 p) { declared_[p].clear(); });
    if (way.whole) return 0;
    const u32 members = image_.table[type].members;
    u32 foreign = 0, k = 0;
    for_each_access(type, task, options, [&](const declared_access& a) {
        const u32 touched = parts_touched(a);
        const bool own_member = k < members && touched == 1u << way.home;
        if (k < members && !own_member) foreign |= 1u << k;
        ++k;
        if (own_member) return;
        if ((touched & (touched - 1)) != 0 && a.rows <= 1)
            map_seen().for_each_piece(a.address, a.bytes, [&](u64 begin, u64 end, u32 p) {
                declared_[p].push_back({a.mode, begin, end - begin});
            });
        else
            for_each_bit(touched, [&](u32 p) { declared_[p].push_back(a); });
    });
    return foreign;
}

/// As submit_crossing(), for nearly every task that crosses. Full: nothing was done, and that one finds out why.
submit_status partitioned_core::submit_short_crossing(const located_accesses& accesses, u32 type, const void* task, u32 blocks,
                                                      bool may_block, task_handle& handle)
{
    const abi::task_type& layout = image_.table[type];
    const u32 slots = slots_of_chunks(1 + accesses.count + chunks_of_scalars(layout.scalars)); // of each message, at most
    bool room = slots <= abi::message_plain_slots;
    for_each_bit(accesses.parts, [&](u32 p) { room = room && cores_[p]->takes_short(slots); });
    const std::optional<u32> meeting = room ? take_meeting(accesses.home, may_block) : std::nullopt;
    if (!meeting) return submit_status::full;

    const u32 others = accesses.parts & ~(1u << accesses.home), stand_in_type = image_.types - 1;
    const u32 stand_ins = static_cast<u32>(std::popcount(others)), stand_ins_flags = stand_in_flags(blocks, stand_ins);
    message_room message;
    const u32 taken = make_message(message, accesses, layout, task, type, blocks, abi::crossing_word::make(*meeting, stand_ins));
    const u64 position = cores_[accesses.home]->put_taken(message, taken);
    meetings_[accesses.home].held_by[*meeting] = position;
    crossing_entry entry{accesses.home, accesses.parts};
    entry.positions[accesses.home] = position;
    const abi::crossing_word at_home = abi::crossing_word::make(*meeting, accesses.home);
    for_each_bit(others, [&](u32 p) {
        const u32 taken_there = make_stand_in(message, accesses, p, stand_in_type, stand_ins_flags, at_home);
        entry.positions[p] = cores_[p]->put_taken(message, taken_there);
    });
    note(entry);
    handle = {accesses.home, position};
    return submit_status::submitted;
}

submit_status partitioned_core::submit_crossing(const route& way, u32 type, const void* task, const submit_options& options,
                                                bool may_block, task_handle& handle, u32 flags)
{
    const u32 others = way.parts & ~(1u << way.home), stand_in_type = image_.types - 1;
    const u32 foreign_members = share_accesses(way, type, task, options);
    const submit_options home = told_to_home(way, type, options);
    std::array<submit_options, abi::parts_max> stand_in;
    bool room = may_block || cores_[way.home]->has_room(type, task, home);
    for_each_bit(others, [&](u32 p) {
        stand_in[p] = told_to_stand_in(p, way, options);
        cores_[p]->check_after(stand_in[p].after.size()); // before anything is submitted anywhere
        room = room && (may_block || cores_[p]->has_room(stand_in_type, nullptr, stand_in[p]));
    });
    if (!room) for_each_bit(way.parts, [&](u32 p) { cores_[p]->throw_if_dead(); }); // there will be none
    const std::optional<u32> meeting = room ? take_meeting(way.home, may_block) : std::nullopt;
    if (!meeting) return submit_status::full;

    task_handle local;
    const u32 stand_ins = static_cast<u32>(std::popcount(others));
    const crossing crosses{abi::crossing_word::make(*meeting, stand_ins), false, foreign_members};
    (void)cores_[way.home]->submit(type, task, home, true, local, flags, &crosses);
    handle = {way.home, local.position};
    meetings_[way.home].held_by[*meeting] = local.position;
    crossing_entry entry{way.home, way.parts};
    entry.positions[way.home] = local.position;
    const crossing stands_in{abi::crossing_word::make(*meeting, way.home), true};
    for_each_bit(others, [&](u32 p) {
        (void)cores_[p]->submit(stand_in_type, nullptr, stand_in[p], true, local,
                                flags | stand_in_flags(options.blocks, stand_ins, flags), &stands_in);
        entry.positions[p] = local.position;
    });
    note(entry);
    return submit_status::submitted;
}

void partitioned_core::note(const crossing_entry& entry)
{
    book_.note(entry, [&](task_handle place) { return cores_[place.ring]->query({0, place.position}); });
}

/// A number for the next task with this home; none: its last task is not retired, and may not be waited for.
std::optional<u32> partitioned_core::take_meeting(u32 home, bool may_block)
{
    meeting_list& list = meetings_[home];
    const u32 number = static_cast<u32>(list.next % abi::meetings_max);
    if (const std::optional<u64> position = list.held_by[number]; position && *position >= list.low_water_seen) {
        list.low_water_seen = cores_[home]->low_water(0);
        for (u32 attempt = 0; !cores_[home]->is_retired({0, *position}); ++attempt) {
            cores_[home]->throw_if_dead();
            if (!may_block) return {};
            P::pause(attempt);
        }
    }
    ++list.next;
    return number;
}

/// Where the failure is for which a stand-in of the task was cancelled, in the terms of that part.
/// known: false when that may still turn out.
std::optional<task_handle> partitioned_core::origin_of(const crossing_entry& entry, bool& known)
{
    std::optional<task_handle> origin;
    known = true;
    for_each_bit(entry.parts & ~(1u << entry.home), [&](u32 p) {
        const task_status s = cores_[p]->query({0, entry.positions[p]});
        if (s.state == task_state::cancelled && !origin) origin = task_handle{p, s.cause.position};
        known &= s.state != task_state::pending;
    });
    return origin;
}

/// What has become of the task at a place, or, if something was cancelled for it, of that. Pending also while the home has told
/// and some stand-in has not. A part says of a task that was cancelled for a stand-in, and of a stand-in whose task did not
/// succeed, that they failed with status_crossing. Ends: each step goes to something that failed earlier.
task_status partitioned_core::status_of(task_handle place, bool is_cause)
{
    std::optional<task_handle> crossed; // the first task on the way that was cancelled for what happened in another part
    task_status result;
    for (;;) {
        const task_status s = owner_of(place).query({0, place.position});
        if (s.state == task_state::pending || s.ok()) return s;
        if (s.state == task_state::cancelled) {
            place.position = s.cause.position;
            is_cause = true;
            continue;
        }
        result = {is_cause ? task_state::cancelled : task_state::failed, s.code, place};
        const std::optional<crossing_entry> entry = s.code == abi::status_crossing ? book_.find(place) : std::nullopt;
        if (!entry) break;
        is_cause = true;
        if (entry->task() != place) {
            place = entry->task();
            continue;
        }
        if (const std::optional<task_status> known = book_.remembered(place)) {
            result = *known;
            break;
        }
        bool known = false;
        const std::optional<task_handle> origin = origin_of(*entry, known);
        if (!origin && !known) return {};
        if (!origin) break; // its body gave this code
        if (!crossed) crossed = place;
        place = *origin;
    }
    if (crossed) book_.remember(*crossed, result);
    return result;
}

task_status partitioned_core::wait_for_status(task_handle place, bool is_cause, deadline until)
{
    for (u32 attempt = 0;; ++attempt) {
        const task_status status = status_of(place, is_cause);
        if (status.state != task_state::pending) return status;
        if (attempt % 16 == 15 && std::chrono::steady_clock::now() >= until) return {};
        P::pause(attempt);
    }
}

task_status partitioned_core::query(task_handle handle) { return status_of(handle); }

task_status partitioned_core::wait(task_handle handle, deadline until)
{
    const task_status status = owner_of(handle).wait({0, handle.position}, until);
    return status.state == task_state::pending || status.ok() ? status : wait_for_status(handle, false, until);
}

bool partitioned_core::wait_all(deadline until)
{
    for (const auto& core : cores_)
        if (!core->wait_all(until)) return false;
    return true;
}

/// In all parts at once: each forgets its poison when the turn of its own piece of it comes,
/// with everything before it retired everywhere.
task_handle partitioned_core::clear_failure()
{
    submit_options options;
    options.order = ordering::whole_memory;
    options.name = "clear_failure";
    task_handle handle;
    (void)submit(image_.types - 1, nullptr, options, true, handle, abi::flag_clear_failure);
    return handle;
}

void partitioned_core::after_stream(cuda_stream stream)
{
    claim();
    for (const auto& core : cores_) core->after_stream(stream);
}

void partitioned_core::signal_stream(cuda_stream stream, task_handle handle)
{
    owner_of(handle).signal_stream(stream, {0, handle.position});
}

void partitioned_core::pause()
{
    for (const auto& core : cores_) core->begin_pause();
    for (const auto& core : cores_) core->pause();
}

void partitioned_core::resume()
{
    for (const auto& core : cores_) core->resume();
}

/// Called with mutex_ held.
u32 partitioned_core::one_part(const void* data, u64 bytes, const char* what)
{
    const u32 touched = map_.parts_of(reinterpret_cast<u64>(data), bytes);
    if ((touched & (touched - 1)) == 0) return touched == 0 ? 0 : static_cast<u32>(std::countr_zero(touched));
    std::string list;
    for_each_bit(touched, [&](u32 p) { list += (list.empty() ? "" : ", ") + std::to_string(p); });
    throw config_error(std::string(what) + ": this memory reaches into several parts of the engine (" + list
                       + "): name what lies in each on its own, or place() all of it in one before");
}

data_handle partitioned_core::register_range(const void* data, u64 bytes, u64 rows, u64 pitch)
{
    const std::lock_guard lock(mutex_);
    const u64 bounding = bounding_bytes({.bytes = bytes, .rows = rows, .pitch = pitch});
    const u32 part = one_part(data, bounding, "register");
    const u32 before = cores_[part]->handles();
    const data_handle handle = cores_[part]->register_range(data, bytes, rows, pitch);
    if (handle.index < before) return handle;
    for (const auto& core : cores_)
        if (core != cores_[part]) core->adopt(handle);
    part_of_handle_[handle.index] = static_cast<u8>(part);
    if (part == 0 && !map_.holds(handle.address, bounding))
        registered_unplaced_.push_back({handle.address, handle.address + bounding});
    return handle;
}

void partitioned_core::place(const void* data, u64 bytes, u32 part)
{
    if (part >= parts())
        throw config_error("part " + std::to_string(part) + ": this engine has " + std::to_string(parts())
                           + ", from 0 on; see config::parts");
    if (data == nullptr || bytes == 0) throw config_error("cannot place empty memory");
    const u64 begin = detail::checked_begin(data, bytes), end = begin + bytes;
    {
        const std::lock_guard lock(mutex_);
        if (map_.holds(begin, bytes) && map_.part_of(begin) == part) return;
    }
    wait_all(deadline::max());
    const std::lock_guard lock(mutex_);
    if (part != 0)
        for (const auto& [from, to] : registered_unplaced_)
            if (begin < to && from < end)
                throw config_error("cannot place this memory in part " + std::to_string(part)
                                   + ": some of it is registered, which made it part 0's; place it before it is registered");
    map_.place(begin, bytes, part);
    map_version_.fetch_add(1, std::memory_order_release);
}

u32 partitioned_core::part_of(const void* data)
{
    const std::lock_guard lock(mutex_);
    return map_.part_of(reinterpret_cast<u64>(data));
}

void* partitioned_core::allocate(u64 bytes, u32 part)
{
    if (part >= parts())
        throw config_error("part " + std::to_string(part) + ": this engine has " + std::to_string(parts())
                           + ", from 0 on; see config::parts");
    return cores_[part]->allocate(bytes);
}

/// What declares an access to it has one in the part that it belongs to. A task whose accesses order nothing may be anywhere.
void partitioned_core::release(void* memory, u64 bytes)
{
    const u32 part = part_of(memory);
    const bool mine = cores_.front()->holds_ring(); // else whoever gives memory back would be the one that submits
    std::array<u64, abi::parts_max> marks{};
    bool some = false;
    for (u32 p = 0; p < parts(); ++p) {
        if (p == part) continue;
        marks[p] = mine ? cores_[p]->unordered_end(0) : cores_[p]->submitted(0);
        some |= cores_[p]->low_water(0) < marks[p];
    }
    std::function<bool()> elsewhere;
    if (some)
        elsewhere = [this, marks] {
            for (u32 p = 0; p < parts(); ++p)
                if (cores_[p]->low_water(0) < marks[p]) return false;
            return true;
        };
    cores_[part]->release(memory, bytes, std::move(elsewhere), mine);
}

task_handle partitioned_core::upload(void* to, const void* from, u64 bytes)
{
    claim();
    const u32 part = [&] {
        const std::lock_guard lock(mutex_);
        return one_part(to, bytes, "upload");
    }();
    return {part, cores_[part]->upload(to, from, bytes).position};
}

void partitioned_core::download(void* to, const void* from, u64 bytes)
{
    claim();
    const u32 part = [&] {
        const std::lock_guard lock(mutex_);
        return one_part(from, bytes, "download");
    }();
    try {
        cores_[part]->download(to, from, bytes);
    } catch (const task_error& e) {
        throw no_result(wait_for_status({part, e.status().cause.position}, true, deadline::max()));
    }
}

u32 partitioned_core::workers() const
{
    u32 sum = 0;
    for (const auto& core : cores_) sum += core->device().workers();
    return sum;
}

u32 partitioned_core::control_blocks() const
{
    u32 sum = 0;
    for (const auto& core : cores_) sum += core->device().control_blocks();
    return sum;
}

u64 partitioned_core::launches() const
{
    u64 sum = 0;
    for (const auto& core : cores_) sum += core->launches();
    return sum;
}

/// One part's workers after another's.
std::vector<flight_entry> partitioned_core::flight_log()
{
    std::vector<flight_entry> out;
    u32 workers_before = 0;
    for (u32 p = 0; p < parts(); ++p) {
        for (flight_entry e : cores_[p]->flight_log()) {
            e.task.ring = p;
            e.worker += workers_before;
            out.push_back(e);
        }
        workers_before += cores_[p]->device().workers();
    }
    return out;
}

/// The windows together, and each part's ring.
flight_samples partitioned_core::flight_samples()
{
    slipstream::flight_samples out;
    std::vector<std::pair<slipstream::flight_samples::window_sample, u32>> windows;
    for (u32 p = 0; p < parts(); ++p) {
        slipstream::flight_samples own = cores_[p]->flight_samples();
        for (const auto& s : own.window) windows.push_back({s, p});
        for (auto s : own.taken) out.taken.push_back({s.time_ns, p, s.slots});
        for (auto s : own.written) out.written.push_back({s.time_ns, p, s.slots});
        out.lost_runs += own.lost_runs;
        out.lost_samples += own.lost_samples;
        out.lost_writes += own.lost_writes;
    }
    std::ranges::stable_sort(windows, {}, [](const auto& s) { return s.first.time_ns; });
    std::array<u32, abi::parts_max> occupied{};
    u32 sum = 0;
    for (const auto& [sample, p] : windows) {
        sum += sample.occupied - occupied[p];
        occupied[p] = sample.occupied;
        out.window.push_back({sample.time_ns, sum});
    }
    return out;
}

bus_traffic partitioned_core::bus_traffic() const
{
    slipstream::bus_traffic sum;
    for (const auto& core : cores_) sum = sum + core->bus_traffic();
    return sum;
}

} // namespace slipstream::host
