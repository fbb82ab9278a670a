// The engine behind runtime_base: memory, submission rings, completion, and the service thread that owns launch and park.
//
// OWNERS  ring r's writer, names and `submitted`: the thread that holds the ring (one per thread, given back when the thread ends)
//         launch, command word, calls of the backend that change something: the service thread alone
//         memory pools, registration: under mutex_ (none of them on the submit path), which nobody holds while waiting
//         batches: one thread at a time is in run_batch(), under batch_mutex_, which only pause() takes besides, to wait for it
// STATES  of the kernel: away -> resident (service: something was published and nobody paused) -> away (residency limit, park,
//         drain, or the launch was void: device/muster.hpp). No wake-up is lost: the service thread compares submitted with
//         retired at every turn while the kernel is away.
#pragma once
#include "host/backend.hpp"
#include "host/beginning.hpp"
#include "host/failure_book.hpp"
#include "host/located_accesses.hpp"
#include "host/memory_pool.hpp"
#include "host/progress_watch.hpp"
#include "host/ring_history.hpp"
#include "host/ring_writer.hpp"
#include "host/stream_join.hpp"
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <slipstream/runtime.hpp>
#include <thread>
#include <vector>

namespace slipstream::host {

/// A runtime_core that is one part of an engine (host/partitioned_core.hpp): a control block with its own share of the
/// workers and its own memory.
struct membership {
    u32 parts = 1;
    u32 part = 0;
    runtime_core* first = nullptr; ///< part 0, which outlives the others: it has the channels between all of them, and their fate.
                                   ///< Null: this is part 0
};

/// What the parts of an engine have in common: where one has ended, the others would wait for it;
/// and none stands still while another goes on.
struct common_fate {
    std::atomic<bool> ended{false};
    std::atomic<bool> ending{false}; ///< a watchdog is about to: the others' wait for what it says
    std::atomic<bool> abandoned{false}; ///< a body never ended: its part's control block may go on, and looks at memory of part 0
    std::atomic<u64> progress{0}; ///< counts what each part's watchdog sees of its own
    std::mutex mutex;
    std::string why;
};

/// What goes along with a task that touches memory of several parts: see abi/message.hpp.
struct crossing {
    abi::crossing_word word;
    bool stand_in; ///< not the task itself: nothing runs
    u32 foreign_members = 0; ///< of the task: bits of the typed members that are other parts' memory. They only rebuild its
                             ///< struct: what they do is its stand-ins' to say
};

class runtime_core {
public:
    runtime_core(const config& configuration, const kernel_image& image, const beginning& start = {},
                 const membership& member = {});
    ~runtime_core();

    /// flags: further message_flags.
    submit_status submit(u32 type, const void* task, const submit_options& options, bool may_block, task_handle& handle,
                         u32 flags = 0, const crossing* crosses = nullptr);
    /// Would this message be taken at once? By the submitting thread. Crossing or not, it is as long. Throws what submit() would.
    bool has_room(u32 type, const void* task, const submit_options& options);
    /// Takes a ring for this thread, if it has none: config_error when there is none left.
    void claim_ring();
    bool holds_ring() const; ///< does the calling thread hold a ring?
    /// So many entries in `after`, beside the joins of this thread's ring: too many for a task? (config_error)
    void check_after(u64 count);
    /// `after` names a task of a ring that the calling thread holds: one that it has yet to submit would never come. (config_error)
    void refuse_own_future(task_handle handle) const;
    void refuse_own_future_for_ever(task_handle handle);
    bool is_retired(task_handle handle);
    /// The quick way, where it may be taken: puts a short message of so many accesses into the ring.
    /// No handle: nothing was done. part: this one.
    task_handle put_short(u32 part, u32 accesses, const chunk_vector* chunks, detail::short_size size);
    /// The same for a message that was put together from lists of accesses, and names no handle that is not.
    task_handle put_listed(const chunk_vector* chunks, u32 slots, ordering order);
    /// Would a short message be taken at once? By the submitting thread; put_taken() takes it then, and returns its position.
    bool takes_short(u32 slots);
    u64 put_taken(const chunk_vector* chunks, u32 slots);
    task_status query(task_handle handle);
    task_status wait(task_handle handle, deadline until);
    bool wait_all(deadline until);
    task_handle clear_failure();
    void after_stream(cuda_stream stream);
    void signal_stream(cuda_stream stream, task_handle handle);
    /// Joins go through this port from now on: how tests drive them where there are no streams.
    void use_streams(stream_port* port) { streams_ = port; }
    void pause();
    void begin_pause() { paused_.store(true, std::memory_order_seq_cst); } ///< what pause() begins with, which waits then
    void resume();
    /// The end, of which an engine takes each step for all its parts before the next: what was submitted is let run, and
    /// exit_limit counts; all of it is retired, or the device was lost; the kernel is told to leave; it has left. The destructor
    /// takes those that were not taken.
    void begin_end();
    void wait_for_end();
    void begin_leave() { stop_ = true; }
    void leave();
    void throw_if_dead();
    void run_batch();
    data_handle register_range(const void* data, u64 bytes, u64 rows, u64 pitch);
    /// Takes over what another part has just registered, as the same index: all parts of an engine have the same table.
    /// Under one lock with register_range().
    void adopt(const data_handle& handle);
    u32 handles() const { return static_cast<u32>(ranges_.size()); } ///< under the same lock
    /// Those that tasks may name: all that were registered. At any time; of who registered them as many as it did.
    u32 handles_given() const { return handles_given_.load(std::memory_order_relaxed); }
    /// No task may name a handle at or behind `end`, unless it was registered here. (config_error)
    void check_handles(u32 end) const;
    /// The pool behind allocate().
    std::pair<u64, u64> pool_range() const { return pool_range_; } ///< address, bytes
    void* allocate(u64 bytes);
    /// also: what has to be true as well before the memory is handed out anew, and stays so.
    /// submits: this thread may take a ring, and a place in it. What is not the pool's to take back is logged and ignored.
    void release(void* memory, u64 bytes, std::function<bool()> also = {}, bool submits = true);
    u64 low_water(u32 ring) const;
    u64 early_mark(u32 ring) const;
    u64 submitted(u32 ring) const { return rings_[ring]->submitted.load(std::memory_order_acquire); }
    /// by the ring's thread: position behind its last task whose accesses order nothing
    u64 unordered_end(u32 ring) const { return rings_[ring]->unordered_end; }
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
    /// Tasks that were mailed to all workers at once (device/broadcast.hpp), since the engine was made; modulo 2^32. After pause()
    /// or run_batch().
    u32 broadcasts();

private:
    using P = device::host_platform;

    /// What the control block keeps between launches, as it was when the kernel last left in order.
    struct kept_state {
        std::vector<abi::chunk> near, far;
        device::control_state<P> state;
    };
    kept_state read_state();

    struct named_task {
        u64 position = 0;
        std::string_view name{}; ///< empty: none was ever here
    };
    struct alignas(128) ring {
        ring_writer<P> writer;
        u64 low_water_seen = 0;
        std::atomic<u64> submitted{0}; ///< messages wholly published
        std::atomic<u64> begun{0};     ///< messages whose first chunk may be published
        u64 next = 0;                  ///< position of the next message
        bool notes = false;              ///< see take_note
        u32 index = 0;                   ///< among the rings
        std::vector<stream_point> joins; ///< what the next message has to wait for
        std::vector<task_handle> after;  ///< of the message in hand
        /// By position, modulo completion_span. Of a task without a name nothing is written: it does not pay for others' names.
        std::vector<named_task> names;
        std::atomic<bool> named{false}; ///< names has room: of a task that is submitted and unfinished any thread may read it
        u64 unordered_end = 0; ///< position behind the last task whose accesses order nothing
        ring_history history; ///< for a flight log
        std::atomic<bool> taken{false};

        /// By the thread that holds the ring, whenever that changes: is there anything to look after beside the message itself?
        void take_note() { notes = !joins.empty() || history.wanted(); }
    };

    task_handle submit_at_once(u32 type, const void* task, const submit_options& options);
    /// only_look: submits nothing, and says what would become of it.
    submit_status submit_by_chunks(u32 type, const void* task, const submit_options& options, bool may_block, task_handle& handle,
                                   u32 flags, const crossing* crosses, bool only_look = false);
    ring& own_ring(u32& index);
    void forget_raised_joins(ring& r);
    void tell_what_never_ran();
    bool give_up(void* memory, u64 bytes);
    template <class Store> task_handle put_into(ring& r, const chunk_vector* chunks, u32 slots);
    task_handle put_short_after_a_look(ring& r, const chunk_vector* chunks, u32 slots);
    bool all_retired();
    /// waits_for_streams: all that is unfinished does; the kernel would only be in those streams' way.
    enum class unfinished_work { none, waits_for_streams, can_run };
    unfinished_work look_for_work();
    stream_port& need_streams();
    void begin_at(const device::control_state<P>& state, u64 position);
    void service();
    void watch_progress(bool resident, bool wanted);
    u64 progress_mark() const;
    u32 heartbeats() const;
    bool was_void(u32 launches_back) const;
    void choose_patience();
    std::string describe_heartbeat() const;
    [[noreturn]] void end_stalled_engine(std::chrono::nanoseconds quiet, const char* limit);
    bool leaves_within(std::chrono::milliseconds limit);
    void abandon_unless_left();
    std::string name_of(task_handle handle) const;
    template <class Visit> u32 for_each_held(const Visit& visit);
    bool holds_a_block();
    std::string describe_task(task_handle h, u32 type);
    std::string describe_rings();
    std::string describe_window();
    void launch();
    void command(device::command c);
    void end_with_the_others();
    void check_away(const char* call) const;
    void mark_dead(const std::string& why);
    /// Memory that goes back to its pool when tasks are retired.
    struct pending_release {
        std::optional<task_handle> after{};
        std::array<u64, device::rings_max> low_water{}; ///< and, ring by ring, all before these positions
        void* memory = nullptr;
        u64 bytes = 0;
        std::function<bool()> also{};
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
    membership member_;
    common_fate own_fate_;
    common_fate& fate_; ///< part 0's
    kernel_image image_;
    std::unique_ptr<backend> backend_;
    host_memory memory_{};
    host_arguments arguments_{};
    std::vector<std::unique_ptr<ring>> rings_;
    u64 id_;
    u32 counted_from_; ///< where all counters began
    std::unique_ptr<stream_join> stream_join_; ///< goes before the backend, whose memory it uses
    stream_port* streams_ = nullptr;
    failure_book failures_;

    std::mutex mutex_;
    std::pair<u64, u64> pool_range_{};
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
    u64 own_mark_ = 0;   ///< progress of this part, as seen last
    bool watched_at_exit_ = false; ///< exit_limit counts from the destructor's beginning
    u64 patience_ns_ = 0; ///< of the last launch, or somewhat less
    bool abandoned_ = false; ///< a body never ended: the backend must outlive the runtime

    std::thread service_;
    std::atomic<bool> ending_{false}; ///< in the destructor
    std::atomic<bool> stop_{false};
    std::atomic<bool> paused_{false};
    std::mutex batch_mutex_; ///< of run_batch(), all the time; of pause() in batch mode
    std::atomic<bool> away_{true};
    std::atomic<bool> dead_{false};
    std::atomic<u32> handles_given_{0}; ///< size of ranges_; beside dead_: both are looked at by each submission
    std::atomic<u64> launches_{0};
    std::mutex why_mutex_; ///< of why_dead_ alone: who ends the engine waits for nobody
    std::string why_dead_;
};

/// The error of a download of memory that a task with this status should have written.
task_error no_result(const task_status& status);
/// The GPU that a configuration means; none: the host.
std::optional<int> gpu_of(const config& configuration, const kernel_image& image);

} // namespace slipstream::host
