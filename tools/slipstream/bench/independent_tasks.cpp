#include "tools/slipstream/bench/independent_tasks.hpp"
#include <cstring>

namespace slipstream::bench {
namespace {

// Memory is used again after so many tasks. More than any window of the GPU holds: tasks in flight together never share any.
constexpr u64 places = 4096;
constexpr u64 line = 64;

// Each task of a run has a word of its own, so that each single task is verified. Laps of one handle write different words of it.
class with_handles final : public task_stream {
public:
    with_handles(bench_runtime& runtime, bool lose_a_task, u64 tasks_max)
        : task_stream(runtime, lose_a_task), laps_((tasks_max + places - 1) / places), inputs_(runtime, places * line / 4),
          outputs_(runtime, places * laps_)
    {
        std::vector<u32> values(inputs_.size());
        for (u64 p = 0; p < places; ++p) values[p * line / 4] = input(p);
        inputs_.upload(values);
        for (u64 p = 0; p < places; ++p) {
            in_.push_back(runtime.register_range(inputs_.data() + p * line / 4, 4));
            out_.push_back(runtime.register_range(outputs_.data() + p * laps_, 4 * laps_));
        }
    }

private:
    static u32 input(u64 place) { return static_cast<u32>(3 * place + 1); }
    // Each input has two readers, half a lap apart.
    static u64 other(u64 place) { return (place + places / 2) % places; }

    void submit(u64 count, u64 lost) override
    {
        for (u64 i = 0; i < count; ++i) {
            if (i == lost) continue;
            const u64 p = i % places;
            runtime_.submit(
                sum_task{in_[p], in_[other(p)], out_[p], static_cast<u32>(i / places), next_number_ + static_cast<u32>(i)});
        }
    }

    bool check(u64 count) override
    {
        std::vector<u32> words(outputs_.size());
        outputs_.download(words);
        bool good = true;
        for (u64 i = 0; i < count; ++i) {
            const u64 p = i % places;
            good &= words[p * laps_ + i / places] == input(p) + input(other(p)) + next_number_ + static_cast<u32>(i);
        }
        next_number_ += static_cast<u32>(count);
        return good;
    }

    u64 laps_;
    buffer<u32> inputs_, outputs_;
    std::vector<data_handle> in_, out_;
    u32 next_number_ = 1;
};

class with_one_range final : public task_stream {
public:
    with_one_range(bench_runtime& runtime, bool lose_a_task, u64 tasks_max)
        : task_stream(runtime, lose_a_task), words_(runtime, tasks_max), expected_(tasks_max, 0)
    {
        words_.upload(expected_);
    }

private:
    void submit(u64 count, u64 lost) override
    {
        for (u64 i = 0; i < count; ++i)
            if (i != lost) runtime_.submit(step_task{{words_.data() + i, 1}, 1, next_number_ + static_cast<u32>(i)});
    }

    bool check(u64 count) override
    {
        for (u64 i = 0; i < count; ++i) expected_[i] = stepped(expected_[i], next_number_ + static_cast<u32>(i));
        next_number_ += static_cast<u32>(count);
        std::vector<u32> words(words_.size());
        words_.download(words);
        return words == expected_;
    }

    buffer<u32> words_;
    std::vector<u32> expected_;
    u32 next_number_ = 1;
};

// Range r of place p: 61 bytes at (r * places + p) * 64 + 1, so the boxes around the four ranges of any two tasks overlap.
class with_four_ranges final : public task_stream {
public:
    with_four_ranges(bench_runtime& runtime, bool lose_a_task)
        : task_stream(runtime, lose_a_task), bytes_(runtime, 4 * places * line), expected_(places)
    {
        std::vector<unsigned char> content(bytes_.size(), 0);
        for (u64 r = 0; r < 3; ++r)
            for (u64 p = 0; p < places; ++p) {
                const u32 value = input(r, p);
                std::memcpy(&content[word_at(r, p)], &value, sizeof value);
            }
        bytes_.upload(content);
    }

private:
    static constexpr u64 range_bytes = line - 3;
    static u64 range_at(u64 range, u64 place) { return (range * places + place) * line + 1; }
    static u64 word_at(u64 range, u64 place) { return range_at(range, place) + 3; } // first_word() of it
    static u32 input(u64 range, u64 place) { return static_cast<u32>(7 * place + range); }
    unsigned char* range(u64 r, u64 p) const { return bytes_.data() + range_at(r, p); }

    void submit(u64 count, u64 lost) override
    {
        for (u64 i = 0; i < count; ++i) {
            if (i == lost) continue;
            const u64 p = i % places;
            runtime_.submit(gather_task{{range(0, p), range_bytes},
                                        {range(1, p), range_bytes},
                                        {range(2, p), range_bytes},
                                        {range(3, p), range_bytes},
                                        next_number_ + static_cast<u32>(i)});
        }
    }

    bool check(u64 count) override
    {
        for (u64 i = 0; i < count; ++i) {
            const u64 p = i % places;
            expected_[p] = stepped(expected_[p], next_number_ + static_cast<u32>(i) + input(0, p) + input(1, p) + input(2, p));
        }
        next_number_ += static_cast<u32>(count);
        std::vector<unsigned char> content(bytes_.size());
        bytes_.download(content);
        bool good = true;
        for (u64 p = 0; p < places; ++p) good &= std::memcmp(&content[word_at(3, p)], &expected_[p], sizeof(u32)) == 0;
        return good;
    }

    buffer<unsigned char> bytes_;
    std::vector<u32> expected_;
    u32 next_number_ = 1;
};

// Range r of place p: 8 bytes at (r * places + p) * 16, so that nothing is gained by taking the ranges of a task for one.
class with_ranges final : public task_stream {
public:
    with_ranges(bench_runtime& runtime, bool lose_a_task, u32 ranges)
        : task_stream(runtime, lose_a_task), further_(ranges - 1), words_(runtime, ranges * places * step), expected_(places, 0)
    {
        words_.upload(std::vector<u32>(words_.size(), 0));
    }

private:
    static constexpr u64 step = 4; // words from range to range

    u32* range(u64 r, u64 p) const { return words_.data() + (r * places + p) * step; }

    void submit(u64 count, u64 lost) override
    {
        for (u64 i = 0; i < count; ++i) {
            if (i == lost) continue;
            const u64 p = i % places;
            for (u64 r = 0; r < further_.size(); ++r) further_[r] = reads(range(r + 1, p), 8);
            runtime_.submit(step_task{{range(0, p), 2}, 1, next_number_ + static_cast<u32>(i)}, {.accesses = further_});
        }
    }

    bool check(u64 count) override
    {
        for (u64 i = 0; i < count; ++i) expected_[i % places] = stepped(expected_[i % places], next_number_ + static_cast<u32>(i));
        next_number_ += static_cast<u32>(count);
        std::vector<u32> words(words_.size());
        words_.download(words);
        bool good = true;
        for (u64 p = 0; p < places; ++p) good &= words[p * step] == expected_[p];
        return good;
    }

    std::vector<declared_access> further_;
    buffer<u32> words_;
    std::vector<u32> expected_;
    u32 next_number_ = 1;
};

class with_nothing final : public task_stream {
public:
    with_nothing(bench_runtime& runtime, bool lose_a_task, u64 tasks_max)
        : task_stream(runtime, lose_a_task), words_(runtime, tasks_max)
    {
    }

private:
    void submit(u64 count, u64 lost) override
    {
        const u64 first = reinterpret_cast<u64>(words_.data());
        for (u64 i = 0; i < count; ++i)
            if (i != lost)
                runtime_.submit(store_task{first + 4 * i, next_number_ + static_cast<u32>(i)}, {.order = ordering::no_access});
    }

    bool check(u64 count) override
    {
        std::vector<u32> words(words_.size());
        words_.download(words);
        bool good = true;
        for (u64 i = 0; i < count; ++i) good &= words[i] == next_number_ + static_cast<u32>(i);
        next_number_ += static_cast<u32>(count);
        return good;
    }

    buffer<u32> words_;
    u32 next_number_ = 1;
};

} // namespace

std::unique_ptr<task_stream> make_independent_tasks(bench_runtime& runtime, bool lose_a_task, declared what, u64 tasks_max)
{
    switch (what) {
    case declared::handles:
        return std::make_unique<with_handles>(runtime, lose_a_task, tasks_max);
    case declared::one_range:
        return std::make_unique<with_one_range>(runtime, lose_a_task, tasks_max);
    case declared::four_ranges:
        return std::make_unique<with_four_ranges>(runtime, lose_a_task);
    case declared::nothing:
        break;
    }
    return std::make_unique<with_nothing>(runtime, lose_a_task, tasks_max);
}

std::unique_ptr<task_stream> make_tasks_of_ranges(bench_runtime& runtime, bool lose_a_task, u32 ranges)
{
    return std::make_unique<with_ranges>(runtime, lose_a_task, ranges);
}

u64 independent_tasks_bytes(u64 tasks_max)
{
    return 4 * (tasks_max + places) + 5 * places * line;
}

} // namespace slipstream::bench
