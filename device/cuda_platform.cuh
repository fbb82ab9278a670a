// The CUDA platform: the one file with PTX that touches memory. Orders and scopes must be compile-time constants at every call.
//
// Why PTX: `.v4.u32` counts as four accesses and libcu++'s 16-byte atomic_ref does not assemble, so the 16-byte access is
// spelled here; and libcu++'s fences do not say which instruction they become, which is what this file is about.
//   relaxed load/store   one LDG/STG, no cache invalidation: the only operation to poll with (gpu scope)
//   acquire load         LDG + CCTL.IVALL: invalidates the SM's whole L1
//   release store        MEMBAR + ST      fence acq_rel   MEMBAR + CCTL.IVALL; never __threadfence(), which is the SC form
//   release fence        MEMBAR           acquire fence   CCTL.IVALL
#pragma once
#include "device/platform.hpp"

namespace slipstream::device {

/// Which warp of the control block has which role. Warp w runs on partition w % 4 of the SM, which has an instruction cache of its
/// own, smaller than what two roles run in turns: two of admission's helpers, who run the same code at once, share one. All other
/// pairs measured alike (device/tried.md).
struct control_warps {
    static constexpr u32 scheduler = 0, linker = 1, notifier = 5, ingest = 7;
    static constexpr u32 admission[] = {4, 2, 3, 6}; ///< the crew: who leads, and the helpers

    /// By warp, four bits each: its place in the crew.
    static constexpr u32 crew_places()
    {
        u32 places = 0;
        for (u32 i = 0; i < 4; ++i) places |= i << 4 * admission[i];
        return places;
    }
};

struct cuda_platform {
    template <class T> using word = abi::word<T>;
    template <class T> using cell = abi::cell<T>;
    using chunk_word = abi::chunk_word;
    static constexpr u32 worker_groups = 5; ///< 160 workers: one for each SM of the largest chip; each
                                            ///< control kernel says its own (control_kernel.cu)
    static constexpr u32 mailbox_depth = mailbox_places;
    static constexpr u32 look_at_request = 16;
    static constexpr u32 look_at_rings = 16;
    static constexpr u32 look_around = 128;
    static constexpr u32 wait_for_linker = 8;
    static constexpr u32 look_for_stop = 64;

    // Words of block scope lie in fast memory, all others in device or host memory, and the instructions say so: a generic
    // access wants an address of two registers and looks where it leads.
    template <class T> __device__ static __forceinline__ u32 near_address(const word<T>& w)
    {
        return static_cast<u32>(__cvta_generic_to_shared(&w.raw));
    }
    template <class T> __device__ static __forceinline__ u64 far_address(const word<T>& w)
    {
        return __cvta_generic_to_global(&w.raw);
    }

#define SLIPSTREAM_LOAD(instruction, type, constraint)                                                                 \
    do {                                                                                                               \
        if (s == scope::block)                                                                                         \
            asm volatile("ld." instruction ".cta.shared." type " %0, [%1];"                                            \
                         : "=" constraint(value)                                                                       \
                         : "r"(near_address(w))                                                                        \
                         : "memory");                                                                                  \
        else if (s == scope::device)                                                                                   \
            asm volatile("ld." instruction ".gpu.global." type " %0, [%1];"                                            \
                         : "=" constraint(value)                                                                       \
                         : "l"(far_address(w))                                                                         \
                         : "memory");                                                                                  \
        else                                                                                                           \
            asm volatile("ld." instruction ".sys.global." type " %0, [%1];"                                            \
                         : "=" constraint(value)                                                                       \
                         : "l"(far_address(w))                                                                         \
                         : "memory");                                                                                  \
    } while (false)

    template <class T> __device__ static __forceinline__ T load(edge, const word<T>& w, order o, scope s)
    {
        T value;
        if constexpr (sizeof(T) == 4) {
            if (o == order::relaxed) SLIPSTREAM_LOAD("relaxed", "u32", "r");
            else SLIPSTREAM_LOAD("acquire", "u32", "r");
        } else {
            if (o == order::relaxed) SLIPSTREAM_LOAD("relaxed", "u64", "l");
            else SLIPSTREAM_LOAD("acquire", "u64", "l");
        }
        return value;
    }
#undef SLIPSTREAM_LOAD

#define SLIPSTREAM_STORE(instruction, type, constraint)                                                                \
    do {                                                                                                               \
        if (s == scope::block)                                                                                         \
            asm volatile("st." instruction ".cta.shared." type " [%0], %1;" ::"r"(near_address(w)), constraint(value)  \
                         : "memory");                                                                                  \
        else if (s == scope::device)                                                                                   \
            asm volatile("st." instruction ".gpu.global." type " [%0], %1;" ::"l"(far_address(w)), constraint(value)   \
                         : "memory");                                                                                  \
        else                                                                                                           \
            asm volatile("st." instruction ".sys.global." type " [%0], %1;" ::"l"(far_address(w)), constraint(value)   \
                         : "memory");                                                                                  \
    } while (false)

    template <class T> __device__ static __forceinline__ void store(edge, word<T>& w, T value, order o, scope s)
    {
        if constexpr (sizeof(T) == 4) {
            if (o == order::relaxed) SLIPSTREAM_STORE("relaxed", "u32", "r");
            else SLIPSTREAM_STORE("release", "u32", "r");
        } else {
            if (o == order::relaxed) SLIPSTREAM_STORE("relaxed", "u64", "l");
            else SLIPSTREAM_STORE("release", "u64", "l");
        }
    }
#undef SLIPSTREAM_STORE

    __device__ static __forceinline__ u32 fetch_add(edge, word<u32>& w, u32 value, order, scope)
    {
        // Only relaxed, device scope is used (tickets).
        u32 before;
        asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(&w.raw), "r"(value) : "memory");
        return before;
    }

    __device__ static __forceinline__ u64 fetch_add(edge, word<u64>& w, u64 value, order, scope)
    {
        // Likewise (the watch word).
        u64 before;
        asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(before) : "l"(&w.raw), "l"(value) : "memory");
        return before;
    }

    __device__ static __forceinline__ void add(edge, word<u64>& w, u64 value, order, scope)
    {
        // Only relaxed, device scope is used (finished counts, the watch word).
        asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(&w.raw), "l"(value) : "memory");
    }

    // One access of 16 bytes, by the memory model, from sm_70 on.
    __device__ static __forceinline__ abi::chunk load(edge, const chunk_word& c, order o, scope s)
    {
        abi::chunk out;
#define SLIPSTREAM_LOAD128(instruction)                                                                                \
    asm volatile("{\n\t.reg .b128 v;\n\t.reg .b64 lo, hi;\n\t" instruction " v, [%4];\n\tmov.b128 {lo, hi}, v;\n\t"    \
                 "mov.b64 {%0, %1}, lo;\n\tmov.b64 {%2, %3}, hi;\n\t}"                                                 \
                 : "=r"(out.w[0]), "=r"(out.w[1]), "=r"(out.w[2]), "=r"(out.w[3])                                      \
                 : "l"(&c.raw)                                                                                         \
                 : "memory")
        if (o == order::relaxed) {
            if (s == scope::system) SLIPSTREAM_LOAD128("ld.relaxed.sys.global.b128");
            else SLIPSTREAM_LOAD128("ld.relaxed.gpu.global.b128");
        } else {
            if (s == scope::system) SLIPSTREAM_LOAD128("ld.acquire.sys.global.b128");
            else SLIPSTREAM_LOAD128("ld.acquire.gpu.global.b128");
        }
#undef SLIPSTREAM_LOAD128
        return out;
    }

    __device__ static __forceinline__ void store(edge, chunk_word& c, const abi::chunk& v, order, scope s)
    {
        // Only relaxed chunk stores are used on the device: a fence stands before them.
#define SLIPSTREAM_STORE128(instruction)                                                                               \
    asm volatile("{\n\t.reg .b128 v;\n\t.reg .b64 lo, hi;\n\tmov.b64 lo, {%1, %2};\n\tmov.b64 hi, {%3, %4};\n\t"       \
                 "mov.b128 v, {lo, hi};\n\t" instruction " [%0], v;\n\t}" ::"l"(&c.raw),                               \
                 "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])                                                    \
                 : "memory")
        if (s == scope::system) SLIPSTREAM_STORE128("st.relaxed.sys.global.b128");
        else SLIPSTREAM_STORE128("st.relaxed.gpu.global.b128");
#undef SLIPSTREAM_STORE128
    }

    /// By those threads that say so, relaxed, of system scope. Without a branch, so that whole warps go on.
    __device__ static __forceinline__ void store_if(bool stores, edge, chunk_word& c, const abi::chunk& v)
    {
        asm volatile("{\n\t.reg .pred stores;\n\t.reg .b128 v;\n\t.reg .b64 lo, hi;\n\tsetp.ne.u32 stores, %5, 0;\n\t"
                     "mov.b64 lo, {%1, %2};\n\tmov.b64 hi, {%3, %4};\n\tmov.b128 v, {lo, hi};\n\t"
                     "@stores st.relaxed.sys.global.b128 [%0], v;\n\t}" ::"l"(&c.raw),
                     "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3]), "r"(u32{stores})
                     : "memory");
    }

    __device__ static __forceinline__ void fence(edge, order o, scope s)
    {
#define SLIPSTREAM_FENCE(kind)                                                                                         \
    do {                                                                                                               \
        if (s == scope::block) asm volatile("fence." kind ".cta;" ::: "memory");                                       \
        else if (s == scope::device) asm volatile("fence." kind ".gpu;" ::: "memory");                                 \
        else asm volatile("fence." kind ".sys;" ::: "memory");                                                         \
    } while (false)
        if (o == order::acquire) SLIPSTREAM_FENCE("acquire");
        else if (o == order::release) SLIPSTREAM_FENCE("release");
        else SLIPSTREAM_FENCE("acq_rel");
#undef SLIPSTREAM_FENCE
    }

    template <class T> __device__ static __forceinline__ T get(const cell<T>& c) { return c.raw; }
    template <class T> __device__ static __forceinline__ void set(cell<T>& c, T value) { c.raw = value; }

    /// Polls are paced by their own round trip (300 to 1200 ns): sleeping would only add latency.
    __device__ static __forceinline__ void pause(u32) {}

    /// Has the address now, not where it is used.
    template <class T> __device__ static __forceinline__ T* keep(T* address)
    {
        asm volatile("" : "+l"(address));
        return address;
    }
    __device__ static __forceinline__ u32 keep(u32 value)
    {
        asm volatile("" : "+r"(value));
        return value;
    }

    __device__ static __forceinline__ u64 clock_ns()
    {
        u64 now;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        return now;
    }

    /// A warp.
    struct team {
        __device__ static __forceinline__ u32 rank() { return threadIdx.x & 31; }
        __device__ static constexpr u32 size() { return 32; }
        __device__ static __forceinline__ bool leader() { return rank() == 0; }
        __device__ static __forceinline__ void sync() { __syncwarp(); }
        template <class Do> __device__ static __forceinline__ void each32(Do act) { act(rank()); }
        template <class Pred> __device__ static __forceinline__ u32 mask32(Pred pred)
        {
            __syncwarp();
            const bool mine = pred(rank());
            const u32 mask = __ballot_sync(0xffffffff, mine);
            __syncwarp();
            return mask;
        }
        template <u32 N, class Load, class Pred>
        __device__ static __forceinline__ void masks32(u32 (&masks)[N], Load load_item, Pred pred)
        {
            using value_type = decltype(load_item(0u, 0u));
            value_type values[N];
            __syncwarp();
#pragma unroll
            for (u32 n = 0; n < N; ++n) values[n] = load_item(n, rank());
#pragma unroll
            for (u32 n = 0; n < N; ++n) masks[n] = __ballot_sync(0xffffffff, pred(n, rank(), values[n]));
            __syncwarp();
        }
        template <class Pred, class Hit> __device__ static __forceinline__ void each_hit(u32 mask, Pred pred, Hit hit)
        {
            u32 mine = 0;
            // Two at a time: neighbouring words hide each other's load.
#pragma unroll 1
            while (mask != 0) {
                const u32 a = lowest_bit(mask);
                const u32 rest = mask & (mask - 1);
                const u32 b = rest != 0 ? lowest_bit(rest) : a;
                const bool in_a = pred(a, rank());
                const bool in_b = pred(b, rank());
                mine |= static_cast<u32>(in_a) << a | static_cast<u32>(in_b) << b;
                mask = rest & (rest - 1);
            }
#pragma unroll 1
            for (; mine != 0; mine &= mine - 1) hit(lowest_bit(mine), rank());
            __syncwarp();
        }
        template <class Key, class Array> __device__ static __forceinline__ void match32(u32 mask, Key key, Array& first)
        {
            __syncwarp();
            if (mask >> rank() & 1) first.at(0, rank()) = lowest_bit(__match_any_sync(mask, key(rank())));
            __syncwarp();
        }
        template <class Array> __device__ static __forceinline__ u32 from_lane(Array& values, u32 k)
        {
            return __shfl_sync(0xffffffff, values.at(0, k), static_cast<int>(k));
        }
        template <class Array> __device__ static __forceinline__ void gather32(Array& values, Array& index, Array& out)
        {
            out.at(0, rank()) = __shfl_sync(0xffffffff, values.at(0, rank()), static_cast<int>(index.at(0, rank())));
        }
        template <class Array> __device__ static __forceinline__ void sums_before(Array& values)
        {
            const u32 own = values.at(0, rank());
            u32 sum = own;
#pragma unroll
            for (u32 step = 1; step < 32; step *= 2) {
                const u32 other = __shfl_up_sync(0xffffffff, sum, step);
                if (rank() >= step) sum += other;
            }
            values.at(0, rank()) = sum - own;
        }
        __device__ static __forceinline__ u32 add(u32& word, u32 value) { return atomicAdd(&word, value); }
        __device__ static __forceinline__ u32 add(cell<u32>& word, u32 value) { return atomicAdd(&word.raw, value); }
        __device__ static __forceinline__ u32 set_bits(u32& word, u32 bits) { return atomicOr(&word, bits); }
        __device__ static __forceinline__ u32 set_bits(cell<u32>& word, u32 bits) { return atomicOr(&word.raw, bits); }
        __device__ static __forceinline__ u32 clear_bits(u32& word, u32 bits) { return atomicAnd(&word, ~bits); }
        __device__ static __forceinline__ void lower(u32& word, u32 value) { atomicMin(&word, value); }
        __device__ static __forceinline__ bool claim(u32& word, u32 value) { return atomicCAS(&word, 0u, value) == 0; }
        __device__ static __forceinline__ bool join(u32& word, u32 value)
        {
            const u32 before = atomicCAS(&word, 0u, value);
            return before == 0 || before == value;
        }
        template <class T> __device__ static __forceinline__ T broadcast(T value)
        {
            return __shfl_sync(0xffffffff, value, 0);
        }
        __device__ static __forceinline__ bool any(bool value) { return __any_sync(0xffffffff, value); }
        __device__ static __forceinline__ u32 reduce_min(u32 value) { return __reduce_min_sync(0xffffffff, value); }
        __device__ static __forceinline__ u32 reduce_add(u32 value) { return __reduce_add_sync(0xffffffff, value); }
    };

    /// Registers: every index `n` must be known when the loop around it is unrolled.
    template <class T, u32 N> struct lane_array {
        T values[N];
        __device__ __forceinline__ T& at(u32 n, u32) { return values[n]; }
    };

    /// The warps of control_warps::admission, with named barriers of their own.
    struct crew {
        __device__ static constexpr u32 teams() { return 4; }
        __device__ static __forceinline__ u32 index() { return control_warps::crew_places() >> threadIdx.x / 32 * 4 & 3; }
        // barrier.sync, not bar.sync: that one is barrier.sync.aligned, which synccheck reports where leader and helpers do
        // not meet in one and the same instruction.
        __device__ static __forceinline__ void sync() { asm volatile("barrier.sync 1, %0;" ::"n"(32 * teams()) : "memory"); }
        __device__ static __forceinline__ void sync_helpers()
        {
            asm volatile("barrier.sync 2, %0;" ::"n"(32 * (teams() - 1)) : "memory");
        }
        __device__ __forceinline__ cuda_platform::team& team() { return lanes_; }

    private:
        cuda_platform::team lanes_;
    };
};

} // namespace slipstream::device
