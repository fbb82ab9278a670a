// A test that may hang becomes a test that fails: its body runs on a thread of its own and is given up after a while.
//
// A body that is given up keeps running on what it captured, so it must own all it uses (capture nothing by reference that
// the test case owns). In a passing run every body ends and is joined.
#pragma once
#include "tests/unit/trace_catch.hpp"
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

namespace slipstream::tests {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int time_stretch = 6; ///< sanitizers slow everything down
#else
inline constexpr int time_stretch = 2; ///< the build machines share their cores
#endif

template <class Body>
void in_time(int seconds, Body body)
{
    std::packaged_task<void()> task(std::move(body));
    auto ended = task.get_future();
    std::thread thread(std::move(task));
    if (ended.wait_for(std::chrono::seconds(seconds * time_stretch)) != std::future_status::ready) {
        thread.detach();
        FAIL("no end within " << seconds * time_stretch << " s: given up");
    }
    thread.join();
    ended.get(); // rethrows what the body threw
}

/// A number from the environment, or `otherwise`.
inline std::uint64_t number_from_env(const char* name, std::uint64_t otherwise)
{
    const char* const text = std::getenv(name);
    return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Ends the process when the whole program takes longer than it ever should.
inline void start_watchdog(int seconds)
{
    std::thread([seconds] {
        std::this_thread::sleep_for(std::chrono::seconds(seconds));
        std::fprintf(stderr, "watchdog: no end within %d s\n", seconds);
        std::fflush(nullptr);
        std::_Exit(3);
    }).detach();
}

} // namespace slipstream::tests
