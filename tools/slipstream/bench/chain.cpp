#include "tools/slipstream/bench/chain.hpp"
#include <algorithm>

namespace slipstream::bench {

chain::chain(bench_runtime& runtime, bool lose_a_task, u32 bytes_each, u32 blocks, named how)
    : task_stream(runtime, lose_a_task), words_each_(bytes_each / 4), blocks_(blocks),
      data_(runtime, std::max<u64>(1, static_cast<u64>(words_each_) * blocks))
{
    if (how == named::by_handle) handle_ = data_.handle();
    data_.upload(std::vector<u32>(data_.size(), 0));
}

template <class Data> void chain::submit_over(const Data& data, u64 count, u64 lost)
{
    for (u64 i = 0; i < count; ++i) {
        if (i == lost) continue;
        runtime_.submit(step_task{data, words_each_, next_number_ + static_cast<u32>(i)}, {.blocks = blocks_});
    }
}

void chain::submit(u64 count, u64 lost)
{
    if (handle_) submit_over(*handle_, count, lost);
    else submit_over(data_, count, lost);
}

bool chain::check(u64 count)
{
    for (u64 i = 0; i < count && words_each_ != 0; ++i) expected_ = stepped(expected_, next_number_ + static_cast<u32>(i));
    next_number_ += static_cast<u32>(count);
    std::vector<u32> words(data_.size());
    data_.download(words);
    const bool good = std::all_of(words.begin(), words.end(), [&](u32 w) { return w == expected_; });
    return good;
}

} // namespace slipstream::bench
