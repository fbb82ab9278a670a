// Tasks of very many blocks, of one kind or of several at once.
#pragma once
#include "tools/slipstream/bench/task_stream.hpp"
#include "tools/slipstream/bench/wide_reference.hpp"
#include "tools/slipstream/bench/wide_tasks.hpp"

namespace slipstream::bench {

/// A run counts rounds: a task of each kind, independent of each other; each depends on that of its kind in the round before.
class wide_stream final : public basic_task_stream<wide_runtime> {
public:
    wide_stream(wide_runtime& runtime, bool lose_a_task, const std::vector<wide_kind>& kinds);

    /// Device memory that it needs.
    static u64 bytes(const std::vector<wide_kind>& kinds, bool on_cuda);

private:
    void submit(u64 count, u64 lost) override;
    bool check(u64 count) override;

    struct part {
        wide_kind kind;
        wide_shape shape;
        buffer<unsigned char> target;
        buffer<u32> ledger;
        wide_places places;
        wide_reference reference;
    };
    std::vector<part> parts_;
    buffer<u32> source_; ///< both read it: they are independent all the same
    buffer<u16> rows_, columns_;
    u32 next_number_ = 1; ///< of the run in progress; tasks of a round share it
};

} // namespace slipstream::bench
