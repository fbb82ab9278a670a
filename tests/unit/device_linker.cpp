// The linker by itself, against what a program's order says: tasks with none to very many predecessors, linked together, in slots
// that come again.
#include "device_engine.hpp"
#include "trace_catch.hpp"
#include <random>
#include <set>

using namespace slipstream;
using namespace slipstream::tests;

namespace {

/// Tasks 0, 1, 2, ... of a program, each with its window slot. The test is admission, scheduler and workers.
class linked_program {
public:
    linked_program(u32 window, bool staging, u32 seed)
        : e_({.window = window, .workers = 2 * window, .staging = staging}, types()), linker_(e_.m, e_.s),
          admitted_(e_.s.admitted_queue()), reports_(e_.s.report_queue()), ready_(e_.s.ready_queue()), random_(seed)
    {
        for (u32 slot = 0; slot < window; ++slot) free_.push_back(slot);
    }

    void run(u32 count)
    {
        while (complete_.size() < count) {
            const u32 what = below(8);
            if (what < 5 && tasks_.size() < count) admit();
            else if (what < 6) step();
            else if (what < 7) end_some();
            else retire_some();
        }
        step();
        CHECK(linker_.empty());
    }

    u32 most_linked = 0;   ///< that came to the linker together
    u32 longest_wait = 0;  ///< tasks that a staged one waits for
    u32 staged = 0;
    u32 implied = 0;       ///< tasks before a staged one that its workers do not wait for

private:
    struct task {
        u32 slot;
        std::set<u32> after; ///< predecessors that were not retired when it was admitted
    };

    static std::vector<abi::task_type> types()
    {
        std::vector<abi::task_type> out(1);
        out[0].brief = 1;
        return out;
    }
    u32 below(u32 n) { return static_cast<u32>(random_() % n); }

    void admit()
    {
        if (free_.empty() || admitted_.room(e_.team) == 0) return;
        std::swap(free_[below(static_cast<u32>(free_.size()))], free_.back());
        task t{free_.back(), {}};
        free_.pop_back();
        static constexpr u32 counts[] = {0, 1, 1, 1, 2, 3, 4, 5, 9, 15, 16, 22};
        const std::vector<u32> live(present_.begin(), present_.end());
        // Mostly the last ones, as programs have it: one that another one implies is often among them.
        for (u32 n = counts[below(static_cast<u32>(std::size(counts)))]; n != 0 && !live.empty(); --n) {
            const u32 span = std::min<u32>(static_cast<u32>(live.size()), below(4) != 0 ? 6 : 64);
            t.after.insert(live[live.size() - 1 - below(span)]);
        }
        const u32 number = static_cast<u32>(tasks_.size());
        std::vector<u32> slots;
        for (const u32 p : t.after) slots.push_back(tasks_[p].slot);
        std::shuffle(slots.begin(), slots.end(), random_);
        e_.fill_slot(t.slot, number, {});
        e_.set_predecessors(admitted_.position(), slots);
        admitted_.push(e_.team, t.slot | (slots.empty() ? device::admitted_free : 0));
        present_.insert(number);
        of_slot_[t.slot] = number;
        tasks_.push_back(std::move(t));
        ++waiting_;
    }

    bool is_complete(u32 t) const { return complete_.count(t) != 0; }
    /// Does b come after a, by any way?
    bool comes_after(u32 a, u32 b) const
    {
        if (a == b) return true;
        for (const u32 p : tasks_[b].after)
            if (p >= a && comes_after(a, p)) return true;
        return false;
    }

    void step()
    {
        most_linked = std::max(most_linked, waiting_);
        while (linker_.step(e_.team)) {}
        waiting_ = 0;
        while (ready_.available(e_.team) != 0) {
            const device::ready_entry entry = ready_.pop();
            const u32 t = of_slot_.at(entry.slot());
            REQUIRE(handed_.insert(t).second);
            if (entry.waits() == 0) {
                for (const u32 p : tasks_[t].after) REQUIRE(is_complete(p));
                continue;
            }
            ++staged;
            longest_wait = std::max(longest_wait, entry.waits());
            std::set<u32> awaited;
            for (u32 i = 0; i < entry.waits(); ++i) {
                const device::awaited_task a = i < device::waits_near_max
                    ? P::get(e_.s.waits_near[entry.slot() * device::waits_near_max + i])
                    : P::get(e_.s.waits_far[entry.slot() * device::waits_far_max + i - device::waits_near_max]);
                const u32 p = of_slot_.at(a.slot);
                REQUIRE(awaited.insert(p).second);
                REQUIRE(tasks_[t].after.count(p) == 1);
                REQUIRE(handed_.count(p) == 1); // before it
                REQUIRE(a.identity == device::identity_of(p));
            }
            for (const u32 p : tasks_[t].after) {
                if (is_complete(p) || awaited.count(p) != 0) continue;
                ++implied;
                REQUIRE(std::any_of(awaited.begin(), awaited.end(), [&](u32 a) { return comes_after(p, a); }));
            }
        }
        ready_.release(e_.team);
        // Who waits for nobody is not forgotten.
        for (const u32 t : present_) {
            const auto& after = tasks_[t].after;
            if (handed_.count(t) == 0) REQUIRE(!std::all_of(after.begin(), after.end(), [&](u32 p) { return is_complete(p); }));
        }
    }

    /// Some of those that were handed over end, and are reported in any order.
    void end_some()
    {
        std::vector<u32> ended;
        for (const u32 t : handed_) {
            const auto& after = tasks_[t].after;
            if (is_complete(t) || below(3) == 0) continue;
            if (!std::all_of(after.begin(), after.end(), [&](u32 p) { return is_complete(p); })) continue;
            complete_.insert(t);
            ended.push_back(t);
        }
        std::shuffle(ended.begin(), ended.end(), random_);
        for (const u32 t : ended) {
            reports_.push(e_.team, device::report::make(device::report_kind::completed, tasks_[t].slot));
            unretired_.push_back(t);
        }
        if (below(2) == 0) step(); // else what comes next is linked beside them
    }

    /// Slots of tasks that were reported come again.
    void retire_some()
    {
        while (!unretired_.empty() && below(4) != 0) {
            std::swap(unretired_[below(static_cast<u32>(unretired_.size()))], unretired_.back());
            free_.push_back(tasks_[unretired_.back()].slot);
            present_.erase(unretired_.back());
            unretired_.pop_back();
        }
    }

    hand_made_engine e_;
    device::linker<P> linker_;
    device::queue_producer<P, u32, device::edge::R10_admitted, device::edge::A10_linked> admitted_;
    device::queue_producer<P, device::report, device::edge::R13_report, device::edge::A13_taken, device::order::relaxed> reports_;
    device::queue_consumer<P, device::ready_entry, device::edge::A14_ready, device::edge::R14_taken, device::order::relaxed> ready_;
    std::mt19937 random_;
    std::vector<task> tasks_;
    std::vector<u32> free_, unretired_;
    std::set<u32> present_, handed_, complete_; ///< present: admitted, and not retired
    std::map<u32, u32> of_slot_;
    u32 waiting_ = 0; ///< admitted since the linker's last step
};

} // namespace

TEST_CASE("the linker hands tasks over in the order that their predecessors allow, however many they have", "[device][staging]")
{
    const u32 window = GENERATE(32u, 64u, 512u, 1024u);
    u32 most_linked = 0, longest = 0, staged = 0, implied = 0;
    for (u32 seed = 1; seed <= 12; ++seed)
        for (const bool staging : {false, true}) {
            CAPTURE(window, seed, staging);
            linked_program program(window, staging, seed);
            program.run(600);
            most_linked = std::max(most_linked, program.most_linked);
            longest = std::max(longest, program.longest_wait);
            staged += program.staged;
            implied += program.implied;
        }
    CHECK(most_linked > 16);
    CHECK(longest > device::waits_near_max + 4);
    CHECK(staged > 1000);
    CHECK(implied != 0);
}
