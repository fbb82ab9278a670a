// Building, oracle and comparison of digest programs.
#include "workloads/digest/digest_board.hpp"
#include <algorithm>
#include <cassert>

namespace slipstream::workloads {

using abi::access_mode;

digest_board::digest_board(engines::device_memory& device, const kernel_image& image, u32 cells)
    : device_(&device), program_(image), cells_(cells), memory_(static_cast<u64*>(device.take(u64{cells} * 8)))
{
    initial_.resize(cells);
    for (u32 c = 0; c < cells; ++c) initial_[c] = digest_initial(c);
}

u32 digest_board::register_cells(u32 first, u32 count, u32 rows, u32 pitch)
{
    return (rows > 1 ? program_.register_tile(memory_ + first, u64{count} * 8, rows, u64{pitch} * 8)
                     : program_.register_range(memory_ + first, u64{count} * 8))
        .index;
}

u32 digest_board::add(const digest_step& s)
{
    step mine{{s.declared.begin(), s.declared.end()}, {s.declared.begin(), s.declared.end()}, {s.after.begin(), s.after.end()},
              s.blocks, s.order, s.name};
    mine.used.insert(mine.used.end(), s.hidden.begin(), s.hidden.end());
    steps_.push_back(std::move(mine));
    return tasks() - 1;
}

void digest_board::use_hidden(u32 task, const cell_access& cells) { steps_.at(task).used.push_back(cells); }

/// Turns what a task uses into disjoint ascending runs, each cell with the union of its modes.
void digest_board::append_runs(step& s)
{
    struct change {
        u32 cell;
        int reads, writes;
    };
    std::vector<change> changes;
    for (const cell_access& a : s.used)
        for (u32 row = 0; row < a.rows; ++row) {
            const u32 first = a.first + row * a.pitch;
            assert(first + a.count <= cells_);
            const int reads = static_cast<u32>(a.mode) & 1, writes = static_cast<u32>(a.mode) >> 1 & 1;
            changes.push_back({first, reads, writes});
            changes.push_back({first + a.count, -reads, -writes});
        }
    std::sort(changes.begin(), changes.end(), [](const change& a, const change& b) { return a.cell < b.cell; });
    s.run_first = static_cast<u32>(runs_.size());
    int reads = 0, writes = 0;
    u32 position = 0;
    for (std::size_t i = 0; i < changes.size();) {
        const u32 cell = changes[i].cell;
        for (; i < changes.size() && changes[i].cell == cell; ++i) {
            reads += changes[i].reads;
            writes += changes[i].writes;
        }
        if (reads == 0 && writes == 0) continue; // also at the end: everything that began has ended
        const u32 count = changes[i].cell - cell;
        const auto mode = static_cast<access_mode>((reads > 0 ? 1 : 0) + (writes > 0 ? 2 : 0));
        const bool fresh = runs_.size() == s.run_first || runs_.back().mode != mode
            || runs_.back().first + runs_.back().count != cell;
        if (fresh)
            runs_.push_back({cell, count, position, mode});
        else
            runs_.back().count += count;
        position += count;
    }
    s.run_count = static_cast<u32>(runs_.size()) - s.run_first;
}

void digest_board::finish(const std::function<shaped_task(u32 number, const digest_share& share)>& shape)
{
    for (step& s : steps_) append_runs(s);
    auto* const table = static_cast<digest_run*>(device_->take(runs_.size() * sizeof(digest_run)));
    device_->write(table, runs_.data(), runs_.size() * sizeof(digest_run));
    results_ = static_cast<u64*>(device_->take(u64{tasks()} * 8));
    std::vector<declared_access> accesses;
    for (u32 n = 0; n < tasks(); ++n) {
        const step& s = steps_[n];
        accesses.clear();
        for (const cell_access& a : s.declared)
            accesses.push_back({a.mode, reinterpret_cast<u64>(memory_ + a.first), u64{a.count} * 8, a.rows, u64{a.pitch} * 8,
                                a.handle_plus_one});
        const shaped_task task = shape(n, {reinterpret_cast<u64>(memory_), reinterpret_cast<u64>(table + s.run_first),
                                           reinterpret_cast<u64>(results_ + n), s.run_count, n});
        program_.add(task.type, task.bytes, s.blocks, accesses, s.after, s.order, s.name);
    }
    compute_oracle();
}

void digest_board::compute_oracle()
{
    cells_expected_ = initial_;
    results_expected_.assign(tasks(), 0);
    std::vector<u64> digests;
    for (u32 n = 0; n < tasks(); ++n) {
        const step& s = steps_[n];
        digests.resize(s.blocks);
        for (u32 b = 0; b < s.blocks; ++b) digests[b] = digest_begin(n, b);
        const std::span<const digest_run> runs(runs_.data() + s.run_first, s.run_count);
        for (const digest_run& r : runs)
            if (static_cast<u32>(r.mode) & 1)
                for (u32 i = 0; i < r.count; ++i)
                    digests[(r.position + i) % s.blocks] += digest_term(r.first + i, cells_expected_[r.first + i]);
        for (const digest_run& r : runs)
            if (static_cast<u32>(r.mode) & 2)
                for (u32 i = 0; i < r.count; ++i)
                    cells_expected_[r.first + i] = digest_written(n, digests[(r.position + i) % s.blocks], r.first + i);
        for (const u64 d : digests) results_expected_[n] += d;
    }
}

broken_edge digest_board::break_edge(const std::string& kind)
{
    const broken_edge edge = find_broken_edge(program_, kind);
    program_.forget_access(edge.task, edge.access);
    return edge;
}

void digest_board::reset()
{
    device_->write(memory_, initial_.data(), u64{cells_} * 8);
    device_->fill(results_, 0, u64{tasks()} * 8);
}

verdict digest_board::verify()
{
    std::vector<u64> results(tasks()), cells(cells_);
    device_->read(results.data(), results_, results.size() * 8);
    device_->read(cells.data(), memory_, cells.size() * 8);
    const auto differences = [](const std::vector<u64>& got, const std::vector<u64>& expected, std::size_t& first) {
        u64 count = 0;
        for (std::size_t i = got.size(); i-- > 0;)
            if (got[i] != expected[i]) {
                first = i;
                ++count;
            }
        return count;
    };
    std::size_t first_task = 0, first_cell = 0;
    const u64 bad_tasks = differences(results, results_expected_, first_task);
    const u64 bad_cells = differences(cells, cells_expected_, first_cell);
    if (bad_tasks == 0 && bad_cells == 0) return {true, {}};
    std::string text;
    if (bad_tasks) {
        text = std::to_string(bad_tasks) + " of " + std::to_string(results.size())
            + " tasks have a wrong digest, the first is task " + std::to_string(first_task);
        if (!steps_[first_task].name.empty()) text += " (" + std::string(steps_[first_task].name) + ")";
    }
    if (bad_cells)
        text += (text.empty() ? "" : "; ") + std::to_string(bad_cells) + " of " + std::to_string(cells.size())
            + " cells are wrong, the first is cell " + std::to_string(first_cell);
    return {false, text};
}

} // namespace slipstream::workloads
