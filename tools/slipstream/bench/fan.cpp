#include "tools/slipstream/bench/fan.hpp"
#include <algorithm>

namespace slipstream::bench {

fan::fan(bench_runtime& runtime, bool lose_a_task, u32 width, fan_parts parts) : task_stream(runtime, lose_a_task), width_(width), source_(runtime, body_words)
{
    if (parts == fan_parts::pieces) parts_.emplace_back(runtime, static_cast<u64>(body_words) * width);
    else
        for (u32 k = 0; k < width; ++k) parts_.emplace_back(runtime, body_words);
    source_.upload(std::vector<u32>(source_.size(), 0));
}

void fan::submit(u64 count, u64 lost)
{
    u32 number = next_number_;
    for (u64 round = 0; round < count; ++round) {
        if (round != lost) runtime_.submit(step_task{source_, body_words, number});
        ++number;
        for (u32 k = 0; k < width_; ++k) {
            if (parts_.size() > 1) runtime_.submit(relay_task{source_, parts_[k], number++});
            else runtime_.submit(relay_task{source_, {parts_[0].data() + static_cast<u64>(k) * body_words, body_words}, number++});
        }
        submit_joiner(number++);
    }
}

void fan::submit_joiner(u32 number)
{
    const auto& p = parts_;
    if (p.size() == 2) runtime_.submit(join_2_task{p[0], p[1], source_, number});
    else if (p.size() == 8) runtime_.submit(join_8_task{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], source_, number});
    else runtime_.submit(join_task{p[0], source_, number});
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
