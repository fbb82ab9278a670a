// Streams with their expected ends, made by several threads ahead of the engine that runs them.
#pragma once
#include "tools/slipstream/soak/soak_stream.hpp"
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace slipstream::soak {

class stream_supply {
public:
    /// case_at(i): what stream i is made of; called from any thread.
    stream_supply(u32 threads, std::function<soak_case(u64)> case_at);
    ~stream_supply();
    stream_supply(const stream_supply&) = delete;
    stream_supply& operator=(const stream_supply&) = delete;

    /// Streams 0, 1, 2, ...; waits for one that is not ready. Throws what making it threw.
    std::unique_ptr<soak_stream> next();

private:
    struct made {
        std::unique_ptr<soak_stream> stream;
        std::exception_ptr problem;
    };
    void work();

    std::function<soak_case(u64)> case_at_;
    u64 ahead_; ///< streams that may be ready or in the making
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<u64, made> ready_;
    u64 started_ = 0, taken_ = 0;
    bool stop_ = false;
    std::vector<std::thread> threads_;
};

} // namespace slipstream::soak
