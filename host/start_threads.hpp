// Threads of which all are started, or none: where one cannot be had midway, nobody is left behind waiting for it.
//
// OWNERS  the word at which they wait: its starter, until it has said go or leave; it lives until the last of them has looked
#pragma once
#include <atomic>
#include <memory>
#include <slipstream/status.hpp>
#include <system_error>
#include <thread>
#include <vector>

namespace slipstream::host {

struct make_std_thread {
    template <class Run> std::thread operator()(Run&& run) const { return std::thread(std::forward<Run>(run)); }
};

/// Starts `count` threads that run body(0), body(1) and so on. None of them begins before all are there. When one cannot be had
/// those before it are told to leave, and joined: then device_error, with `who` in front and `remedy` at the end.
/// make: makes a thread of what it is to run.
template <class Body, class Make = make_std_thread>
[[nodiscard]] std::vector<std::thread> start_threads(const std::string& who, u32 count, const std::string& remedy, const Body& body,
                                                     const Make& make = {})
{
    constexpr u32 wait = 0, go = 1, leave = 2;
    const auto word = std::make_shared<std::atomic<u32>>(wait);
    const auto say = [&](u32 what) {
        word->store(what, std::memory_order_release);
        word->notify_all();
    };
    std::vector<std::thread> threads;
    threads.reserve(count);
    try {
        for (u32 i = 0; i < count; ++i)
            threads.push_back(make([word, body, i] {
                word->wait(wait, std::memory_order_acquire);
                if (word->load(std::memory_order_acquire) == go) body(i);
            }));
    } catch (const std::exception& e) {
        say(leave);
        for (std::thread& t : threads) t.join();
        throw device_error(who + ": only " + std::to_string(threads.size()) + " of " + std::to_string(count)
                           + " threads could be started (" + e.what() + "); " + remedy);
    }
    say(go);
    return threads;
}

} // namespace slipstream::host
