// Finds on the host which earlier tasks a task must wait for: RAW, WAR and WAW on exact byte ranges and 2-D ranges.
//
// Memory that somebody used lies in regions: a range or rectangle, the last task that wrote all of it, and the tasks that read
// all of it since. Regions are kept by size class and address: a look-up walks those whose bounding range can reach the access.
// Superseding keeps them few: what a write covers is dropped, a range that it covers in part is cut down to the rest;
// rectangles that are covered in part stay whole (an edge too many is transitive at worst: the task really used those bytes).
// Most accesses are to a region of the same shape that meets no other one (a tile, a buffer): such a region is `alone` and is
// found through a small cache without a walk. Measured: 0.04 us a task on 128 chains (README.md).
//
// Not thread-safe. Tasks are admitted in program order, with ascending numbers.
#pragma once
#include <compare>
#include <map>
#include <memory_resource>
#include <slipstream/abi/access_entry.hpp>
#include <span>
#include <vector>

namespace slipstream::engines {

class host_dependency_table {
public:
    host_dependency_table();
    host_dependency_table(const host_dependency_table&) = delete;
    host_dependency_table& operator=(const host_dependency_table&) = delete;

    /// Adds task `task`. `predecessors` brings the tasks named by `after` and leaves with all tasks to wait for, each once,
    /// the latest first. Tasks that others of the list wait for anyway may be missing.
    void admit(u32 task, std::span<const abi::access_entry> accesses, bool whole_memory, std::vector<u32>& predecessors);

    /// Forgets everything; keeps its memory where that is cheap.
    void clear();

    /// Regions now held, for tests and reports.
    u64 regions() const;

private:
    static constexpr u32 none = ~0u;
    static constexpr u32 classes = 65;

    struct key {
        u64 begin;
        u64 tail;
        u32 kind;
        u32 serial; ///< loose ranges never cover, so two writes of equal loose ranges are two regions
        auto operator<=>(const key&) const = default;
    };
    struct region {
        abi::access_entry shape;
        u32 writer = none;
        bool alone = false;       ///< no other region shares a byte with this one: of two that do, neither is alone
        std::vector<u32> readers; ///< ascending; each of them waited for the writer
    };
    using region_map = std::pmr::map<key, region>;
    static constexpr u32 cache_slots = 16384;

    static u32 class_of(const abi::access_entry& e);
    static key key_of(const abi::access_entry& e, u32 serial);
    template <class Visit> void visit_overlapping(const abi::access_entry& e, Visit&& visit);
    region& place(const abi::access_entry& shape, u32 serial);
    region_map::iterator erase(region_map& map, region_map::iterator it);
    region*& cache_slot(const abi::access_entry& e);
    region* alone(const abi::access_entry& e);
    static void wait_for_users(u32 task, const region& r, std::vector<u32>& predecessors);
    void forget_regions();
    void read(u32 task, const abi::access_entry& e, std::vector<u32>& predecessors);
    void write(u32 task, const abi::access_entry& e, std::vector<u32>& predecessors);
    void admit_whole_memory(u32 task, std::vector<u32>& predecessors);

    std::pmr::unsynchronized_pool_resource nodes_;
    std::vector<region_map> by_class_;
    std::vector<region*> cache_; ///< by hash of the shape: a region of the map, or null
    u64 classes_used_ = 0; ///< bit c: by_class_[c] may hold something (bit 63 stands for 63 and 64)
    std::vector<region> remainders_;
    u32 loose_serial_ = 0;
    u32 barrier_ = none;           ///< the last whole-memory task
    std::vector<u32> since_;       ///< tasks admitted since then, and
    std::vector<u8> has_successor_; ///< by place in since_, whether somebody waits for them
};

} // namespace slipstream::engines
