// echo and submit: the host's side of one task.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/floors/floor_names.hpp"
#include "tools/slipstream/bench/task_stream.hpp"
#include <algorithm>
#include <bit>
#include <cassert>

namespace slipstream::bench {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

// Words that tasks of one block step, one each, in turn; at most `places` of them are in flight. A power of two: a division for
// each task would be timed as a part of its submission.
class stepped_words {
public:
    stepped_words(bench_runtime& runtime, u32 places) : runtime_(runtime), words_(runtime, places), expected_(places, 0)
    {
        assert(std::has_single_bit(places));
        words_.upload(expected_);
    }
    task_handle submit(u64 i)
    {
        return runtime_.submit(step_task{{words_.data() + place_of(i), 1}, 1, static_cast<u32>(i)});
    }
    void skip() {}
    /// Compares with a sequential run of tasks [0, count).
    bool check(u64 count)
    {
        for (u64 i = 0; i < count; ++i)
            expected_[place_of(i)] = stepped(expected_[place_of(i)], static_cast<u32>(i));
        std::vector<u32> words(expected_.size());
        words_.download(words);
        return words == expected_;
    }

private:
    u64 place_of(u64 i) const { return i & (expected_.size() - 1); }

    bench_runtime& runtime_;
    buffer<u32> words_;
    std::vector<u32> expected_;
};

// Tasks of one block that add an input of their part and one of the next. The parts take turns. Each task of at most `tasks_max`
// sets a word of its own, so that each is verified; laps of one handle set different words of it.
class crossing_words {
public:
    crossing_words(bench_runtime& runtime, u32 places, u64 tasks_max)
        : runtime_(runtime),
          laps_((tasks_max + u64{places} * runtime.parts() - 1) / (u64{places} * runtime.parts()))
    {
        for (u32 part = 0; part < runtime.parts(); ++part) {
            const u64 words = places * laps_;
            part_memory m{{runtime, 1, part}, {runtime, words, part}, {}, {}, std::vector<u32>(words, 0)};
            m.input.upload(std::vector<u32>{input(part)});
            m.words.upload(m.expected);
            m.in = runtime.register_range(m.input.data(), sizeof(u32));
            for (u32 p = 0; p < places; ++p)
                m.out.push_back(runtime.register_range(m.words.data() + p * laps_, laps_ * sizeof(u32)));
            parts_.push_back(std::move(m));
        }
    }
    void submit(u64 i)
    {
        part_memory& home = parts_[at_.part];
        runtime_.submit(sum_task{home.in, parts_[next(at_.part)].in, home.out[at_.place], at_.lap, static_cast<u32>(i)});
        advance(at_);
    }
    void skip() { advance(at_); }
    /// Compares with a sequential run of tasks [0, count).
    bool check(u64 count)
    {
        turn at;
        for (u64 i = 0; i < count; ++i, advance(at))
            parts_[at.part].expected[at.place * laps_ + at.lap] = input(at.part) + input(next(at.part)) + static_cast<u32>(i);
        bool good = true;
        for (part_memory& m : parts_) {
            std::vector<u32> words(m.words.size());
            m.words.download(words);
            good &= words == m.expected;
        }
        return good;
    }

private:
    struct part_memory {
        buffer<u32> input, words;
        data_handle in{};
        std::vector<data_handle> out;
        std::vector<u32> expected;
    };
    struct turn {
        u32 part = 0;
        u64 place = 0;
        u32 lap = 0;
    };

    static u32 input(u32 part) { return 100'003 * (part + 1); }
    u32 next(u32 part) const { return part + 1 < parts_.size() ? part + 1 : 0; }
    void advance(turn& at) const
    {
        at.part = next(at.part);
        if (at.part != 0 || ++at.place < parts_[0].out.size()) return;
        at.place = 0;
        ++at.lap;
    }

    bench_runtime& runtime_;
    u64 laps_;
    std::vector<part_memory> parts_;
    turn at_;
};

double percentile(std::vector<double> values, double share)
{
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

} // namespace

std::vector<figure> bench_echo(const bench_setup& s)
{
    const std::vector<std::string> floors{floor_names::flag_echo}, alternatives{floor_names::launch_and_sync};
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    stepped_words words(runtime, 64);
    const u64 count = s.how_long.tasks != 0 ? s.how_long.tasks : runtime.on_cuda() ? 20000 : 2000;
    const u64 lost = s.lose_a_task ? count / 2 : count;
    wake(runtime);
    std::vector<double> us;
    for (u64 i = 0; i < count; ++i) {
        if (i == lost) continue;
        const auto start = clock::now();
        const task_handle handle = words.submit(i);
        if (!runtime.wait(handle, start + std::chrono::minutes(1)).ok())
            throw device_error("a task of the echo did not complete within a minute");
        us.push_back(seconds_since(start) * 1e6);
    }
    figure f{"submit to seen complete", "us", spread_of(us)};
    f.further = {{"min", percentile(us, 0)}, {"p50", percentile(us, 0.5)}, {"p99", percentile(us, 0.99)}};
    f.tasks = count;
    f.repeats = 1;
    f.verified = words.check(count);
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    f.floors = s.floors.references(floors, f.unit);
    f.alternatives = s.floors.references(alternatives, f.unit);
    return {f};
}

namespace {

/// Nanoseconds of one submission, a sample a batch: `batch` tasks into empty rings, so that the submitter never waits;
/// then all are waited for.
template <class Words>
figure submission_cost(const bench_setup& s, bench_runtime& runtime, const char* name, u64 batch, u64 batches, Words& words)
{
    const u64 lost = s.lose_a_task ? batch / 2 : ~u64{0};
    std::vector<double> ns;
    u64 i = 0;
    for (u64 b = 0; b < batches; ++b) {
        wake(runtime);
        const u64 end = i + batch;
        const auto start = clock::now();
        for (; i < end; ++i)
            if (i != lost)
                words.submit(i);
            else
                words.skip();
        ns.push_back(seconds_since(start) * 1e9 / static_cast<double>(batch));
        wait_all(runtime);
    }
    figure f{name, "ns", spread_of(ns)};
    f.further = {{"min", percentile(ns, 0)}, {"p99", percentile(ns, 0.99)}};
    f.tasks = batch;
    f.repeats = static_cast<u32>(ns.size());
    f.verified = words.check(i);
    if (!f.verified) f.note = "the memory differs from a sequential run's";
    return f;
}

} // namespace

std::vector<figure> bench_submit(const bench_setup& s)
{
    const std::vector<std::string> floors{floor_names::slot_store}, alternatives{floor_names::launch};
    s.floors.prepare(floors);
    s.floors.prepare(alternatives);
    bench_runtime runtime(s.configuration);
    const u64 wanted = s.how_long.tasks != 0 ? s.how_long.tasks : runtime.on_cuda() ? 200000 : 20000;
    const auto batches_of = [&](u64 batch) { return std::max<u64>(std::max<u64>(s.how_long.repeats, 1), wanted / batch); };
    // Half a ring. Like the ring's slots a power of two.
    const u64 batch = std::max<u64>(1, runtime.configuration().ring_slots / 2);
    const u32 places = static_cast<u32>(std::min<u64>(batch, 4096));
    stepped_words words(runtime, places);
    std::vector<figure> out{submission_cost(s, runtime, "submit, one slot, ring not full", batch, batches_of(batch), words)};
    out[0].floors = s.floors.references(floors, out[0].unit);
    if (runtime.parts() > 1) {
        // Each of them takes a slot in two rings; and no more of one home may be under way than there are meetings for.
        const u64 crossing = std::min<u64>(batch, abi::meetings_max);
        crossing_words across(runtime, places, crossing * batches_of(crossing));
        out.push_back(submission_cost(s, runtime, "submit, a task that reads from another part, rings not full", crossing,
                                      batches_of(crossing), across));
        for (const reference& slot : out[0].floors) out[1].floors.push_back({slot.name + ", twice", 2 * slot.value});
    }
    for (figure& f : out) f.alternatives = s.floors.references(alternatives, f.unit);
    return out;
}

} // namespace slipstream::bench
