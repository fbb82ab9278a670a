// A runtime over a task list whose kernels are compiled elsewhere, once: for C++ files.
#pragma once
#include <slipstream/runtime.hpp>

namespace slipstream::bench {

/// slipstream::runtime over `List`; `Image` returns the list's image.
template <class List, kernel_image (*Image)()> class listed_runtime : public runtime_base {
public:
    explicit listed_runtime(const config& configuration) : runtime_base(configuration, Image()) {}

    template <class Task> [[gnu::always_inline]] task_handle submit(const Task& task)
    {
        return this->submit_as(List::template index_of<Task>(), task);
    }
    template <class Task> task_handle submit(const Task& task, const submit_options& options)
    {
        return this->submit_as(List::template index_of<Task>(), task, options);
    }
};

} // namespace slipstream::bench
