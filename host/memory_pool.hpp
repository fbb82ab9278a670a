// A first-fit allocator over one range of addresses; bookkeeping lives on the host, the memory may be anywhere.
#pragma once
#include <iterator>
#include <map>
#include <slipstream/abi/portable.hpp>

namespace slipstream::host {

/// Not thread-safe: the owner locks.
class memory_pool {
public:
    static constexpr u64 alignment = 256;

    memory_pool() = default;
    memory_pool(void* base, u64 bytes)
    {
        if (bytes) free_[reinterpret_cast<u64>(base)] = bytes;
    }

    /// Null when no hole is large enough.
    void* take(u64 bytes)
    {
        bytes = rounded(bytes);
        for (auto hole = free_.begin(); hole != free_.end(); ++hole) {
            if (hole->second < bytes) continue;
            const u64 address = hole->first;
            const u64 rest = hole->second - bytes;
            free_.erase(hole);
            if (rest) free_[address + bytes] = rest;
            return reinterpret_cast<void*>(address);
        }
        return nullptr;
    }

    void give(void* memory, u64 bytes)
    {
        u64 address = reinterpret_cast<u64>(memory);
        bytes = rounded(bytes);
        auto next = free_.lower_bound(address);
        if (next != free_.begin()) {
            auto before = std::prev(next);
            if (before->first + before->second == address) {
                address = before->first;
                bytes += before->second;
                free_.erase(before);
            }
        }
        if (next != free_.end() && address + bytes == next->first) {
            bytes += next->second;
            free_.erase(next);
        }
        free_[address] = bytes;
    }

private:
    static u64 rounded(u64 bytes) { return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment; }
    std::map<u64, u64> free_; ///< address -> bytes
};

} // namespace slipstream::host
