#include "tools/slipstream/bench/guard/guard.hpp"
#include "tools/slipstream/bench/guard/hand_loops.hpp"
#include "tools/slipstream/bench/report.hpp"
#include "tools/slipstream/progress_bar.hpp"
#include <algorithm>

namespace slipstream::bench {
namespace {

constexpr u32 steps_min = 2048; ///< of the shorter run; a multiple of the chains

engines::program program_of(const guard_shape& shape, u32 steps, u32* data, bool twice)
{
    engines::program out(bench_image());
    for (u32 i = 0; i < steps; ++i) {
        u32* const words = data + u64{shape.chain_of(i, steps)} * shape.stride_words();
        const step_task step{inout<u32>(words, shape.stride_words()), shape.body_words, shape.number_of(i, steps)};
        out.add(bench_list::index_of<step_task>(), &step, 1, {});
        if (twice) out.add(bench_list::index_of<marker_task>(), nullptr, 1, {}, {}, ordering::no_access);
    }
    return out;
}

/// Both sides over `steps` steps, on the same memory.
class contest {
public:
    contest(engines::device_memory& device, const std::string& engine, hand_loop loop, const guard_shape& shape, u32 steps,
            u32* data, bool slow)
        : device_(device), shape_(shape), steps_(steps), data_(data), program_(program_of(shape, steps, data, slow)),
          engine_(engines::make_engine(engine, {}, device, program_.image())),
          hand_(make_hand_written(loop, shape, steps, data, device.ordinal()))
    {
        engine_->prepare(program_);
    }

    double engine_us()
    {
        clear();
        const double us = engine_->run(program_).makespan_us;
        check();
        return us;
    }
    double hand_us()
    {
        clear();
        const double us = hand_->run_us();
        check();
        return us;
    }
    bool verified() const { return verified_; }

private:
    void clear() { device_.fill(data_, 0, shape_.words(steps_) * sizeof(u32)); }
    void check()
    {
        if (shape_.body_words == 0) return; // empty bodies leave nothing to check
        found_.resize(shape_.words(steps_));
        device_.read(found_.data(), data_, found_.size() * sizeof(u32));
        u32 wanted = 0;
        for (u32 i = 1; i <= steps_ / shape_.chains_of(steps_); ++i) wanted = stepped(wanted, i);
        verified_ = verified_ && std::all_of(found_.begin(), found_.end(), [&](u32 w) { return w == wanted; });
    }

    engines::device_memory& device_;
    guard_shape shape_;
    u32 steps_;
    u32* data_;
    engines::program program_;
    std::unique_ptr<engines::engine> engine_;
    std::unique_ptr<hand_written> hand_;
    std::vector<u32> found_;
    bool verified_ = true;
};

target measure_row(engines::device_memory& device, const std::string& engine, hand_loop loop, const std::string& loop_name,
                   const guard_shape& shape, u32* data, u32 repeats, bool slow)
{
    contest once(device, engine, loop, shape, steps_min, data, slow), twice(device, engine, loop, shape, 2 * steps_min, data, slow);
    std::vector<double> engine_us, hand_us;
    for (u32 i = 0; i <= repeats; ++i) {
        const double engine_slope = -once.engine_us() + twice.engine_us();
        const double hand_slope = -once.hand_us() + twice.hand_us();
        if (i == 0) continue; // warms up
        engine_us.push_back(engine_slope / steps_min);
        hand_us.push_back(hand_slope / steps_min);
    }
    figure f{engine + ", " + shape.name, "us", spread_of(engine_us)};
    f.tasks = steps_min;
    f.repeats = repeats;
    f.verified = once.verified() && twice.verified();
    if (!f.verified) f.note = "the result is not that of a sequential run";
    if (shape.body_words == 0) f.note = "empty bodies: there is no result to check";
    f.alternatives = {{loop_name, spread_of(hand_us).median}};
    const condition within{"<= 1.15 x " + loop_name, f.value.median, guard_factor * f.alternatives.front().value};
    const bool noise = f.verified && !(f.value.median > 0 && f.alternatives.front().value > 0);
    const verdict outcome = noise                           ? verdict::not_measured
                            : f.verified && within.holds() ? verdict::met
                                                           : verdict::falls_short;
    return {f.name, within.what, f, {within}, outcome, noise ? "a slope of 0 or less: the times were noise" : f.note};
}

} // namespace

std::vector<target> measure_guard(engines::device_memory& device, u32 repeats, bool slow_streams)
{
    struct pairing {
        const char* engine;
        hand_loop loop;
        const char* name;
        bool flat; ///< whether the loop differs from others there
    };
    const pairing pairings[] = {
        {"serial", hand_loop::one_stream, "launches on one stream by hand", true},
        {"streams", hand_loop::streams_and_events, "streams and events by hand", true},
        {"graph-replay", hand_loop::graph, "a graph with full edges by hand", true},
        {"graph-replay", hand_loop::graph_with_programmatic_edges, "a graph with programmatic edges by hand", false},
    };
    std::vector<guard_shape> shapes;
    for (const u32 words : {0u, body_words}) {
        const std::string body = words == 0 ? ", empty" : ", 4 KB";
        shapes.push_back({"chain" + body, 1, words});
        shapes.push_back({"128 parallel chains" + body, 128, words});
        shapes.push_back({"flat" + body, 0, words});
    }
    u64 words = 0;
    for (const guard_shape& shape : shapes) words = std::max(words, shape.words(2 * steps_min));
    auto* const data = static_cast<u32*>(device.take(words * sizeof(u32)));

    cli::progress_bar bar("holding engines against hand-written CUDA");
    std::vector<target> out;
    double done = 0;
    for (const pairing& p : pairings)
        for (const guard_shape& shape : shapes) {
            bar.at(done++, static_cast<double>(std::size(pairings) * shapes.size()));
            const bool slow = slow_streams && std::string(p.engine) == "streams";
            if (!p.flat && shape.chains == 0) continue;
            const auto measure = [&] { return measure_row(device, p.engine, p.loop, p.name, shape, data, repeats, slow); };
            target row = measure();
            // Graphs without edges differ from one to the next, ours and those by hand alike: a second pair has to say the same.
            if (row.outcome != verdict::met && row.measured->verified) {
                char first[96];
                std::snprintf(first, sizeof first, "a first pair: %.3g against %.3g us", row.measured->value.median,
                              row.measured->alternatives.front().value);
                row = measure();
                row.measured->note += (row.measured->note.empty() ? "" : "; ") + std::string(first);
                if (row.outcome == verdict::falls_short) row.why = row.measured->note;
            }
            out.push_back(std::move(row));
        }
    return out;
}

} // namespace slipstream::bench
