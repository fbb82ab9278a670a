// The admission role: finds out which unfinished tasks a decoded task must wait for, and hands both to the linker.
//
// One owner of the access table, no locks. For each access the table keeps one bit, whether it is still live: an access that
// one later write covers whole is superseded and not compared again, because every later task that meets it also meets that
// write. A chain of tasks on one buffer so keeps one live access, not W.
//
// Hazards: new writes against old reads and writes, new reads against old writes, exact half-open
// byte ranges and 2-D rectangles (abi/access_entry.hpp). A whole-memory task waits for all exposed tasks and then is the only
// exposed one: everything later waits for it, access-less tasks included. Whom an `after` entry names is waited for through it, but
// where there are several parts: there it may be a stand-in, whose task runs all the same when one that it waits for has failed,
// so that who comes after that one has to wait for it by itself, to hear of the failure.
//
// What this role knows of finished tasks may be old: it may name a predecessor that is complete. The linker drops those: it
// knows, and a slot cannot have been given to a later task, because slots go back to ingest through this role, behind the
// rows that name them (both queues are first in, first out).
//
// The leading team of a crew takes the role's decisions. Tasks are admitted in batches, a lane an access (access_batch.hpp), the
// accesses of finished tasks forgotten likewise: such an order is carried out by the other teams, the helpers, while the leading
// one hands the batch before it on and lays the next one out. Where no second one waits and a single team is enough, it carries
// the order out by itself, without a barrier. A task with `after` entries is a batch by itself, one with more accesses than a
// batch has lanes several, one after the other.
//
// STATES  of an order (finished tasks to be forgotten, a batch, or both): laid out and told -> (crew's barrier) carried out by the
//         helpers -> (crew's barrier) ended: handed on, and its slots freed. One is told ahead at most, so that what belongs to it
//         lies in two halves that take turns.
// COST    beside access_batch.hpp 60 instructions to hand a batch on, 40 for finished slots; a barrier of the crew an order, and
//         one of the helpers where it has both parts.
//
// OWNERS  the leading team (index 0) writes exposed, hidden, orders and the queues, and the half that it lays out; live and the
//         index, and the rows of predecessors, belong to who carries out an order, with the half that is carried out.
// EDGES   A3 (decoded) · R10 (admitted: slot and row) · A10_linked (the row may be overwritten) · A11 (finished) · R2 (slot
//         freed). The crew's barrier orders orders, rows and table between its teams.
#pragma once
#include "device/access_batch.hpp"

namespace slipstream::device {

template <class P>
class admission {
public:
    using team_type = typename P::team;
    using crew_type = typename P::crew;

    SLIPSTREAM_BOTH admission(const engine_memory<P>& memory, const control_state<P>& state)
        : m_(memory), s_(state), decoded_(state.decoded_queue()), admitted_(state.admitted_queue()),
          finished_(state.finished_queue()), free_(state.free_queue()), index_(memory, state), batch_(memory, state),
          whole_(state.counters[saved_whole]), words_(state.counters[saved_live_words])
    {
    }

    /// Every team. The leading one takes back finished slots or admits what was decoded; true when it did anything. A helper waits
    /// for an order and carries it out; false: there is none any more.
    SLIPSTREAM_BOTH bool step(crew_type& crew)
    {
        team_type& team = crew.team();
        const bool leads = crew.index() == 0;
        job j{};
        if (leads) {
            const verdict todo = next(crew, j);
            if (todo != verdict::carry_out) return todo == verdict::done;
        } else {
            crew.sync();
            j = told();
        }
        const u32 number = leads ? 0 : crew.index() - 1;
        const u32 teams = leads ? 1 : crew.teams() - 1;
        if (j.order == order_kind::leave) return false;
        if (j.order == order_kind::work) {
            const auto sync = [&] {
                if (leads) team.sync();
                else crew.sync_helpers();
            };
            if (j.finished != 0) batch_.forget(team, number, teams, j.batch.half, j.finished);
            if (j.finished != 0 && j.batch.tasks != 0) sync(); // what is live now is the same for all teams
            if (j.batch.tasks != 0) batch_.run(team, number, teams, j.batch, sync);
        }
        team.sync();
        if (leads) end(team, j);
        return true;
    }

    /// Everything decoded so far was handed on.
    SLIPSTREAM_BOTH bool decoded_empty(team_type& team) { return decoded_.available(team) == 0; }

    /// No task lies in the table in part, or is about to.
    SLIPSTREAM_BOTH bool between_tasks() const { return taken_ == 0; }

    /// The leading team, at the end, between tasks: lets the others go and saves what lives in registers.
    SLIPSTREAM_BOTH void finish(crew_type& crew)
    {
        settle(crew);
        tell(crew.team(), {order_kind::leave, 0, {}});
        crew.sync(); // the helpers, too, read the counters when they began
        if (!crew.team().leader()) return;
        s_.counters[saved_whole] = whole_;
        s_.counters[saved_live_words] = words_;
    }

private:
    using extent = typename access_batch<P>::extent;

    enum class order_kind : u32 { nothing, work, leave };
    enum class verdict { nothing, done, carry_out };

    /// An order, and what belongs to it.
    struct job {
        order_kind order;
        u32 finished; ///< tasks to be forgotten first
        extent batch; ///< tasks 0: none
    };

    SLIPSTREAM_BOTH void tell(team_type& team, const job& j)
    {
        if (team.leader()) {
            const u32 words[] = {static_cast<u32>(j.order), j.finished, j.batch.tasks, j.batch.blocks,
                                 j.batch.row, j.batch.words, j.batch.before, j.batch.goes_on};
            SLIPSTREAM_UNROLL
            for (u32 i = 0; i < order_words; ++i) s_.orders[half_ * order_words + i] = words[i];
        }
        team.sync();
        half_ ^= 1;
    }
    SLIPSTREAM_BOTH job told()
    {
        const u32* const o = s_.orders + half_ * order_words;
        const job j{static_cast<order_kind>(o[0]), o[1], {o[2], o[3], o[4], o[5], o[6], o[7], half_}};
        half_ ^= 1;
        return j;
    }

    /// The order that the helpers are at work with, if any, is ended.
    SLIPSTREAM_BOTH void settle(crew_type& crew)
    {
        if (told_.order == order_kind::nothing) return;
        tell(crew.team(), {order_kind::nothing, 0, {}});
        crew.sync();
        end_told(crew.team());
    }
    SLIPSTREAM_BOTH void end_told(team_type& team)
    {
        if (told_.order != order_kind::nothing) end(team, told_);
        told_.order = order_kind::nothing;
    }

    /// What comes next: it is told to the helpers, or to be carried out by this team, or done already.
    SLIPSTREAM_BOTH verdict next(crew_type& crew, job& j)
    {
        team_type& team = crew.team();
        const u32 helpers = crew.teams() - 1;
        const u32 in_one_go = (helpers > 1 ? helpers : 1) * access_batch<P>::team_blocks;
        const u32 all_blocks = in_one_go < batch_max ? in_one_go : batch_max;
        // not in the queue yet
        const u32 told_tasks = told_.order == order_kind::work && told_.batch.goes_on == 0 ? told_.batch.tasks : 0;
        // A batch costs much the same whatever its size: a few more looks, so that it is large.
        const u32 arrived = decoded_.available(team, batch_max);
        const u32 room = admitted_.room(team, batch_max + told_tasks) - told_tasks;
        const u32 count = arrived < room ? arrived : room;
        // Many finished slots cost little more than one: a few wait while there is something to admit. No more than the
        // teams take at once.
        const u32 worth = m_.n.window_used / 8 < all_blocks ? m_.n.window_used / 8 : all_blocks;
        if (finished_.known() < worth || count == 0) finished_.look(team);
        const u32 finished = finished_.known();
        j.batch.half = half_;
        if (finished != 0 && (count == 0 || finished >= worth))
            j.finished = take_back(team, finished < all_blocks ? finished : all_blocks);
        bool special = false; // the next task takes no part in a batch
        if (count != 0) {
            const u32 slot = decoded_.peek(0);
            const task_head head = P::get(s_.heads[slot]);
            special = head.whole_memory() || (head.entries_and_flags == 0 && whole_ == 0);
            if (special && j.finished == 0) {
                settle(crew);
                if (head.whole_memory()) admit_whole(team, slot);
                else admit_free(team, count < 32 ? count : 32);
                return verdict::done;
            }
        } else if (j.finished == 0) {
            const bool busy = told_.order != order_kind::nothing;
            settle(crew);
            return busy ? verdict::done : verdict::nothing;
        }
        j.order = order_kind::work;
        if (count != 0 && !special)
            lay_out(team, count < 32 ? count : 32, all_blocks, (admitted_.position() + told_tasks) % admitted_max, j.batch);
        const bool more = j.batch.goes_on != 0 || count > j.batch.tasks; // waits behind it
        const bool large = j.batch.blocks > access_batch<P>::team_blocks || j.finished > access_batch<P>::team_blocks;
        if (helpers != 0 && (more || large || told_.order != order_kind::nothing)) {
            tell(team, j);
            crew.sync(); // the one before is carried out
            end_told(team);
            told_ = j;
            return verdict::done;
        }
        return verdict::carry_out;
    }

    /// Lays out a batch of the next decoded tasks, `count` at most, and takes them off their queue.
    SLIPSTREAM_BOTH void lay_out(team_type& team, u32 count, u32 most, u32 row, extent& batch)
    {
        batch = batch_.lay_out(team, count, most, rest_, taken_, half_, [&](u32 k) { return decoded_.peek(k); });
        batch.row = row;
        batch.words = words_;
        batch.before = whole_ == 0 ? no_slot : whole_ - 1;
        u32 complement = ~0u; // its minimum is the maximum of what it is the complement of
        team.each32([&](u32 k) {
            if (k >= batch.blocks) return;
            const u32 words = batch_.block(batch, k) / pool_word_blocks + 1;
            complement = ~words < complement ? ~words : complement;
        });
        const u32 words = ~team.reduce_min(complement);
        words_ = words < words_ ? words_ : words;
        if (batch.goes_on != 0) { // the task has more blocks
            taken_ += batch.blocks;
            rest_ = P::get(s_.pool_next[batch_.block(batch, batch.blocks - 1)]);
            return;
        }
        rest_ = no_block;
        taken_ = 0;
        decoded_.skip(batch.tasks);
        decoded_.release(team);
    }

    /// An order is carried out.
    SLIPSTREAM_BOTH void end(team_type& team, const job& j)
    {
        if (j.batch.tasks != 0) hand_on(team, j.batch); // before a slot that its rows name comes again
        if (j.finished == 0) return;
        team.each32([&](u32 k) {
            if (k < j.finished) free_.put_ahead(k, batch_.finished_slot(j.batch.half, k));
        });
        free_.advance(j.finished); // never full: it has room for every slot
        free_.publish(team);
    }

    /// Takes finished slots out of what is exposed; they are to be forgotten, then they move on to ingest.
    SLIPSTREAM_BOTH u32 take_back(team_type& team, u32 count)
    {
        bool whole_finished = false;
        team.each32([&](u32 k) {
            if (k >= count) return;
            const u32 slot = finished_.peek(k);
            whole_finished |= slot + 1 == whole_;
            team.clear_bits(s_.exposed[slot / 32], 1u << slot % 32);
            if (several()) team.clear_bits(s_.hidden[slot / 32], 1u << slot % 32);
            batch_.set_finished(half_, k, slot, P::get(s_.first_block[slot]));
        });
        if (team.any(whole_finished)) whole_ = 0;
        finished_.skip(count);
        finished_.release(team);
        return count;
    }

    /// The first of `count` decoded tasks that declare nothing, while no whole-memory task is exposed.
    SLIPSTREAM_BOTH void admit_free(team_type& team, u32 count)
    {
        const u32 declaring
            = team.mask32([&](u32 k) { return k < count && P::get(s_.heads[decoded_.peek(k)]).entries_and_flags != 0; });
        const u32 run = declaring == 0 ? count : lowest_bit(declaring);
        team.each32([&](u32 k) {
            if (k >= run) return;
            const u32 slot = decoded_.peek(k);
            team.set_bits(s_.exposed[slot / 32], 1u << slot % 32);
            // Its row is not looked at, but its list is by those that come behind it.
            P::set(s_.named_count[(admitted_.position() + k) % admitted_max], 0u);
            admitted_.put_ahead(k, slot | admitted_free);
        });
        admit_to_here(team, run);
    }

    /// A whole-memory task waits for all that are exposed, and hides them: only it is exposed, and no access before it is live.
    SLIPSTREAM_BOTH void admit_whole(team_type& team, u32 slot)
    {
        const u32 place = admitted_.position() % admitted_max;
        auto* const found = s_.predecessors + place * m_.n.groups();
        u32 mine = 0;
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) mine += popcount(s_.exposed[g]);
        const u32 all = team.reduce_add(mine);
        const bool few = all <= waits_max;
        if (team.leader()) P::set(s_.named_count[place], few ? 0 : all);
        team.sync();
        SLIPSTREAM_ONE_COPY
        for (u32 g = team.rank(); g < m_.n.groups(); g += team.size()) {
            u32 exposed = s_.exposed[g];
            s_.exposed[g] = 0;
            if (several()) s_.hidden[g] |= exposed;
            P::set(found[g], few ? 0 : exposed);
            SLIPSTREAM_ONE_COPY
            for (; few && exposed != 0; exposed &= exposed - 1) batch_.set_wait(team, place, 32 * g + lowest_bit(exposed));
        }
        SLIPSTREAM_ONE_COPY
        for (u32 w = team.rank(); w < words_; w += team.size()) s_.live[w] = 0;
        index_.clear(team, words_);
        handle_book<P>(m_, s_).clear(team);
        words_ = 0;
        whole_ = slot + 1;
        team.sync();
        if (several()) find_after(team, slot, place);
        if (team.leader()) s_.exposed[slot / 32] |= 1u << slot % 32;
        admitted_.put_ahead(0, slot);
        admit_to_here(team, 1);
    }

    /// The next `count` decoded tasks go to the linker; their entries are written.
    SLIPSTREAM_BOTH void admit_to_here(team_type& team, u32 count)
    {
        admitted_.advance(count);
        admitted_.publish(team);
        decoded_.skip(count);
        decoded_.release(team);
    }

    /// A batch has found its predecessors, and lies in the table.
    SLIPSTREAM_BOTH void hand_on(team_type& team, const extent& batch)
    {
        u32 waiting = batch_.waiting(batch) | static_cast<u32>(waits_);
        waits_ = batch.goes_on != 0 && (waiting & 1) != 0;
        if (batch.goes_on != 0) return;
        if (batch.tasks == 1 && find_after(team, batch_.slot(batch, 0), batch.row)) waiting = 1;
        team.each32([&](u32 k) {
            if (k >= batch.tasks) return;
            const u32 slot = batch_.slot(batch, k);
            team.set_bits(s_.exposed[slot / 32], 1u << slot % 32);
            admitted_.put_ahead(k, slot | (waiting >> k & 1 ? 0 : admitted_free));
        });
        admitted_.advance(batch.tasks);
        admitted_.publish(team);
    }

    SLIPSTREAM_BOTH bool several() const { return m_.n.parts > 1; }
    /// A bit for each slot of 32 whose task an `after` entry may have to name.
    SLIPSTREAM_BOTH u32 nameable(u32 group) const { return s_.exposed[group] | (several() ? s_.hidden[group] : 0); }

    /// Marks the tasks that `after` entries name and that are not waited for through others; ingest's gate made sure that they were
    /// admitted. True if there are any.
    SLIPSTREAM_BOTH bool find_after(team_type& team, u32 task, u32 row)
    {
        bool any = false; // of this lane
        SLIPSTREAM_ONE_COPY
        for (u32 block = P::get(s_.first_block[task]); block != no_block; block = P::get(s_.pool_next[block])) {
            u32 afters = pool_tag{P::get(s_.pool_tags[block])}.after();
            if (afters == 0) break; // they come first
            SLIPSTREAM_ONE_COPY
            for (; afters != 0; afters &= afters - 1) {
                const table_entry entry = s_.pool_entry(block, lowest_bit(afters));
                const u64 id = static_cast<u64>(entry.after_ring()) << 56 | entry.after_position();
                SLIPSTREAM_ONE_COPY
                for (u32 slot = team.rank(); slot < m_.n.window; slot += team.size())
                    if ((nameable(slot / 32) >> slot % 32 & 1) && P::get(s_.task_id[slot]) == id) {
                        batch_.set_wait(team, row, slot);
                        any = true;
                    }
            }
        }
        return team.any(any);
    }

    const engine_memory<P>& m_;
    const control_state<P>& s_;
    queue_consumer<P, u16, edge::A3_decoded, edge::R3_taken, order::relaxed> decoded_; // never full
    queue_producer<P, u32, edge::R10_admitted, edge::A10_linked> admitted_;
    queue_consumer<P, u16, edge::A11_finished, edge::R11_taken, order::relaxed> finished_; // never full
    queue_producer<P, u16, edge::R2_slot_freed, edge::A2_slot_taken> free_;
    access_index<P> index_;
    access_batch<P> batch_;
    // Equal on all lanes; of the leading team.
    u32 whole_; ///< slot + 1 of the exposed whole-memory task; 0: none
    u32 words_; ///< words of `live` in use
    u32 rest_ = no_block; ///< of the first decoded task, the first pool block that no batch has had yet
    u32 taken_ = 0;       ///< its blocks that one has had
    bool waits_ = false;  ///< by those handed on it waits for somebody
    job told_{};          ///< what the helpers are at work with
    // Of every team.
    u32 half_ = 0; ///< where the next order is told
};

} // namespace slipstream::device
