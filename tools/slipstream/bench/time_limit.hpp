// Ends the process with exit code 1 and one line when it takes too long: whatever hangs, a command ends.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace slipstream::bench {

class time_limit {
public:
    time_limit(std::string what, std::chrono::seconds limit);
    ~time_limit();
    time_limit(const time_limit&) = delete;
    time_limit& operator=(const time_limit&) = delete;

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool done_ = false;
    std::thread watch_;
};

} // namespace slipstream::bench
