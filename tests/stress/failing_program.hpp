// Random tasks that fail, over memory that lies in several parts of an engine, and what has to become of each: its
// causes, reckoned byte by byte.
#pragma once
#include <algorithm>
#include <random>
#include <slipstream/runtime.hpp>
#include <string>
#include <utility>
#include <vector>

namespace slipstream::tests {

struct failing_program {
    u32 tasks = 400;        ///< fewer than the runs of failed tasks that the engine's books hold: they are exact then
    static constexpr u32 bytes = 40; ///< of memory, each ordered for itself: likewise fewer than the books hold

    /// Empty, or which task did not end as it has to. base: no body touches this memory. task_of(code): one that fails with
    /// `code`, or does not if that is 0.
    template <class Runtime, class TaskOf>
    std::string run(Runtime& rt, u64 base, std::mt19937_64& random, const TaskOf& task_of) const
    {
        const auto below = [&](u32 n) { return static_cast<u32>(random() % n); };
        for (u32 at = 0; at < bytes;) {
            const u32 piece = std::min(bytes - at, 1 + below(8));
            if (below(5) != 0) rt.place(reinterpret_cast<void*>(base + at), piece, below(rt.parts()));
            at += piece;
        }
        using causes = std::vector<u32>; ///< tasks that failed, any of which may be named; empty: all is well
        struct answer {
            task_state state;
            causes because;
        };
        const auto merge = [](causes& into, const causes& from) {
            for (const u32 x : from)
                if (std::find(into.begin(), into.end(), x) == into.end()) into.push_back(x);
        };
        std::vector<causes> poison(bytes), of_task;
        std::vector<task_handle> handles;
        std::vector<answer> expected;
        const auto wrong = [&](u32 i) -> std::string {
            const task_status got = rt.wait(handles[i]);
            const answer& want = expected[i];
            bool named = want.because.empty();
            for (const u32 x : want.because) named |= got.cause == handles[x] && got.code == code_of(x);
            if (got.state == want.state && named) return {};
            return "task " + std::to_string(i) + ": state " + std::to_string(static_cast<u32>(got.state)) + ", code "
                + std::to_string(got.code) + ", expected state " + std::to_string(static_cast<u32>(want.state))
                + (named ? "" : " and another cause");
        };
        for (u32 i = 0; i < tasks; ++i) {
            if (below(60) == 0) {
                rt.clear_failure();
                for (auto* const all : {&poison, &of_task})
                    for (auto& c : *all) c.clear();
            }
            std::vector<declared_access> accesses;
            std::vector<std::pair<u32, u32>> pure, mixed;
            causes because;
            for (u32 k = 1 + below(below(8) == 0 ? 30 : 4); k > 0; --k) {
                const u32 at = below(bytes), length = 1 + below(std::min(6u, bytes - at)), mode = below(4);
                void* const address = reinterpret_cast<void*>(base + at);
                accesses.push_back(mode == 0   ? writes(address, length)
                                   : mode == 1 ? reads_and_writes(address, length)
                                               : reads(address, length));
                if (mode == 0) pure.emplace_back(at, length);
                if (mode == 1) mixed.emplace_back(at, length);
                if (mode != 0)
                    for (u32 b = at; b < at + length; ++b) merge(because, poison[b]);
            }
            std::vector<task_handle> after;
            if (i > 0 && below(6) == 0) {
                const u32 on = below(i);
                after.push_back(handles[on]);
                merge(because, of_task[on]);
            }
            const bool fails = below(12) == 0, cancelled = !because.empty();
            handles.push_back(rt.submit(task_of(fails ? code_of(i) : 0), {.after = after, .accesses = accesses}));
            const causes result = cancelled ? because : fails ? causes{i} : causes{};
            for (const auto& [at, length] : pure)
                for (u32 b = at; b < at + length; ++b) poison[b].clear();
            for (const auto* const list : {&pure, &mixed})
                for (const auto& [at, length] : *list)
                    for (u32 b = at; b < at + length; ++b) merge(poison[b], result);
            of_task.push_back(result);
            expected.push_back({cancelled ? task_state::cancelled : fails ? task_state::failed : task_state::complete, result});
            if (below(8) == 0) // now and then at once: what follows meets a failure that is long known
                if (const std::string text = wrong(i); !text.empty()) return text;
        }
        rt.wait_all();
        for (u32 i = 0; i < tasks; ++i)
            if (const std::string text = wrong(i); !text.empty()) return text;
        return {};
    }

private:
    static u32 code_of(u32 task) { return 1000 + task; }
};

} // namespace slipstream::tests
