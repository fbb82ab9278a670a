// The control block: five roles that run side by side (ingest, admission, linker, scheduler, notifier) and how they stop together.
//
// STATES  running -> parking (request park: ingest, admission and linker stop, the scheduler mails nothing more and waits for
//                    the answers due; what lies in the queues between them stays there)
//                 -> draining (request drain: until rings, queues and window are empty, role after role; a residency limit
//                    turns it into parking)
//         -> finished: the scheduler dismissed the workers; the notifier publishes what is left in its queue, then all leave.
//         Ingest stops for a park when worker 0 has no blank (watch.hpp), and has taken nothing from a ring that ingest has not.
// EDGES   R9/A9 (request, the phases; block scope): a phase change after everything queued before it.
#pragma once
#include "device/admission.hpp"
#include "device/ingest.hpp"
#include "device/linker.hpp"
#include "device/notifier.hpp"
#include "device/scheduler.hpp"

namespace slipstream::device {

enum class round_result { idle, busy, finished };

/// Runs a role to its end. On the GPU each role has a warp; on the host one thread may take turns (host_backend.cpp).
template <class P, class Role, class Lanes>
SLIPSTREAM_BOTH void run_role(Role& role, Lanes& lanes)
{
    for (u32 attempt = 0;;) {
        const round_result r = role.round(lanes);
        if (r == round_result::finished) return;
        attempt = r == round_result::busy ? 0 : attempt + 1;
        if (attempt) P::pause(attempt);
    }
}

/// A request (Value: command), or how far another role has come (feed_phase, schedule_phase).
template <class P, class Value>
SLIPSTREAM_BOTH Value read_word(const typename P::template word<u32>& word, typename P::team& team)
{
    const u32 value = team.broadcast(team.leader() ? P::load(edge::A9_phase, word, order::acquire, scope::block) : 0u);
    team.sync();
    return static_cast<Value>(value);
}

/// A role ends: nothing comes from it any more.
template <class P, class Value>
SLIPSTREAM_BOTH round_result end_role(typename P::template word<u32>& phase, typename P::team& team, Value value)
{
    team.sync();
    if (team.leader()) P::store(edge::R9_phase, phase, static_cast<u32>(value), order::release, scope::block);
    return round_result::finished;
}

template <class P>
class ingest_role {
public:
    SLIPSTREAM_BOTH ingest_role(const engine_memory<P>& m, const control_state<P>& s) : s_(s), ingest_(m, s) {}

    SLIPSTREAM_BOTH round_result round(typename P::team& team)
    {
        if (rounds_++ % P::look_at_request == 0) request_ = read_word<P, command>(*s_.request, team);
        const command request = request_;
        if (request == command::abort || (request == command::park && !ingest_.watches())) return end(team, feed_phase::stopped);
        if (ingest_.step(team, request == command::run)) return round_result::busy;
        if (request == command::drain && ingest_.rings_empty()) return end(team, feed_phase::dry);
        return round_result::idle;
    }

private:
    SLIPSTREAM_BOTH round_result end(typename P::team& team, feed_phase phase)
    {
        ingest_.save(team);
        return end_role<P>(*s_.ingest_phase, team, phase);
    }

    const control_state<P>& s_;
    ingest<P> ingest_;
    command request_ = command::run;
    u32 rounds_ = 0;
};

/// All teams of the crew; the leading one looks for requests.
template <class P>
class admission_role {
public:
    SLIPSTREAM_BOTH admission_role(const engine_memory<P>& m, const control_state<P>& s) : s_(s), admission_(m, s) {}

    SLIPSTREAM_BOTH round_result round(typename P::crew& crew)
    {
        typename P::team& team = crew.team();
        const bool leads = crew.index() == 0;
        if (leads && rounds_++ % P::look_at_request == 0) {
            request_ = read_word<P, command>(*s_.request, team);
            // Read before the step: if ingest was dry then, a step that leaves nothing decoded leaves nothing behind.
            feed_ = read_word<P, feed_phase>(*s_.ingest_phase, team);
        }
        const command request = request_;
        const feed_phase before = feed_;
        const bool stops = request == command::park || request == command::abort;
        if (stops && admission_.between_tasks()) return end(crew, feed_phase::stopped); // a helper looks for no requests
        if (admission_.step(crew)) return round_result::busy; // one call for leader and helpers:
                                                              // the compiler would make its code twice
        if (!leads) return round_result::finished;
        if (request == command::drain && before == feed_phase::dry && admission_.decoded_empty(team))
            return end(crew, feed_phase::dry);
        return round_result::idle;
    }

private:
    SLIPSTREAM_BOTH round_result end(typename P::crew& crew, feed_phase phase)
    {
        admission_.finish(crew);
        return end_role<P>(*s_.admission_phase, crew.team(), phase);
    }

    const control_state<P>& s_;
    admission<P> admission_;
    command request_ = command::run;
    feed_phase feed_ = feed_phase::running;
    u32 rounds_ = 0;
};

template <class P, bool Several = true>
class linker_role {
public:
    SLIPSTREAM_BOTH linker_role(const engine_memory<P>& m, const control_state<P>& s) : s_(s), linker_(m, s) {}

    SLIPSTREAM_BOTH round_result round(typename P::team& team)
    {
        if (rounds_++ % P::look_at_request == 0) {
            request_ = read_word<P, command>(*s_.request, team);
            // Read before the step: if admission was dry then, a step that finds nothing leaves nothing behind.
            feed_ = read_word<P, feed_phase>(*s_.admission_phase, team);
        }
        if (request_ == command::park || request_ == command::abort) return end(team, feed_phase::stopped);
        if (linker_.step(team)) return round_result::busy;
        if (request_ == command::drain && feed_ == feed_phase::dry && linker_.empty()) return end(team, feed_phase::dry);
        return round_result::idle;
    }

private:
    SLIPSTREAM_BOTH round_result end(typename P::team& team, feed_phase phase)
    {
        linker_.save(team);
        return end_role<P>(*s_.link_phase, team, phase);
    }

    const control_state<P>& s_;
    linker<P, Several> linker_;
    command request_ = command::run;
    feed_phase feed_ = feed_phase::running;
    u32 rounds_ = 0;
};

template <class P, u32 Groups = P::worker_groups, bool Several = true, bool Broadcasts = true>
class scheduler_role {
public:
    SLIPSTREAM_BOTH scheduler_role(const engine_memory<P>& m, const control_state<P>& s) : s_(s), scheduler_(m, s) {}

    SLIPSTREAM_BOTH round_result round(typename P::team& team)
    {
        if (rounds_++ % P::look_at_request == 0) {
            request_ = read_word<P, command>(*s_.request, team);
            // Dry: every task is complete, and nothing becomes ready any more.
            feed_ = read_word<P, feed_phase>(*s_.link_phase, team);
        }
        const command request = request_;
        const feed_phase before = feed_;
        if (request == command::abort) return end(team);
        bool parking = false;
        if (request == command::park) {
            scheduler_.stop_dispatch();
            // Ingest may still mail a task, or what it has mailed is not adopted: its number would be given again.
            parking = read_word<P, feed_phase>(*s_.ingest_phase, team) != feed_phase::running && scheduler_.adopt(team);
        }
        const bool busy = scheduler_.step(team);
        const bool parked = parking && scheduler_.workers_idle(team);
        const bool drained = request == command::drain && before == feed_phase::dry && !busy && scheduler_.workers_idle(team);
        if (parked || drained) {
            scheduler_.dismiss_workers(team);
            return end(team);
        }
        return busy ? round_result::busy : round_result::idle;
    }

private:
    SLIPSTREAM_BOTH round_result end(typename P::team& team)
    {
        return end_role<P>(*s_.schedule_phase, team, schedule_phase::finished);
    }

    const control_state<P>& s_;
    scheduler<P, Groups, Several, Broadcasts> scheduler_;
    command request_ = command::run;
    feed_phase feed_ = feed_phase::running;
    u32 rounds_ = 0;
};

template <class P>
class notifier_role {
public:
    SLIPSTREAM_BOTH notifier_role(const engine_memory<P>& m, const control_state<P>& s, u64 residency_ns)
        : s_(s), notifier_(m, s, residency_ns)
    {
    }

    SLIPSTREAM_BOTH round_result round(typename P::team& team)
    {
        const auto phase = read_word<P, schedule_phase>(*s_.schedule_phase, team);
        const bool busy = notifier_.step(team);
        if (!busy && phase == schedule_phase::finished) {
            notifier_.save(team);
            return round_result::finished;
        }
        return busy ? round_result::busy : round_result::idle;
    }

private:
    const control_state<P>& s_;
    notifier<P> notifier_;
};

/// Before the roles start, by one lane: everybody is running again.
template <class P>
SLIPSTREAM_BOTH void reset_phases(const control_state<P>& s)
{
    P::store(edge::P5_self, *s.request, static_cast<u32>(command::run), order::relaxed, scope::block);
    P::store(edge::P5_self, *s.ingest_phase, static_cast<u32>(feed_phase::running), order::relaxed, scope::block);
    P::store(edge::P5_self, *s.admission_phase, static_cast<u32>(feed_phase::running), order::relaxed, scope::block);
    P::store(edge::P5_self, *s.link_phase, static_cast<u32>(feed_phase::running), order::relaxed, scope::block);
    P::store(edge::P5_self, *s.schedule_phase, static_cast<u32>(schedule_phase::running), order::relaxed, scope::block);
}

/// All slots and pool blocks are free; called once, before the first launch, on zeroed memory.
template <class P>
void initialise(const engine_memory<P>& m, const control_state<P>& s, const abi::task_type* types)
{
    for (u32 slot = 0; slot < m.n.window; ++slot) P::set(s.first_block[slot], no_block);
    for (u32 slot = 0; slot < m.n.window_used; ++slot) s.free_slots[m.n.window_used - 1 - slot] = slot;
    *s.free_slot_count = m.n.window_used;
    for (u32 t = 0; t < m.n.types; ++t) s.types[t] = types[t];
    for (u32 b = 0; b < m.n.pool_blocks; ++b) s.pool_free[m.n.pool_blocks - 1 - b] = b;
    *s.pool_free_count = m.n.pool_blocks;
}

} // namespace slipstream::device
