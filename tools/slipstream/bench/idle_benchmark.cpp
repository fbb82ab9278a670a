// idle: what an engine that has nothing to do costs somebody else's memory-bound kernel on the SMs that it leaves free.
#include "tools/slipstream/bench/benchmarks.hpp"
#include "tools/slipstream/bench/bystander.hpp"
#include "tools/slipstream/bench/task_stream.hpp"
#include <chrono>
#include <thread>

namespace slipstream::bench {
namespace {

// An idle kernel leaves after its residency. It is to stay through a repetition: milliseconds.
constexpr std::chrono::milliseconds stays{5000};

/// Half of the SMs are the engine's, the others the copy's: on few SMs a copy is bound by these, not by memory.
config halved(const bench_setup& s, const bystander& copy)
{
    config c = s.configuration;
    c.sms_left_free = copy.sms() / 2;
    c.workers_per_sm = 1; // two would lie on different SMs as long as there are any
    c.residency = stays;
    return c;
}

// The pair of times of one repetition, which begins with the engine in place or away in turns.
class idle_measurement {
public:
    idle_measurement(bench_runtime& runtime, bystander& copy) : runtime_(runtime), copy_(copy)
    {
        bring();
        sms_ = copy_.free_sms();
    }

    void repeat(bool beside_first)
    {
        if (beside_first) measure_beside();
        runtime_.pause();
        when_away_ = runtime_.launches();
        alone.push_back(copy_.run(sms_));
        runtime_.resume();
        if (!beside_first) measure_beside();
        cost.push_back(100 * (beside.back() / alone.back() - 1));
    }
    u64 sms() const { return sms_.size(); }
    bool stayed() const { return stayed_; }

    std::vector<double> beside, alone, cost; ///< microseconds, per cent

private:
    void bring()
    {
        wake(runtime_);
        // The launch is counted behind its call, by a thread that may have to wait for a core.
        const auto given_up = std::chrono::steady_clock::now() + std::chrono::seconds(2);
        while (runtime_.launches() == when_away_ && std::chrono::steady_clock::now() < given_up)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    void measure_beside()
    {
        bring();
        const u64 before = runtime_.launches();
        beside.push_back(copy_.run(sms_));
        bring(); // a kernel that had left would have been launched again
        stayed_ &= runtime_.launches() == before;
    }

    bench_runtime& runtime_;
    bystander& copy_;
    std::vector<u32> sms_; ///< free beside the engine; the same ones are used when it is away
    u64 when_away_ = 0; ///< launches by the time when the kernel was last sent away
    bool stayed_ = true;
};

} // namespace

figure idle_figure(const bench_setup& s)
{
    const auto copy = s.on_cuda ? make_cuda_bystander(s.lose_a_task) : make_host_bystander(s.lose_a_task);
    figure f{"idle engine's cost to a copy on the other SMs", "%", {}};
    std::string trouble;
    u64 sms = 0;
    {
        const config c = halved(s, *copy);
        bench_runtime runtime(c);
        idle_measurement m(runtime, *copy);
        for (u32 i = 0; i < s.how_long.repeats; ++i) m.repeat(i % 2 == 0);
        sms = m.sms();
        f.value = spread_of(m.cost);
        f.further = {{"beside_idle_engine_us", spread_of(m.beside).median},
                     {"engine_away_us", spread_of(m.alone).median},
                     {"engine_away_gb_a_second", static_cast<double>(copy->bytes()) * 1e-3 / spread_of(m.alone).median},
                     {"sms_of_the_copy", static_cast<double>(sms)},
                     {"sms_of_the_engine", static_cast<double>(copy->sms() - sms)}};
        if (sms != c.sms_left_free) trouble = "the engine does not leave the SMs free that it was asked for";
        if (!m.stayed()) trouble = "the engine's kernel left while the copy ran";
    }
    f.tasks = 1;
    f.repeats = s.how_long.repeats;
    if (!copy->right()) trouble = "the copy is wrong, or ran elsewhere than on its SMs";
    f.verified = trouble.empty();
    f.note = !trouble.empty() ? trouble
             : s.on_cuda      ? "a copy of 1 GB, eight times, on " + std::to_string(sms) + " SMs, the same by %smid in every run"
                              : "a copy of 8 MB by the calling thread: the host device has no SMs";
    return f;
}

std::vector<figure> bench_idle(const bench_setup& s)
{
    return {idle_figure(s)};
}

} // namespace slipstream::bench
