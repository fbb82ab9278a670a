// Joins with CUDA streams: tasks that wait for a stream, and streams that wait for a task. No CUDA in here: see stream_port.
//
// A join is a word that counts up. `after_stream` takes a word and asks the stream to raise it; the thread's next message
// carries an `after` entry that names word and value, and ingest's gate stays shut until the word is there. No ring, no task
// and no window slot is spent on it, and a word may be raised again as soon as it was: every gate asks for "at least".
// `signal_stream` is the mirror image: the stream waits for a word, which the service thread raises once the task is retired.
//
// OWNERS  join word: the holder of its `busy` mark, then the stream's callback (one at a time, under mutex_) -> ingest, system
//         signal word: the service thread, under mutex_ -> the stream's wait operation
// STATES  of a join:   free -> busy (after_stream) -> raised and free (callback)
//         of a signal: free -> claimed (signal_stream, while the stream takes the wait: no lock is held, service leaves it alone)
//                      -> busy (the stream has it) -> raised (service: task retired) -> free (the stream has passed its wait)
// EDGES   R16 (join word, release at system scope) pairs with ingest's A16: what the stream's work wrote is visible to tasks
//         R17 (signal word, release at system scope): read by the stream's front end, which starts the stream's next work
#pragma once
#include "device/host_platform.hpp"
#include "host/stream_port.hpp"
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <slipstream/status.hpp>
#include <vector>

namespace slipstream::host {

/// What a task waits for: join word `word` has been raised to `value`.
struct stream_point {
    u32 word;
    u32 value;

    /// As the position of an `after` entry with ring abi::after_stream_ring.
    u64 encode() const { return static_cast<u64>(word) << 32 | value; }
};

class stream_join {
public:
    using P = device::host_platform;
    using word = P::word<u32>;
    static constexpr u32 words = 64; ///< joins, and signals, that may be under way at a time; more is back-pressure

    /// Both arrays have `words` zeroed words in pinned memory.
    stream_join(word* join_words, word* signal_words);
    /// Lets every stream go on that still waits for a task, and waits until it has.
    ~stream_join();
    stream_join(const stream_join&) = delete;
    stream_join& operator=(const stream_join&) = delete;

    /// Asks the stream to raise a word when the work enqueued so far is done. False: no word is free now.
    [[nodiscard]] bool join(stream_port& port, cuda_stream stream, stream_point& point);
    bool raised(const stream_point& point) const;

    /// Message `position` of a ring carries these points: until they are raised, nothing from it on can run.
    void gate(u32 ring, u64 position, std::vector<stream_point> points);
    /// Do all submissions of the ring from `position`, the oldest unfinished one, on wait for a stream?
    bool gated(u32 ring, u64 position);

    /// Makes the stream wait for a task. False: no word is free now.
    [[nodiscard]] bool signal(stream_port& port, cuda_stream stream, task_handle task);
    /// Service thread, at every turn: raises the words of the tasks that are retired.
    void service(const std::function<bool(task_handle)>& is_retired);
    /// The engine has ended: raises the words of all tasks. Whoever was in signal() meanwhile calls it again.
    void let_all_go();

private:
    /// What the callbacks need; outlives the runtime when a stream's work does.
    struct board {
        std::mutex mutex;
        word* words = nullptr; ///< null: the runtime is gone
        bool busy[stream_join::words] = {};
    };
    struct callback_data {
        std::shared_ptr<board> home;
        stream_point point;
    };
    struct waiting_signal {
        bool claimed = false; ///< by a thread that is in a call of the port about it
        bool busy = false;
        bool raised = false;
        task_handle task;
        u32 value = 0;
    };
    struct shut_gate {
        u32 ring;
        u64 position;
        std::vector<stream_point> points;
    };

    static void stream_is_done(void* data);
    template <class IsRetired> void raise(const IsRetired& is_retired);

    std::shared_ptr<board> board_;
    word* join_words_;
    word* signal_words_;
    std::mutex mutex_;
    waiting_signal signals_[words];
    stream_port* port_ = nullptr; ///< of the signals
    std::atomic<u32> signals_busy_{0};
    std::deque<shut_gate> gates_;
    std::atomic<u32> gates_shut_{0};
};

} // namespace slipstream::host
