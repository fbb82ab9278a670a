// What a compile-time task list becomes: type table, host bodies, and (under nvcc) the workers' kernels and plain kernels.
#pragma once
#include <slipstream/abi/message.hpp>
#include <slipstream/block.hpp>
#include <slipstream/builtin_tasks.hpp>
#include <slipstream/short_message.hpp>
#include <slipstream/task.hpp>
#include <cstdio>
#include <exception>

namespace slipstream {

/// Scratch memory a body of T asks for: `static constexpr u32 shared_bytes`, 0 when absent.
template <class T>
constexpr u32 shared_bytes_of()
{
    if constexpr (requires { T::shared_bytes; })
        return T::shared_bytes;
    else
        return 0;
}

/// Name of a task type for reports: `static constexpr const char* name`, else "task".
template <class T>
constexpr const char* name_of()
{
    if constexpr (requires { T::name; })
        return T::name;
    else
        return "task";
}

inline constexpr u32 workers_per_sm_max = 2;

/// The GPU side of an image; made in a translation unit compiled by nvcc (cuda_image.cuh).
struct cuda_image {
    /// __global__ functions, for one and for two workers per SM; take one device::kernel_arguments by value. Null: the list was
    /// compiled for fewer workers.
    const void* workers[workers_per_sm_max];
    const void* const* plain_kernels;      ///< one __global__ function a type; takes the task struct by value
    const u32* plain_threads;              ///< block size of each
    u32 threads;                           ///< block size of a worker
    u32 shared_bytes;                      ///< scratch memory of the hungriest bodies of a worker
};

/// Everything the library needs to know of a task list. Points to static storage.
struct kernel_image {
    using host_body = void (*)(const void* task, host_block& block);
    u32 types;
    const abi::task_type* table;
    const detail::short_encoder* short_encoders; ///< null: no message of that type is short
    const host_body* host_bodies;
    const char* const* names;
    const u32* shared_bytes;
    const cuda_image* cuda; ///< null: this list was compiled for the host only
    bool broadcasts;        ///< some type promises to be brief: see any_brief
};

/// Does some type promise to be brief, besides the marker, which has one block? Only tasks of such types are mailed to all workers
/// at once.
template <class... Tasks>
constexpr bool any_brief(task_list<Tasks...>)
{
    return ((is_brief<Tasks>() && !std::is_same_v<Tasks, marker_task>) || ...);
}

namespace detail {

template <class T>
constexpr void check_body()
{
    static_assert(threads_of<T>() != 0); // says itself what is wrong
    constexpr bool has_body = requires(const T& task, host_block& block) { task(block); };
    static_assert(has_body, "a task has a body: template <class Block> SLIPSTREAM_BODY void operator()(Block& block) const. "
                            "It is const because each block gets a copy of the struct: what a body writes there, nobody sees");
}

/// Like an exception that leaves a function which is noexcept.
[[noreturn]] inline void break_off(const char* name, u32 code)
{
    std::fprintf(stderr, "slipstream: the body of %s is noexcept, which promises that it never fails, and called fail(%u)\n",
                 name, code);
    std::terminate();
}

template <class T>
void run_on_host(const void* task, host_block& block)
{
    check_body<T>();
    if constexpr (!requires(const T& t) { t(block); }) {
    } else if constexpr (std::is_empty_v<T>) {
        T{}(block);
    } else {
        T copy;
        std::memcpy(static_cast<void*>(&copy), task, sizeof(T));
        static_cast<const T&>(copy)(block);
    }
    if constexpr (never_fails<T, host_block>())
        if (block.failure() != 0) break_off(name_of<T>(), block.failure());
}

template <class... Tasks>
kernel_image make_image(const cuda_image* cuda)
{
    static const abi::task_type table[] = {describe_task<Tasks>()...};
    static constexpr short_encoder encoders[] = {short_encoder_of<Tasks>()...};
    static constexpr kernel_image::host_body bodies[] = {&run_on_host<Tasks>...};
    static constexpr const char* names[] = {name_of<Tasks>()...};
    static constexpr u32 shared[] = {shared_bytes_of<Tasks>()...};
    static_assert(sizeof...(Tasks) <= abi::message_header::types_max, "a runtime's list has at most 8192 task types");
    return {sizeof...(Tasks), table, encoders, bodies, names, shared, cuda, any_brief(task_list<Tasks...>{})};
}

} // namespace detail
} // namespace slipstream
