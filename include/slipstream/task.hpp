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
// written block-size-agnostic: the host platform runs it as a block of one thread. Mistakes do not compile: tests/misuse.
//
// What it may say of itself, as static constexpr members: `const char* name` for reports; `u32 threads` of a block and
// `u32 shared_bytes` of scratch memory (block.hpp); and `bool brief`, a promise: its bodies take a few microseconds at most,
// whatever their arguments, and wait for nothing outside the block.
//
// A body that is noexcept promises never to call block.fail(), but with 0. One that does all the same ends the process
// (std::terminate), as an exception would that leaves it, or on the GPU its CUDA context, like a body that faults. In a chain of
// brief tasks nobody looks then, between two bodies, whether the first one failed, which is a tenth of such a task.
//
// In a chain of brief one-block tasks, where nobody but the next one was known to wait for each, a worker goes from body to body
// and tells of up to sixteen of them with one fence, instead of a fence for each. Of two such tasks that wait for the same one,
// the second may run behind the first on its worker, and is told of with it; that pays for bodies of up to some 2 us, as reckoned.
// Tasks of several brief blocks, one behind the other, are handed out up to twelve at a time (by one mail to all workers) while
// nothing else is about; of types without the promise two or three. What a broken promise costs: while a body takes longer, nobody
// hears of up to fifteen tasks before it, no pause comes, and what becomes ready waits for what was handed out ahead. A body that
// waits until such a task is seen to be complete waits for ever.
#pragma once
#include <slipstream/abi/task_type.hpp>
#include <slipstream/access.hpp>
#include <cstring>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace slipstream {

class runtime_base;
template <class T> class buffer;

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

template <class T, std::size_t... I>
constexpr bool parenthesis_constructible(std::index_sequence<I...>)
{
    return requires { T(static_cast<any_member>((static_cast<void>(I), any_member{}))...); };
}

// Braces spread over the elements of an array, parentheses do not: then the two counts of members differ. Compilers that cannot say
// (clang before 16; nvcc, whose front end denies it of some structs) refuse such a struct all the same, in words of their own.
template <class T>
constexpr bool has_array_member()
{
#if defined(__cpp_aggregate_paren_init) && !defined(__CUDACC__)
    constexpr std::size_t n = member_count<T>();
    return n > 1 && !parenthesis_constructible<T>(std::make_index_sequence<n>{});
#else
    return false;
#endif
}

struct leaf_member {
    template <class T> requires(!std::is_aggregate_v<T>) constexpr operator T() const;
};

struct access_only {
    template <class T> requires(is_access_v<T>) constexpr operator T() const;
};

template <class T, std::size_t... I>
constexpr bool access_behind(std::index_sequence<I...>)
{
    return requires { T{(static_cast<void>(I), leaf_member{})..., access_only{}}; };
}

// Is a member of T, or of a struct or array within, an access? Braces spread over all that is within;
// the first `Leaf` values are passed over.
template <class T, std::size_t Leaf = 0>
constexpr bool holds_access()
{
    if constexpr (!std::is_aggregate_v<T> || sizeof(T) < 16 || Leaf > sizeof(T))
        return false;
    else if constexpr (access_behind<T>(std::make_index_sequence<Leaf>{}))
        return true;
    else if constexpr (requires { []<std::size_t... I>(std::index_sequence<I...>)
                                      -> decltype(T{(static_cast<void>(I), leaf_member{})...}) {
                                      return {};
                                  }(std::make_index_sequence<Leaf + 1>{}); })
        return holds_access<T, Leaf + 1>();
    else
        return false;
}

template <class T> inline constexpr bool is_buffer_v = false;
template <class T> inline constexpr bool is_buffer_v<buffer<T>> = true;
template <class T> inline constexpr bool is_view_v = std::is_same_v<T, std::string_view>;
template <class T, std::size_t N> inline constexpr bool is_view_v<std::span<T, N>> = true;

/// A runtime or a buffer, or the way to one.
template <class M>
constexpr bool is_owner()
{
    using T = std::remove_cv_t<std::remove_pointer_t<M>>;
    if constexpr (is_buffer_v<T> || std::is_same_v<T, runtime_base>)
        return true;
    else if constexpr (std::is_class_v<T> && requires { sizeof(T); } && requires(T* t) { [](runtime_base*) {}(t); })
        return true;
    else
        return false;
}

/// The requirements on each member of a task, each with its own message.
template <class M>
constexpr void check_task_member()
{
    static_assert(!is_owner<M>(), "a task holds no runtime and no buffer, nor a pointer to one: bodies run on the device, "
                                  "where there is none. Make the member in<T>, out<T> or inout<T> and give it the buffer");
    static_assert(!is_view_v<M>, "a span or string_view in a task declares no access, so nothing is ordered by it: "
                                 "make it in<T>, out<T> or inout<T>");
    if constexpr (!is_access_v<M>)
        static_assert(!holds_access<M>(), "an in, out or inout within a struct is not seen, so nothing would be ordered by it: "
                                          "make it a member of the task itself");
}

/// Calls visit(members...) with all members of an aggregate in declaration order.
template <class T, class Visit>
constexpr auto with_members(T& task, Visit&& visit)
{
    constexpr std::size_t n = member_count<std::remove_cv_t<T>>();
    if constexpr (n == 0) {
        return visit();
    }
#define SLIPSTREAM_BIND(count, ...)                                                                                    \
    else if constexpr (n == count)                                                                                     \
    {                                                                                                                  \
        auto& [__VA_ARGS__] = task;                                                                                    \
        return visit(__VA_ARGS__);                                                                                     \
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

/// Calls visit(member) for each of them.
template <class T, class Visit>
constexpr void for_each_member(T& task, Visit&& visit)
{
    with_members(task, [&](auto&... members) { (visit(members), ...); });
}

} // namespace detail

/// The requirements on a task type, each with its own message. False: its members cannot even be taken apart,
/// and the compiler's own words on that would bury the message.
template <class T>
constexpr bool check_task_type()
{
    constexpr bool plain = std::is_aggregate_v<T>;
    static_assert(plain, "a task type is a plain struct: no constructors, no private members");
    static_assert(std::is_trivially_copyable_v<T>, "a task crosses the bus as bytes: it must be trivially copyable. "
                                                   "A buffer or other container is not: "
                                                   "make the member in<T>, out<T> or inout<T>");
    static_assert(sizeof(T) <= 4 * abi::task_words_max, "a task struct has at most 256 bytes; pass larger data in a buffer");
    static_assert(alignof(T) <= 8, "members aligned to more than 8 bytes are not supported");
    if constexpr (plain) {
        constexpr bool made_empty = requires { T{}; };
        static_assert(made_empty, "a task can be made empty, as T{}: a reference cannot cross the bus, "
                                  "make the member a value, in<T>, out<T> or inout<T>");
        constexpr bool has_array = detail::has_array_member<T>();
        static_assert(!has_array, "a task has no array members: name each element, or wrap an array of plain values in a struct");
        constexpr bool too_many = detail::brace_constructible<T>(std::make_index_sequence<17>{});
        static_assert(has_array || !too_many, "a task has at most 16 members: group plain values in a struct");
        return made_empty && !has_array && !too_many;
    }
    return false;
}

/// Does T promise that its bodies are brief? A data member of that name does not.
template <class T>
constexpr bool is_brief()
{
    if constexpr (requires { requires std::is_pointer_v<decltype(&T::brief)>; }) {
        static_assert(std::is_same_v<decltype(&T::brief), const bool*>, "brief is a promise: static constexpr bool");
        return T::brief;
    } else {
        return false;
    }
}

/// Does T promise that its bodies never call block.fail(), by one that is noexcept? Of blocks of this type.
template <class T, class Block>
constexpr bool never_fails()
{
    if constexpr (requires(const T& task, Block& block) { task(block); })
        return noexcept(std::declval<const T&>()(std::declval<Block&>()));
    else
        return false;
}

/// The type-table entry of T: where its access members and its other words lie.
template <class T>
abi::task_type describe_task()
{
    abi::task_type out{};
    if constexpr (check_task_type<T>()) {
        // An empty struct has size 1 and no words to send.
        out.words = static_cast<u8>(std::is_empty_v<T> ? 0 : (sizeof(T) + 3) / 4);
        out.bytes = static_cast<u16>(std::is_empty_v<T> ? 0 : sizeof(T));
        out.brief = is_brief<T>();
        bool taken[abi::task_words_max] = {};
        T probe{};
        detail::for_each_member(probe, [&](auto& member) {
            using M = std::remove_cvref_t<decltype(member)>;
            detail::check_task_member<M>();
            if constexpr (is_access_v<M>) {
                const auto offset
                    = static_cast<u32>(reinterpret_cast<const char*>(&member) - reinterpret_cast<const char*>(&probe)) / 4;
                if constexpr (M::is_rect) out.rect_mask = static_cast<u16>(out.rect_mask | 1u << out.members);
                out.member_mode[out.members] = static_cast<u8>(M::mode);
                out.member_offset[out.members++] = static_cast<u8>(offset);
                for (u32 i = 0; i < sizeof(M) / 4; ++i) taken[offset + i] = true;
            }
        });
        for (u32 i = 0; i < out.words; ++i)
            if (!taken[i]) out.scalar_offset[out.scalars++] = static_cast<u8>(i);
    }
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

/// A compile-time list of task types: what the workers of one engine can run.
template <class... Tasks>
struct task_list {
    static constexpr u32 size = sizeof...(Tasks);
    template <class T> static constexpr u32 index_of() { return index_of_task<T, Tasks...>(); }
};

} // namespace slipstream
