// The linker role: keeps the dependency table. It links admitted tasks to their predecessors, wakes the successors of completed
// ones, and hands to the scheduler whoever waits for nobody, or only for tasks that were handed to it before (staged).
//
// It runs beside the scheduler's fence: a completion comes here before it, what is woken goes back and is mailed after it.
// Staging is on nobody's critical path as long as it keeps ahead of the workers.
//
// COST    reports, admitted tasks and waiting tasks are taken up to 32 at a time, a lane each (dependency_table.hpp).
//
// OWNERS  this role alone: the dependency table.
// STATES  of a slot here: admitted -> linked -> waiting -> ready -> complete; or waiting -> staged -> complete, when all that
//         it waits for is handed to the scheduler (and back to waiting when it was skipped).
//         A slot that comes again as admitted was complete before, and its report is in the report queue by then: that queue is
//         emptied between looking for admitted tasks and linking them. A staged task may be reported complete before one that it
//         waits for, since the scheduler reads their workers' words in no order: it is kept (early) until that report comes,
//         and while there is one nobody is linked: its slot may be the one that comes again. (Where there are several parts nobody
//         into that slot, or behind who has: early ones are many there, and no predecessors of those that are linked.)
//         A task that crosses (crossing.hpp) waits for its stand-ins, too, and is staged when they are ready or foreseen
//         (crossing_stage.hpp). A stand-in has no blocks, and others are staged behind it.
// EDGES   A26, R26 (crossing_stage.hpp) · A20 (a stand-in of a task is ready)
//         · A10 (admitted: slot, row) -> R10_linked (the row was read), R15 (linked), R14 (ready, staged)
//         · A13 (reports) -> R14, R13_taken (looked at)
#pragma once
#include "device/dependency_table.hpp"

namespace slipstream::device {

/// Several: the engine may have several parts; without it nothing of them is compiled.
template <class P, bool Several = true>
class linker {
public:
    using team_type = typename P::team;

    SLIPSTREAM_BOTH linker(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), table_(memory, state), admitted_(state.admitted_queue()), reports_(state.report_queue()),
          arrived_(state.arrived_queue()), ready_(state.ready_queue()), ordered_(state.counters[saved_ordered]),
          settled_(state.counters[saved_settled]),
          linked_(P::load(edge::P5_self, *state.linked, order::relaxed, scope::block)),
          crossings_(P::load(edge::P5_self, *state.crossings_linked, order::relaxed, scope::block))
    {
    }

    /// True when it did anything. Each piece is called in one place: inlined wherever it is of use, this role was 8100
    /// instructions.
    SLIPSTREAM_BOTH bool step(team_type& team)
    {
        // Looked for before the reports: the slot of an admitted task may come again, and its report is in the queue by then.
        const u32 arrived = several() || table_.early() == 0 ? admitted_.available(team, link_most) : 0;
        bool busy = false;
        // All of them, or nobody is linked: whose last stand-in came may be retired, and its meeting come again.
        const u32 came = several() ? arrived_.available(team, arrivals_most + 1) : 0;
        typename staging_inbox<P>::looked_type looked; // behind that: what other linkers said comes before what schedulers
                                                       // conclude from it
        const bool crosses = several() && table_.crossing().some();
        const bool looks = came != 0 || (crosses && !looked_); // one look is good for two steps, while there is much to do
        if (looks) table_.crossing().look(team, looked);
        SLIPSTREAM_ONE_COPY
        for (u32 count; (count = reports_.available(team)) != 0;) {
            take(team, count < 32 ? count : 32);
            busy = look_again_ = true;
        }
        if (looks && table_.crossing().take(team, looked)) busy = look_again_ = true;
        if (came != 0) busy |= take_arrivals(team, came);
        // Else staging comes first: somebody may be done soon. But where there are several parts others' tasks wait to be foreseen.
        if (arrived != 0 && came <= arrivals_most && (several() ? !busy || arrived >= link_most : !busy && table_.early() == 0))
            if (const u32 count = not_early(team, arrived < link_most ? arrived : link_most); count != 0) {
                link(team, count);
                busy = true;
            }
        if (look_again_) busy |= stage_ahead(team);
        if (tainted_ && empty()) tainted_ = !table_.cleanse(team);
        looked_ = looks && busy;
        return busy || (crosses && !looks);
    }

    /// Every task linked so far is complete.
    SLIPSTREAM_BOTH bool empty() const { return table_.in_flight() == 0; }

    SLIPSTREAM_BOTH void save(team_type& team)
    {
        if (team.leader()) {
            table_.save();
            s_.counters[saved_ordered] = ordered_;
            s_.counters[saved_settled] = settled_;
        }
        team.sync();
    }

private:
    SLIPSTREAM_BOTH bool several() const { return Several && m_.n.parts > 1; }

    SLIPSTREAM_BOTH void take(team_type& team, u32 count)
    {
        // Read once: the places of these reports may be used again as soon as a task is handed over.
        typename P::template lane_array<u32, 1> reported, slots;
        const auto report_of = [&](u32 k) { return report{reported.at(0, k)}; };
        const auto slot_of = [&](u32 k) { return slots.at(0, k); };
        const auto kinds = [&](report_kind kind) {
            return team.mask32([&](u32 k) { return k < count && report_of(k).kind() == kind; });
        };
        team.each32([&](u32 k) { reported.at(0, k) = k < count ? reports_.peek(k).word : 0; });
        u32 left = kinds(report_kind::completed);
        u32 cancelled = 0;
        if (popcount(left) != count) { // some body has failed
            table_.crossing().note_failure();
            const u32 skipped = kinds(report_kind::skipped);
            for (u32 bits = skipped | kinds(report_kind::declined); bits != 0; bits &= bits - 1)
                take_back(team, report{team.from_lane(reported, lowest_bit(bits))}.slot(), (skipped >> lowest_bit(bits) & 1) != 0);
            const u32 failed = kinds(report_kind::failed);
            for (u32 bits = failed; bits != 0; bits &= bits - 1)
                table_.taint(team, report{team.from_lane(reported, lowest_bit(bits))}.slot());
            tainted_ |= failed != 0;
            cancelled = kinds(report_kind::cancelled);
            left |= failed | cancelled;
            if (several())
                for (u32 bits = failed | cancelled; bits != 0; bits &= bits - 1) {
                    const u32 slot = report{team.from_lane(reported, lowest_bit(bits))}.slot();
                    if (table_.crossing().is_counted(slot)) table_.break_stand_in(team, slot);
                    else if ((cancelled & bits & (0 - bits)) != 0 && table_.break_if_pointed_at(team, slot))
                        cancelled &= ~(bits & (0 - bits));
                }
        }
        team.each32([&](u32 k) { slots.at(0, k) = report_of(k).slot(); });
        if (left != 0) {
            table_.complete(
                team, left, ~cancelled, slot_of, [&](ready_entry entry, u32 place) { ready_.put_ahead(place, entry); },
                [&](u32 woken) {
                    ready_.advance(woken); // never full: it has room for every slot
                    ready_.publish(team);
                });
            if (several()) note_pace(team, popcount(left));
        }
        reports_.skip(count);
        reports_.release(team);
    }

    /// Stand-ins of tasks of this part that are ready in others.
    SLIPSTREAM_BOTH bool take_arrivals(team_type& team, u32 came)
    {
        const u32 count = came < arrivals_most ? came : arrivals_most;
        const u32 freed = table_.arrive(team, count, [&](u32 k) { return arrival{arrived_.peek(k)}; },
                                        [&](ready_entry entry, u32 place) { ready_.put_ahead(place, entry); });
        ready_.advance(freed); // never full: it has room for every slot
        arrived_.skip(count);
        arrived_.release(team);
        ready_.publish(team);
        return look_again_ = true;
    }

    SLIPSTREAM_BOTH void take_back(team_type& team, u32 slot, bool mailed)
    {
        tainted_ |= mailed;
        if (!table_.take_back(team, slot, mailed)) return;
        ready_.put(team, ready_entry::make(slot, linked_));
        ready_.publish(team);
    }

    /// With so many tasks handed over, how many blocks may there be when a further one is staged? Where much else can run,
    /// workers are better kept for that; a program that is one task after another may fill the mailboxes: further ahead where
    /// all of them promise to be brief, since what is ready later comes behind them. Of such tasks two blocks a worker at any
    /// time: a chain's parcels are larger then.
    /// Of an engine of several parts never more than there is room for: what a mail waits for may not be mailed, and none that must
    /// wait for its place may be in the way of that (crossing_stage.hpp). As many while its tasks follow each other fast.
    SLIPSTREAM_BOTH u32 most_blocks(u32 tasks, bool all_brief)
    {
        const u32 usual = m_.n.workers - m_.n.workers / 4;
        if (several()) {
            const u32 room = staged_places<P>(table_.crossing().some()) * (m_.n.workers - 1);
            return brisk_ || room < usual ? room : usual;
        }
        const u32 brief_tasks = m_.n.broadcast_copies != 0 ? broadcast_tasks : serial_brief_tasks;
        if (tasks <= (all_brief ? brief_tasks : serial_tasks)) return P::mailbox_depth * m_.n.workers;
        return all_brief ? brief_blocks * m_.n.workers : usual;
    }

    /// So many more tasks are complete. Does a worker get the next one within brisk_ns? Longer ones are better mailed late, to
    /// whoever is idle: the worker that gets nothing that waits is worth more then than a round of the scheduler.
    SLIPSTREAM_BOTH void note_pace(team_type& team, u32 done)
    {
        paced_ += done;
        if (paced_ < pace_tasks) return;
        const u64 now = P::clock_ns();
        const bool brisk = (now - paced_from_) * m_.n.workers <= brisk_ns * paced_;
        brisk_ = team.broadcast(static_cast<u32>(brisk)) != 0;
        paced_from_ = now;
        paced_ = 0;
    }

    /// Stages tasks that wait, in the order in which they were linked, up to the first that cannot be: it comes to its turn
    /// when more is complete. A lane each for the next 32. True when it staged one.
    SLIPSTREAM_BOTH bool stage_ahead(team_type& team)
    {
        // What was linked a window before is overwritten: complete, or so long in waiting that it comes without being staged.
        if (ordered_ - settled_ > s_.queue_slots) settled_ = ordered_ - s_.queue_slots;
        look_again_ = false;
        const u32 handed = table_.blocks_handed();
        const u32 tasks = table_.tasks_handed();
        const bool brief_till_now = table_.lasting_handed() == 0;
        if (handed >= most_blocks(tasks, brief_till_now)) return false; // most often, where much else can run
        const u32 most = ordered_ - settled_;
        const u32 count = most < 32 ? most : 32;
        if (count == 0) return false;
        typename P::template lane_array<u32, 1> entries, blocks, blocks_before, places;
        const auto entry_of = [&](u32 k) { return ready_entry{entries.at(0, k)}; };
        const auto slot_of = [&](u32 k) { return entry_of(k).slot(); };
        const u32 waiting = team.mask32([&](u32 k) {
            entries.at(0, k) = k < count ? s_.link_order[(settled_ + k) & (s_.queue_slots - 1)] : 0;
            blocks.at(0, k) = table_.blocks(slot_of(k));
            // Numbers come again, and so may one in its slot while the first of the list cannot be staged: its place tells.
            return k < count && table_.waits(slot_of(k), entry_of(k).number()) && s_.order_at[slot_of(k)] == settled_ + k;
        });
        if (waiting == 0) {
            settled_ += count;
            look_again_ = most > count;
            return look_again_;
        }
        const u32 first = team.from_lane(entries, lowest_bit(waiting)) & ready_entry::slot_mask;
        if (handed + table_.blocks(first) > most_blocks(tasks, brief_till_now && table_.is_brief(first))
            || table_.pending(first) > waits_max) { // most often
            settled_ += lowest_bit(waiting);
            return false;
        }
        table_.list_again(team, first);
        // Blocks of those before each: nearly always as many as tasks.
        const u32 larger = team.mask32([&](u32 k) {
            blocks_before.at(0, k) = waiting >> k & 1 ? blocks.at(0, k) : 0;
            return blocks_before.at(0, k) > 1;
        });
        if (larger == 0) team.each32([&](u32 k) { blocks_before.at(0, k) = popcount(waiting & ((1u << k) - 1)); });
        else team.sums_before(blocks_before);
        const u32 lasting = team.mask32([&](u32 k) { return (waiting >> k & 1) != 0 && !table_.is_brief(slot_of(k)); });
        const u32 able = team.mask32([&](u32 k) {
            const bool waits = (waiting >> k & 1) != 0;
            const bool all_brief = brief_till_now && (lasting & ((2u << k) - 1)) == 0;
            const u32 limit = most_blocks(tasks + popcount(waiting & ((1u << k) - 1)), all_brief);
            const u32 found = table_.may_stage(slot_of(k), [&](u32 before) { return s_.order_at[before] - settled_ < k; });
            places.at(0, k) = found & ~table_.may_bit;
            const bool good = several() ? may_go(slot_of(k), found) : places.at(0, k) != 0;
            return (!waits) | ((handed + blocks_before.at(0, k) + blocks.at(0, k) <= limit) & good);
        });
        const u32 stop = able == ~0u ? count : lowest_bit(~able) < count ? lowest_bit(~able) : count;
        const u32 staged = waiting & low_bits(stop);
        if (staged != 0) {
            table_.stage(team, staged, slot_of, [&](u32 k) { return places.at(0, k); }, [&](u32 k, u32 waits) {
                ready_.put_ahead(popcount(staged & ((1u << k) - 1)), ready_entry::make(slot_of(k), entry_of(k).number(), waits));
            });
            ready_.advance(popcount(staged));
            ready_.publish(team);
        }
        settled_ += stop;
        look_again_ = stop != 0 && settled_ != ordered_;
        return staged != 0;
    }

    /// By a lane, of an engine of several parts, with what may_stage() said: may it be staged?
    SLIPSTREAM_BOTH bool may_go(u32 slot, u32 found)
    {
        const u32 places = found & ~table_.may_bit;
        if (!table_.load(slot).crosses()) return places != 0;
        const u32 parts = table_.crossing().awaits(slot);
        const u32 waits = popcount(places) + popcount(parts);
        return (found != 0) & (parts != crossing_stage<P>::unknown) & (waits != 0) & (waits <= crossing_stage<P>::waits_most);
    }

    /// Of the first `count` admitted tasks those before the first that comes into the slot of an early one. Where there are several
    /// parts a task that crosses ends long before its stand-ins' books are closed, and those behind them with it.
    SLIPSTREAM_BOTH u32 not_early(team_type& team, u32 count)
    {
        if (!several() || table_.early() == 0) return count;
        const u32 early = team.mask32([&](u32 k) { return k < count && table_.is(s_.early, admitted_.peek(k) & 0xffff); });
        return early != 0 ? lowest_bit(early) : count;
    }

    /// In order.
    SLIPSTREAM_BOTH void link(team_type& team, u32 count)
    {
        const auto slot_of = [&](u32 k) { return admitted_.peek(k) & 0xffff; };
        look_again_ |= settled_ == ordered_; // else the first that waits has not changed
        const u32 ready = table_.link(
            team, count, linked_ + 1, slot_of, [&](u32 k) { return (admitted_.peek(k) & admitted_free) == 0; },
            [&](u32 k) { return (admitted_.position() + k) % admitted_max; });
        const u32 waiting = m_.n.staging == 0 ? 0 : team.mask32([&](u32 k) {
            if (k >= count || (ready >> k & 1) != 0) return false;
            const linked_load load = table_.load(slot_of(k));
            if (load.blocks() == 0 || load.clears()) return false;
            if (!several()) return true;
            // One of several blocks waits for none of its stand-ins by itself; nor, most likely, does another after a failure.
            const bool foreseen = load.blocks() == 1 && !table_.crossing().failed();
            return foreseen || !load.crosses() || !table_.crossing().waits(slot_of(k));
        });
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = slot_of(k);
            const u32 below = (1u << k) - 1;
            const ready_entry entry = ready_entry::make(slot, linked_ + k + 1);
            if (ready >> k & 1) ready_.put_ahead(popcount(ready & below), entry);
            const u32 at = ordered_ + popcount(waiting & below);
            if (waiting >> k & 1) s_.link_order[at & (s_.queue_slots - 1)] = entry.word;
            s_.order_at[slot] = waiting >> k & 1 ? at : at + never;
        });
        ready_.advance(popcount(ready));
        ordered_ += popcount(waiting);
        if ((linked_ ^ (linked_ + count)) >> table_.numbers_bits != 0) table_.grow_old(team);
        linked_ += count;
        if (several())
            count_crossings(team, team.mask32([&](u32 k) {
                return k < count && (table_.load(slot_of(k)).crosses() || table_.load(slot_of(k)).stands_in());
            }));
        admitted_.skip(count);
        admitted_.release(team);
        if (team.leader()) P::store(edge::R15_linked, *s_.linked, linked_, order::release, scope::block);
        ready_.publish(team);
    }

    /// Before they are handed over: the scheduler need not look for any while it has seen the end of as many.
    SLIPSTREAM_BOTH void count_crossings(team_type& team, u32 linked_now)
    {
        if (linked_now == 0) return;
        crossings_ += popcount(linked_now);
        table_.crossing().linked(popcount(linked_now));
        if (team.leader()) P::store(edge::P7_crossings, *s_.crossings_linked, crossings_, order::relaxed, scope::block);
    }

    static constexpr u32 serial_tasks = 2; ///< with so many handed over, a program is taken for one task after another
    static constexpr u32 serial_brief_tasks = 5;
    static constexpr u32 brief_blocks = 2; ///< of each worker: as many as it may be mailed, so that each task finds one with room
    static constexpr u32 broadcast_tasks = 16; ///< likewise: they take no place in single workers' mailboxes
    /// In one go, and looked for until so many are known, as one takes as long as many. Of an engine of several parts so many are
    /// linked beside reports, too.
    static constexpr u32 link_most = 32;
    static constexpr u32 arrivals_most = 32; ///< of stand-ins, taken in one go
    static constexpr u32 pace_tasks = 32;
    static constexpr u64 brisk_ns = 200000; ///< a stencil as wide as the workers, of tasks of 256 us, takes as long either way
    static constexpr u32 never = 1u << 31; ///< beyond any position in link_order that may come while the task is there

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    dependency_table<P, Several> table_;
    queue_consumer<P, u32, edge::A10_admitted, edge::R10_linked> admitted_;
    queue_consumer<P, report, edge::A13_report, edge::R13_taken, order::relaxed> reports_; // never full
    queue_consumer<P, u32, edge::A20_arrived, edge::R20_taken> arrived_;
    queue_producer<P, ready_entry, edge::R14_ready, edge::A14_taken> ready_;
    // Equal on all lanes.
    u32 ordered_;   ///< entries of link_order ever written; wraps
    u32 settled_;   ///< the first so many of them need no further look; wraps
    u32 linked_;    ///< ever; wraps
    u32 crossings_; ///< of these, tasks that cross and stand-ins; wraps
    u32 paced_ = 0;       ///< complete since paced_from_
    u64 paced_from_ = Several ? P::clock_ns() : 0;
    bool brisk_ = false;      ///< see note_pace
    bool look_again_ = false; ///< there may be more to stage
    bool looked_ = false; ///< the step before looked for what other linkers have said, and found something to do
    bool tainted_ = true; ///< there may be a tainted slot
};

} // namespace slipstream::device
