#include "tools/slipstream/bench/independent_tasks.hpp"
#include <bit>
#include <cstring>

namespace slipstream::bench {
namespace {

// Memory is used again after so many tasks. More than any window of the GPU holds: tasks in flight together never share any.
constexpr u64 places = 4096;
constexpr u64 line = 64;
static_assert(std::has_single_bit(places));

u64 places_of(const bench_runtime& runtime)
{
    // Of each part: the submitter's lists of handles grow with them, which must stay in its cache, and it has 40 ns for a task.
    return runtime.parts() > 1 ? std::bit_ceil(u64{2} * runtime.configuration().window) : places;
}

/// The parts of an engine in turn, so many tasks each: which one task i goes to, and how many of it were there before.
/// No division: this is timed.
class turns {
public:
    explicit turns(u32 parts) : parts_(parts) {}
    /// Of so many tasks in all, no part has more.
    static u64 most_of_a_part(u64 tasks, u32 parts)
    {
        return (tasks + tasks_a_turn * parts - 1) / (tasks_a_turn * parts) * tasks_a_turn;
    }
    u32 part() const { return part_; }
    u64 before() const { return first_ + at_; }
    void advance()
    {
        if (++at_ < tasks_a_turn) return;
        at_ = 0;
        if (++part_ < parts_) return;
        part_ = 0;
        first_ += tasks_a_turn;
    }

private:
    static constexpr u64 tasks_a_turn = 16; ///< a sixteenth of a window
    u32 parts_;
    u32 part_ = 0;
    u64 first_ = 0;
    u64 at_ = 0;
};

/// One task of each `period` crosses, another one of each, so that it is not always the same part's. 0: none.
class crossings {
public:
    explicit crossings(u64 period) : period_(period), due_(period != 0 ? 0 : ~u64{0}) {}
    /// For tasks 0, 1, 2, ... in order.
    bool at(u64 task)
    {
        if (task != due_) return false;
        first_ += period_;
        if (++offset_ == period_) offset_ = 0;
        due_ = first_ + offset_;
        return true;
    }

private:
    u64 period_;
    u64 due_;
    u64 first_ = 0, offset_ = 0;
};

// Each task of a run has a word of its own, so that each single task is verified. Laps of one handle write different words of it.
class with_handles final : public task_stream {
public:
    with_handles(bench_runtime& runtime, bool lose_a_task, u64 tasks_max, u32 crossing_percent)
        : task_stream(runtime, lose_a_task), places_(places_of(runtime)),
          laps_((tasks_max + places_ * runtime.parts() - 1) / (places_ * runtime.parts())),
          period_(crossing_percent != 0 ? 100 / crossing_percent : 0)
    {
        for (u32 part = 0; part < runtime.parts(); ++part) parts_.push_back(make_part(part));
    }

private:
    struct part_memory {
        buffer<u32> inputs, outputs;
        std::vector<data_handle> in;
        std::vector<sum_task> tasks; ///< of each place, but for its lap and number: what a submitter does for a task should be
                                     ///< the submission
    };

    part_memory make_part(u32 part)
    {
        part_memory m{{runtime_, places_ * line / 4, part}, {runtime_, places_ * laps_, part}, {}, {}};
        std::vector<u32> values(m.inputs.size());
        for (u64 p = 0; p < places_; ++p) values[p * line / 4] = input(part, p);
        m.inputs.upload(values);
        for (u64 p = 0; p < places_; ++p) m.in.push_back(runtime_.register_range(m.inputs.data() + p * line / 4, 4));
        for (u64 p = 0; p < places_; ++p)
            m.tasks.push_back({m.in[p], m.in[other(p)], runtime_.register_range(m.outputs.data() + p * laps_, 4 * laps_), 0, 0});
        return m;
    }

    static u32 input(u32 part, u64 place) { return static_cast<u32>(3 * place + 1) + 100'003 * part; }
    // Each input has two readers, half a lap apart.
    u64 other(u64 place) const { return (place + places_ / 2) & (places_ - 1); }
    // A task that crosses reads its second input there.
    u32 neighbour(u32 part) const { return part + 1 < parts_.size() ? part + 1 : 0; }

    void submit(u64 count, u64 lost) override
    {
        crossings crossing(period_);
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance()) {
            const bool crosses = crossing.at(i);
            if (i == lost) continue;
            const u64 p = turn.before() & (places_ - 1);
            sum_task task = parts_[turn.part()].tasks[p];
            if (crosses) task.b = parts_[neighbour(turn.part())].in[other(p)];
            task.at = static_cast<u32>(turn.before() >> places_bits_);
            task.number = next_number_ + static_cast<u32>(i);
            runtime_.submit(task);
        }
    }

    bool check(u64 count) override
    {
        std::vector<std::vector<u32>> words;
        for (part_memory& m : parts_) {
            words.emplace_back(m.outputs.size());
            m.outputs.download(words.back());
        }
        bool good = true;
        crossings crossing(period_);
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance()) {
            const u32 part = turn.part(), second = crossing.at(i) ? neighbour(part) : part;
            const u64 p = turn.before() & (places_ - 1);
            good &= words[part][p * laps_ + (turn.before() >> places_bits_)]
                    == input(part, p) + input(second, other(p)) + next_number_ + static_cast<u32>(i);
        }
        next_number_ += static_cast<u32>(count);
        return good;
    }

    u64 places_;
    u64 laps_; ///< of each part
    int places_bits_ = std::countr_zero(places_);
    u64 period_;
    std::vector<part_memory> parts_;
    u32 next_number_ = 1;
};

class with_one_range final : public task_stream {
public:
    with_one_range(bench_runtime& runtime, bool lose_a_task, u64 tasks_max) : task_stream(runtime, lose_a_task)
    {
        const u64 words = turns::most_of_a_part(tasks_max, runtime.parts());
        for (u32 part = 0; part < runtime.parts(); ++part) {
            parts_.push_back({{runtime, words, part}, std::vector<u32>(words, 0)});
            parts_.back().words.upload(parts_.back().expected);
        }
    }

private:
    struct part_memory {
        buffer<u32> words;
        std::vector<u32> expected;
    };

    void submit(u64 count, u64 lost) override
    {
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance())
            if (i != lost)
                runtime_.submit(
                    step_task{{parts_[turn.part()].words.data() + turn.before(), 1}, 1, next_number_ + static_cast<u32>(i)});
    }

    bool check(u64 count) override
    {
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance()) {
            u32& word = parts_[turn.part()].expected[turn.before()];
            word = stepped(word, next_number_ + static_cast<u32>(i));
        }
        next_number_ += static_cast<u32>(count);
        bool good = true;
        for (part_memory& m : parts_) {
            std::vector<u32> words(m.words.size());
            m.words.download(words);
            good &= words == m.expected;
        }
        return good;
    }

    std::vector<part_memory> parts_;
    u32 next_number_ = 1;
};

// Range r of place p of a part: 61 bytes at (r * places + p) * 64 + 1, so the boxes around the four ranges of any two tasks of the
// part overlap.
class with_four_ranges final : public task_stream {
public:
    with_four_ranges(bench_runtime& runtime, bool lose_a_task) : task_stream(runtime, lose_a_task)
    {
        for (u32 part = 0; part < runtime.parts(); ++part) {
            parts_.push_back({{runtime, 4 * places * line, part}, std::vector<u32>(places, 0)});
            buffer<unsigned char>& bytes = parts_.back().bytes;
            std::vector<unsigned char> content(bytes.size(), 0);
            for (u64 r = 0; r < 3; ++r)
                for (u64 p = 0; p < places; ++p) {
                    const u32 value = input(part, r, p);
                    std::memcpy(&content[word_at(r, p)], &value, sizeof value);
                }
            bytes.upload(content);
        }
    }

private:
    struct part_memory {
        buffer<unsigned char> bytes;
        std::vector<u32> expected;
    };

    static constexpr u64 range_bytes = line - 3;
    static u64 range_at(u64 range, u64 place) { return (range * places + place) * line + 1; }
    static u64 word_at(u64 range, u64 place) { return range_at(range, place) + 3; } // first_word() of it
    static u32 input(u32 part, u64 range, u64 place) { return static_cast<u32>(7 * place + range) + 100'003 * part; }

    void submit(u64 count, u64 lost) override
    {
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance()) {
            if (i == lost) continue;
            const u64 p = turn.before() % places;
            unsigned char* const bytes = parts_[turn.part()].bytes.data();
            runtime_.submit(gather_task{{bytes + range_at(0, p), range_bytes},
                                        {bytes + range_at(1, p), range_bytes},
                                        {bytes + range_at(2, p), range_bytes},
                                        {bytes + range_at(3, p), range_bytes},
                                        next_number_ + static_cast<u32>(i)});
        }
    }

    bool check(u64 count) override
    {
        turns turn(static_cast<u32>(parts_.size()));
        for (u64 i = 0; i < count; ++i, turn.advance()) {
            const u32 part = turn.part();
            const u64 p = turn.before() % places;
            u32& word = parts_[part].expected[p];
            word = stepped(word, next_number_ + static_cast<u32>(i) + input(part, 0, p) + input(part, 1, p) + input(part, 2, p));
        }
        next_number_ += static_cast<u32>(count);
        bool good = true;
        for (part_memory& m : parts_) {
            std::vector<unsigned char> content(m.bytes.size());
            m.bytes.download(content);
            for (u64 p = 0; p < places; ++p) good &= std::memcmp(&content[word_at(3, p)], &m.expected[p], sizeof(u32)) == 0;
        }
        return good;
    }

    std::vector<part_memory> parts_;
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

std::unique_ptr<task_stream> make_independent_tasks(bench_runtime& runtime, bool lose_a_task, declared what, u64 tasks_max,
                                                    u32 crossing_percent)
{
    switch (what) {
    case declared::handles:
        return std::make_unique<with_handles>(runtime, lose_a_task, tasks_max, crossing_percent);
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
