#include "tools/slipstream/soak/soak.hpp"
#include "tools/slipstream/soak/soak_run.hpp"
#include "tools/slipstream/soak/stream_supply.hpp"
#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace slipstream::soak {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// Which stream of which case comes at which place of the whole soak.
class plan {
public:
    explicit plan(const soak_request& r) : r_(r)
    {
        if (!r.style.empty()) style_ = soak_case::read("style=" + r.style).style;
    }

    struct place {
        u32 number; ///< of the case
        u32 stream; ///< of its streams
    };
    place at(u64 i) const
    {
        if (r_.only) return {static_cast<u32>(i / runs_of_one), static_cast<u32>(i % runs_of_one)};
        if (!r_.style.empty()) return {static_cast<u32>(i / streams_of(style_)), static_cast<u32>(i % streams_of(style_))};
        u64 round = 0;
        for (u32 style = 0; style < styles; ++style) round += streams_of(style);
        u32 style = 0;
        u64 rest = i % round;
        for (; rest >= streams_of(style); ++style) rest -= streams_of(style);
        return {static_cast<u32>(i / round) * styles + style, static_cast<u32>(rest)};
    }
    soak_case case_of(u32 number) const
    {
        if (r_.only) return *r_.only;
        soak_case c = draw_case(r_.seed, number, r_.style.empty() ? number % styles : style_);
        c.parts = std::min(c.parts, std::max(r_.parts_max, 1u));
        if (r_.start) {
            c.parts = 1; // several begin at 0
            c.start = *r_.start;
        }
        c.fit();
        c.tasks = c.parts > 1 ? tasks_of(1) : tasks_of(c.style); // where nearly every task crosses, the bulk takes its time
        c.hide = r_.hide;
        if (c.hide) c.workers = std::max(c.workers, 4u); // one alone runs tasks one after another
        return c;
    }
    soak_case stream_at(u64 i) const
    {
        const place p = at(i);
        soak_case c = case_of(p.number);
        if (!r_.only) c.seed += p.stream;
        return c;
    }
    /// Of any stream, at most.
    u32 tasks() const { return r_.only ? r_.only->tasks : std::max(tasks_of(0), tasks_of(1)); }

private:
    static constexpr u32 runs_of_one = 8; ///< on one engine
    /// The first style is the bulk. An engine is of use for one stream of failures: for the next it has seen some.
    u32 streams_of(u32 style) const { return style == 0 ? (r_.cuda ? 200 : 4) : style_of(style).fail != 0 ? 1 : 2; }

    u32 tasks_of(u32 style) const { return r_.stream_tasks ? r_.stream_tasks : !r_.cuda ? 1500 : style == 0 ? 100'000 : 20'000; }

    const soak_request& r_;
    u32 style_ = 0;
};

/// Ends the process when a stream takes longer than an engine that works ever does: nothing can be torn down then.
class stall_guard {
public:
    stall_guard(double seconds, std::string device)
        : limit_(seconds), device_(std::move(device)), thread_([this] { watch(); })
    {
    }
    ~stall_guard()
    {
        over_ = true;
        thread_.join();
    }
    void begins(const soak_case& c)
    {
        const std::lock_guard lock(mutex_);
        text_ = c.text();
        since_ = clock::now();
    }

private:
    void watch()
    {
        while (!over_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
            const std::lock_guard lock(mutex_);
            if (text_.empty() || seconds_since(since_) < limit_) continue;
            std::fprintf(stderr, "soak: no end within %.0f s; again: slipstream soak --device %s --case %s\n", limit_,
                         device_.c_str(), text_.c_str());
            std::fflush(nullptr);
            std::_Exit(1);
        }
    }
    double limit_;
    std::string device_;
    std::mutex mutex_;
    std::string text_;
    clock::time_point since_;
    std::atomic<bool> over_{false};
    std::thread thread_;
};

u32 makers(const soak_request& r)
{
    const u32 cores = std::max(1u, std::thread::hardware_concurrency());
    return r.cuda ? std::max(2u, cores > 7 ? cores - 5 : cores / 2) : 1;
}

} // namespace

soak_failure examine(const soak_case& failing, const std::string& verdict, const trial& run, u32 attempts, clock::time_point until)
{
    soak_failure f{failing, verdict, false, {}, {}};
    try {
        for (u32 k = 0; k < 20 && !f.again && clock::now() < until; ++k) f.again = !run(failing).empty();
    } catch (const device_error& e) { // what is known by now is worth telling
        f.ended = e.what();
    }
    if (f.again) {
        f.shrunk = shrink(failing, verdict, run, attempts, until);
        f.ended = f.shrunk.ended;
    }
    return f;
}

soak_result run_soak(const soak_request& request, const std::function<void(const case_record&, bool over)>& told)
{
    const plan streams(request);
    const auto begin = clock::now();
    const auto stall_limit = std::chrono::seconds(static_cast<long>(request.stall_seconds));
    soak_result result;
    stall_guard guard(3 * request.stall_seconds + 60, request.device); // beyond what the engine says itself
    const auto run_fresh = [&](const soak_case& c) -> std::string {
        guard.begins(c);
        const soak_stream stream(c);
        if (!stream.usable() || stream.kept() == 0) return {};
        soak_engine engine(c, request.device, stall_limit, c.tasks);
        return engine.run(stream);
    };
    std::string verdict;
    soak_case failing;
    bool lost = false;
    {
        stream_supply supply(makers(request), [&](u64 i) { return streams.stream_at(i); });
        std::unique_ptr<soak_engine> engine;
        u64 done = 0;
        u64 launches_before = 0, pauses_before = 0;
        for (u64 i = 0;; ++i) {
            const bool enough = i != 0 // one stream at least: else nothing would have been checked
                && ((request.tasks != 0 && done >= request.tasks)
                    || (request.seconds > 0 && seconds_since(begin) >= request.seconds));
            const plan::place at = streams.at(i);
            const bool fresh = at.stream == 0 || result.cases.empty();
            if (!result.cases.empty() && (fresh || enough)) {
                try {
                    result.cases.back().broadcasts = engine->end_and_count_broadcasts();
                } catch (const device_error& e) {
                    verdict = e.what();
                    lost = true;
                    break;
                }
                told(result.cases.back(), true);
            }
            if (enough) break;
            const std::unique_ptr<soak_stream> stream = supply.next();
            failing = stream->origin();
            guard.begins(failing);
            const auto since = clock::now();
            try {
                if (fresh) {
                    engine.reset();
                    engine = std::make_unique<soak_engine>(streams.case_of(at.number), request.device, stall_limit,
                                                           streams.tasks());
                    result.cases.push_back({streams.case_of(at.number), at.number});
                    launches_before = pauses_before = 0;
                }
                if (!stream->usable() && request.only)
                    throw config_error("case: what is left of it spoils more than an engine keeps apart (its clear_failure was cut "
                                       "off); give another from, keep or tasks");
                verdict = stream->usable() ? engine->run(*stream) : std::string();
            } catch (const device_error& e) {
                verdict = e.what();
                lost = true;
                break;
            }
            case_record& r = result.cases.back();
            const u32 checked = stream->usable() ? stream->kept() : 0;
            r.tasks += checked;
            r.streams += 1;
            r.seconds += seconds_since(since);
            r.launches += engine->launches() - launches_before;
            r.pauses += engine->pauses() - pauses_before;
            launches_before = engine->launches();
            pauses_before = engine->pauses();
            done += checked;
            told(r, false);
            if (!verdict.empty()) break;
        }
    }
    if (!verdict.empty()) {
        const auto until = clock::now() + std::chrono::milliseconds(static_cast<long>(1000 * request.shrink_seconds));
        const u32 attempts = request.hide ? 8 : 20; // what is hidden on purpose shows nearly always
        result.failure = lost ? soak_failure{failing, verdict, false, {}, {}}
                              : examine(failing, verdict, run_fresh, attempts, until);
    }
    result.seconds = seconds_since(begin);
    return result;
}

} // namespace slipstream::soak
