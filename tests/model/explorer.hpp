// Runs a small concurrent program under many schedules and many legal outcomes of its loads, and reports the first failure.
//
//   auto report = model::explore({.name = "message passing"}, [](model::execution& ex) {
//       auto st = std::make_shared<state>();
//       ex.spawn("writer", model::device_block(0), [st] { ... });   // code over model_platform<1>
//       ex.spawn("reader", model::host_thread(), [st] { ... });
//       ex.at_end([st] { model::check(st->sum == 3, "both arrived"); });
//   });
//
// The lambda is run once per execution and must be deterministic. What it does itself happens before all threads.
#pragma once
#include "tests/model/memory.hpp"
#include <functional>
#include <optional>
#include <string>

namespace slipstream::model {

enum class search : u8 {
    exhaustive, ///< depth first over all choices, equivalent schedules left out (sleep sets)
    random,     ///< `executions_max` random walks from `seed`
};

struct options {
    std::string name = "unnamed";
    model::search search = model::search::exhaustive;
    u64 executions_max = 2'000'000;
    double seconds_max = 60; ///< of processor time
    int preemptions_max = -1; ///< exhaustive only: switches away from a thread that could go on; -1: any number
    int stale_max = -1;       ///< loads per execution that do not read the newest message; -1: any number
    u64 seed = 1;             ///< random only
    u32 steps_max = 20'000;   ///< atomic operations of one execution; more is a livelock
    u32 idle_rounds = 4;      ///< how often waiting threads may look again when nothing moves, before it is a deadlock
    u32 clock_jumps_max = 40; ///< when all wait and one looks at the clock: jumps of 1, 2, 4 ... ms
    bool cut_idle_spins = true; ///< unbounded exhaustive search leaves out fruitless turns of waiting loops (README)
};

struct failure {
    std::string what;
    std::string schedule; ///< for replay()
    std::string trace;    ///< one line per operation
};

struct report {
    std::string name;
    std::string bound;      ///< what limited the search, in words
    u64 executions = 0;     ///< run to their end
    u64 cut_idle = 0;       ///< abandoned: a fruitless turn of a waiting loop
    u64 cut_equivalent = 0; ///< abandoned: equivalent to one already run
    u64 steps = 0;          ///< atomic operations in all
    u64 steps_longest = 0;
    u64 forced_newest = 0;  ///< loads that a waiting loop was made to read fresh, beyond what is exact
    u64 weakened = 0;       ///< operations of roles that a mutation changed; 0: the mutant is the program itself
    std::array<edge_uses, edges> uses{}; ///< operations of roles as the program has them, before mutations
    bool exhausted = false; ///< every execution within `bound` was run
    double seconds = 0; ///< of processor time
    std::optional<model::failure> failure;

    std::string line() const; ///< one line for the log
    std::string text() const; ///< line and failure with trace
};

class execution {
public:
    /// A role of one lane.
    void spawn(std::string name, placement where, std::function<void()> body);
    /// A role whose lanes run `body` together: team::size() == lanes.
    void spawn_team(std::string name, placement where, u32 lanes, std::function<void()> body);
    /// Runs after all roles have ended, ordered after everything.
    void at_end(std::function<void()> body);
};

report explore(const options& how, const std::function<void(execution&)>& body);

/// Stands in for explore() where it is set: the mutation command (mutations.cpp) notes each search of a test, or runs one of them
/// and answers for the others. It calls search_now() for the search itself.
using search_stand_in = report (*)(const options& how, const std::function<void(execution&)>& body);
inline search_stand_in stand_in = nullptr;
report search_now(const options& how, const std::function<void(execution&)>& body);

/// What no search of this model can find, in one line: printed with every run's reports.
inline constexpr const char* left_out
    = "load buffering (a load never sees a later store; where ring chunks and failure records are used again their order is "
      "checked), SC fences, the async proxy, mixed-size accesses, spurious tearing, placements that change, memory that is no "
      "cell; outcomes: what a check() or a race forbids is FORBIDDEN, all else ACCEPTABLE";

/// Runs one recorded schedule (failure::schedule) and returns its trace and, if it fails, its failure.
struct replayed {
    std::string trace;
    std::optional<std::string> what;
};
replayed replay(const std::string& schedule, const std::function<void(execution&)>& body);

/// FORBIDDEN outcomes end the execution as a failure.
void check(bool condition, const char* text);
[[noreturn]] void fail(const std::string& text);

} // namespace slipstream::model
