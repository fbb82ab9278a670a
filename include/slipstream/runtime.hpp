// The runtime: submit tasks, wait for them, own the resident kernel.
#pragma once
#include <chrono>
#include <memory>
#include <slipstream/builtin_tasks.hpp>
#include <slipstream/bus_traffic.hpp>
#include <slipstream/config.hpp>
#include <slipstream/flight_log.hpp>
#include <slipstream/kernel_image.hpp>
#include <slipstream/stream.hpp>
#include <slipstream/submit.hpp>
#if defined(__CUDACC__)
#include <slipstream/cuda_image.cuh>
#endif

namespace slipstream {

namespace host {
class runtime_core;
class partitioned_core;
}

namespace detail {

/// Of an engine with parts (config::parts): which of them each handle's memory lies in. Empty: there is one part.
struct part_table {
    const u8* of_handle = nullptr;
    u32 handles = 0; ///< that there is room for
    host::runtime_core* const* cores = nullptr;
    u32 parts = 0;
    struct {
        u64 begin, bytes;
    } pools[abi::parts_max] = {}; ///< of allocate()
};
inline constexpr u32 no_single_part = ~0u;

/// The part that an access lies in, if it is a handle's or lies in a pool.
[[gnu::always_inline]] inline u32 part_of(const part_table& table, u64 address, u64 bytes, u32 handle_plus_one)
{
    if (const u32 handle = handle_plus_one - 1; handle < table.handles) // of a raw range: beyond all
        return table.of_handle[handle];
    u32 part = no_single_part;
    for (u32 p = 0; p < table.parts; ++p) { // to the end: pools are disjoint, and which one it is nobody can predict
        const u64 at = address - table.pools[p].begin, all = table.pools[p].bytes;
        part = (at < all) & (bytes <= all - at) ? p : part;
    }
    return part;
}

/// The part that all of a task's members lie in, if that is quickly said.
template <class T>
[[gnu::always_inline]] inline u32 only_part(const T& task, const part_table& table)
{
    u32 first = no_single_part;
    bool single = true;
    for_each_member(task, [&]<class M>(const M& member) {
        if constexpr (is_access_v<M>) {
            const u32 part = part_of(table, reinterpret_cast<u64>(member.data()), member.bytes(), member.handle_plus_one());
            if (first == no_single_part) first = part;
            single &= part == first && part != no_single_part;
        }
    });
    return single ? first : no_single_part;
}

} // namespace detail

using deadline = std::chrono::steady_clock::time_point;

/// The part of a runtime that does not depend on the task list. Use slipstream::runtime<Tasks...>.
///
/// Thread-safety: all members may be called from any thread, construction and destruction excepted. Each submitting thread has a
/// submission ring of its own: tasks of one thread are ordered as submitted, tasks of several threads by their accesses in the
/// order of admission, and by `after`. With config::parts above 1 one thread submits, and with it go upload, download, after_stream
/// and clear_failure (config_error in any other); the others may wait, query, register, place, allocate, release and signal_stream.
/// A thread gives its ring back when it ends: what its thread_local objects, or static ones, submit in their destructors may come
/// behind that (config_error). They may release memory, as a buffer does. On the host device a runtime may be an object at
/// namespace scope; on a GPU it has to be made and to end within main: before and behind it CUDA is not there for certain.
/// Errors, all of them slipstream::error: device_error when no device can be used, it was lost, or a stall_limit ended the engine;
/// config_error for arguments, handles and calls that cannot work (a task_handle{} is not of any runtime; resume() in batch mode,
/// run_batch() outside of it); task_error from download() alone. That a task failed throws nothing else: wait() and query() say so.
class runtime_base {
public:
    runtime_base(const config& configuration, const kernel_image& image);
    /// Waits for all submitted tasks, then lets the kernel leave. In batch mode it waits for nothing: what was submitted after the
    /// last run_batch() never runs, and a warning with its number is logged.
    ~runtime_base();
    runtime_base(const runtime_base&) = delete;
    runtime_base& operator=(const runtime_base&) = delete;

    /// Submits a task given as bytes of the struct with index `type`. Writes memory only; no CUDA call. Blocks while the ring
    /// is full, or the thread is 65 536 submissions ahead of its oldest unfinished one; in batch mode, where it would for ever,
    /// throws config_error instead.
    task_handle submit_bytes(u32 type, const void* task, const submit_options& options);
    /// The same, but gives up instead of blocking; a message longer than the whole ring never fits.
    submit_status try_submit_bytes(u32 type, const void* task, const submit_options& options, task_handle& handle);

    /// What has become of a task; never blocks. One that is yet to be submitted is pending.
    task_status query(task_handle handle);
    /// Waits until the task is retired or the deadline has passed (then: pending). On a GPU this and wait_all spin: they keep a
    /// core busy, so that the end is seen at once. While paused, and in batch mode, they return only when another thread lets the
    /// kernel run, by resume() or run_batch(), or at the deadline. All that the task waited for has run by then, and what it wrote
    /// is visible; the handles of those may read pending for a moment longer. Without a deadline a task that this thread has yet to
    /// submit is refused (config_error): it would never come.
    task_status wait(task_handle handle, deadline until = deadline::max());
    /// Waits for everything submitted before the call, failed and cancelled tasks included. False: the deadline has passed.
    bool wait_all(deadline until = deadline::max());

    /// Forgets all poison, in the order of submission: waits for every task before it, and tasks after it are cancelled only for
    /// what fails from then on. What is known of earlier tasks stays known. Takes the turn of a whole-memory task.
    ///
    /// The books of poison hold 512 ranges and 512 runs of failed tasks; beyond that every task that reads or has an `after` is
    /// cancelled until a clear_failure(). A failed whole-memory task poisons everything in the same way.
    task_handle clear_failure();

    /// Joins with CUDA streams, both ways. Take a cudaStream_t; neither call waits for the device. But an engine has room for 64
    /// after_stream joins and 64 signals under way, of all threads together: a further call waits until one has ended. The null
    /// stream is the one of the calling thread's current device. A stream that is being captured, and any stream on the host
    /// device, is refused (config_error).
    ///
    /// after_stream: what this thread submits from now on starts only after all work that was enqueued on the stream before
    /// this call. Other threads' tasks go on. While every unfinished task waits for streams, the kernel leaves the GPU to them.
    /// signal_stream: what is enqueued on the stream from now on starts only after the task is retired, failed and cancelled
    /// tasks included.
    ///
    /// While paused, and in batch mode until run_batch(), a signalled stream stands still; run_batch() waits for the streams that
    /// its tasks are to follow. Do not synchronise with a stream that waits for a task that has yet to be let run. The
    /// destructor, and the end of an engine that was stopped or lost, let every stream go on that still waits.
    /// Behind a signal launch only kernels that are loaded: CUDA loads a kernel at its first launch and then waits for every
    /// stream, also for those that wait for tasks. Launch each once before, or set CUDA_MODULE_LOADING=EAGER.
    /// Streams share the GPU's connections, eight by default, of which each part of an engine takes two: keep fewer
    /// signalled streams than are left waiting at a time, or a launch of the engine's stands behind one of them;
    /// CUDA_DEVICE_MAX_CONNECTIONS=32 gives more.
    void after_stream(cuda_stream stream);
    void signal_stream(cuda_stream stream, task_handle handle);

    /// Lets the kernel leave at the next block boundary (behind a task that was chained to the one in hand, too) and keeps it
    /// away until resume(). Returns when it has left, or when another thread has called resume() meanwhile. In batch mode it is
    /// away; a run_batch() of another thread is waited for.
    void pause();
    void resume();
    /// Batch mode: runs what the rings hold, and returns when it is done. Of several threads one after another does; what others
    /// submit meanwhile may run with it.
    void run_batch();

    /// Declares memory as a unit of dependency. Two registered handles must be equal or disjoint, and none of them tiles of unequal
    /// pitch that reach into each other (config_error otherwise).
    /// A handle of memory from the pool ends when the memory has come back there: whoever gets that memory may register other
    /// pieces of it. Its index is not used for another piece; the same piece, registered again, has the same index.
    data_handle register_range(const void* data, u64 bytes);
    data_handle register_tile(const void* data, u64 row_bytes, u64 rows, u64 pitch);

    /// config::parts: a task is worked on by the part whose memory it touches; memory of allocate() is its pool's.
    /// What is registered, uploaded or downloaded lies in one part (config_error otherwise).
    u32 parts() const;
    /// Memory of the caller's own belongs to a part from now on; what was never placed belongs to part 0. Waits for everything
    /// submitted before, so that nothing in flight has taken it for another part's; poison does not move with it. Once placed it
    /// stays: config_error if some of it is a pool's or belongs to another part by an earlier call, or is registered in part 0.
    /// The same again is fine.
    void place(const void* data, u64 bytes, u32 part);
    u32 part_of(const void* data) const;

    /// Device memory from the runtime's pool: allocates while the kernel is resident, without a CUDA call.
    /// 256-byte aligned, holding whatever was there. While the pool has no such piece, waits for memory that was released;
    /// while paused, until resume().
    /// config_error: the pool has no such piece and nothing is to come back; in batch mode nothing does before run_batch().
    void* allocate(u64 bytes) { return allocate(bytes, 0); }
    /// From the pool of a part.
    void* allocate(u64 bytes, u32 part);
    /// Gives back memory of allocate(), with the same number of bytes. It is handed out anew once every task submitted before
    /// this call that touches it is done. Of this thread's tasks those are waited for that declare an access to it; with
    /// ordering::no_access, and of other threads, all that were submitted before. Never throws; takes a place in the ring of a
    /// thread that submits, and blocks while that is full; of another thread it takes none. Null is fine. What is no piece of the
    /// pool, or of another size, or was given back before, stays as it is, and a warning is logged; a piece that was handed out
    /// anew meanwhile is not told from the one before.
    void release(void* memory, u64 bytes);
    /// Copies host memory to the device, ordered like a task that writes [to, to + bytes). The host memory may be reused at once.
    /// More than a quarter of config::staging_bytes (at least 4096 B) goes in pieces, a task each, and one more task behind them,
    /// whose handle is returned: when it is retired all of the copy is. Tasks of this thread see all of it or nothing; those of
    /// other threads that meet it may come between two pieces, unless they name the handle by `after`.
    /// Waits while all staging memory is in use; in batch mode, where it comes back with run_batch(), throws config_error instead,
    /// as where the ring has no room for all of these tasks: also in the middle, when the first of them are submitted.
    task_handle upload(void* to, const void* from, u64 bytes);
    /// Copies device memory to the host, ordered like a task that reads it; returns when the data is there. As large pieces as
    /// upload's go one after the other: what tasks of other threads write meanwhile may be there in part, and when it throws some
    /// of `to` may be written.
    /// Throws task_error when the memory is poisoned: see task_status. Refused in batch mode (config_error): submit a
    /// copy_task into host memory that the device can write, cudaMallocHost's for one, with the batch, or copy by
    /// cudaMemcpy behind run_batch().
    void download(void* to, const void* from, u64 bytes);

    std::string device_name() const;
    bool on_cuda() const;
    u32 workers() const;
    u32 control_blocks() const; ///< resident thread blocks that schedule and run no task: an SM each
    const config& configuration() const;
    u64 launches() const; ///< how often the kernel was launched
    /// History of all workers, and of window and rings (config::flight_log); only while paused or after run_batch().
    std::vector<flight_entry> flight_log();
    slipstream::flight_samples flight_samples();
    /// What the engine moved across the bus so far; only while paused or after run_batch().
    slipstream::bus_traffic bus_traffic() const;
    host::runtime_core& core(u32 part = 0);

protected:
    /// submit_bytes for a task whose type is known here, `type` in the image's list: its message is put together in the caller.
    template <class Task>
    task_handle submit_as(u32 type, const Task& task, const submit_options& options)
    {
        if (options.says_little())
            if (const task_handle handle = try_short(type, task, options.blocks); handle != task_handle{}) return handle;
        return submit_bytes(type, &task, options);
    }
    /// Without options: to make them and to look through them would be a tenth of the cost. In the caller, whatever the compiler
    /// thinks of its length: there most of what is encoded is a constant, and the struct need not be in memory at all.
    template <class Task>
    [[gnu::always_inline]] task_handle submit_as(u32 type, const Task& task)
    {
        if (const task_handle handle = try_short(type, task, submit_options{}.blocks); handle != task_handle{}) [[likely]]
            return handle;
        return submit_bytes(type, &task, {});
    }

private:
    /// The quick way. No handle: nothing was done, and submit_bytes finds out why.
    template <class Task>
    [[gnu::always_inline]] task_handle try_short(u32 type, const Task& task, u32 blocks)
    {
        if constexpr (detail::has_short_messages<Task>()) {
            detail::short_room chunks;
            constexpr u32 accesses = detail::census_of<Task>::accesses;
            const detail::short_size size = detail::encode_short<Task>(&task, type, blocks, chunks);
            if (size.slots != 0) [[likely]] {
                if (part_table_.of_handle == nullptr) [[likely]] return put_short(core_.get(), accesses, chunks, size);
                if (const u32 part = detail::only_part(task, part_table_); part != detail::no_single_part)
                    return put_short_in(part, part_table_.cores[part], accesses, chunks, size);
            }
        }
        return {};
    }
    static task_handle put_short(host::runtime_core* core, u32 accesses, const detail::chunk_vector* chunks,
                                 detail::short_size size);
    static task_handle put_short_in(u32 part, host::runtime_core* core, u32 accesses, const detail::chunk_vector* chunks,
                                    detail::short_size size);

    std::unique_ptr<host::runtime_core> core_;      ///< null: there are several
    std::unique_ptr<host::partitioned_core> parts_; ///< null: there is one
    detail::part_table part_table_;
};

namespace detail {

/// Which platforms a translation unit instantiates: keeps the types of g++ and nvcc units apart (one definition rule).
struct host_only {};
struct host_and_cuda {};
#if defined(__CUDACC__)
using platforms = host_and_cuda;
#else
using platforms = host_only;
#endif

/// WorkersMost: workers on an SM that there are kernels for, one or two.
template <class Platforms, u32 WorkersMost, class... Tasks>
kernel_image image_for_workers()
{
#if defined(__CUDACC__)
    return make_image<Tasks...>(make_cuda_image<WorkersMost, Tasks...>());
#else
    return make_image<Tasks...>(nullptr);
#endif
}

template <class Platforms, class... Tasks>
kernel_image image_of()
{
    return image_for_workers<Platforms, workers_per_sm_max, Tasks...>();
}

} // namespace detail

/// A contiguous array in device memory, taken from the runtime's pool; the destructor gives it back there: a buffer goes before its
/// runtime. Movable, not copyable: what was moved from is empty, and what was assigned to gives back what it had. Not thread-safe
/// by itself. Throws what allocate, upload and download throw, and config_error for sizes that cannot be.
template <class T>
class buffer {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>,
                  "a buffer holds bytes for the device: elements are trivially copyable and not const");

public:
    /// In the pool of a part: see config::parts.
    buffer(runtime_base& runtime, u64 count, u32 part = 0)
        : runtime_(&runtime), data_(static_cast<T*>(runtime.allocate(bytes_of(count), part))), count_(count)
    {
    }
    buffer(buffer&& other) noexcept
        : runtime_(other.runtime_), data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0))
    {
    }
    buffer& operator=(buffer&& other) noexcept
    {
        if (this == &other) return *this;
        give_back();
        runtime_ = other.runtime_;
        data_ = std::exchange(other.data_, nullptr);
        count_ = std::exchange(other.count_, 0);
        return *this;
    }
    ~buffer() { give_back(); }

    /// A device address: only bodies may dereference it.
    T* data() const { return data_; }
    u64 size() const { return count_; }
    /// The first elements, as many as the span has: no more than the buffer (config_error).
    task_handle upload(std::span<const T> from)
    {
        check_room("upload", from.size());
        return runtime_->upload(data_, from.data(), from.size_bytes());
    }
    void download(std::span<T> to)
    {
        check_room("download", to.size());
        runtime_->download(to.data(), data_, to.size_bytes());
    }
    /// All of it, registered; ends with the buffer: see register_range.
    data_handle handle() { return runtime_->register_range(data_, count_ * sizeof(T)); }

private:
    void give_back()
    {
        if (data_ != nullptr) runtime_->release(data_, count_ * sizeof(T));
    }
    static u64 bytes_of(u64 count)
    {
        if (count > ~u64{0} / sizeof(T))
            throw config_error("a buffer of " + std::to_string(count) + " elements of " + std::to_string(sizeof(T))
                               + " B: no memory is as large");
        return count * sizeof(T);
    }
    void check_room(const char* call, u64 count) const
    {
        if (count > count_)
            throw config_error(std::string(call) + " of " + std::to_string(count) + " elements: the buffer has "
                               + std::to_string(count_));
    }

    runtime_base* runtime_;
    T* data_;
    u64 count_;
};

} // namespace slipstream

/// A buffer may be gone before the task runs: its memory is given back behind the tasks that were submitted before.
template <class T> inline constexpr bool std::ranges::enable_borrowed_range<slipstream::buffer<T>> = true;

namespace slipstream {

/// A runtime for a compile-time list of task types; copy, fill and marker come with it.
template <class Platforms, class... Tasks>
class basic_runtime : public runtime_base {
public:
    using tasks = task_list<Tasks..., copy_task, fill_task, marker_task>;

    explicit basic_runtime(const config& configuration = {})
        : runtime_base(configuration, detail::image_of<Platforms, Tasks..., copy_task, fill_task, marker_task>())
    {
    }

    /// Submits a task. Writes memory only; blocks while the ring is full. See submit_options.
    template <class Task>
    [[gnu::always_inline]] task_handle submit(const Task& task)
    {
        return this->submit_as(tasks::template index_of<Task>(), task);
    }
    template <class Task>
    task_handle submit(const Task& task, const submit_options& options)
    {
        return this->submit_as(tasks::template index_of<Task>(), task, options);
    }

    /// The same, but returns submit_status::full instead of blocking.
    template <class Task>
    submit_status try_submit(const Task& task, task_handle& handle, const submit_options& options = {})
    {
        return try_submit_bytes(tasks::template index_of<Task>(), &task, options, handle);
    }
};

template <class... Tasks>
using runtime = basic_runtime<detail::platforms, Tasks...>;

} // namespace slipstream
