#include "tests/model/explorer.hpp"
#include "tests/model/engine.hpp"
#include "tests/model/fiber.hpp"
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <sstream>
#include <time.h>

namespace slipstream::model {

namespace {

struct failed_check { // thrown by check() on a lane
    std::string what;
};
struct abandoned {}; // thrown into lanes to unwind an execution that ends early

enum class lane_state : u8 { pending, barrier, paused, done };

struct lane {
    u32 thread = 0;
    u32 role = 0;
    u32 rank = 0;
    lane_state state = lane_state::done;
    // The operation that will be executed when the scheduler picks this lane.
    engine::operation op = engine::operation::load;
    u32 location = 0;
    u32 bytes = 0;
    value operand{};
    value result{};
    edge tag = edge::count;
    order ord = order::relaxed;
    scope reach = scope::system;

    edge last = edge::count;
    const char* barrier = "";
    u64 collectives = 0;
    u64 clock_reads = 0;
    fiber stack;
};

/// What a waiting loop has seen: the explorer wakes it when something that it looked at has changed.
struct watched {
    u32 location;
    bool this_turn; ///< read since the last pause
};

struct role {
    std::string name;
    placement where;
    std::function<void()> body;
    std::vector<u32> lanes; ///< indices

    std::vector<u32> last_read; ///< by location: message index last read
    std::vector<watched> watch; ///< locations read since something new was seen
    bool news = false;          ///< this turn read a value it had not seen
    bool wrote = false;         ///< this turn stored something
    bool timed = false;         ///< this turn looked at the clock
    bool spinning = false;      ///< woken from a pause and nothing new seen yet
    bool cut_on_wake = false;
    u32 fruitless = 0;
    u32 idle_rounds = 0;

    u64 gathered[2][threads_max];
    unsigned char broadcasted[2][256];
};

struct sleeper {
    u32 thread;
    u32 covered; ///< loads: messages below this index were explored elsewhere; stores and adds: unused
};

struct candidate {
    u32 lane;
    u32 covered;     ///< loads: must read at or above this message
    u32 count;       ///< loads: messages when the node was made
    bool wanted;     ///< to be explored: the first one, and those that race with what was explored instead
    bool done = false;
    bool narrowed = false; ///< its load was made to read fresh: does not count as explored for the sleep set
};

/// A place whose reuse must be ordered: the newest message that each role has read, and who of it read that first.
struct reused_place {
    struct reader {
        u32 role, thread, clock, message;
        edge tag;
    };
    bool is = false;
    std::vector<reader> readers;
};

/// An executed operation, for finding the races whose other order must be explored too.
struct event {
    u32 thread;
    u32 number; ///< among the thread's events, from 1
    std::size_t node;
    u32 location;
    bool load;
    std::array<u32, threads_max> clock; ///< numbers of the events before it, by program order, reads-from and store order
};

/// A choice point of the depth-first search: of the next lane, or of the message a load reads.
struct node {
    bool is_read = false;
    u32 at = 0; ///< index into candidates, or message index
    u32 low = 0;
    u32 runnable = 0; ///< bit per lane
    std::vector<candidate> candidates;
    std::vector<sleeper> asleep;
};

enum class verdict : u8 { complete, cut_idle, cut_equivalent, failed };

constexpr u32 none = ~0u;

std::string hex(const value& v, u32 bytes)
{
    std::ostringstream out;
    out << std::hex;
    if (bytes == 16) {
        u32 w[4];
        std::memcpy(w, v.data(), 16);
        out << "{" << w[0] << " " << w[1] << " " << w[2] << " " << w[3] << "}";
    } else {
        out << "0x" << v[0];
    }
    return out.str();
}

const char* name_of(order o)
{
    switch (o) {
    case order::acquire: return "acquire";
    case order::release: return "release";
    case order::acq_rel: return "acq_rel";
    default: return "relaxed";
    }
}
const char* name_of(scope s)
{
    return s == scope::block ? "block" : s == scope::device ? "device" : "system";
}
const char* name_of(edge e) { return e == edge::count ? "start" : device::edge_name(e); }

} // namespace

class explorer_engine {
public:
    // ---- one execution ----
    verdict run(const std::function<void(execution&)>& body);

    // ---- driving the choices ----
    options how;
    enum class driver : u8 { depth_first, random, recorded } drive = driver::depth_first;
    std::vector<node> path;
    bool advance(); ///< to the next path; false when all were taken
    std::mt19937_64 rng;
    std::vector<u32> script; ///< driver::recorded
    bool tracing = false;

    // ---- results of the last execution ----
    std::vector<u32> schedule; ///< pairs lane, message (none for stores), or none, role for an early wake
    std::string trace;
    std::string what;
    u64 steps = 0;
    u64 forced_newest = 0;
    u64 weakened = 0;
    std::array<edge_uses, edges + 1> uses{};
    bool bounded = false; ///< a bound left something out

    // ---- called by the platform, on a lane or on the explorer's own stack ----
    u64 epoch = 0;
    memory mem;
    value atomic(engine::operation op, u32 location, u32 bytes, const value& operand, edge e, order o, scope s);
    void fence(edge e, order o, scope s);
    void cell_access(u32 cell, engine::cell_use use);
    void pause();
    u64 clock();
    void barrier(const char* name, bool orders, u32 first);
    u32 parity();
    lane* current = nullptr;
    role& own_role() { return *roles_[current->role]; }
    void label(bool is_word, u32 number, const char* name)
    {
        auto& names = is_word ? word_names_ : cell_names_;
        if (names.size() <= number) names.resize(number + 1, nullptr);
        names[number] = name; // a literal
    }

    void reuse_needs_order(u32 location)
    {
        if (reused_.size() <= location) reused_.resize(location + 1);
        reused_[location].is = true;
    }

    void spawn(std::string name, placement where, u32 lanes, std::function<void()> body);
    std::vector<std::function<void()>> endings;

private:
    static void lane_entry(void* self);
    void resume(lane& l);
    void leave_if_abandoned();
    void perform(lane& l);
    value perform_load(lane& l);
    void settle_pauses();
    bool newer_for(const role& r, u32 location) const;
    u32 last_read(const role& r, u32 location) const
    {
        return location < r.last_read.size() ? r.last_read[location] : initial(location);
    }
    u32 initial(u32 location) const { return location < initial_.size() ? initial_[location] : 0; }
    bool waits(const role& r) const; ///< no lane can run, at least one is in pause()
    void wake(role& r);
    bool all_done() const;
    bool unstick();
    u32 choose_lane();
    u32 choose_message(lane& l, u32 low, bool narrowed);
    bool stale_allowed() const { return how.stale_max < 0 || stale_used_ < static_cast<u32>(how.stale_max); }
    void abandon();
    void fail(const std::string& text)
    {
        if (what.empty()) what = text;
        end_now_ = true;
    }
    std::string who(u32 thread) const
    {
        if (thread == 0) return "set-up";
        const lane& l = *lanes_[thread - 1];
        const role& r = *roles_[l.role];
        return r.lanes.size() == 1 ? r.name : r.name + "[" + std::to_string(l.rank) + "]";
    }
    std::string word_name(u32 n) const
    {
        return n < word_names_.size() && word_names_[n] ? word_names_[n] : "word " + std::to_string(n);
    }
    std::string cell_name(u32 n) const
    {
        return n < cell_names_.size() && cell_names_[n] ? cell_names_[n] : "cell " + std::to_string(n);
    }
    void note(const std::string& line)
    {
        trace += line;
        trace += '\n';
    }
    std::string waiting_report() const;
    void check_scopes(u32 thread, u32 location, u32 index, scope s, edge e);
    bool reused(u32 location) const { return location < reused_.size() && reused_[location].is; }
    void note_reuse_read(const lane& l, u32 message);
    void check_reuse(const lane& l);
    std::vector<reused_place> reused_; ///< by location

    std::vector<std::unique_ptr<role>> roles_;
    std::vector<std::unique_ptr<lane>> lanes_; ///< reused; lanes_used_ of this execution
    u32 lanes_used_ = 0;
    std::vector<u32> initial_; ///< newest message of each location when the threads start
    std::vector<const char*> word_names_, cell_names_;

    bool end_now_ = false;
    bool cut_idle_ = false;
    bool cut_equivalent_ = false;
    bool abandoning_ = false;
    u64 clock_ = 0;
    u32 clock_jumps_ = 0;

    bool reduces() const { return drive == driver::depth_first && how.preemptions_max < 0 && how.stale_max < 0; }
    void find_races(const lane& l);
    void add_event(const lane& l, u32 message);
    void join_clocks(const u32* lanes, u32 count);
    std::vector<event> events_;
    std::vector<u32> rest_;
    std::vector<std::vector<u32>> events_at_; ///< by location
    std::vector<std::vector<u32>> writers_;   ///< by location and message: event, or none
    std::array<std::array<u32, threads_max>, threads_max> clocks_{};

    std::size_t depth_ = 0;
    std::size_t lane_node_ = none;
    std::vector<sleeper> asleep_;
    u32 last_lane_ = none;
    u32 preemptions_ = 0;
    u32 stale_used_ = 0;
    u32 covered_ = 0;
    double switch_chance_ = 0, stale_chance_ = 0;
    std::size_t script_at_ = 0;
};

namespace {
thread_local explorer_engine* active = nullptr;

explorer_engine& the_engine()
{
    if (!active) {
        std::fprintf(stderr, "model: a word or cell was used outside of model::explore\n");
        std::abort();
    }
    return *active;
}
} // namespace

// ---------------------------------------------------------------------------------------------------------------------
// lanes

void explorer_engine::spawn(std::string name, placement where, u32 lanes, std::function<void()> body)
{
    auto r = std::make_unique<role>();
    r->name = std::move(name);
    r->where = where;
    r->body = std::move(body);
    for (u32 i = 0; i < lanes; ++i) {
        if (lanes_used_ + 1 >= threads_max) {
            std::fprintf(stderr, "model: more than %u lanes\n", threads_max - 1);
            std::abort();
        }
        if (lanes_used_ == lanes_.size()) lanes_.push_back(std::make_unique<lane>());
        lane& l = *lanes_[lanes_used_];
        l.thread = ++lanes_used_;
        l.role = static_cast<u32>(roles_.size());
        l.rank = i;
        l.state = lane_state::pending;
        l.last = edge::count;
        l.collectives = 0;
        l.clock_reads = 0;
        r->lanes.push_back(l.thread - 1);
        mem.place(l.thread, where);
    }
    roles_.push_back(std::move(r));
}

void explorer_engine::lane_entry(void* self)
{
    explorer_engine& e = *static_cast<explorer_engine*>(self);
    lane& l = *e.current;
    try {
        e.own_role().body();
    } catch (const abandoned&) {
    } catch (const failed_check& f) {
        e.fail(f.what + "   [" + e.who(l.thread) + " after " + name_of(l.last) + "]");
    } catch (const std::exception& x) {
        e.fail(std::string("exception: ") + x.what() + "   [" + e.who(l.thread) + "]");
    }
    l.state = lane_state::done;
}

void explorer_engine::resume(lane& l)
{
    current = &l;
    l.stack.resume();
    current = nullptr;
}

void explorer_engine::leave_if_abandoned()
{
    if (abandoning_ && std::uncaught_exceptions() == 0) throw abandoned{};
}

// ---------------------------------------------------------------------------------------------------------------------
// operations, called on a lane

value explorer_engine::atomic(engine::operation op, u32 location, u32 bytes, const value& operand, edge e, order o, scope s)
{
    const auto at = static_cast<std::size_t>(e);
    const mutation m = mutations[at];
    if (current) { // set-up and end are ordered with all roles whatever they do
        uses[at].note(op == engine::operation::load    ? access_kind::load
                      : op == engine::operation::store ? access_kind::store
                                                       : access_kind::add,
                      o, s);
        weakened += weaken(m, o, s);
        if (m == mutation::lose && op == engine::operation::store && !abandoning_) {
            ++weakened;
            return {};
        }
    }
    const u64 mask = bytes == 4 ? 0xffffffffu : ~u64{0};
    if (!current || abandoning_) { // set-up, ends, or destructors of an abandoned lane: nothing runs beside them
        leave_if_abandoned();
        const u32 thread = current ? current->thread : 0;
        switch (op) {
        case engine::operation::load: return mem.read(thread, location, mem.newest(location), o, s);
        case engine::operation::store: mem.write(thread, location, operand, o, s, e); return {};
        default: return mem.add(thread, location, operand[0], mask, o, s, e);
        }
    }
    lane& l = *current;
    l.op = op;
    l.location = location;
    l.bytes = bytes;
    l.operand = operand;
    l.tag = e;
    l.ord = o;
    l.reach = s;
    l.state = lane_state::pending;
    l.stack.leave();
    leave_if_abandoned();
    return l.result;
}

void explorer_engine::fence(edge e, order o, scope s)
{
    const auto at = static_cast<std::size_t>(e);
    if (current) {
        uses[at].note(access_kind::fence, o, s);
        weakened += weaken(mutations[at], o, s);
        if (o == order::relaxed) return; // dropped
    }
    mem.fence(current ? current->thread : 0, o, s); // touches this thread only: no choice
    if (current) {
        current->last = e;
        if (tracing) note("      " + who(current->thread) + "  fence " + name_of(o) + "." + name_of(s) + "  " + name_of(e));
    }
}

void explorer_engine::cell_access(u32 cell, engine::cell_use use)
{
    using engine::cell_use;
    if (abandoning_) return;
    const u32 thread = current ? current->thread : 0;
    const edge last = current ? current->last : edge::count;
    if (current && use != cell_use::read) own_role().wrote = true;
    const char* const verb = use == cell_use::read ? " reads" : use == cell_use::write ? " writes" : " sets bits of";
    if (tracing && current) note("      " + who(thread) + verb + " " + cell_name(cell));
    const race r = use == cell_use::read    ? mem.cell_read(thread, cell, last)
                   : use == cell_use::write ? mem.cell_write(thread, cell, last)
                                            : mem.cell_update(thread, cell, last);
    if (r.found)
        throw failed_check{"race on " + cell_name(cell) + ": " + who(thread) + verb + " it after " + name_of(last)
                           + ", unordered with " + who(r.other) + " who " + (r.other_writes ? "wrote" : "read") + " it after "
                           + name_of(r.other_edge)};
}

void explorer_engine::pause()
{
    if (!current) {
        std::fprintf(stderr, "model: pause in set-up or end\n");
        std::abort();
    }
    leave_if_abandoned();
    current->state = lane_state::paused;
    current->stack.leave();
    leave_if_abandoned();
}

u64 explorer_engine::clock()
{
    if (!current) return clock_;
    own_role().timed = true;
    return clock_ + ++current->clock_reads; // not a function of what others do: keeps equivalent schedules equal
}

void explorer_engine::barrier(const char* name, bool orders, u32 first)
{
    if (!current || own_role().lanes.size() == first + 1) return;
    leave_if_abandoned();
    lane& l = *current;
    role& r = own_role();
    l.barrier = name;
    l.state = lane_state::barrier;
    const std::vector<u32> lanes(r.lanes.begin() + first, r.lanes.end());
    for (u32 i : lanes)
        if (lanes_[i]->state != lane_state::barrier) {
            l.stack.leave();
            leave_if_abandoned();
            return;
        }
    // The last one to arrive opens it. The others are runnable without an operation of their own: pending with no location.
    u32 threads[threads_max];
    u32 count = 0;
    for (u32 i : lanes) {
        if (std::strcmp(lanes_[i]->barrier, name) != 0)
            throw failed_check{"lanes of " + r.name + " diverge: " + name + " and " + lanes_[i]->barrier};
        threads[count++] = lanes_[i]->thread;
    }
    if (orders) mem.barrier(threads, count);
    join_clocks(lanes.data(), count);
    for (u32 i : lanes) {
        lanes_[i]->state = lane_state::pending;
        lanes_[i]->location = none;
    }
    l.stack.leave();
    leave_if_abandoned();
}

u32 explorer_engine::parity() { return static_cast<u32>(current->collectives++ & 1); }

// ---------------------------------------------------------------------------------------------------------------------
// waiting loops

bool explorer_engine::newer_for(const role& r, u32 location) const
{
    const u32 from = last_read(r, location);
    for (u32 i = mem.newest(location); i > from; --i) {
        const u32 writer = mem.at(location, i).writer;
        if (writer == 0 || roles_[lanes_[writer - 1]->role].get() != &r) return true;
    }
    return false;
}

bool explorer_engine::waits(const role& r) const
{
    bool paused = false;
    for (u32 i : r.lanes) {
        if (lanes_[i]->state == lane_state::pending) return false;
        paused |= lanes_[i]->state == lane_state::paused;
    }
    return paused;
}

void explorer_engine::wake(role& r)
{
    for (watched& w : r.watch) w.this_turn = false;
    r.spinning = true;
    r.news = r.wrote = r.timed = false;
    for (u32 i : r.lanes)
        if (lanes_[i]->state == lane_state::paused) resume(*lanes_[i]);
}

/// Roles whose lanes all wait, at least one in pause(): wake those that have something new to look at.
void explorer_engine::settle_pauses()
{
    for (bool again = true; again && !end_now_;) {
        again = false;
        // Lanes that a barrier let go run on to their next operation.
        for (u32 i = 0; i < lanes_used_ && !end_now_; ++i) {
            lane& l = *lanes_[i];
            if (l.state == lane_state::pending && l.location == none) {
                resume(l);
                again = true;
            }
        }
        if (end_now_) return;
        for (auto& p : roles_) {
            role& r = *p;
            if (!waits(r)) continue;
            if (r.news) { // a new turn of a new wait: what was read before it no longer matters
                std::erase_if(r.watch, [](const watched& w) { return !w.this_turn; });
                r.fruitless = 0;
                r.idle_rounds = 0;
            }
            r.cut_on_wake = !r.news && !r.wrote && !r.timed && r.idle_rounds == 0;
            // A fruitless turn leaves the role as it was, so the next one reads the same words: others do not wake it. (Left in,
            // a word of a busy turn before that is never read again would stay newer for ever, and cut every execution.)
            const bool cuts = r.cut_on_wake && how.cut_idle_spins && reduces();
            if (cuts) std::erase_if(r.watch, [](const watched& w) { return !w.this_turn; });
            bool newer = false;
            for (const watched& w : r.watch) newer |= newer_for(r, w.location);
            if (!newer) continue;
            if (cuts) {
                cut_idle_ = end_now_ = true;
                return;
            }
            if (r.spinning && !r.news && ++r.fruitless > 16)
                std::erase_if(r.watch, [](const watched& w) { return !w.this_turn; });
            wake(r);
            again = true;
            if (end_now_) return;
        }
    }
}

/// Nobody can run. Time passes for those who look at the clock; then everybody may look again a few times.
bool explorer_engine::unstick()
{
    // What comes now comes after everything so far, in every order of it.
    u32 all[threads_max];
    for (u32 i = 0; i < lanes_used_; ++i) all[i] = i;
    join_clocks(all, lanes_used_);
    bool timed = false;
    for (auto& r : roles_) timed |= r->timed && waits(*r);
    if (timed && clock_jumps_ < how.clock_jumps_max) {
        clock_ += u64{1'000'000} << std::min(clock_jumps_++, 30u);
        for (auto& r : roles_)
            if (r->timed && waits(*r) && !end_now_) wake(*r);
        return true;
    }
    bool any = false;
    for (auto& r : roles_) {
        if (!waits(*r) || r->idle_rounds >= how.idle_rounds || end_now_) continue;
        ++r->idle_rounds;
        any = true;
        wake(*r);
    }
    return any;
}

std::string explorer_engine::waiting_report() const
{
    std::string out;
    for (u32 i = 0; i < lanes_used_; ++i) {
        const lane& l = *lanes_[i];
        if (l.state == lane_state::done) continue;
        out += out.empty() ? "" : "; ";
        out += who(l.thread);
        if (l.state == lane_state::barrier) {
            out += std::string(" in ") + l.barrier;
            continue;
        }
        out += std::string(" after ") + name_of(l.last) + ", watching";
        for (const watched& w : roles_[l.role]->watch) {
            const value v = mem.at(w.location, mem.newest(w.location)).bits;
            out += " " + word_name(w.location) + "=" + hex(v, v[1] ? 16 : 8);
        }
    }
    return out;
}

// ---------------------------------------------------------------------------------------------------------------------
// the scheduler

void explorer_engine::check_scopes(u32 thread, u32 location, u32 index, scope s, edge e)
{
    if (mem.scopes_race(thread, location, index, s))
        fail("scope too narrow: " + who(thread) + " at " + name_of(e) + " (" + name_of(s) + ") meets the store of "
             + who(mem.at(location, index).writer) + " at " + name_of(mem.at(location, index).tag) + " ("
             + name_of(mem.at(location, index).reach) + ") on " + word_name(location));
}

void explorer_engine::note_reuse_read(const lane& l, u32 message)
{
    if (!reused(l.location) || message <= initial(l.location)) return;
    auto& readers = reused_[l.location].readers;
    auto at = std::find_if(readers.begin(), readers.end(), [&](const auto& r) { return r.role == l.role; });
    if (at != readers.end() && message <= at->message) return;
    if (message != mem.newest(l.location))
        fail("reuse without order: " + who(l.thread) + " at " + name_of(l.tag) + " reads " + word_name(l.location)
             + " for the first time after " + who(mem.at(l.location, message + 1).writer) + " at "
             + name_of(mem.at(l.location, message + 1).tag) + " has written it again");
    const reused_place::reader now{l.role, l.thread, mem.clock(l.thread), message, l.tag};
    if (at == readers.end()) readers.push_back(now);
    else *at = now;
}

void explorer_engine::check_reuse(const lane& l)
{
    if (!reused(l.location)) return;
    for (const auto& r : reused_[l.location].readers)
        if (r.role != l.role && r.message == mem.newest(l.location) && !mem.ordered(l.thread, r.thread, r.clock))
            fail("reuse without order: " + who(l.thread) + " at " + name_of(l.tag) + " writes " + word_name(l.location)
                 + " again, and nothing orders that after " + who(r.thread) + " has read it at " + name_of(r.tag));
}

void explorer_engine::perform(lane& l)
{
    ++steps;
    const u64 mask = l.bytes == 4 ? 0xffffffffu : ~u64{0};
    schedule.push_back(l.thread);
    l.last = l.tag;
    if (reduces()) find_races(l);
    if (l.op == engine::operation::load) {
        l.result = perform_load(l);
    } else {
        const u32 last = mem.newest(l.location);
        check_scopes(l.thread, l.location, last, l.reach, l.tag);
        check_reuse(l);
        roles_[l.role]->wrote = true;
        schedule.push_back(none);
        if (l.op == engine::operation::store) {
            mem.write(l.thread, l.location, l.operand, l.ord, l.reach, l.tag);
        } else {
            l.result = mem.add(l.thread, l.location, l.operand[0], mask, l.ord, l.reach, l.tag);
            roles_[l.role]->news = true;
        }
        // Who sleeps on the same word, other than to load from it, wakes up (loads wake up by the count of messages).
        std::erase_if(asleep_, [&](const sleeper& z) {
            const lane& other = *lanes_[z.thread - 1];
            return other.location == l.location && other.op != engine::operation::load;
        });
        if (tracing)
            note(std::to_string(steps) + "  " + who(l.thread) + (l.op == engine::operation::store ? "  store " : "  add ")
                 + name_of(l.ord) + "." + name_of(l.reach) + "  " + name_of(l.tag) + "  " + word_name(l.location) + " = "
                 + hex(mem.at(l.location, last + 1).bits, l.bytes) + " (message " + std::to_string(last + 1) + ")");
    }
    if (reduces()) add_event(l, schedule.back());
    l.location = none - 1; // no operation
}

/// A store that comes after a load or store of the same word and does not depend on it: the other order must be explored too.
/// (A load after a store needs no other order: it may read the older messages where it is.) Source sets: it is enough that
/// at the earlier operation e some thread is explored that can begin `rest`, what follows e and does not depend on it.
void explorer_engine::find_races(const lane& l)
{
    if (l.op == engine::operation::load || l.location >= events_at_.size()) return;
    const auto& clock = clocks_[l.thread];
    for (const u32 i : events_at_[l.location]) {
        const event& e = events_[i];
        if (e.thread == l.thread || clock[e.thread] >= e.number) continue;
        node& n = path[e.node];
        u32 met = 0, initials = 0; // bits by lane
        rest_.clear();
        for (u32 j = i + 1; j <= events_.size(); ++j) {
            const bool last = j == events_.size(); // the store itself
            const event* f = last ? nullptr : &events_[j];
            if (f && f->clock[e.thread] >= e.number) continue;
            const u32 bit = 1u << ((f ? f->thread : l.thread) - 1);
            if (!(met & bit)) {
                bool first = true;
                for (const u32 k : rest_) {
                    const event& g = events_[k];
                    first &= !((f ? f->clock : clock)[g.thread] >= g.number)
                             && !(last && !g.load && g.location == l.location);
                }
                if (first) initials |= bit;
            }
            met |= bit;
            if (f) rest_.push_back(j);
        }
        bool covered = false;
        candidate* add = nullptr;
        u32 candidates = 0;
        for (candidate& c : n.candidates) {
            candidates |= 1u << c.lane;
            if (!(initials >> c.lane & 1)) continue;
            covered |= c.wanted;
            if (!add || c.lane == l.thread - 1) add = &c;
        }
        covered |= (initials & n.runnable & ~candidates) != 0; // it sleeps: explored elsewhere
        if (covered) continue;
        if (add) add->wanted = true;
        else
            for (candidate& c : n.candidates) c.wanted = true;
    }
}

void explorer_engine::add_event(const lane& l, u32 message)
{
    if (events_at_.size() <= l.location) {
        events_at_.resize(l.location + 1);
        writers_.resize(l.location + 1);
    }
    auto& writers = writers_[l.location];
    auto& clock = clocks_[l.thread];
    const bool load = l.op == engine::operation::load;
    const u32 from = load ? message : mem.newest(l.location) - 1;
    if (from < writers.size() && writers[from] != none)
        for (u32 k = 0; k < threads_max; ++k) clock[k] = std::max(clock[k], events_[writers[from]].clock[k]);
    const u32 index = static_cast<u32>(events_.size());
    events_.push_back({l.thread, ++clock[l.thread], lane_node_, l.location, load, clock});
    events_at_[l.location].push_back(index);
    if (!load) {
        writers.resize(mem.newest(l.location) + 1, none);
        writers.back() = index;
    }
}

void explorer_engine::join_clocks(const u32* lanes, u32 count)
{
    if (!reduces()) return;
    std::array<u32, threads_max> all{};
    for (u32 i = 0; i < count; ++i)
        for (u32 k = 0; k < threads_max; ++k) all[k] = std::max(all[k], clocks_[lanes_[lanes[i]]->thread][k]);
    for (u32 i = 0; i < count; ++i) clocks_[lanes_[lanes[i]]->thread] = all;
}

value explorer_engine::perform_load(lane& l)
{
    role& r = *roles_[l.role];
    const u32 newest = mem.newest(l.location);
    u32 low = mem.oldest(l.thread, l.location);
    bool narrowed = false;
    if (r.spinning && !r.news && newer_for(r, l.location)) {
        // The turn after a pause must see something new in the end: here, if no other word it watches can still bring it.
        bool elsewhere = false;
        for (const watched& w : r.watch)
            elsewhere |= !w.this_turn && w.location != l.location && newer_for(r, w.location);
        const u32 before = low;
        if (r.fruitless > 0) {
            low = newest;
            forced_newest += low != before;
        } else if (!elsewhere) {
            low = std::max(low, last_read(r, l.location) + 1);
        }
        narrowed = low != before;
    }
    if (!stale_allowed() && low != newest) {
        low = newest;
        narrowed = true;
        bounded = true;
    }
    const u32 index = choose_message(l, low, narrowed);
    schedule.push_back(index);
    stale_used_ += index != newest;
    check_scopes(l.thread, l.location, index, l.reach, l.tag);
    note_reuse_read(l, index);

    const value seen = mem.read(l.thread, l.location, index, l.ord, l.reach);
    const u32 before = last_read(r, l.location);
    r.news |= seen != mem.at(l.location, before).bits;
    if (r.last_read.size() <= l.location) {
        const std::size_t from = r.last_read.size();
        r.last_read.resize(l.location + 1);
        for (std::size_t i = from; i < r.last_read.size(); ++i) r.last_read[i] = initial(static_cast<u32>(i));
    }
    r.last_read[l.location] = std::max(before, index);
    auto at = std::find_if(r.watch.begin(), r.watch.end(), [&](const watched& w) { return w.location == l.location; });
    if (at == r.watch.end()) r.watch.push_back({l.location, true});
    else at->this_turn = true;
    if (tracing)
        note(std::to_string(steps) + "  " + who(l.thread) + "  load " + name_of(l.ord) + "." + name_of(l.reach) + "  "
             + name_of(l.tag) + "  " + word_name(l.location) + " = " + hex(seen, l.bytes) + " (message "
             + std::to_string(index) + (index == newest ? ")" : ", stale: newest is " + std::to_string(newest) + ")"));
    return seen;
}

u32 explorer_engine::choose_lane()
{
    covered_ = 0;
    lane_node_ = none;
    u32 runnable[threads_max];
    u32 count = 0;
    for (u32 i = 0; i < lanes_used_; ++i)
        if (lanes_[i]->state == lane_state::pending) runnable[count++] = i;

    if (drive == driver::recorded) {
        if (script_at_ >= script.size()) {
            end_now_ = true;
            return none;
        }
        const u32 thread = script[script_at_++];
        for (u32 i = 0; i < count; ++i)
            if (lanes_[runnable[i]]->thread == thread) return runnable[i];
        fail("replay: the schedule does not fit this program");
        return none;
    }
    if (drive == driver::random) {
        if (last_lane_ != none && lanes_[last_lane_]->state == lane_state::pending
            && std::uniform_real_distribution<>(0, 1)(rng) >= switch_chance_)
            return last_lane_;
        return runnable[rng() % count];
    }

    const bool last_runs = last_lane_ != none && lanes_[last_lane_]->state == lane_state::pending;
    const bool use_sleep = reduces();
    if (depth_ == path.size()) {
        node n;
        n.asleep = asleep_;
        const bool bound = how.preemptions_max >= 0 && last_runs && preemptions_ >= static_cast<u32>(how.preemptions_max);
        // The lane that ran last comes first: the first execution is the calm one, and preemptions come late.
        auto add = [&](u32 i) {
            const lane& l = *lanes_[i];
            const u32 messages = mem.newest(l.location) + 1;
            u32 covered = 0;
            if (use_sleep)
                for (const sleeper& z : asleep_)
                    if (z.thread == l.thread) {
                        if (l.op != engine::operation::load || z.covered >= messages) return;
                        covered = z.covered;
                    }
            n.candidates.push_back({i, covered, messages, !use_sleep || n.candidates.empty()});
        };
        for (u32 i = 0; i < count; ++i) n.runnable |= 1u << runnable[i];
        if (last_runs) add(last_lane_);
        for (u32 i = 0; i < count; ++i)
            if (runnable[i] != last_lane_) {
                if (bound) bounded = true;
                else add(runnable[i]);
            }
        if (n.candidates.empty()) {
            cut_equivalent_ = end_now_ = true;
            return none;
        }
        path.push_back(std::move(n));
    }
    node& n = path[depth_];
    lane_node_ = depth_++;
    const candidate& c = n.candidates[n.at];
    covered_ = c.covered;
    if (last_runs && c.lane != last_lane_) ++preemptions_;
    if (use_sleep) {
        const u32 thread = lanes_[c.lane]->thread;
        asleep_.clear();
        for (const sleeper& z : n.asleep)
            if (z.thread != thread) asleep_.push_back(z);
        for (const candidate& done : n.candidates) {
            if (!done.done || done.narrowed) continue;
            const u32 t = lanes_[done.lane]->thread;
            std::erase_if(asleep_, [&](const sleeper& z) { return z.thread == t; });
            asleep_.push_back({t, done.count});
        }
    }
    return c.lane;
}

u32 explorer_engine::choose_message(lane& l, u32 low, bool narrowed)
{
    const u32 newest = mem.newest(l.location);
    if (drive == driver::recorded) {
        const u32 index = script_at_ < script.size() ? script[script_at_++] : newest;
        if (index < mem.oldest(l.thread, l.location) || index > newest) {
            fail("replay: the schedule does not fit this program");
            return newest;
        }
        return index;
    }
    if (drive == driver::random) {
        if (low == newest || std::uniform_real_distribution<>(0, 1)(rng) >= stale_chance_) return newest;
        return low + static_cast<u32>(rng() % (newest - low + 1));
    }
    if (narrowed && lane_node_ != none) path[lane_node_].candidates[path[lane_node_].at].narrowed = true;
    low = std::max(low, covered_);
    if (low == newest) return newest;
    if (depth_ == path.size()) {
        node n;
        n.is_read = true;
        n.at = newest;
        n.low = low;
        path.push_back(std::move(n));
    }
    return path[depth_++].at;
}

bool explorer_engine::advance()
{
    while (!path.empty()) {
        node& n = path.back();
        if (n.is_read && n.at > n.low) {
            --n.at;
            return true;
        }
        if (!n.is_read) {
            n.candidates[n.at].done = true;
            for (u32 i = 0; i < n.candidates.size(); ++i)
                if (n.candidates[i].wanted && !n.candidates[i].done) {
                    n.at = i;
                    return true;
                }
        }
        path.pop_back();
    }
    return false;
}

bool explorer_engine::all_done() const
{
    for (u32 i = 0; i < lanes_used_; ++i)
        if (lanes_[i]->state != lane_state::done) return false;
    return true;
}

void explorer_engine::abandon()
{
    abandoning_ = true;
    for (u32 i = 0; i < lanes_used_; ++i)
        if (lanes_[i]->state != lane_state::done) resume(*lanes_[i]);
    abandoning_ = false;
}

verdict explorer_engine::run(const std::function<void(execution&)>& body)
{
    explorer_engine* outer = active;
    active = this;
    static u64 epochs = 0;
    epoch = ++epochs;
    mem.clear();
    roles_.clear();
    endings.clear();
    initial_.clear();
    word_names_.clear();
    cell_names_.clear();
    reused_.clear();
    lanes_used_ = 0;
    schedule.clear();
    trace.clear();
    what.clear();
    steps = clock_ = 0;
    clock_jumps_ = 0;
    end_now_ = cut_idle_ = cut_equivalent_ = false;
    events_.clear();
    for (auto& v : events_at_) v.clear();
    for (auto& v : writers_) v.clear();
    for (auto& c : clocks_) c.fill(0);
    depth_ = 0;
    asleep_.clear();
    last_lane_ = none;
    preemptions_ = stale_used_ = 0;
    script_at_ = 0;
    if (drive == driver::random) { // each walk has its own temper
        static constexpr double chances[] = {0.03, 0.1, 0.3, 0.6, 1.0};
        switch_chance_ = chances[rng() % 5];
        stale_chance_ = chances[rng() % 4];
    }

    execution ex;
    try {
        body(ex);
    } catch (const failed_check& f) {
        fail(f.what + "   [set-up]");
    }
    for (u32 i = 0; i < mem.locations(); ++i) initial_.push_back(mem.newest(i));
    for (u32 i = 0; i < lanes_used_; ++i) mem.start_thread(lanes_[i]->thread);
    for (u32 i = 0; i < lanes_used_; ++i) {
        lanes_[i]->stack.start(&lane_entry, this);
        lanes_[i]->location = none - 1;
    }
    for (u32 i = 0; i < lanes_used_ && !end_now_; ++i)
        if (lanes_[i]->state == lane_state::pending) resume(*lanes_[i]);
    if (end_now_) // lanes that never started have nothing to unwind
        for (u32 i = 0; i < lanes_used_; ++i)
            if (lanes_[i]->state == lane_state::pending && lanes_[i]->location == none - 1) lanes_[i]->state = lane_state::done;

    while (!end_now_) {
        settle_pauses();
        if (end_now_) break;
        bool runs = false;
        for (u32 i = 0; i < lanes_used_; ++i) runs |= lanes_[i]->state == lane_state::pending;
        if (!runs) {
            if (all_done()) break;
            if (unstick()) continue;
            if (!end_now_) fail("deadlock: " + waiting_report());
            break;
        }
        if (steps >= how.steps_max) {
            fail("livelock: " + std::to_string(steps) + " steps; " + waiting_report());
            break;
        }
        // A random walk also lets a waiting loop turn without cause now and then: loops may act on the count of turns.
        if (drive == driver::random && rng() % 32 == 0) {
            role& r = *roles_[rng() % roles_.size()];
            if (waits(r)) {
                schedule.push_back(none);
                schedule.push_back(lanes_[r.lanes[0]]->role);
                wake(r);
                continue;
            }
        }
        if (drive == driver::recorded && script_at_ + 1 < script.size() && script[script_at_] == none) {
            script_at_ += 2;
            if (script[script_at_ - 1] < roles_.size()) wake(*roles_[script[script_at_ - 1]]);
            continue;
        }
        const u32 i = choose_lane();
        if (end_now_ || i == none) break;
        lane& l = *lanes_[i];
        perform(l);
        if (drive == driver::recorded && l.op != engine::operation::load) ++script_at_;
        last_lane_ = i;
        if (!end_now_) resume(l);
    }
    const bool complete = !end_now_;
    if (!complete) abandon();
    if (complete) {
        for (u32 i = 0; i < lanes_used_; ++i) mem.join(0, lanes_[i]->thread);
        try {
            for (auto& f : endings) f();
        } catch (const failed_check& f) {
            fail(f.what + "   [end]");
        }
    }
    for (auto& r : roles_) r->body = nullptr;
    endings.clear();
    active = outer;
    if (!what.empty()) return verdict::failed;
    if (cut_idle_) return verdict::cut_idle;
    if (cut_equivalent_) return verdict::cut_equivalent;
    return verdict::complete;
}

// ---------------------------------------------------------------------------------------------------------------------
// what a test calls

namespace {

std::string write_schedule(const std::vector<u32>& s)
{
    std::ostringstream out;
    for (std::size_t i = 0; i < s.size(); ++i) {
        if (i) out << ' ';
        if (s[i] == none) out << '-';
        else out << s[i];
    }
    return out.str();
}

std::vector<u32> read_schedule(const std::string& text)
{
    std::vector<u32> out;
    std::istringstream in(text);
    for (std::string token; in >> token;) out.push_back(token == "-" ? none : static_cast<u32>(std::stoul(token)));
    return out;
}

explorer_engine& shared_engine()
{
    static thread_local explorer_engine e; // keeps its stacks from one exploration to the next
    return e;
}

} // namespace

void execution::spawn(std::string name, placement where, std::function<void()> body)
{
    the_engine().spawn(std::move(name), where, 1, std::move(body));
}
void execution::spawn_team(std::string name, placement where, u32 lanes, std::function<void()> body)
{
    the_engine().spawn(std::move(name), where, lanes, std::move(body));
}
void execution::at_end(std::function<void()> body) { the_engine().endings.push_back(std::move(body)); }

void fail(const std::string& text) { throw failed_check{text}; }
void check(bool condition, const char* text)
{
    if (!condition) fail(text);
}

replayed replay(const std::string& schedule, const std::function<void(execution&)>& body)
{
    explorer_engine& e = shared_engine();
    e.drive = explorer_engine::driver::recorded;
    e.script = read_schedule(schedule);
    e.tracing = true;
    const verdict v = e.run(body);
    e.tracing = false;
    replayed out{e.trace, std::nullopt};
    if (v == verdict::failed) out.what = e.what;
    return out;
}

report explore(const options& how, const std::function<void(execution&)>& body)
{
    return stand_in ? stand_in(how, body) : search_now(how, body);
}

report search_now(const options& how, const std::function<void(execution&)>& body)
{
    explorer_engine& e = shared_engine();
    e.how = how;
    e.path.clear();
    e.bounded = false;
    e.forced_newest = 0;
    e.weakened = 0;
    e.uses = {};
    e.tracing = false;
    const bool depth_first = how.search == search::exhaustive;
    report out;
    out.name = how.name;
    // Processor time: a busy machine makes a search slower, not smaller.
    const auto processor_seconds = [] {
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    };
    const double start = processor_seconds();
    auto elapsed = [&] { return processor_seconds() - start; };
    std::string stopped;
    for (;;) {
        e.drive = depth_first ? explorer_engine::driver::depth_first : explorer_engine::driver::random;
        e.rng.seed(how.seed * 0x9e3779b97f4a7c15u + out.executions);
        const verdict v = e.run(body);
        out.steps += e.steps;
        out.steps_longest = std::max(out.steps_longest, e.steps);
        out.cut_idle += v == verdict::cut_idle;
        out.cut_equivalent += v == verdict::cut_equivalent;
        out.executions += v == verdict::complete || v == verdict::failed;
        if (v == verdict::failed) {
            failure f{e.what, write_schedule(e.schedule), {}};
            const replayed again = replay(f.schedule, body);
            f.trace = again.trace;
            if (!again.what || *again.what != f.what)
                f.trace += "(the replay ended otherwise: " + again.what.value_or("no failure")
                         + "; is the test deterministic, or did it fail by waiting?)\n";
            out.failure = std::move(f);
            break;
        }
        if (depth_first && !e.advance()) {
            out.exhausted = true;
            if (out.executions == 0) out.failure = failure{"every execution was cut: nothing was explored", "", ""};
            break;
        }
        if (out.executions >= how.executions_max) {
            stopped = "executions <= " + std::to_string(how.executions_max);
            break;
        }
        if (elapsed() > how.seconds_max) {
            stopped = "time <= " + std::to_string(static_cast<int>(how.seconds_max)) + " s";
            break;
        }
    }
    out.forced_newest = e.forced_newest;
    out.weakened = e.weakened;
    std::copy_n(e.uses.begin(), edges, out.uses.begin());
    out.seconds = elapsed();
    out.bound = depth_first ? "" : "random, seed " + std::to_string(how.seed);
    auto also = [&](const std::string& text) { out.bound += (out.bound.empty() ? "" : ", ") + text; };
    if (how.preemptions_max >= 0) also("preemptions <= " + std::to_string(how.preemptions_max));
    if (how.stale_max >= 0) also("stale loads <= " + std::to_string(how.stale_max));
    if (!stopped.empty()) also(stopped);
    if (out.bound.empty()) out.bound = "none";
    return out;
}

std::string report::line() const
{
    std::ostringstream out;
    out << "[model] " << name << ": " << executions << " executions, " << (exhausted ? "exhausted" : "not exhausted")
        << ", bound: " << bound << ", cut " << cut_idle << " idle + " << cut_equivalent << " equivalent, " << steps
        << " steps, longest " << steps_longest;
    if (forced_newest) out << ", forced fresh " << forced_newest;
    out.precision(2);
    out << std::fixed << ", " << seconds << " s" << (failure ? ", FAILED: " + failure->what : ", nothing FORBIDDEN found");
    return out.str();
}

std::string report::text() const
{
    std::string out = line();
    if (failure) out += "\n" + failure->trace + "replay: " + failure->schedule;
    return out;
}

namespace engine {

u64 epoch() { return the_engine().epoch; }
u32 register_word() { return the_engine().mem.add_location(); }
u32 register_cell() { return the_engine().mem.add_cell(); }
void label_word(u32 location, const char* name) { the_engine().label(true, location, name); }
void reuse_needs_order(u32 location) { the_engine().reuse_needs_order(location); }
void label_cell(u32 cell, const char* name) { the_engine().label(false, cell, name); }

value atomic(operation op, u32 location, u32 bytes, const value& operand, edge e, order o, scope s)
{
    return the_engine().atomic(op, location, bytes, operand, e, o, s);
}
void fence(edge e, order o, scope s) { the_engine().fence(e, o, s); }
void cell_access(u32 cell, cell_use use) { the_engine().cell_access(cell, use); }
void pause() { the_engine().pause(); }
u64 clock_ns() { return the_engine().clock(); }
u32 lane_rank() { return the_engine().current ? the_engine().current->rank : 0; }
u32 lane_count()
{
    return the_engine().current ? static_cast<u32>(the_engine().own_role().lanes.size()) : 1;
}
void barrier(const char* what, bool orders, u32 first) { the_engine().barrier(what, orders, first); }

const u64* gather(const char* what, u64 mine)
{
    explorer_engine& e = the_engine();
    u64* all = e.own_role().gathered[e.parity()];
    all[e.current->rank] = mine;
    e.barrier(what, true, 0);
    return all;
}

void broadcast(void* bytes, u32 count)
{
    explorer_engine& e = the_engine();
    if (!e.current || e.own_role().lanes.size() == 1) return;
    unsigned char* all = e.own_role().broadcasted[e.parity()];
    if (e.current->rank == 0) std::memcpy(all, bytes, count);
    e.barrier("broadcast", true, 0);
    std::memcpy(bytes, all, count);
}

} // namespace engine
} // namespace slipstream::model
