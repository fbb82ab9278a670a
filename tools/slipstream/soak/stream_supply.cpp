#include "tools/slipstream/soak/stream_supply.hpp"

namespace slipstream::soak {

stream_supply::stream_supply(u32 threads, std::function<soak_case(u64)> case_at)
    : case_at_(std::move(case_at)), ahead_(2 * threads + 2)
{
    for (u32 i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

stream_supply::~stream_supply()
{
    {
        const std::lock_guard lock(mutex_);
        stop_ = true;
    }
    changed_.notify_all();
    for (auto& t : threads_) t.join();
}

void stream_supply::work()
{
    for (;;) {
        u64 mine = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return stop_ || started_ < taken_ + ahead_; });
            if (stop_) return;
            mine = started_++;
        }
        made m;
        try {
            m.stream = std::make_unique<soak_stream>(case_at_(mine));
        } catch (...) {
            m.problem = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex_);
            ready_.emplace(mine, std::move(m));
        }
        changed_.notify_all();
    }
}

std::unique_ptr<soak_stream> stream_supply::next()
{
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.contains(taken_); });
    made m = std::move(ready_.extract(taken_).mapped());
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    if (m.problem) std::rethrow_exception(m.problem);
    return std::move(m.stream);
}

} // namespace slipstream::soak
