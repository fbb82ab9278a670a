#include "tools/slipstream/soak/shrink.hpp"
#include <algorithm>
#include <slipstream/status.hpp>

namespace slipstream::soak {
namespace {

class shrinker {
public:
    shrinker(const soak_case& failing, const std::string& verdict, const trial& run, u32 attempts,
             std::chrono::steady_clock::time_point until)
        : best_{failing, verdict, 0, {}}, run_(run), attempts_(attempts), until_(until)
    {
        best_.smallest.keep = std::min(failing.keep, failing.tasks - failing.from);
    }

    shrunk_case result()
    {
        for (bool smaller = true; smaller && !late();) {
            smaller = false;
            // Each by itself: what is left shows what the failure needs. Other threads make another stream, so that
            // comes before the cuts.
            const soak_case usual;
            for (const auto& change : std::initializer_list<std::function<void(soak_case&)>>{
                     [](soak_case& c) { c.parts = 1; }, [](soak_case& c) { c.parts = std::min(c.parts, 2u); },
                     [](soak_case& c) { c.placement = 0; }, [](soak_case& c) { c.parks = 0; },
                     [&](soak_case& c) { c.residency_ms = usual.residency_ms; }, [](soak_case& c) { c.start = 0; },
                     [](soak_case& c) { c.staging = 1; }, [](soak_case& c) { c.chaining = 0; }, [](soak_case& c) { c.bypass = 0; },
                     [](soak_case& c) { c.broadcast = 0; }, [](soak_case& c) { c.per_sm = 1; },
                     [](soak_case& c) { c.threads = 1; }, [](soak_case& c) { c.threads = std::min(c.threads, 2u); },
                     [](soak_case& c) { c.workers = std::min(c.workers, 4u); },
                     [](soak_case& c) { c.workers = std::min(c.workers, 2u); },
                     [](soak_case& c) { c.window = std::max(std::min(c.window, 2u), c.threads + 1); },
                     [](soak_case& c) { c.window = std::max(std::min(c.window, 16u), c.threads + 1); },
                     [](soak_case& c) { c.ring = std::min(c.ring, 2u); }, [](soak_case& c) { c.ring = std::min(c.ring, 64u); }})
                smaller |= take_if_failing(change);
            smaller |= cut_tasks();
        }
        return best_;
    }

private:
    bool late() const { return !best_.ended.empty() || std::chrono::steady_clock::now() >= until_; }

    /// Leaves out the end, then the beginning, in halves, quarters, ... of what is left.
    bool cut_tasks()
    {
        bool smaller = false;
        for (u32 piece = best_.smallest.keep / 2; piece > 0 && !late(); piece /= 2) {
            while (best_.smallest.keep > piece && take_if_failing([&](soak_case& c) { c.keep -= piece; })) smaller = true;
            while (best_.smallest.keep > piece && take_if_failing([&](soak_case& c) {
                       c.from += piece;
                       c.keep -= piece;
                   }))
                smaller = true;
        }
        return smaller;
    }

    template <class Change> bool take_if_failing(const Change& change)
    {
        soak_case smaller = best_.smallest;
        change(smaller);
        smaller.fit();
        if (smaller.text() == best_.smallest.text()) return false;
        for (u32 attempt = 0; attempt < attempts_ && !late(); ++attempt) {
            ++best_.trials;
            std::string verdict;
            try {
                verdict = run_(smaller);
            } catch (const device_error& e) {
                best_.ended = e.what();
            }
            if (verdict.empty()) continue;
            best_.smallest = smaller;
            best_.verdict = verdict;
            return true;
        }
        return false;
    }

    shrunk_case best_;
    const trial& run_;
    u32 attempts_;
    std::chrono::steady_clock::time_point until_;
};

} // namespace

shrunk_case shrink(const soak_case& failing, const std::string& verdict, const trial& run, u32 attempts,
                   std::chrono::steady_clock::time_point until)
{
    return shrinker(failing, verdict, run, attempts, until).result();
}

} // namespace slipstream::soak
