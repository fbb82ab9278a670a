// The host platform: std::threads and the C++ memory model. It is what a machine without a GPU runs, and what TSan checks.
#pragma once
#include "device/platform.hpp"
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif
#if defined(__SANITIZE_THREAD__)
#define SLIPSTREAM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLIPSTREAM_TSAN 1
#endif
#endif

namespace slipstream::device {

/// Called before every atomic operation when set: a stress test injects delays here. Null in production.
inline std::atomic<void (*)(edge)> host_delay_hook{nullptr};

struct host_platform {
    template <class T> using word = abi::word<T>;
    template <class T> using cell = abi::cell<T>;
    using chunk_word = abi::chunk_word;
    static constexpr u32 worker_groups = 32; ///< 1024 workers
    static constexpr u32 mailbox_depth = mailbox_places;
    static constexpr u32 wait_for_linker = 0;
    static constexpr u32 look_at_request = 2;
    static constexpr u32 look_at_rings = 4;
    static constexpr u32 look_around = 16;
    static constexpr u32 look_for_stop = 64;

    static constexpr std::memory_order std_order(order o)
    {
        switch (o) {
        case order::acquire: return std::memory_order_acquire;
        case order::release: return std::memory_order_release;
        case order::acq_rel: return std::memory_order_acq_rel;
        default: return std::memory_order_relaxed;
        }
    }

    // TSan does not understand fences: there, a load that a fence will follow acquires by itself and a store that a fence
    // precedes releases by itself, so that TSan sees the edge the fence makes.
#if SLIPSTREAM_TSAN
    static constexpr order load_order(order) { return order::acquire; }
    static constexpr order store_order(order) { return order::release; }
    static constexpr order rmw_order(order) { return order::acq_rel; }
#else
    static constexpr order load_order(order o) { return o; }
    static constexpr order store_order(order o) { return o; }
    static constexpr order rmw_order(order o) { return o; }
#endif

    static void hook(edge e)
    {
        if (auto* delay = host_delay_hook.load(std::memory_order_relaxed)) delay(e);
    }

    template <class T> static T load(edge e, const word<T>& w, order o, scope)
    {
        hook(e);
        return std::atomic_ref<T>(const_cast<T&>(w.raw)).load(std_order(load_order(o)));
    }

    template <class T> static void store(edge e, word<T>& w, T value, order o, scope)
    {
        hook(e);
        std::atomic_ref<T>(w.raw).store(value, std_order(store_order(o)));
    }

    template <class T> static T fetch_add(edge e, word<T>& w, T value, order o, scope)
    {
        hook(e);
        return std::atomic_ref<T>(w.raw).fetch_add(value, std_order(o));
    }

    template <class T> static void add(edge e, word<T>& w, T value, order o, scope)
    {
        hook(e);
        std::atomic_ref<T>(w.raw).fetch_add(value, std_order(rmw_order(o)));
    }

    // 16 bytes: an aligned vector move is one access on every x86-64 with AVX (and crosses PCIe as one). Elsewhere, and
    // under TSan, two words, the tag in the last of them. A reader may be late (broadcast.hpp) and look while the place is written
    // again: the tag becomes one that nobody expects first, and the reader looks at it twice (a seqlock; Boehm, 2012).
    static abi::chunk load(edge e, const chunk_word& c, order o, scope)
    {
        hook(e);
        abi::chunk out;
#if defined(__x86_64__) && !SLIPSTREAM_TSAN
        __m128i v = _mm_load_si128(reinterpret_cast<const __m128i*>(&c.raw));
        asm volatile("" : "+x"(v)); // without it g++ may split the move into four loads, and the tag may come from an older state
        if (o != order::relaxed) asm volatile("" : : : "memory"); // x86 loads acquire; so must the compiler
        _mm_storeu_si128(reinterpret_cast<__m128i*>(&out), v);
#else
        (void)o;
        auto* halves = const_cast<u64*>(reinterpret_cast<const u64*>(&c.raw));
        u64 value[2];
        u64 again = std::atomic_ref<u64>(halves[1]).load(std::memory_order_acquire);
        do {
            value[1] = again;
            value[0] = std::atomic_ref<u64>(halves[0]).load(std::memory_order_acquire);
            again = std::atomic_ref<u64>(halves[1]).load(std::memory_order_acquire);
        } while (again != value[1]);
        __builtin_memcpy(&out, value, sizeof out);
#endif
        return out;
    }

    /// For who has seen that nothing is delayed: a look at the hook before each chunk, and the registers that a call might
    /// need saved, cost a submission more than its stores.
    struct undelayed {
        static void store(edge, chunk_word& c, const abi::chunk& value, order o, scope)
        {
            (void)o; // x86 stores release; the other path always does
#if defined(__x86_64__) && !SLIPSTREAM_TSAN
            __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&value));
            asm volatile("" : "+x"(v) : : "memory");
            _mm_store_si128(reinterpret_cast<__m128i*>(&c.raw), v);
            asm volatile("" : : : "memory");
#else
            u64 halves_in[2];
            __builtin_memcpy(halves_in, &value, sizeof value);
            auto* halves = reinterpret_cast<u64*>(&c.raw);
            // One writer at a time. Tags of mails have the highest bit set; no tag at all stays none.
            const u64 before = std::atomic_ref<u64>(halves[1]).load(std::memory_order_relaxed);
            std::atomic_ref<u64>(halves[1]).store(before == 0 ? 0 : before ^ u64{1} << 63, std::memory_order_relaxed);
            std::atomic_ref<u64>(halves[0]).store(halves_in[0], std::memory_order_release);
            std::atomic_ref<u64>(halves[1]).store(halves_in[1], std::memory_order_release);
#endif
        }
    };
    static bool delayed() { return host_delay_hook.load(std::memory_order_relaxed) != nullptr; }

    static void store(edge e, chunk_word& c, const abi::chunk& value, order o, scope s)
    {
        hook(e);
        undelayed::store(e, c, value, o, s);
    }

    static void fence(edge e, order o, scope)
    {
        hook(e);
#if !SLIPSTREAM_TSAN
        std::atomic_thread_fence(std_order(o));
#else
        (void)o;
#endif
    }

    template <class T> static T get(const cell<T>& c) { return c.raw; }
    template <class T> static void set(cell<T>& c, T value) { c.raw = value; }

    template <class T> static T* keep(T* address) { return address; }
    static u32 keep(u32 value) { return value; }
    /// Spin briefly, then give the core away: workers outnumber cores on the machines this platform runs on.
    static void pause(u32 attempt)
    {
        if (attempt < 16) {
#if defined(__x86_64__)
            _mm_pause();
#endif
        } else if (attempt < 64) {
            std::this_thread::yield();
        } else {
            std::this_thread::sleep_for(std::chrono::microseconds(attempt < 256 ? 20 : 100));
        }
    }

    static u64 clock_ns()
    {
        return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                    std::chrono::steady_clock::now().time_since_epoch())
                                    .count());
    }

    /// A team of one lane: every collective is the identity.
    struct team {
        static constexpr u32 rank() { return 0; }
        static constexpr u32 size() { return 1; }
        static constexpr bool leader() { return true; }
        static void sync() {}
        template <class Do> static void each32(Do act)
        {
            for (u32 k = 0; k < 32; ++k) act(k);
        }
        template <class Pred> static u32 mask32(Pred pred)
        {
            u32 mask = 0;
            for (u32 k = 0; k < 32; ++k) mask |= static_cast<u32>(static_cast<bool>(pred(k))) << k;
            return mask;
        }
        template <u32 N, class Load, class Pred> static void masks32(u32 (&masks)[N], Load load, Pred pred)
        {
            for (u32 n = 0; n < N; ++n)
                masks[n] = mask32([&](u32 k) { return pred(n, k, load(n, k)); });
        }
        template <class Pred, class Hit> static void each_hit(u32 mask, Pred pred, Hit hit)
        {
            for (; mask != 0; mask &= mask - 1)
                for (u32 k = 0; k < 32; ++k)
                    if (pred(lowest_bit(mask), k)) hit(lowest_bit(mask), k);
        }
        template <class Key, class Array> static void match32(u32 mask, Key key, Array& first)
        {
            for (u32 rest = mask; rest != 0; rest &= rest - 1) {
                const u32 k = lowest_bit(rest);
                u32 other = lowest_bit(mask);
                while (key(other) != key(k)) other = lowest_bit(mask & (~u32{1} << other));
                first.at(0, k) = other;
            }
        }
        template <class Array> static u32 from_lane(Array& values, u32 k) { return values.at(0, k); }
        template <class Array> static void gather32(Array& values, Array& index, Array& out)
        {
            for (u32 k = 0; k < 32; ++k) out.at(0, k) = values.at(0, index.at(0, k));
        }
        template <class Array> static void sums_before(Array& values)
        {
            u32 sum = 0;
            for (u32 k = 0; k < 32; ++k) sum += std::exchange(values.at(0, k), sum);
        }
        static u32 add(u32& word, u32 value) { return std::exchange(word, word + value); }
        static u32 add(cell<u32>& word, u32 value) { return add(word.raw, value); }
        static u32 set_bits(u32& word, u32 bits) { return std::exchange(word, word | bits); }
        static u32 set_bits(cell<u32>& word, u32 bits) { return set_bits(word.raw, bits); }
        static u32 clear_bits(u32& word, u32 bits) { return std::exchange(word, word & ~bits); }
        static void lower(u32& word, u32 value) { word = value < word ? value : word; }
        static bool claim(u32& word, u32 value) { return join(word, value); }
        static bool join(u32& word, u32 value)
        {
            if (word == 0) word = value;
            return word == value;
        }
        template <class T> static T broadcast(T value) { return value; }
        static bool any(bool value) { return value; }
        static u32 reduce_min(u32 value) { return value; }
        static u32 reduce_add(u32 value) { return value; }
    };

    template <class T, u32 N> struct lane_array {
        T values[N][32];
        T& at(u32 n, u32 k) { return values[n][k]; }
    };

    /// One team: it has nobody to wait for.
    struct crew {
        static constexpr u32 teams() { return 1; }
        static constexpr u32 index() { return 0; }
        static void sync() {}
        static void sync_helpers() {}
        host_platform::team& team() { return team_; }

    private:
        host_platform::team team_;
    };
};

} // namespace slipstream::device
