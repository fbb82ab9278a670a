// An engine of several parts (config::parts): a runtime_core each, with its own control block, ring, workers and memory.
//
// A task goes to the part whose memory it touches, as if there were no others. One that touches several crosses: it goes to
// one of them, its home, and a stand-in to each of the others, which has its accesses there. The device orders them
// (device/crossing.hpp); here it is found out what crosses, and what a part tells in terms of its own ring and of stand-ins is
// told in the caller's. A handle's ring is its part. Tasks that touch nothing and have no predecessor go to all parts in turns.
//
// OWNERS  the thread that holds the rings, all of them (claim): who submits; meetings, scratch, the copy of the memory map
//         memory map, registration: under mutex_, which is not on the way of a task that touches handles;
//         part_of_handle: written under mutex_, once, before the caller has the handle
//         crossing tasks: the book's own lock
// ORDER   crossing tasks come in the same order in all rings, since one thread submits: device/crossing.hpp says why that is needed
#pragma once
#include "host/crossing_book.hpp"
#include "host/memory_map.hpp"
#include "host/runtime_core.hpp"

namespace slipstream::host {

class partitioned_core {
public:
    /// start: of each part.
    partitioned_core(const config& configuration, const kernel_image& image, const beginning& start = {});
    ~partitioned_core();

    const detail::part_table& table() const { return table_; }
    u32 parts() const { return static_cast<u32>(cores_.size()); }
    runtime_core& core(u32 part) { return *cores_.at(part); }
    const config& configuration() const { return config_; }

    submit_status submit(u32 type, const void* task, const submit_options& options, bool may_block, task_handle& handle,
                         u32 flags = 0);
    task_status query(task_handle handle);
    task_status wait(task_handle handle, deadline until);
    bool wait_all(deadline until);
    task_handle clear_failure();
    void after_stream(cuda_stream stream);
    void signal_stream(cuda_stream stream, task_handle handle);
    void pause();
    void resume();

    data_handle register_range(const void* data, u64 bytes, u64 rows, u64 pitch);
    void place(const void* data, u64 bytes, u32 part);
    u32 part_of(const void* data);
    void* allocate(u64 bytes, u32 part);
    void release(void* memory, u64 bytes);
    task_handle upload(void* to, const void* from, u64 bytes);
    void download(void* to, const void* from, u64 bytes);

    u32 workers() const;
    u32 control_blocks() const;
    u64 launches() const;
    std::vector<flight_entry> flight_log();
    slipstream::flight_samples flight_samples();
    slipstream::bus_traffic bus_traffic() const;

private:
    using P = device::host_platform;

    /// Where a task goes.
    struct route {
        u32 home;
        u32 parts; ///< bits, the home's among them
        bool whole; ///< a whole-memory task, whatever its accesses

        bool crosses() const { return (parts & (parts - 1)) != 0; }
    };
    /// Crossing tasks of one home.
    struct meeting_list {
        u64 next = 0;
        u64 low_water_seen = 0; ///< of the home's ring
        std::array<std::optional<u64>, abi::meetings_max> held_by{}; ///< position of the last task that met there
    };
    void claim();
    detail::part_table make_table() const;
    runtime_core& owner_of(task_handle handle);
    /// A predecessor that succeeded is none any more.
    bool matters(task_handle predecessor) { return !query(predecessor).ok(); }
    u32 parts_touched(const declared_access& access);
    template <class Visit>
    void for_each_access(u32 type, const void* task, const submit_options& options, const Visit& visit) const;
    route route_of(u32 type, const void* task, const submit_options& options);
    submit_status submit_crossing(const route& way, u32 type, const void* task, const submit_options& options, bool may_block,
                                  task_handle& handle, u32 flags);
    submit_status submit_short(u32 type, const void* task, const submit_options& options, bool may_block, task_handle& handle);
    submit_status submit_short_crossing(const located_accesses& accesses, u32 type, const void* task, u32 blocks, bool may_block,
                                        task_handle& handle);
    void note(const crossing_entry& entry);
    submit_options told_to(u32 part, const route& way, const submit_options& options);
    submit_options told_to_home(const route& way, u32 type, const submit_options& options);
    submit_options told_to_stand_in(u32 part, const route& way, const submit_options& options);
    u32 share_accesses(const route& way, u32 type, const void* task, const submit_options& options);
    std::optional<u32> take_meeting(u32 home, bool may_block);
    task_status status_of(task_handle place, bool is_cause = false);
    task_status wait_for_status(task_handle place, bool is_cause, deadline until);
    std::optional<task_handle> origin_of(const crossing_entry& entry, bool& known);
    u32 one_part(const void* data, u64 bytes, const char* what);
    const memory_map& map_seen();

    kernel_image image_;
    config config_;
    /// Part 0 goes last.
    struct core_owner : std::vector<std::unique_ptr<runtime_core>> {
        ~core_owner()
        {
            while (!empty()) pop_back();
        }
    } cores_;
    std::vector<runtime_core*> core_list_; ///< the same
    std::vector<u8> part_of_handle_; ///< [handles_max]
    detail::part_table table_; ///< for the quick ways
    crossing_book book_;

    std::mutex mutex_;
    memory_map map_;
    std::atomic<u64> map_version_{1};
    std::vector<std::pair<u64, u64>> registered_unplaced_; ///< begin, end: of what is part 0's because it was not placed

    // Of the submitting thread.
    memory_map map_copy_; ///< no lock is taken to look up where raw ranges lie
    u64 map_copied_ = 0;  ///< its version
    std::array<meeting_list, abi::parts_max> meetings_;
    u32 turn_ = 0; ///< of tasks that no memory leads to a part
    // Of the task in hand, for each part.
    std::array<std::vector<declared_access>, abi::parts_max> declared_;
    std::array<std::vector<task_handle>, abi::parts_max> after_;
};

} // namespace slipstream::host
