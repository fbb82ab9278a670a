// Random small programs over the memory of several parts, on the host device: tasks that cross, fail, are cancelled, forgiven,
// held up. What becomes of each, what it reads and what it leaves is reckoned by taking them one after another; and of two that
// may not run side by side the first has to end before the second begins.
//   SLIPSTREAM_SEED=n             replays one program, and only it
//   SLIPSTREAM_STRESS_SECONDS=n   how long each test goes on, instead of a number of programs
#include "api_tasks.hpp"
#include "tests/stress/random_delays.hpp"
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <sstream>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

using word_set = u64; ///< a bit for each word of the memory
constexpr u32 words_max = 64;
constexpr u32 none = ~0u;

word_set words_from(u32 first, u32 count) { return count == 0 ? 0 : ~word_set{0} >> (words_max - count) << first; }

template <class Visit>
void for_each_word(word_set set, Visit visit)
{
    for (; set != 0; set &= set - 1) visit(static_cast<u32>(std::countr_zero(set)));
}

struct planned_access {
    access_mode mode;
    u32 first, count;
    bool by_handle = false; ///< it is a registered piece
    bool hidden = false;    ///< the body does it, and nobody is told

    word_set words(access_mode bit) const
    {
        return static_cast<u32>(mode) & static_cast<u32>(bit) ? words_from(first, count) : 0;
    }
};

enum class body_kind { plain, brief, members };

struct planned_task {
    std::vector<planned_access> accesses; ///< body_kind::members: one that reads, one that updates, one that writes
    std::vector<u32> after;               ///< earlier tasks
    ordering order = ordering::by_access;
    body_kind kind = body_kind::plain;
    u32 blocks = 1;
    bool fails = false;  ///< in its last block
    bool clears = false; ///< it is no task but a clear_failure
    bool idle = false;   ///< it is submitted when all before it is done
    u32 gate = none;     ///< a later task: its body waits until that one is submitted, or has run, but no longer than `patience`
    bool gate_runs = false;
    std::chrono::microseconds patience{0};
    u32 rounds = 0; ///< about 1 ns each, between what a body reads and what it writes

    word_set reads() const { return all(access_mode::read); }
    word_set writes() const { return all(access_mode::write); }
    bool whole() const { return order == ordering::whole_memory; }

private:
    word_set all(access_mode bit) const
    {
        word_set out = 0;
        for (const auto& a : accesses) out |= a.words(bit);
        return out;
    }
};

/// What belongs together to a part, or, if that is none, was never placed.
struct piece {
    u32 first, count, part;
    bool registered;
};

struct program {
    u64 seed = 0;
    config settings;
    u32 waits_in_100 = 0; ///< so often the submitting thread waits for an earlier task, or looks what has become of one
    std::optional<random_delays::choice> delays;
    std::vector<piece> pieces;
    std::vector<planned_task> tasks;
};

u64 mix(u64 x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
// A task's digest is of all that it reads and does not write; what it writes follows from that, and from what it updates.
u64 digest_of_nothing(u32 task) { return mix(task + 1); }
u64 digest_and(u64 digest, u64 word) { return mix(digest ^ word); }
u64 written(u64 digest, u32 word, u64 before) { return mix(digest + word) + 3 * before; }
u32 code_of(u32 task) { return 1000 + task; }

// One after another ----------------------------------------------------------------------------------------------------------

/// What has to become of a task.
struct answer {
    task_state state;
    std::set<u32> roots;        ///< the failed tasks it may name as its cause
    std::optional<u64> digest;  ///< unknown: it read what a failed task left
};

class one_after_another {
public:
    one_after_another()
    {
        for (u32 w = 0; w < words_max; ++w) words_.push_back({w, {}});
    }

    answer next(const planned_task& task)
    {
        const u32 number = static_cast<u32>(of_task_.size());
        if (task.clears) return forgive();
        std::set<u32> roots;
        const auto blame = [&](const std::set<u32>& more) { roots.insert(more.begin(), more.end()); };
        for_each_word(task.whole() ? ~word_set{0} : task.reads(), [&](u32 w) { blame(words_[w].poison); });
        for (const u32 a : task.after) blame(of_task_[a]);
        if (task.whole() || task.reads() != 0 || !task.after.empty()) blame(everything_);
        answer out{task_state::complete, roots, {}};
        if (!roots.empty()) out.state = task_state::cancelled;
        else if (task.fails) out = {task_state::failed, {number}, {}};

        if (out.state == task_state::complete) out.digest = digest(task, number);
        if (out.state != task_state::complete && task.whole()) everything_.insert(out.roots.begin(), out.roots.end());
        for_each_word(task.writes(), [&](u32 w) {
            word& to = words_[w];
            const bool updates = (task.reads() >> w & 1) != 0;
            if (!out.digest || (updates && !to.value)) to.value.reset();
            else to.value = written(*out.digest, w, updates ? *to.value : 0);
            if (!task.whole()) to.poison = out.roots; // what was there before it has read, or wrote over
        });
        of_task_.push_back(out.roots);
        return out;
    }

    bool everything_is_poisoned() const { return !everything_.empty(); }
    /// Unknown: a failed task wrote it last, or a cancelled one did not, or whoever did had read such a word.
    std::optional<u64> value(u32 w) const { return words_[w].value; }

private:
    struct word {
        std::optional<u64> value;
        std::set<u32> poison; ///< the failed tasks that it goes back to
    };

    answer forgive()
    {
        for (word& w : words_) w.poison.clear();
        for (auto& roots : of_task_) roots.clear();
        everything_.clear();
        of_task_.emplace_back();
        return {task_state::complete, {}, {}};
    }
    std::optional<u64> digest(const planned_task& task, u32 number) const
    {
        std::optional<u64> out = digest_of_nothing(number);
        for_each_word(task.reads() & ~task.writes(), [&](u32 w) {
            if (out && words_[w].value) out = digest_and(*out, *words_[w].value);
            else out.reset();
        });
        return out;
    }

    std::vector<word> words_;
    std::vector<std::set<u32>> of_task_; ///< of each task the failed ones that it goes back to; empty: all is well
    std::set<u32> everything_;           ///< a whole-memory task has failed
};

/// May not run side by side, whatever becomes of them.
bool in_order(const std::vector<planned_task>& tasks, u32 first, u32 second)
{
    const planned_task &a = tasks[first], &b = tasks[second];
    const bool meet = ((a.writes() & (b.reads() | b.writes())) | (a.reads() & b.writes())) != 0;
    const bool named = std::find(b.after.begin(), b.after.end(), first) != b.after.end();
    return meet || named || a.whole() || b.whole();
}

// On the engine --------------------------------------------------------------------------------------------------------------

/// What bodies see, all of it in the host's memory, and what they leave behind.
struct stage {
    explicit stage(const std::vector<planned_task>& t) : tasks(t), traces(t.size())
    {
        for (u32 w = 0; w < words_max; ++w) memory.push_back(w);
    }

    struct trace {
        std::atomic<u32> began{none}, ended{0}; ///< of all blocks the first and the last, by `clock`
        std::atomic<u32> runs{0};               ///< blocks that came to their end
        u64 digest = 0;
    };

    template <class Block>
    void run(Block& block, u32 number)
    {
        const planned_task& task = tasks[number];
        trace& mine = traces[number];
        const auto here = [&] { return clock.fetch_add(1, std::memory_order_relaxed); }; // relaxed: it orders nobody
        const u32 begin = here();
        for (u32 seen = mine.began; begin < seen && !mine.began.compare_exchange_weak(seen, begin, std::memory_order_relaxed);) {}
        wait_at_gate(task);
        u64 digest = digest_of_nothing(number);
        for_each_word(task.reads() & ~task.writes(), [&](u32 w) { digest = digest_and(digest, memory[w]); });
        for (u32 i = 0; i < task.rounds; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
        u32 turn = 0;
        for_each_word(task.writes(), [&](u32 w) { // each word is one block's
            if (turn++ % block.blocks() != block.block_index()) return;
            memory[w] = written(digest, w, task.reads() >> w & 1 ? memory[w] : 0);
        });
        if (block.block_index() == 0) mine.digest = digest;
        if (task.fails && block.block_index() + 1 == block.blocks()) block.fail(code_of(number));
        mine.runs.fetch_add(1, std::memory_order_relaxed);
        const u32 end = here();
        for (u32 seen = mine.ended; seen < end && !mine.ended.compare_exchange_weak(seen, end, std::memory_order_relaxed);) {}
    }

    void wait_at_gate(const planned_task& task) const
    {
        if (task.gate == none) return;
        const auto opens = [&] {
            return task.gate_runs ? traces[task.gate].runs.load(std::memory_order_relaxed) != 0
                                  : submitted.load(std::memory_order_relaxed) > task.gate;
        };
        const auto until = std::chrono::steady_clock::now() + task.patience;
        while (!opens() && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(20us);
    }

    const std::vector<planned_task>& tasks;
    std::vector<u64> memory;
    std::vector<trace> traces;
    std::atomic<u32> submitted{0}, clock{0};
};

template <bool Brief>
struct staged_task {
    static constexpr const char* name = Brief ? "brief" : "plain";
    static constexpr bool brief = Brief;
    u64 on;
    u32 number;
    template <class Block> void operator()(Block& block) const { reinterpret_cast<stage*>(on)->run(block, number); }
};

struct member_task {
    static constexpr const char* name = "members";
    in<u64> a;
    u64 on;
    inout<u64> b;
    u32 number;
    out<u64> c;
    template <class Block> void operator()(Block& block) const { reinterpret_cast<stage*>(on)->run(block, number); }
};

using fuzz_engine = runtime<staged_task<false>, staged_task<true>, member_task>;

/// A program on an engine.
class performance {
public:
    explicit performance(const program& p) : p_(p), on_(p.tasks), rt_(p.settings), random_(p.seed + 1)
    {
        for (const piece& each : p.pieces) {
            if (each.part != none) rt_.place(&on_.memory[each.first], 8ull * each.count, each.part);
            handles_.push_back(each.registered ? rt_.register_range(&on_.memory[each.first], 8ull * each.count) : data_handle{});
        }
    }

    /// Empty, or what is wrong.
    std::string run()
    {
        one_after_another oracle;
        for (const planned_task& task : p_.tasks) expected_.push_back(oracle.next(task));
        for (u32 t = 0; t < p_.tasks.size(); ++t) {
            if (p_.tasks[t].idle) (void)rt_.wait_all();
            submit(t);
            on_.submitted = t + 1;
            if (const std::string wrong = meanwhile(); !wrong.empty()) return wrong;
        }
        (void)rt_.wait_all();
        for (u32 t = 0; t < p_.tasks.size(); ++t) {
            if (const std::string wrong = check(t, rt_.wait(submitted_[t])); !wrong.empty()) return wrong;
            if (const std::string wrong = check_trace(t); !wrong.empty()) return wrong;
        }
        for (u32 w = 0; w < words_max; ++w)
            if (oracle.value(w) && *oracle.value(w) != on_.memory[w]) return "word " + std::to_string(w) + " is wrong";
        return {};
    }

private:
    void submit(u32 t)
    {
        const planned_task& task = p_.tasks[t];
        if (task.clears) return submitted_.push_back(rt_.clear_failure());
        std::vector<task_handle> after;
        for (const u32 a : task.after) after.push_back(submitted_[a]);
        std::vector<declared_access> accesses;
        if (task.kind != body_kind::members)
            for (const auto& a : task.accesses)
                if (!a.hidden && !task.whole())
                    accesses.push_back(a.by_handle ? on(a.mode, handle_of(a)) : raw_access(a.mode, at(a), 8ull * a.count));
        const submit_options options{.blocks = task.blocks, .after = after, .accesses = accesses, .order = task.order};
        const u64 on_stage = reinterpret_cast<u64>(&on_);
        submitted_.push_back(
            task.kind == body_kind::plain   ? rt_.submit(staged_task<false>{on_stage, t}, options)
            : task.kind == body_kind::brief ? rt_.submit(staged_task<true>{on_stage, t}, options)
                                            : rt_.submit(member_task{member<in<u64>>(task.accesses[0]), on_stage,
                                                                     member<inout<u64>>(task.accesses[1]), t,
                                                                     member<out<u64>>(task.accesses[2])},
                                                         options));
    }
    u64* at(const planned_access& a) { return on_.memory.data() + a.first; }
    const data_handle& handle_of(const planned_access& a) const
    {
        u32 k = 0;
        while (p_.pieces[k].first != a.first) ++k;
        return handles_[k];
    }
    template <class Access> Access member(const planned_access& a)
    {
        return a.by_handle ? Access(handle_of(a)) : Access(at(a), a.count);
    }

    /// What the submitting thread does between two tasks.
    std::string meanwhile()
    {
        const u32 draw = static_cast<u32>(random_() % 100), any = static_cast<u32>(random_() % submitted_.size());
        if (draw < p_.waits_in_100) return check(any, rt_.wait(submitted_[any]));
        if (draw < 2 * p_.waits_in_100) return check(any, rt_.query(submitted_[any]), true);
        if (draw < 3 * p_.waits_in_100) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
        if (draw == 98 && p_.waits_in_100 != 0) (void)rt_.wait_all();
        if (draw == 99) {
            rt_.pause();
            rt_.resume();
        }
        return {};
    }

    std::string check(u32 t, const task_status& got, bool may_be_pending = false) const
    {
        const answer& want = expected_[t];
        const bool named = want.roots.empty()
                           || std::any_of(want.roots.begin(), want.roots.end(), [&](u32 root) {
                                  return got.cause == submitted_[root] && got.code == code_of(root);
                              });
        if (got.state == want.state ? named : may_be_pending && got.state == task_state::pending) return {};
        std::ostringstream text;
        text << "task " << t << " is " << state_name(got.state) << ", code " << got.code << ", and had to be "
             << state_name(want.state);
        for (const u32 root : want.roots) text << " by " << root;
        return text.str();
    }
    std::string check_trace(u32 t) const
    {
        const stage::trace& mine = on_.traces[t];
        const u32 least = expected_[t].state == task_state::complete ? p_.tasks[t].blocks
                          : expected_[t].state == task_state::failed ? 1
                                                                     : 0;
        const u32 most = expected_[t].state == task_state::cancelled ? 0 : p_.tasks[t].blocks;
        const std::string it = "task " + std::to_string(t);
        if (p_.tasks[t].clears || mine.runs == 0) return !p_.tasks[t].clears && least > 0 ? it + " did not run" : "";
        if (mine.runs < least || mine.runs > most)
            return it + " has run " + std::to_string(mine.runs) + " blocks, of " + std::to_string(most);
        if (expected_[t].digest && *expected_[t].digest != mine.digest) return it + " has read something else";
        bool cleared = false; // behind a clear_failure come all that are before it
        for (u32 before = t; before-- > 0;) {
            cleared |= p_.tasks[before].clears;
            if (on_.traces[before].runs != 0 && (cleared || in_order(p_.tasks, before, t))
                && on_.traces[before].ended > mine.began)
                return it + " began before task " + std::to_string(before) + " had ended";
        }
        return {};
    }
    static const char* state_name(task_state s)
    {
        return std::array{"pending", "complete", "failed", "cancelled"}.at(static_cast<u32>(s));
    }

    const program& p_;
    stage on_; // outlives the engine
    fuzz_engine rt_;
    std::mt19937_64 random_;
    std::vector<data_handle> handles_; ///< of each piece
    std::vector<task_handle> submitted_;
    std::vector<answer> expected_;
};

/// The program as one would write it down, to be read with what was wrong.
std::string text_of(const program& p)
{
    std::ostringstream out;
    const config& c = p.settings;
    out << "seed " << p.seed << ": parts " << c.parts << " window " << c.window << " ring " << c.ring_slots << " workers "
        << c.host_workers << (c.staging ? "" : ", not staged") << (c.chaining ? "" : ", not chained") << ", residency "
        << c.residency.count() << " ms";
    if (p.delays)
        out << ", " << device::edge_name(p.delays->favourite) << " delayed, by " << p.delays->favourite_us_max
            << " us, others one in " << p.delays->one_in;
    out << "\nmemory:";
    for (const piece& each : p.pieces) {
        out << (each.registered ? " handle [" : " [") << each.first << " +" << each.count << "] of ";
        if (each.part == none) out << "nobody";
        else out << each.part;
    }
    for (u32 t = 0; t < p.tasks.size(); ++t) {
        const planned_task& task = p.tasks[t];
        out << "\n  " << t << ":" << (task.idle ? " when idle" : "") << (task.clears ? " clear_failure" : "")
            << (task.kind == body_kind::brief ? " brief" : "")
            << (task.whole() ? " whole" : task.order == ordering::no_access ? " nothing" : "");
        for (const auto& a : task.accesses)
            out << " " << std::array{"", "r", "w", "rw"}.at(static_cast<u32>(a.mode)) << (a.by_handle ? " handle [" : "[")
                << a.first << " +" << a.count << "]" << (a.hidden ? " hidden" : "");
        for (const u32 a : task.after) out << " after " << a;
        if (task.blocks > 1) out << " blocks " << task.blocks;
        if (task.gate != none)
            out << " waits until " << task.gate << (task.gate_runs ? " has run, " : " is submitted, ") << task.patience.count()
                << " us";
        if (task.fails) out << " FAILS";
    }
    return out.str();
}

std::string verdict_on(const program& p)
{
    std::optional<random_delays> delays;
    if (p.delays) delays.emplace(*p.delays);
    return performance(p).run();
}

// Drawn ----------------------------------------------------------------------------------------------------------------------

class draw_program {
public:
    explicit draw_program(u64 seed) : random_(seed)
    {
        p_.seed = seed;
        draw_settings();
        draw_memory();
        one_after_another so_far;
        for (const u32 tasks = 10 + below(one_of({30, 150})); p_.tasks.size() < tasks;) {
            planned_task task = draw_task();
            // Whether an `after` cancels then, though whom it names succeeded long ago, is nowhere said.
            if (so_far.everything_is_poisoned()) task.after.clear();
            (void)so_far.next(task);
            p_.tasks.push_back(std::move(task));
        }
    }

    program take() && { return std::move(p_); }

private:
    u32 below(u32 n) { return static_cast<u32>(random_() % n); }
    bool one_in(u32 n) { return below(n) == 0; }
    u32 one_of(std::initializer_list<u32> list) { return *(list.begin() + below(static_cast<u32>(list.size()))); }

    void draw_settings()
    {
        config& c = p_.settings;
        c = host_config();
        c.parts = 2 + below(3);
        c.window = one_of({16, 16, 32, 64, 256});
        c.ring_slots = one_of({4, 16, 64, 1024});
        c.host_workers = c.parts * (1 + below(3)) + below(c.parts);
        if (one_in(6)) c.residency = 1ms;
        c.staging = !one_in(8);
        c.chaining = !one_in(8);
        c.bypass = !one_in(8);
        draw_delays();
        p_.waits_in_100 = one_of({0, 2, 10});
        fails_in_1000_ = one_in(10) ? 0 : one_of({30, 80, 150});
        clears_in_1000_ = one_of({10, 40, 100, 150});
        gates_in_1000_ = one_of({0, 80, 250});
        patience_us_ = one_of({100, 400, 1500});
        stays_in_100_ = one_of({10, 50, 90});
        accesses_max_ = one_of({2, 3, 5});
        length_max_ = one_of({1, 1, 3, 6});
    }
    void draw_delays()
    {
        if (one_in(3)) return;
        p_.delays = {p_.seed, one_of({32, 64, 256, 100'000}), random_delays::any_edge(random_), 0};
        if (one_in(2)) return;
        // Long ones, where the linker or the scheduler tells of what it has done, so that others go on with what they knew.
        using enum device::edge;
        constexpr std::array told{R10_admitted, R13_report, R14_ready, R4_mail, R6_retired, R19_message, R20_arrived, R26_staging};
        p_.delays->favourite = told.at(below(told.size()));
        p_.delays->favourite_us_max = one_of({200, 1000, 3000});
    }
    void draw_memory()
    {
        const u32 words = 6 + below(one_of({8, words_max - 5}));
        for (u32 at = 0; at < words;) {
            const u32 count = std::min(words - at, 1 + below(6));
            p_.pieces.push_back({at, count, one_in(8) ? none : below(p_.settings.parts), !one_in(3)});
            at += count;
        }
        words_ = words;
    }

    planned_task draw_task()
    {
        planned_task task;
        if (below(1000) < clears_in_1000_) {
            task.clears = true;
            task.idle = one_in(3);
            return task;
        }
        const u32 so_far = static_cast<u32>(p_.tasks.size());
        task.rounds = one_in(8) ? below(20'000) : below(500);
        task.fails = below(1000) < fails_in_1000_;
        if (one_in(5)) task.blocks = 2 + below(11);
        if (so_far > 0 && one_in(8))
            for (u32 k = 1 + below(2); k > 0; --k) task.after.push_back(so_far - 1 - below(std::min(so_far, one_of({10, 100}))));
        if (one_in(3)) task.kind = body_kind::brief;
        else if (below(1000) < gates_in_1000_) {
            task.gate = so_far + 1 + below(12);
            task.gate_runs = one_in(2);
            task.patience = std::chrono::microseconds(below(patience_us_));
        }
        if (meetings_left_ == 0 && one_in(15)) begin_to_meet(task);
        else if (meetings_left_ != 0) --meetings_left_;
        const u32 part = below(p_.settings.parts); // where its accesses mostly are
        if (one_in(40)) task.order = ordering::whole_memory;
        if (one_in(20)) {
            task.order = task.whole() ? task.order : ordering::no_access;
        } else if (task.kind == body_kind::plain && !task.whole() && one_in(4)) {
            task.kind = body_kind::members;
            for (const auto mode : {access_mode::read, access_mode::read_write, access_mode::write})
                task.accesses.push_back(draw_access(mode, part));
        } else {
            for (u32 k = 1 + (one_in(30) ? below(50) : below(accesses_max_)); k > 0; --k)
                task.accesses.push_back(draw_access(static_cast<access_mode>(1 + below(3)), part));
        }
        return task;
    }
    /// This task and some more meet at two words, while it is held up: that is where one is mailed behind another.
    void begin_to_meet(planned_task& task)
    {
        meetings_left_ = 2 + below(5);
        for (u32& w : meet_at_) w = below(words_);
        if (task.kind == body_kind::brief) return;
        task.gate = static_cast<u32>(p_.tasks.size()) + meetings_left_ + below(3);
        task.patience = std::chrono::microseconds(patience_us_);
    }
    planned_access draw_access(access_mode mode, u32 part)
    {
        if (meetings_left_ != 0 && !one_in(4)) return {mode, meet_at_[below(2)], 1};
        u32 k = below(static_cast<u32>(p_.pieces.size()));
        if (below(100) < stays_in_100_)
            for (u32 tries = 0; tries < 8 && p_.pieces[k].part != part; ++tries) k = below(static_cast<u32>(p_.pieces.size()));
        const piece& in = p_.pieces[k];
        if (in.registered && one_in(2)) return {mode, in.first, in.count, true};
        const u32 first = in.first + below(in.count), end = one_in(4) ? words_ : in.first + in.count; // past it, or not
        return {mode, first, one_in(60) ? 0 : 1 + below(std::min(length_max_, end - first))};
    }

    std::mt19937_64 random_;
    program p_;
    u32 words_ = 0;
    u32 meetings_left_ = 0, meet_at_[2] = {};
    u32 fails_in_1000_ = 0, clears_in_1000_ = 0, gates_in_1000_ = 0, stays_in_100_ = 0;
    u32 patience_us_ = 0, accesses_max_ = 0, length_max_ = 0;
};

program program_of(u64 seed)
{
    program p = draw_program(seed).take();
    for (auto& task : p.tasks)
        if (task.gate >= p.tasks.size()) task.gate = none; // it has not come
    return p;
}

} // namespace

TEST_CASE("random programs of several parts: each task's end, what it reads and what it leaves are those of one after another",
          "[api][parts][failure][fuzz]")
{
    const u64 given = number_from_env("SLIPSTREAM_SEED", 0), first = given != 0 ? given : 1000;
    const std::chrono::seconds longer{number_from_env("SLIPSTREAM_STRESS_SECONDS", 0)};
    const auto until = std::chrono::steady_clock::now() + longer;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    constexpr u64 usual = 100;
#else
    constexpr u64 usual = 600; // some 10 s
#endif
    const u64 programs = given != 0 || longer != 0s ? 1 : usual;
    for (u64 seed = first; seed < first + programs || (given == 0 && std::chrono::steady_clock::now() < until); ++seed) {
        const program p = program_of(seed);
        INFO(text_of(p));
        in_time(30, [p] {
            const std::string verdict = verdict_on(p);
            INFO(verdict);
            REQUIRE(verdict.empty());
        });
    }
}

TEST_CASE("an access that is hidden, and a failure that is hidden by it, are noticed, in whatever part the access lies",
          "[api][parts][failure][fuzz][broken]")
{
    // The oracle itself must be able to fail: the first task waits until the second one has run, which it must not before.
    struct hazard {
        const char* name;
        access_mode first, second;
        bool fails;
    };
    constexpr auto r = access_mode::read, w = access_mode::write;
    for (const hazard& h : {hazard{"RAW", w, r, false}, hazard{"WAR", r, w, false}, hazard{"WAW", w, w, false},
                            hazard{"poison", w, r, true}})
        for (const u32 shared : {0u, 4u}) // in the home of both, and where both have a stand-in
            for (const bool hidden : {false, true}) {
                program p;
                p.settings = host_config();
                p.settings.parts = 2;
                p.settings.host_workers = 4;
                p.pieces = {{0, 4, 0, true}, {4, 4, 1, true}};
                p.tasks.resize(2);
                for (u32 t = 0; t < 2; ++t)
                    p.tasks[t].accesses = {{w, 1 + t, 1}, {w, 5 + t, 1}, {t == 0 ? h.first : h.second, shared, 1}};
                p.tasks[0].gate = h.fails ? none : 1;
                p.tasks[0].gate_runs = true;
                p.tasks[0].patience = hidden ? 2s : 20ms;
                p.tasks[0].fails = h.fails;
                p.tasks[1].accesses[2].hidden = hidden;
                INFO(h.name << "\n" << text_of(p));
                in_time(20, [p, hidden] {
                    const std::string verdict = verdict_on(p);
                    INFO(verdict);
                    CHECK(verdict.empty() != hidden);
                });
            }
}
