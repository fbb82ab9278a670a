// An engine made by hand over the host platform: the memory of one control block, without threads, for tests of one role.
#pragma once
#include "device/control.hpp"
#include "device/host_platform.hpp"
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <slipstream/task.hpp>
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
    u32 pool_blocks = 64;
    u32 handles = 16;
};

class hand_made_engine {
public:
    explicit hand_made_engine(const engine_shape& shape, const std::vector<abi::task_type>& types = {})
        : hand_made_engine(sizes_of(shape, static_cast<u32>(types.size())), memory_source{}, types)
    {
    }
    hand_made_engine(const hand_made_engine&) = delete;

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
        n.pool_near_blocks = std::min(shape.pool_blocks, 7u); // chains cross from fast memory to the rest
        n.types = types;
        n.handles = shape.handles;
        return n;
    }

    hand_made_engine(const device::sizes& n, memory_source&& source, const std::vector<abi::task_type>& types)
        : s(n, source), memory_(std::move(source))
    {
        m.n = n;
        const auto take = [&]<class T>(T*& pointer, u64 count) { pointer = memory_.take<T>(count); };
        take(m.rings, static_cast<u64>(n.rings) * n.ring_slots);
        take(m.page, 1);
        take(m.ring_pages, n.rings);
        take(m.complete_bits, static_cast<u64>(n.rings) * device::completion_words);
        take(m.recorder, n.workers);
        take(handles, n.handles);
        m.handles = handles;
        take(m.records, n.window);
        take(m.mailboxes, n.workers);
        take(m.done, n.workers);
        take(m.handle_cache, n.handles);
        take(m.stop, 1);
        take(m.complete_mirror, static_cast<u64>(n.rings) * device::completion_words);
        device::initialise<P>(m, s, types.data());
    }

public:
    device::engine_memory<P> m{};
    device::control_state<P> s;
    abi::handle_entry* handles = nullptr;
    P::team team;

    /// What ingest leaves in a window slot, written directly. Pool blocks come from `next_pool_block` on.
    void fill_slot(u32 slot, u64 id, const std::vector<access_entry>& entries, u32 flags = 0, u32 blocks = 1)
    {
        P::set(s.task_id[slot], id);
        P::set(s.blocks[slot], blocks);
        P::set(s.counts[slot], static_cast<u32>(entries.size()) | flags << 16);
        free_chain(slot);
        u32 previous = device::no_block;
        for (u32 e = 0; e < entries.size(); ++e) {
            if (e < device::inline_accesses) {
                P::set(s.accesses[e * m.n.window + slot], entries[e]);
                continue;
            }
            const u32 at = (e - device::inline_accesses) % device::pool_block_entries;
            if (at == 0) {
                const u32 block = s.pool_free[--*s.pool_free_count];
                P::set(s.pool_next[block], device::no_block);
                if (previous == device::no_block)
                    P::set(s.first_block[slot], block);
                else
                    P::set(s.pool_next[previous], block);
                previous = block;
            }
            P::set(s.pool_entries(previous)[at], entries[e]);
            device::access_box box = at == 0 ? device::access_box::nothing() : P::get(s.pool_box[previous]);
            if (entries[e].is_memory()) box.add(entries[e]);
            P::set(s.pool_box[previous], box);
            P::set(s.pool_owner[previous], slot);
        }
        P::set(s.type[slot], 0u);
        P::set(m.records[slot].blocks, blocks);
        P::store(device::edge::P0_ticket, m.records[slot].next_block, 0u, device::order::relaxed, device::scope::device);
        P::store(device::edge::P4_status, m.records[slot].status, 0u, device::order::relaxed, device::scope::device);
    }

    void free_chain(u32 slot)
    {
        for (u32 b = P::get(s.first_block[slot]); b != device::no_block; b = P::get(s.pool_next[b]))
            s.pool_free[(*s.pool_free_count)++] = b;
        P::set(s.first_block[slot], device::no_block);
    }

private:
    memory_source memory_;
};

} // namespace slipstream::tests
