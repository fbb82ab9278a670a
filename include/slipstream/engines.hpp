// The same tasks, run by others: a program is written once and any engine runs it. For users who want to compare.
//
//     auto device = slipstream::engines::open_device("auto");          // memory on the GPU, or on the host
//     auto* x = static_cast<float*>(device->take(bytes));
//     slipstream::engines::typed_program<scale> program;               // the task types, as for a runtime
//     program.add(scale{{x, n}, {y, n}, 2.f}, {.blocks = 4});          // in program order, with its accesses
//     for (const std::string& name : slipstream::engines::engine_names(device->is_cuda())) {
//         auto engine = slipstream::engines::make_engine(name, {}, *device, program.image());
//         engine->prepare(program);                                    // not timed
//         double us = engine->run(program).makespan_us;                // as often as wanted; reset the memory in between
//     }
//
// Link slipstream::engines. A .cu file gets programs for the GPU and the host, a .cpp file programs for the host alone.
#pragma once
#include "host/engines/engine.hpp"
#include <slipstream/runtime.hpp>

namespace slipstream::engines {

/// What a task of a program needs besides its struct; submit_options for programs.
struct task_options {
    u32 blocks = 1;
    std::span<const declared_access> accesses{}; ///< besides those of its members
    std::span<const u32> after{};                ///< what add() returned for earlier tasks
    ordering order = ordering::by_access;
    std::string_view name{}; ///< a literal, or kept by program::keep_name
};

/// A program over a compile-time list of task types. Not thread-safe; unchanged while engines run it.
template <class Platforms, class... Tasks>
class basic_typed_program : public program {
public:
    using tasks = task_list<Tasks..., copy_task, fill_task, marker_task>;

    basic_typed_program() : program(slipstream::detail::image_of<Platforms, Tasks..., copy_task, fill_task, marker_task>()) {}

    /// Appends a task and returns its index.
    template <class Task> u32 add(const Task& task, const task_options& options = {})
    {
        return program::add(tasks::template index_of<Task>(), &task, options.blocks, options.accesses, options.after, options.order,
                            options.name);
    }
};

template <class... Tasks>
using typed_program = basic_typed_program<slipstream::detail::platforms, Tasks...>;

} // namespace slipstream::engines
