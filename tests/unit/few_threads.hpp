// So little address space that a process gets a few threads more and no others.
#pragma once
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace slipstream::tests {

/// Sanitizers map more than any limit.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool threads_can_be_few = false;
#else
inline constexpr bool threads_can_be_few = true;
#endif

/// While this lives: room for so many stacks, and for some memory beside them.
class few_threads {
public:
    explicit few_threads(std::uint64_t more)
    {
        pthread_attr_t attributes;
        std::size_t stack = 0;
        pthread_attr_init(&attributes);
        pthread_attr_getstacksize(&attributes, &stack);
        pthread_attr_destroy(&attributes);
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &before_);
        rlimit now = before_;
        now.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + more * stack + stack / 2;
        now.rlim_cur = std::min(now.rlim_cur, before_.rlim_max);
        set_ = pages != 0 && setrlimit(RLIMIT_AS, &now) == 0;
    }
    ~few_threads() { setrlimit(RLIMIT_AS, &before_); }
    few_threads(const few_threads&) = delete;
    few_threads& operator=(const few_threads&) = delete;
    bool set() const { return set_; }

private:
    rlimit before_{};
    bool set_ = false;
};

} // namespace slipstream::tests
