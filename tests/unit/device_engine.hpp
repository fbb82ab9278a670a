// An engine made by hand, over the host platform as a rule: the memory of one control block, without threads, for tests of a role.
#pragma once
#include "device/control.hpp"
#include "device/worker.hpp"
#include "device/host_platform.hpp"
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <slipstream/task.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

namespace slipstream::tests {

using P = device::host_platform;
using abi::access_entry;
using abi::access_mode;

struct engine_shape {
    u32 window = 32;
    u32 window_used = 0; ///< 0: window
    u32 workers = 2;
    u32 rings = 1;
    u32 ring_slots = 16;
    u32 pool_blocks = 64; ///< multiple of device::pool_word_blocks
    u32 handles = 256;
    bool staging = false;
    bool chaining = false;
    bool bypass = false;
    u32 watch_after = 0;
    u32 broadcast_copies = 0;
    u32 ahead_slots = device::ahead_slots_max;
    bool index = true;    ///< is there room for the access index?
    u32 index_buckets = 0; ///< 0: as many as are wanted
    u32 parts = 1;        ///< of which this one is the first, and the others are not there
};

template <class Platform>
class engine_over {
    using P = Platform;

public:
    explicit engine_over(const engine_shape& shape, const std::vector<abi::task_type>& types = {})
        : engine_over(sizes_of(shape, static_cast<u32>(types.size())), memory_source{}, types)
    {
    }
    engine_over(const engine_over&) = delete;

private:
    /// Hands out zeroed arrays; what control_state and the constructor take their memory from.
    struct memory_source {
        template <class T> T* take(u64 count)
        {
            const std::size_t bytes = std::max<std::size_t>(count * sizeof(T), 16);
            void* const raw = ::operator new(bytes, std::align_val_t{256});
            std::memset(raw, 0, bytes);
            blocks.emplace_back(raw);
            return static_cast<T*>(raw);
        }
        struct give {
            void operator()(void* p) const { ::operator delete(p, std::align_val_t{256}); }
        };
        std::vector<std::unique_ptr<void, give>> blocks;
    };

    static device::sizes sizes_of(const engine_shape& shape, u32 types)
    {
        device::sizes n{};
        n.window = shape.window;
        n.window_used = shape.window_used ? shape.window_used : shape.window;
        n.rings = shape.rings;
        n.ring_slots = shape.ring_slots;
        n.workers = shape.workers;
        n.pool_blocks = shape.pool_blocks;
        n.pool_near_blocks = std::min(shape.pool_blocks, device::pool_word_blocks); // chains cross from fast memory to the rest
        n.index_buckets = !shape.index ? 0 : shape.index_buckets != 0 ? shape.index_buckets : n.index_buckets_wanted();
        n.ahead_slots = shape.ahead_slots;
        n.types = types;
        n.handles = shape.handles;
        n.staging = shape.staging;
        n.chaining = shape.chaining;
        n.bypass = shape.bypass;
        n.watch_after = shape.watch_after;
        n.broadcast_copies = shape.broadcast_copies;
        n.parts = shape.parts;
        return n;
    }

    engine_over(const device::sizes& n, memory_source&& source, const std::vector<abi::task_type>& types)
        : s(n, source), memory_(std::move(source))
    {
        m.n = n;
        const auto take = [&]<class T>(T*& pointer, u64 count) { pointer = memory_.take<T>(count); };
        take(m.rings, static_cast<u64>(n.rings) * n.ring_slots);
        take(m.page, 1);
        take(m.ring_pages, n.rings);
        take(m.complete_bits, static_cast<u64>(n.rings) * device::completion_words);
        take(m.recorder, n.workers);
        take(m.picks, n.workers);
        take(m.bus, device::bus_counts);
        take(handles, n.handles);
        m.handles = handles;
        take(m.records, n.window);
        take(m.mailboxes, n.workers + n.broadcast_copies);
        take(m.done, n.workers);
        take(m.watch, 1);
        take(types_, types.size());
        std::copy(types.begin(), types.end(), types_);
        m.types = types_;
        take(m.handle_cache, n.handles);
        take(m.handle_pages, n.handles);
        take(m.stop, 1);
        take(m.complete_mirror, static_cast<u64>(n.rings) * device::completion_words);
        if (n.parts > 1) {
            take(m.channels, static_cast<u64>(n.parts) * n.parts * n.channel_slots());
            take(m.staging_channels, static_cast<u64>(n.parts) * n.parts * n.staging_channel_slots());
            take(m.part_records, n.parts);
            take(m.part_clocks, n.parts);
            m.part_records[0] = m.records;
        }
        device::initialise<P>(m, s, types.data());
    }

public:
    device::engine_memory<P> m{};
    device::control_state<P> s;
    abi::handle_entry* handles = nullptr;
    abi::task_type* types_ = nullptr; ///< m.types
    typename P::team team;
    typename P::crew crew;

    /// An access by a handle, for fill_slot.
    static access_entry registered(access_entry e)
    {
        e.head |= u64{1} << 63;
        return e;
    }

    /// What admission finds for the task at `position` of the admitted queue: whom it waits for. The queue's place.
    u32 set_predecessors(u32 position, const std::vector<u32>& slots)
    {
        const u32 place = position % device::admitted_max;
        for (u32 g = 0; g < m.n.groups(); ++g) P::set(s.predecessors[place * m.n.groups() + g], 0u);
        P::set(s.named_count[place], 0u);
        for (const u32 slot : slots) device::access_batch<P>(m, s).set_wait(team, place, slot);
        return place;
    }

    /// What ingest leaves in a window slot, written directly. Pool blocks come from the stack, in its order.
    void fill_slot(u32 slot, u64 id, const std::vector<access_entry>& entries, u32 flags = 0, u32 blocks = 1)
    {
        const u32 count = static_cast<u32>(entries.size());
        P::set(s.task_id[slot], id);
        P::set(s.heads[slot], device::task_head{slot, device::identity_of(id), blocks, count | flags << 16});
        free_chain(slot);
        u32 last = device::no_block;
        for (u32 e = 0; e < count; ++e) {
            const u32 at = e % device::pool_block_entries;
            if (at == 0) {
                const u32 block = s.pool_free[--*s.pool_free_count];
                P::set(s.pool_next[block], device::no_block);
                P::set(s.pool_tags[block], device::pool_tag::make(slot, 0, 0).word);
                P::set(last == device::no_block ? s.first_block[slot] : s.pool_next[last], block);
                last = block;
            }
            const bool by_handle = (entries[e].head >> 63) != 0;
            const access_entry plain{entries[e].head & ~(u64{1} << 63), entries[e].tail};
            s.set_pool_entry(last, at, device::table_entry::of(plain, by_handle));
            if (entries[e].kind() == abi::entry_kind::rect)
                P::set(s.pool_shapes[last * device::pool_block_entries + at], entries[e].tail);
            if (by_handle) P::set(s.pool_handles[last * device::pool_block_entries + at], handle_of(plain));
            const device::pool_tag tag = device::pool_tag::make(0, entries[e].is_memory() ? 1u << at : 0,
                                                                entries[e].kind() == abi::entry_kind::after ? 1u << at : 0);
            P::set(s.pool_tags[last], P::get(s.pool_tags[last]) | tag.word);
        }
        P::set(s.outstanding[slot], blocks > m.n.workers ? 1 : blocks);
        P::set(s.dealt[slot], 0u);
        P::set(m.records[slot].blocks, blocks);
        P::store(device::edge::P0_ticket, m.records[slot].next_block, 0u, device::order::relaxed, device::scope::device);
        P::store(device::edge::P4_status, m.records[slot].status, 0u, device::order::relaxed, device::scope::device);
    }

    /// What admission does first with a task that ingest has decoded.
    void resolve(u32 slot)
    {
        const device::entry_resolver<P> resolver(m, s);
        const u32 type = P::get(s.heads[slot]).slot_and_type >> 16;
        u32 member = 0;
        for (u32 block = P::get(s.first_block[slot]); block != device::no_block; block = P::get(s.pool_next[block])) {
            const u32 due = device::pool_tag{P::get(s.pool_tags[block])}.unresolved();
            u32 memory = 0;
            for (u32 i = 0; i < device::pool_block_entries; ++i, ++member) {
                if (!(due >> i & 1)) continue;
                const auto entry = s.pool_entry(block, i);
                memory |= static_cast<u32>(device::entry_resolver<P>::is_memory(
                              resolver.resolve(entry, resolver.named_by(entry), slot, type, block, i, member))) << i;
            }
            if (due != 0) P::set(s.pool_tags[block], device::pool_tag::make(slot, memory, 0).word);
        }
    }

    /// The entries of a slot's chain. Where the block's tag knows of none there is none, whatever an earlier task left there.
    std::vector<access_entry> entries_of(u32 slot) const
    {
        std::vector<access_entry> out;
        const u32 count = P::get(s.heads[slot]).entries();
        u32 block = P::get(s.first_block[slot]);
        for (u32 e = 0; e < count; ++e) {
            if (e != 0 && e % device::pool_block_entries == 0) block = P::get(s.pool_next[block]);
            const u32 at = e % device::pool_block_entries;
            const device::pool_tag tag{P::get(s.pool_tags[block])};
            const bool used = (tag.memory() | tag.after()) >> at & 1;
            const u64 shape = P::get(s.pool_shapes[block * device::pool_block_entries + at]);
            out.push_back(used ? s.pool_entry(block, at).access(shape) : access_entry{0, 0});
        }
        return out;
    }

    /// Is the access table as it was before the first task?
    bool remembers_nothing() const
    {
        const auto& n = m.n;
        const auto all_zero = [](const u32* words, u32 count) {
            return std::all_of(words, words + count, [](u32 w) { return w == 0; });
        };
        return all_zero(s.live, n.pool_words()) && all_zero(s.indexed, n.pool_words()) && all_zero(s.covered, n.pool_words())
            && all_zero(s.exposed, n.groups()) && all_zero(s.booked, n.groups()) && all_zero(s.spilled, n.groups())
            && all_zero(s.index_live, device::index_classes)
            && all_zero(s.index_buckets->places, 2 * n.index_buckets * (sizeof(device::index_bucket) / sizeof(u32)))
            && all_zero(&s.batch_cells->key, (sizeof(device::batch_cell) / sizeof(u32)) << device::batch_cells_bits);
    }

    void free_chain(u32 slot)
    {
        for (u32 b = P::get(s.first_block[slot]); b != device::no_block; b = P::get(s.pool_next[b]))
            s.pool_free[(*s.pool_free_count)++] = b;
        P::set(s.first_block[slot], device::no_block);
    }

private:
    /// Handles are numbered as they are met.
    u32 handle_of(const access_entry& e)
    {
        const u32 known = static_cast<u32>(numbers_.size());
        const u32 number = numbers_.try_emplace({e.begin(), e.kind() == abi::entry_kind::rect}, known).first->second;
        if (number >= m.n.handles) throw std::logic_error("this engine has too few handles");
        return number;
    }

    memory_source memory_;
    std::map<std::pair<u64, bool>, u32> numbers_;
};

using hand_made_engine = engine_over<P>;

} // namespace slipstream::tests
