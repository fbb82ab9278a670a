// Fan-out and fan-in: one producer, readers that depend on it alone, one joiner that depends on all of them; again and again.
#pragma once
#include "tools/slipstream/bench/task_stream.hpp"

namespace slipstream::bench {

/// Where the readers of a fan write to: each into a buffer of its own (two or eight of them), which tasks name by handle or as a
/// range, or into its piece of one buffer, which the joiner reads as a whole.
enum class fan_parts { handles, buffers, pieces };

/// Each task reads and writes 4 KB (the joiner reads 4 KB a reader). A run's count is in rounds of width + 2 tasks.
class fan final : public task_stream {
public:
    fan(bench_runtime& runtime, bool lose_a_task, u32 width, fan_parts parts);

    static bool in_buffers(u32 width) { return width == 2 || width == 8; }

private:
    void submit(u64 count, u64 lost) override;
    bool check(u64 count) override;

    /// Tasks name an array as `source` and part_of(reader) do.
    template <class Source, class PartOf>
    void submit_rounds(u64 count, u64 lost, const Source& source, PartOf part_of);

    u32 width_;
    buffer<u32> source_;
    std::vector<buffer<u32>> parts_; ///< one for each reader, or one for all
    std::vector<data_handle> handles_; ///< of the source and the parts, if tasks name those
    u32 next_number_ = 1;
    u32 expected_ = 0; ///< of every word of the source
};

} // namespace slipstream::bench
