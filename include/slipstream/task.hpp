// What makes a struct a task type: its members are walked at compile time, its accesses are the in/out/inout among them.
//
//     struct axpy {
//         slipstream::in<float> x;
//         slipstream::inout<float> y;
//         float a;
//         template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const
//         {
//             for (slipstream::u64 i = block.global_rank(); i < y.size(); i += block.global_size()) y[i] += a * x[i];
//         }
//     };
//
// A task type is an aggregate of at most 16 members and 256 bytes, trivially copyable, with a templated body. The body is
// written block-size-agnostic: the host platform runs it as a block of one thread.
#pragma once
#include <slipstream/abi/task_type.hpp>
#include <slipstream/access.hpp>
#include <cstring>
#include <tuple>
#include <utility>

namespace slipstream {
namespace detail {

struct any_member {
    template <class T> constexpr operator T() const;
};

template <class T, std::size_t... I>
constexpr bool brace_constructible(std::index_sequence<I...>)
{
    return requires { T{(static_cast<void>(I), any_member{})...}; };
}

// Counts the members of an aggregate by the longest brace initialiser it accepts.
template <class T, std::size_t N = 16>
constexpr std::size_t member_count()
{
    if constexpr (brace_constructible<T>(std::make_index_sequence<N>{}))
        return N;
    else if constexpr (N > 0)
        return member_count<T, N - 1>();
    else
        return 0;
}

/// Calls visit(member) for each member of an aggregate in declaration order.
template <class T, class Visit>
constexpr void for_each_member(T& task, Visit&& visit)
{
    constexpr std::size_t n = member_count<std::remove_cv_t<T>>();
    auto all = [&](auto&... members) { (visit(members), ...); };
    if constexpr (n == 0) {
    }
#define SLIPSTREAM_BIND(count, ...)                                                                                    \
    else if constexpr (n == count)                                                                                     \
    {                                                                                                                  \
        auto& [__VA_ARGS__] = task;                                                                                    \
        all(__VA_ARGS__);                                                                                              \
    }
    SLIPSTREAM_BIND(1, a)
    SLIPSTREAM_BIND(2, a, b)
    SLIPSTREAM_BIND(3, a, b, c)
    SLIPSTREAM_BIND(4, a, b, c, d)
    SLIPSTREAM_BIND(5, a, b, c, d, e)
    SLIPSTREAM_BIND(6, a, b, c, d, e, f)
    SLIPSTREAM_BIND(7, a, b, c, d, e, f, g)
    SLIPSTREAM_BIND(8, a, b, c, d, e, f, g, h)
    SLIPSTREAM_BIND(9, a, b, c, d, e, f, g, h, i)
    SLIPSTREAM_BIND(10, a, b, c, d, e, f, g, h, i, j)
    SLIPSTREAM_BIND(11, a, b, c, d, e, f, g, h, i, j, k)
    SLIPSTREAM_BIND(12, a, b, c, d, e, f, g, h, i, j, k, l)
    SLIPSTREAM_BIND(13, a, b, c, d, e, f, g, h, i, j, k, l, m)
    SLIPSTREAM_BIND(14, a, b, c, d, e, f, g, h, i, j, k, l, m, o)
    SLIPSTREAM_BIND(15, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p)
    SLIPSTREAM_BIND(16, a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q)
#undef SLIPSTREAM_BIND
}

} // namespace detail

/// The requirements on a task type, each with its own message.
template <class T>
constexpr void check_task_type()
{
    static_assert(std::is_aggregate_v<T>, "a task type is a plain struct: no constructors, no private members");
    static_assert(std::is_trivially_copyable_v<T>, "a task crosses the bus as bytes: it must be trivially copyable");
    static_assert(sizeof(T) <= 4 * abi::task_words_max, "a task struct has at most 256 bytes; pass larger data in a buffer");
    static_assert(alignof(T) <= 8, "members aligned to more than 8 bytes are not supported");
}

/// The type-table entry of T: where its access members and its other words lie.
template <class T>
abi::task_type describe_task()
{
    check_task_type<T>();
    abi::task_type out{};
    // An empty struct has size 1 and no words to send.
    out.words = static_cast<u16>(std::is_empty_v<T> ? 0 : (sizeof(T) + 3) / 4);
    out.bytes = static_cast<u16>(std::is_empty_v<T> ? 0 : sizeof(T));
    bool taken[abi::task_words_max] = {};
    T probe{};
    detail::for_each_member(probe, [&](auto& member) {
        using M = std::remove_cvref_t<decltype(member)>;
        if constexpr (is_access_v<M>) {
            const auto offset = static_cast<u32>(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&probe)) / 4;
            if constexpr (M::is_rect) out.rect_mask = static_cast<u16>(out.rect_mask | 1u << out.members);
            out.member_mode[out.members] = static_cast<u8>(M::mode);
            out.member_offset[out.members++] = static_cast<u8>(offset);
            for (u32 i = 0; i < sizeof(M) / 4; ++i) taken[offset + i] = true;
        }
    });
    for (u32 i = 0; i < out.words; ++i)
        if (!taken[i]) out.scalar_offset[out.scalars++] = static_cast<u8>(i);
    return out;
}

/// Position of T in a task list, or a compile error that says so.
template <class T, class... List>
constexpr u32 index_of_task()
{
    static_assert((std::is_same_v<T, List> || ...), "this task type is not in the runtime's task list");
    u32 index = 0;
    bool found = false;
    ((found = found || std::is_same_v<T, List>, index += found ? 0 : 1), ...);
    return index;
}

/// A compile-time list of task types: what one megakernel can run.
template <class... Tasks>
struct task_list {
    static constexpr u32 size = sizeof...(Tasks);
    template <class T> static constexpr u32 index_of() { return index_of_task<T, Tasks...>(); }
};

} // namespace slipstream
