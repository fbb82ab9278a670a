// Words that streams raise for tasks and tasks for streams.
#include "host/stream_join.hpp"
#include <algorithm>
#include <chrono>
#include <thread>

namespace slipstream::host {

using device::edge;
using device::order;
using device::scope;

stream_join::stream_join(word* join_words, word* signal_words)
    : board_(std::make_shared<board>()), join_words_(join_words), signal_words_(signal_words)
{
    board_->words = join_words;
}

stream_join::~stream_join()
{
    {
        const std::lock_guard lock(board_->mutex);
        board_->words = nullptr; // callbacks that come later find nobody
    }
    let_all_go();
    // The words go with the runtime: no stream may look at them any more. Bounded by the streams' own work before the wait.
    for (u32 i = 0; i < words; ++i)
        while (signals_[i].busy) {
            try {
                if (port_->passed(i)) signals_[i].busy = false;
            } catch (const error&) {
                signals_[i].busy = false; // the device was lost: nothing runs on it
            }
            if (signals_[i].busy) std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
}

bool stream_join::join(stream_port& port, cuda_stream stream, stream_point& point)
{
    auto data = std::make_unique<callback_data>();
    {
        const std::lock_guard lock(board_->mutex);
        const auto free = std::find(board_->busy, board_->busy + words, false);
        if (free == board_->busy + words) return false;
        const auto index = static_cast<u32>(free - board_->busy);
        // The last holder of the word raised it under this lock.
        point = {index, P::load(edge::P5_self, join_words_[index], order::relaxed, scope::system) + 1};
        *free = true;
    }
    data->home = board_;
    data->point = point;
    try {
        port.call_when_done(stream, &stream_is_done, data.get());
    } catch (...) {
        const std::lock_guard lock(board_->mutex);
        board_->busy[point.word] = false;
        throw;
    }
    (void)data.release(); // the callback's now
    return true;
}

void stream_join::stream_is_done(void* raw)
{
    const std::unique_ptr<callback_data> data(static_cast<callback_data*>(raw));
    const std::lock_guard lock(data->home->mutex);
    if (data->home->words == nullptr) return;
    P::store(edge::R16_stream_done, data->home->words[data->point.word], data->point.value, order::release, scope::system);
    data->home->busy[data->point.word] = false;
}

bool stream_join::raised(const stream_point& point) const
{
    const u32 now = P::load(edge::A16_stream_done, join_words_[point.word], order::acquire, scope::system);
    return static_cast<std::int32_t>(now - point.value) >= 0;
}

void stream_join::gate(u32 ring, u64 position, std::vector<stream_point> points)
{
    const std::lock_guard lock(mutex_);
    gates_.push_back({ring, position, std::move(points)});
    gates_shut_.fetch_add(1, std::memory_order_relaxed);
}

bool stream_join::gated(u32 ring, u64 position)
{
    // A gate is entered before its message is published: whoever sees the message sees the gate.
    if (gates_shut_.load(std::memory_order_acquire) == 0) return false;
    const std::lock_guard lock(mutex_);
    std::erase_if(gates_, [&](const shut_gate& g) {
        return std::all_of(g.points.begin(), g.points.end(), [&](const stream_point& p) { return raised(p); });
    });
    gates_shut_.store(static_cast<u32>(gates_.size()), std::memory_order_release);
    return std::any_of(gates_.begin(), gates_.end(),
                       [&](const shut_gate& g) { return g.ring == ring && g.position == position; });
}

bool stream_join::signal(stream_port& port, cuda_stream stream, task_handle task)
{
    for (u32 i = 0; i < words; ++i) {
        waiting_signal& s = signals_[i];
        bool used = false;
        u32 value = 0;
        {
            const std::lock_guard lock(mutex_);
            if (s.claimed || (s.busy && !s.raised)) continue;
            port_ = &port;
            s.claimed = true;
            used = s.busy;
            value = s.value + 1;
        }
        // Unlocked: an enqueue waits while the stream's queue is full, perhaps until the service thread raises another word.
        bool free = false, held = false;
        const auto settle = [&] {
            const std::lock_guard lock(mutex_);
            s.claimed = false;
            if (free) s.busy = false;
            if (!held) return;
            s.busy = true;
            s.raised = false;
            s.task = task;
            s.value = value;
            signals_busy_.store(1, std::memory_order_release);
        };
        try {
            free = !used || port.passed(i);
            if (free) port.hold(stream, &signal_words_[i], value, i);
            held = free;
        } catch (...) {
            settle();
            throw;
        }
        settle();
        if (held) return true;
    }
    return false;
}

void stream_join::service(const std::function<bool(task_handle)>& is_retired)
{
    if (signals_busy_.load(std::memory_order_acquire) != 0) raise(is_retired);
}

/// By the lock, whatever signals_busy_ says: a signal() that is on its way is seen here, or it sees what was said before this.
void stream_join::let_all_go()
{
    raise([](task_handle) { return true; });
}

template <class IsRetired>
void stream_join::raise(const IsRetired& is_retired)
{
    const std::lock_guard lock(mutex_);
    u32 left = 0;
    for (u32 i = 0; i < words; ++i) {
        waiting_signal& s = signals_[i];
        if (s.claimed || !s.busy || s.raised) continue;
        if (!is_retired(s.task)) {
            ++left;
            continue;
        }
        P::store(edge::R17_stream_released, signal_words_[i], s.value, order::release, scope::system);
        s.raised = true;
    }
    signals_busy_.store(left != 0, std::memory_order_release);
}

} // namespace slipstream::host
