// The host platform with crews of several teams, each a thread: what it has one lane for, and one team, meets here by real
// threads, and takes its lanes' turns in any order.
#pragma once
#include "device/host_platform.hpp"
#include <atomic>

namespace slipstream::tests {

struct crew_platform : device::host_platform {
    /// What a delay before a team's work on shared words goes by: they have no edge.
    static constexpr device::edge shared_words = device::edge::P5_self;

    /// One lane still, which does the work of 32: in an order drawn anew each time. Teams share words: all that they do to them is
    /// atomic, and delayed like what platforms have edges for.
    struct team : device::host_platform::team {
        template <class Do> static void each32(Do act)
        {
            thread_local u32 state = 1;
            state = state * 1664525u + 1013904223u;
            const u32 first = state >> 16, step = state >> 24 | 1;
            for (u32 i = 0; i < 32; ++i) act((first + i * step) % 32);
        }
        template <class Pred> static u32 mask32(Pred pred)
        {
            u32 mask = 0;
            each32([&](u32 k) { mask |= static_cast<u32>(static_cast<bool>(pred(k))) << k; });
            return mask;
        }
        template <class Pred, class Hit> static void each_hit(u32 mask, Pred pred, Hit hit)
        {
            for (; mask != 0; mask &= mask - 1)
                each32([&](u32 k) {
                    if (pred(device::lowest_bit(mask), k)) hit(device::lowest_bit(mask), k);
                });
        }
        static u32 add(u32& word, u32 value) { return shared(word).fetch_add(value, std::memory_order_relaxed); }
        static u32 add(cell<u32>& word, u32 value) { return add(word.raw, value); }
        static u32 set_bits(u32& word, u32 bits) { return shared(word).fetch_or(bits, std::memory_order_relaxed); }
        static u32 set_bits(cell<u32>& word, u32 bits) { return set_bits(word.raw, bits); }
        static u32 clear_bits(u32& word, u32 bits) { return shared(word).fetch_and(~bits, std::memory_order_relaxed); }
        static bool claim(u32& word, u32 value)
        {
            u32 before = 0;
            return shared(word).compare_exchange_strong(before, value, std::memory_order_relaxed);
        }
        static bool join(u32& word, u32 value)
        {
            u32 before = 0;
            return shared(word).compare_exchange_strong(before, value, std::memory_order_relaxed) || before == value;
        }

    private:
        static std::atomic_ref<u32> shared(u32& word)
        {
            hook(shared_words);
            return std::atomic_ref<u32>(word);
        }
    };

    class barrier {
    public:
        explicit barrier(u32 parties) : parties_(parties) {}
        void arrive_and_wait()
        {
            const u32 round = round_.load(std::memory_order_relaxed);
            if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == parties_) {
                arrived_.store(0, std::memory_order_relaxed);
                round_.store(round + 1, std::memory_order_release);
                return;
            }
            // Longer than roles wait before they sleep: there are more barriers than anything else.
            for (u32 attempt = 0; round_.load(std::memory_order_acquire) == round; ++attempt)
                pause(attempt < 256 ? attempt % 64 : attempt);
        }

    private:
        u32 parties_;
        std::atomic<u32> arrived_{0}, round_{0};
    };

    struct meeting_place {
        explicit meeting_place(u32 teams_there) : teams(teams_there), all(teams_there), helpers(teams_there - 1) {}
        u32 teams;
        barrier all, helpers;
    };

    class crew {
    public:
        crew() = default; ///< of one
        crew(meeting_place& at, u32 index) : at_(&at), index_(index) {}
        u32 teams() const { return at_ == nullptr ? 1 : at_->teams; }
        u32 index() const { return index_; }
        void sync() { meet(at_->all); }
        void sync_helpers() { meet(at_->helpers); }
        crew_platform::team& team() { return team_; }

    private:
        void meet(barrier& others)
        {
            hook(shared_words);
            others.arrive_and_wait();
        }

        meeting_place* at_ = nullptr;
        u32 index_ = 0;
        crew_platform::team team_;
    };
};

} // namespace slipstream::tests
