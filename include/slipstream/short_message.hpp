// The message of nearly every task, put together in one go: its struct holds ranges and handles, and it says nothing beside.
//
// The same bytes as runtime_core::submit makes of it chunk by chunk (abi/message.hpp); that one also knows `after`, lists,
// rectangles, long ranges, joins of streams and messages that outgrow the ring.
// COST    of a submission: see host/README.md. Each task type has a function of its own, in which all that the type says
//         is a constant. A chunk is put together in registers: a load of 16 bytes that were stored in pieces waits until
//         they are in the cache.
#pragma once
#include <cstring>
#include <slipstream/task.hpp>
#include <utility>

namespace slipstream::detail {

inline constexpr u32 short_slots_max = 2;
inline constexpr u32 short_chunks_max = short_slots_max * abi::slot_chunks;
/// beside the header and one chunk of entries
inline constexpr u32 short_scalars_max = (short_chunks_max - 2) * abi::chunk_payload_words;

/// A chunk in a register.
using chunk_vector = u64 __attribute__((vector_size(sizeof(abi::chunk))));

inline chunk_vector vector_of(const abi::chunk& c) { return chunk_vector{c.w[0] | u64{c.w[1]} << 32, c.w[2] | u64{c.w[3]} << 32}; }

/// Room for a message before it is known whether it is short.
using short_room = chunk_vector[1 + abi::task_members_max + short_scalars_max / abi::chunk_payload_words + abi::slot_chunks];

/// What became of a task's message. A register.
struct short_size {
    u32 slots = 0;       ///< of the ring; 0: this one is not short
    u32 handles_end = 0; ///< behind the highest handle in it: a runtime takes those it has given out, and no others
};

/// Puts a task's message, without tags, into `out`.
using short_encoder = short_size (*)(const void* task, u32 type, u32 blocks, short_room& out);

/// What can be said of a task type's members without their offsets.
template <class... Members>
struct member_census {
    template <class M>
    static constexpr bool is_tile()
    {
        if constexpr (is_access_v<M>) return M::is_rect;
        else return false;
    }
    static constexpr u32 accesses = (0u + ... + (is_access_v<Members> ? 1u : 0u));
    static constexpr u32 access_words = (0u + ... + (is_access_v<Members> ? static_cast<u32>(sizeof(Members) / 4) : 0u));
    static constexpr bool tiles = (false || ... || is_tile<Members>());
};

template <class T>
using census_of
    = decltype(with_members(std::declval<T&>(), []<class... M>(M&...) { return member_census<std::remove_cv_t<M>...>{}; }));

/// Scalar words of T. The size of a struct with an access is a multiple of eight.
template <class T>
inline constexpr u32 scalars_of = static_cast<u32>(sizeof(T) / 4) - census_of<T>::access_words;

/// Calls visit(k) for k = 0 to N - 1; k is a constant expression.
template <u32 N, class Visit>
void for_each_constant(Visit&& visit)
{
    [&]<u32... K>(std::integer_sequence<u32, K...>) {
        (visit(std::integral_constant<u32, K>{}), ...);
    }(std::make_integer_sequence<u32, N>{});
}

/// Can a message of T be short at all?
template <class T>
constexpr bool has_short_messages()
{
    if constexpr (!check_task_type<T>()) return false;
    else if constexpr (census_of<T>::accesses == 0 || census_of<T>::tiles) return false;
    else return scalars_of<T> <= short_scalars_max;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
// padding is sent with the rest, and in the caller the compiler sees that nobody wrote it
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
/// See short_encoder.
template <class T>
[[gnu::always_inline]] inline short_size encode_short(const void* task, u32 type, u32 blocks, short_room& out)
{
    constexpr u32 accesses = census_of<T>::accesses, scalars = scalars_of<T>;
    constexpr u32 range_words = sizeof(packed_range) / 4;
    const auto read = [&]<class W>(u32 at, W& w) { std::memcpy(&w, static_cast<const unsigned char*>(task) + at, sizeof w); };
    u32 chunks = 1;
    u32 first = 0, second = 0; // handles of the chunk in hand
    u32 run = 0;               // of them
    u32 handles_end = 0;
    const auto put_handles = [&](u32 third) {
        out[chunks++] = vector_of({{first, second, third, 0}});
        second = run = 0;
    };
    u64 bytes_above = 0;              // what a range's word of bytes has no room for
    u32 scalars_before[accesses] = {}; // each access
    u32 seen = 0;
    T probe{}; // has its members where the task has them
    for_each_member(probe, [&]<class M>(M& member) {
        if constexpr (is_access_v<M>) {
            const auto at = static_cast<u32>(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&probe));
            scalars_before[seen] = at / 4 - seen * range_words;
            ++seen;
            packed_range p;
            read(at, p.address); // one by one, as they were stored
            read(at + sizeof p.address, p.bytes_and_handle);
            if (const u64 handle_plus_one = p.bytes_and_handle >> member_handle_shift; handle_plus_one != 0) {
                if (u32 end = static_cast<u32>(handle_plus_one); end > handles_end) {
                    asm("" : "+r"(end)); // a branch: as a maximum it made a submission of two handles 4 ns longer
                    handles_end = end;
                }
                const u32 handle = abi::encode_handle(static_cast<u32>(handle_plus_one) - 1, M::mode);
                if (run == 2) {
                    put_handles(handle);
                } else {
                    (run == 0 ? first : second) = handle;
                    ++run;
                }
                return;
            }
            bytes_above |= p.bytes_and_handle >> 32;
            if (run != 0) put_handles(0);
            out[chunks++] = vector_of(
                abi::encode_range(abi::encode_first(abi::entry_kind::range, M::mode, 0), p.address, p.bytes_and_handle));
        }
    });
    if (run != 0) put_handles(0);
    if (bytes_above != 0) return {};
    out[0] = vector_of(abi::message_header{blocks, type, 0, accesses, scalars, chunks}.encode());

    // No loops: every index is a constant, and so is the place of every scalar.
    const auto scalar = [&](u32 number) {
        u32 at = number;
        for_each_constant<accesses>([&](u32 access) { at += number >= scalars_before[access] ? range_words : 0; });
        u32 w;
        read(4 * at, w);
        asm("" : "+r"(w)); // by itself: two neighbours, loaded as one, would wait until the two stores that made them are in
                           // the cache, behind all that went to the ring before
        return w;
    };
    for_each_constant<scalars / 3>([&](u32 k) {
        out[chunks++] = vector_of({{scalar(3 * k), scalar(3 * k + 1), scalar(3 * k + 2), 0}});
    });
    if constexpr (scalars % 3 == 1) out[chunks++] = vector_of({{scalar(scalars - 1), 0, 0, 0}});
    if constexpr (scalars % 3 == 2) out[chunks++] = vector_of({{scalar(scalars - 2), scalar(scalars - 1), 0, 0}});
    if (chunks > short_chunks_max) return {};
    static_assert(abi::slot_chunks == 4);
    out[chunks] = out[chunks + 1] = out[chunks + 2] = chunk_vector{}; // whether they are needed or not: no branch
    return {(chunks + abi::slot_chunks - 1) / abi::slot_chunks, handles_end};
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

/// Null: no message of T is short.
template <class T>
constexpr short_encoder short_encoder_of()
{
    if constexpr (!has_short_messages<T>())
        return nullptr;
    else
        return [](const void* task, u32 type, u32 blocks, short_room& out) { return encode_short<T>(task, type, blocks, out); };
}

} // namespace slipstream::detail
