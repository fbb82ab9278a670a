// The draw of a stream and its sequential run.
#include "tools/slipstream/soak/soak_stream.hpp"
#include "device/layout.hpp"
#include <algorithm>

namespace slipstream::soak {
namespace {

constexpr u32 reads = 1, writes = 2, reads_and_writes = 3;
constexpr u32 accesses_most = 900;   ///< of a task; what names other threads' tasks comes on top
constexpr u32 shared_readers_max = 40;
constexpr u32 blocks_most = 400;     ///< more than there are workers
constexpr u32 row_blocks_most = 200; ///< likewise
constexpr u32 row_most = 32;         ///< tasks of a row
constexpr u32 poison_cells_max = device::poison_entries_max - 40; ///< a cell each at worst
constexpr u32 failed_tasks_max = device::failed_runs_max - 40;

} // namespace

soak_op op_of_handle(u32 handle, u32 mode)
{
    const u32 bank = handle / bank_handles * bank_cells;
    const u32 at = handle % bank_handles;
    if (at < bank_tiles) return {bank + at / 8 * 4 * bank_pitch + at % 8 * 8, 4, 4, bank_pitch, static_cast<u16>(mode)};
    return {bank + bank_cells / 2 + 8 * (at - bank_tiles), 1, 8, 0, static_cast<u16>(mode)};
}

soak_stream::soak_stream(const soak_case& c)
    : case_(c), style_(style_of(c.style)), random_(c.seed * 0x9fb21c651e98df25u + c.style), salt_(random_.next())
{
    raw_ = 1u << (style_.raw_log2_min + random_.below(style_.raw_log2_max - style_.raw_log2_min + 1));
    while (raw_ < 64 * c.threads) raw_ *= 2;
    shared_ = c.threads > 1 ? std::min(256u, raw_ / 4) : 0;
    own_ = (raw_ - shared_) / c.threads;
    tasks_.resize(c.tasks);
    ops_.reserve(c.tasks * 3);
    handles_.reserve(c.tasks * 3);
    memory_.resize(raw_first + raw_);
    begin_run();
    const u32 trap = c.hide ? random_.below(c.tasks - 1) : none;
    for (u32 t = 0; t < c.tasks; ++t) {
        if (trap != none && (t == trap || t == trap + 1))
            plant(t);
        else
            draw(t);
        tasks_[t].result = results_next_;
        results_next_ += tasks_[t].blocks;
        results_.resize(results_next_);
        order(t);
        if (fails()) {
            planned_task& p = tasks_[t];
            const bool full = poison_spent_ > poison_cells_max - 64 || runs_spent_ > failed_tasks_max - 8;
            if (full && c.threads == 1 && p.kind != task_kind::clear) {
                p = {};
                p.kind = task_kind::clear;
                p.result = results_next_ - 1;
                p.first_after = static_cast<u32>(afters_.size());
            } else if (full) {
                // Nothing clears in the middle of several threads: from now on nothing fails, and who would be
                // cancelled declares nothing.
                p.fails = false;
                if (is_cancelled(p)) {
                    p.kind = task_kind::listed;
                    p.no_access = true;
                    p.ops = p.declared = p.chosen = p.afters = 0;
                }
            }
        }
        note(t);
        run(t);
    }
    kept_ = c.tasks;
    if (c.from != 0 || c.keep < c.tasks) {
        cut_ = true;
        begin_run();
        std::fill(results_.begin(), results_.end(), 0);
        afters_.clear();
        kept_ = 0;
        for (u32 t = c.from; t < c.tasks && t - c.from < c.keep; ++t, ++kept_) {
            order(t);
            note(t);
            run(t);
        }
    }
    of_thread_.resize(c.threads);
    for (u32 t = c.from; t < c.tasks && t - c.from < c.keep; ++t) {
        auto& mine = of_thread_[tasks_[t].thread];
        tasks_[t].at_ring = static_cast<u32>(mine.size());
        mine.push_back(t);
    }
}

/// A pair of which the second must wait for the first, and hides it: the first reads late and writes late.
void soak_stream::plant(u32 t)
{
    planned_task& p = tasks_[t];
    const bool first = t == 0 || !tasks_[t - 1].late;
    p.first_op = static_cast<u32>(ops_.size());
    p.late = first;
    const u32 mode = case_.hide == 1 ? (first ? writes : reads) : case_.hide == 2 ? (first ? reads : writes) : writes;
    put(p, {{trap_first, 1, trap_cells, 0, static_cast<u16>(mode)}, 0});
    p.declared = first ? 1 : 0;
    p.no_access = !first;
}

void soak_stream::put(planned_task& p, const access& a)
{
    ops_.push_back(a.op);
    handles_.push_back(a.handle_plus_one);
    ++p.ops;
    ++p.declared;
}

soak_stream::access soak_stream::draw_handle(u32 thread, u32 mode, bool tile)
{
    const u32 each = banks / case_.threads;
    const u32 bank = thread * each + random_.below(std::min(each, style_.raw_log2_max < 10 ? 1u : each));
    const u32 handle = bank * bank_handles + (tile ? random_.below(bank_tiles) : bank_tiles + random_.below(bank_ranges));
    return {op_of_handle(handle, mode), static_cast<u16>(handle + 1)};
}

soak_stream::access soak_stream::draw_range(u32 thread, u32 mode)
{
    if (random_.share(style_.handle)) return draw_handle(thread, mode, false);
    u32 length = 1 + random_.below(style_.length_max);
    const u32 shape = random_.below(64);
    if (shape == 0) length = 0;
    // Mostly of its own area; now and then across the registered memory of the thread.
    u32 first = raw_first + shared_ + thread * own_, room = own_;
    if (shape < 4) {
        const u32 each = banks / case_.threads * bank_cells;
        first = thread * each;
        room = each;
    }
    u32 at = random_.below(room - style_.length_max);
    if ((shape & 1) != 0) at = at / style_.length_max * style_.length_max; // neighbours that touch
    return {{first + at, 1, static_cast<u16>(length), 0, static_cast<u16>(mode)}, 0};
}

soak_stream::access soak_stream::draw_shared(u32 mode)
{
    const u32 length = 1 + random_.below(std::min(style_.length_max, 4u));
    const u32 at = random_.below(shared_ - length);
    for (u32 i = at; i < at + length; ++i)
        if (shared_cells_[i].readers.size() > shared_readers_max) mode = writes; // bounds what the next writer names
    return {{raw_first + at, 1, static_cast<u16>(length), 0, static_cast<u16>(mode)}, 0};
}

soak_stream::access soak_stream::draw_tile(u32 thread, u32 mode)
{
    if (random_.share(style_.handle)) return draw_handle(thread, mode, true);
    // Mostly of one pitch, sometimes of another: rectangles that wrap, and of unequal pitch.
    const u32 kind = random_.below(8);
    const u32 pitch = kind == 0 ? 9 + random_.below(8) : kind == 1 ? 48 : 32;
    const u32 columns = 1 + random_.below(8);
    u32 rows = 1 + random_.below(5);
    const u32 first = raw_first + shared_ + thread * own_;
    while ((rows - 1) * pitch + columns >= own_) rows = rows > 1 ? rows - 1 : 1;
    if ((rows - 1) * pitch + columns >= own_) return draw_range(thread, mode);
    const u32 at = random_.below(own_ - ((rows - 1) * pitch + columns));
    return {{first + at, static_cast<u16>(rows), static_cast<u16>(random_.below(64) == 0 ? 0 : columns),
             static_cast<u16>(pitch), static_cast<u16>(mode)},
            0};
}

/// Names earlier tasks and reads their results: that shows that the order was kept.
void soak_stream::choose_after(planned_task& p, u32 t, u32 count)
{
    p.first_chosen = static_cast<u32>(chosen_.size());
    for (u32 k = 0; k < count; ++k) {
        const u32 reach = std::min(t, count > 3 ? 2 * count : random_.below(4) == 0 ? 3000u : 30u);
        const u32 a = t - 1 - random_.below(reach);
        if (tasks_[a].kind == task_kind::clear) continue;
        chosen_.push_back(a);
        ++p.chosen;
        ops_.push_back({tasks_[a].result, 1, 1, 0, reads | soak_op::of_results});
        handles_.push_back(0);
        ++p.ops;
    }
}

/// Blocks share the writes and each reads everything: only where no own write meets another own access.
bool soak_stream::may_split(const planned_task& p) const
{
    const auto end = [](const soak_op& op) { return op.first + (op.rows - 1u) * op.pitch + op.columns; };
    for (u32 i = 0; i < p.ops; ++i) {
        const soak_op& a = ops_[p.first_op + i];
        if (!a.writes()) continue;
        if (a.reads() || p.ops > 6) return false;
        for (u32 k = 0; k < p.ops; ++k) {
            const soak_op& b = ops_[p.first_op + k];
            if (k != i && (b.mode & soak_op::of_results) == 0 && a.first < end(b) && b.first < end(a)) return false;
        }
    }
    return true;
}

void soak_stream::draw(u32 t)
{
    planned_task& p = tasks_[t];
    const u32 thread = case_.threads == 1 ? 0 : random_.below(case_.threads);
    p.thread = static_cast<u8>(thread);
    p.first_op = static_cast<u32>(ops_.size());
    if (row_.left == 0 && random_.share(style_.rows)) {
        // Wide ones as long as they do not make the bulk of all blocks.
        const bool wide = random_.below(8) == 0 && results_next_ < 8 * t;
        row_ = {2 + random_.below(row_most - 1), 2 + random_.below(wide ? row_blocks_most - 1 : 7), thread, false, {}};
    }
    if (row_.left != 0 && random_.below(12) != 0) return draw_row(t);
    if (random_.share(style_.spin)) p.spin = static_cast<u8>(random_.below(16) ? 1 : random_.below(8) ? 2 : 3);
    u32 kind = random_.below(65536);
    const auto is = [&](u32 share) {
        if (kind < share) return true;
        kind -= share;
        return false;
    };
    const auto any_mode = [&] { return 1 + random_.below(3); };
    constexpr u32 add_share = 700, empty_share = 400;
    if (is(add_share)) {
        p.kind = task_kind::add;
        put(p, {{adders_first + random_.below(adders), 1, 1, 0, reads_and_writes}, 0});
        return;
    }
    if (is(style_.whole)) {
        p.whole = true;
        for (u32 k = random_.below(4); k > 0; --k) put(p, draw_range(thread, any_mode()));
        p.declared = 0;
        return;
    }
    if (is(empty_share)) {
        p.no_access = true;
        if (t > 0 && random_.below(2)) choose_after(p, t, 1 + random_.below(3));
        return;
    }
    if (is(style_.many)) {
        // A task that meets very many: by what it reads, or by name.
        const u32 count = 32 + random_.below(random_.below(4) ? 100 : accesses_most - 32);
        if (t > 0 && random_.below(2)) {
            put(p, draw_range(thread, writes));
            choose_after(p, t, std::min(count, t));
        } else {
            for (u32 k = 0; k < count; ++k) put(p, draw_range(thread, fails() || random_.below(8) ? reads : reads_and_writes));
        }
        return;
    }
    if (is(style_.after)) {
        for (u32 k = random_.below(3); k > 0; --k) put(p, draw_range(thread, any_mode()));
        if (t > 0) choose_after(p, t, 1 + random_.below(3));
        p.no_access = p.declared == 0;
    } else if (is(style_.listed)) {
        for (u32 k = 1 + random_.below(fails() || random_.below(32) ? 4 : 40); k > 0; --k) {
            const u32 mode = any_mode();
            put(p, shared_ != 0 && random_.below(8) == 0 ? draw_shared(mode)
                   : fails() || random_.below(3)         ? draw_range(thread, mode)
                                                         : draw_tile(thread, mode));
        }
        p.fails = row_failed_ && random_.share(style_.fail * 2);
    } else if (is(style_.tile)) {
        p.kind = task_kind::tile;
        put(p, draw_tile(thread, reads));
        put(p, draw_tile(thread, writes));
    } else if (is(style_.join)) {
        p.kind = task_kind::join;
        put(p, draw_range(thread, reads));
        put(p, draw_range(thread, reads));
        put(p, draw_range(thread, writes));
    } else {
        p.kind = random_.below(2) ? task_kind::move : task_kind::update;
        put(p, draw_range(thread, reads));
        put(p, draw_range(thread, p.kind == task_kind::move ? writes : reads_and_writes));
    }
    if (random_.share(style_.blocks) && may_split(p)) {
        p.blocks = 2 + random_.below(random_.below(64) ? 7 : blocks_most);
        if (p.blocks > 8) p.spin = static_cast<u8>(std::min<u32>(p.spin, 1));
    }
}

/// The next task of the row in hand: brief, of several blocks, mostly behind the one before.
void soak_stream::draw_row(u32 t)
{
    planned_task& p = tasks_[t];
    p.kind = task_kind::row;
    p.thread = static_cast<u8>(row_.thread);
    p.spin = random_.share(style_.spin) ? 1 : 0;
    --row_.left;
    const auto draw_one = [&](u32 mode) {
        return fails() || random_.below(4) != 0 ? draw_range(row_.thread, mode) : draw_tile(row_.thread, mode);
    };
    if (row_.wrote && random_.below(8) != 0) {
        access before = row_.last;
        before.op.mode = reads;
        put(p, before);
    }
    for (u32 k = random_.below(3); k > 0; --k) put(p, draw_one(reads));
    put(p, row_.last = draw_one(writes));
    row_.wrote = true;
    if (t > 0 && random_.below(8) == 0) choose_after(p, t, 1); // what it does without declaring it comes last
    // The first failure is one of a row: nothing is mailed to all workers any more, once a body of the engine has failed.
    p.fails = random_.share(row_failed_ ? style_.fail * 2 : style_.fail * 8);
    row_failed_ |= p.fails;
    if (p.fails) row_.left = std::min(row_.left, 3u); // the rest would but be cancelled
    p.blocks = may_split(p) ? row_.blocks : 1;
}

void soak_stream::begin_run()
{
    for (u32 i = 0; i < memory_.size(); ++i) memory_[i] = soak_initial(salt_, i);
    outcomes_.assign(tasks_.size(), outcome::good);
    if (fails()) poison_.assign(memory_.size(), 0);
    poison_spent_ = runs_spent_ = cleared_ = 0;
    shared_cells_.assign(shared_, {});
    last_of_.assign(case_.threads, none);
    whole_seen_.assign(case_.threads, none);
    last_whole_ = none;
    usable_ = true;
}

/// Which tasks t names: those chosen and still there, and where it meets other threads.
void soak_stream::order(u32 t)
{
    planned_task& p = tasks_[t];
    p.first_after = static_cast<u32>(afters_.size());
    for (u32 k = 0; k < p.chosen; ++k)
        if (const u32 a = chosen_[p.first_chosen + k]; !cut_ || (a >= case_.from && a - case_.from < case_.keep))
            afters_.push_back(a);
    if (case_.threads > 1) {
        const auto name = [&](u32 a) {
            if (a != none && tasks_[a].thread != p.thread) afters_.push_back(a);
        };
        const std::size_t first = afters_.size();
        for (u32 k = 0; k < p.ops; ++k) {
            const soak_op& op = ops_[p.first_op + k];
            if ((op.mode & soak_op::of_results) != 0 || !touches_shared(op)) continue;
            for (u32 i = 0; i < op.count(); ++i) {
                const shared_cell& cell = shared_cells_[op.cell(i) - raw_first];
                name(cell.writer);
                if (op.writes())
                    for (const u32 r : cell.readers) name(r);
            }
        }
        if (p.whole)
            for (const u32 a : last_of_) name(a);
        else if (whole_seen_[p.thread] != last_whole_)
            name(last_whole_);
        std::sort(afters_.begin() + static_cast<std::ptrdiff_t>(first), afters_.end());
        afters_.erase(std::unique(afters_.begin() + static_cast<std::ptrdiff_t>(first), afters_.end()), afters_.end());
    }
    p.afters = static_cast<u16>(afters_.size() - p.first_after);
}

/// What later tasks of other threads have to know of t.
void soak_stream::note(u32 t)
{
    const planned_task& p = tasks_[t];
    if (case_.threads == 1) return;
    for (u32 k = 0; k < p.ops; ++k) {
        const soak_op& op = ops_[p.first_op + k];
        if ((op.mode & soak_op::of_results) != 0 || !touches_shared(op)) continue;
        for (u32 i = 0; i < op.count(); ++i) {
            shared_cell& cell = shared_cells_[op.cell(i) - raw_first];
            if (op.writes()) {
                cell.readers.clear();
                cell.writer = t;
            } else if (cell.readers.empty() || cell.readers.back() != t) {
                cell.readers.push_back(t);
            }
        }
    }
    if (p.whole) last_whole_ = t;
    whole_seen_[p.thread] = last_whole_;
    last_of_[p.thread] = t;
}

bool soak_stream::is_cancelled(const planned_task& p) const
{
    for (u32 k = 0; k < p.afters; ++k)
        if (const u32 a = afters_[p.first_after + k]; a >= cleared_ && outcomes_[a] != outcome::good) return true;
    for (u32 k = 0; k < p.declared; ++k) {
        const soak_op& op = ops_[p.first_op + k];
        if (op.reads())
            for (u32 i = 0; i < op.count(); ++i)
                if (poison_[op.cell(i)]) return true;
    }
    return false;
}

void soak_stream::run(u32 t)
{
    planned_task& p = tasks_[t];
    if (p.kind == task_kind::clear) {
        std::fill(poison_.begin(), poison_.end(), 0);
        poison_spent_ = runs_spent_ = 0;
        cleared_ = t;
        return;
    }
    if (!fails()) {
        execute(p);
        return;
    }
    const bool cancelled = is_cancelled(p);
    outcomes_[t] = cancelled ? outcome::cancelled : p.fails ? outcome::failed : outcome::good;
    if (!cancelled) execute(p);
    for (u32 pass = 0; pass < 2; ++pass) // what lies under a pure write is gone first; then the task poisons all it writes
        for (u32 k = 0; k < p.declared; ++k) {
            const soak_op& op = ops_[p.first_op + k];
            if (!op.writes() || (pass == 0 && op.reads()) || (pass == 1 && outcomes_[t] == outcome::good)) continue;
            for (u32 i = 0; i < op.count(); ++i) poison_[op.cell(i)] = static_cast<u8>(pass);
            if (pass == 1) poison_spent_ += op.count();
        }
    if (outcomes_[t] != outcome::good) ++runs_spent_;
    if (poison_spent_ > poison_cells_max + 32 || runs_spent_ > failed_tasks_max + 32) usable_ = false;
}

void soak_stream::execute(const planned_task& p)
{
    if (p.kind == task_kind::add) {
        const u64 digest = soak_begin(salt_, p.result);
        memory_[ops_[p.first_op].first] += digest;
        results_[p.result] += soak_word(digest, 0);
        return;
    }
    const auto* const ops = ops_.data() + p.first_op;
    // A task of several blocks writes nothing that it reads: all of them read the same.
    u64 digest = soak_begin(salt_, p.result);
    for (u32 k = 0; k < p.ops; ++k) {
        if (!ops[k].reads()) continue;
        const auto& from = (ops[k].mode & soak_op::of_results) != 0 ? results_ : memory_;
        const u32 count = ops[k].count();
        for (u32 i = 0; i < count; ++i) digest += soak_term(from[ops[k].cell(i)], k, i);
    }
    for (u32 b = 0; b < p.blocks; ++b) results_[p.result + b] += soak_word(digest, b);
    if (p.fails) return;
    for (u32 k = 0; k < p.ops; ++k) {
        if (!ops[k].writes()) continue;
        const u32 count = ops[k].count();
        for (u32 i = 0; i < count; ++i) memory_[ops[k].cell(i)] = soak_written(digest, k, i);
    }
}

std::string soak_stream::describe(u32 task) const
{
    static const char* const kinds[] = {"move", "update", "tile", "join", "add", "listed", "row", "clear"};
    const planned_task& p = tasks_[task];
    std::string out = "task ";
    out += std::to_string(task) + " (" + kinds[static_cast<u32>(p.kind)] + (p.whole ? ", whole memory" : "")
        + (p.fails ? ", fails" : "") + ", thread " + std::to_string(p.thread) + ", " + std::to_string(p.blocks) + " block(s), "
        + std::to_string(p.ops) + " access(es), " + std::to_string(p.afters) + " after";
    for (u32 k = 0; k < p.ops && k < 4; ++k) {
        const soak_op& op = ops_[p.first_op + k];
        out += k ? "; " : ": ";
        out += op.reads() ? op.writes() ? "rw " : "r " : "w ";
        out += std::to_string(op.first) + "+" + std::to_string(op.columns);
        if (op.rows > 1) out += std::string("x").append(std::to_string(op.rows)) + " pitch " + std::to_string(op.pitch);
        if (handles_[p.first_op + k]) out += " by handle";
        if ((op.mode & soak_op::of_results) != 0) out += " of the results";
        if (k >= p.declared && (op.mode & soak_op::of_results) == 0) out += " undeclared";
    }
    return out + ")";
}

std::string soak_stream::compare(const std::vector<u64>& cells, const std::vector<u64>& results) const
{
    if (std::equal(results.begin(), results.end(), results_.begin()) && !fails()
        && std::equal(cells.begin(), cells.end(), memory_.begin()))
        return {};
    for (u32 t = 0; t < tasks_.size(); ++t)
        for (u32 b = 0; b < tasks_[t].blocks; ++b) {
            const u64 got = results[tasks_[t].result + b], want = results_[tasks_[t].result + b];
            if (got == want) continue;
            return describe(t) + ", block " + std::to_string(b) + ": "
                + (got == 0          ? "did not run"
                   : want == 0       ? "ran, and should not have"
                   : got == 2 * want ? "ran twice"
                                     : "read the wrong values");
        }
    for (u32 i = 0; i < memory_.size(); ++i)
        if (cells[i] != memory_[i] && !(fails() && poison_[i])) return "cell " + std::to_string(i) + " is wrong in the end";
    return {};
}

} // namespace slipstream::soak
