// The engine behind runtime_base: memory, submission rings, completion, and the service thread that owns launch and park.
//
// OWNERS  ring r's writer and `submitted`: the thread that holds the ring (one per thread, given back when the thread ends)
//         launch, command word, backend: the service thread alone
//         memory pools, registration, names: under mutex_ (none of them on the submit path), which nobody holds while waiting
// STATES  of the kernel: away -> resident (service: something was published and nobody paused) -> away (residency limit, park,
//         drain). No wake-up is lost: the service thread compares submitted with retired at every turn while the kernel is away.
#pragma once
#include "host/backend.hpp"
#include "host/beginning.hpp"
#include "host/failure_book.hpp"
#include "host/memory_pool.hpp"
#include "host/progress_watch.hpp"
#include "host/ring_history.hpp"
#include "host/ring_writer.hpp"
#include "host/stream_join.hpp"
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <slipstream/runtime.hpp>
#include <thread>
#include <vector>

namespace slipstream::host {

class runtime_core {
public:
    runtime_core(const config& configuration, const kernel_image& image, const beginning& start = {});
    ~runtime_core();

    /// flags: further message_flags.
    submit_status submit(u32 type, const void* task, const submit_options& options, bool may_block, task_handle& handle, u32 flags = 0);
    /// The quick way, where it may be taken: puts a short message of so many accesses into the ring. No handle: nothing was done.
    task_handle put_short(u32 accesses, const chunk_vector* chunks, u32 slots);
    task_status query(task_handle handle);
    task_status wait(task_handle handle, deadline until);
    bool wait_all(deadline until);
    task_handle clear_failure();
    void after_stream(cuda_stream stream);
    void signal_stream(cuda_stream stream, task_handle handle);
    /// Joins go through this port from now on: how tests drive them where there are no streams.
    void use_streams(stream_port* port) { streams_ = port; }
    void pause();
    void resume();
    void run_batch();
    data_handle register_range(const void* data, u64 bytes, u64 rows, u64 pitch);
    void* allocate(u64 bytes);
    void release(void* memory, u64 bytes);
    task_handle upload(void* to, const void* from, u64 bytes);
    void download(void* to, const void* from, u64 bytes);
    std::vector<flight_entry> flight_log();
    slipstream::flight_samples flight_samples();
    /// Name given at submission, or the type's; empty when it was long ago.
    std::string task_name(task_handle handle, u32 type);

    /// What each worker has picked up and is not known to have ended. May be asked at any time, from any thread.
    std::string describe_workers();

    const config& configuration() const { return config_; }
    const kernel_image& image() const { return image_; }
    backend& device() { return *backend_; }
    u64 launches() const { return launches_.load(std::memory_order_relaxed); }
    slipstream::bus_traffic bus_traffic() const;

private:
    using P = device::host_platform;

    struct alignas(128) ring {
        ring_writer<P> writer;
        u64 low_water_seen = 0;
        std::atomic<u64> submitted{0}; ///< messages wholly published
        std::atomic<u64> begun{0};     ///< messages whose first chunk may be published
        u64 next = 0;                  ///< position of the next message
        bool notes = false;              ///< see take_note
        std::vector<stream_point> joins; ///< what the next message has to wait for
        std::vector<std::string_view> names;
        std::atomic<bool> named{false}; ///< names has room: of a task that is submitted and unfinished any thread may read it
        u64 unordered_end = 0; ///< position behind the last task whose accesses order nothing
        ring_history history; ///< for a flight log
        std::atomic<bool> taken{false};

        /// By the thread that holds the ring, whenever that changes: is there anything to look after beside the message itself?
        void take_note() { notes = !joins.empty() || !names.empty() || history.wanted(); }
    };

    ring& own_ring(u32& index);
    template <class Store> task_handle put_into(ring& r, const chunk_vector* chunks, u32 slots);
    task_handle put_short_after_a_look(ring& r, const chunk_vector* chunks, u32 slots);
    bool is_retired(task_handle handle);
    bool all_retired();
    bool something_can_run();
    stream_port& need_streams();
    void begin_at(const device::control_state<P>& state, u64 position);
    void service();
    void watch_progress(bool resident, bool wanted);
    u64 progress_mark() const;
    u32 heartbeats() const;
    std::string describe_heartbeat() const;
    [[noreturn]] void end_stalled_engine(std::chrono::nanoseconds quiet, const char* limit);
    bool leaves_within(std::chrono::milliseconds limit);
    u64 low_water(u32 ring) const;
    std::string describe_task(task_handle h, u32 type);
    std::string describe_rings();
    std::string describe_window();
    void launch();
    void command(device::command c);
    void throw_if_dead();
    void check_away(const char* call) const;
    void mark_dead(const std::string& why);
    /// Memory that goes back to its pool when tasks are retired.
    struct pending_release {
        std::optional<task_handle> after{};
        std::array<u64, device::rings_max> low_water{}; ///< and, ring by ring, all before these positions
        void* memory = nullptr;
        u64 bytes = 0;
    };
    struct lending_pool {
        memory_pool free;
        std::deque<pending_release> pending;
    };
    struct staging_piece;

    void* take(lending_pool& pool, u64 bytes);
    void reclaim(lending_pool& pool, bool all);
    void* take_staging(u64 bytes);
    u64 staging_piece_max() const;
    static u32 blocks_for(u64 bytes, u32 workers);

    config config_;
    kernel_image image_;
    std::unique_ptr<backend> backend_;
    host_memory memory_{};
    host_arguments arguments_{};
    std::vector<std::unique_ptr<ring>> rings_;
    u64 id_;
    std::unique_ptr<stream_join> stream_join_; ///< goes before the backend, whose memory it uses
    stream_port* streams_ = nullptr;
    failure_book failures_;

    std::mutex mutex_;
    lending_pool pool_;
    lending_pool staging_;
    std::vector<abi::handle_entry> ranges_; ///< all that were ever registered: the device keeps what an index named first
    std::map<std::array<u64, 4>, u32> index_of_; ///< address, bytes, rows, pitch -> index, of all of them
    // Those that hold: neither do they overlap, nor do their addresses come twice.
    std::map<u64, u32> range_index_; ///< plain ranges: address -> index
    std::map<u64, u32> rects_;       ///< tiles likewise

    // Of the service thread alone.
    progress_watch progress_;
    progress_watch::time_point next_look_{};
    bool stall_told_ = false;
    u32 beats_seen_ = 0; ///< when progress was seen last
    bool watched_at_exit_ = false; ///< exit_limit counts from the destructor's beginning
    bool abandoned_ = false; ///< a body never ended: the backend must outlive the runtime

    std::thread service_;
    std::atomic<bool> ending_{false}; ///< in the destructor
    std::atomic<bool> stop_{false};
    std::atomic<bool> paused_{false};
    std::atomic<bool> away_{true};
    std::atomic<bool> dead_{false};
    std::atomic<u64> launches_{0};
    std::mutex why_mutex_; ///< of why_dead_ alone: who ends the engine waits for nobody
    std::string why_dead_;
};

} // namespace slipstream::host
