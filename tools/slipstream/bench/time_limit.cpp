#include "tools/slipstream/bench/time_limit.hpp"
#include <cstdlib>
#include <spdlog/spdlog.h>

namespace slipstream::bench {

time_limit::time_limit(std::string what, std::chrono::seconds limit)
    : watch_([this, what = std::move(what), limit] {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, limit, [this] { return done_; })) return;
          spdlog::error("{} did not end within {} s; measure less (--seconds, --repeat), or report this", what, limit.count());
          std::_Exit(1); // destructors would wait for whatever hangs
      })
{
}

time_limit::~time_limit()
{
    {
        const std::lock_guard lock(mutex_);
        done_ = true;
    }
    ended_.notify_all();
    watch_.join();
}

} // namespace slipstream::bench
