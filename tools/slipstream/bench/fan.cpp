#include "tools/slipstream/bench/fan.hpp"
#include <algorithm>

namespace slipstream::bench {

fan::fan(bench_runtime& runtime, bool lose_a_task, u32 width, fan_parts parts)
    : task_stream(runtime, lose_a_task), width_(width), source_(runtime, body_words)
{
    if (parts == fan_parts::pieces) parts_.emplace_back(runtime, static_cast<u64>(body_words) * width);
    else
        for (u32 k = 0; k < width; ++k) parts_.emplace_back(runtime, body_words);
    if (parts == fan_parts::handles) {
        handles_.push_back(source_.handle());
        for (buffer<u32>& part : parts_) handles_.push_back(part.handle());
    }
    source_.upload(std::vector<u32>(source_.size(), 0));
}

template <class Source, class PartOf>
void fan::submit_rounds(u64 count, u64 lost, const Source& source, PartOf part_of)
{
    u32 number = next_number_;
    for (u64 round = 0; round < count; ++round) {
        if (round != lost) runtime_.submit(step_task{source, body_words, number});
        ++number;
        for (u32 k = 0; k < width_; ++k) runtime_.submit(relay_task{source, part_of(k), number++});
        const auto& p = part_of;
        if (parts_.size() == 1) runtime_.submit(join_task{parts_[0], source, number++});
        else if (width_ == 2) runtime_.submit(join_2_task{p(0), p(1), source, number++});
        else runtime_.submit(join_8_task{p(0), p(1), p(2), p(3), p(4), p(5), p(6), p(7), source, number++});
    }
}

void fan::submit(u64 count, u64 lost)
{
    if (!handles_.empty()) submit_rounds(count, lost, handles_[0], [&](u32 k) -> const data_handle& { return handles_[1 + k]; });
    else if (parts_.size() == 1)
        submit_rounds(count, lost, source_,
                      [&](u32 k) { return out<u32>{parts_[0].data() + static_cast<u64>(k) * body_words, body_words}; });
    else submit_rounds(count, lost, source_, [&](u32 k) -> const buffer<u32>& { return parts_[k]; });
}

bool fan::check(u64 count)
{
    for (u64 round = 0; round < count; ++round) {
        const u32 produced = stepped(expected_, next_number_++);
        u32 sum = produced;
        for (u32 k = 0; k < width_; ++k) sum += produced + next_number_++;
        expected_ = stepped(sum, next_number_++);
    }
    std::vector<u32> words(source_.size());
    source_.download(words);
    return std::all_of(words.begin(), words.end(), [&](u32 w) { return w == expected_; });
}

} // namespace slipstream::bench
