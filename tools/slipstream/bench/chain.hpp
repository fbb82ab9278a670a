// A dependent chain: every task reads and writes what the one before it wrote.
#pragma once
#include "tools/slipstream/bench/task_stream.hpp"
#include <optional>

namespace slipstream::bench {

/// What tasks name an array by: its handle, or its range of bytes.
enum class named { by_handle, by_range };

class chain final : public task_stream {
public:
    /// Each block of a task steps `bytes_each` bytes of its own; 0: bodies do nothing, tasks are ordered all the same.
    chain(bench_runtime& runtime, bool lose_a_task, u32 bytes_each, u32 blocks, named how);

private:
    void submit(u64 count, u64 lost) override;
    bool check(u64 count) override;
    template <class Data> void submit_over(const Data& data, u64 count, u64 lost);

    u32 words_each_;
    u32 blocks_;
    buffer<u32> data_;
    std::optional<data_handle> handle_; ///< of data_, if tasks name that
    u32 next_number_ = 1; ///< of the run in progress
    u32 expected_ = 0;    ///< of every word: all start at 0 and take the same steps
};

} // namespace slipstream::bench
